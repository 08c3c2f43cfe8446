//! The queue of requests that wait for a server: first come, first served.

use std::collections::VecDeque;

use super::core::Wait;

/// A bounded queue. Tickets ascend.
#[derive(Debug)]
pub(super) struct Queue<W> {
    waiting: VecDeque<Entry<W>>,
    next_ticket: u64,
}

#[derive(Debug)]
struct Entry<W> {
    ticket: u64,
    wait: Wait,
    waiter: W,
}

/// The queue is full. Gives back what was to join it.
#[derive(Debug)]
pub(super) struct Full<W>(pub(super) W);

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), next_ticket: 0 }
    }
}

impl<W> Queue<W> {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many requests wait for the same server, or for any.
    pub(super) fn len_for(&self, bound: Option<usize>) -> usize {
        self.waiting.iter().filter(|entry| entry.wait.bound == bound).count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends a request, unless `most` requests wait for the same already.
    pub(super) fn enter(&mut self, wait: Wait, waiter: W, most: usize) -> Result<u64, Full<W>> {
        // The sum of all is an upper bound for each, so counting is needed only in a long queue.
        if self.waiting.len() >= most && self.len_for(wait.bound) >= most {
            return Err(Full(waiter));
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting.push_back(Entry { ticket, wait, waiter });
        Ok(ticket)
    }

    /// Removes a request. Returns whether it was still there.
    pub(super) fn leave(&mut self, ticket: u64) -> bool {
        let found = self.waiting.binary_search_by_key(&ticket, |entry| entry.ticket);
        found.is_ok_and(|at| self.waiting.remove(at).is_some())
    }

    /// Takes the first request that the server at `slot` can serve; one that is bound to no server only if
    /// `unbound`.
    pub(super) fn next_for(&mut self, slot: usize, unbound: bool) -> Option<(W, Wait)> {
        let helps = |entry: &Entry<W>| match entry.wait.bound {
            Some(bound) => bound == slot,
            None => unbound && !entry.wait.excluded.iter().any(|other| other.0 as usize == slot),
        };
        let at = self.waiting.iter().position(helps)?;
        self.waiting.remove(at).map(|entry| (entry.waiter, entry.wait))
    }

    /// A server is no longer available: the requests that are bound to it may go to any other.
    pub(super) fn unbind(&mut self, slot: usize) {
        for entry in self.waiting.iter_mut().filter(|entry| entry.wait.bound == Some(slot)) {
            entry.wait.bound = None;
        }
    }

    /// Empties the queue.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = W> {
        std::mem::take(&mut self.waiting).into_iter().map(|entry| entry.waiter)
    }
}
