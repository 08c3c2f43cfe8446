//! The objects that are pinned for one configuration, those that found no room, and the room that they take up.

use std::collections::HashMap;
use std::time::Instant;

use afpa_cache::{Key, ObjectId};

use super::pinnable::PinTarget;
use crate::rebalance::{self, Demand, Use, Weight};

#[derive(Default)]
pub(super) struct PinnedObjects {
    /// Another configuration took over: nothing more is pinned.
    pub(super) closed: bool,
    pub(super) objects: HashMap<Key, PinnedEntry>,
    /// There was no room for these, or not for all their targets. They are offered again when there is; none is in `objects`.
    pub(super) refused: HashMap<Key, RefusedObject>,
    /// The room that `objects` take up.
    pub(super) taken: Demand,
}

/// One URL under which an object is pinned, and the versions that events name.
pub(super) struct PinnedTarget {
    pub(super) target: PinTarget,
    pub(super) versions: Vec<u64>,
    pub(super) demand: Demand,
}

/// An object in the kernel: every URL under which it is pinned, and how much it is used.
pub(super) struct PinnedEntry {
    pub(super) object: ObjectId,
    pub(super) until: Option<Instant>,
    pub(super) places: Vec<PinnedTarget>,
    pub(super) used: Use,
    /// It was pinned when all was wanted of it that is wanted now.
    pub(super) anew: bool,
}

/// An object that found no room.
pub(super) struct RefusedObject {
    pub(super) demand: Demand,
    pub(super) used: Use,
    /// Others are to have the room that it had, which is free a little later.
    pub(super) aside_until: Option<Instant>,
}

impl PinnedEntry {
    pub(super) fn demand(&self) -> Demand {
        let mut demand = Demand::default();
        self.places.iter().for_each(|place| demand.give(&place.demand));
        demand.length = self.places.iter().map(|place| place.demand.length).max().unwrap_or(0);
        demand
    }
}

impl PinnedObjects {
    pub(super) fn put(&mut self, key: Key, held: PinnedEntry) {
        self.taken.give(&held.demand());
        self.objects.insert(key, held);
    }

    pub(super) fn take(&mut self, key: &Key) -> Option<PinnedEntry> {
        let held = self.objects.remove(key)?;
        self.taken.take(&held.demand());
        Some(held)
    }

    pub(super) fn is_aside(&self, key: &Key, now: Instant) -> bool {
        let until = self.refused.get(key).and_then(|waiting| waiting.aside_until);
        until.is_some_and(|until| now < until)
    }

    pub(super) fn note(&mut self, keys: &[Key], hits: &[u64]) {
        for (key, hits) in keys.iter().zip(hits) {
            if let Some(held) = self.objects.get_mut(key) {
                held.used.note(*hits);
            } else if let Some(waiting) = self.refused.get_mut(key) {
                waiting.used.note(*hits);
            }
        }
    }

    pub(super) fn weights(&self) -> Vec<Weight<Key>> {
        let weights = self.objects.iter();
        weights.map(|(key, held)| weight(key, held.demand(), &held.used)).collect()
    }

    pub(super) fn waiting(&self) -> Vec<Weight<Key>> {
        let waiting = self.refused.iter();
        waiting.map(|(key, waiting)| weight(key, waiting.demand, &waiting.used)).collect()
    }
}

fn weight(key: &Key, demand: Demand, used: &Use) -> Weight<Key> {
    Weight { key: key.clone(), demand, benefit: rebalance::benefit(used, &demand) }
}
