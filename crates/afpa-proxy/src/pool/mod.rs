//! Connections to servers. Each core has its own, so that taking one needs no lock.
//!
//! A connection that is not in use is on one of the two lists of the IBM paper (section 3). *Idle*: the server
//! keeps the connection; the one that was used last is taken first. *To be closed*: the server said that it
//! would close. This machine closes only after the server has, or after a time-out, so that the server's side
//! goes through TIME_WAIT and not this one.

mod buffers;
pub(crate) mod http2;
mod socket;
mod stream;
mod tls;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use afpa_ring::CoreRing;
use foldhash::fast::RandomState;

use crate::select::Wanted;
use buffers::Buffers;
pub use buffers::{BUFFER, Buffer};
use http2::Http2Servers;
pub use http2::Http2Stream;
pub use stream::ServerStream;
pub use tls::{TlsStream, TlsToServers};

/// Connections to servers that wait for a request, and buffers.
#[derive(Debug, Default)]
pub struct Pool {
    /// By [`Lease::id`](crate::select::Lease::id).
    idle: RefCell<HashMap<u64, OfServer, RandomState>>,
    closing: RefCell<Vec<Closing>>,
    /// Connections of HTTP/2, whether or not they are in use.
    pub(crate) http2: Http2Servers,
    /// Of the core, for its connections.
    ring: CoreRing,
    buffers: Buffers,
    /// Connections in use for a request.
    busy: Cell<usize>,
}

/// Idle connections to one server.
#[derive(Debug)]
struct OfServer {
    wanted: Wanted,
    idle: Vec<Idle>,
}

#[derive(Debug)]
struct Idle {
    stream: ServerStream,
    /// Steady milliseconds at which it became idle.
    since_ms: u64,
    /// Steady milliseconds at which it has been idle for too long.
    until_ms: u64,
}

#[derive(Debug)]
struct Closing {
    stream: ServerStream,
    until_ms: u64,
}

/// How many connections may wait for their server to close them.
const MOST_CLOSING: usize = 1024;

/// How long they wait, in milliseconds.
const CLOSING_MS: u64 = 3_000;

impl Pool {
    /// The pool of a core with this ring.
    pub fn new(ring: CoreRing) -> Self {
        Self { ring, ..Self::default() }
    }

    /// The ring of its core.
    pub(crate) fn ring(&self) -> &CoreRing {
        &self.ring
    }

    /// Takes an idle connection to a server that has not been idle for longer than `most_idle_ms`. A
    /// connection that the server has closed, or on which bytes have arrived unasked, is never returned.
    pub fn take(&self, server: u64, now_ms: u64, most_idle_ms: u64) -> Option<ServerStream> {
        self.ring.catch_up();
        let mut lists = self.idle.borrow_mut();
        let list = lists.get_mut(&server)?;
        while let Some(mut idle) = list.idle.pop() {
            let fresh =
                idle.until_ms > now_ms && now_ms.saturating_sub(idle.since_ms) <= most_idle_ms;
            if fresh && idle.stream.is_silent() {
                return Some(idle.stream);
            }
        }
        None
    }

    /// Keeps a connection that waits for the next request until `until_ms`, at most `most` of one server,
    /// and for as long as the server is `wanted`.
    pub fn keep(
        &self,
        (server, wanted): (u64, &Wanted),
        stream: ServerStream,
        (now_ms, until_ms): (u64, u64),
        most: usize,
    ) {
        if !wanted.get() {
            return;
        }
        let mut lists = self.idle.borrow_mut();
        let list = lists
            .entry(server)
            .or_insert_with(|| OfServer { wanted: wanted.clone(), idle: Vec::new() });
        if list.idle.len() < most {
            list.idle.push(Idle { stream, since_ms: now_ms, until_ms });
        }
    }

    /// Puts a connection on the list of those that the server will close.
    pub fn leave_to_server(&self, stream: ServerStream, now_ms: u64) {
        let mut closing = self.closing.borrow_mut();
        if closing.len() < MOST_CLOSING {
            closing.push(Closing { stream, until_ms: now_ms + CLOSING_MS });
        }
    }

    /// Closes the idle connections to a server, when one of them was found to be closed.
    pub fn forget(&self, server: u64) {
        self.idle.borrow_mut().remove(&server);
    }

    /// To be called once a second. Closes connections that have been idle for too long, that servers have
    /// closed or should have closed, and that lead to servers which get no more requests.
    pub fn tick(&self, now_ms: u64) {
        self.idle.borrow_mut().retain(|_, list| {
            let wanted = list.wanted.get();
            let lasts = |idle: &mut Idle| idle.until_ms > now_ms && idle.stream.is_silent();
            list.idle.retain_mut(|idle| wanted && lasts(idle));
            !list.idle.is_empty()
        });
        let mut closing = self.closing.borrow_mut();
        closing.retain_mut(|one| one.until_ms > now_ms && one.stream.is_silent());
        if closing.is_empty() {
            closing.shrink_to(16);
        }
        self.http2.tick(now_ms);
    }

    /// Closes every connection that is not in use; one of HTTP/2 ends with the requests that it carries.
    pub fn clear(&self) {
        self.idle.borrow_mut().clear();
        self.closing.borrow_mut().clear();
        self.http2.clear();
    }

    /// How many connections are idle, and how many wait for their server to close them.
    pub fn waiting(&self) -> (usize, usize) {
        let idle = self.idle.borrow().values().map(|list| list.idle.len()).sum();
        (idle, self.closing.borrow().len())
    }

    /// How many connections carry a request.
    pub fn busy(&self) -> usize {
        self.busy.get()
    }

    /// Takes a buffer for one read.
    pub fn buffer(&self) -> Buffer {
        self.buffers.take()
    }

    /// Gives a buffer back.
    pub fn give_back(&self, buffer: Buffer) {
        self.buffers.give_back(buffer);
    }

    /// Takes an empty vector, with the memory of an earlier one if there is any.
    pub fn text(&self) -> Vec<u8> {
        self.buffers.take_text()
    }

    /// Gives the memory of a vector back.
    pub fn give_back_text(&self, text: Vec<u8>) {
        self.buffers.give_back_text(text);
    }

    pub(crate) fn count_busy(&self, change: isize) {
        self.busy.set(self.busy.get().saturating_add_signed(change));
    }
}

#[cfg(test)]
mod tests;
