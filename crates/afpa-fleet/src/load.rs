//! The errors and times of a machine.

use serde::{Deserialize, Serialize};

/// The answers of a machine in its last minute, or since it has taken its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// All of them.
    pub answers: u64,
    /// Those with a status of class 5.
    pub failed: u64,
    /// Those of servers, which are timed.
    pub timed: u64,
    /// Microseconds that 99 of 100 of these did not exceed.
    pub p99_us: u64,
}

impl Load {
    /// Of two machines together: the sums, and the time of the slower one.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            answers: self.answers.saturating_add(other.answers),
            failed: self.failed.saturating_add(other.failed),
            timed: self.timed.saturating_add(other.timed),
            p99_us: self.p99_us.max(other.p99_us),
        }
    }

    /// Errors in thousandths of the answers.
    pub fn errors(&self) -> u64 {
        self.failed.saturating_mul(1000) / self.answers.max(1)
    }
}
