//! The queue of requests that wait for a server: first come, first served.

use std::collections::VecDeque;

use super::ServerIndex;
use super::share::Held;
use crate::client::Client;

/// The servers for which a request waits, and its client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) bound: Option<usize>,
    pub(super) excluded: Vec<ServerIndex>,
    pub(super) new_cookie: bool,
    /// The client whose share it takes.
    pub(super) client: Option<Client>,
}

/// A bounded queue. Tickets ascend.
#[derive(Debug)]
pub(super) struct Queue<W> {
    waiting: VecDeque<Entry<W>>,
    held: Held,
    next_ticket: u64,
}

#[derive(Debug)]
struct Entry<W> {
    ticket: u64,
    wait: Wait,
    waiter: W,
}

/// The queue has no place. Gives back the waiter that was to join it.
#[derive(Debug)]
pub(super) enum Full<W> {
    /// For anybody.
    All(W),
    /// For this client.
    Client(W),
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), held: Held::default(), next_ticket: 0 }
    }
}

impl<W> Queue<W> {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many requests wait for the same server, or for any.
    pub(super) fn len_for(&self, bound: Option<usize>) -> usize {
        self.ahead(bound, |_| true)
    }

    /// How many of them there are that may go before another one.
    pub(super) fn ahead(
        &self,
        bound: Option<usize>,
        may: impl Fn(Option<Client>) -> bool,
    ) -> usize {
        let same = self.waiting.iter().filter(|entry| entry.wait.bound == bound);
        same.filter(|entry| may(entry.wait.client)).count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends a request, unless `most` requests with the same bound wait already, or its client has its share of them.
    pub(super) fn enter(
        &mut self,
        wait: Wait,
        waiter: W,
        most: usize,
        percent: u32,
    ) -> Result<u64, Full<W>> {
        // The sum of all is an upper bound for each, so counting is needed only in a long queue.
        if self.waiting.len() >= most && self.len_for(wait.bound) >= most {
            return Err(Full::All(waiter));
        }
        let places = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let taken = (places(self.waiting.len()), places(most));
        if !self.held.allows(wait.client, taken, percent) {
            return Err(Full::Client(waiter));
        }
        self.held.take(wait.client);
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.push_back(Entry { ticket, wait, waiter });
        Ok(ticket)
    }

    /// Removes a request. Returns whether it was still there.
    pub(super) fn leave(&mut self, ticket: u64) -> bool {
        let found = self.waiting.binary_search_by_key(&ticket, |entry| entry.ticket);
        found.is_ok_and(|at| self.remove(at).is_some())
    }

    fn remove(&mut self, at: usize) -> Option<Entry<W>> {
        let entry = self.waiting.remove(at)?;
        self.held.give_back(entry.wait.client);
        Some(entry)
    }

    /// Takes the first request that the server at `slot` can serve, and whose client `may` have it. A request that is
    /// bound to no server is taken only if `unbound`.
    pub(super) fn next_for(
        &mut self,
        slot: usize,
        unbound: bool,
        may: impl Fn(Option<Client>) -> bool,
    ) -> Option<(W, Wait)> {
        let is_meant = |entry: &Entry<W>| match entry.wait.bound {
            Some(bound) => bound == slot,
            None => unbound && !entry.wait.excluded.iter().any(|other| other.0 as usize == slot),
        };
        let helps = |entry: &Entry<W>| is_meant(entry) && may(entry.wait.client);
        let at = self.waiting.iter().position(helps)?;
        self.remove(at).map(|entry| (entry.waiter, entry.wait))
    }

    /// A server is no longer available: the requests that are bound to it may go to any other.
    pub(super) fn unbind(&mut self, slot: usize) {
        for entry in self.waiting.iter_mut().filter(|entry| entry.wait.bound == Some(slot)) {
            entry.wait.bound = None;
        }
    }

    /// Empties the queue.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = W> {
        self.held = Held::default();
        std::mem::take(&mut self.waiting).into_iter().map(|entry| entry.waiter)
    }
}
