//! Internet checksum sums and the path hash, as the programs compute them.

use afpa_abi::HASH_PRIME;

/// Sum of native 16-bit words, unfolded; an odd last byte counts as if a zero followed.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_ne_bytes([pair[0], *pair.get(1).unwrap_or(&0)])))
        .sum()
}

/// The sum of `bytes` at an odd offset: every byte is in the other half of its word.
pub(crate) fn sum_odd(bytes: &[u8]) -> u32 {
    let (first, rest) = bytes.split_at(bytes.len().min(1));
    u32::from(u16::from_ne_bytes([0, *first.first().unwrap_or(&0)])) + sum(rest)
}

/// Hash of a request target, as `parse_request_line` computes it: over little-endian words, the last one
/// filled up with zeros.
pub(crate) fn path_hash(seed: u64, path: &[u8]) -> u64 {
    path.chunks(8).fold(seed, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash, u64::from_le_bytes(word))
    })
}

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(HASH_PRIME);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(sum: u32) -> u16 {
        let sum = (sum & 0xffff) + (sum >> 16);
        ((sum & 0xffff) + (sum >> 16)) as u16
    }

    /// RFC 1071 section 3: the worked example, in network order.
    #[test]
    fn the_worked_example_of_the_rfc() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)).to_ne_bytes(), [0xdd, 0xf2]);
    }

    #[test]
    fn parts_add_up_wherever_they_are_cut() {
        let bytes: Vec<u8> = (0..97u8).map(|i| i.wrapping_mul(151) ^ 0x5a).collect();
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            let second = if cut % 2 == 0 { sum(second) } else { sum_odd(second) };
            assert_eq!(fold(sum(first) + second), fold(sum(&bytes)), "cut at {cut}");
        }
    }
}
