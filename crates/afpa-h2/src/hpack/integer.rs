//! Integers with a prefix (RFC 7541 section 5.1).

/// Reads an integer whose first byte has `prefix` bits of it. Returns it and how many bytes it took; `None` if the
/// bytes end within it, or if it is larger than anything that can stand in a field block.
#[inline]
pub fn read(input: &[u8], prefix: u32) -> Option<(usize, usize)> {
    let mask = (1usize << prefix) - 1;
    let first = usize::from(*input.first()?) & mask;
    if first < mask {
        return Some((first, 1));
    }
    let mut value = mask;
    // Three more bytes hold any length or index that a block can have; zeros behind them would be no number but noise.
    for (at, shift) in [(1, 0), (2, 7), (3, 14)] {
        let byte = usize::from(*input.get(at)?);
        value += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// Appends an integer; the bits of `first` above the prefix go along.
#[inline]
pub fn put(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        out.push(first | value as u8);
        return;
    }
    out.push(first | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        for (value, prefix, bytes) in
            [(10, 5, &[10][..]), (1337, 5, &[31, 154, 10]), (42, 8, &[42])]
        {
            let mut out = Vec::new();
            put(&mut out, 0, prefix, value);
            assert_eq!(out, bytes);
            assert_eq!(read(bytes, prefix), Some((value, bytes.len())));
        }
    }

    #[test]
    fn every_integer_comes_back_and_cut_ones_do_not() {
        for prefix in 4..=7 {
            for value in (0..70_000).chain([1 << 20]) {
                let mut out = Vec::new();
                put(&mut out, 0, prefix, value);
                assert_eq!(read(&out, prefix), Some((value, out.len())));
                assert_eq!(read(&out[..out.len() - 1], prefix), None);
            }
        }
    }

    #[test]
    fn a_number_without_end_is_refused() {
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00], 7), None);
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 7), None);
    }
}
