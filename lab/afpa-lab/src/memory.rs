//! Memory of processes.

use std::fs;

use anyhow::{Context, Result};

/// Bytes of a process; of pages that several processes share, each has its part (PSS).
pub(crate) fn of(process: i32) -> Result<u64> {
    let path = format!("/proc/{process}/smaps_rollup");
    let text = fs::read_to_string(&path).with_context(|| path)?;
    Ok(kilobytes(&text, "Pss:") * 1024)
}

/// Bytes of some processes; of one that is gone, or that may not be looked at, none.
pub(crate) fn of_those_there(processes: &[i32]) -> u64 {
    processes.iter().filter_map(|process| of(*process).ok()).sum()
}

/// A figure of a file of the kernel that counts in kilobytes; 0 where it does not stand.
pub(crate) fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory() {
        let own = i32::try_from(std::process::id()).expect("a small number");
        assert!(of(own).expect("a figure") > 100_000);
        assert!(of(i32::MAX).is_err());
        assert!(of_those_there(&[own, i32::MAX]) > 100_000);
        assert_eq!(kilobytes("Rss: 10 kB\nPss:   7 kB\nPss_Dirty:  5 kB\n", "Pss:"), 7);
        assert_eq!(kilobytes("", "Pss:"), 0);
    }
}
