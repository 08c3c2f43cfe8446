//! The clocks that the programs read.

use afpa_abi::TICK_SHIFT;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the clock that the programs read.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds of the clock that they count ages by, which goes on while the host is suspended.
pub fn boot_ns() -> u64 {
    nanoseconds(ClockId::Boottime)
}

/// Coarse monotonic time in the programs' unit, 2^20 nanoseconds; they keep its lower half.
pub(crate) fn ticks() -> u64 {
    nanoseconds(ClockId::MonotonicCoarse) >> TICK_SHIFT
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
