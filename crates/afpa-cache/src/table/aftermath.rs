//! The work that a change of the table leaves behind, to be done once its lock is free.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::mailbox::Mailbox;
use crate::object::Object;

/// Objects to release and waiters and workers to notify. That runs code of callers - destructors of header
/// data, wakers, `on_drop` - which may call the cache, so the table must not be locked.
pub(crate) struct Aftermath<H> {
    released: Vec<Arc<Object<H>>>,
    arrivals: Vec<Arrival<H>>,
    calls: Vec<Arc<Mailbox>>,
}

/// The requests that wait for one load.
pub(super) type Waiters<H> = Vec<oneshot::Sender<Arc<Object<H>>>>;

/// The outcome of that load.
type Arrival<H> = (Waiters<H>, Option<Arc<Object<H>>>);

impl<H> Default for Aftermath<H> {
    fn default() -> Self {
        Aftermath { released: Vec::new(), arrivals: Vec::new(), calls: Vec::new() }
    }
}

impl<H> Aftermath<H> {
    /// The table no longer holds `object`.
    pub(crate) fn release(&mut self, object: Arc<Object<H>>) {
        self.released.push(object);
    }

    /// The load succeeded.
    pub(crate) fn deliver(&mut self, waiters: Waiters<H>, object: &Arc<Object<H>>) {
        self.arrivals.push((waiters, Some(Arc::clone(object))));
    }

    /// The load failed.
    pub(crate) fn fail(&mut self, waiters: Waiters<H>) {
        self.arrivals.push((waiters, None));
    }

    /// The view of `mailbox` has objects to let go.
    pub(crate) fn call(&mut self, mailbox: &Arc<Mailbox>) {
        self.calls.push(Arc::clone(mailbox));
    }

    /// Does it all.
    pub(crate) fn settle(self) {
        drop(self.released);
        for (waiters, object) in self.arrivals {
            for waiter in waiters {
                // A waiter may have left. A failure is reported by dropping the sender.
                let _ = object.as_ref().map(|object| waiter.send(Arc::clone(object)));
            }
        }
        self.calls.iter().for_each(|mailbox| mailbox.call());
    }
}
