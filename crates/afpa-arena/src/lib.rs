//! Locked memory for pinned cache objects.
//!
//! An [`Arena`] is one anonymous mapping of a fixed number of bytes, cut into ranges of whole
//! 64-byte units. It is locked page by page as the pages are first touched (`MLOCK_ONFAULT`), so it
//! costs memory only as it is used. A page that was touched stays (IBM paper, section 2: "once a
//! block is allocated, it is never subsequently freed, although portions of it may be freed and
//! reallocated"), until [`Arena::give_back_memory`] finds it in a large free range: a peak is over some time.
//!
//! Memory that belongs to the objects but lies elsewhere can be counted against the same limit ([`Arena::charge`]). The
//! arena then keeps as much room empty, and gives its pages back.
//!
//! A range begins as a [`PinnedMut`], which one loader fills, and is then frozen into a [`Pinned`],
//! which any number of threads read and clone. The range returns when the last clone goes.
//!
//! ```
//! let arena = afpa_arena::Arena::new(1 << 20)?;
//! let mut filling = arena.allocate(5).expect("an empty arena has room");
//! filling.copy_from_slice(b"hello");
//! let page = filling.freeze();
//! assert_eq!(&*page.clone(), b"hello");
//! assert_eq!(arena.usage().objects, 1);
//! # Ok::<(), std::io::Error>(())
//! ```

mod charge;
mod heap;
mod lock;
mod mapping;
mod ranges;

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use charge::Charges;
pub use heap::Heap;
pub use lock::LockReport;
use mapping::Mapping;
use ranges::{Look, Ranges, Taken, rounded};

/// Granularity of the arena in bytes: a cache line, so that no two objects share one.
pub const UNIT: usize = 64;

/// Units of the smallest free range whose memory is given back: 64 KiB.
const GIVEN_BACK: usize = (64 << 10) / UNIT;

/// Largest arena in bytes: offsets are 32-bit numbers of units.
pub const MAX_LIMIT: usize = (u32::MAX as usize / 2) * UNIT;

/// A fixed amount of memory from which pinned objects are cut. Clones are handles to the same arena.
#[derive(Clone)]
pub struct Arena {
    shared: Arc<ArenaInner>,
}

/// How much of an arena is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that can be in use at most.
    pub limit: usize,
    /// Bytes in use, counted as the arena rounds them ([`Arena::footprint`]).
    pub used: usize,
    /// Live ranges.
    pub objects: usize,
}

impl Arena {
    /// Reserves `limit` bytes of address space (rounded down to whole units) and locks them if it may.
    ///
    /// Call it before privileges are dropped: the lock is asked for here, once. The soft limit on
    /// locked memory of this process is raised towards its hard limit if that helps.
    ///
    /// # Errors
    /// `InvalidInput` when `limit` is above [`MAX_LIMIT`], else what `mmap` said. That the memory
    /// could not be *locked* is no error but a [`LockReport`].
    pub fn new(limit: usize) -> io::Result<Arena> {
        if limit > MAX_LIMIT {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "arena limit above 128 GiB"));
        }
        let units = limit / UNIT;
        let mapping = Mapping::reserve((units * UNIT).max(1))?;
        let lock_report = lock::lock(&mapping);
        let (limit, space) = (units * UNIT, Mutex::new(Space::new(units as u32)));
        let freed = Condvar::new();
        Ok(Arena { shared: Arc::new(ArenaInner { mapping, lock_report, limit, space, freed }) })
    }

    /// Takes a range of `len` bytes, or `None` when no free range is large enough.
    ///
    /// The content is whatever the range last held (zeros at first): the caller overwrites all of it.
    pub fn allocate(&self, len: usize) -> Option<PinnedMut> {
        let taken = self.shared.space().take(len)?;
        Some(self.grant(taken, len))
    }

    /// As [`Arena::allocate`], but waits up to `timeout` for others to return their ranges.
    pub fn allocate_within(&self, len: usize, timeout: Duration) -> Option<PinnedMut> {
        let deadline = Instant::now() + timeout;
        let mut space = self.shared.space();
        loop {
            if let Some(taken) = space.take(len) {
                drop(space);
                return Some(self.grant(taken, len));
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let woken = self.shared.freed.wait_timeout(space, left);
            space = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives the memory of free ranges back to the kernel, as far as they are not small. To be called now and then, and by a
    /// thread that may wait: ranges come and go meanwhile, but not there.
    pub fn give_back_memory(&self) {
        let mut at = 0;
        loop {
            let look = self.shared.space().ranges.take_used(&mut at, GIVEN_BACK as u32);
            match look {
                Look::Found(taken, units) => {
                    let (start, len) = (taken.start as usize * UNIT, units as usize * UNIT);
                    self.shared.mapping.clear(start, len);
                    self.shared.space().ranges.give_back_unused(taken);
                    self.shared.freed.notify_all();
                }
                Look::Nothing => {}
                Look::End => return,
            }
        }
    }

    /// The bytes that a range of `len` bytes takes up: whole units, rounded up to one of eight sizes
    /// between a power of two and the next. Rounding makes a freed range fit the next one of its size.
    pub fn footprint(len: usize) -> usize {
        units_for(len).map_or(usize::MAX, |units| units as usize * UNIT)
    }

    /// How much can be in use.
    pub fn limit(&self) -> usize {
        self.shared.limit
    }

    /// How much is in use.
    pub fn usage(&self) -> Usage {
        let space = self.shared.space();
        Usage {
            limit: space.limit as usize * UNIT,
            used: space.used as usize * UNIT,
            objects: space.objects - space.charges.ranges(),
        }
    }

    /// Whether the memory is locked and, if not, why and what helps.
    pub fn lock_report(&self) -> &LockReport {
        &self.shared.lock_report
    }

    fn grant(&self, taken: Taken, len: usize) -> PinnedMut {
        PinnedMut { range: Range { shared: Arc::clone(&self.shared), taken, len } }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("usage", &self.usage()).finish_non_exhaustive()
    }
}

/// A range of an arena that one owner is filling.
pub struct PinnedMut {
    range: Range,
}

impl PinnedMut {
    /// Ends the filling: from here on the bytes never change.
    pub fn freeze(self) -> Pinned {
        Pinned { range: Arc::new(self.range) }
    }
}

impl Deref for PinnedMut {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.range.bytes()
    }
}

impl DerefMut for PinnedMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.range.bytes_mut()
    }
}

impl fmt::Debug for PinnedMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedMut({} bytes)", self.len())
    }
}

/// Immutable bytes in an arena. Clones share them; the last one gives the range back.
#[derive(Clone)]
pub struct Pinned {
    range: Arc<Range>,
}

impl Pinned {
    /// Bytes of the arena that this range takes up ([`Arena::footprint`] of its length).
    pub fn footprint(&self) -> usize {
        Arena::footprint(self.range.len)
    }
}

impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.range.bytes()
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} bytes)", self.len())
    }
}

struct ArenaInner {
    mapping: Mapping,
    lock_report: LockReport,
    /// In bytes; it never changes, so it is read without the lock.
    limit: usize,
    space: Mutex<Space>,
    freed: Condvar,
}

impl ArenaInner {
    /// A range is only listed when its entry is complete, so the lists are whole after a panic.
    fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One live range. While it lives the arena gives no byte of it to anyone else; that is what
/// makes the slices below sound.
struct Range {
    shared: Arc<ArenaInner>,
    taken: Taken,
    /// As it was asked for: how many units it takes follows from that.
    len: usize,
}

impl Range {
    fn start(&self) -> usize {
        self.taken.start as usize * UNIT
    }

    #[expect(unsafe_code, reason = "a range reads the bytes that it owns in the mapping")]
    fn bytes(&self) -> &[u8] {
        // JUSTIFICATION: many ranges of one mapping are in use at once, which no safe slice allows.
        // SAFETY: the range lies in the mapping (its ranges were made with its size) and belongs to
        // `self` alone; `&self` excludes `bytes_mut` for as long as the slice lives.
        unsafe { self.shared.mapping.slice(self.start(), self.len) }
    }

    #[expect(unsafe_code, reason = "a range writes the bytes that it owns in the mapping")]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // JUSTIFICATION: as for `bytes`.
        // SAFETY: as for `bytes`; `&mut self` excludes every other slice of this range.
        unsafe { self.shared.mapping.slice_mut(self.start(), self.len) }
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        self.shared.space().give_back(self.taken, self.len);
        self.shared.freed.notify_all();
    }
}

/// The ranges of an arena, in units.
struct Space {
    ranges: Ranges,
    limit: u32,
    used: u32,
    objects: usize,
    charges: Charges,
}

impl Space {
    fn new(limit: u32) -> Space {
        let ranges = Ranges::new(limit, most_ranges(limit));
        Space { ranges, limit, used: 0, objects: 0, charges: Charges::default() }
    }

    fn take(&mut self, len: usize) -> Option<Taken> {
        let units = units_for(len)?;
        if units > self.limit - self.used {
            return None;
        }
        let taken = self.ranges.take(units)?;
        self.used += units;
        self.objects += 1;
        Some(taken)
    }

    fn give_back(&mut self, taken: Taken, len: usize) {
        let units = units_for(len).unwrap_or_default();
        debug_assert!(self.used >= units && self.objects > 0);
        self.ranges.give_back(taken);
        self.used -= units;
        self.objects -= 1;
    }
}

/// How many ranges there may be, including free ones: one for each 2 KiB on average, which keeps their table (28 bytes a
/// range) below two percent of the arena.
fn most_ranges(limit: u32) -> usize {
    (limit / 32).clamp(16_384, 4_194_304) as usize
}

/// An empty object takes a unit, too, so that every range has an address of its own.
fn units_for(len: usize) -> Option<u32> {
    let units = u32::try_from(len.max(1).div_ceil(UNIT)).ok()?;
    (units <= u32::MAX / 2).then(|| rounded(units))
}

#[cfg(test)]
mod tests;
