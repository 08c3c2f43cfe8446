//! Heartbeat and Date: see `bpf/include/afpa/clock.h`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use afpa_abi::{DATE_LENGTH, Date, TICK_SHIFT};
use rustix::time::{ClockId, clock_gettime};

use crate::net::sum::{sum, sum_odd};
use crate::region::Region;

/// The programs' heartbeat, and their clock.
pub struct Clock {
    region: Arc<Region>,
    beating: Mutex<()>,
}

impl Clock {
    pub(crate) fn over(region: &Arc<Region>) -> Self {
        Self { region: Arc::clone(region), beating: Mutex::default() }
    }

    /// Tells the programs that user mode is alive, and the time. To be called at least once a second, best
    /// shortly after each second begins. Answers stop two seconds after the second of the last call began.
    pub fn beat(&self) {
        let _one_at_a_time = self.beating.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let real = clock_gettime(ClockId::Realtime);
        let second = real.tv_sec as u64;
        let now = monotonic_ns();
        let began = now - (real.tv_nsec as u64).min(now);
        self.region.put_date(date(second));
        self.region.put_date(date(second + 1));
        self.region.pulse().store((began & !255) | (second & 255), Ordering::SeqCst);
    }

    /// Stops answering at once. Translation goes on; the next [`beat`](Self::beat) starts answering again.
    pub fn pause(&self) {
        self.region.pulse().store(0, Ordering::SeqCst);
    }
}

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

fn date(second: u64) -> Date {
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
    let mut date = Date { second, ..Date::default() };
    date.text[..DATE_LENGTH].copy_from_slice(text.as_bytes());
    date.sum_even = sum(&date.text[..DATE_LENGTH]);
    date.sum_odd = sum_odd(&date.text[..DATE_LENGTH]);
    date
}
