//! Progress lines of a run.

use std::time::Instant;

use afpa_lab::results::Turn;
use afpa_lab::run::Watch;
use afpa_lab::units::number;

use super::say::say;

/// A line for each measurement.
pub(super) struct Progress {
    begun: Instant,
    measured: usize,
}

impl Progress {
    /// A run begins.
    pub(super) fn new() -> Self {
        Self { begun: Instant::now(), measured: 0 }
    }
}

impl Watch for Progress {
    fn turn(&mut self, turn: &Turn, done: usize, all: usize) {
        self.measured += 1;
        let each = self.begun.elapsed().as_secs_f64() / self.measured as f64;
        let left = each * all.saturating_sub(done) as f64;
        let point = &turn.point;
        let marks: String = turn.doubts.iter().map(|doubt| doubt.mark()).collect();
        let figures = match &turn.failure {
            Some(reason) => format!("FAILED {reason}"),
            None => format!(
                "{:>10} {:>10}  p99 {:>8}  {:>6.2} us a request {marks}",
                number(turn.rate(), "/s"),
                number(turn.bytes_per_second(), "B/s"),
                number(turn.measured.latency.p99 / 1e6, "s"),
                turn.cost.total()
            ),
        };
        let kind = if point.persistent { "" } else { " one each" };
        say!(
            "[{done}/{all}, {:.0} min left] round {} {:<9} {:<18} {}{kind} x{} {figures}",
            left / 60.0,
            turn.round,
            point.bed,
            turn.server,
            point.workload,
            point.connections
        );
    }

    fn say(&mut self, line: &str) {
        say!("{line}");
    }
}
