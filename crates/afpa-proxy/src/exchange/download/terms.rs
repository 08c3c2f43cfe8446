//! The facts that decide the response to a client, those known of it so far, and how it ended.

use afpa_framework::{BreakOff, Persistence};
use afpa_http::Version;
use afpa_http::edits::Edits;

use crate::coding::{Coded, Compress};
use crate::response::{Asked, BadResponse};

/// The facts, apart from the server's response, that decide the response to the client.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange) struct Terms<'a> {
    pub(in crate::exchange) asked: Asked,
    /// The head of the request, as the server has it.
    pub(in crate::exchange) request: &'a [u8],
    /// The client's version.
    pub(in crate::exchange) version: Version,
    /// Whether the connection to the client may go on.
    pub(in crate::exchange) keep: bool,
    /// Whether others may go first before it is sent: the request was sent as a whole, and there are others.
    pub(in crate::exchange) gives_way: bool,
    pub(in crate::exchange) head_limit: usize,
    pub(in crate::exchange) set_cookie: Option<&'a [u8]>,
    /// The value of Strict-Transport-Security, if the client is to get one.
    pub(in crate::exchange) hsts: Option<&'a str>,
    /// See [`Job::lines`](crate::exchange::Job).
    pub(in crate::exchange) lines: &'a [u8],
    /// The changes of its fields.
    pub(in crate::exchange) edits: Option<Edits<'a>>,
    /// See [`Job::replaces`](crate::exchange::Job).
    pub(in crate::exchange) replaces: Option<&'a [(u16, u16)]>,
    pub(in crate::exchange) compress: Option<&'a Compress>,
}

/// The facts known of the response so far.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange) struct Summary {
    /// 0: no final response yet.
    pub(in crate::exchange) status: u16,
    /// Content bytes that were passed on.
    pub(in crate::exchange) content: u64,
    /// Microseconds since the epoch at which its first byte came; 0: none came.
    pub(in crate::exchange) first_byte_us: u64,
    /// Whether a byte of the final response has gone to the client.
    pub(in crate::exchange) begun: bool,
    /// Whether the server keeps the connection.
    pub(in crate::exchange) keeps: bool,
    /// Whether the end of the response is certain.
    pub(in crate::exchange) exact: bool,
    /// Why it breaks off, if it does.
    pub(in crate::exchange) break_off: BreakOff,
    /// Whether only the end of the client's connection ends the response.
    pub(in crate::exchange) ends_with_connection: bool,
    /// Whether the connection to the client goes on.
    pub(in crate::exchange) persistence: Persistence,
    /// Whether the content is compressed, if it was to be.
    pub(in crate::exchange) coded: Option<Coded>,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            status: 0,
            content: 0,
            first_byte_us: 0,
            begun: false,
            keeps: false,
            exact: false,
            break_off: BreakOff::default(),
            ends_with_connection: false,
            persistence: Persistence::Close,
            coded: None,
        }
    }
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exchange) enum Complete {
    /// All of it was sent to the client.
    Response {
        /// The server has sent bytes beyond it.
        surplus: bool,
    },
    /// The server changes the protocol, and the client knows.
    Tunnel,
}

/// Why there is no response, or why it ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exchange) enum Broken {
    /// The client went away.
    ClientGone,
    /// The server ended the connection; `silent`: before it sent a byte.
    Reset { silent: bool },
    /// The server has not looked at the request, and says so (HTTP/2).
    Unprocessed,
    /// The server is overloaded, and says so (FastCGI).
    Overloaded,
    /// The server's bytes are not a response.
    Bad(BadResponse),
    /// Its content is malformed, or breaks off.
    Content,
}
