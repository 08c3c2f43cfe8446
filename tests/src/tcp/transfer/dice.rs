//! Chance that comes again.

/// SplitMix64, so that a seed means the same everywhere.
pub(in crate::tcp) struct Dice(u64);

impl Dice {
    pub(in crate::tcp) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(in crate::tcp) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    pub(in crate::tcp) fn one<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len() as u64) as usize]
    }

    pub(super) fn weighted(&mut self, choices: &[(&str, u64)]) -> usize {
        let mut left = self.below(choices.iter().map(|(_, weight)| weight).sum());
        choices
            .iter()
            .position(|(_, weight)| left.checked_sub(*weight).map(|rest| left = rest).is_none())
            .expect("below the sum")
    }

    /// Bytes of all values, so that nothing in a body looks like a rule.
    pub(super) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.roll() as u8).collect()
    }
}
