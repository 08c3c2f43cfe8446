//! The lab's arithmetic: medians, spreads, ratios pair by pair, and when a difference is one.

use serde::{Deserialize, Serialize};

/// Lowest, middle and highest of some figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Lowest.
    pub min: f64,
    /// The middle one; of an even number, half-way between the two middle ones.
    pub median: f64,
    /// Highest.
    pub max: f64,
}

impl Spread {
    /// `None` when there are no figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[half],
            _ => (sorted[half - 1] + sorted[half]) / 2.0,
        };
        Some(Self { min, median, max })
    }
}

/// The result of a comparison of two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The first has more.
    More,
    /// The first has less.
    Less,
    /// Within the noise, or not the same way round in all rounds.
    None,
    /// Too few rounds to tell.
    Unknown,
}

/// One server's figures over another's, round by round: a cause that slows a whole round cancels out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Of the rounds' own ratios.
    pub spread: Spread,
    /// Rounds in which both were measured.
    pub rounds: usize,
    /// Whether it is a difference.
    pub verdict: Verdict,
}

/// Fewer pairs than this prove nothing.
const FEWEST_ROUNDS: usize = 3;

impl Ratio {
    /// Of pairs (round, figure) of two servers; rounds that only one of them has are left out.
    /// `noise` is what [`noise`] says for the same point.
    pub fn of(own: &[(u32, f64)], other: &[(u32, f64)], noise: Option<f64>) -> Option<Self> {
        let ratios = pairs(own, other);
        let spread = Spread::of(ratios.iter().copied())?;
        Some(Self { spread, rounds: ratios.len(), verdict: verdict(&ratios, spread, noise) })
    }
}

/// Ratios of the rounds that both have.
pub fn pairs(own: &[(u32, f64)], other: &[(u32, f64)]) -> Vec<f64> {
    own.iter()
        .filter_map(|(round, figure)| {
            let (_, base) = other.iter().find(|(theirs, _)| theirs == round)?;
            (*base > 0.0 && *figure > 0.0).then(|| figure / base)
        })
        .collect()
}

/// How far one and the same server was from itself, measured twice in a round: the largest
/// distance over the rounds, as a share (0.03: 3 %). `None` without such pairs.
pub fn noise(first: &[(u32, f64)], again: &[(u32, f64)]) -> Option<f64> {
    let distances = pairs(again, first).into_iter().map(|ratio| ratio.ln().abs().exp() - 1.0);
    distances.max_by(f64::total_cmp)
}

fn verdict(ratios: &[f64], spread: Spread, noise: Option<f64>) -> Verdict {
    if ratios.len() < FEWEST_ROUNDS {
        return Verdict::Unknown;
    }
    let within = spread.median.ln().abs() <= (1.0 + noise.unwrap_or(0.0)).ln();
    match (within, spread) {
        (false, Spread { min, .. }) if min > 1.0 => Verdict::More,
        (false, Spread { max, .. }) if max < 1.0 => Verdict::Less,
        _ => Verdict::None,
    }
}

/// The same items, beginning `by` places further on: no server always goes first.
pub fn rotated<T: Clone>(items: &[T], by: usize) -> Vec<T> {
    let mut turned = items.to_vec();
    if !turned.is_empty() {
        turned.rotate_left(by % items.len());
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers() {
        let of = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(Spread { min: 1.0, median: 2.0, max: 3.0 }));
        assert_eq!(of(&[4.0, 1.0]), Some(Spread { min: 1.0, median: 2.5, max: 4.0 }));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn pairs_are_of_one_round() {
        let own = [(1, 10.0), (2, 30.0), (4, 5.0)];
        let other = [(2, 10.0), (1, 10.0), (3, 99.0), (4, 0.0)];
        assert_eq!(pairs(&own, &other), [1.0, 3.0]);
    }

    #[test]
    fn noise_is_the_largest_distance_either_way() {
        let first = [(1, 100.0), (2, 100.0)];
        let found = noise(&first, &[(1, 102.0), (2, 80.0)]).unwrap();
        assert!((found - 0.25).abs() < 1e-9, "{found}");
        assert_eq!(noise(&first, &[]), None);
    }

    #[test]
    fn a_difference_is_beyond_noise_and_the_same_in_all_rounds() {
        let base = [(1, 100.0), (2, 100.0), (3, 100.0)];
        let verdict = |figures: [f64; 3], noise| {
            let own: Vec<_> = (1..).zip(figures).collect();
            Ratio::of(&own, &base, noise).unwrap().verdict
        };
        assert_eq!(verdict([110.0, 120.0, 115.0], Some(0.05)), Verdict::More);
        assert_eq!(verdict([110.0, 120.0, 115.0], Some(0.20)), Verdict::None);
        assert_eq!(verdict([99.0, 120.0, 115.0], Some(0.05)), Verdict::None);
        assert_eq!(verdict([90.0, 80.0, 85.0], Some(0.05)), Verdict::Less);
        assert_eq!(verdict([100.0, 100.0, 100.0], None), Verdict::None);
        let two = Ratio::of(&base[..2], &base, None).unwrap();
        assert_eq!((two.verdict, two.rounds), (Verdict::Unknown, 2));
    }

    #[test]
    fn rotation_gives_each_the_first_place() {
        assert_eq!(rotated(&["a", "b", "c"], 1), ["b", "c", "a"]);
        assert_eq!(rotated(&["a", "b", "c"], 3), ["a", "b", "c"]);
        assert!(rotated::<u8>(&[], 2).is_empty());
    }
}
