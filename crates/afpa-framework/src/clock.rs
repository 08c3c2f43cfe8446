//! The time: as modules are given it, and the steady clock that all threads of the process agree on.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The time, as the engine hands it in: modules do not read clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since the Unix epoch.
    pub unix_us: u64,
    /// Microseconds since [`began`], by a clock that never jumps and is the same for all cores.
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

/// Time since the host was started, with the time for which it was suspended (`CLOCK_BOOTTIME`), because stored
/// responses grow old meanwhile. The programs in the kernel read the same clock.
pub fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds.into())
}

/// The moment from which steady time is counted, as [`since_boot`]: that of the first call.
pub fn began() -> Duration {
    static BEGAN: OnceLock<Duration> = OnceLock::new();
    *BEGAN.get_or_init(since_boot)
}

/// Steady time: since [`began`], as in [`Now::steady_us`].
pub fn steady() -> Duration {
    let began = began();
    since_boot().saturating_sub(began)
}

/// Milliseconds of [`steady`], as in [`Now::steady_ms`]. For threads other than the cores; modules are given the time.
pub fn steady_ms() -> u64 {
    u64::try_from(steady().as_millis()).unwrap_or(u64::MAX)
}

/// Microseconds between two times, as far as a record can hold them: some 71 minutes.
pub fn duration_us(from_unix_us: u64, to_unix_us: u64) -> u32 {
    u32::try_from(to_unix_us.saturating_sub(from_unix_us)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux counts the time of a suspension in its uptime, which therefore differs from other clocks on a host that
    /// was suspended.
    #[test]
    fn it_is_the_clock_that_goes_on_while_the_host_is_suspended() {
        let Ok(uptime) = std::fs::read_to_string("/proc/uptime") else {
            return println!("SKIP: no /proc/uptime");
        };
        let uptime: f64 = uptime.split(' ').next().and_then(|text| text.parse().ok()).unwrap();
        let now = since_boot().as_secs_f64();
        assert!((now - uptime).abs() < 5.0, "{now} {uptime}");
        let (first, second) = (steady(), steady());
        assert!(first <= second && began() <= since_boot());
    }
}
