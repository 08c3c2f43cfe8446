//! The table by which the program computes the tag of a Retry: products with the constant of RFC 9001, section 5.8.

use afpa_abi::quic::{QUIC_TABLE, QuicTable};

/// AES-128 under the constant key of 16 bytes of 0: the constant by which GHASH multiplies.
const H: u128 = 0x7295_6a45_4ffa_ff54_85a1_3a12_44d0_1d47;

/// For half a byte at each of 32 places its product, two words each (NIST SP 800-38D, section 6.3: the first bit is the lowest
/// power).
pub fn table() -> QuicTable {
    let mut powers = [0; 128];
    let mut power = H;
    for slot in &mut powers {
        *slot = power;
        power = if power & 1 == 0 { power >> 1 } else { power >> 1 ^ 0xe1 << 120 };
    }
    let mut table = QuicTable { words: [0; QUIC_TABLE] };
    for (at, pair) in table.words.chunks_exact_mut(2).enumerate() {
        let (place, half) = (at / 16, at % 16);
        let bits = (0..4).filter(|bit| half >> (3 - bit) & 1 == 1);
        let product = bits.filter_map(|bit| powers.get(place * 4 + bit)).fold(0, |a, b| a ^ b);
        pair.copy_from_slice(&[(product >> 64) as u64, product as u64]);
    }
    table
}
