//! The question to the router about a request, with its client.

use std::net::IpAddr;

use afpa_framework::{Client, Secured};
use afpa_http::Request;
use afpa_router::{Fields, ListenerId, Question, SiteId};

use crate::global::Global;

/// The question to the router about a request.
pub(crate) fn question<'q, 's>(
    (global, listener, peer): (&'q Global, ListenerId, Client),
    (request, tls): (&'q Request<'s, 'q>, Option<&'q Secured>),
    path: &'q [u8],
) -> Question<'q, Asker<'q, 's>> {
    let query = request.target.query();
    let (host, method) = (request.host.name(), request.method);
    let fields = Asker { global, request, tls, peer };
    Question { listener, host, method, path, query, fields }
}

/// The fields of a request, and its client.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'q, 's> {
    global: &'q Global,
    request: &'q Request<'s, 'q>,
    tls: Option<&'q Secured>,
    peer: Client,
}

impl Fields for Asker<'_, '_> {
    fn any(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        self.request.any(name, test)
    }

    fn subject(&self) -> Option<&str> {
        self.tls.and_then(|tls| tls.subject.as_deref())
    }

    fn client(&self, site: SiteId) -> Option<IpAddr> {
        client_of((self.global, site), self.request, self.peer)
    }
}

/// The address of the client as a site sees it. A client of a unix socket has none.
pub(crate) fn client_of(
    (global, site): (&Global, SiteId),
    request: &Request<'_, '_>,
    peer: Client,
) -> Option<IpAddr> {
    let Client::Ip(peer) = peer else { return None };
    let site = global.sites.get(site.0 as usize);
    site.map_or(Some(peer), |site| site.client_of(request, Some(peer)).0)
}
