//! Loading an object: once, however many ask for it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use afpa_arena::PinnedMut;
use tokio::sync::oneshot;

use crate::cache::Cache;
use crate::key::Key;
use crate::object::{Content, Object, Payload};
use crate::policy::ObjectId;
use crate::stamp::{Coverage, Stamp};

/// What a request that missed does next.
#[derive(Debug)]
pub enum Fill<H> {
    /// Load the object: nobody else is.
    Lead(Ticket<H>),
    /// Somebody is loading it: wait.
    Wait(Waiter<H>),
    /// It is there after all.
    Hit(Arc<Object<H>>),
}

/// The right and the duty to load one object.
///
/// Use, in this order: [`depends_on`](Ticket::depends_on) each path *before* reading it; read;
/// [`reserve`](Ticket::reserve) room for what shall be pinned; [`publish`](Ticket::publish). When
/// [`suspect`](Ticket::suspect) gives an object, compare the stamps of its files first, and
/// [`confirm`](Ticket::confirm) it if they are the same. Dropping the ticket gives up: the waiters
/// get `None`.
pub struct Ticket<H> {
    cache: Arc<Cache<H>>,
    id: ObjectId,
    key: Key,
    suspect: Option<Arc<Object<H>>>,
    open: bool,
}

/// What a load read was changed while it read; the object would have been a mixture, or stale at
/// birth. Safe to begin again, a bounded number of times. Also: an object that was to be replaced is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("changed while it was being loaded")]
pub struct Changed;

/// The object of a load that a change overtook. It is [`Dropped`](crate::Currency::Dropped) from birth
/// and not listed. Each payload was one version of its file at some time after the load began: it may
/// answer the request that led the load, if beginning again is no way out, and no other.
#[derive(Debug)]
pub struct Overtaken<H>(pub Arc<Object<H>>);

impl<H> Ticket<H> {
    /// The name of the object to load.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The object that is listed for this key, but only to be served after a re-check.
    pub fn suspect(&self) -> Option<&Arc<Object<H>>> {
        self.suspect.as_ref()
    }

    /// Announces that the object depends on `path`, relative to the root of its site: a change of it
    /// from now on makes [`publish`](Ticket::publish) fail, and later drops the object. For a path
    /// that does not exist, its coming into being is a change.
    pub fn depends_on(&self, path: &[u8]) {
        self.cache.depends_on(self.id, path);
    }

    /// As [`Cache::reserve`]; give the object a [`Payload::File`] when there is no room.
    pub fn reserve(&self, len: usize) -> Option<PinnedMut> {
        self.cache.reserve(len)
    }

    /// Lists the object, in place of the one that was there, and hands it to the waiters.
    ///
    /// An object that alone exceeds a limit is handed out all the same but not listed: it serves
    /// those who waited for it, and is [`Dropped`](crate::Currency::Dropped) from birth.
    ///
    /// # Errors
    /// [`Overtaken`] when a dependency was invalidated, or the key purged, since the fill began. The
    /// waiters get `None`.
    pub fn publish(
        mut self,
        header: H,
        payloads: impl IntoIterator<Item = Payload>,
        stamp: Stamp,
        coverage: Coverage,
    ) -> Result<Arc<Object<H>>, Overtaken<H>> {
        self.open = false;
        let payloads = payloads.into_iter().collect();
        self.cache.publish(self.id, &self.key, Content { header, payloads, stamp, coverage })
    }

    /// Declares the [`suspect`](Ticket::suspect) to be what the file system holds, and hands it to the
    /// waiters.
    ///
    /// # Errors
    /// [`Changed`] when there is no suspect or it was dropped meanwhile. The waiters get `None`.
    pub fn confirm(mut self) -> Result<Arc<Object<H>>, Changed> {
        self.open = false;
        self.cache.confirm(self.id, self.suspect.take())
    }

    pub(crate) fn new(
        cache: Arc<Cache<H>>,
        id: ObjectId,
        key: Key,
        suspect: Option<Arc<Object<H>>>,
    ) -> Ticket<H> {
        Ticket { cache, id, key, suspect, open: true }
    }
}

impl<H> Drop for Ticket<H> {
    fn drop(&mut self) {
        if self.open {
            self.cache.abandon(self.id);
        }
    }
}

impl<H> fmt::Debug for Ticket<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({:?} {:?})", self.id, self.key)
    }
}

/// Waits for the load of another: the object, or `None` when that load failed. The object may have
/// been dropped in the meantime; it was current after the wait began.
pub struct Waiter<H> {
    arrival: oneshot::Receiver<Arc<Object<H>>>,
}

impl<H> Waiter<H> {
    pub(crate) fn new(arrival: oneshot::Receiver<Arc<Object<H>>>) -> Waiter<H> {
        Waiter { arrival }
    }
}

impl<H> Future for Waiter<H> {
    type Output = Option<Arc<Object<H>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.arrival).poll(context).map(Result::ok)
    }
}

impl<H> fmt::Debug for Waiter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiter")
    }
}
