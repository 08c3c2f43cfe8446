//! A request's lease on a server, and its wait for one.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::address::Address;
use super::core::Placed;
use super::group::GroupCore;
use super::tally::Tally;
use super::target::{Target, Wanted};
use super::{AttemptOutcome, Pick, ServerIndex};
use crate::pool::Server;

/// The right to send one request to a server. If it is dropped without [`Lease::finish`], the client went
/// away: the lease is given back, and the server is not blamed.
#[derive(Debug)]
pub struct Lease {
    shared: Arc<GroupCore>,
    placed: Placed,
    open: bool,
}

impl Lease {
    pub(super) fn new(shared: &Arc<GroupCore>, placed: Placed) -> Self {
        Self { shared: Arc::clone(shared), placed, open: true }
    }

    /// The server's number within its group, for [`Group::pick`](super::Group::pick) to exclude.
    pub fn server(&self) -> ServerIndex {
        self.placed.server
    }

    /// A number that no other server has during the life of the process.
    pub fn id(&self) -> u64 {
        self.placed.target.id
    }

    /// Whether its connections are to be kept.
    pub fn wanted(&self) -> &Wanted {
        &self.placed.target.wanted
    }

    /// The server, for its connections.
    pub(crate) fn as_server(&self) -> Server<'_> {
        let Target { id, name, wanted, tally, .. } = &*self.placed.target;
        Server { id: *id, name, wanted, tally }
    }

    /// Where its connections are counted.
    pub(crate) fn tally(&self) -> &Tally {
        &self.placed.target.tally
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.placed.target.address
    }

    /// Its name, for logs.
    pub fn name(&self) -> &str {
        &self.placed.target.name
    }

    /// The value of the Set-Cookie field that the response needs: if affinity is by cookie and the client
    /// does not have this server's cookie. It depends on whether the request came over TLS.
    pub fn set_cookie(&self, over_tls: bool) -> Option<&[u8]> {
        self.placed.new_cookie.then(|| self.placed.target.set_cookie.of(over_tls))
    }

    /// The request has ended.
    pub fn finish(mut self, now_ms: u64, outcome: AttemptOutcome) {
        self.open = false;
        self.shared.release(Some(now_ms), &self.placed, Some(outcome));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.open {
            self.shared.release(None, &self.placed, None);
        }
    }
}

/// A request in the queue of a group. Ready when a server has room, or when none will have. Dropping it
/// removes it from the queue.
#[derive(Debug)]
pub struct Waiter {
    shared: Arc<GroupCore>,
    ticket: u64,
    cell: Arc<Cell>,
}

impl Waiter {
    pub(super) fn new(shared: &Arc<GroupCore>, ticket: u64, cell: Arc<Cell>) -> Self {
        Self { shared: Arc::clone(shared), ticket, cell }
    }
}

impl Future for Waiter {
    type Output = Pick;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Pick> {
        self.cell.poll(context.waker())
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // In this order: if another thread has just taken the request off the queue, its lease is given
        // back.
        self.shared.leave_queue(self.ticket);
        drop(self.cell.close());
    }
}

/// Through which a waiting request gets its lease.
#[derive(Debug, Default)]
pub(super) struct Cell(Mutex<WaiterState>);

#[derive(Debug, Default)]
struct WaiterState {
    waker: Option<Waker>,
    pick: Option<Pick>,
    gone: bool,
}

impl Cell {
    /// Delivers the result to the waiter. If the waiter is gone, a lease in the result is given back.
    pub(super) fn deliver(&self, pick: Pick) {
        let mut waiting = self.lock();
        if waiting.gone {
            drop(waiting);
            drop(pick);
            return;
        }
        waiting.pick = Some(pick);
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, waker: &Waker) -> Poll<Pick> {
        let mut waiting = self.lock();
        match waiting.pick.take() {
            Some(pick) => Poll::Ready(pick),
            None => {
                if !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
                    waiting.waker = Some(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// Ends the wait. Returns a pick that was delivered and not taken.
    fn close(&self) -> Option<Pick> {
        let mut waiting = self.lock();
        waiting.gone = true;
        waiting.pick.take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WaiterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
