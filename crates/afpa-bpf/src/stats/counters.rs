//! One count for each reason.

use std::collections::BTreeMap;
use std::ops::Index;

use afpa_abi::Reason;

/// One count for each reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters(pub(super) Vec<u64>);

/// By place among the counters: the interface that has this place, and the counts before it was attached.
pub(crate) type InterfaceCounters = BTreeMap<usize, (u32, Counters)>;

impl Counters {
    /// Reasons and counts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().copied().zip(self.0.iter().copied())
    }

    /// Requests answered, first or again.
    pub fn answered(&self) -> u64 {
        self[Reason::Answered] + self[Reason::AnsweredNotModified]
    }

    /// The difference of these counters to `earlier` ones.
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
