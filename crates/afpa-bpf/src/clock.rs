//! Heartbeat and Date: see `bpf/include/afpa/clock.h`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use afpa_abi::{DATE_LENGTH, Date};
use rustix::time::{ClockId, clock_gettime};

use crate::cache::pin::Objects;
use crate::cache::pinned::Pinned;
use crate::net::sum::{sum, sum_odd};
use crate::region::Region;
use crate::time::monotonic_ns;

/// The programs' heartbeat, and their clock.
pub struct Clock {
    region: Arc<Region>,
    /// Taken while the kernel's objects change. A change that hangs leaves answers in the kernel that may be out of date:
    /// then no heartbeat lets it go on.
    changing: Arc<Mutex<Pinned>>,
}

impl Clock {
    pub(crate) fn over(region: &Arc<Region>, objects: &Objects) -> Self {
        Self { region: Arc::clone(region), changing: objects.changing() }
    }

    /// Tells the programs that user mode is alive, and the time. To be called at least once a second, best
    /// shortly after each second begins. Answers stop two seconds after the second of the last call began.
    pub fn beat(&self) {
        let _no_change = self.changing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
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

fn date(second: u64) -> Date {
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
    let mut date = Date { second, ..Date::default() };
    date.text[..DATE_LENGTH].copy_from_slice(text.as_bytes());
    date.sum_even = sum(&date.text[..DATE_LENGTH]);
    date.sum_odd = sum_odd(&date.text[..DATE_LENGTH]);
    date
}
