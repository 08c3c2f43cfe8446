//! The steady clock that all threads of the process agree on.

use std::sync::OnceLock;
use std::time::Instant;

/// The moment from which steady time is counted: that of the first call.
pub fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Milliseconds since [`epoch`], as in [`Now::steady_ms`](crate::Now::steady_ms). For threads that are
/// no core; modules are given the time.
pub fn steady_ms() -> u64 {
    u64::try_from(epoch().elapsed().as_millis()).unwrap_or(u64::MAX)
}
