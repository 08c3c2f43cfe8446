//! Values as they lie in memory, for maps and events, which user mode gets as bytes.

/// A value that is its bytes: an integer in host byte order, an array of them, a struct without padding.
pub(crate) trait Plain {
    /// From the first bytes of `bytes`, which are enough.
    fn read(bytes: &[u8]) -> Self;
    /// To the first bytes of `bytes`, which are enough.
    fn write(&self, bytes: &mut [u8]);
}

macro_rules! integers {
    ($($kind:ident)*) => {$(
        impl Plain for $kind {
            fn read(bytes: &[u8]) -> Self {
                let mut value = [0; size_of::<Self>()];
                value.copy_from_slice(&bytes[..size_of::<Self>()]);
                Self::from_ne_bytes(value)
            }

            fn write(&self, bytes: &mut [u8]) {
                bytes[..size_of::<Self>()].copy_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

integers! { u8 u16 u32 u64 }

impl<T: Plain, const N: usize> Plain for [T; N] {
    fn read(bytes: &[u8]) -> Self {
        std::array::from_fn(|index| T::read(&bytes[index * size_of::<T>()..]))
    }

    fn write(&self, bytes: &mut [u8]) {
        for (value, place) in self.iter().zip(bytes.chunks_mut(size_of::<T>())) {
            value.write(place);
        }
    }
}
