//! Traces from a seeded generator, the same on every machine.
#![allow(dead_code)]

use afpa_cache::policy::replay::Request;

/// One request for an object of size 1.
pub(crate) fn unit(key: u64) -> Request {
    Request::new(key, 1)
}

/// One request for a file of SPECweb96: four classes from 0.1 KB to 900 KB, each nine sizes, asked for in the ratio
/// 35 : 50 : 14 : 1.
pub(crate) fn specweb96(directories: &Zipf, random: &mut Random) -> Request {
    let class = match random.below(100) {
        0..35 => 0,
        35..85 => 1,
        85..99 => 2,
        _ => 3,
    };
    let (directory, file) = (directories.draw(random), random.below(9));
    Request::new((directory * 4 + class) * 9 + file, (file + 1) * 100 * 10u64.pow(class as u32))
}

/// Draws ranks with probabilities proportional to `1 / rank^skew`.
pub(crate) struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(ranks: u64, skew: f64) -> Zipf {
        let mut sum = 0.0;
        let weights = (1..=ranks).map(|rank| {
            sum += (rank as f64).powf(-skew);
            sum
        });
        Zipf { cumulative: weights.collect() }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        let all = self.cumulative.last().copied().unwrap_or_default();
        let point = all * (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        self.cumulative.partition_point(|&sum| sum <= point) as u64
    }
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

/// News: each page of 1 KB is asked for three times, while it is new, and never again.
pub(crate) fn news(requests: u64, first: u64, between: u64) -> Vec<Request> {
    let page = |turn: u64| {
        let age = turn % 3;
        Request::new(first + (turn / 3).saturating_sub(age * between), 1_000)
    };
    (0..requests).map(page).collect()
}

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
