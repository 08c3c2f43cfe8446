//! The memory of a server, and how soon it is there.

use std::fs;

use serde::{Deserialize, Serialize};

/// Beside the figures of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// Seconds from the server's start until it accepted connections; servers behind it included.
    pub start: f64,
    /// Bytes of its processes after the measurement; pages that processes share count once (PSS). Tables of programs in
    /// the kernel are no process's.
    pub memory: u64,
}

/// Bytes of some processes; of one that is gone, or that may not be looked at, none.
pub(crate) fn memory(processes: &[i32]) -> u64 {
    let of = |process: &i32| fs::read_to_string(format!("/proc/{process}/smaps_rollup"));
    processes.iter().filter_map(|process| of(process).ok()).map(|text| shared_once(&text)).sum()
}

/// The line `Pss:` of /proc/PID/smaps_rollup, in bytes.
fn shared_once(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_each_process_counts() {
        assert_eq!(shared_once("Rss:  12 kB\nPss:        34 kB\nPss_Dirty:  5 kB\n"), 34 << 10);
        assert_eq!(shared_once("nothing"), 0);
        let own = std::process::id() as i32;
        assert!(memory(&[own, i32::MAX]) > 100 << 10);
    }
}
