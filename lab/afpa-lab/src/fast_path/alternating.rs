//! The cost of the programs, measured by taking them away and putting them back while one server is busy.
//!
//! Two measurements of a server differ by more than the cost that this module looks for: other memory, another
//! moment. So the programs come and go within one measurement, in slices too short for the machine to change, in
//! the order there, away, away, there: a steady change of the machine cancels out. The server's core is full, and every
//! response is as long as the next, so that bytes sent are responses, and time for a byte is cost.

use std::time::{Duration, Instant};

use afpa_netlab::{Bed, CoreTimes};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use super::cases::AlternatingCase;
use super::downloads::download;
use super::hooks::{Hooks, bytes_sent, links_of};
use super::turn::{Lengths, OnBed, Turns, ask};
use crate::stats::Spread;

/// Attaching changes code, which interrupts all cores: no bytes are counted for so long.
const SETTLE: Duration = Duration::from_millis(4);
const SLICE: Duration = Duration::from_millis(20);
/// Whether the programs are there.
const ORDER: [bool; 4] = [true, false, false, true];
/// Of the server's core.
const MOST_IDLE: f64 = 0.05;
const PATIENCE: Duration = Duration::from_secs(30);
/// Load before the slices begin, at the most.
const MARGIN: Duration = Duration::from_secs(5);
/// A server that sends less in a second is not busy yet.
const BUSY_BYTES: u64 = 20 << 20;
const BUSY_IDLE: Duration = Duration::from_millis(100);

/// Seconds for a byte in each slice of [`ORDER`].
pub(super) type Group = [f64; 4];

/// The relative cost that the programs add; 0.05 is five per cent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Added {
    /// The median of all groups.
    pub median: f64,
    /// The mean of all groups.
    pub mean: f64,
    /// A quarter of the groups is below.
    pub quarter: f64,
    /// A quarter of the groups is above.
    pub three_quarters: f64,
    /// The standard error of the mean.
    pub error: f64,
    /// The number of groups.
    pub groups: usize,
}

/// Groups of slices, for `seconds`.
pub(super) fn measure(
    turns: &Turns<'_>,
    asked: &AlternatingCase,
    seconds: Duration,
) -> Result<(Vec<Group>, String)> {
    let case = &asked.case;
    let load = case.tc().context("the load is made in TC")?;
    let server = case.servers.first().context("a server")?;
    turns.on_bed(case, load, server, |on_bed| {
        let lengths = Lengths { warm_up: Duration::ZERO, measured: seconds + MARGIN };
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| match asked.by_sockets {
                true => download(on_bed, case, load.bed.cores().1, lengths.measured),
                false => ask(on_bed, case, load, lengths).map(|_| ()),
            });
            let warm_up = Duration::from_secs_f64(case.warm_up);
            let groups =
                on_bed.bed.server().run(|| groups(on_bed, asked.passing_on, warm_up, seconds))?;
            // The load ends by itself, and leaves no connection behind.
            let loaded = loading.join().map_err(|_| anyhow::anyhow!("the load panicked"))?;
            let groups = groups?;
            loaded?;
            Ok((groups, on_bed.running.command()))
        })
    })
}

fn groups(
    on_bed: &OnBed<'_>,
    passing_on: bool,
    warm_up: Duration,
    seconds: Duration,
) -> Result<Vec<Group>> {
    let process = on_bed.running.main_process().context("a process")?;
    ensure!(!links_of(process).is_empty(), "nothing is attached");
    wait_until_busy()?;
    std::thread::sleep(warm_up);
    let mut hooks = Hooks::take(Bed::DEVICE, process, passing_on)?;
    let (mut groups, began, idle) = (Vec::new(), Instant::now(), idle()?);
    while began.elapsed() < seconds {
        let mut group = Group::default();
        for (cost, there) in group.iter_mut().zip(ORDER) {
            *cost = slice(&mut hooks, there)?;
        }
        groups.push(group);
    }
    let share = (self::idle()?.saturating_sub(idle)).as_secs_f64() / began.elapsed().as_secs_f64();
    ensure!(share <= MOST_IDLE, "the server's core was idle for {:.0} %", share * 100.0);
    Ok(groups)
}

/// Seconds for a byte.
fn slice(hooks: &mut Hooks, there: bool) -> Result<f64> {
    hooks.put(there)?;
    std::thread::sleep(SETTLE);
    let (before, began) = (hooks.sent()?, Instant::now());
    std::thread::sleep(SLICE);
    let (took, sent) = (began.elapsed(), hooks.sent()? - before);
    ensure!(sent > 0, "nothing was sent");
    Ok(took.as_secs_f64() / sent as f64)
}

fn wait_until_busy() -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let (sent, idle) = (bytes_sent(Bed::DEVICE)?, idle()?);
        std::thread::sleep(Duration::from_millis(500));
        let more = bytes_sent(Bed::DEVICE)? - sent;
        if more > BUSY_BYTES / 2 && self::idle()?.saturating_sub(idle) < BUSY_IDLE / 2 {
            return Ok(());
        }
    }
    bail!("the server did not become busy")
}

/// Of the server's core.
fn idle() -> Result<Duration> {
    Ok(CoreTimes::of_core(0)?.idle)
}

/// The relative cost that the programs add, from the costs of each group.
pub(super) fn added(groups: &[Group]) -> Result<Added> {
    let ratio = |[there, away, gone, again]: &Group| (there + again) / (away + gone) - 1.0;
    let mut values: Vec<f64> = groups.iter().map(ratio).collect();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    ensure!(count > 1, "too few slices");
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let deviation = (squares / (count - 1) as f64).sqrt();
    Ok(Added {
        median: Spread::of(values.iter().copied()).map_or(mean, |spread| spread.median),
        mean,
        quarter: values[count / 4],
        three_quarters: values[count * 3 / 4],
        error: deviation / (count as f64).sqrt(),
        groups: count,
    })
}

impl Added {
    /// For people.
    pub fn words(&self) -> String {
        format!(
            "{:+.1} % (half of {} groups {:+.1} to {:+.1}, standard error {:.1})",
            self.median * 100.0,
            self.groups,
            self.quarter * 100.0,
            self.three_quarters * 100.0,
            self.error * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drifts_evenly_adds_nothing() {
        let groups = [[1.0, 1.1, 1.2, 1.3], [2.0, 1.9, 1.8, 1.7]];
        assert!(added(&groups).unwrap().median.abs() < 1e-9);
    }

    #[test]
    fn quarters_and_the_error_are_told() {
        let groups = [[3.0, 1.0, 1.0, 1.0], [1.1, 1.0, 1.0, 1.1], [1.0; 4]];
        let words = added(&groups).unwrap().words();
        assert_eq!(words, "+10.0 % (half of 3 groups +0.0 to +100.0, standard error 31.8)");
        assert!(added(&groups[..1]).is_err());
    }
}
