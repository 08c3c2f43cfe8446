//! A set of segments, as two words: what the programs in the kernel can hold and search cheaply.

use crate::MAX_SEGMENTS;

/// A set of segment numbers below [`MAX_SEGMENTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bits(u128);

impl Bits {
    /// Whether `segment` is in the set.
    pub const fn has(self, segment: u8) -> bool {
        (segment as u32) < MAX_SEGMENTS && self.0 & bit(segment) != 0
    }

    /// Adds `segment`.
    pub fn set(&mut self, segment: u8) {
        self.0 |= bit(segment);
    }

    /// Takes `segment` out.
    pub fn clear(&mut self, segment: u8) {
        self.0 &= !bit(segment);
    }

    /// How many there are.
    pub const fn count(self) -> u16 {
        self.0.count_ones() as u16
    }

    /// The lowest one.
    pub const fn first(self) -> Option<u8> {
        if self.0 == 0 { None } else { Some(self.0.trailing_zeros() as u8) }
    }

    /// The highest one.
    pub const fn last(self) -> Option<u8> {
        if self.0 == 0 { None } else { Some((MAX_SEGMENTS - 1 - self.0.leading_zeros()) as u8) }
    }

    /// All segments from `from` on and below `to`.
    pub const fn range(from: u8, to: u8) -> Self {
        Self(below(to) & !below(from))
    }

    /// Those of `self` that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those in both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those in either.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as two words, the lower segments first.
    pub const fn words(self) -> [u64; 2] {
        [self.0 as u64, (self.0 >> 64) as u64]
    }

    /// The members, lowest first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let first = rest.first()?;
            rest.clear(first);
            Some(first)
        })
    }
}

const fn bit(segment: u8) -> u128 {
    if (segment as u32) < MAX_SEGMENTS { 1 << segment } else { 0 }
}

const fn below(segment: u8) -> u128 {
    if (segment as u32) < MAX_SEGMENTS { (1 << segment) - 1 } else { u128::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_behave_like_sets() {
        let mut set = Bits::default();
        assert_eq!((set.first(), set.last(), set.count()), (None, None, 0));
        for segment in [3, 0, 127, 64] {
            set.set(segment);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 3, 64, 127]);
        assert_eq!((set.first(), set.last(), set.count()), (Some(0), Some(127), 4));
        set.clear(0);
        assert!(!set.has(0) && set.has(3) && !set.has(200));
        assert_eq!(set.and(Bits::range(3, 64)).iter().collect::<Vec<_>>(), [3]);
        assert_eq!(set.without(Bits::range(0, 128)), Bits::default());
        assert_eq!(Bits::range(5, 5), Bits::default());
        assert_eq!(Bits::range(0, 128).count(), 128);
        set.set(200);
        assert_eq!(set.count(), 3, "numbers beyond the room change nothing");
    }
}
