//! Who is let in: the police of this process, with the kernel's part where there is one.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use afpa_config::Config;
use afpa_framework::clock::epoch;
use afpa_police::{Police, PoliceKernel};
use rustix::time::{ClockId, clock_gettime};

/// Police that refuse nobody yet.
pub(super) fn begin(kernel: Option<Arc<dyn PoliceKernel>>) -> Police {
    let begun = epoch().elapsed();
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let now =
        seconds.saturating_mul(1_000_000_000) + u64::try_from(time.tv_nsec).unwrap_or_default();
    let begun = u64::try_from(begun.as_nanos()).unwrap_or_default();
    Police::new(kernel, RandomState::new().hash_one(now), now.saturating_sub(begun))
}

/// From now on they decide by this configuration.
pub(super) fn configure(police: &Police, config: &Config) {
    if let Err(error) = police.configure(&config.police.all_settings()) {
        tracing::warn!(%error, "the kernel does not take [police]: AFPA itself refuses clients when they are accepted");
    }
}
