//! Variable-length integers (RFC 9000 section 16).

/// The largest number.
pub const MOST: u64 = (1 << 62) - 1;

/// Reads a number from the front. Returns it and how many bytes it took; `None` if it has not come whole.
#[inline]
pub fn read(input: &[u8]) -> Option<(u64, usize)> {
    let first = *input.first()?;
    let length = 1usize << (first >> 6);
    let rest = input.get(1..length)?;
    let value =
        rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((value, length))
}

/// Appends a number in as few bytes as it needs. Larger ones than [`MOST`] cannot be written, and none is.
#[inline]
pub fn put(out: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= MOST, "a number of 62 bits");
    let bytes = value.to_be_bytes();
    let (from, mark) = match value {
        0..=0x3f => (7, 0x00),
        0x40..=0x3fff => (6, 0x40),
        0x4000..=0x3fff_ffff => (4, 0x80),
        _ => (0, 0xc0),
    };
    let start = out.len();
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
    if let Some(first) = out.get_mut(start) {
        *first |= mark;
    }
}

/// Bytes that a number takes.
#[inline]
pub fn size(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn the_examples_of_the_rfc() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(read(bytes), Some((value, bytes.len())));
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(read(&[0x40, 0x25]), Some((37, 2)), "longer than it must be");
    }

    #[test]
    fn numbers_come_back() {
        for value in [0, 63, 64, 16_383, 16_384, 1 << 30, (1 << 30) - 1, MOST] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(read(&out), Some((value, out.len())), "{value}");
            assert_eq!(size(value), out.len(), "{value}");
        }
    }
}
