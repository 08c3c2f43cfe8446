//! The record that user mode keeps of the pinned objects.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use afpa_abi::{ObjectKey, PATH_FILTER_BITS};

use super::room::{Lot, Room};
use crate::region::{Pages, Slots};

/// User mode's view of the pinned objects.
pub(crate) struct Pinned {
    pub(super) objects: HashMap<ObjectKey, PinnedObject>,
    /// How many there are, free or not; likewise pages.
    pub(super) slots: usize,
    pub(super) pages: usize,
    pub(super) room: Room,
    /// When all connections were last looked at for room.
    pub(super) looked: Option<Instant>,
    version: u64,
    /// How many objects have set each bit of the path filter.
    pub(super) marks: Vec<u32>,
}

pub(super) struct PinnedObject {
    pub(super) path: Box<[u8]>,
    pub(super) lots: Vec<Lot>,
}

impl Pinned {
    /// Answers of slots that an earlier process left in use may still be sent again, so these are retired now.
    /// Versions begin at the clock, so that no version of an earlier process comes back.
    pub(crate) fn new(slots: &Slots, pages: &Pages) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let version = |index: &u32| slots.version(*index).load(Ordering::Relaxed);
        let (free, used): (Vec<u32>, Vec<u32>) =
            (1..slots.len()).rev().partition(|index| version(index) == 0);
        let mut free_pages: HashSet<u32> = (1..pages.len()).collect();
        let counts = (free.len() + used.len(), free_pages.len());
        let lots: Vec<(u64, Lot)> = used
            .into_iter()
            .map(|slot| {
                let mut pages = slots.pages(slot).to_vec();
                pages.retain(|page| free_pages.remove(page));
                (version(&slot), Lot { slot, pages })
            })
            .collect();
        let mut room = Room::new(free, free_pages.into_iter().collect());
        let now = Instant::now();
        lots.into_iter().for_each(|(version, lot)| room.retire(version, lot, now));
        Self {
            objects: HashMap::new(),
            slots: counts.0,
            pages: counts.1,
            room,
            looked: None,
            version: since.as_nanos() as u64,
            marks: vec![0; PATH_FILTER_BITS],
        }
    }

    pub(super) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }
}
