//! A site, apart from its routes.

use std::net::IpAddr;
use std::sync::Arc;

use afpa_framework::{Client, Network, Secured};
use afpa_http::Request;
use afpa_proxy::forwarded;
use afpa_proxy::limit::Gate;
use afpa_proxy::request::Origin;

/// A site apart from its routes, which the router has.
pub struct Site {
    /// Its name in logs and metrics.
    pub name: String,
    /// Its limits on requests that go to servers.
    pub gate: Arc<Gate>,
    /// Routers in front whose X-Forwarded-For is trusted to name the client.
    pub forwarded_from: Arc<[Network]>,
    /// The value of Strict-Transport-Security in answers over TLS.
    pub hsts: Option<Arc<str>>,
    /// The certificates that clients show on connections with TLS; `None`: they are not asked for one.
    pub clients: Option<ClientDemand>,
}

/// The demand of a site for certificates of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientDemand {
    /// The authorities that may have signed them, as [`Secured`] has them.
    pub authorities: [u8; 32],
    /// Whether they have to show one.
    pub required: bool,
}

impl Site {
    /// Whether a connection may be used for this site: its client was asked for the certificate that the site demands, and
    /// has shown it. Without TLS nobody can be asked.
    pub(crate) fn admits(&self, tls: Option<&Secured>) -> bool {
        let (Some(demand), Some(tls)) = (&self.clients, tls) else { return true };
        tls.authorities == Some(demand.authorities) && (tls.subject.is_some() || !demand.required)
    }

    /// The subject of the client, if it was verified as this site wants it.
    pub(crate) fn subject<'a>(&self, tls: &'a Secured) -> Option<&'a str> {
        let demand = self.clients.as_ref()?;
        tls.subject.as_deref().filter(|_| tls.authorities == Some(demand.authorities))
    }

    /// The client of a request that came from `peer`, and the origin from which servers learn of it. A trusted router
    /// in front names the client; each router adds the address that it got the request from.
    pub(crate) fn client_of(
        &self,
        request: &Request<'_, '_>,
        peer: Option<IpAddr>,
    ) -> (Option<IpAddr>, Origin<'static>) {
        client_of(&self.forwarded_from, request, peer)
    }

    /// Whether a client is a router in front that is believed.
    pub(crate) fn trusts(&self, client: Client) -> bool {
        match client {
            Client::Ip(peer) => contains(&self.forwarded_from, peer),
            Client::Unix => false,
        }
    }

    /// The client as the access log names it.
    pub(crate) fn logged_client(&self, request: &Request<'_, '_>, peer: Client) -> Client {
        match peer {
            Client::Ip(address) if !self.forwarded_from.is_empty() => {
                self.client_of(request, Some(address)).0.map_or(peer, Client::Ip)
            }
            _ => peer,
        }
    }
}

fn contains(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// [`Site::client_of`], by the routers in front that the site trusts.
pub(crate) fn client_of(
    forwarded_from: &[Network],
    request: &Request<'_, '_>,
    peer: Option<IpAddr>,
) -> (Option<IpAddr>, Origin<'static>) {
    let Some(peer) = peer else { return (None, Origin::default()) };
    let trusted = contains(forwarded_from, peer);
    let origin = Origin { client: Some(peer), first: Some(peer), trusted, ..Origin::default() };
    if !trusted {
        return (Some(peer), origin);
    }
    let lines = request.fields().filter(|(name, _)| name.eq_ignore_ascii_case("x-forwarded-for"));
    let client = forwarded::client(lines.map(|(_, value)| value), peer, forwarded_from);
    (Some(client), Origin { first: Some(client), ..origin })
}
