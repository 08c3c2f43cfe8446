//! The input and the result of an exchange.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::Arc;

use afpa_framework::Persistence;
use afpa_http::edits::KeptEdits;
use afpa_http::{BodyLength, Version};
use afpa_ring::CoreRing;

use super::{Failure, Settings};
use crate::coding::{Coded, Compress};
use crate::pool::Pool;
use crate::request::RequestHead;
use crate::response::Asked;
use crate::select::{Affinity, Group};

/// A request for a server group, owned.
#[derive(Debug)]
pub struct Job {
    /// The servers.
    pub group: Arc<Group>,
    /// Time-outs and limits towards them.
    pub settings: Arc<Settings>,
    /// The head as servers get it.
    pub head: RequestHead,
    /// Parameters of FastCGI that the head does not tell, as [`afpa_fastcgi::put_param`] gives them; `None`: the servers
    /// speak HTTP.
    pub fastcgi: Option<Arc<[u8]>>,
    /// The header of the PROXY protocol for the connection to the server, which no other request gets then; `None`: the
    /// group has none.
    pub preface: Option<Arc<[u8]>>,
    /// The content that follows the head on the client's connection.
    pub body: BodyLength,
    /// The facts of the request that decide how its response is read.
    pub asked: Asked,
    /// The client's version.
    pub version: Version,
    /// Whether the client wants its connection kept.
    pub keep_alive: bool,
    /// Whether the method is idempotent (RFC 9110 section 9.2.2).
    pub idempotent: bool,
    /// A hash of the URL, by which a server may be selected: see [`Chosen`](crate::select::Chosen).
    pub url_hash: u64,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The client whose share of the servers it takes: see [`Chosen`](crate::select::Chosen).
    pub sharer: Option<IpAddr>,
    /// The affinity cookie's value.
    pub cookie: Option<Box<[u8]>>,
    /// The affinity of the request set.
    pub affinity: Option<Affinity>,
    /// Whether the report has to name the server.
    pub names_server: bool,
    /// Whether the request came over TLS.
    pub over_tls: bool,
    /// The value of Strict-Transport-Security that the response is to have, unless the server has sent one.
    pub hsts: Option<Arc<str>>,
    /// Further field lines that the response is to have.
    pub lines: Option<Arc<[u8]>>,
    /// The changes of the response's fields.
    pub edits: Option<KeptEdits>,
    /// The first and the last status of ranges of responses that the client does not get: its owner answers instead of
    /// the server.
    pub replaces: Option<Arc<[(u16, u16)]>>,
    /// The compression of the response; `None`: it passes as it is.
    pub compress: Option<Compress>,
}

impl Job {
    /// Whether the owner answers instead of a server that responds with this status.
    pub fn replaces(&self, status: u16) -> bool {
        lies_in(self.replaces.as_deref(), status)
    }

    /// A copy of this job, for another attempt.
    pub fn again(&self) -> Job {
        Job {
            group: Arc::clone(&self.group),
            settings: Arc::clone(&self.settings),
            head: self.head.clone(),
            fastcgi: self.fastcgi.clone(),
            preface: self.preface.clone(),
            cookie: self.cookie.clone(),
            hsts: self.hsts.clone(),
            lines: self.lines.clone(),
            edits: self.edits.clone(),
            replaces: self.replaces.clone(),
            compress: self.compress.clone(),
            ..*self
        }
    }
}

/// Whether a status lies in one of these ranges.
pub(super) fn lies_in(ranges: Option<&[(u16, u16)]>, status: u16) -> bool {
    ranges
        .is_some_and(|ranges| ranges.iter().any(|&(first, last)| first <= status && status <= last))
}

/// The state that the exchanges of one core share.
#[derive(Debug, Default)]
pub struct Core {
    /// Connections and buffers.
    pub pool: Pool,
    /// The core drains: every response is the last one on its connection.
    pub draining: Cell<bool>,
}

impl Core {
    /// A core whose connections to servers wait in this ring while it is used.
    pub fn new(ring: CoreRing) -> Self {
        Self { pool: Pool::new(ring), draining: Cell::new(false) }
    }
}

/// How an exchange ended, with its counts and times.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended.
    pub end: End,
    /// Status of the response; 0 when there was none.
    pub status: u16,
    /// Bytes of its content that were passed on.
    pub content_bytes: u64,
    /// Name of the server that was asked last, if [`Job::names_server`] asks for it.
    pub server: Option<Box<str>>,
    /// How many servers were asked.
    pub attempts: u32,
    /// Microseconds until there was a connection.
    pub connect_us: u32,
    /// Microseconds to the first byte of the response; 0 when none came.
    pub first_byte_us: u32,
    /// Microseconds in all.
    pub total_us: u32,
    /// The response is among those that its owner replaces: the client has got none of it. These field lines of it belong to
    /// its status, whatever the content is.
    pub replaced: Option<Box<[u8]>>,
    /// Whether its content was compressed, if it was to be.
    pub coded: Option<Coded>,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The response was sent to the client.
    Relayed(Persistence),
    /// The response broke off: the client's connection must end.
    Broken,
    /// The client went away, or stopped reading.
    ClientGone,
    /// No byte of a response was sent to the client.
    Failed(Failure),
}
