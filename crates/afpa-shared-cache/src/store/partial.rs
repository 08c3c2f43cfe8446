//! Parts of responses (RFC 9111 sections 3.3 and 3.4), kept until they are all of the representation.

use afpa_cache::Pinned;
use afpa_http::caching::condition::may_send_part;
use afpa_http::caching::parts::Parts;
use afpa_http::{Known, Ranges, Request, range};

use crate::store::stored::Response;

/// A representation of which parts are stored.
#[derive(Debug)]
pub(crate) struct Partial {
    /// The response that all of it would be.
    pub(crate) response: Response,
    pub(crate) parts: Parts<Pinned>,
}

/// A request for a part, which the server gets as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranged {
    Plain,
    /// With If-Range: a 206 may lack fields of the representation (RFC 9110 section 15.3.7).
    IfRange,
}

impl Ranged {
    /// `None`: the answer may also be one to another condition.
    pub(crate) fn of(request: &Request<'_, '_>) -> Option<Self> {
        let conditions = [Known::IfNoneMatch, Known::IfModifiedSince];
        if conditions.iter().any(|field| request.has(*field)) {
            return None;
        }
        Some(if request.has(Known::IfRange) { Ranged::IfRange } else { Ranged::Plain })
    }
}

impl Partial {
    /// The range that a request asks for, if all of it is there, and the request asks for nothing else.
    pub(crate) fn range_for(&self, request: &Request<'_, '_>) -> Option<std::ops::Range<u64>> {
        Ranged::of(request)?;
        if !request.has(Known::Range) || !may_send_part(request, &self.response.validators()) {
            return None;
        }
        let Ranges::One(range) = range::select_current(request, self.parts.complete(), 1) else {
            return None;
        };
        self.parts.find(&range).map(|_| range)
    }
}
