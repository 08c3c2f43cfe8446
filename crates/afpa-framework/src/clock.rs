//! The time: as modules are given it, and the steady clock that all threads of the process agree on.

use std::sync::OnceLock;
use std::time::Instant;

/// The time, as the engine hands it in: modules do not read clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since the Unix epoch.
    pub unix_us: u64,
    /// Microseconds since [`epoch`], by a clock that never jumps and is the same for all cores.
    pub steady_us: u64,
}

impl Now {
    /// Whole seconds since the Unix epoch.
    pub const fn unix(self) -> u64 {
        self.unix_us / 1_000_000
    }

    /// Whole milliseconds of the clock that never jumps.
    pub const fn steady_ms(self) -> u64 {
        self.steady_us / 1_000
    }
}

/// The moment from which steady time is counted: that of the first call.
pub fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Milliseconds since [`epoch`], as in [`Now::steady_ms`]. For threads other than the cores; modules are
/// given the time.
pub fn steady_ms() -> u64 {
    u64::try_from(epoch().elapsed().as_millis()).unwrap_or(u64::MAX)
}
