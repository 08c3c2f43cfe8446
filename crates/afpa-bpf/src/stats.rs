//! Counts of every way out of the programs, summed over the processors.

use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use afpa_abi::{INTERFACES, REASONS_MAX, Reason, SITES_COUNTED, SiteCount};
use libbpf_rs::{MapCore, MapFlags};

use crate::conn::listen::SiteNumber;
use crate::load::FastPath;

/// One count a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters(Vec<u64>);

/// Places of the counters that belong to interfaces, or did: the interface, and what was counted there
/// before it came.
pub(crate) type Places = BTreeMap<usize, (u32, Counters)>;

impl FastPath {
    /// The counts since the fast path was loaded.
    pub fn counters(&self) -> libbpf_rs::Result<Counters> {
        let mut sum = self.read(0)?;
        for place in self.places().keys() {
            let more = self.read(place + 1)?;
            sum.0.iter_mut().zip(&more.0).for_each(|(sum, more)| *sum += more);
        }
        Ok(sum)
    }

    /// The counts of each interface since the programs were put on it. Not all reasons belong to one, and
    /// of interfaces whose numbers are the same modulo 64 only the first is counted apart.
    pub fn interface_counters(&self) -> libbpf_rs::Result<Vec<(u32, Counters)>> {
        let places = self.places();
        let counters = places.iter().map(|(place, (interface, before))| {
            Ok((*interface, self.read(place + 1)?.since(before)))
        });
        counters.collect()
    }

    /// Counts an interface apart from now on, if its place is free. One that is gone leaves its own.
    pub(crate) fn count_apart(&self, interface: u32) {
        let place = interface as usize % INTERFACES;
        let mut places = self.places();
        let taken = places.get(&place).is_some_and(|(owner, _)| self.interfaces().contains(owner));
        if taken {
            return;
        }
        let Ok(before) = self.read(place + 1) else { return };
        places.insert(place, (interface, before));
        self.region.interface(place).store(interface, Ordering::SeqCst);
    }

    /// The answers of all sites whose numbers are the same as `site`'s modulo [`SITES_COUNTED`], since the
    /// fast path was loaded.
    pub fn site_count(&self, site: SiteNumber) -> libbpf_rs::Result<SiteCount> {
        let key = (site % SITES_COUNTED as u32).to_ne_bytes();
        let values = self.site_counts.lookup_percpu(&key, MapFlags::ANY)?.unwrap_or_default();
        let counts = values.iter().filter_map(|value| SiteCount::from_bytes(value));
        Ok(counts.fold(SiteCount::ZERO, |sum, count| SiteCount {
            whole: sum.whole + count.whole,
            not_modified: sum.not_modified + count.not_modified,
        }))
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, place: usize) -> libbpf_rs::Result<Counters> {
        let count = |reason: &Reason| self.count(place, *reason);
        Reason::ALL.iter().map(count).collect::<Result<_, _>>().map(Counters)
    }

    fn count(&self, place: usize, reason: Reason) -> libbpf_rs::Result<u64> {
        let key = ((place * REASONS_MAX) as u32 + reason as u32).to_ne_bytes();
        let values = self.counters.lookup_percpu(&key, MapFlags::ANY)?.unwrap_or_default();
        Ok(values
            .iter()
            .filter_map(|value| value.first_chunk())
            .map(|bytes| u64::from_ne_bytes(*bytes))
            .sum())
    }
}

impl Counters {
    /// Reasons and counts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().copied().zip(self.0.iter().copied())
    }

    /// Requests answered, first or again.
    pub fn answered(&self) -> u64 {
        self[Reason::Answered] + self[Reason::AnsweredNotModified]
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self(self.0.iter().zip(&earlier.0).map(|(now, then)| now.saturating_sub(*then)).collect())
    }
}

impl Index<Reason> for Counters {
    type Output = u64;

    fn index(&self, reason: Reason) -> &u64 {
        &self.0[reason as usize]
    }
}
