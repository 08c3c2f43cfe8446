//! The papers' findings about several processors, judged by these figures. No clock, no process, no file.

use super::Results;
use crate::stats::{Spread, pairs};

/// So much of a number of the papers is enough; and a gain may be so far from theirs, as a share of it.
const ABOUT: f64 = 0.9;
const HALF: f64 = 0.5;
/// A second processor's gain on SPECweb96, and one accelerated processor to four of a server in user mode.
const SECOND: f64 = 0.3;
const ONE_TO_FOUR: f64 = 1.5;
/// The most that a lock for each entry gains over one for the whole cache.
const ENTRIES: f64 = 0.4;

impl Results {
    /// A line for each of the findings whose numbers of cores were measured.
    pub fn findings(&self) -> Vec<String> {
        let load = &self.load;
        let second = self.ratio(("kernel", 2), ("kernel", 1)).map(|ratio| {
            let told = second(ratio);
            format!(
                "A second processor gains 30 % on SPECweb96. Here ({load}): {} as fast: {told}",
                words(ratio)
            )
        });
        let four = self.ratio(("kernel", 1), ("nginx", 4)).map(|ratio| {
            let told = one_to_four(ratio);
            format!(
                "One processor with AFPA is 50 % faster than four with a user-mode server. Here ({load}, nginx): {} as fast: {told}",
                words(ratio)
            )
        });
        let most = self.turns.iter().map(|turn| turn.cores).max().unwrap_or(0);
        let entries = self.ratio(("pool", most), ("pool-one-lock", most)).filter(|_| most > 1);
        let entries = entries.map(|ratio| {
            let told = entries_locked(ratio);
            format!(
                "Locking an entry of the cache and not all of it gains up to 40 %. Here ({load}, {most} cores, a pool of threads): {} as fast: {told}",
                words(ratio)
            )
        });
        second.into_iter().chain(four).chain(entries).collect()
    }

    /// The rates of a server on some cores over those of another, round by round.
    fn ratio(&self, own: (&str, usize), other: (&str, usize)) -> Option<Spread> {
        let of = |(server, cores): (&str, usize)| -> Vec<(u32, f64)> {
            let turns = self.turns.iter().filter(|turn| turn.failed.is_none());
            let turns = turns.filter(|turn| turn.server == server && turn.cores == cores);
            turns.map(|turn| (turn.round as u32, turn.rate())).collect()
        };
        Spread::of(pairs(&of(own), &of(other)))
    }
}

fn second(ratio: Spread) -> &'static str {
    let gained = ratio.median - 1.0;
    match ratio.min > 1.0 {
        true if (SECOND * HALF..=SECOND * (1.0 + HALF)).contains(&gained) => "it holds",
        true => "it holds in part, by another gain",
        false => "it does not hold",
    }
}

fn one_to_four(ratio: Spread) -> &'static str {
    match ratio.min > 1.0 {
        true if ratio.median >= ONE_TO_FOUR * ABOUT => "it holds",
        true => "it holds in part",
        false => "it does not hold",
    }
}

/// "Up to" speaks of a gain that can be had: half of it shows that, and any shows a part of it.
fn entries_locked(ratio: Spread) -> &'static str {
    match ratio.min > 1.0 {
        true if ratio.median - 1.0 >= ENTRIES * HALF => "it holds",
        true => "it holds in part, by less",
        false => "it does not hold",
    }
}

fn words(ratio: Spread) -> String {
    format!("{:.2} times ({:.2} to {:.2})", ratio.median, ratio.min, ratio.max)
}

#[cfg(test)]
mod tests {
    use super::super::{Counts, Turn};
    use super::*;
    use crate::environment::Environment;

    fn turn(server: &str, cores: usize, round: usize, rate: f64) -> Turn {
        let lane = Counts {
            rate,
            p50_us: 1.0,
            p99_us: 1.0,
            errors: 0,
            server_busy: 1.0,
            client_busy: 1.0,
            user: 0.0,
            system: 1.0,
        };
        let (server, lanes) = (server.to_owned(), vec![lane]);
        Turn { server, cores, round, lanes, workers: Vec::new(), failed: None }
    }

    fn told(turns: Vec<Turn>) -> Vec<String> {
        let environment = Environment::default();
        let load = "512 bytes".to_owned();
        Results { environment, lanes: Vec::new(), load, turns }.findings()
    }

    #[test]
    fn a_second_processor_gains_as_much_or_more_or_nothing() {
        let both = |rates: [f64; 2]| {
            let of =
                |round, rate| [turn("kernel", 1, round, 100.0), turn("kernel", 2, round, rate)];
            told(rates.into_iter().enumerate().flat_map(|(round, rate)| of(round, rate)).collect())
        };
        assert_eq!(
            both([130.0, 132.0]),
            [
                "A second processor gains 30 % on SPECweb96. Here (512 bytes): 1.31 times (1.30 to 1.32) as fast: it holds"
            ]
        );
        assert!(both([190.0, 200.0])[0].ends_with(": it holds in part, by another gain"));
        assert!(both([95.0, 140.0])[0].ends_with(": it does not hold"));
    }

    #[test]
    fn one_accelerated_processor_is_faster_than_four_or_not() {
        let both = |kernel, nginx| {
            told(vec![turn("kernel", 1, 0, kernel), turn("nginx", 4, 0, nginx)]).remove(0)
        };
        assert!(both(160.0, 100.0).ends_with("1.60 times (1.60 to 1.60) as fast: it holds"));
        assert!(both(110.0, 100.0).ends_with(": it holds in part"));
        assert!(both(90.0, 100.0).ends_with(": it does not hold"));
    }

    #[test]
    fn a_lock_for_each_entry_gains_or_not_where_there_are_cores() {
        let both = |cores, rates: [f64; 2]| {
            let of = |(round, rate)| {
                [turn("pool", cores, round, rate), turn("pool-one-lock", cores, round, 100.0)]
            };
            told(rates.into_iter().enumerate().flat_map(of).collect())
        };
        assert!(both(2, [125.0, 130.0])[0].ends_with("(1.25 to 1.30) as fast: it holds"));
        assert!(both(2, [104.0, 106.0])[0].ends_with(": it holds in part, by less"));
        assert!(both(2, [97.0, 140.0])[0].ends_with(": it does not hold"));
        assert!(both(1, [125.0, 130.0]).is_empty());
    }

    #[test]
    fn other_numbers_of_cores_say_nothing() {
        assert!(told(vec![turn("kernel", 1, 0, 1.0), turn("nginx", 2, 0, 1.0)]).is_empty());
        let failed = Turn { failed: Some("gone".into()), ..turn("kernel", 2, 0, 1.0) };
        assert!(told(vec![turn("kernel", 1, 0, 1.0), failed]).is_empty());
    }
}
