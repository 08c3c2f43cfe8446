//! Waiting for something that will come true, without a fixed sleep.

use std::time::{Duration, Instant};

/// How long a busy machine may take for work that it does at once when it is idle.
const PATIENCE: Duration = Duration::from_secs(30);

/// `time`, or as many times of it as the machine is slower than an idle one: as `AFPA_TEST_SLOWNESS` says, because an emulated
/// machine is slower than all others, or as there are threads that wait for each of its processors.
pub fn with_patience(time: Duration) -> Duration {
    let slowness = std::env::var("AFPA_TEST_SLOWNESS").ok().and_then(|times| times.parse().ok());
    time * slowness.unwrap_or(1).max(waiting())
}

/// Threads for each processor, in the last minute, as the first number of `/proc/loadavg` has it (proc_loadavg(5)).
fn waiting() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let told = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = told.split('.').next().and_then(|whole| whole.parse::<usize>().ok());
    u32::try_from(load.unwrap_or(0) / processors).map_or(1, |each| each.clamp(1, MOST_WAITING))
}

/// A test that fails must not take much longer for it.
const MOST_WAITING: u32 = 4;

/// Waits for `holds`, half a minute at most, and longer on a machine that is busy then; panics with `what` when it
/// never does.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        let waited = start.elapsed();
        assert!(
            waited < PATIENCE || waited < with_patience(PATIENCE),
            "not within {waited:?}: {what}"
        );
        std::thread::sleep(PAUSE);
    }
}

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(4);

/// Waits up to `bound` for `holds`, asking every few milliseconds, and gives the time it took.
#[track_caller]
pub fn eventually_within(bound: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    loop {
        if holds() {
            return start.elapsed();
        }
        assert!(start.elapsed() < bound, "not within {bound:?}: {what}");
        std::thread::sleep(PAUSE);
    }
}
