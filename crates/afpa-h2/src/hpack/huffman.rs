//! The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B).
//!
//! The code is canonical: among codes of one length, they count upwards in the order of their symbols. So the lengths
//! alone are the whole table, and a code is decoded by comparing it with the last one of each length.

/// Bits of the code of each byte.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The longest code of a byte.
const LONGEST: usize = 28 + 2;

/// Codes of up to so many bits are found by one look-up.
const SHORT: u32 = 8;

struct Tables {
    /// By the next 8 bits: the symbol and the length of its code; length 0 if it is longer.
    short: [(u8, u8); 1 << SHORT],
    /// Symbols in the order of their codes.
    symbols: [u8; 256],
    /// By length: the first 32-bit window that is beyond the codes of this length, as if it were filled with zeros.
    beyond: [u64; LONGEST + 1],
    /// By length: the code of its first symbol, and where that stands in `symbols`.
    first: [(u32, u16); LONGEST + 1],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        short: [(0, 0); 1 << SHORT],
        symbols: [0; 256],
        beyond: [0; LONGEST + 1],
        first: [(0, 0); LONGEST + 1],
    };
    let (mut code, mut place, mut length) = (0u32, 0usize, 1usize);
    while length <= LONGEST {
        code <<= 1;
        tables.first[length] = (code, place as u16);
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                tables.symbols[place] = symbol as u8;
                if length <= SHORT as usize {
                    let free = SHORT as usize - length;
                    let mut low = 0;
                    while low < 1 << free {
                        tables.short[((code as usize) << free) | low] =
                            (symbol as u8, length as u8);
                        low += 1;
                    }
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        tables.beyond[length] = (code as u64) << (32 - length);
        length += 1;
    }
    tables
}

/// The code is broken: it holds EOS, or ends with anything but up to 7 ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenCode;

/// Appends the bytes that `input` stands for.
///
/// # Errors
/// [`BrokenCode`].
pub fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), BrokenCode> {
    let (mut bits, mut held) = (0u64, 0u32);
    let mut rest = input;
    loop {
        while held <= 56
            && let [byte, behind @ ..] = rest
        {
            bits |= u64::from(*byte) << (56 - held);
            held += 8;
            rest = behind;
        }
        if held < SHORT && rest.is_empty() {
            return decode_last(bits, held, out);
        }
        let (symbol, length) = next(bits)?;
        if length > held {
            return padding(bits, held);
        }
        out.push(symbol);
        bits <<= length;
        held -= length;
    }
}

/// Fewer bits than a table look-up needs: at most one symbol, then padding.
fn decode_last(bits: u64, held: u32, out: &mut Vec<u8>) -> Result<(), BrokenCode> {
    // Behind the end are zeros, so a symbol that needs some of them is found to be too long.
    match next(bits) {
        Ok((symbol, length)) if length <= held => {
            out.push(symbol);
            padding(bits << length, held - length)
        }
        _ => padding(bits, held),
    }
}

/// Checks the bits behind the last symbol: the beginning of EOS, so all ones, and fewer than eight.
fn padding(bits: u64, held: u32) -> Result<(), BrokenCode> {
    let is_ones = held < 8 && (held == 0 || bits >> (64 - held) == (1 << held) - 1);
    if is_ones { Ok(()) } else { Err(BrokenCode) }
}

/// The symbol at the front of the bits, and the length of its code.
#[inline]
fn next(bits: u64) -> Result<(u8, u32), BrokenCode> {
    let (symbol, length) = TABLES.short[(bits >> (64 - SHORT)) as usize];
    if length > 0 {
        return Ok((symbol, u32::from(length)));
    }
    let window = bits >> 32;
    for length in SHORT as usize + 1..=LONGEST {
        if window < TABLES.beyond[length] {
            let (first, place) = TABLES.first[length];
            let index = (window >> (32 - length)) as u32 - first;
            let symbol = TABLES.symbols.get(usize::from(place) + index as usize);
            return symbol.map(|symbol| (*symbol, length as u32)).ok_or(BrokenCode);
        }
    }
    Err(BrokenCode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The codes by the definition of a canonical code, without the tables.
    fn encode(text: &[u8]) -> Vec<u8> {
        let mut order: Vec<usize> = (0..256).collect();
        order.sort_by_key(|&symbol| (LENGTHS[symbol], symbol));
        let mut codes = [(0u32, 0u8); 256];
        let (mut code, mut before) = (0, 0);
        for symbol in order {
            code <<= LENGTHS[symbol] - before;
            before = LENGTHS[symbol];
            codes[symbol] = (code, before);
            code += 1;
        }
        let mut bits = String::new();
        for byte in text {
            let (code, length) = codes[usize::from(*byte)];
            bits += &format!("{code:0width$b}", width = usize::from(length));
        }
        bits.push_str(&"1".repeat((8 - bits.len() % 8) % 8));
        let byte = |at: usize| u8::from_str_radix(&bits[at..at + 8], 2).unwrap();
        (0..bits.len()).step_by(8).map(byte).collect()
    }

    fn decoded(input: &[u8]) -> Result<Vec<u8>, BrokenCode> {
        let mut out = Vec::new();
        decode(input, &mut out).map(|()| out)
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (text, bytes) in [
            ("www.example.com", &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..]),
            ("no-cache", b"\xa8\xeb\x10\x64\x9c\xbf"),
            ("302", b"\x64\x02"),
            ("private", b"\xae\xc3\x77\x1a\x4b"),
        ] {
            assert_eq!(decoded(bytes).as_deref(), Ok(text.as_bytes()));
            assert_eq!(encode(text.as_bytes()), bytes, "the table is that of the RFC");
        }
    }

    #[test]
    fn eos_and_long_or_wrong_padding_are_refused() {
        assert_eq!(decoded(b"\xff\xff\xff\xff"), Err(BrokenCode), "EOS");
        assert_eq!(decoded(b"\x1f"), Ok(b"a".to_vec()), "00011, then three ones");
        assert_eq!(decoded(b"\x18"), Err(BrokenCode), "00011, then three zeros");
        assert_eq!(decoded(b"\x1f\xff"), Err(BrokenCode), "eleven ones");
        assert_eq!(decoded(b"\xff"), Err(BrokenCode), "a byte of padding alone");
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(decoded(&encode(&text)), Ok(text));
        }

        #[test]
        fn what_is_decoded_was_the_only_code_for_it(code in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(text) = decoded(&code) {
                prop_assert_eq!(encode(&text), code);
            }
        }
    }
}
