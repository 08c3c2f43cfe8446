//! From turns to what is said about them: medians and spread, ratios and their verdicts.

use std::collections::BTreeMap;

use crate::bed::{JUMBO, is_impaired};
use crate::results::{AGAIN, Cost, Doubt, Held, Point, Results, Turn};
use crate::stats::{Ratio, Spread, noise};

/// All points of a run, in the order in which they were measured first.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The server whose ratios to the others are reported.
    pub subject: String,
    /// The points.
    pub points: Vec<PointSummary>,
}

/// One point: the same load on all servers.
#[derive(Debug, Clone)]
pub struct PointSummary {
    /// Which.
    pub point: Point,
    /// How far a server was from itself, as a share; `None` when none was measured twice.
    pub noise: Option<f64>,
    /// The servers, in the order of the command line.
    pub rows: Vec<Row>,
}

/// One server at one point. Turns that failed are counted and not used.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub server: String,
    /// Requests a second.
    pub rate: Spread,
    /// Body bytes a second.
    pub bytes: Spread,
    /// Microseconds of the server's core for a request.
    pub cost: Spread,
    /// Medians of its parts.
    pub parts: Cost,
    /// Median over the rounds of the latency's median, 99th and 99.9th percentile, in microseconds.
    pub latency: [f64; 3],
    /// Turns that count, and those that failed.
    pub turns: [usize; 2],
    /// Doubts about at least half of the turns that count.
    pub doubts: Vec<Doubt>,
    /// The subject's requests a second over this server's.
    pub ratio: Option<Ratio>,
    /// This server's cost a request over the subject's.
    pub cost_ratio: Option<Ratio>,
    /// Median of the bytes of its processes, where they were looked at.
    pub memory: Option<f64>,
    /// Median of the seconds until it accepted connections.
    pub start: Option<f64>,
}

impl Summary {
    /// Of all turns.
    pub fn of(results: &Results) -> Self {
        let subject = subject(results);
        let mut points: Vec<Point> = Vec::new();
        for turn in &results.turns {
            if !points.contains(&turn.point) {
                points.push(turn.point.clone());
            }
        }
        let summarise = |point| PointSummary::of(results, point, &subject);
        Self { points: points.into_iter().map(summarise).collect(), subject }
    }

    /// The points, without those that another generator measured for comparison.
    pub fn main_points(&self) -> impl Iterator<Item = &PointSummary> {
        let first = |one: &PointSummary| self.points.iter().find(|p| p.point.is_like(&one.point));
        self.points
            .iter()
            .filter(move |one| first(one).is_some_and(|first| first.point == one.point))
    }

    /// Groups the main points by the key that `same` makes; points without a key are left out.
    pub fn grouped<K: Ord>(
        &self,
        same: impl Fn(&PointSummary) -> Option<K>,
    ) -> BTreeMap<K, Vec<&PointSummary>> {
        let mut groups: BTreeMap<K, Vec<&PointSummary>> = BTreeMap::new();
        for point in self.main_points() {
            if let Some(key) = same(point) {
                groups.entry(key).or_default().push(point);
            }
        }
        groups
    }

    /// The subject's ratio to a server at a load, on the bed that is least favourable to the
    /// subject; with the bed's name. Beds that are impaired on purpose are apart from the others, and so is that of long frames.
    pub fn quoted(&self, load: &Point, server: &str) -> Option<(Ratio, &str)> {
        lowest(self.beds(load).filter_map(|one| Some((one.row(server)?.ratio?, one.bed()))))
    }

    /// The same for a server that is not the subject.
    pub fn quoted_of(
        &self,
        results: &Results,
        own: &str,
        load: &Point,
        server: &str,
    ) -> Option<(Ratio, &str)> {
        let ratios = self.beds(load).filter_map(|one| {
            let turns: Vec<&Turn> =
                results.turns.iter().filter(|turn| turn.point == one.point).collect();
            let of = |name| rounds(&turns, name, Turn::rate);
            Some((Ratio::of(&of(own), &of(server), one.noise)?, one.bed()))
        });
        lowest(ratios)
    }

    /// The load on each bed.
    fn beds(&self, load: &Point) -> impl Iterator<Item = &PointSummary> {
        self.points.iter().filter(|one| {
            let point = &one.point;
            point.workload == load.workload
                && point.generator == load.generator
                && point.persistent == load.persistent
                && point.connections == load.connections
                && point.rate == load.rate
                && is_impaired(&point.bed) == is_impaired(&load.bed)
                && (point.bed == JUMBO) == (load.bed == JUMBO)
        })
    }
}

impl PointSummary {
    fn of(results: &Results, point: Point, subject: &str) -> Self {
        let turns: Vec<&Turn> = results.turns.iter().filter(|turn| turn.point == point).collect();
        let again = turns.iter().find_map(|turn| turn.server.strip_suffix(AGAIN));
        let noise = again.and_then(|name| {
            let twice = format!("{name}{AGAIN}");
            noise(&rounds(&turns, name, Turn::rate), &rounds(&turns, &twice, Turn::rate))
        });
        let names = results.servers.iter().map(|server| server.name.as_str());
        let rows = names.filter_map(|name| Row::of(&turns, name, subject, noise)).collect();
        Self { point, noise, rows }
    }

    fn bed(&self) -> &str {
        &self.point.bed
    }

    /// A server's row.
    pub fn row(&self, server: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.server == server)
    }
}

impl Row {
    fn of(turns: &[&Turn], server: &str, subject: &str, noise: Option<f64>) -> Option<Self> {
        let own: Vec<&Turn> = turns.iter().filter(|turn| turn.server == server).copied().collect();
        let valid: Vec<&Turn> = own.iter().filter(|t| t.failure.is_none()).copied().collect();
        let spread = |of: fn(&Turn) -> f64| Spread::of(valid.iter().map(|turn| of(turn)));
        let median = |of: fn(&Turn) -> f64| spread(of).map_or(0.0, |spread| spread.median);
        let of = |name, figure| rounds(turns, name, figure);
        let cost: fn(&Turn) -> f64 = |turn| turn.cost.total();
        let held = |of: fn(Held) -> f64| {
            let spread = Spread::of(valid.iter().filter_map(|turn| turn.held).map(of));
            spread.map(|spread| spread.median)
        };
        let other = server != subject;
        let tells_cost = turns.iter().all(|turn| crate::bed::tells_cost(&turn.point.bed));
        let ratio = Ratio::of(&of(subject, Turn::rate), &of(server, Turn::rate), noise);
        let cost_ratio = Ratio::of(&of(server, cost), &of(subject, cost), noise);
        Some(Self {
            server: server.to_owned(),
            rate: spread(Turn::rate)?,
            bytes: spread(Turn::bytes_per_second)?,
            cost: spread(cost)?,
            parts: Cost {
                user: median(|turn| turn.cost.user),
                system: median(|turn| turn.cost.system),
                interrupts: median(|turn| turn.cost.interrupts),
            },
            latency: [
                median(|turn| turn.measured.latency.p50),
                median(|turn| turn.measured.latency.p99),
                median(|turn| turn.measured.latency.p999),
            ],
            turns: [valid.len(), own.len() - valid.len()],
            doubts: doubts(&valid),
            ratio: ratio.filter(|_| other),
            cost_ratio: cost_ratio.filter(|_| other && tells_cost),
            memory: held(|held| held.memory as f64),
            start: held(|held| held.start),
        })
    }

    /// The generator, and not the server, decided the rate: it is at least this.
    pub fn is_client_bound(&self) -> bool {
        self.doubts.contains(&Doubt::ClientBound)
    }
}

fn lowest<'s>(ratios: impl Iterator<Item = (Ratio, &'s str)>) -> Option<(Ratio, &'s str)> {
    ratios.min_by(|(one, _), (other, _)| one.spread.median.total_cmp(&other.spread.median))
}

/// AFPA with the kernel's help if it was measured, else AFPA, else the first server of the command line.
fn subject(results: &Results) -> String {
    let names: Vec<&str> = results.servers.iter().map(|server| server.name.as_str()).collect();
    let kernel = names.iter().find(|name| **name == "afpa-kernel");
    let afpa = kernel.or_else(|| names.iter().find(|name| name.starts_with("afpa")));
    afpa.or(names.first()).map(|name| (*name).to_owned()).unwrap_or_default()
}

fn rounds(turns: &[&Turn], server: &str, of: fn(&Turn) -> f64) -> Vec<(u32, f64)> {
    let own = turns.iter().filter(|turn| turn.server == server && turn.failure.is_none());
    own.map(|turn| (turn.round, of(turn))).collect()
}

/// Doubts that at least half of the turns have.
fn doubts(turns: &[&Turn]) -> Vec<Doubt> {
    let mut counts: BTreeMap<Doubt, usize> = BTreeMap::new();
    for doubt in turns.iter().flat_map(|turn| &turn.doubts) {
        *counts.entry(*doubt).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| count * 2 >= turns.len()).map(|(d, _)| d).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::{Busy, ServerRecord};
    use crate::stats::Verdict;

    /// Turns of servers at one point, by hand.
    pub(crate) fn results(figures: &[(&str, &[f64])]) -> Results {
        let mut results = crate::results::tests::empty();
        for (server, rates) in figures {
            if !server.ends_with(AGAIN) {
                results.servers.push(ServerRecord {
                    name: (*server).into(),
                    about: "a server".into(),
                    version: "1".into(),
                    command: "serve".into(),
                    configuration: None,
                });
            }
            for (round, rate) in (1..).zip(*rates) {
                results.turns.push(turn(server, round, *rate));
            }
        }
        results
    }

    pub(crate) fn turn(server: &str, round: u32, rate: f64) -> Turn {
        let measured = afpa_generator::Measured {
            seconds: 1.0,
            requests: rate as u64,
            body_bytes: rate as u64 * 512,
            ..Default::default()
        };
        Turn {
            point: Point {
                bed: "steered".into(),
                workload: "webstone-512".into(),
                generator: "tc".into(),
                persistent: true,
                connections: 64,
                rate: None,
            },
            server: server.into(),
            round,
            measured,
            cost: Cost { user: 1.0, system: 2.0, interrupts: 1e6 / rate },
            busy: Busy::default(),
            doubts: Vec::new(),
            failure: None,
            held: None,
        }
    }

    #[test]
    fn afpa_is_compared_with_each_of_the_others() {
        let again = format!("nginx{AGAIN}");
        let results = results(&[
            ("nginx", &[100.0, 100.0, 90.0]),
            ("afpa-kernel", &[1000.0, 1100.0, 900.0]),
            (&again, &[104.0, 100.0, 90.0]),
        ]);
        let summary = Summary::of(&results);
        assert_eq!(summary.subject, "afpa-kernel");
        let point = &summary.points[0];
        assert!((point.noise.unwrap() - 0.04).abs() < 1e-9);
        assert_eq!(point.rows.len(), 2);
        let nginx = point.row("nginx").unwrap();
        let ratio = nginx.ratio.unwrap();
        assert_eq!((ratio.spread.min, ratio.spread.max), (10.0, 11.0));
        assert_eq!(ratio.verdict, Verdict::More);
        assert_eq!(point.row("afpa-kernel").unwrap().ratio, None);
    }

    #[test]
    fn turns_that_failed_are_used_nowhere() {
        let mut results = results(&[("afpa", &[10.0, 10.0, 10.0]), ("nginx", &[5.0, 5.0, 99.0])]);
        results.turns.last_mut().unwrap().failure = Some("short read".into());
        let summary = Summary::of(&results);
        let nginx = summary.points[0].row("nginx").unwrap();
        assert_eq!((nginx.rate.max, nginx.turns), (5.0, [2, 1]));
        assert_eq!(nginx.ratio.unwrap().verdict, Verdict::Unknown);
    }

    #[test]
    fn the_less_favourable_bed_is_quoted() {
        let mut results = results(&[("afpa", &[40.0; 3]), ("nginx", &[10.0; 3])]);
        for (server, rate) in [("afpa", 30.0), ("nginx", 10.0)] {
            for round in 1..=3 {
                let mut other = turn(server, round, rate);
                other.point.bed = "unsteered".into();
                results.turns.push(other);
            }
        }
        let summary = Summary::of(&results);
        let (ratio, bed) = summary.quoted(&summary.points[0].point, "nginx").unwrap();
        assert_eq!((ratio.spread.median, bed), (3.0, "unsteered"));
    }

    #[test]
    fn an_impaired_bed_is_quoted_by_itself() {
        let mut results = results(&[("afpa", &[40.0; 3]), ("nginx", &[10.0; 3])]);
        for turn in &mut results.turns {
            turn.point.bed = "steered-impaired".into();
        }
        for (server, rate) in [("afpa", 30.0), ("nginx", 10.0)] {
            results.turns.extend((1..=3).map(|round| turn(server, round, rate)));
        }
        let summary = Summary::of(&results);
        let quoted = |point: usize| summary.quoted(&summary.points[point].point, "nginx").unwrap();
        assert_eq!((quoted(0).0.spread.median, quoted(0).1), (4.0, "steered-impaired"));
        assert_eq!((quoted(1).0.spread.median, quoted(1).1), (3.0, "steered"));
    }

    #[test]
    fn doubts_count_when_half_of_the_turns_have_them() {
        let mut results = results(&[("nginx", &[10.0, 10.0, 10.0])]);
        results.turns[0].doubts = vec![Doubt::Disturbed];
        assert!(Summary::of(&results).points[0].rows[0].doubts.is_empty());
        results.turns[1].doubts = vec![Doubt::Disturbed];
        assert_eq!(Summary::of(&results).points[0].rows[0].doubts, [Doubt::Disturbed]);
    }
}
