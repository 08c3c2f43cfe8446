//! The server's answers: the part of them that is pinned, and the zones on which they depend. No I/O.

use std::collections::BTreeSet;
use std::sync::Arc;

use afpa_bpf::dns::abi::{DNS_SHORT_MAX, DNS_TAIL_MAX, DnsPatch, DnsTail};

use super::cookies::OPTION;
use super::key::{self, HEADER, Key};
use super::sets::Sets;

/// The part of an answer that is pinned: the header without id and RD, and all that follows the question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tail {
    /// Flags without RD, ANCOUNT, NSCOUNT, ARCOUNT, as on the wire.
    header: [u8; 8],
    bytes: Arc<[u8]>,
    /// The server has given the client a cookie, which is not part of it.
    cookie: bool,
}

/// A query, and the answer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// As it was sent.
    pub query: Vec<u8>,
    /// As it came, but for the cookie.
    pub answer: Vec<u8>,
    /// The server's cookie at its end.
    pub cookie: ServerCookie,
}

/// A cookie of the server's at the end of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerCookie {
    /// There is none.
    #[default]
    None,
    /// The programs can make it, so it was taken off.
    Taken,
    /// They cannot: its secret is another one, or nobody has told it.
    Unknown,
}

/// Why an answer stays the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unfit {
    /// It came late or never.
    #[error("the server does not answer, or not each time")]
    Silence,
    /// It is no answer to the question as it was asked.
    #[error("the answer repeats another question, or is none")]
    Strange,
    /// TC, which the server sets for each client.
    #[error("the answer is cut off")]
    Truncated,
    /// Neither NOERROR nor NXDOMAIN.
    #[error("the answer is an error")]
    Error,
    /// Too long.
    #[error("the answer is too long")]
    Long,
    /// It has a cookie of the server's that the programs cannot make.
    #[error(
        "the server's cookies have another secret than --cookie-secret tells, or none was told"
    )]
    Cookie,
    /// Asked again it is another one.
    #[error("the answer changes from one question to the next")]
    Unstable,
    /// Asked by this machine it is another one.
    #[error("the answer depends on the client")]
    Client,
    /// Nobody could see that it changes.
    #[error("the server tells no serial for the zone")]
    NoZone,
    /// The zone has just changed.
    #[error("the zone has just changed")]
    Changing,
    /// The table, or the part of it for names that do not exist.
    #[error("the table is full")]
    Full,
    /// The server's own answers differed from the pinned one twice.
    #[error("the server's own answers differed from what was pinned")]
    Barred,
}

const RD: u8 = 0x01;

impl Tail {
    /// The part of the answer to a query of the key that is behind the question.
    ///
    /// # Errors
    /// When it must not be given to others.
    pub fn of(key: &Key, exchange: &Exchange) -> Result<Self, Unfit> {
        let Exchange { query, answer, cookie } = exchange;
        let end = key::question_end(key);
        let question = |message: &[u8]| message.get(HEADER..end).map(<[u8]>::to_vec);
        let (Some(header), Some(bytes)) = (answer.first_chunk::<HEADER>(), answer.get(end..))
        else {
            return Err(Unfit::Strange);
        };
        let &[i1, i2, f1, f2, 0, 1, a1, a2, n1, n2, r1, r2] = header else {
            return Err(Unfit::Strange);
        };
        let same_rd = query.get(2).is_some_and(|flags| (flags ^ f1) & RD == 0);
        if query.get(..2) != Some([i1, i2].as_slice())
            || f1 & 0xf8 != 0x80
            || !same_rd
            || question(query) != question(answer)
        {
            return Err(Unfit::Strange);
        }
        if f1 & 0x02 != 0 {
            return Err(Unfit::Truncated);
        }
        if !matches!(f2 & 0x0f, 0 | 3) {
            return Err(Unfit::Error);
        }
        if bytes.len() > DNS_TAIL_MAX {
            return Err(Unfit::Long);
        }
        if *cookie == ServerCookie::Unknown {
            return Err(Unfit::Cookie);
        }
        let header = [f1 & !RD, f2, a1, a2, n1, n2, r1, r2];
        Ok(Self { header, bytes: bytes.into(), cookie: *cookie == ServerCookie::Taken })
    }

    /// Whether it says that the name does not exist.
    pub fn is_nxdomain(&self) -> bool {
        self.header[1] & 0x0f == 3
    }

    /// Whether it has no record that answers.
    pub fn has_no_answer(&self) -> bool {
        self.header[2..4] == [0, 0]
    }

    /// Whether it is one of those that lie in few lines.
    pub fn is_short(&self) -> bool {
        self.bytes.len() <= DNS_SHORT_MAX
    }

    /// A short one that begins with an address of the name that was asked for, without that; and the address.
    pub fn without_address(&self) -> Option<(Self, DnsPatch)> {
        /// A pointer to the question, A, IN, a time to live, four bytes.
        const HEAD: usize = 12;
        let (head, rest) = self.bytes.split_at_checked(HEAD)?;
        let (address, rest) = rest.split_first_chunk::<4>()?;
        if !self.is_short()
            || !head.starts_with(&[0xc0, 12, 0, 1, 0, 1])
            || !head.ends_with(&[0, 4])
        {
            return None;
        }
        let bytes = [head, &[0; 4], rest].concat().into();
        let patch = DnsPatch { address: u32::from_ne_bytes(*address), at: HEAD as u32 };
        Some((Self { bytes, ..self.clone() }, patch))
    }

    /// As the programs have it.
    pub fn to_abi(&self) -> DnsTail {
        let (length, cookie) = (self.bytes.len() as u16, self.cookie.into());
        let mut tail = DnsTail { length, cookie, ..DnsTail::ZERO };
        tail.header = std::array::from_fn(|at| {
            u16::from_ne_bytes([self.header[2 * at], self.header[2 * at + 1]])
        });
        if let Some(place) = tail.bytes.get_mut(..self.bytes.len()) {
            place.copy_from_slice(&self.bytes);
            // The length of the options, which come behind.
            if let Some(last) = place.last_mut().filter(|_| self.cookie) {
                *last = OPTION as u8;
            }
        }
        let (words, _) = tail.bytes.as_chunks::<2>();
        let mut sum: u32 = words.iter().map(|word| u32::from(u16::from_ne_bytes(*word))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        tail.sum = sum;
        tail
    }
}

/// The parts of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Those with two records or more, whose order a server may change.
    pub sets: Sets,
    /// Owners, and names that records lead to: the zones of all of them may change the answer.
    pub names: BTreeSet<Vec<u8>>,
    /// A signature says that its records are those of a wildcard (RFC 4035 section 5.3.4).
    pub expanded: bool,
    /// Some record may lead to names that are not read here.
    pub unread: bool,
    /// Contents of SOA records, and their owners.
    pub serials: Vec<(Vec<u8>, Vec<u8>)>,
}

const NS: u16 = 2;
const CNAME: u16 = 5;
const SOA: u16 = 6;
const MX: u16 = 15;
const SRV: u16 = 33;
const DNAME: u16 = 39;
const RRSIG: u16 = 46;
const SVCB: u16 = 64;
const HTTPS: u16 = 65;
/// Types to which servers add nothing: A, PTR, HINFO, TXT, AAAA, LOC, DS, SSHFP, NSEC, DNSKEY, NSEC3, NSEC3PARAM, TLSA, SMIMEA, CDS,
/// CDNSKEY, OPENPGPKEY, SPF, URI, CAA.
const ALONE: [u16; 20] =
    [1, 12, 13, 16, 28, 29, 43, 44, 47, 48, 50, 51, 52, 53, 59, 60, 61, 99, 256, 257];
const OPT_TYPE: u16 = 41;

impl Parts {
    /// Reads an answer; None: it is malformed.
    pub fn of(answer: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            answer.get(at..at + 2).and_then(|two| Some(u16::from_be_bytes(two.try_into().ok()?)))
        };
        let mut parts = Self::default();
        let mut records = Vec::new();
        let (_, mut at) = name_at(answer, HEADER)?;
        at += 4;
        let count = |section: u8| word(6 + 2 * usize::from(section)).unwrap_or(0);
        for section in (0..3).flat_map(|section| (0..count(section)).map(move |_| section)) {
            let (owner, behind) = name_at(answer, at)?;
            let (kind, length) = (word(behind)?, usize::from(word(behind + 8)?));
            let content = behind + 10;
            at = content + length;
            answer.get(content..at)?;
            if kind == OPT_TYPE {
                continue;
            }
            let target = match kind {
                NS | CNAME | DNAME => Some(content),
                MX | SVCB | HTTPS => Some(content + 2),
                SRV => Some(content + 6),
                _ => None,
            };
            let mut whole = answer.get(content..at)?.to_vec();
            if let Some(target) = target {
                let (name, behind) = name_at(answer, target)?;
                whole = [answer.get(content..target)?, &name, answer.get(behind..at)?].concat();
                parts.names.insert(name);
            }
            if kind == SOA {
                let serial = serial_at(answer, content)?;
                parts.serials.push((owner.clone(), serial));
            }
            parts.unread |=
                target.is_none() && kind != SOA && kind != RRSIG && !ALONE.contains(&kind);
            let covered = if kind == RRSIG { word(content)? } else { 0 };
            if kind == RRSIG && !owner.starts_with(b"\x01*") {
                parts.expanded |= usize::from(*answer.get(content + 3)?) < labels(&owner);
            }
            records.push(((section, owner.clone(), kind, covered), whole));
            parts.names.insert(owner);
        }
        parts.sets = records.into_iter().collect();
        (at == answer.len()).then_some(parts)
    }
}

/// How many labels a name has, without the root's.
fn labels(name: &[u8]) -> usize {
    std::iter::successors(Some(name), |name| super::key::parent(name)).count() - 1
}

/// The contents of an SOA record with its names written out.
fn serial_at(answer: &[u8], at: usize) -> Option<Vec<u8>> {
    let (mut content, at) = name_at(answer, at)?;
    let (mailbox, at) = name_at(answer, at)?;
    content.extend(mailbox);
    content.extend(answer.get(at..at + 20)?);
    Some(content)
}

/// A name, in lower case and written out, and where it ends.
fn name_at(message: &[u8], from: usize) -> Option<(Vec<u8>, usize)> {
    let (mut name, mut at, mut end) = (Vec::new(), from, None);
    loop {
        let length = *message.get(at)?;
        match length >> 6 {
            0 => {
                name.extend(message.get(at..=at + usize::from(length))?.to_ascii_lowercase());
                at += 1 + usize::from(length);
                if length == 0 {
                    return Some((name, end.unwrap_or(at)));
                }
            }
            3 => {
                let to = usize::from(length & 0x3f) << 8 | usize::from(*message.get(at + 1)?);
                end.get_or_insert(at + 2);
                // Pointers lead to the front, so this ends.
                at = Some(to).filter(|to| *to < at)?;
            }
            _ => return None,
        }
        if name.len() > 255 {
            return None;
        }
    }
}

/// Whether the answer is one with authority, and without an error.
pub fn is_authoritative(answer: &[u8]) -> bool {
    let flags = (answer.get(2).copied().unwrap_or(0), answer.get(3).copied().unwrap_or(0));
    flags.0 & 0x84 == 0x84 && matches!(flags.1 & 0x0f, 0 | 3)
}

#[cfg(test)]
mod tests {
    use super::super::key::Case;
    use super::*;

    fn key() -> Key {
        key::key(&key::read("www.example.org").unwrap(), 1, 16, 0).unwrap()
    }

    fn exchange(query: &[u8], answer: &[u8]) -> Exchange {
        Exchange { query: query.to_vec(), answer: answer.to_vec(), cookie: ServerCookie::None }
    }

    fn asked() -> (Vec<u8>, Vec<u8>) {
        let query = key::query(&key(), 0x1234, 512, Case::Upper, 0);
        let mut answer = query.clone();
        answer[2] = 0x85;
        answer[7] = 2;
        for last in [1, 2] {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 192, 0, 2, last]);
        }
        (query, answer)
    }

    #[test]
    fn a_tail_is_what_follows_the_question() {
        let (query, answer) = asked();
        let tail = Tail::of(&key(), &exchange(&query, &answer)).unwrap();
        assert_eq!(tail.bytes.len(), 32);
        assert_eq!(tail.header, [0x84, 0, 0, 2, 0, 0, 0, 0]);
        let abi = tail.to_abi();
        assert_eq!((abi.length, abi.header[0]), (32, 0x84u16.to_le()));
        let parts = Parts::of(&answer).unwrap();
        assert!(parts.sets.are_several() && !parts.unread && parts.names.len() == 1, "{parts:?}");
    }

    #[test]
    fn a_signature_tells_of_a_wildcard() {
        let (_, mut answer) = asked();
        answer[7] = 3;
        let mut signature = vec![0xc0, 12, 0, 46, 0, 1, 0, 0, 14, 16, 0, 20, 0, 1, 13, 3];
        signature.extend([0; 16]);
        for (count, expanded) in [(3, false), (2, true)] {
            signature[15] = count;
            let parts = Parts::of(&[answer.as_slice(), &signature].concat()).unwrap();
            assert_eq!(parts.expanded, expanded);
        }
    }

    #[test]
    fn what_is_not_surely_the_answer_is_refused() {
        let (query, answer) = asked();
        let changed = |at: usize, to: u8| {
            let mut answer = answer.clone();
            answer[at] = to;
            Tail::of(&key(), &exchange(&query, &answer)).err()
        };
        assert_eq!(changed(0, 0x13), Some(Unfit::Strange)); // id
        assert_eq!(changed(2, 0x05), Some(Unfit::Strange)); // no answer
        assert_eq!(changed(2, 0x84), Some(Unfit::Strange)); // RD
        assert_eq!(changed(2, 0x87), Some(Unfit::Truncated));
        assert_eq!(changed(3, 5), Some(Unfit::Error));
        let with = |cookie| Exchange { cookie, ..exchange(&query, &answer) };
        let of = |cookie| Tail::of(&key(), &with(cookie)).map(|tail| tail.cookie);
        assert_eq!(of(ServerCookie::Unknown), Err(Unfit::Cookie));
        assert_eq!((of(ServerCookie::Taken), of(ServerCookie::None)), (Ok(true), Ok(false)));
        assert_eq!(changed(14, b'w'), Some(Unfit::Strange)); // another case
        assert_eq!(Tail::of(&key(), &exchange(&query, &answer[..20])), Err(Unfit::Strange));
        for cut in 0..answer.len() {
            assert_eq!(Parts::of(&answer[..cut]), None);
        }
    }
}
