//! Why a request got no response from a server, and what the client is told.

use std::io;

use afpa_http::Status;

use crate::response::BadResponse;
use crate::select::{AttemptOutcome, WhyNone};

/// Why there is no response to pass on. Nothing of one has gone to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No server could be selected.
    NoServer(WhyNone),
    /// The request waited in the queue for as long as it may.
    QueueTimeout,
    /// The server refuses connections, or cannot be reached.
    Connect,
    /// The server did not take the connection in time.
    ConnectTimeout,
    /// This machine has no descriptor or port left for a connection.
    Exhausted,
    /// The server ended the connection before its response began.
    Reset,
    /// What the server sent is no response.
    BadResponse(BadResponse),
    /// The content of the response is malformed, or breaks off, and none of it had been passed on.
    BadContent,
    /// No response began in time, or the request was not taken in time.
    ServerTimeout,
    /// The exchange as a whole took too long.
    TotalTimeout,
    /// The content of the request is malformed.
    BadRequestContent,
    /// The content of the request is larger than the limit.
    RequestTooLarge,
    /// The content of the request did not come in time.
    ClientTimeout,
}

impl Failure {
    /// The status that says so: 502 when a server failed, 503 when there is none or no room, 504 when one
    /// was too slow, and 4xx when the client did.
    pub const fn status(self) -> Status {
        match self {
            Failure::NoServer(why) => why.status(),
            Failure::QueueTimeout | Failure::Exhausted => Status::SERVICE_UNAVAILABLE,
            Failure::Connect | Failure::Reset | Failure::BadResponse(_) | Failure::BadContent => {
                Status::BAD_GATEWAY
            }
            Failure::ConnectTimeout | Failure::ServerTimeout | Failure::TotalTimeout => {
                Status::GATEWAY_TIMEOUT
            }
            Failure::BadRequestContent => Status::BAD_REQUEST,
            Failure::RequestTooLarge => Status::CONTENT_TOO_LARGE,
            Failure::ClientTimeout => Status::REQUEST_TIMEOUT,
        }
    }

    /// Seconds after which it is worth asking again; `None` when asking again is not the remedy.
    pub const fn retry_after_s(self) -> Option<u32> {
        match self {
            Failure::NoServer(why) => Some(why.retry_after_s()),
            Failure::BadRequestContent | Failure::RequestTooLarge | Failure::ClientTimeout => None,
            _ => Some(1),
        }
    }

    /// A sentence for the page.
    pub const fn sentence(self) -> &'static str {
        match self {
            Failure::NoServer(why) => match why {
                WhyNone::NoServers => "There is no server for this page at the moment.",
                WhyNone::AllDown { .. } => "The servers of this page are out of order.",
                WhyNone::AllTried => "None of the servers of this page answered.",
                WhyNone::QueueFull | WhyNone::Shed => "The servers of this page are busy.",
            },
            Failure::QueueTimeout => "The servers of this page were busy for too long.",
            Failure::Connect => "The server of this page cannot be reached.",
            Failure::ConnectTimeout => "The server of this page does not take connections.",
            Failure::Exhausted => "This server has no connections left.",
            Failure::Reset => "The server of this page hung up before it answered.",
            Failure::BadResponse(_) => "The server of this page gave an answer that is not HTTP.",
            Failure::BadContent => "The server of this page gave a broken answer.",
            Failure::ServerTimeout => "The server of this page took too long to answer.",
            Failure::TotalTimeout => "The answer took longer than it may.",
            Failure::BadRequestContent => "The content of the request is malformed.",
            Failure::RequestTooLarge => "The request carried more content than the server takes.",
            Failure::ClientTimeout => "The content of the request took too long to arrive.",
        }
    }

    /// A word for logs and metrics.
    pub const fn key(self) -> &'static str {
        match self {
            Failure::NoServer(_) => "no-server",
            Failure::QueueTimeout => "queue-timeout",
            Failure::Connect => "connect",
            Failure::ConnectTimeout => "connect-timeout",
            Failure::Exhausted => "exhausted",
            Failure::Reset => "reset",
            Failure::BadResponse(_) => "bad-response",
            Failure::BadContent => "bad-content",
            Failure::ServerTimeout => "server-timeout",
            Failure::TotalTimeout => "total-timeout",
            Failure::BadRequestContent => "bad-request-content",
            Failure::RequestTooLarge => "request-too-large",
            Failure::ClientTimeout => "client-timeout",
        }
    }
}

/// What a failed attempt says about the server, and about trying elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) failure: Failure,
    /// What its health is told; `None` when it is not to blame.
    pub(super) outcome: Option<AttemptOutcome>,
    /// Whether a connection that had been idle may simply have been closed in the meantime.
    pub(super) stale: bool,
    /// Whether another server may do better.
    pub(super) retry: RetryPolicy,
}

/// Whether a request may be sent to another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryPolicy {
    /// No byte of it was sent.
    Always,
    /// If doing it twice is like doing it once.
    IfIdempotent,
    /// It would fail there, too, or there is no time left.
    Never,
}

impl Fault {
    pub(super) const fn of_server(failure: Failure, outcome: AttemptOutcome) -> Self {
        Self { failure, outcome: Some(outcome), stale: false, retry: RetryPolicy::IfIdempotent }
    }

    pub(super) const fn unsent(failure: Failure, outcome: AttemptOutcome) -> Self {
        Self { failure, outcome: Some(outcome), stale: false, retry: RetryPolicy::Always }
    }

    pub(super) const fn nobodys(failure: Failure) -> Self {
        Self { failure, outcome: None, stale: false, retry: RetryPolicy::Never }
    }
}

/// Whose fault it is that there is no connection. What this machine lacks is not held against a server.
pub(super) fn connect_fault(error: &io::Error) -> Fault {
    use io::ErrorKind as Kind;
    let exhausted =
        matches!(error.kind(), Kind::AddrNotAvailable | Kind::AddrInUse | Kind::OutOfMemory)
            || matches!(
                rustix::io::Errno::from_io_error(error),
                Some(
                    rustix::io::Errno::MFILE | rustix::io::Errno::NFILE | rustix::io::Errno::NOBUFS
                )
            );
    match error.kind() {
        _ if exhausted => Fault::nobodys(Failure::Exhausted),
        Kind::ConnectionRefused => Fault::unsent(Failure::Connect, AttemptOutcome::ConnectRefused),
        Kind::TimedOut => Fault::unsent(Failure::ConnectTimeout, AttemptOutcome::ConnectTimeout),
        _ => Fault::unsent(Failure::Connect, AttemptOutcome::ConnectFailed),
    }
}
