//! Optional numbers in the space of numbers: there are several of them for each stored response.

/// An optional number of seconds, of which the largest counts as the one below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Optional<T>(T);

macro_rules! optional {
    ($number:ty) => {
        impl From<Option<$number>> for Optional<$number> {
            fn from(number: Option<$number>) -> Self {
                Self(number.map_or(0, |number| number.saturating_add(1)))
            }
        }

        impl Optional<$number> {
            /// The number, if there is one.
            pub fn get(self) -> Option<$number> {
                self.0.checked_sub(1)
            }
        }
    };
}

optional!(u32);
optional!(u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_back_or_none_does() {
        for number in [None, Some(0), Some(1), Some(u32::MAX - 1)] {
            assert_eq!(Optional::from(number).get(), number);
        }
        assert_eq!(Optional::from(Some(u64::MAX)).get(), Some(u64::MAX - 1));
        assert_eq!(Optional::<u64>::default().get(), None);
        assert_eq!((size_of::<Optional<u32>>(), size_of::<Optional<u64>>()), (4, 8));
    }
}
