//! A small seeded generator: the same seed gives the same fates.

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The sequence that belongs to a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it has no end, and a draw is no item")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with the given probability; draws nothing for "never", so that switching one
    /// impairment off does not change the fates that the others deal.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.fraction() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_come_true_as_often_as_they_say() {
        let mut random = Random::new(1);
        let hits = (0..100_000).filter(|_| random.chance(0.05)).count();
        assert!((4_800..5_200).contains(&hits), "{hits}");
        assert!(!random.chance(0.0));
        assert!(random.chance(1.0));
    }
}
