//! Connections to servers: those of one core, so that nobody has to be asked for one.
//!
//! A connection is on one of the two lists of the IBM paper (section 3): *idle*, those of a server that
//! keeps them, the last used first out; or *to be closed*, those that the server said it would close,
//! which are closed here when it has, or after a time-out: so the server, not this machine, keeps the
//! memory of the closed connection, and its port.

mod buffers;
mod stream;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::task::{Context, Poll, Waker};

use foldhash::fast::RandomState;

use crate::select::Wanted;
use buffers::Buffers;
pub use buffers::{BUFFER, Buffer};
pub use stream::ServerStream;

/// Connections to servers that wait for something to do, and buffers.
#[derive(Debug, Default)]
pub struct Pool {
    /// By [`Lease::id`](crate::select::Lease::id).
    idle: RefCell<HashMap<u64, OfServer, RandomState>>,
    closing: RefCell<Vec<Closing>>,
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

/// Connections that may wait for their server to close them.
const MOST_CLOSING: usize = 1024;

/// How long they wait.
const CLOSING_MS: u64 = 3_000;

impl Pool {
    /// An idle connection to a server, not idle for longer than `most_idle_ms`. One that the server has
    /// closed, or on which it has said something unasked, is not given out.
    pub fn take(&self, server: u64, now_ms: u64, most_idle_ms: u64) -> Option<ServerStream> {
        let mut lists = self.idle.borrow_mut();
        let list = lists.get_mut(&server)?;
        while let Some(mut idle) = list.idle.pop() {
            let fresh =
                idle.until_ms > now_ms && now_ms.saturating_sub(idle.since_ms) <= most_idle_ms;
            if fresh && is_silent(&mut idle.stream) {
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

    /// Leaves a connection to the server, which said that it would close it.
    pub fn leave_to_server(&self, stream: ServerStream, now_ms: u64) {
        let mut closing = self.closing.borrow_mut();
        if closing.len() < MOST_CLOSING {
            closing.push(Closing { stream, until_ms: now_ms + CLOSING_MS });
        }
    }

    /// Closes the idle connections to a server: one of them turned out to be dead.
    pub fn forget(&self, server: u64) {
        self.idle.borrow_mut().remove(&server);
    }

    /// Once a second: closes what has been idle for too long, what servers have closed, what they should
    /// have closed, and what is left of those that are to get no more requests.
    pub fn tick(&self, now_ms: u64) {
        self.idle.borrow_mut().retain(|_, list| {
            let wanted = list.wanted.get();
            let lasts = |idle: &mut Idle| idle.until_ms > now_ms && is_silent(&mut idle.stream);
            list.idle.retain_mut(|idle| wanted && lasts(idle));
            !list.idle.is_empty()
        });
        let mut closing = self.closing.borrow_mut();
        closing.retain_mut(|one| one.until_ms > now_ms && is_silent(&mut one.stream));
        if closing.is_empty() {
            closing.shrink_to(16);
        }
    }

    /// Closes every connection that is not in use.
    pub fn clear(&self) {
        self.idle.borrow_mut().clear();
        self.closing.borrow_mut().clear();
    }

    /// Connections that are idle, and those that wait for their end.
    pub fn waiting(&self) -> (usize, usize) {
        let idle = self.idle.borrow().values().map(|list| list.idle.len()).sum();
        (idle, self.closing.borrow().len())
    }

    /// Connections that carry a request now.
    pub fn busy(&self) -> usize {
        self.busy.get()
    }

    /// Room for one read.
    pub fn buffer(&self) -> Buffer {
        self.buffers.take()
    }

    /// Takes room back.
    pub fn give_back(&self, buffer: Buffer) {
        self.buffers.give_back(buffer);
    }

    /// An empty vector, with the memory of an earlier one if there is a spare one.
    pub fn text(&self) -> Vec<u8> {
        self.buffers.take_text()
    }

    /// Takes the memory of a vector back.
    pub fn give_back_text(&self, text: Vec<u8>) {
        self.buffers.give_back_text(text);
    }

    pub(crate) fn count_busy(&self, change: isize) {
        self.busy.set(self.busy.get().saturating_add_signed(change));
    }
}

/// Whether nothing has come on a connection on which nothing should, its end included. What the event
/// loop knows is enough: it costs no system call while nothing has happened.
fn is_silent(stream: &mut ServerStream) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    matches!(stream.poll_read(&mut cx, &mut [0; 1]), Poll::Pending)
}

#[cfg(test)]
mod tests;
