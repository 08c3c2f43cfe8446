//! Counts of every way out of the programs, summed over the processors.

pub(crate) mod counters;
mod words;

pub use counters::Counters;
pub use words::words;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_abi::{INTERFACES, REASONS_MAX, Reason, SITES_COUNTED, SiteCount};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::conn::SiteNumber;
use crate::programs::Programs;
use crate::region::Region;
use crate::stats::counters::InterfaceCounters;
use crate::unavailable::Unavailable;

/// The counts of the programs.
pub struct Stats {
    region: Arc<Region>,
    counters: MapHandle,
    site_counts: MapHandle,
    places: Mutex<InterfaceCounters>,
}

impl Stats {
    pub(crate) fn over(programs: &Programs, region: &Arc<Region>) -> Result<Self, Unavailable> {
        Ok(Self {
            region: Arc::clone(region),
            counters: programs.map("counters")?,
            site_counts: programs.map("site_counts")?,
            places: Mutex::default(),
        })
    }

    /// The counts since the fast path was loaded.
    pub fn counters(&self) -> libbpf_rs::Result<Counters> {
        let mut sum = self.read(0)?;
        for place in self.places().keys() {
            let more = self.read(place + 1)?;
            sum.0.iter_mut().zip(&more.0).for_each(|(sum, more)| *sum += more);
        }
        Ok(sum)
    }

    /// The counts of each interface since it was attached. Some reasons belong to no interface. Of interfaces
    /// whose indices are the same modulo 64, only the first has counts of its own.
    pub fn interface_counters(&self) -> libbpf_rs::Result<Vec<(u32, Counters)>> {
        let places = self.places();
        let counters = places.iter().map(|(place, (interface, before))| {
            Ok((*interface, self.read(place + 1)?.since(before)))
        });
        counters.collect()
    }

    /// Gives an interface counts of its own, if its place is free. An interface that is not attached any more leaves its
    /// place.
    pub(crate) fn count_apart(&self, interface: u32, attached: &[u32]) {
        let place = interface as usize % INTERFACES;
        let mut places = self.places();
        let taken = places.get(&place).is_some_and(|(owner, _)| attached.contains(owner));
        if taken {
            return;
        }
        let Ok(before) = self.read(place + 1) else { return };
        places.insert(place, (interface, before));
        self.region.interface(place).store(interface, Ordering::SeqCst);
    }

    /// The answers for `site` since the fast path was loaded, together with those of all sites whose numbers
    /// are the same modulo [`SITES_COUNTED`].
    pub fn site_count(&self, site: SiteNumber) -> libbpf_rs::Result<SiteCount> {
        let key = (site % SITES_COUNTED as u32).to_ne_bytes();
        let values = self.site_counts.lookup_percpu(&key, MapFlags::ANY)?.unwrap_or_default();
        let counts = values.iter().filter_map(|value| SiteCount::from_bytes(value));
        Ok(counts.fold(SiteCount::ZERO, |sum, count| SiteCount {
            whole: sum.whole + count.whole,
            not_modified: sum.not_modified + count.not_modified,
        }))
    }

    fn places(&self) -> MutexGuard<'_, InterfaceCounters> {
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
