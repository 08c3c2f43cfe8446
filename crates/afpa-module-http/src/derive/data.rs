//! The data of a connection and of a request.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use afpa_framework::{Client, Now, Secured};
use afpa_http::body::BodySkipper;
use afpa_http::marks::Marks;
use afpa_http::{Request, Version};
use afpa_proxy::limit::ConnectionPermit;
use afpa_router::{ListenerId, RequestSetId};

use crate::demand::Granted;
use crate::learnt::Learnt;

/// HTTP's connection data.
pub struct HttpConnection {
    pub(super) client: Client,
    /// Its port; 0 on a unix socket.
    pub(super) port: u16,
    pub(super) listener: ListenerId,
    /// Content of the last request that is still to be skipped.
    pub(super) skipping: Option<BodySkipper>,
    /// The connection counts against the limits of the site that its last distributed request was for.
    pub(super) permit: Option<ConnectionPermit>,
    /// The result of the TLS handshake, on a connection with TLS.
    pub(super) tls: Option<Rc<Secured>>,
    /// Its requests come over streams of HTTP/2.
    pub(super) has_streams: bool,
}

impl HttpConnection {
    /// The version of its requests, if their heads were made from the fields of another version.
    pub(super) fn version(&self) -> Option<Version> {
        let protocol = self.tls.as_ref().and_then(|tls| tls.protocol.as_deref());
        match protocol {
            Some(b"h3") => Some(Version::Http3),
            _ => self.has_streams.then_some(Version::Http2),
        }
    }
}

/// Facts about a request whose response is derived again.
pub(super) struct Again {
    pub(super) arrived: Now,
    pub(super) learnt: Learnt,
    /// The client was checked.
    pub(super) granted: Option<Rc<Granted>>,
    /// The request set that answers; `None`: the router says it.
    pub(super) within: Option<RequestSetId>,
    /// The marks that the request has.
    pub(super) marks: Option<Box<Marks>>,
}

/// A parsed request, with the bytes it was parsed from.
pub struct HttpRequest<'s, 'b> {
    pub(super) parsed: Request<'s, 'b>,
    pub(super) head: &'b [u8],
    /// Known already, if the response is derived again.
    pub(super) again: Cell<Option<Box<Again>>>,
    /// The client was checked.
    pub(super) granted: OnceCell<Rc<Granted>>,
}
