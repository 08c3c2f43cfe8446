//! Questions and their EDNS. Messages are hostile.

use crate::name::{LONGEST_NAME, wire_length};
use crate::rtype;
use crate::zone::serial_of;

/// Bytes of a header.
pub const HEADER: usize = 12;

const QR: u8 = 0x80;
/// Ask others, too: the client's wish, which is copied.
pub(crate) const RD: u8 = 0x01;
const DO: u8 = 0x80;
const COOKIE: u16 = 10;
/// Bytes of an answer's signature that the question's need not have: the hash, a time, the head of the record.
const LONGEST_MAC: usize = 64 + 6 + 10;

/// Codes of results (RFC 1035 section 4.1.1, RFC 6891).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Rcode {
    /// Without an error.
    NoError = 0,
    /// The message is malformed.
    FormErr = 1,
    /// The server has failed.
    ServFail = 2,
    /// There is no such name.
    NxDomain = 3,
    /// The server does not do that.
    NotImp = 4,
    /// The server does not do that for this client, or not for this name.
    Refused = 5,
    /// A name that DNAME made is too long.
    YxDomain = 6,
    /// The signature of the message is not right (RFC 8945).
    NotAuth = 9,
    /// The server does not know this version of EDNS.
    BadVers = 16,
}

impl Rcode {
    /// All of them.
    pub const ALL: [Rcode; 9] = [
        Rcode::NoError,
        Rcode::FormErr,
        Rcode::ServFail,
        Rcode::NxDomain,
        Rcode::NotImp,
        Rcode::Refused,
        Rcode::YxDomain,
        Rcode::NotAuth,
        Rcode::BadVers,
    ];

    /// Its name in IANA's registry.
    pub fn name(self) -> &'static str {
        match self {
            Rcode::NoError => "NOERROR",
            Rcode::FormErr => "FORMERR",
            Rcode::ServFail => "SERVFAIL",
            Rcode::NxDomain => "NXDOMAIN",
            Rcode::NotImp => "NOTIMP",
            Rcode::Refused => "REFUSED",
            Rcode::YxDomain => "YXDOMAIN",
            Rcode::NotAuth => "NOTAUTH",
            Rcode::BadVers => "BADVERS",
        }
    }
}

/// The question of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'m> {
    /// The header, as it came.
    pub(crate) header: [u8; HEADER],
    /// The name in wire form, in the client's case; empty without a question.
    pub name: &'m [u8],
    /// The type that is asked for.
    pub rtype: u16,
    /// The class.
    pub class: u16,
    /// The client's EDNS, if it has any.
    pub edns: Option<Edns<'m>>,
    /// The serial number that a client of type IXFR has.
    pub serial: Option<u32>,
    /// Where its signature is, which nobody has checked yet.
    pub signature: Option<SignedAt>,
}

/// The place of a TSIG record, the last one of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedAt {
    /// Bytes of the message before it.
    pub(crate) at: usize,
    /// Bytes that the signature of an answer may take.
    pub(crate) room: usize,
}

/// EDNS of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edns<'m> {
    /// How long an answer by UDP may be.
    pub size: u16,
    /// Whether signatures are wanted.
    pub wants_signatures: bool,
    /// The cookie: 8 bytes of the client, and possibly the server's.
    pub cookie: Option<&'m [u8]>,
}

/// A message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'m> {
    /// A question.
    Query(Query<'m>),
    /// An answer is due, with this error. The question is there as far as it could be read.
    Wrong(Query<'m>, Rcode),
    /// No answer is due: it is too short, or an answer itself, which could go on for ever.
    Silence,
}

impl SignedAt {
    fn of(message: &[u8], at: usize, data: &[u8]) -> Self {
        // A name with a pointer may be long.
        let name = message.get(at..).and_then(wire_length).unwrap_or(LONGEST_NAME);
        Self { at, room: name + data.len() + LONGEST_MAC }
    }

    /// Where the signature of any message is, if it has one at its end.
    pub fn find(message: &[u8]) -> Option<Self> {
        let header = message.first_chunk::<HEADER>()?;
        let (counts, _) = header.get(4..)?.as_chunks::<2>();
        let mut counts = counts.iter().map(|two| u16::from_be_bytes(*two));
        let mut rest = message.get(HEADER..)?;
        for _ in 0..counts.next()? {
            rest = rest.get(name_length(rest)? + 4..)?;
        }
        let mut found = None;
        for _ in 0..counts.map(u32::from).sum::<u32>() {
            let at = message.len() - rest.len();
            let (record, behind) = Record::read(rest)?;
            rest = behind;
            found = (record.rtype == rtype::TSIG).then(|| Self::of(message, at, record.data));
        }
        found.filter(|_| rest.is_empty())
    }
}

impl<'m> Query<'m> {
    /// Reads a message.
    pub fn parse(message: &'m [u8]) -> Parsed<'m> {
        let Some(header) = message.first_chunk::<HEADER>() else { return Parsed::Silence };
        if header[2] & QR != 0 {
            return Parsed::Silence;
        }
        let mut query = Query {
            header: *header,
            name: &[],
            rtype: 0,
            class: 0,
            edns: None,
            serial: None,
            signature: None,
        };
        match query.read(message) {
            Ok(()) => Parsed::Query(query),
            Err(rcode) => Parsed::Wrong(query, rcode),
        }
    }

    /// The number by which the client knows the answer.
    pub fn id(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    fn count(&self, section: usize) -> u16 {
        let at = 4 + 2 * section;
        let count = self.header.get(at..at + 2).and_then(|two| two.first_chunk());
        count.map_or(0, |two| u16::from_be_bytes(*two))
    }

    fn read(&mut self, message: &'m [u8]) -> Result<(), Rcode> {
        let [_, _, flags, ..] = self.header;
        if flags >> 3 & 15 != 0 {
            return Err(Rcode::NotImp);
        }
        let mut rest = message.get(HEADER..).unwrap_or_default();
        match self.count(0) {
            // With a cookie alone a client renews it (RFC 7873 section 5.4).
            0 => {}
            1 => rest = self.read_question(rest)?,
            _ => return Err(Rcode::FormErr),
        }
        if self.count(1) != 0 || self.count(2) != 0 && self.rtype != rtype::IXFR {
            return Err(Rcode::FormErr);
        }
        for _ in 0..self.count(2) {
            let (record, behind) = Record::read(rest).ok_or(Rcode::FormErr)?;
            if record.rtype == rtype::SOA {
                self.serial = serial_of(record.data);
            }
            rest = behind;
        }
        let mut version = 0;
        for _ in 0..self.count(3) {
            // Nothing may follow a signature (RFC 8945 section 5.1).
            if self.signature.is_some() {
                return Err(Rcode::FormErr);
            }
            let at = message.len() - rest.len();
            let (record, behind) = Record::read(rest).ok_or(Rcode::FormErr)?;
            rest = behind;
            if record.rtype == rtype::TSIG {
                self.signature = Some(SignedAt::of(message, at, record.data));
            }
            if record.rtype == rtype::OPT {
                version = self.read_opt(&record)?;
            }
        }
        if !rest.is_empty() {
            return Err(Rcode::FormErr);
        }
        if version != 0 {
            return Err(Rcode::BadVers);
        }
        if self.name.is_empty() && self.edns.is_none_or(|edns| edns.cookie.is_none()) {
            return Err(Rcode::FormErr);
        }
        Ok(())
    }

    fn read_question(&mut self, rest: &'m [u8]) -> Result<&'m [u8], Rcode> {
        let length = wire_length(rest).ok_or(Rcode::FormErr)?;
        let (name, rest) = rest.split_at_checked(length).ok_or(Rcode::FormErr)?;
        let (numbers, rest) = rest.split_first_chunk::<4>().ok_or(Rcode::FormErr)?;
        let [a, b, c, d] = *numbers;
        self.name = name;
        (self.rtype, self.class) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Ok(rest)
    }

    fn read_opt(&mut self, record: &Record<'m>) -> Result<u8, Rcode> {
        if self.edns.is_some() || !record.is_of_root {
            return Err(Rcode::FormErr);
        }
        let [_, version, flags, _] = record.ttl;
        let mut edns = Edns { size: record.class, wants_signatures: flags & DO != 0, cookie: None };
        // A version that is not known may have options of another shape.
        let cookie = if version == 0 { cookie(record.data) } else { Ok(None) };
        edns.cookie = *cookie.as_ref().unwrap_or(&None);
        self.edns = Some(edns);
        cookie.map(|_| version)
    }
}

fn cookie(mut options: &[u8]) -> Result<Option<&[u8]>, Rcode> {
    let mut found = None;
    while !options.is_empty() {
        let (head, rest) = options.split_first_chunk::<4>().ok_or(Rcode::FormErr)?;
        let [a, b, c, d] = *head;
        let length = usize::from(u16::from_be_bytes([c, d]));
        let (data, rest) = rest.split_at_checked(length).ok_or(Rcode::FormErr)?;
        if u16::from_be_bytes([a, b]) == COOKIE && found.is_none() {
            // RFC 7873 section 4.
            if !matches!(length, 8 | 16..=40) {
                return Err(Rcode::FormErr);
            }
            found = Some(data);
        }
        options = rest;
    }
    Ok(found)
}

/// A record of a message, whose name is only skipped.
struct Record<'m> {
    is_of_root: bool,
    rtype: u16,
    class: u16,
    ttl: [u8; 4],
    data: &'m [u8],
}

impl<'m> Record<'m> {
    fn read(bytes: &'m [u8]) -> Option<(Self, &'m [u8])> {
        let length = name_length(bytes)?;
        let (name, rest) = bytes.split_at_checked(length)?;
        let (head, rest) = rest.split_first_chunk::<10>()?;
        let [a, b, c, d, ttl @ .., e, f] = *head;
        let (data, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([e, f])))?;
        let (rtype, class) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        Some((Self { is_of_root: name == [0], rtype, class, ttl, data }, rest))
    }
}

/// Bytes of a name that may end with a pointer.
fn name_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += usize::from(length) + 1,
            0xc0.. => return Some(at + 2),
            _ => return None,
        }
        if at > LONGEST_NAME {
            return None;
        }
    }
}
