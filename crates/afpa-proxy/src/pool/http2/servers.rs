//! The connections of HTTP/2 of one core, by server.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use afpa_framework::steady_ms;
use foldhash::fast::RandomState;

use super::super::REST_MS;
use super::silence::Silence;
use super::{Http2Connection, Http2Stream, MadeFor};
use crate::select::Wanted;

/// Connections by [`Lease::id`](crate::select::Lease::id), and the requests that wait for one.
#[derive(Debug, Default)]
pub(crate) struct Http2Servers(RefCell<HashMap<u64, OfServer, RandomState>>);

#[derive(Debug)]
struct OfServer {
    wanted: Wanted,
    connections: Vec<Kept>,
    /// Connections that are being made.
    connecting: usize,
    /// Requests that wait for them.
    waiting: usize,
    /// How many requests a connection carries, as far as that is known.
    carries: usize,
    wakers: Vec<Waker>,
    /// Connections that were made, or could not be.
    changes: u64,
    /// The last connection that could not be made: the number of the change, and the error.
    failed: Option<(u64, Rc<io::Error>)>,
}

#[derive(Debug)]
struct Kept {
    connection: Rc<Http2Connection>,
    idle: Idle,
}

/// How long connections are kept that carry nothing, and how many of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub(crate) ms: u64,
    pub(crate) most: usize,
}

impl OfServer {
    /// The connections that were made as a request wants it, and for how long they are silent.
    fn fitting(&self, made_for: &MadeFor) -> impl Iterator<Item = (&Rc<Http2Connection>, Silence)> {
        let good = self
            .connections
            .iter()
            .map(|kept| &kept.connection)
            .filter(|connection| connection.is_good() && connection.made_for == *made_for);
        good.map(|connection| (connection, connection.state.borrow().silence))
    }

    /// The connections to close now. Of those that have been unused for [`REST_MS`] and exceed the number that may stay
    /// unused, half are closed, the longest unused first, so that the next rush still finds some.
    fn given_up(&self, now_ms: u64) -> Vec<usize> {
        let mut unused: Vec<(u64, usize)> = Vec::new();
        for (number, kept) in self.connections.iter().enumerate() {
            if kept.connection.is_good()
                && let Some(ms) = kept.connection.rests_ms(now_ms)
            {
                unused.push((ms, number));
            }
        }
        let most = self.connections.iter().map(|kept| kept.idle.most).max().unwrap_or_default();
        let surplus = unused.len().saturating_sub(most);
        unused.retain(|(ms, _)| *ms >= REST_MS);
        unused.sort_unstable_by_key(|(ms, _)| std::cmp::Reverse(*ms));
        unused.truncate(surplus.min(unused.len()).div_ceil(2));
        unused.into_iter().map(|(_, number)| number).collect()
    }

    /// Ends the half of those that carry nothing that has done so for longer. Returns how many that are.
    fn end_half(&self, now_ms: u64) -> usize {
        let all = self.connections.iter().map(|kept| &kept.connection);
        let there = all.filter(|connection| connection.state.borrow().below.is_some());
        let mut unused: Vec<_> = there
            .filter_map(|connection| Some((connection.rests_ms(now_ms)?, connection)))
            .collect();
        unused.sort_unstable_by_key(|(ms, _)| std::cmp::Reverse(*ms));
        unused.truncate(unused.len().div_ceil(2));
        unused.iter().for_each(|(_, connection)| connection.end());
        unused.len()
    }
}

impl Http2Servers {
    /// A stream on a connection to a server that was heard of no longer than `most_silent_ms` ago.
    pub(crate) fn take(
        &self,
        server: u64,
        made_for: &MadeFor,
        (now_ms, most_silent_ms): (u64, u64),
    ) -> Option<Http2Stream> {
        let servers = self.0.borrow();
        let mut fitting = servers.get(&server)?.fitting(made_for);
        fitting.find_map(|(connection, silence)| {
            (silence.lasts_ms(now_ms) <= most_silent_ms).then(|| connection.stream())?
        })
    }

    /// A connection on which there would be a stream, had its server not been silent for longer.
    pub(crate) fn silent(
        &self,
        server: u64,
        made_for: &MadeFor,
        (now_ms, most_silent_ms): (u64, u64),
    ) -> Option<Rc<Http2Connection>> {
        let servers = self.0.borrow();
        let mut fitting = servers.get(&server)?.fitting(made_for);
        let silent = fitting.find(|(connection, silence)| {
            silence.lasts_ms(now_ms) > most_silent_ms && connection.state.borrow().room() > 0
        });
        silent.map(|(connection, _)| Rc::clone(connection))
    }

    /// Whether a server takes extended CONNECT; `None`: there is no connection on which it could have said so.
    pub(crate) fn takes_tunnels(&self, server: u64, made_for: &MadeFor) -> Option<bool> {
        let servers = self.0.borrow();
        let (connection, _) = servers.get(&server)?.fitting(made_for).next()?;
        let takes_tunnels = connection.state.borrow().machine.takes_tunnels();
        Some(takes_tunnels)
    }

    /// The right to make a connection; `None`: the connections that are being made will carry this request, too.
    pub(crate) fn may_connect(
        &self,
        (server, wanted): (u64, &Wanted),
        limit: usize,
    ) -> Option<Connecting<'_>> {
        let mut servers = self.0.borrow_mut();
        let of_server = servers.entry(server).or_insert_with(|| OfServer {
            wanted: wanted.clone(),
            connections: Vec::new(),
            connecting: 0,
            waiting: 0,
            carries: limit,
            wakers: Vec::new(),
            changes: 0,
            failed: None,
        });
        // A new connection carries the request that makes it, too.
        let others = of_server.carries.max(1) - 1;
        if of_server.waiting < of_server.connecting.saturating_mul(others) {
            return None;
        }
        of_server.connecting += 1;
        Some(Connecting { servers: self, server, done: false })
    }

    /// Waits until a connection to a server was made, or could not be.
    pub(crate) fn changed(&self, server: u64) -> Changed<'_> {
        let mut servers = self.0.borrow_mut();
        let seen = servers.get_mut(&server).map_or(0, |of_server| {
            of_server.waiting += 1;
            of_server.changes
        });
        Changed { servers: self, server, seen }
    }

    /// To be called once a second.
    pub(crate) fn tick(&self, now_ms: u64) {
        self.0.borrow_mut().retain(|_, of_server| {
            let wanted = of_server.wanted.get();
            let given_up = of_server.given_up(now_ms);
            for (number, kept) in of_server.connections.iter().enumerate() {
                let is_wanted = wanted && !given_up.contains(&number);
                kept.connection.tick(now_ms, is_wanted, kept.idle.ms);
            }
            of_server.connections.retain(|kept| kept.connection.state.borrow().below.is_some());
            !of_server.connections.is_empty() || of_server.connecting + of_server.waiting > 0
        });
    }

    /// Ends connections that carry nothing, because there is no descriptor left. Returns how many.
    pub(crate) fn relieve(&self) -> usize {
        let now = steady_ms();
        self.0.borrow().values().map(|of_server| of_server.end_half(now)).sum()
    }

    /// Ends every connection as soon as it carries nothing.
    pub(crate) fn clear(&self) {
        let servers = self.0.borrow();
        let all = servers.values().flat_map(|of_server| &of_server.connections);
        all.for_each(|kept| kept.connection.close());
    }
}

/// A connection that is being made.
#[derive(Debug)]
pub(crate) struct Connecting<'s> {
    servers: &'s Http2Servers,
    server: u64,
    done: bool,
}

impl Connecting<'_> {
    /// It was made. Returns a stream on it, unless the server wants none.
    pub(crate) fn made(
        mut self,
        connection: &Rc<Http2Connection>,
        idle: Idle,
    ) -> Option<Http2Stream> {
        // Before anybody else has one.
        let stream = connection.stream();
        self.change(|of_server| {
            of_server.carries = connection.most_streams();
            let connection = Rc::clone(connection);
            of_server.connections.push(Kept { connection, idle });
        });
        stream
    }

    /// The server has chosen HTTP/1.1: from now on each request makes a connection of its own.
    pub(crate) fn chose_http1(mut self) {
        self.change(|of_server| of_server.carries = 1);
    }

    /// It could not be made.
    pub(crate) fn failed(mut self, error: io::Error) -> Rc<io::Error> {
        let error = Rc::new(error);
        let shared = Rc::clone(&error);
        self.change(|of_server| of_server.failed = Some((of_server.changes + 1, shared)));
        error
    }

    fn change(&mut self, change: impl FnOnce(&mut OfServer)) {
        self.done = true;
        let mut servers = self.servers.0.borrow_mut();
        let Some(of_server) = servers.get_mut(&self.server) else { return };
        change(of_server);
        of_server.changes += 1;
        of_server.connecting -= 1;
        of_server.wakers.drain(..).for_each(Waker::wake);
    }
}

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        if !self.done {
            // The client whose request was making it has gone: another request makes it.
            self.change(|_| {});
        }
    }
}

/// See [`Http2Servers::changed`]. Ready with the error, if a connection could not be made.
#[derive(Debug)]
pub(crate) struct Changed<'s> {
    servers: &'s Http2Servers,
    server: u64,
    seen: u64,
}

impl Future for Changed<'_> {
    type Output = Option<Rc<io::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut servers = self.servers.0.borrow_mut();
        let Some(of_server) = servers.get_mut(&self.server) else { return Poll::Ready(None) };
        if of_server.changes == self.seen {
            if !of_server.wakers.iter().any(|known| known.will_wake(cx.waker())) {
                of_server.wakers.push(cx.waker().clone());
            }
            return Poll::Pending;
        }
        let failed = of_server.failed.as_ref().filter(|(change, _)| *change == of_server.changes);
        Poll::Ready(failed.map(|(_, error)| Rc::clone(error)))
    }
}

impl Drop for Changed<'_> {
    fn drop(&mut self) {
        if let Some(of_server) = self.servers.0.borrow_mut().get_mut(&self.server) {
            of_server.waiting = of_server.waiting.saturating_sub(1);
        }
    }
}
