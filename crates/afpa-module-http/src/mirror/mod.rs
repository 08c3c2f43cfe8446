//! Requests to servers that a second server group gets as well, and whose answers there nobody reads.
//!
//! A mirror never delays, changes or fails the answer to its request: it has a task and connections of its own, and where
//! there is no room for it, it is dropped and counted. A request is mirrored when all of its content was passed on, so the
//! content is copied on its way, as it came. A client never holds more places or bytes than are left for the others: alone it
//! has half of them.

mod copy;
mod job;

use std::collections::{HashMap, TryReserveError};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afpa_http::BodyLength;
use afpa_proxy::client::Client as ClientKey;
use afpa_proxy::exchange::{self, Core, End, Job};
use afpa_proxy::request::RequestHead;
use afpa_router::{GroupId, RequestSetId, SiteId};
use afpa_shared_cache::Nobody;

pub(crate) use copy::Copying;
use copy::Discarding;
pub(crate) use job::of;

/// The field that says to a server that nobody waits for its answer.
const FIELD: &str = "X-Mirror";
/// Mirrors at a time. Each has an exchange with a server.
pub const MOST_MIRRORS: usize = 256;
/// Bytes of heads and contents that all of them hold.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of one content, as it came.
const LONGEST_CONTENT: usize = 1024 * 1024;
/// A server that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the requests of each request set are mirrored.
#[derive(Debug, Default)]
pub struct Mirrors {
    /// By the number of the request set; empty: nowhere.
    pub sets: Vec<Option<Arc<MirrorPlace>>>,
    /// By the number of the site, whether any of its requests are mirrored; empty: of none.
    pub sites: Vec<bool>,
    /// For all of them; a reload keeps it.
    pub stock: Arc<MirrorStock>,
}

impl Mirrors {
    #[inline]
    pub(crate) fn of(&self, set: Option<RequestSetId>) -> Option<&Arc<MirrorPlace>> {
        self.sets.get(set?.0 as usize)?.as_ref()
    }

    /// Takes out of a request to a site's own servers the field that would make it a mirror for them: applications that get
    /// mirrors do less for those. No client says so, neither in the paths of the site that have no mirror.
    pub(crate) fn tell_original(&self, site: SiteId, head: &mut RequestHead) {
        if self.sites.get(site.0 as usize).is_some_and(|has_mirror| *has_mirror) {
            head.claim(std::iter::once(FIELD), &[]);
        }
    }
}

/// A server group that gets requests of a request set as well.
#[derive(Debug)]
pub struct MirrorPlace {
    group: GroupId,
    percent: u32,
    asked: AtomicU32,
}

impl MirrorPlace {
    /// A group, and of how many of 100 requests it gets a copy.
    pub fn new(group: GroupId, percent: u32) -> Self {
        Self { group, percent: percent.min(100), asked: AtomicU32::new(0) }
    }

    /// Whether the next request is one of those that are mirrored. They are spread evenly.
    fn takes_next(&self) -> bool {
        let number = u64::from(self.asked.fetch_add(1, Ordering::Relaxed));
        let before = number * u64::from(self.percent) / 100;
        (number + 1) * u64::from(self.percent) / 100 > before
    }
}

/// Why a request was not mirrored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dropped {
    /// There are as many mirrors as there may be.
    Busy,
    /// They hold as many bytes as they may.
    Memory,
    /// Its content is too long.
    Content,
    /// Its content did not come to its end.
    Incomplete,
    /// It is about a connection (a tunnel), or came in early data, or the mirror's servers must not get it.
    Unfit,
}

/// Names of the reasons, in the order of [`MirrorReport::dropped`].
pub const MIRROR_DROPS: [&str; 5] = ["busy", "memory", "content", "incomplete", "unfit"];

/// The mirrors of a process, their bytes, and their counts.
#[derive(Debug, Default)]
pub struct MirrorStock {
    held: Mutex<HeldByAll>,
    answered: AtomicU64,
    failed: AtomicU64,
    dropped: [AtomicU64; MIRROR_DROPS.len()],
}

/// The places and bytes of all mirrors.
#[derive(Debug, Default)]
struct HeldByAll {
    all: Amount,
    /// By client; none holds nothing.
    clients: HashMap<ClientKey, Amount>,
}

/// Places and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    mirrors: usize,
    bytes: usize,
}

impl HeldByAll {
    /// Adds to what a client holds.
    fn take(&mut self, client: Option<ClientKey>, more: Amount) -> Result<(), Dropped> {
        let all = self.all.plus(more);
        let own =
            client.map(|client| self.clients.get(&client).copied().unwrap_or_default().plus(more));
        let is_room = |of: fn(Amount) -> usize, most: usize| {
            let left = most.checked_sub(of(all));
            of(more) == 0 || left.is_some_and(|left| own.is_none_or(|own| of(own) <= left))
        };
        if !is_room(|amount| amount.mirrors, MOST_MIRRORS) {
            return Err(Dropped::Busy);
        }
        if !is_room(|amount| amount.bytes, MOST_BYTES) {
            return Err(Dropped::Memory);
        }
        self.all = all;
        if let Some((client, own)) = client.zip(own) {
            self.clients.insert(client, own);
        }
        Ok(())
    }

    fn give_back(&mut self, client: Option<ClientKey>, amount: Amount) {
        self.all = self.all.minus(amount);
        if let Some(client) = client {
            let left = self.clients.get(&client).copied().unwrap_or_default().minus(amount);
            match left == Amount::default() {
                true => drop(self.clients.remove(&client)),
                false => drop(self.clients.insert(client, left)),
            }
        }
    }
}

impl Amount {
    fn plus(self, more: Self) -> Self {
        let mirrors = self.mirrors.saturating_add(more.mirrors);
        Self { mirrors, bytes: self.bytes.saturating_add(more.bytes) }
    }

    fn minus(self, less: Self) -> Self {
        let mirrors = self.mirrors.saturating_sub(less.mirrors);
        Self { mirrors, bytes: self.bytes.saturating_sub(less.bytes) }
    }
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorReport {
    /// Mirrors that wait for content, a server or its answer.
    pub in_flight: usize,
    /// Bytes of their heads and contents.
    pub bytes: usize,
    /// Requests that a server has answered.
    pub answered: u64,
    /// Requests that no server has answered as a whole, or in time.
    pub failed: u64,
    /// Requests that were not mirrored, by reason.
    pub dropped: [u64; MIRROR_DROPS.len()],
}

impl MirrorStock {
    /// The counts now.
    pub fn report(&self) -> MirrorReport {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let held = self.held().all;
        MirrorReport {
            in_flight: held.mirrors,
            bytes: held.bytes,
            answered: read(&self.answered),
            failed: read(&self.failed),
            dropped: self.dropped.each_ref().map(read),
        }
    }

    fn dropped(&self, why: Dropped) {
        if let Some(count) = self.dropped.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A place for a mirror of this client's request that holds this many bytes.
    fn hold(self: &Arc<Self>, client: Option<IpAddr>, bytes: usize) -> Result<Held, Dropped> {
        let client = client.map(ClientKey::from);
        self.held().take(client, Amount { mirrors: 1, bytes })?;
        Ok(Held { stock: Arc::clone(self), client, amount: Amount { mirrors: 1, bytes } })
    }

    fn held(&self) -> MutexGuard<'_, HeldByAll> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place for a mirror, and its bytes. They are given back when this is dropped.
#[derive(Debug)]
struct Held {
    stock: Arc<MirrorStock>,
    client: Option<ClientKey>,
    amount: Amount,
}

impl Held {
    fn grow(&mut self, more: usize) -> Result<(), Dropped> {
        let more = Amount { mirrors: 0, bytes: more };
        self.stock.held().take(self.client, more)?;
        self.amount = self.amount.plus(more);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stock.held().give_back(self.client, self.amount);
    }
}

/// The mirror of a request, before it is sent.
#[derive(Debug)]
pub(crate) struct Mirror {
    job: Box<Job>,
    /// The content as it came, with its framing.
    content: Vec<u8>,
    held: Held,
}

impl Mirror {
    /// Whether content is to come before it can be sent.
    pub(crate) fn has_content(&self) -> bool {
        self.job.body != BodyLength::None
    }

    /// Copies a piece of content.
    fn copy(&mut self, piece: &[u8]) -> Result<(), Dropped> {
        let length = self.content.len() + piece.len();
        if length > LONGEST_CONTENT {
            return Err(Dropped::Content);
        }
        if length > self.content.capacity() {
            let capacity = length.max(2 * self.content.capacity()).min(LONGEST_CONTENT);
            self.held.grow(capacity - self.content.capacity())?;
            let room: Result<(), TryReserveError> =
                self.content.try_reserve_exact(capacity - self.content.len());
            room.map_err(|_| Dropped::Memory)?;
        }
        self.content.extend_from_slice(piece);
        Ok(())
    }

    /// Sends it, in a task of its own on this core.
    pub(crate) fn send(self, core: &Rc<Core>) {
        let Self { mut job, content, held } = self;
        let core = Rc::clone(core);
        tokio::task::spawn_local(async move {
            let (mut client, mut tap) = (Nobody::with_content(content), Discarding);
            let asked = exchange::run(&mut job, &core, &mut client, Some(&mut tap));
            let report = tokio::time::timeout(PATIENCE, asked).await;
            let is_answered = report.is_ok_and(|report| matches!(report.end, End::Relayed(_)));
            let stock = &held.stock;
            let count = if is_answered { &stock.answered } else { &stock.failed };
            count.fetch_add(1, Ordering::Relaxed);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_requests_is_spread_evenly() {
        for (percent, wanted) in [(100, 10), (50, 5), (10, 1), (0, 0), (70, 7)] {
            let place = MirrorPlace::new(GroupId(0), percent);
            for _ in 0..20 {
                let taken = (0..10).filter(|_| place.takes_next()).count();
                assert_eq!(taken, wanted, "{percent}");
            }
        }
    }

    #[test]
    fn places_and_bytes_are_bounded_and_given_back() {
        let stock = Arc::new(MirrorStock::default());
        let mut all: Vec<Held> =
            (0..MOST_MIRRORS).map(|_| stock.hold(None, 1000).expect("room")).collect();
        assert_eq!(stock.hold(None, 0).map(|_| ()), Err(Dropped::Busy));
        all.pop();
        assert_eq!(stock.hold(None, MOST_BYTES).map(|_| ()), Err(Dropped::Memory));
        assert_eq!(stock.report().in_flight, MOST_MIRRORS - 1, "nothing is held of it");
        assert_eq!(stock.report().bytes, (MOST_MIRRORS - 1) * 1000);
        drop(all);
        assert_eq!(stock.report(), MirrorReport::default());
        drop(stock.hold(None, MOST_BYTES).expect("all of it"));
    }

    #[test]
    fn no_client_holds_more_than_is_left() {
        let stock = Arc::new(MirrorStock::default());
        let client = |number: u8| Some(IpAddr::from([192, 0, 2, number]));
        let mut one: Vec<Held> = std::iter::from_fn(|| stock.hold(client(1), 1000).ok()).collect();
        assert_eq!(one.len(), MOST_MIRRORS / 2);
        let two: Vec<Held> = std::iter::from_fn(|| stock.hold(client(2), 1000).ok()).collect();
        assert_eq!(two.len(), MOST_MIRRORS / 4);
        one.truncate(1);
        assert!(one.iter_mut().all(|held| held.grow(MOST_BYTES / 3).is_ok()));
        assert!(one.iter_mut().all(|held| held.grow(MOST_BYTES / 3).is_err()), "more than is left");
        drop((one, two));
        assert_eq!(stock.report(), MirrorReport::default());
        assert!(stock.held().clients.is_empty());
    }
}
