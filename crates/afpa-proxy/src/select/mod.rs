//! Selecting a server of a server group (IBM paper, section 3).
//!
//! All workers share a [`Group`]. [`Group::pick`] gives a request a [`Lease`] on a server or a place in the
//! queue, or says why there is no server. The lease is finished with the outcome of the attempt, from which
//! the server's health is derived. The decisions are made in `core`, which is pure. A lock surrounds it, which
//! is held for a microsecond and never across an await; so turns and limits are exact for any number of
//! workers.

mod address;
mod cookie;
mod core;
mod group;
mod lease;
mod queue;
mod ring;
mod settings;
mod share;
mod tally;
mod target;
mod turns;

use std::net::IpAddr;

use afpa_http::Status;

pub use address::{Address, ServerAddress, ServerAddressError};
pub use cookie::{CookieSettings, SameSite, Secure};
pub use group::{Group, ProbeTask};
pub use lease::{Lease, Waiter};
pub use settings::{Affinity, GroupSettings, QueueSettings, Select, ServerSettings};
pub use tally::{ConnectionCounts, Http2Counts, Lack, Tally};
pub use target::Wanted;

pub use crate::health::AttemptOutcome;
use crate::health::WhyDown;

/// A server's number within its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerIndex(pub u32);

/// The facts on which the choice of a server may depend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chosen<'a> {
    /// A hash of the URL, the same for the same URL in every process.
    pub url_hash: u64,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The client whose share of a server it takes; `None`: no client's, because many come by that address.
    pub sharer: Option<IpAddr>,
    /// The value of the affinity cookie, if the request has it.
    pub cookie: Option<&'a [u8]>,
    /// The affinity of the request set; `None`: that of the group.
    pub affinity: Option<Affinity>,
}

/// The result of the choice for a request.
#[derive(Debug)]
pub enum Pick {
    /// It goes to this server.
    Server(Lease),
    /// It waits for one.
    Queue(Waiter),
    /// It cannot be served.
    None(WhyNone),
}

/// Why no server could be selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyNone {
    /// The group has no servers: none of its names has an address, or all of them drain.
    NoServers,
    /// Every server is unavailable.
    AllDown {
        /// Why: of several reasons, the most informative one.
        why: WhyDown,
        /// When the first of them will be probed.
        retry_after_s: u32,
    },
    /// Every server that is available has been tried.
    AllTried,
    /// The queue is full.
    QueueFull,
    /// The most requests of this client that may wait wait already.
    ClientWaits,
    /// It would have waited longer than the queue's time-out.
    Shed,
}

impl WhyNone {
    /// The status for the client: 502 when servers refuse, 504 when they are too slow, 503 when there are too
    /// many requests.
    pub const fn status(self) -> Status {
        match self {
            // RFC 6585, section 4.
            WhyNone::ClientWaits => Status::TOO_MANY_REQUESTS,
            WhyNone::AllDown { why: WhyDown::Refused, .. } | WhyNone::AllTried => {
                Status::BAD_GATEWAY
            }
            WhyNone::AllDown {
                why: WhyDown::ConnectTimeout | WhyDown::FirstByteTimeout, ..
            } => Status::GATEWAY_TIMEOUT,
            WhyNone::NoServers | WhyNone::AllDown { .. } | WhyNone::QueueFull | WhyNone::Shed => {
                Status::SERVICE_UNAVAILABLE
            }
        }
    }

    /// Seconds after which the client may try again.
    pub const fn retry_after_s(self) -> u32 {
        match self {
            WhyNone::AllDown { retry_after_s, .. } => retry_after_s,
            WhyNone::NoServers => 10,
            WhyNone::AllTried | WhyNone::QueueFull | WhyNone::ClientWaits | WhyNone::Shed => 1,
        }
    }

    /// A few words, for pages and logs.
    pub const fn text(self) -> &'static str {
        match self {
            WhyNone::NoServers => "the server group has no servers",
            WhyNone::AllDown { .. } => "every server of the group is unavailable",
            WhyNone::AllTried => "every server of the group was tried",
            WhyNone::QueueFull => "too many requests wait for a server",
            WhyNone::ClientWaits => "too many requests of one client wait for a server",
            WhyNone::Shed => "the servers are overloaded",
        }
    }
}

/// A hash of a URL's path and query for [`Chosen::url_hash`].
pub fn url_hash(path: &[u8], query: Option<&[u8]>) -> u64 {
    let path = ring::hash(path);
    query.map_or(path, |query| path.rotate_left(1) ^ ring::hash(query))
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
