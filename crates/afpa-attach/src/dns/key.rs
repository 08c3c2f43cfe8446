//! Keys of questions: the programs' `dns/derive.h` in Rust, which a test compares with it. No I/O.

use std::sync::Arc;

use afpa_bpf::dns::abi::{
    DNS_NAME_MAX, DNS_NAME_WORDS, DNS_QUERY_MAX, DNS_RULE_BITS, DNS_TAIL_BITS, DNS_WAYS,
    DNS_ZONE_BITS, DnsReport, DnsSeed, Reason, dns_bit,
};

const RD: u16 = 0x0100;
const AD: u16 = 0x0020;
const CD: u16 = 0x0010;
pub(crate) const HEADER: usize = 12;
const TYPE_CLASS: usize = 4;
pub(crate) const OPT: usize = 11;
/// An option with a client's cookie; with the server's, too.
pub(crate) const COOKIE: usize = 12;
const WHOLE_COOKIE: usize = 28;
const UDP: usize = 8;
/// Types whose answers are never given by a program: IXFR, AXFR, ANY.
const LEFT: [u16; 3] = [251, 252, 255];

/// A question with everything that decides about its answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Wire form, lower case.
    pub name: Arc<[u8]>,
    /// Its type.
    pub kind: u16,
    /// `dns_bit`.
    pub bits: u8,
    /// The number of the address that was asked.
    pub server: u32,
}

/// A query as the programs read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Everything that decides about the answer.
    pub key: Key,
    /// Bytes that the client takes.
    pub buffer: u16,
    /// The name was not in lower case.
    pub mixed: bool,
}

/// Reads a query, sent to the address with this number; `knows_cookies`: those of the server can be checked.
///
/// # Errors
/// The reason for which the programs leave it to the server.
pub fn derive(message: &[u8], server: u32, knows_cookies: bool) -> Result<Question, Reason> {
    let word = |at: usize| {
        let two = message.get(at..at + 2).and_then(|two| two.try_into().ok());
        two.map_or(0, u16::from_be_bytes)
    };
    if message.len() < HEADER + 1 + TYPE_CLASS || message.len() + UDP > DNS_QUERY_MAX {
        return Err(Reason::PassLength);
    }
    let (flags, additionals) = (word(2), word(10));
    let counts = [word(4), word(6), word(8)];
    if flags & !(RD | AD | CD) != 0 || counts != [1, 0, 0] || additionals > 1 {
        return Err(Reason::PassHeader);
    }
    let opt = if additionals == 1 {
        Some(find_opt(message, knows_cookies).ok_or(Reason::PassEdns)?)
    } else {
        None
    };
    let behind = TYPE_CLASS + opt.map_or(0, <[u8]>::len);
    let length = match message.len().checked_sub(HEADER + behind) {
        None | Some(0) => return Err(Reason::PassLength),
        Some(length) if length > DNS_NAME_MAX => return Err(Reason::PassName),
        Some(length) => length,
    };
    let at = HEADER + length;
    let (kind, class) = (word(at), word(at + 2));
    if class != 1 || LEFT.contains(&kind) {
        return Err(Reason::PassType);
    }
    let set = |is: bool, bit: u8| if is { bit } else { 0 };
    let mut bits = set(flags & RD != 0, dns_bit::RD)
        | set(flags & AD != 0, dns_bit::AD)
        | set(flags & CD != 0, dns_bit::CD);
    let mut buffer = 512;
    if let Some(&[_, _, _, s1, s2, extended, version, f1, f2, ref options @ ..]) = opt {
        buffer = u16::from_be_bytes([s1, s2]);
        if [extended, version, f1 & 0x7f, f2] != [0; 4] || buffer < 512 {
            return Err(Reason::PassEdns);
        }
        let cookie = set(options.len() > 2, dns_bit::COOKIE);
        bits |= dns_bit::EDNS | set(f1 != 0, dns_bit::DO) | cookie;
    }
    let name = message.get(HEADER..at).unwrap_or_default();
    let key = key(name, kind, bits, server).ok_or(Reason::PassName)?;
    Ok(Question { key, buffer, mixed: name.iter().any(u8::is_ascii_uppercase) })
}

/// The OPT record at the end: without options, or with a cookie, the server's only if that is known.
fn find_opt(message: &[u8], knows_cookies: bool) -> Option<&[u8]> {
    let end = |length: usize| {
        let at = message.len().checked_sub(length)?;
        message.get(at..).filter(|_| at >= HEADER + 1 + TYPE_CLASS)
    };
    let without = end(OPT).filter(|opt| matches!(opt, [0, 0, 41, .., 0, 0]));
    let with = |length: usize| {
        end(OPT + length).filter(|opt| {
            let options = opt.get(9..15);
            let head = [0, length as u8, 0, 10, 0, length as u8 - 4];
            opt.starts_with(&[0, 0, 41]) && options == Some(&head)
        })
    };
    let whole = || if knows_cookies { with(WHOLE_COOKIE) } else { None };
    without.or_else(|| with(COOKIE)).or_else(whole)
}

/// The key of a name in wire form; None: the name is too long, or none.
pub fn key(name: &[u8], kind: u16, bits: u8, server: u32) -> Option<Key> {
    let fits = (1..=DNS_NAME_MAX).contains(&name.len());
    fits.then(|| Key { name: name.to_ascii_lowercase().into(), kind, bits, server })
}

/// The key of a report; None: it is about none.
pub fn reported(report: &DnsReport) -> Option<Key> {
    let name = report.name.get(..usize::from(report.name_length))?;
    key(name, u16::from_be(report.r#type), report.bits, report.server)
}

/// A name in wire form for people: labels with dots; bytes that are none of letters, digits, `-` and `_` as numbers.
pub fn show(name: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = name;
    while let Some((&length, more)) = rest.split_first()
        && length > 0
        && let Some((label, more)) = more.split_at_checked(usize::from(length))
    {
        for byte in label {
            match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'*') {
                true => text.push(char::from(*byte)),
                false => text.push_str(&format!("\\{byte:03}")),
            }
        }
        text.push('.');
        rest = more;
    }
    if text.is_empty() { ".".into() } else { text }
}

/// A name as people write it in wire form; None: it is no name.
pub fn read(text: &str) -> Option<Vec<u8>> {
    let mut name = Vec::new();
    for label in text.trim_end_matches('.').split('.').filter(|_| !matches!(text, "" | ".")) {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        name.push(length);
        name.extend(label.to_ascii_lowercase().bytes());
    }
    name.push(0);
    (name.len() <= 255).then_some(name)
}

/// Whether a name in wire form is another one, or below it.
pub fn is_below(name: &[u8], above: &[u8]) -> bool {
    let mut rest = name;
    loop {
        if rest == above {
            return true;
        }
        match parent(rest) {
            Some(parent) => rest = parent,
            None => return false,
        }
    }
}

/// The name without its first label; None: it is the root.
pub fn parent(name: &[u8]) -> Option<&[u8]> {
    match name.first() {
        None | Some(0) => None,
        Some(length) => name.get(1 + usize::from(*length)..),
    }
}

/// The hash of a key, as the programs make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash {
    /// Stands with the pinned word.
    pub check: u64,
    /// The places where the key may be pinned.
    set: u32,
    /// Stands in the pinned word.
    pub mark: u32,
}

impl Hash {
    /// By the secret `seed`. Multilinear: strongly universal in the upper 33 bits of each of three sums (Lemire and Kaser, *Strongly
    /// universal string hashing is fast*, 2014).
    pub fn of(key: &Key, seed: &DnsSeed) -> Self {
        let length = key.name.len() as u64;
        let first = u64::from(key.kind.to_be())
            | length << 16
            | u64::from(key.bits) << 24
            | u64::from(key.server) << 32;
        let words = key
            .name
            .chunks(8)
            .map(|bytes| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        let words: Vec<u64> = std::iter::once(first).chain(words).collect();
        let last = words.len().saturating_sub(2).min(DNS_NAME_WORDS - 1);
        let sum = |at: usize| {
            let begin = seed.begin.get(3 * last + at).copied().unwrap_or(0);
            words.iter().zip(seed.factors.chunks(6)).fold(begin, |sum, (word, factors)| {
                let factor = |which: usize| factors.get(2 * at + which).copied().unwrap_or(0);
                let (low, high) = (word & 0xffff_ffff, word >> 32);
                let product =
                    factor(0).wrapping_add(low).wrapping_mul(factor(1).wrapping_add(high));
                sum.wrapping_add(product)
            })
        };
        let (one, two, three) = (sum(0), sum(1), sum(2));
        Self {
            check: one >> 32 << 32 | two >> 32,
            set: (three >> 50) as u32,
            mark: (three >> 24 & 0x3ff_ffff) as u32,
        }
    }

    /// Where the key may be pinned.
    pub fn places(self) -> std::ops::Range<usize> {
        let first = self.set as usize * DNS_WAYS;
        first..first + DNS_WAYS
    }

    /// A pinned answer in one word.
    pub fn word(self, tail: u32, zone: u32, rule: u8) -> u64 {
        u64::from(tail)
            | u64::from(zone) << DNS_TAIL_BITS
            | u64::from(rule) << (DNS_TAIL_BITS + DNS_ZONE_BITS)
            | u64::from(self.mark) << (DNS_TAIL_BITS + DNS_ZONE_BITS + DNS_RULE_BITS)
    }
}

/// How the letters of a name are written in a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Small ones.
    Lower,
    /// Capitals.
    Upper,
    /// Every letter by a bit of this number.
    Mixed(u64),
}

/// Where the question of a query ends, as [`query`] makes one.
pub fn question_end(key: &Key) -> usize {
    HEADER + key.name.len() + TYPE_CLASS
}

/// The query of a key: with this id, and where it has EDNS with this buffer; where it has a cookie, with this one.
pub fn query(key: &Key, id: u16, buffer: u16, case: Case, cookie: u64) -> Vec<u8> {
    let has = |bit: u8| key.bits & bit != 0;
    let flag = |bit: u8, flag: u16| if has(bit) { flag } else { 0 };
    let flags = flag(dns_bit::RD, RD) | flag(dns_bit::AD, AD) | flag(dns_bit::CD, CD);
    let edns = has(dns_bit::EDNS);
    let mut query = Vec::with_capacity(96);
    for word in [id, flags, 1, 0, 0, u16::from(edns)] {
        query.extend(word.to_be_bytes());
    }
    query.extend(key.name.iter().enumerate().map(|(at, byte)| match case {
        Case::Lower => *byte,
        Case::Upper => byte.to_ascii_uppercase(),
        Case::Mixed(bits) if bits >> (at % 64) & 1 == 1 => byte.to_ascii_uppercase(),
        Case::Mixed(_) => *byte,
    }));
    query.extend(key.kind.to_be_bytes());
    query.extend(1u16.to_be_bytes());
    if edns {
        query.extend([0, 0, 41]);
        query.extend(buffer.to_be_bytes());
        query.extend([0, 0, if has(dns_bit::DO) { 0x80 } else { 0 }, 0]);
        match has(dns_bit::COOKIE) {
            true => {
                query.extend([0, COOKIE as u8, 0, 10, 0, 8]);
                query.extend(cookie.to_ne_bytes());
            }
            false => query.extend([0, 0]),
        }
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_a_key_has_that_key() {
        for bits in 0..64 {
            if bits & (dns_bit::DO | dns_bit::COOKIE) != 0 && bits & dns_bit::EDNS == 0 {
                continue;
            }
            let key = key(&read("www.Example.org").unwrap(), 28, bits, 3).unwrap();
            for case in [Case::Lower, Case::Upper, Case::Mixed(0x5555)] {
                let question = derive(&query(&key, 7, 1232, case, 9), 3, false).unwrap();
                assert_eq!(question.key, key);
                assert_eq!(question.mixed, case != Case::Lower);
                assert_eq!(question.buffer, if bits & dns_bit::EDNS != 0 { 1232 } else { 512 });
            }
        }
    }

    #[test]
    fn names_are_read_shown_and_compared() {
        let www = read("www.example.org.").unwrap();
        assert_eq!(show(&www), "www.example.org.");
        assert_eq!((show(&[0]), read(".")), (".".into(), Some(vec![0])));
        assert!(is_below(&www, &read("example.org").unwrap()) && is_below(&www, &[0]));
        assert!(!is_below(&www, &read("ample.org").unwrap()));
        assert_eq!(read("a..b"), None);
        assert_eq!(read(&"a".repeat(64)), None);
    }
}
