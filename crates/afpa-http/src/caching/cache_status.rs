//! Cache-Status (RFC 9211): how the cache handled a request, for readers of the answer.

use super::reuse::{Stored, Why};
use super::store::NotStored;

/// How the cache handled a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A stored response answered it. Seconds of freshness that are left; negative: it is stale.
    Hit {
        /// Seconds of freshness that are left; negative: it is stale.
        ttl: i64,
    },
    /// It went to a server.
    Forwarded {
        /// Why.
        why: Forward,
        /// The status that the server gave, if the client got another one.
        status: Option<u16>,
        /// Why the answer was not stored; `None`: it was.
        stored: Result<(), NotStored>,
        /// It waited for the answer to another request.
        collapsed: bool,
    },
}

impl Outcome {
    /// A stored response answers.
    pub fn hit(stored: &Stored) -> Self {
        let ttl = i128::from(stored.lifetime) - i128::from(stored.age);
        Self::Hit { ttl: i64::try_from(ttl).unwrap_or(if ttl < 0 { i64::MIN } else { i64::MAX }) }
    }
}

/// Why a request went to a server (RFC 9211 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Nothing is stored for the URL.
    UriMiss,
    /// Something is, but not for these fields.
    VaryMiss,
    /// The stored response is stale.
    Stale,
    /// The request asks for it.
    Request,
    /// The cache does not answer such methods.
    Method,
    /// The configuration says so.
    Bypass,
    /// A part is stored, but not the one that is wanted.
    Partial,
}

impl From<Why> for Forward {
    fn from(why: Why) -> Self {
        match why {
            Why::Stale | Why::NoCache | Why::Purged => Forward::Stale,
            Why::Request => Forward::Request,
        }
    }
}

impl Forward {
    /// As the field writes it.
    pub const fn token(self) -> &'static str {
        match self {
            Forward::UriMiss => "uri-miss",
            Forward::VaryMiss => "vary-miss",
            Forward::Stale => "stale",
            Forward::Request => "request",
            Forward::Method => "method",
            Forward::Bypass => "bypass",
            Forward::Partial => "partial",
        }
    }
}

/// The text before the `ttl` of a hit.
pub const BEFORE_TTL: &[u8] = b"afpa; hit; ttl=";

/// Appends the member of this cache to the value of Cache-Status. Nothing follows the `ttl` of a hit.
pub fn put(outcome: &Outcome, out: &mut Vec<u8>) {
    match outcome {
        Outcome::Hit { ttl } => {
            out.extend_from_slice(BEFORE_TTL);
            out.extend_from_slice(itoa::Buffer::new().format(*ttl).as_bytes());
        }
        Outcome::Forwarded { why, status, stored, collapsed } => {
            out.extend_from_slice(b"afpa; fwd=");
            out.extend_from_slice(why.token().as_bytes());
            if let Some(status) = status {
                out.extend_from_slice(b"; fwd-status=");
                out.extend_from_slice(itoa::Buffer::new().format(*status).as_bytes());
            }
            if *collapsed {
                out.extend_from_slice(b"; collapsed");
            }
            match stored {
                Ok(()) => out.extend_from_slice(b"; stored"),
                Err(why) => {
                    out.extend_from_slice(b"; detail=");
                    out.extend_from_slice(why.key().as_bytes());
                }
            }
        }
    }
}
