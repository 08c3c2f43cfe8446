//! Settings of the fields that tell servers where a request came from.

use afpa_http::syntax::is_alike;

use super::origin::Origin;
use crate::fields::{self, Kind};

/// Fields that are set, kept or removed. By default no client is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestPolicy {
    /// The Host that servers get.
    pub host: HostPolicy,
    /// Whether a Via line is added (RFC 9110 section 7.6.3 asks for it).
    pub via: bool,
    /// `Forwarded` (RFC 7239).
    pub forwarded: Mark,
    /// `X-Forwarded-For`, `X-Forwarded-Host`, `X-Forwarded-Proto`. The other fields by which routers in front tell
    /// servers of a request, such as `X-Forwarded-Port`, `X-Original-URL` or `X-Real-IP`, pass or not with them.
    pub x_forwarded: Mark,
    /// Protocols that a client may change to (RFC 9110 section 7.8), in lower case. Never `h2c`: the requests
    /// behind it would not be checked.
    pub upgrades: Vec<String>,
    /// The name of a field with the subject of the client's certificate. A client's own field of this name is removed.
    pub client_subject: Option<String>,
    /// The name of a field with the client's address, as the site knows it. A client's own field of this name is removed.
    pub client_address: Option<String>,
    /// Servers understand `Early-Data` (RFC 8470), so that they may be asked while the handshake of the client goes on.
    pub early_data: bool,
}

/// The Host that servers get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// The client's.
    #[default]
    Keep,
    /// The server's address, as configured.
    Server,
    /// This one.
    Name(String),
}

/// The treatment of a field that tells where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is passed on unchanged, from any client.
    Keep,
    /// It is removed.
    Remove,
    /// It is written anew; from a trusted router, the new value is appended to what arrived.
    Replace,
    /// The new value is appended to what arrived, from any client.
    Append,
}

impl Mark {
    /// The treatment for a request from `origin`.
    pub(super) fn for_origin(self, origin: Origin) -> Mark {
        match self {
            Mark::Replace if origin.trusted => Mark::Append,
            mark => mark,
        }
    }

    /// Whether the field that arrived reaches the server.
    pub(super) fn passes(self) -> bool {
        matches!(self, Mark::Keep | Mark::Append)
    }
}

impl Default for RequestPolicy {
    fn default() -> Self {
        Self {
            host: HostPolicy::Keep,
            via: true,
            forwarded: Mark::Remove,
            x_forwarded: Mark::Replace,
            upgrades: vec!["websocket".into()],
            client_subject: None,
            client_address: None,
            early_data: false,
        }
    }
}

impl RequestPolicy {
    /// Whether servers could take a field for one of those in which AFPA tells of the client.
    pub(crate) fn tells(&self, name: &[u8]) -> bool {
        let own = [&self.client_subject, &self.client_address];
        own.into_iter().flatten().any(|own| is_alike(name, own.as_bytes()))
    }

    /// Whether a client's field reaches the server under a name by which routers in front describe requests. An answer
    /// may depend on such a field although no answer says so. A field in which a trusted router names its client is not
    /// counted: no stranger can choose it, and an answer for one client says so.
    pub fn passes_on(&self, name: &[u8], origin: Origin) -> bool {
        let passes = |mark: Mark| mark.for_origin(origin).passes();
        match fields::kind(name) {
            Kind::Forwarded => passes(self.forwarded),
            Kind::XForwardedHost | Kind::XForwardedProto | Kind::FrontRequest => {
                passes(self.x_forwarded)
            }
            Kind::XForwardedFor | Kind::FrontClient => !origin.trusted && passes(self.x_forwarded),
            _ => false,
        }
    }

    /// Whether [`passes_on`](Self::passes_on) may say so of some field of this client.
    pub fn may_pass_on(&self, origin: Origin) -> bool {
        [self.forwarded, self.x_forwarded].iter().any(|mark| mark.for_origin(origin).passes())
    }

    /// Whether servers get a field of this name that tells more than the client's request, its host and its scheme.
    pub fn writes(&self, name: &[u8]) -> bool {
        let is_written = |mark: Mark| matches!(mark, Mark::Replace | Mark::Append);
        match fields::kind(name) {
            Kind::Via => self.via,
            Kind::Forwarded => is_written(self.forwarded),
            Kind::XForwardedFor => is_written(self.x_forwarded),
            // They concern the connection to the server, which is not the client's.
            Kind::Connection
            | Kind::HopByHop
            | Kind::TransferEncoding
            | Kind::Expect
            | Kind::Upgrade
            | Kind::Te
            | Kind::MaxForwards
            | Kind::EarlyData => true,
            _ => self.tells(name),
        }
    }

    /// Whether all protocols that `upgrade` names are allowed.
    pub(super) fn allows_upgrade(&self, upgrade: &[u8]) -> bool {
        let mut protocols = afpa_http::syntax::list(upgrade).peekable();
        protocols.peek().is_some()
            && protocols.all(|protocol| {
                self.upgrades.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(protocol))
            })
    }
}
