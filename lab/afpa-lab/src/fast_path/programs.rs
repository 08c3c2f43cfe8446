//! The time that the programs take, as the kernel counts it (`kernel.bpf_stats_enabled`).
//!
//! While it counts, each run costs some 40 ns more, so this has measurements of its own.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::descriptors::{descriptors, fields};

const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// While it lives, the kernel counts.
pub(super) struct Counting {
    before: String,
}

/// Nanoseconds and runs of each program so far, by its id.
pub(super) type Times = BTreeMap<u32, (u64, u64)>;

impl Counting {
    pub(super) fn begin() -> Result<Self> {
        let before = fs::read_to_string(SWITCH).context(SWITCH)?;
        fs::write(SWITCH, "1\n").context(SWITCH)?;
        Ok(Self { before })
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        if let Err(error) = fs::write(SWITCH, &self.before) {
            eprintln!("afpa-lab: {SWITCH}: {error}");
        }
    }
}

/// The times of one process's programs; empty when it is gone.
pub(super) fn times(process: u32) -> Times {
    descriptors(process).iter().filter_map(|text| time(text)).collect()
}

fn time(text: &str) -> Option<(u32, (u64, u64))> {
    let fields = fields(text);
    let number = |name: &str| fields.get(name)?.parse::<u64>().ok();
    let id = u32::try_from(number("prog_id")?).ok()?;
    Some((id, (number("run_time_ns")?, number("run_cnt")?)))
}

/// Nanoseconds of a request between the first and the last look, all programs together. Each request is one
/// segment at ingress, and no program runs more often than that.
pub(super) fn each(looks: &[Times]) -> Result<f64> {
    ensure!(looks.len() >= 2, "the programs could not be watched");
    let (first, last) = (&looks[0], &looks[looks.len() - 1]);
    let since = |id: &u32, (spent, runs): &(u64, u64)| {
        let (before, earlier) = first.get(id).copied().unwrap_or_default();
        (spent.saturating_sub(before), runs.saturating_sub(earlier))
    };
    let found: Vec<(u64, u64)> = last.iter().map(|(id, figures)| since(id, figures)).collect();
    let spent: u64 = found.iter().map(|(spent, _)| spent).sum();
    let runs = found.iter().map(|(_, runs)| *runs).max().unwrap_or(0).max(1);
    Ok(spent as f64 / runs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_one_run_of_the_program_that_ran_most() {
        let before = Times::from([(1, (0, 0)), (2, (0, 0))]);
        let after = Times::from([(1, (300_000, 1000)), (2, (50_000, 500)), (3, (7, 7))]);
        assert!((each(&[before.clone(), after]).unwrap() - 350.007).abs() < 1e-9);
        assert!(each(&[before]).is_err());
    }

    #[test]
    fn the_kernels_figures_are_read() {
        let text = "prog_type:\t3\nprog_id:\t17\nrun_time_ns:\t900\nrun_cnt:\t3\n";
        assert_eq!(time(text), Some((17, (900, 3))));
        assert_eq!(time("pos:\t0\n"), None);
    }
}
