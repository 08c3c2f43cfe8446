//! Words for people.

use super::{Results, Turn};
use crate::stats::Spread;

impl Turn {
    /// One line of progress.
    pub(super) fn line(&self) -> String {
        let head = format!("round {}, {} on {} cores: ", self.round + 1, self.server, self.cores);
        if let Some(why) = &self.failed {
            return head + "FAILED: " + why;
        }
        let busy = |of: fn(&super::Counts) -> f64| {
            let each = self.lanes.iter().map(|lane| format!("{:.0}", of(lane) * 100.0));
            each.collect::<Vec<_>>().join(" ")
        };
        let rates = self.lanes.iter().map(|lane| format!("{:.0}", lane.rate / 1e3));
        format!(
            "{head}{:.0} k/s; lanes {} k/s; server's cores {} %, clients' {} %; workers accepted {:?} and passed on {:?}; errors {}",
            self.rate() / 1e3,
            rates.collect::<Vec<_>>().join(" "),
            busy(|lane| lane.server_busy),
            busy(|lane| lane.client_busy),
            self.workers.iter().map(|(accepted, _)| accepted).collect::<Vec<_>>(),
            self.workers.iter().map(|(_, passed)| passed).collect::<Vec<_>>(),
            self.lanes.iter().map(|lane| lane.errors).sum::<u64>(),
        )
    }
}

impl Results {
    /// The curve of each server, as Markdown.
    pub fn table(&self) -> String {
        let of = |name: fn(&Turn) -> &str| {
            let mut names: Vec<&str> = Vec::new();
            for turn in &self.turns {
                if !names.contains(&name(turn)) {
                    names.push(name(turn));
                }
            }
            names
        };
        let servers = of(|turn| turn.server.as_str());
        let mut counts: Vec<usize> = self.turns.iter().map(|turn| turn.cores).collect();
        counts.sort_unstable();
        counts.dedup();
        let mut text = format!("{}\n{}\n", self.environment.line(), self.load);
        let lanes = self.lanes.iter().map(|lane| format!("{}/{}", lane.server, lane.client));
        text += &format!("cores of server/client: {}\n\n", lanes.collect::<Vec<_>>().join(" "));
        text += "| server | cores | k requests/s, median (least to most) | times one core | k/s a core \
                 | lanes, least to most | us of a core a request | p50 us | p99 us | errors |\n";
        text += "|---|---|---|---|---|---|---|---|---|---|\n";
        for server in servers {
            let single = self.rates(server, 1).map(|spread| spread.median);
            for &cores in &counts {
                text += &self.row(server, cores, single);
            }
        }
        text
    }

    fn turns<'r>(&'r self, server: &'r str, cores: usize) -> impl Iterator<Item = &'r Turn> {
        let is_it = move |turn: &&Turn| turn.server == server && turn.cores == cores;
        self.turns.iter().filter(is_it).filter(|turn| turn.failed.is_none())
    }

    fn rates(&self, server: &str, cores: usize) -> Option<Spread> {
        Spread::of(self.turns(server, cores).map(|turn| turn.rate() / 1e3))
    }

    fn row(&self, server: &str, cores: usize, single: Option<f64>) -> String {
        let Some(rate) = self.rates(server, cores) else {
            return format!("| {server} | {cores} | failed | | | | | | | |\n");
        };
        let lanes = || self.turns(server, cores).flat_map(|turn| &turn.lanes);
        let middle = |of: fn(&super::Counts) -> f64| {
            Spread::of(lanes().map(of)).map_or(0.0, |spread| spread.median)
        };
        let each = Spread::of(lanes().map(|lane| lane.rate / 1e3)).unwrap_or_default();
        let cost = |turn: &Turn| {
            let busy: f64 = turn.lanes.iter().map(|lane| lane.server_busy).sum();
            busy * 1e6 / turn.rate().max(1.0)
        };
        let cost = Spread::of(self.turns(server, cores).map(cost)).unwrap_or_default();
        format!(
            "| {server} | {cores} | {:.0} ({:.0} to {:.0}) | {} | {:.0} | {:.0} to {:.0} | {:.2} | {:.0} | {:.0} | {} |\n",
            rate.median,
            rate.min,
            rate.max,
            single.map_or(String::new(), |single| format!("{:.2}", rate.median / single)),
            rate.median / cores as f64,
            each.min,
            each.max,
            cost.median,
            middle(|lane| lane.p50_us),
            middle(|lane| lane.p99_us),
            lanes().map(|lane| lane.errors).sum::<u64>(),
        )
    }
}
