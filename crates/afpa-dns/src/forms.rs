//! Data of records that the `domain` crate does not read from text: older types and rare ones, and every type as
//! `\# LENGTH HEX` (RFC 3597).

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::base::iana::Rtype;

use crate::location;
use crate::name::{Name, wire_length};
use crate::rtype;

/// A part of the data.
#[derive(Clone, Copy)]
enum Part {
    U8,
    U16,
    U32,
    Name,
    /// A text of at most 255 bytes.
    Text,
    /// Texts to the end, one at least.
    Texts,
    /// A text without a length, to the end.
    Long,
    /// Four groups of four hexadecimal digits.
    Locator,
    /// So many bytes with hyphens between them.
    Bytes(usize),
    /// Hexadecimal digits behind `0x`, with dots anywhere.
    Nsap,
    V4,
    /// The kind of a certificate, and the algorithm of its key.
    Certificate,
    Algorithm,
    /// Base64 to the end.
    Base64,
    /// Types of records to the end.
    Types,
    Location,
    Prefixes,
    HostIdentity,
    Relay,
    Services,
}

use Part::{
    Algorithm, Base64, Bytes, Certificate, HostIdentity, Locator, Long, Nsap, Prefixes, Relay,
    Services, Text, Texts, Types, U8, U16, U32, V4,
};

const FORMS: [(&str, u16, &[Part]); 24] = [
    ("WKS", 11, &[V4, Services]),
    ("X25", 19, &[Text]),
    ("ISDN", 20, &[Texts]),
    ("NSAP", 22, &[Nsap]),
    ("NSAP-PTR", 23, &[Part::Name]),
    ("PX", 26, &[U16, Part::Name, Part::Name]),
    ("GPOS", 27, &[Text, Text, Text]),
    ("LOC", 29, &[Part::Location]),
    ("CERT", 37, &[Certificate, U16, Algorithm, Base64]),
    ("APL", 42, &[Prefixes]),
    ("HIP", 55, &[HostIdentity]),
    ("NINFO", 56, &[Texts]),
    ("RKEY", 57, &[U16, U8, Algorithm, Base64]),
    ("TALINK", 58, &[Part::Name, Part::Name]),
    ("CSYNC", 62, &[U32, U16, Types]),
    ("NID", 104, &[U16, Locator]),
    ("L32", 105, &[U16, V4]),
    ("L64", 106, &[U16, Locator]),
    ("EUI48", 108, &[Bytes(6)]),
    ("EUI64", 109, &[Bytes(8)]),
    ("URI", 256, &[U16, U16, Long]),
    ("AMTRELAY", 260, &[U8, Relay]),
    ("RESINFO", 261, &[Texts]),
    ("WALLET", 262, &[Texts]),
];

/// Types whose data have the form of another type, which the `domain` crate reads.
pub(crate) const SAME_FORM: [(&str, u16, &str); 12] = [
    ("SMIMEA", 53, "TLSA"),
    ("SPF", 99, "TXT"),
    ("AVC", 258, "TXT"),
    ("AFSDB", 18, "MX"),
    ("RT", 21, "MX"),
    ("KX", 36, "MX"),
    ("LP", 107, "MX"),
    ("KEY", 25, "DNSKEY"),
    ("DLV", 32769, "DS"),
    ("DHCID", 49, "OPENPGPKEY"),
    ("SIG", 24, "RRSIG"),
    ("TA", 32768, "DS"),
];

/// Types that have a name here alone, for data without a form.
const NAMES: [(&str, u16); 6] =
    [("NULL", 10), ("A6", 38), ("SINK", 40), ("UID", 101), ("GID", 102), ("DOA", 259)];

/// Where data cannot be read.
pub(crate) type Unread = String;

/// The type and the data of a record that is read here; `None`: the `domain` crate reads it.
pub(crate) fn scan(
    kind: &str,
    data: &[&str],
    origin: &Name,
) -> Option<Result<(u16, Vec<u8>), Unread>> {
    if data.first() == Some(&"\\#") {
        let rtype = number_of(kind)?;
        return Some(unknown(rtype, data.get(1..).unwrap_or_default()).map(|data| (rtype, data)));
    }
    let (_, rtype, parts) = FORMS.iter().find(|(name, ..)| kind.eq_ignore_ascii_case(name))?;
    let mut words = Words { rest: data, origin };
    let mut out = Vec::new();
    let read =
        parts.iter().try_for_each(|part| words.read(*part, &mut out)).and_then(|()| words.end());
    Some(read.map(|()| (*rtype, out)))
}

/// The number of a type by its name.
pub(crate) fn number_of(kind: &str) -> Option<u16> {
    let is = |name: &str| kind.eq_ignore_ascii_case(name);
    let own = FORMS.iter().map(|(name, rtype, _)| (*name, *rtype)).chain(NAMES);
    let own = own.chain(SAME_FORM.iter().map(|(name, rtype, _)| (*name, *rtype)));
    let own = own.into_iter().find(|(name, _)| is(name)).map(|(_, rtype)| rtype);
    own.or_else(|| kind.parse::<Rtype>().ok().map(Rtype::to_int))
}

/// Data in the form of RFC 3597 section 5.
fn unknown(rtype: u16, words: &[&str]) -> Result<Vec<u8>, Unread> {
    let (length, digits) = words.split_first().ok_or("a length belongs behind \\#")?;
    let length: u16 = length.parse().map_err(|_| format!("{length} is no length"))?;
    let data = hex(&digits.concat())?;
    if data.len() != usize::from(length) {
        return Err(format!("there are {} bytes, and the length says {length}", data.len()));
    }
    // Data of a known type become part of other answers, with their names made short.
    if let Some((before, names)) = rtype::compressible(rtype) {
        let mut rest = data.get(before..);
        for _ in 0..names {
            rest = rest.and_then(|rest| rest.get(wire_length(rest)?..));
        }
        let behind = if rtype == rtype::SOA { 20 } else { 0 };
        if rest.is_none_or(|rest| rest.len() != behind && rtype != 14) {
            return Err("these are no data of this type".to_owned());
        }
    }
    if matches!((rtype, data.len()), (rtype::A, 0..=3 | 5..) | (rtype::AAAA, 0..=15 | 17..)) {
        return Err("these are no data of this type".to_owned());
    }
    Ok(data)
}

pub(crate) fn hex(digits: &str) -> Result<Vec<u8>, Unread> {
    let wrong = || format!("{digits} are no hexadecimal digits in pairs");
    let value =
        |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(value(high)? << 4 | value(low)?));
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(wrong)
}

/// The words of a record's data.
struct Words<'w> {
    rest: &'w [&'w str],
    origin: &'w Name,
}

impl<'w> Words<'w> {
    fn next(&mut self, what: &str) -> Result<&'w str, Unread> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| format!("{what} is missing"))?;
        self.rest = rest;
        Ok(first)
    }

    fn all(&mut self) -> &'w [&'w str] {
        std::mem::take(&mut self.rest)
    }

    fn end(&self) -> Result<(), Unread> {
        self.rest.first().map_or(Ok(()), |word| Err(format!("{word} is too much")))
    }

    fn number<N: std::str::FromStr>(&mut self) -> Result<N, Unread> {
        let word = self.next("a number")?;
        word.parse().map_err(|_| format!("{word} is no number, or too large"))
    }

    fn name(&mut self, out: &mut Vec<u8>) -> Result<(), Unread> {
        let word = self.next("a name")?;
        let name = Name::parse(word, self.origin)
            .map_err(|error| format!("{word} is no name: {error}"))?;
        out.extend_from_slice(name.wire());
        Ok(())
    }

    fn read(&mut self, part: Part, out: &mut Vec<u8>) -> Result<(), Unread> {
        match part {
            U8 => out.push(self.number()?),
            U16 => out.extend(self.number::<u16>()?.to_be_bytes()),
            U32 => out.extend(self.number::<u32>()?.to_be_bytes()),
            Part::Name => self.name(out)?,
            Text => counted(&text(self.next("a text")?)?, out)?,
            Texts => {
                counted(&text(self.next("a text")?)?, out)?;
                for word in self.all() {
                    counted(&text(word)?, out)?;
                }
            }
            Long => out.extend(text(self.next("a text")?)?),
            Locator => out.extend(locator(self.next("a locator")?)?),
            Bytes(count) => out.extend(hyphened(self.next("an address")?, count)?),
            Nsap => {
                let word = self.next("an address")?;
                let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
                let digits = digits.ok_or("an address begins with 0x")?;
                out.extend(hex(&digits.replace('.', ""))?);
            }
            V4 => {
                let word = self.next("an IPv4 address")?;
                let address: Ipv4Addr =
                    word.parse().map_err(|_| format!("{word} is no IPv4 address"))?;
                out.extend(address.octets());
            }
            Certificate => out.extend(named(self.next("a kind")?, &CERTIFICATES)?.to_be_bytes()),
            Algorithm => {
                let word = self.next("an algorithm")?;
                let number = u8::try_from(named(word, &ALGORITHMS)?);
                out.push(number.map_err(|_| format!("{word} is no algorithm"))?);
            }
            Base64 => out.extend(base64_of(&self.all().concat())?),
            Types => types(self.all(), out)?,
            Part::Location => out.extend(location::read(self.all())?),
            Prefixes => self.all().iter().try_for_each(|word| prefix(word, out))?,
            HostIdentity => self.host_identity(out)?,
            Relay => self.relay(out)?,
            Services => self.services(out)?,
        }
        Ok(())
    }

    /// RFC 8005 section 6.
    fn host_identity(&mut self, out: &mut Vec<u8>) -> Result<(), Unread> {
        let algorithm: u8 = self.number()?;
        let tag = hex(self.next("a host identity tag")?)?;
        let key = base64_of(self.next("a key")?)?;
        out.push(u8::try_from(tag.len()).map_err(|_| "the tag is too long")?);
        out.push(algorithm);
        out.extend(u16::try_from(key.len()).map_err(|_| "the key is too long")?.to_be_bytes());
        out.extend([tag, key].concat());
        while !self.rest.is_empty() {
            self.name(out)?;
        }
        Ok(())
    }

    /// RFC 8777 section 4.3: the bit, the kind of the relay, the relay.
    fn relay(&mut self, out: &mut Vec<u8>) -> Result<(), Unread> {
        let discovery = match self.next("0 or 1")? {
            "0" => 0,
            "1" => 0x80,
            other => return Err(format!("{other} is neither 0 nor 1")),
        };
        let kind: u8 = self.number()?;
        out.push(discovery | kind & 0x7f);
        match kind {
            0 => self.next("a dot").map(|_| ()),
            1 => self.read(V4, out),
            2 => {
                let word = self.next("an IPv6 address")?;
                let address: Ipv6Addr =
                    word.parse().map_err(|_| format!("{word} is no IPv6 address"))?;
                out.extend(address.octets());
                Ok(())
            }
            3 => self.name(out),
            _ => Err(format!("{kind} is no kind of a relay")),
        }
    }

    /// A protocol and its ports as bits (RFC 1035 section 3.4.2).
    fn services(&mut self, out: &mut Vec<u8>) -> Result<(), Unread> {
        let protocol = self.next("a protocol")?;
        out.push(
            u8::try_from(named(protocol, &PROTOCOLS)?).map_err(|_| "there is no such protocol")?,
        );
        let mut bits = Vec::new();
        for word in self.all() {
            let port = usize::from(named(word, &SERVICES)?);
            bits.resize(bits.len().max(port / 8 + 1), 0_u8);
            if let Some(byte) = bits.get_mut(port / 8) {
                *byte |= 0x80 >> (port % 8);
            }
        }
        out.extend(bits);
        Ok(())
    }
}

const CERTIFICATES: [(&str, u16); 10] = [
    ("PKIX", 1),
    ("SPKI", 2),
    ("PGP", 3),
    ("IPKIX", 4),
    ("ISPKI", 5),
    ("IPGP", 6),
    ("ACPKIX", 7),
    ("IACPKIX", 8),
    ("URI", 253),
    ("OID", 254),
];
const ALGORITHMS: [(&str, u16); 18] = [
    ("RSAMD5", 1),
    ("DH", 2),
    ("DSA", 3),
    ("ECC", 4),
    ("RSASHA1", 5),
    ("DSA-NSEC3-SHA1", 6),
    ("NSEC3DSA", 6),
    ("RSASHA1-NSEC3-SHA1", 7),
    ("NSEC3RSASHA1", 7),
    ("RSASHA256", 8),
    ("RSASHA512", 10),
    ("ECC-GOST", 12),
    ("ECCGOST", 12),
    ("ECDSAP256SHA256", 13),
    ("ECDSAP384SHA384", 14),
    ("ED25519", 15),
    ("ED448", 16),
    ("INDIRECT", 252),
];
const PROTOCOLS: [(&str, u16); 2] = [("tcp", 6), ("udp", 17)];
const SERVICES: [(&str, u16); 6] =
    [("ftp", 21), ("ssh", 22), ("telnet", 23), ("smtp", 25), ("domain", 53), ("http", 80)];

/// A number, or a name that stands for one.
fn named(word: &str, names: &[(&str, u16)]) -> Result<u16, Unread> {
    let found = names.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
    let found = found.map(|(_, number)| *number).or_else(|| word.parse().ok());
    found.ok_or_else(|| format!("{word} is neither a number nor a name that is known"))
}

/// A word as bytes: without quotes, with escapes replaced (RFC 1035 section 5.1).
fn text(word: &str) -> Result<Vec<u8>, Unread> {
    let mut bytes = word.bytes();
    let mut out = Vec::with_capacity(word.len());
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {}
            b'\\' => out.push(crate::name::escaped(&mut bytes).map_err(|error| error.to_string())?),
            other => out.push(other),
        }
    }
    Ok(out)
}

fn counted(text: &[u8], out: &mut Vec<u8>) -> Result<(), Unread> {
    out.push(u8::try_from(text.len()).map_err(|_| "a text is longer than 255 bytes")?);
    out.extend_from_slice(text);
    Ok(())
}

fn base64_of(text: &str) -> Result<Vec<u8>, Unread> {
    STANDARD.decode(text).map_err(|error| format!("{text} is no base64: {error}"))
}

/// RFC 6742 section 2.1.2.
fn locator(word: &str) -> Result<[u8; 8], Unread> {
    let wrong = || format!("{word} is not four numbers with colons between them");
    let groups: Vec<&str> = word.split(':').collect();
    let groups: &[&str; 4] = groups.as_slice().try_into().map_err(|_| wrong())?;
    let mut out = [0; 8];
    let (pairs, _) = out.as_chunks_mut::<2>();
    for (pair, group) in pairs.iter_mut().zip(groups) {
        let is_short = (1..=4).contains(&group.len()) && !group.starts_with('+');
        let number = u16::from_str_radix(group, 16).ok().filter(|_| is_short);
        *pair = number.ok_or_else(wrong)?.to_be_bytes();
    }
    Ok(out)
}

/// RFC 7043: bytes with hyphens between them.
fn hyphened(word: &str, count: usize) -> Result<Vec<u8>, Unread> {
    let wrong = || format!("{word} is not {count} bytes with hyphens between them");
    let all = word.split('-').map(|pair| hex(pair).ok().filter(|byte| byte.len() == 1));
    let all: Option<Vec<Vec<u8>>> = all.collect();
    all.map(|bytes| bytes.concat()).filter(|bytes| bytes.len() == count).ok_or_else(wrong)
}

/// Windows of types (RFC 4034 section 4.1.2).
fn types(words: &[&str], out: &mut Vec<u8>) -> Result<(), Unread> {
    let number = |word: &&str| number_of(word).ok_or_else(|| format!("{word} is no type"));
    let mut numbers: Vec<u16> = words.iter().map(number).collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    for window in numbers.chunk_by(|a, b| a >> 8 == b >> 8) {
        let mut bits = [0_u8; 32];
        let mut used = 0;
        for number in window {
            let [high, low] = number.to_be_bytes();
            if used == 0 {
                out.push(high);
            }
            used = usize::from(low / 8) + 1;
            if let Some(byte) = bits.get_mut(usize::from(low / 8)) {
                *byte |= 0x80 >> (low % 8);
            }
        }
        out.push(used as u8);
        out.extend_from_slice(bits.get(..used).unwrap_or_default());
    }
    Ok(())
}

/// RFC 3123 section 5: `!1:192.0.2.0/24`.
fn prefix(word: &str, out: &mut Vec<u8>) -> Result<(), Unread> {
    let wrong = || format!("{word} is no prefix, such as 1:192.0.2.0/24 or !2:2001:db8::/32");
    let (negated, rest) = match word.strip_prefix('!') {
        Some(rest) => (0x80, rest),
        None => (0, word),
    };
    let (family, rest) = rest.split_once(':').ok_or_else(wrong)?;
    let (address, bits) = rest.split_once('/').ok_or_else(wrong)?;
    let family: u16 = family.parse().map_err(|_| wrong())?;
    let bits: u8 = bits.parse().map_err(|_| wrong())?;
    let mut bytes = match family {
        1 => address.parse::<Ipv4Addr>().map_err(|_| wrong())?.octets().to_vec(),
        2 => address.parse::<Ipv6Addr>().map_err(|_| wrong())?.octets().to_vec(),
        _ => return Err(wrong()),
    };
    if usize::from(bits) > bytes.len() * 8 {
        return Err(wrong());
    }
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(used);
    out.extend(family.to_be_bytes());
    out.extend([bits, negated | used as u8]);
    out.extend(bytes);
    Ok(())
}
