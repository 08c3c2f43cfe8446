//! The Internet checksum (RFC 1071).

/// Ones' complement sum of the pieces' 16-bit words in network order, folded. Every piece but the last has an
/// even length. Data that carries its checksum sums up to `0xffff`.
pub fn sum(pieces: &[&[u8]]) -> u16 {
    let word = |pair: &[u8]| u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    let mut sum: u64 = pieces.iter().flat_map(|piece| piece.chunks(2)).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn carries_are_added_and_an_odd_end_is_padded() {
        // The example of RFC 1071, section 3.
        assert_eq!(sum(&[&[0, 1, 0xf2, 3], &[0xf4, 0xf5, 0xf6, 0xf7]]), 0xddf2);
        assert_eq!(sum(&[&[0xff, 0xff], &[1]]), 0x0100);
    }
}
