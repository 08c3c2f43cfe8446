//! A request's place with a server, and the way to one.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::address::Address;
use super::core::Placed;
use super::group::GroupCore;
use super::target::Wanted;
use super::{AttemptOutcome, Pick, ServerIndex};

/// A place with a server. Dropped without [`Lease::finish`], it is given back, and nobody is
/// blamed: the client went away.
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

    /// A number that no other server has in the life of the process.
    pub fn id(&self) -> u64 {
        self.placed.target.id
    }

    /// Whether its connections are to be kept.
    pub fn wanted(&self) -> &Wanted {
        &self.placed.target.wanted
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.placed.target.address
    }

    /// Its name, for logs.
    pub fn name(&self) -> &str {
        &self.placed.target.name
    }

    /// The value of the Set-Cookie field that the response needs, when affinity is by cookie and
    /// the client has not got this server's.
    pub fn set_cookie(&self) -> Option<&[u8]> {
        self.placed.new_cookie.then_some(&self.placed.target.set_cookie)
    }

    /// The request has come to an end.
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

/// A place in the queue of a group. Ready when a server has room, or when there is no hope left;
/// dropped, it leaves the queue.
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
        // In this order: whoever took it off the queue delivers, and finds nobody.
        self.shared.leave_queue(self.ticket);
        drop(self.cell.close());
    }
}

/// Where a waiter is told.
#[derive(Debug, Default)]
pub(super) struct Cell(Mutex<WaiterState>);

#[derive(Debug, Default)]
struct WaiterState {
    waker: Option<Waker>,
    pick: Option<Pick>,
    gone: bool,
}

impl Cell {
    /// Hands over what the waiter gets. If it is gone, a lease in it is given back.
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

    /// What was delivered and not taken.
    fn close(&self) -> Option<Pick> {
        let mut waiting = self.lock();
        waiting.gone = true;
        waiting.pick.take()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, WaiterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
