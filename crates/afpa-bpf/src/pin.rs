//! The kernel's part of the cache: pinned objects.
//!
//! An object is one map entry that names a slot for each stored coding. Pinning again replaces the
//! entry in one step; slots of the older version are kept for a while, because an answer that was
//! lost must be given again with the same bytes, and are then used anew.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use afpa_abi::{
    ANSWER_MAX, Answer, CODINGS, DATE_LENGTH, ETAG_MAX, NOT_MODIFIED_MAX, ObjectKey,
    PATH_FILTER_BITS, PATH_MAX, Slot,
};
use libbpf_rs::{MapCore, MapFlags};

use crate::listen::Site;
use crate::load::FastPath;
use crate::region::Slots;
use crate::sum::{path_hash, sum};

/// Content coding of a stored variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// As it is.
    Identity = 0,
    /// gzip
    Gzip = 1,
    /// br
    Brotli = 2,
    /// zstd
    Zstd = 3,
}

/// A complete response. 29 bytes of its head, at `date_offset`, are the Date's and are overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// Status line to blank line.
    pub head: &'a [u8],
    /// Where the Date's value stands in `head`.
    pub date_offset: usize,
    /// Content; empty for a 304.
    pub body: &'a [u8],
}

/// How long an answer may be under way between its look-up and its entry into the flow; amply.
const RIPE: Duration = Duration::from_secs(1);

/// One coding of an object.
#[derive(Clone, Copy, Debug)]
pub struct Variant<'a> {
    /// Which one.
    pub coding: Coding,
    /// Entity tag with quotes; empty: none, so that If-None-Match never holds.
    pub etag: &'a [u8],
    /// The Last-Modified value; None: If-Modified-Since goes to user mode.
    pub last_modified: Option<&'a [u8; DATE_LENGTH]>,
    /// The answer to GET (and, its head, to HEAD); None where it is too long for one segment.
    pub whole: Option<Response<'a>>,
    /// The answer to a validator that matches; None: user mode gives it.
    pub not_modified: Option<Response<'a>>,
}

/// Why an object was not pinned. Whatever was pinned under its path before is not any more.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// Path, validator or response exceeds what a slot holds.
    #[error("{0} is too long for the fast path")]
    TooLong(&'static str),
    /// Every slot is in use or being retired.
    #[error("all object slots are in use")]
    Full,
    /// Another pinned path has the same hash (one in 2^64).
    #[error("path hash collides with another pinned path")]
    Collision,
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] libbpf_rs::Error),
}

impl FastPath {
    /// Answer GET and HEAD for `path` of `site` from now on. `path` is compared with the request
    /// target byte by byte: pin the spelling clients use. Returns the versions, one a variant, that
    /// events will name.
    pub fn pin(
        &self,
        site: Site,
        path: &[u8],
        variants: &[Variant<'_>],
    ) -> Result<Vec<u64>, PinError> {
        let mut pinned = self.lock_pinned();
        let drafts = variants
            .iter()
            .map(|variant| draft(site, path, variant))
            .collect::<Result<Vec<_>, _>>();
        let drafts = match drafts {
            Ok(drafts) => drafts,
            Err(error) => {
                self.remove(&mut pinned, site, path)?;
                return Err(error);
            }
        };
        let key = self.object_key(site, path);
        if pinned.objects.get(&key).is_some_and(|object| *object.path != *path) {
            return Err(PinError::Collision);
        }
        let Some(free) = pinned.take(drafts.len(), self) else {
            self.remove(&mut pinned, site, path)?;
            return Err(PinError::Full);
        };
        let mut object = [0; CODINGS];
        let mut versions = Vec::with_capacity(drafts.len());
        for ((mut slot, variant), index) in drafts.into_iter().zip(variants).zip(&free) {
            slot.version = pinned.next_version();
            self.slots.write(*index, &slot);
            object[variant.coding as usize] = *index;
            versions.push(slot.version);
        }
        if let Err(error) =
            self.objects.update(&key_bytes(&key), &object_bytes(object), MapFlags::ANY)
        {
            pinned.retire(free);
            self.remove(&mut pinned, site, path)?;
            return Err(error.into());
        }
        match pinned.objects.insert(key, PinnedObject { path: path.into(), slots: free }) {
            Some(older) => pinned.retire(older.slots),
            None => {
                self.mark_path(&mut pinned, key.path_hash);
                self.region.pins().fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(versions)
    }

    /// Answer `path` no more; when this returns, no further packet is answered with it, except to
    /// repeat an answer that was lost. False: it was not pinned.
    pub fn unpin(&self, site: Site, path: &[u8]) -> libbpf_rs::Result<bool> {
        self.remove(&mut self.lock_pinned(), site, path)
    }

    /// Slots that may be used now.
    pub fn free_slots(&self) -> usize {
        self.lock_pinned().free.len()
    }

    /// Makes slots vacant that were retired and whose answers all clients have, instead of waiting for
    /// [`Settings::retire_after`](crate::Settings::retire_after). Looks at every connection if there are
    /// any: for when objects wait for room, and not too often.
    pub fn reclaim(&self) -> libbpf_rs::Result<()> {
        let mut unused: HashMap<u32, u64> = {
            let pinned = self.lock_pinned();
            // A program that had looked it up when it was unpinned has long finished.
            let ripe = pinned.retired.iter().filter(|(since, _)| since.elapsed() >= RIPE);
            let version = |index: u32| self.slots.version(index).load(Ordering::Relaxed);
            ripe.map(|(_, index)| (*index, version(*index))).collect()
        };
        if unused.is_empty() {
            return Ok(());
        }
        self.each_flow(|_, flow| {
            let end = flow.answer_at.wrapping_add(flow.answer_span);
            let outstanding =
                flow.answer_length != 0 && (flow.client_acked.wrapping_sub(end) as i32) < 0;
            if outstanding && unused.get(&flow.answer_slot) == Some(&flow.answer_version) {
                unused.remove(&flow.answer_slot);
            }
        })?;
        let mut pinned = self.lock_pinned();
        let Pinned { retired, free, .. } = &mut *pinned;
        retired.retain(|(_, index)| {
            let vacant = unused.contains_key(index);
            if vacant {
                self.slots.vacate(*index);
                free.push(*index);
            }
            !vacant
        });
        Ok(())
    }

    /// Pinned objects, and slots in use (those being retired included).
    pub fn pinned_objects(&self) -> (usize, usize) {
        let pinned = self.lock_pinned();
        (pinned.objects.len(), pinned.total - pinned.free.len())
    }

    fn lock_pinned(&self) -> std::sync::MutexGuard<'_, Pinned> {
        self.pinned.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn object_key(&self, site: Site, path: &[u8]) -> ObjectKey {
        let seed = self.region.hash_seed().load(Ordering::Relaxed);
        ObjectKey { path_hash: path_hash(seed, path), site, path_length: path.len() as u32 }
    }

    /// The kernel's entry goes first; all else is bookkeeping.
    fn remove(&self, pinned: &mut Pinned, site: Site, path: &[u8]) -> libbpf_rs::Result<bool> {
        let key = self.object_key(site, path);
        if pinned.objects.get(&key).is_none_or(|object| *object.path != *path) {
            return Ok(false);
        }
        self.objects.delete(&key_bytes(&key))?;
        if let Some(object) = pinned.objects.remove(&key) {
            pinned.retire(object.slots);
            self.unmark_path(pinned, key.path_hash);
        }
        Ok(true)
    }

    fn mark_path(&self, pinned: &mut Pinned, hash: u64) {
        let bit = hash as usize % PATH_FILTER_BITS;
        pinned.marks[bit] += 1;
        self.region.paths(bit).fetch_or(1 << (bit % 64), Ordering::SeqCst);
    }

    fn unmark_path(&self, pinned: &mut Pinned, hash: u64) {
        let bit = hash as usize % PATH_FILTER_BITS;
        pinned.marks[bit] -= 1;
        if pinned.marks[bit] == 0 {
            self.region.paths(bit).fetch_and(!(1 << (bit % 64)), Ordering::SeqCst);
        }
    }
}

/// User mode's view of what is pinned.
pub(crate) struct Pinned {
    objects: HashMap<ObjectKey, PinnedObject>,
    total: usize,
    free: Vec<u32>,
    retired: VecDeque<(Instant, u32)>,
    retire_after: Duration,
    version: u64,
    /// Objects under each bit of the path filter.
    marks: Vec<u32>,
}

struct PinnedObject {
    path: Box<[u8]>,
    slots: Vec<u32>,
}

impl Pinned {
    /// Slots that an earlier process left in use may still be repeated: they are retired now.
    /// Versions start at the clock, so that those of an earlier process are not met again.
    pub(crate) fn new(slots: &Slots, retire_after: Duration) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let vacant = |index: &u32| slots.version(*index).load(Ordering::Relaxed) == 0;
        let (free, used): (Vec<u32>, Vec<u32>) = (1..slots.len()).rev().partition(vacant);
        let mut pinned = Self {
            objects: HashMap::new(),
            total: free.len() + used.len(),
            free,
            retired: VecDeque::new(),
            retire_after,
            version: since.as_nanos() as u64,
            marks: vec![0; PATH_FILTER_BITS],
        };
        pinned.retire(used);
        pinned
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// Vacant slots, all or none. Those retired long enough are used again.
    fn take(&mut self, count: usize, fast_path: &FastPath) -> Option<Vec<u32>> {
        while let Some((since, index)) = self.retired.front().copied() {
            if since.elapsed() < self.retire_after {
                break;
            }
            self.retired.pop_front();
            fast_path.slots.vacate(index);
            self.free.push(index);
        }
        let at = self.free.len().checked_sub(count)?;
        Some(self.free.split_off(at))
    }

    fn retire(&mut self, slots: Vec<u32>) {
        let now = Instant::now();
        self.retired.extend(slots.into_iter().map(|index| (now, index)));
    }
}

/// A slot without its version.
fn draft(site: Site, path: &[u8], variant: &Variant<'_>) -> Result<Slot, PinError> {
    let mut slot = Slot {
        version: 0,
        whole: Answer::default(),
        not_modified: Answer::default(),
        path_length: path.len() as u16,
        etag_length: variant.etag.len() as u16,
        site,
        path: [0; PATH_MAX],
        etag: [0; ETAG_MAX],
        last_modified: [0; 32],
        not_modified_bytes: [0; NOT_MODIFIED_MAX],
        bytes: [0; ANSWER_MAX + 4],
    };
    copy(&mut slot.path, path, "path")?;
    copy(&mut slot.etag, variant.etag, "entity tag")?;
    copy(
        &mut slot.last_modified,
        variant.last_modified.map_or(&[][..], |date| date),
        "last modified",
    )?;
    if let Some(whole) = &variant.whole {
        slot.whole = store(&mut slot.bytes[..ANSWER_MAX], whole, "response")?;
    }
    if let Some(not_modified) = &variant.not_modified {
        slot.not_modified = store(&mut slot.not_modified_bytes, not_modified, "304 head")?;
    }
    Ok(slot)
}

fn copy(to: &mut [u8], from: &[u8], what: &'static str) -> Result<(), PinError> {
    to.get_mut(..from.len()).ok_or(PinError::TooLong(what))?.copy_from_slice(from);
    Ok(())
}

/// Head and body into `room`, the Date zeroed, and their sums.
fn store(room: &mut [u8], response: &Response<'_>, what: &'static str) -> Result<Answer, PinError> {
    let head = response.head.len();
    let length = head + response.body.len();
    let bytes = room.get_mut(..length).ok_or(PinError::TooLong(what))?;
    bytes[..head].copy_from_slice(response.head);
    bytes[head..].copy_from_slice(response.body);
    let date = response.date_offset..response.date_offset + DATE_LENGTH;
    bytes[..head].get_mut(date).ok_or(PinError::TooLong("date"))?.fill(0);
    Ok(Answer {
        length: length as u16,
        head_length: head as u16,
        date_offset: response.date_offset as u16,
        reserved: 0,
        sum: sum(bytes),
        head_sum: sum(&bytes[..head]),
    })
}

fn key_bytes(key: &ObjectKey) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.path_hash.to_ne_bytes());
    bytes[8..12].copy_from_slice(&key.site.to_ne_bytes());
    bytes[12..].copy_from_slice(&key.path_length.to_ne_bytes());
    bytes
}

fn object_bytes(slots: [u32; CODINGS]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (to, slot) in bytes.chunks_mut(4).zip(slots) {
        to.copy_from_slice(&slot.to_ne_bytes());
    }
    bytes
}
