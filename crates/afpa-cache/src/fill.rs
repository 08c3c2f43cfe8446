//! Loading an object: once, however many requests ask for it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use afpa_arena::PinnedMut;
use tokio::sync::oneshot;

use crate::cache::Cache;
use crate::key::Key;
use crate::object::{Content, Millis, Object, Payload};
use crate::overtaken::{Changed, Overtaken};
use crate::policy::{Family, Hint, ObjectId};
use crate::stamp::{Coverage, Stamp};
use crate::table::Begun;

/// The next step of a request that missed.
#[derive(Debug)]
pub enum Fill<H> {
    /// Load the object: no other request does.
    Lead(Ticket<H>),
    /// Another request is loading it: wait.
    Wait(Waiter<H>),
    /// The object is in the cache by now.
    Hit(Arc<Object<H>>),
}

/// The right and the duty to load one object.
///
/// Use, in this order: [`depends_on`](Ticket::depends_on) each path *before* reading it; read;
/// [`reserve`](Ticket::reserve) room for what shall be pinned; [`publish`](Ticket::publish). If
/// [`suspect`](Ticket::suspect) gives an object, compare the stamps of its files first, and
/// [`confirm`](Ticket::confirm) it if they are the same. To give up, drop the ticket: the waiters get
/// `None`.
pub struct Ticket<H> {
    cache: Arc<Cache<H>>,
    id: ObjectId,
    key: Key,
    suspect: Option<Arc<Object<H>>>,
    family: Family,
    hint: Hint,
    header_bytes: usize,
    open: bool,
}

impl<H> Cache<H> {
    /// Decides the next step of a request for `key`: load it, or re-check its suspect object, or wait for the request
    /// that does.
    pub fn begin(self: &Arc<Self>, key: Key, now: Millis) -> Fill<H> {
        match self.begin_fill(&key, now) {
            Begun::There(object) => Fill::Hit(object),
            Begun::UnderWay(arrival) => Fill::Wait(Waiter { arrival }),
            Begun::New { id, suspect } => {
                let (cache, family, hint) = (Arc::clone(self), Family::default(), Hint::default());
                let (header_bytes, open) = (0, true);
                Fill::Lead(Ticket { cache, id, key, suspect, family, hint, header_bytes, open })
            }
        }
    }
}

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
    /// from now on makes [`publish`](Ticket::publish) fail, and later drops the object. If the path does
    /// not exist, its creation is a change.
    pub fn depends_on(&self, path: &[u8]) {
        self.cache.depends_on(self.id, path);
    }

    /// Gives the family of the object, for the replacement policy, and its configured hint. Without this call it is of
    /// the default [`Family`], with the default [`Hint`].
    pub fn describe(&mut self, family: Family, hint: Hint) {
        (self.family, self.hint) = (family, hint);
    }

    /// Says how many bytes the header data points at. They count against
    /// [`bookkeeping_limit`](crate::CacheSettings::bookkeeping_limit).
    pub fn weigh(&mut self, header_bytes: usize) {
        self.header_bytes = header_bytes;
    }

    /// As [`Cache::reserve`]; give the object a [`Payload::File`] when there is no room.
    pub fn reserve(&self, len: usize) -> Option<PinnedMut> {
        self.cache.reserve(len)
    }

    /// Lists the object, in place of the one that was there, and hands it to the waiters.
    ///
    /// An object that alone exceeds a limit is not listed, nor one whose hint says so. It is handed to the waiters all the same, and is
    /// [`Dropped`](crate::Currency::Dropped) from the start.
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
        let Self { family, hint, header_bytes, .. } = self;
        let stamp = Some(Box::new(stamp));
        let content = Content { header, header_bytes, payloads, stamp, coverage, family, hint };
        self.cache.publish(self.id, &self.key, content)
    }

    /// Declares the [`suspect`](Ticket::suspect) current, because its files are unchanged, and hands it to the waiters.
    ///
    /// # Errors
    /// [`Changed`] when there is no suspect or it was dropped meanwhile. The waiters get `None`.
    pub fn confirm(mut self) -> Result<Arc<Object<H>>, Changed> {
        self.open = false;
        self.cache.confirm(self.id, self.suspect.take())
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

/// Waits for the load of another request: the object, or `None` when that load failed. The object may have
/// been dropped in the meantime; it was current after the wait began.
pub struct Waiter<H> {
    arrival: oneshot::Receiver<Arc<Object<H>>>,
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
