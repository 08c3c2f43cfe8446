//! Failures: why a request got no response from a server, and the answer for the client.

use std::borrow::Cow;
use std::io;

use afpa_http::Status;

use crate::pool::lack;
use crate::response::BadResponse;
use crate::select::{AttemptOutcome, Lack, WhyNone};

/// Why there is no response to pass on. No byte of a response was sent to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No server could be selected.
    NoServer(WhyNone),
    /// The request waited in the queue for the longest time that is allowed.
    QueueTimeout,
    /// The server refuses connections, or cannot be reached.
    Connect,
    /// The server did not take the connection in time.
    ConnectTimeout,
    /// This machine has no port, descriptor or memory left for a connection.
    Exhausted(Lack),
    /// The server ended the connection before its response began.
    Reset,
    /// The server's queue of connections is full, or it says that it is overloaded (FastCGI). It has not looked at the
    /// request.
    Overloaded,
    /// The server's bytes are not a response.
    BadResponse(BadResponse),
    /// The content of the response is malformed or breaks off, before any of it was passed on.
    BadContent,
    /// No response began in time, or the request was not taken in time.
    ServerTimeout,
    /// The exchange as a whole took too long.
    TotalTimeout,
    /// The content of the request is malformed.
    BadRequestContent,
    /// The request asks for WebSocket without a key (RFC 6455 section 4.2.1).
    WebSocketKey,
    /// The content of the request is larger than the limit.
    RequestTooLarge,
    /// The content of the request has no length, and is too large to be gathered for a server that must know it.
    LengthRequired,
    /// The content of the request is to be gathered for such a server, and the content of others takes all the room.
    ContentRoom,
    /// The content of the request did not come in time.
    ClientTimeout,
}

impl Failure {
    /// The status for the client: 502 when a server failed, 503 when there is no server or none has room,
    /// 504 when a server was too slow, and 4xx when the client failed.
    pub const fn status(self) -> Status {
        match self {
            Failure::NoServer(why) => why.status(),
            Failure::QueueTimeout
            | Failure::Exhausted(_)
            | Failure::Overloaded
            | Failure::ContentRoom => Status::SERVICE_UNAVAILABLE,
            Failure::Connect | Failure::Reset | Failure::BadResponse(_) | Failure::BadContent => {
                Status::BAD_GATEWAY
            }
            Failure::ConnectTimeout | Failure::ServerTimeout | Failure::TotalTimeout => {
                Status::GATEWAY_TIMEOUT
            }
            Failure::BadRequestContent | Failure::WebSocketKey => Status::BAD_REQUEST,
            Failure::RequestTooLarge => Status::CONTENT_TOO_LARGE,
            Failure::LengthRequired => Status::LENGTH_REQUIRED,
            Failure::ClientTimeout => Status::REQUEST_TIMEOUT,
        }
    }

    /// Seconds after which the client may try again; `None` when that would not help.
    pub const fn retry_after_s(self) -> Option<u32> {
        match self {
            Failure::NoServer(why) => Some(why.retry_after_s()),
            Failure::BadRequestContent
            | Failure::WebSocketKey
            | Failure::RequestTooLarge
            | Failure::LengthRequired
            | Failure::ClientTimeout => None,
            _ => Some(1),
        }
    }

    /// A sentence for the error page.
    pub const fn sentence(self) -> &'static str {
        match self {
            Failure::NoServer(why) => match why {
                WhyNone::NoServers => "There is no server for this page at the moment.",
                WhyNone::AllDown { .. } => "The servers of this page are out of order.",
                WhyNone::AllTried => "None of the servers of this page answered.",
                WhyNone::ClientWaits => {
                    "Too many of your requests wait for the servers of this page."
                }
                WhyNone::QueueFull | WhyNone::Shed => "The servers of this page are busy.",
            },
            Failure::QueueTimeout => "The servers of this page were busy for too long.",
            Failure::Connect => "The server of this page cannot be reached.",
            Failure::ConnectTimeout => "The server of this page does not take connections.",
            Failure::Exhausted(_) => "This server has no connections left.",
            Failure::Reset => "The server of this page hung up before it answered.",
            Failure::Overloaded => "The server of this page is overloaded.",
            Failure::BadResponse(_) => "The server of this page gave an answer that is not HTTP.",
            Failure::BadContent => "The server of this page gave a broken answer.",
            Failure::ServerTimeout => "The server of this page took too long to answer.",
            Failure::TotalTimeout => "The answer took longer than it may.",
            Failure::BadRequestContent => "The content of the request is malformed.",
            Failure::WebSocketKey => "The request for a WebSocket has no key, or none of 16 bytes.",
            Failure::RequestTooLarge => "The request carried more content than the server takes.",
            Failure::LengthRequired => {
                "The content of the request is so large that its length has to be announced."
            }
            Failure::ContentRoom => "The content of other requests takes all the room for it.",
            Failure::ClientTimeout => "The content of the request took too long to arrive.",
        }
    }

    /// The failure in words, for logs.
    pub fn why(self) -> Cow<'static, str> {
        match self {
            Failure::BadResponse(bad) => Cow::Owned(format!("{}: {bad}", self.key())),
            _ => Cow::Borrowed(self.key()),
        }
    }

    /// A word for logs and metrics.
    pub const fn key(self) -> &'static str {
        match self {
            Failure::NoServer(_) => "no-server",
            Failure::QueueTimeout => "queue-timeout",
            Failure::Connect => "connect",
            Failure::ConnectTimeout => "connect-timeout",
            Failure::Exhausted(Lack::Ports) => "no-port",
            Failure::Exhausted(Lack::Descriptors) => "no-descriptor",
            Failure::Exhausted(Lack::Memory) => "no-memory",
            Failure::Exhausted(Lack::Source) => "no-source-address",
            Failure::Reset => "reset",
            Failure::Overloaded => "overloaded",
            Failure::BadResponse(_) => "bad-response",
            Failure::BadContent => "bad-content",
            Failure::ServerTimeout => "server-timeout",
            Failure::TotalTimeout => "total-timeout",
            Failure::BadRequestContent => "bad-request-content",
            Failure::WebSocketKey => "websocket-key",
            Failure::RequestTooLarge => "request-too-large",
            Failure::LengthRequired => "length-required",
            Failure::ContentRoom => "no-room-for-content",
            Failure::ClientTimeout => "client-timeout",
        }
    }
}

/// The consequences of a failed attempt for the server's health, and for a retry with another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) failure: Failure,
    /// The outcome that is reported to the server's health; `None` if the server is not to blame.
    pub(super) outcome: Option<AttemptOutcome>,
    /// Whether the connection had been idle, and the server may simply have closed it in the meantime.
    pub(super) stale: bool,
    /// Whether the server has said that it did not look at the request: it may be asked again.
    pub(super) unprocessed: bool,
    /// Whether the request may be sent to another server.
    pub(super) retry: RetryPolicy,
}

/// When a request may be sent to another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryPolicy {
    /// Always: no byte of it was sent.
    Always,
    /// If the method is idempotent (RFC 9110 section 9.2.2).
    IfIdempotent,
    /// Never: it would fail there, too, or there is no time left.
    Never,
}

impl Fault {
    pub(super) const fn of_server(failure: Failure, outcome: AttemptOutcome) -> Self {
        let retry = RetryPolicy::IfIdempotent;
        Self { failure, outcome: Some(outcome), stale: false, unprocessed: false, retry }
    }

    pub(super) const fn unsent(failure: Failure, outcome: AttemptOutcome) -> Self {
        Self { retry: RetryPolicy::Always, ..Self::of_server(failure, outcome) }
    }

    pub(super) const fn unprocessed(failure: Failure, outcome: AttemptOutcome) -> Self {
        Self { unprocessed: true, ..Self::unsent(failure, outcome) }
    }

    /// Ports are short for one server: another one may be reached.
    const fn of_this_machine(lack: Lack) -> Self {
        let retry = match lack {
            Lack::Ports => RetryPolicy::Always,
            Lack::Descriptors | Lack::Memory | Lack::Source => RetryPolicy::Never,
        };
        Self { retry, ..Self::nobodys(Failure::Exhausted(lack)) }
    }

    pub(super) const fn nobodys(failure: Failure) -> Self {
        let retry = RetryPolicy::Never;
        Self { failure, outcome: None, stale: false, unprocessed: false, retry }
    }
}

/// The fault for a connection that could not be made. A server is not blamed for a lack on this machine
/// (Z10 of docs/rules).
pub(super) fn connect_fault(error: &io::Error) -> Fault {
    use io::ErrorKind as Kind;
    if let Some(lack) = lack(error) {
        return Fault::of_this_machine(lack);
    }
    match error.kind() {
        Kind::ConnectionRefused => Fault::unsent(Failure::Connect, AttemptOutcome::ConnectRefused),
        // Of a unix socket: the queue of connections is full (unix(7)).
        Kind::WouldBlock => Fault::unsent(Failure::Overloaded, AttemptOutcome::Overloaded),
        Kind::TimedOut => Fault::unsent(Failure::ConnectTimeout, AttemptOutcome::ConnectTimeout),
        _ => Fault::unsent(Failure::Connect, AttemptOutcome::ConnectFailed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_of_a_unix_socket_is_no_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let address = socket2::SockAddr::unix(folder.path().join("socket")).unwrap();
        let unix = || socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None);
        let listener = unix().unwrap();
        listener.bind(&address).unwrap();
        listener.listen(0).unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            let client = unix().unwrap();
            client.set_nonblocking(true).unwrap();
            match client.connect(&address) {
                Ok(()) => waiting.push(client),
                Err(error) => break error,
            }
        };
        let fault = connect_fault(&error);
        assert_eq!(fault.failure, Failure::Overloaded);
        assert_eq!(fault.failure.status(), Status::SERVICE_UNAVAILABLE);
        drop(listener);
        let error = unix().unwrap().connect(&address).unwrap_err();
        assert_eq!(connect_fault(&error).failure, Failure::Connect);
    }
}
