//! Queries as bytes, and what an answer to one says.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};

/// Bytes of a message's header.
const HEADER: usize = 12;
/// Digits of a name's number, and where they lie in a query; also the program's.
pub(super) const DIGITS: usize = 8;
pub(super) const DIGITS_AT: usize = 14;
/// Of IPv4 addresses; the class; the pseudo-record of EDNS.
const A: u16 = 1;
const INTERNET: u16 = 1;
const OPT: u16 = 41;
const DNSSEC_OK: u32 = 0x8000;
const COOKIE: u16 = 10;

/// Numbers of the names that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// `count` of them from `first` on, one after the other.
    InTurn {
        /// The first number.
        first: u32,
        /// At least 1.
        count: u32,
    },
    /// Drawn among so many, from 0 on.
    Drawn(u32),
    /// Each is asked once, and is not in the zone.
    Fresh,
}

/// The content of queries: addresses of names in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The zone, without a dot at its end.
    pub zone: String,
    /// The names.
    pub names: Names,
    /// The length of answers that EDNS allows; `None`: without EDNS.
    pub edns: Option<u16>,
    /// Signatures are asked for.
    pub signatures: bool,
    /// A client's cookie is sent.
    pub cookie: Option<[u8; 8]>,
}

/// The marks of every right answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Bytes 2 and 3.
    pub flags: [u8; 2],
    /// Of the message.
    pub length: usize,
    /// Where the address lies that is [`address`] of the name's number, if there is one.
    pub address_at: Option<usize>,
}

impl Names {
    /// Names as those that are asked for, at most `most` of them.
    pub fn some(self, most: u32) -> Vec<u32> {
        match self {
            Self::InTurn { first, count } => {
                (first..first.saturating_add(count.min(most))).collect()
            }
            Self::Drawn(count) => {
                let step = (count / most.max(1)).max(1) as usize;
                (0..count).step_by(step).take(most as usize).collect()
            }
            Self::Fresh => (0..most).map(|number| ABSENT + number).collect(),
        }
    }
}

/// Numbers from here on have no name in a zone.
const ABSENT: u32 = 0x8000_0000;

impl Question {
    /// Addresses of the names of a zone, without EDNS.
    pub fn new(zone: impl Into<String>, names: Names) -> Self {
        Self { zone: zone.into(), names, edns: None, signatures: false, cookie: None }
    }

    /// The query for the name of a number.
    ///
    /// # Errors
    ///
    /// When the zone's name is none.
    pub fn query(&self, id: u16, number: u32) -> Result<Vec<u8>> {
        let mut bytes = id.to_be_bytes().to_vec();
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, self.edns.is_some().into()]);
        let label = label(number);
        for label in std::iter::once(label.as_str()).chain(self.zone.split('.')) {
            let length = u8::try_from(label.len()).ok().filter(|length| (1..64).contains(length));
            bytes.push(length.context("a label has 1 to 63 bytes")?);
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend([A, INTERNET].map(u16::to_be_bytes).concat());
        if let Some(size) = self.edns {
            let cookie = self
                .cookie
                .map(|cookie| [&COOKIE.to_be_bytes()[..], &8u16.to_be_bytes(), &cookie].concat());
            let options = cookie.unwrap_or_default();
            bytes.push(0);
            bytes.extend([OPT, size].map(u16::to_be_bytes).concat());
            bytes.extend(if self.signatures { DNSSEC_OK } else { 0 }.to_be_bytes());
            bytes.extend((options.len() as u16).to_be_bytes());
            bytes.extend(options);
        }
        Ok(bytes)
    }

    /// The length of the question in a message, behind the header.
    fn length(&self) -> usize {
        1 + label(0).len() + 1 + self.zone.len() + 1 + 4
    }

    /// Reads an answer to [`query`](Self::query): `found` says whether the name is to have its address, or no record.
    ///
    /// # Errors
    ///
    /// When it is not the answer: of another query, or with another code, or without the address.
    pub fn read(&self, query: &[u8], answer: &[u8], found: bool) -> Result<Expected> {
        let end = HEADER + self.length();
        let head = answer.get(..end).context("an answer without its question")?;
        let number = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        ensure!(head[..2] == query[..2], "another query's answer");
        ensure!(head[HEADER..] == query[HEADER..end], "another question's answer");
        let (code, is_answer) = (head[3] & 15, head[2] & 0x80 != 0);
        let wanted = if found { 0 } else { 3 };
        ensure!(is_answer && code == wanted, "code {code}, and not {wanted}");
        ensure!(head[2] & 2 == 0, "it is cut off");
        ensure!((number(6) > 0) == found, "{} records", number(6));
        let address_at = found.then_some(end + 12);
        if let Some(at) = address_at {
            // The name by a pointer to the question's, type, class, TTL, length.
            let record = answer.get(end..at + 4).context("an answer without a record")?;
            let fixed = [&[0xc0, HEADER as u8][..], &[0, 1, 0, 1]].concat();
            ensure!(record[..6] == fixed && record[10..12] == [0, 4], "no address comes first");
            let digits = &query[DIGITS_AT..DIGITS_AT + DIGITS];
            let number = u32::from_str_radix(std::str::from_utf8(digits)?, 16)?;
            ensure!(record[12..] == address(number).octets(), "another name's address");
        }
        Ok(Expected { flags: [head[2], head[3]], length: answer.len(), address_at })
    }
}

/// The first label of a number's name.
pub fn label(number: u32) -> String {
    format!("h{number:08x}")
}

/// The address of a number's name.
pub fn address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a00_0000_u32.wrapping_add(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(query: &[u8], number: u32) -> Vec<u8> {
        let mut bytes = query.to_vec();
        bytes[2] |= 0x84;
        bytes[7] = 1;
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4]);
        bytes.extend(address(number).octets());
        bytes
    }

    #[test]
    fn a_query_is_what_others_send() {
        let question = Question::new("plain.test", Names::Drawn(9));
        let query = question.query(0x1234, 0xbeef).unwrap();
        let expected =
            b"\x12\x34\0\0\0\x01\0\0\0\0\0\0\x09h0000beef\x05plain\x04test\0\0\x01\0\x01";
        assert_eq!(query, expected);
        assert_eq!(&query[DIGITS_AT..DIGITS_AT + DIGITS], b"0000beef");
        let edns = Question {
            edns: Some(1232),
            signatures: true,
            cookie: Some(*b"12345678"),
            ..question.clone()
        };
        let query = edns.query(1, 0).unwrap();
        assert_eq!(query[11], 1);
        assert!(query.ends_with(b"\0\0\x29\x04\xd0\0\0\x80\0\0\x0c\0\x0a\0\x0812345678"));
        assert!(Question { zone: "a..b".into(), ..question }.query(1, 1).is_err());
    }

    #[test]
    fn an_answer_is_that_of_its_question_and_no_other() {
        let question = Question::new("plain.test", Names::Drawn(9));
        let query = question.query(7, 5).unwrap();
        let right = answer(&query, 5);
        let read = question.read(&query, &right, true).unwrap();
        assert_eq!((read.flags, read.length), ([0x84, 0], right.len()));
        assert_eq!(read.address_at.map(|at| &right[at..]), Some(&[10, 0, 0, 5][..]));
        let refused = |change: fn(&mut Vec<u8>)| {
            let mut wrong = right.clone();
            change(&mut wrong);
            question.read(&query, &wrong, true).is_err()
        };
        assert!(refused(|bytes| bytes[0] = 1), "another id");
        assert!(refused(|bytes| bytes[3] = 2), "a code");
        assert!(refused(|bytes| bytes[2] |= 2), "cut off");
        assert!(refused(|bytes| bytes[14] = b'1'), "another question");
        assert!(refused(|bytes| *bytes.last_mut().unwrap() = 6), "another address");
        assert!(refused(|bytes| bytes.truncate(30)), "too short");
        assert!(question.read(&query, &right, false).is_err(), "a record where none is");
        let mut absent = query.clone();
        absent[2..4].copy_from_slice(&[0x84, 3]);
        assert_eq!(question.read(&query, &absent, false).unwrap().address_at, None);
    }

    #[test]
    fn some_names_are_of_all_parts() {
        assert_eq!(Names::InTurn { first: 3, count: 2 }.some(9), [3, 4]);
        assert_eq!(Names::Drawn(100).some(4), [0, 25, 50, 75]);
        assert_eq!(Names::Fresh.some(2), [ABSENT, ABSENT + 1]);
    }
}
