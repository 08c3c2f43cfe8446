//! A made-up log with the habits of real ones.
//!
//! The distributions are those that Barford and Crovella found in traces (*Generating
//! Representative Web Workloads*, 1998): file sizes log-normal with a Pareto tail, popularity by
//! Zipf's law, pages with a Pareto number of embedded files, Pareto silence between pages. How many
//! visits there are at a time, how long a visit is, and the shares of pictures, of 304 and of 404 are
//! chosen, not taken from anywhere.

use afpa_netlab::inject::Random;

use super::Entry;

/// How a log is made up.
#[derive(Debug, Clone)]
pub struct SyntheticLog {
    /// The same seed, the same log.
    pub seed: u64,
    /// Requests.
    pub entries: usize,
    /// Different files.
    pub files: usize,
    /// Visits that begin per second.
    pub visits_per_second: f64,
}

impl Default for SyntheticLog {
    fn default() -> Self {
        Self { seed: 1, entries: 60_000, files: 2_000, visits_per_second: 20.0 }
    }
}

/// Body of the distribution of sizes: mean and deviation of the logarithm.
const LOG_MEAN: f64 = 9.357;
const LOG_DEVIATION: f64 = 1.318;
/// Its tail: share of files, least size, exponent.
const TAIL: f64 = 0.07;
const TAIL_LEAST: f64 = 133_000.0;
const TAIL_EXPONENT: f64 = 1.1;
/// A file is not larger.
const LARGEST: f64 = 8e6;
/// Files of a page, exponent; seconds between pages, exponent.
const EMBEDDED_EXPONENT: f64 = 2.43;
const SILENCE_EXPONENT: f64 = 1.5;
/// The limits of a visitor: embedded files of a page, and seconds between pages.
const MOST_EMBEDDED: f64 = 30.0;
const LONGEST_SILENCE: f64 = 300.0;
/// Probability that a visit goes on after a page.
const ANOTHER_PAGE: f64 = 0.7;
/// Shares of requests that were answered by 304 and by 404.
const UNCHANGED: f64 = 0.15;
const ABSENT: f64 = 0.01;
/// Of ten files, so many are pictures.
const PICTURES: usize = 6;
/// Saturday, 1 September 2001, 00:00:00 UTC.
const BEGIN: f64 = 999_302_400.0;

impl SyntheticLog {
    /// The log, sorted by time.
    pub fn make(&self) -> Vec<Entry> {
        let mut maker = Maker {
            random: Random::new(self.seed),
            sizes: Vec::new(),
            popularity: Vec::new(),
            entries: Vec::new(),
        };
        maker.sizes = (0..self.files.max(1)).map(|_| size(&mut maker.random)).collect();
        let mut sum = 0.0;
        let add = |rank: usize| {
            sum += 1.0 / rank as f64;
            sum
        };
        maker.popularity = (1..=maker.sizes.len()).map(add).collect();
        let (mut time, mut number) = (BEGIN, 0);
        // The last visits to begin are complete only in part, so more begin than are needed.
        while maker.entries.len() < self.entries + self.entries / 4 {
            time += -(1.0 - maker.random.fraction()).ln() / self.visits_per_second.max(1e-3);
            maker.visit(number, time);
            number += 1;
        }
        maker.entries.sort_by_key(|entry| entry.time);
        maker.entries.truncate(self.entries);
        maker.entries
    }
}

struct Maker {
    random: Random,
    sizes: Vec<u64>,
    /// Zipf's law, summed up.
    popularity: Vec<f64>,
    entries: Vec<Entry>,
}

impl Maker {
    fn visit(&mut self, number: u32, mut time: f64) {
        let client = format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
        loop {
            let embedded = pareto(&mut self.random, 1.0, EMBEDDED_EXPONENT).min(MOST_EMBEDDED);
            for _ in 0..embedded as usize {
                self.ask(&client, time);
                time += self.random.fraction() * 0.5;
            }
            if !self.random.chance(ANOTHER_PAGE) {
                break;
            }
            time += pareto(&mut self.random, 1.0, SILENCE_EXPONENT).min(LONGEST_SILENCE);
        }
    }

    fn ask(&mut self, client: &str, time: f64) {
        let whole = self.popularity.last().copied().unwrap_or(1.0);
        let drawn = self.random.fraction() * whole;
        let file = self.popularity.partition_point(|sum| *sum <= drawn);
        let size = self.sizes.get(file).copied().unwrap_or(0);
        let (path, status, bytes) = match self.random.fraction() {
            share if share < ABSENT => (format!("/gone/{file}.html"), 404, 300),
            share if share < ABSENT + UNCHANGED => (path(file), 304, 0),
            _ => (path(file), 200, size),
        };
        self.entries.push(Entry { client: client.into(), time: time as i64, path, status, bytes });
    }
}

fn path(file: usize) -> String {
    let extension = if file % 10 < PICTURES { "gif" } else { "html" };
    format!("/site/{}/{file}.{extension}", file % 16)
}

fn size(random: &mut Random) -> u64 {
    let size = if random.chance(TAIL) {
        pareto(random, TAIL_LEAST, TAIL_EXPONENT)
    } else {
        // Box and Muller.
        let radius = (-2.0 * (1.0 - random.fraction()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * random.fraction()).cos();
        (LOG_MEAN + LOG_DEVIATION * normal).exp()
    };
    size.clamp(1.0, LARGEST) as u64
}

fn pareto(random: &mut Random, least: f64, exponent: f64) -> f64 {
    least / (1.0 - random.fraction()).powf(1.0 / exponent)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::sessions;
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_log() {
        let small = SyntheticLog { entries: 500, ..SyntheticLog::default() };
        assert_eq!(small.make(), small.make());
        assert_ne!(small.make(), SyntheticLog { seed: 2, ..small.clone() }.make());
        assert_eq!(small.make().len(), 500);
    }

    #[test]
    fn sizes_have_their_median_and_their_tail() {
        let mut random = Random::new(1);
        let mut sizes: Vec<u64> = (0..20_000).map(|_| size(&mut random)).collect();
        sizes.sort_unstable();
        // e^9.357 is 11.6 KB; the tail moves the median up a little.
        assert!((11_000..14_500).contains(&sizes[10_000]), "{}", sizes[10_000]);
        let tail = sizes.iter().filter(|size| **size >= TAIL_LEAST as u64).count();
        assert!((1_400..2_300).contains(&tail), "{tail}");
        assert!(sizes[19_999] <= LARGEST as u64);
    }

    #[test]
    fn few_files_are_most_of_the_requests_and_connections_hold_several() {
        let log = SyntheticLog::default().make();
        let mut asked: HashMap<&str, u32> = HashMap::new();
        for entry in log.iter().filter(|entry| entry.status == 200) {
            *asked.entry(&entry.path).or_default() += 1;
        }
        let mut counts: Vec<u32> = asked.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (top, all): (u32, u32) = (counts.iter().take(200).sum(), counts.iter().sum());
        let share = f64::from(top) / f64::from(all);
        assert!((0.6..0.85).contains(&share), "a tenth of the files has {share}");
        let each = log.len() as f64 / sessions(&log).len() as f64;
        assert!((2.0..8.0).contains(&each), "{each} requests a connection");
        let unchanged = log.iter().filter(|entry| entry.status == 304).count() as f64;
        assert!((unchanged / log.len() as f64 - UNCHANGED).abs() < 0.01);
    }
}
