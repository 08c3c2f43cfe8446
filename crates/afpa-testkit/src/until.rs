//! Waiting for something that will come true, without a fixed sleep.

use std::time::{Duration, Instant};

/// How long a busy machine may take for work that it does at once when it is idle.
const PATIENCE: Duration = Duration::from_secs(30);

/// `time`, or as many times of it as `AFPA_TEST_SLOWNESS` says: an emulated machine is slower than all others.
pub fn with_patience(time: Duration) -> Duration {
    let slowness = std::env::var("AFPA_TEST_SLOWNESS").ok().and_then(|times| times.parse().ok());
    time * slowness.unwrap_or(1)
}

/// Waits for `holds`, half a minute at most; panics with `what` when it never does.
#[track_caller]
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    eventually_within(with_patience(PATIENCE), what, holds);
}

/// Waits up to `bound` for `holds`, asking every few milliseconds, and gives the time it took.
#[track_caller]
pub fn eventually_within(bound: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    loop {
        if holds() {
            return start.elapsed();
        }
        assert!(start.elapsed() < bound, "not within {bound:?}: {what}");
        std::thread::sleep(Duration::from_millis(4));
    }
}
