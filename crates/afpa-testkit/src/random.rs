//! A small seeded generator (SplitMix64), so that a failing case can be replayed by its seed alone.

/// SplitMix64: one addition and three mixes a number, every seed good.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same sequence on every machine.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed in the environment variable `AFPA_SEED`, else `default`.
    ///
    /// # Panics
    /// When the variable is set to something that is not a number.
    pub fn seed_or(default: u64) -> u64 {
        std::env::var("AFPA_SEED")
            .map_or(default, |text| text.parse().expect("AFPA_SEED is a decimal number"))
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it has no end, and a draw is no item")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0. The bias of the remainder does not matter to tests.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0);
        (self.next() % bound as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Uniform in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with the given probability; draws nothing for "never", so that switching one thing off does not
    /// change the fates of others.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.fraction() < probability
    }

    /// The index of one of `choices`, each as likely as its weight says.
    pub fn weighted(&mut self, choices: &[(&str, usize)]) -> usize {
        let mut left = self.below(choices.iter().map(|(_, weight)| weight).sum());
        choices
            .iter()
            .position(|(_, weight)| left.checked_sub(*weight).map(|rest| left = rest).is_none())
            .expect("below the sum")
    }

    /// One of `choices`, which is not empty.
    pub fn pick<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.below(choices.len())]
    }

    /// `count` bytes, all values equally likely.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn equal_seeds_give_equal_sequences() {
        let (mut one, mut two) = (Random::new(7), Random::new(7));
        assert_eq!(one.bytes(64), two.bytes(64));
        assert_ne!(one.next(), Random::new(8).next());
    }

    #[test]
    fn chances_come_true_as_often_as_they_say() {
        let mut random = Random::new(1);
        let hits = (0..100_000).filter(|_| random.chance(0.05)).count();
        assert!((4_800..5_200).contains(&hits), "{hits}");
        assert!(!random.chance(0.0));
        assert!(random.chance(1.0));
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_every_value() {
        let mut random = Random::new(1);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[random.below(5)] = true;
        }
        assert_eq!(seen, [true; 5]);
    }
}
