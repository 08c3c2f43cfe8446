//! The record that user mode keeps of the pinned objects.

use std::collections::{HashMap, HashSet};
use std::time::{Instant, SystemTime};

use afpa_abi::{ObjectKey, PATH_FILTER_BITS};

use super::places::{Pages, Slots};
use super::room::{Lot, Room, Sizes};

/// User mode's view of the pinned objects.
pub(crate) struct Pinned {
    pub(super) objects: HashMap<ObjectKey, PinnedObject>,
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
    pub(crate) fn new(slots: &Slots, pages: &Pages, most_bytes: usize) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let sizes = Sizes {
            slots: slots.len(),
            pages: pages.len(),
            more_slots_from: slots.more_from(),
            more_pages_from: pages.more_from(),
            most_bytes,
        };
        let mut used = HashSet::new();
        let lots = slots.occupied().into_iter().map(|(slot, version)| {
            let mut named = slots.pages(slot).to_vec();
            named.retain(|page| (1..sizes.pages).contains(page) && used.insert(*page));
            (version, Lot { slot, pages: named })
        });
        let room = Room::new(sizes, lots.collect());
        pages.vacate_all_but(|page| used.contains(&page));
        Self {
            objects: HashMap::new(),
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
