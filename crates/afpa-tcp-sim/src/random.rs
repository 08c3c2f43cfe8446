//! Numbers that look random and are the same again for the same seed (splitmix64).

/// The generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `from` on and below `to`.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.draw() % (to - from).max(1)
    }

    /// True in `percent` of all cases.
    pub fn chance(&mut self, percent: f64) -> bool {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64 * 100.0 < percent
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.between(0, choices.len() as u64) as usize]
    }
}
