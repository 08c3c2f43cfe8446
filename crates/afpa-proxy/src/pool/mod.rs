//! Connections to servers. Each core has its own, so that taking one needs no lock.
//!
//! A connection that is not in use is on one of the two lists of the IBM paper (section 3). *Idle*: the server
//! keeps the connection; the one that was used last is taken first. *To be closed*: the server said that it
//! would close, or is thought to have. This machine closes only after the server has, or after a time-out, so that the
//! server's side goes through TIME_WAIT and not this one. Where it must be first, only a few connections a second end as
//! TCP ends them, the others with a reset, which leaves no port behind (docs/rules/upstream.md, U2).

mod buffers;
mod carrier;
mod connect;
mod content;
mod ending;
pub(crate) mod fastcgi;
pub(crate) mod http2;
mod idle;
mod late;
mod socket;
mod stream;
mod tls;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use afpa_ring::CoreRing;
use foldhash::fast::RandomState;

use crate::coding::Places;
use buffers::Buffers;
pub use buffers::{BUFFER, Buffer};
pub(crate) use connect::lack;
pub use connect::{Connector, To};
use content::GatheredContent;
pub use content::{MOST_GATHERED, Share};
use ending::Endings;
pub use fastcgi::{FastCgiStream, FastCgiTerms};
use http2::Http2Servers;
pub use http2::Http2Stream;
use idle::IdleList;
pub(crate) use idle::REST_MS;
pub use idle::Server;
pub use stream::ServerStream;
pub use tls::{TlsStream, TlsToServers};

/// Connections to servers that wait for a request, and buffers.
#[derive(Debug)]
pub struct Pool {
    /// By [`Lease::id`](crate::select::Lease::id).
    idle: RefCell<HashMap<u64, IdleList, RandomState>>,
    closing: RefCell<VecDeque<Closing>>,
    /// Connections of FastCGI whose server will end them.
    ending: Rc<Endings>,
    /// Connections of HTTP/2, whether or not they are in use.
    pub(crate) http2: Http2Servers,
    /// Makes connections for this core.
    connector: Connector,
    buffers: Buffers,
    /// Encoders of content.
    pub(crate) encoders: Places,
    /// Content of requests that is gathered before a server is asked.
    gathered: GatheredContent,
    /// Connections in use for a request.
    busy: Cell<usize>,
    /// Whether there were several of them at a time, this second or in the one before.
    has_company: Cell<bool>,
    /// How many connections may end now as TCP ends them, though the server has not ended them.
    courtesies: Cell<u32>,
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

/// How many of them are looked at when another one joins them. So there are as many as the server is slow to close, and no
/// more until the next second.
const LOOKED_AT: usize = 2;

/// Connections that may end as TCP ends them: at once, and more with each second. A port rests for a minute then, so a core
/// has at most some hundred ports that rest.
const MOST_COURTESIES: u32 = 64;
const COURTESIES_A_SECOND: u32 = 4;

impl Default for Pool {
    fn default() -> Self {
        Self::new(CoreRing::default())
    }
}

impl Pool {
    /// The pool of a core with this ring.
    pub fn new(ring: CoreRing) -> Self {
        Self {
            idle: RefCell::default(),
            closing: RefCell::default(),
            ending: Rc::default(),
            http2: Http2Servers::default(),
            connector: Connector::new(ring),
            buffers: Buffers::default(),
            encoders: Places::default(),
            gathered: GatheredContent::default(),
            busy: Cell::new(0),
            has_company: Cell::new(false),
            courtesies: Cell::new(MOST_COURTESIES),
        }
    }

    /// A share of the room for content that is gathered as a whole, for a request of this client.
    pub fn share(&self, client: Option<IpAddr>) -> Share {
        self.gathered.share(client)
    }

    /// The maker of its connections.
    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Takes an idle connection to a server that has not been idle for longer than `most_idle_ms`. A
    /// connection that the server has closed, or on which bytes have arrived unasked, is never returned.
    pub fn take(&self, server: u64, now_ms: u64, most_idle_ms: u64) -> Option<ServerStream> {
        self.connector.ring().catch_up();
        self.idle.borrow_mut().get_mut(&server)?.take(now_ms, most_idle_ms)
    }

    /// Keeps a connection that waits for the next request until `until_ms`, for as long as the server is wanted. Of the
    /// unused connections at most `most` are kept for long; with 0 none is kept.
    pub fn keep(
        &self,
        server: Server<'_>,
        stream: ServerStream,
        (now_ms, until_ms): (u64, u64),
        most: usize,
    ) {
        if most == 0 || !server.wanted.get() {
            return self.close(stream);
        }
        let mut lists = self.idle.borrow_mut();
        let list = lists.entry(server.id).or_insert_with(|| IdleList::new(server, now_ms));
        list.keep(stream, (now_ms, until_ms), most);
    }

    /// Puts a connection on the list of connections that the server will close.
    pub fn leave_to_server(&self, mut stream: ServerStream, now_ms: u64) {
        if !stream.is_silent() {
            return;
        }
        // No process of PHP may wait for the next look at the list.
        if let ServerStream::FastCgi(stream) = stream {
            let patience = Duration::from_millis(CLOSING_MS);
            return match self.ending.len() < MOST_CLOSING {
                true => self.ending.end_with_server(stream, patience),
                false => stream.reset_at_end(),
            };
        }
        let mut closing = self.closing.borrow_mut();
        for _ in 0..LOOKED_AT {
            let Some(mut first) = closing.pop_front() else { break };
            if first.stream.is_silent() {
                closing.push_back(first);
            }
        }
        if closing.len() >= MOST_CLOSING
            && let Some(first) = closing.pop_front()
        {
            first.stream.reset_at_end();
        }
        closing.push_back(Closing { stream, until_ms: now_ms + CLOSING_MS });
    }

    /// One idle connection to a server was found to be closed: the server has closed the older ones, too, or will.
    pub fn forget(&self, server: u64, now_ms: u64) {
        let mut lists = self.idle.borrow_mut();
        let Some(list) = lists.get_mut(&server) else { return };
        list.take_old(now_ms).for_each(|stream| self.leave_to_server(stream, now_ms));
    }

    /// Closes connections that no request uses now, because there is no descriptor left. Returns whether there were
    /// any.
    pub(crate) fn relieve(&self) -> bool {
        let mut count = 0;
        for closing in self.closing.borrow_mut().drain(..) {
            closing.stream.reset_at_end();
            count += 1;
        }
        for list in self.idle.borrow_mut().values_mut() {
            for stream in list.take_half() {
                stream.reset_at_end();
                count += 1;
            }
        }
        count += self.http2.relieve();
        // A script that works on behind its content goes on, unless there is nothing else.
        let most = if count == 0 { self.ending.len().div_ceil(2) } else { 0 };
        for stream in self.ending.give_up(most) {
            stream.reset_at_end();
            count += 1;
        }
        count > 0
    }

    /// To be called once a second. Closes connections that have been idle for too long, that servers have
    /// closed or should have closed, and that lead to servers which get no more requests.
    pub fn tick(&self, now_ms: u64) {
        let courtesies = self.courtesies.get() + COURTESIES_A_SECOND;
        self.courtesies.set(courtesies.min(MOST_COURTESIES));
        self.has_company.set(self.busy.get() > 1);
        self.idle.borrow_mut().retain(|_, list| {
            list.tick(now_ms).for_each(|stream| self.close(stream));
            !list.is_over(now_ms)
        });
        let mut closing = self.closing.borrow_mut();
        closing.retain_mut(|one| {
            let is_late = one.until_ms <= now_ms;
            if is_late {
                one.stream.reset_at_end();
            }
            !is_late && one.stream.is_silent()
        });
        if closing.is_empty() {
            closing.shrink_to(16);
        }
        self.http2.tick(now_ms);
    }

    /// Closes every connection that is not in use; one of HTTP/2 ends with the requests that it carries. Those of FastCGI that are
    /// ending have a few seconds more: their scripts may still work.
    pub fn clear(&self) {
        for (_, mut list) in self.idle.borrow_mut().drain() {
            list.take_all().for_each(|stream| self.close(stream));
        }
        self.closing.borrow_mut().clear();
        self.http2.clear();
    }

    /// Closes a connection that its server would keep.
    fn close(&self, stream: ServerStream) {
        match self.courtesies.get().checked_sub(1) {
            Some(left) => self.courtesies.set(left),
            None => stream.reset_at_end(),
        }
    }

    /// How many connections are idle, and how many wait for their server to close them.
    pub fn waiting(&self) -> (usize, usize) {
        let idle = self.idle.borrow().values().map(IdleList::len).sum();
        (idle, self.closing.borrow().len() + self.ending.len())
    }

    /// How many connections carry a request.
    pub fn busy(&self) -> usize {
        self.busy.get()
    }

    /// Whether an exchange lets the others go first before it sends: see [`exchange`](crate::exchange). The ring submits
    /// what is to be sent together by itself.
    pub(crate) fn has_company(&self) -> bool {
        self.has_company.get() && !self.connector.ring().is_used()
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
        let busy = self.busy.get().saturating_add_signed(change);
        self.busy.set(busy);
        if busy > 1 {
            self.has_company.set(true);
        }
    }
}

#[cfg(test)]
mod tests;
