//! The connections to one server that wait for a request, and how they are given up.
//!
//! Connections that were in use at once are kept, because the next rush needs as many: ready sockets are served in
//! batches, so the connections in use swing between none and all. Unused connections are then closed slowly, the
//! longest unused first (docs/rules/upstream.md, U1).

use std::collections::VecDeque;

use super::ServerStream;
use crate::select::{Tally, Wanted};

/// A server, for its connections.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    /// [`Lease::id`](crate::select::Lease::id).
    pub id: u64,
    /// For logs.
    pub name: &'a str,
    /// Whether it will get more requests.
    pub wanted: &'a Wanted,
    /// Where its connections are counted.
    pub tally: &'a Tally,
}

/// Idle connections to one server.
#[derive(Debug)]
pub(super) struct IdleList {
    name: Box<str>,
    wanted: Wanted,
    tally: Tally,
    /// The longest unused connection comes first.
    unused: VecDeque<Unused>,
    /// How many may rest for longer than [`REST_MS`].
    most: usize,
    /// Requests that have found a connection since the last tick.
    reused: u64,
    /// Steady milliseconds at which it was last in use.
    used_ms: u64,
}

#[derive(Debug)]
struct Unused {
    stream: ServerStream,
    /// Steady milliseconds at which it became idle.
    since_ms: u64,
    /// Steady milliseconds at which it has been idle for too long.
    until_ms: u64,
}

/// How long an unused connection is kept in any case, in milliseconds.
pub(crate) const REST_MS: u64 = 5_000;

/// Connections that may be closed in one second in any case; of more than twice as many, half are closed.
const AT_ONCE: usize = 16;

/// A connection that was in use no longer ago is not suspected when another one turns out to be closed.
const FRESH_MS: u64 = 1_000;

/// How long an empty list is kept for its counts, in milliseconds.
const EMPTY_MS: u64 = 120_000;

impl IdleList {
    pub(super) fn new(server: Server<'_>, now_ms: u64) -> Self {
        Self {
            name: server.name.into(),
            wanted: server.wanted.clone(),
            tally: server.tally.clone(),
            unused: VecDeque::new(),
            most: 0,
            reused: 0,
            used_ms: now_ms,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.unused.len()
    }

    /// Adds a connection that was in use a moment ago. At most `most` may rest for long.
    pub(super) fn keep(
        &mut self,
        stream: ServerStream,
        (now_ms, until_ms): (u64, u64),
        most: usize,
    ) {
        (self.most, self.used_ms) = (most, now_ms);
        self.unused.push_back(Unused { stream, since_ms: now_ms, until_ms });
    }

    /// The connection that was in use last, unless it was idle for longer than `most_idle_ms`: then all others were
    /// idle for longer still. They stay, for requests that may take them.
    pub(super) fn take(&mut self, now_ms: u64, most_idle_ms: u64) -> Option<ServerStream> {
        while let Some(mut last) = self.unused.pop_back() {
            let is_fresh =
                last.until_ms > now_ms && now_ms.saturating_sub(last.since_ms) <= most_idle_ms;
            if !is_fresh {
                self.unused.push_back(last);
                return None;
            }
            if last.stream.is_silent() {
                self.reused += 1;
                return Some(last.stream);
            }
        }
        None
    }

    /// The connections that have not been in use for a moment.
    pub(super) fn take_old(&mut self, now_ms: u64) -> impl Iterator<Item = ServerStream> {
        let old = self.rested(now_ms, FRESH_MS);
        self.unused.drain(..old).map(|one| one.stream)
    }

    /// All idle connections.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = ServerStream> {
        self.unused.drain(..).map(|one| one.stream)
    }

    /// The longer idle half.
    pub(super) fn take_half(&mut self) -> impl Iterator<Item = ServerStream> {
        self.unused.drain(..self.unused.len().div_ceil(2)).map(|one| one.stream)
    }

    /// To be called once a second. Drops connections that the server has closed, and returns the ones to close now:
    /// half of those that were idle for too long, or were unused lately and exceed `most` (see [`AT_ONCE`]).
    pub(super) fn tick(&mut self, now_ms: u64) -> impl Iterator<Item = ServerStream> {
        self.count(now_ms);
        self.unused.retain_mut(|one| one.stream.is_silent());
        let given_up = match self.wanted.get() {
            true => self.given_up(now_ms),
            false => self.unused.len(),
        };
        self.unused.drain(..given_up).map(|one| one.stream)
    }

    /// Whether it can be forgotten.
    pub(super) fn is_over(&self, now_ms: u64) -> bool {
        let is_unused = now_ms.saturating_sub(self.used_ms) > EMPTY_MS;
        self.unused.is_empty() && (is_unused || !self.wanted.get())
    }

    fn given_up(&self, now_ms: u64) -> usize {
        if self.tally.lacks(now_ms) {
            // Another core may have none.
            return self.rested(now_ms, FRESH_MS);
        }
        let expired = self.unused.iter().take_while(|one| one.until_ms <= now_ms).count();
        let surplus = self.unused.len().saturating_sub(self.most);
        let over = expired.max(surplus.min(self.rested(now_ms, REST_MS)));
        over.div_ceil(2).max(over.min(AT_ONCE))
    }

    /// How many have been idle for so long.
    fn rested(&self, now_ms: u64, ms: u64) -> usize {
        self.unused.partition_point(|one| now_ms.saturating_sub(one.since_ms) >= ms)
    }

    fn count(&mut self, now_ms: u64) {
        self.tally.reused(std::mem::take(&mut self.reused));
        if let Some(lately) = self.tally.judge(now_ms) {
            let (requests, new) = (lately.opened + lately.reused, lately.opened);
            let (by_us, by_server) = (lately.closed_by_us, lately.closed_by_server);
            tracing::warn!(
                server = &*self.name,
                requests,
                new,
                by_us,
                by_server,
                "more than one request in twenty needs a new connection, though the server keeps them: look at `idle` and \
                 `idle_timeout` of [server_group.connections], and whether clients leave before they are answered"
            );
        }
    }
}
