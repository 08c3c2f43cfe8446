//! Counts of every way out of the programs, summed over the processors.

use std::ops::Index;

use afpa_abi::Reason;
use libbpf_rs::{MapCore, MapFlags};

use crate::load::FastPath;

/// One count a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters(Vec<u64>);

impl FastPath {
    /// The counts since the fast path was loaded.
    pub fn counters(&self) -> libbpf_rs::Result<Counters> {
        Reason::ALL.iter().map(|reason| self.count(*reason)).collect::<Result<_, _>>().map(Counters)
    }

    fn count(&self, reason: Reason) -> libbpf_rs::Result<u64> {
        let key = (reason as u32).to_ne_bytes();
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
