//! DNS messages (RFC 1035, section 4), as far as addresses need them. Pure; bytes of an answer may
//! be anything.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses (RFC 3596).
    Aaaa,
}

impl RecordKind {
    const fn number(self) -> u16 {
        match self {
            RecordKind::A => 1,
            RecordKind::Aaaa => 28,
        }
    }
}

/// What a name server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 0, or why there is no answer.
    pub code: u8,
    /// It did not fit: ask over TCP.
    pub truncated: bool,
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// Seconds that the whole of it holds: the least of its records.
    pub ttl: u32,
}

/// Why bytes are no answer to the question, or a name cannot be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// A label is empty or longer than 63 bytes, or the name is longer than 253.
    #[error("the name cannot be asked for")]
    Name,
    /// It ends before its end.
    #[error("it is cut off")]
    Cut,
    /// It answers another question, or none.
    #[error("it answers another question")]
    Other,
    /// Names in it lead in circles or are too long.
    #[error("a name in it does not end")]
    Endless,
}

/// Class IN.
const INTERNET: u16 = 1;

/// Type CNAME.
const ALIAS: u16 = 5;

/// Aliases of one answer that are followed.
const MOST_ALIASES: usize = 16;

/// Addresses of one answer that are taken.
const MOST_ADDRESSES: usize = 64;

/// The question for the addresses of `host`.
pub fn query(id: u16, host: &str, kind: RecordKind) -> Result<Vec<u8>, MessageError> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.len() > 253 {
        return Err(MessageError::Name);
    }
    let mut message = id.to_be_bytes().to_vec();
    // Recursion desired; one question.
    message.extend_from_slice(&[0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in host.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length));
        message.push(length.ok_or(MessageError::Name)?);
        message.extend_from_slice(label.as_bytes());
    }
    message.push(0);
    message.extend_from_slice(&kind.number().to_be_bytes());
    message.extend_from_slice(&INTERNET.to_be_bytes());
    Ok(message)
}

/// Reads the answer to [`query`].
pub fn parse(
    message: &[u8],
    id: u16,
    host: &str,
    kind: RecordKind,
) -> Result<Answer, MessageError> {
    let mut at = Cursor { message, at: 0 };
    let (got, flags) = (at.u16()?, at.u16()?);
    let (questions, answers) = (at.u16()?, at.u16()?);
    at.skip(4)?;
    if got != id || flags & 0x8000 == 0 || flags & 0x7800 != 0 || questions != 1 {
        return Err(MessageError::Other);
    }
    let asked = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if at.name()? != asked || at.u16()? != kind.number() || at.u16()? != INTERNET {
        return Err(MessageError::Other);
    }
    let truncated = flags & 0x0200 != 0;
    let mut answer =
        Answer { code: (flags & 15) as u8, truncated, addresses: Vec::new(), ttl: u32::MAX };
    if !truncated {
        let records = records(&mut at, answers)?;
        collect(&records, asked, kind, &mut answer);
    }
    Ok(answer)
}

struct Record<'m> {
    name: String,
    kind: u16,
    ttl: u32,
    alias: Option<String>,
    data: &'m [u8],
}

fn records<'m>(at: &mut Cursor<'m>, count: u16) -> Result<Vec<Record<'m>>, MessageError> {
    let mut records = Vec::new();
    for _ in 0..count {
        let name = at.name()?;
        let (kind, class) = (at.u16()?, at.u16()?);
        let ttl = u32::from(at.u16()?) << 16 | u32::from(at.u16()?);
        let length = usize::from(at.u16()?);
        let mut data = Cursor { message: at.message, at: at.at };
        let bytes = at.take(length)?;
        let alias = if kind == ALIAS { Some(data.name()?) } else { None };
        // More than 31 bits would be negative, and count as 0 (RFC 2181, section 8).
        let ttl = if ttl > i32::MAX as u32 { 0 } else { ttl };
        if class == INTERNET && records.len() < MOST_ADDRESSES + MOST_ALIASES {
            records.push(Record { name, kind, ttl, alias, data: bytes });
        }
    }
    Ok(records)
}

/// Follows the aliases from the name that was asked for to its addresses.
fn collect(records: &[Record<'_>], asked: String, kind: RecordKind, answer: &mut Answer) {
    let mut name = asked;
    for _ in 0..MOST_ALIASES {
        let alias = records.iter().find(|record| record.name == name && record.alias.is_some());
        let Some(record) = alias else { break };
        answer.ttl = answer.ttl.min(record.ttl);
        name = record.alias.clone().unwrap_or_default();
    }
    let wanted = |record: &&Record<'_>| record.name == name && record.kind == kind.number();
    for record in records.iter().filter(wanted).take(MOST_ADDRESSES) {
        let address = match kind {
            RecordKind::A => {
                <[u8; 4]>::try_from(record.data).ok().map(Ipv4Addr::from).map(IpAddr::V4)
            }
            RecordKind::Aaaa => {
                <[u8; 16]>::try_from(record.data).ok().map(Ipv6Addr::from).map(IpAddr::V6)
            }
        };
        if let Some(address) = address {
            answer.addresses.push(address);
            answer.ttl = answer.ttl.min(record.ttl);
        }
    }
}

struct Cursor<'m> {
    message: &'m [u8],
    at: usize,
}

impl<'m> Cursor<'m> {
    fn take(&mut self, length: usize) -> Result<&'m [u8], MessageError> {
        let end = self.at.checked_add(length).ok_or(MessageError::Cut)?;
        let taken = self.message.get(self.at..end).ok_or(MessageError::Cut)?;
        self.at = end;
        Ok(taken)
    }

    fn skip(&mut self, length: usize) -> Result<(), MessageError> {
        self.take(length).map(|_| ())
    }

    fn byte(&mut self) -> Result<u8, MessageError> {
        self.take(1).and_then(|bytes| bytes.first().copied().ok_or(MessageError::Cut))
    }

    fn u16(&mut self) -> Result<u16, MessageError> {
        Ok(u16::from(self.byte()?) << 8 | u16::from(self.byte()?))
    }

    /// A name, in lower case, without the dot at its end. Pointers (RFC 1035, section 4.1.4) lead
    /// only backwards, so that they come to an end.
    fn name(&mut self) -> Result<String, MessageError> {
        let mut name = String::new();
        let mut reader = Cursor { message: self.message, at: self.at };
        let mut limit = self.at;
        let mut jumped = false;
        loop {
            let start = reader.at;
            let length = reader.byte()?;
            match length {
                0 => break,
                1..=63 => {
                    let label = reader.take(usize::from(length))?;
                    if !name.is_empty() {
                        name.push('.');
                    }
                    name.extend(label.iter().map(|b| char::from(b.to_ascii_lowercase())));
                    if name.len() > 1024 {
                        return Err(MessageError::Endless);
                    }
                }
                0xc0.. => {
                    let to = usize::from(length & 0x3f) << 8 | usize::from(reader.byte()?);
                    if !jumped {
                        self.at = start + 2;
                        jumped = true;
                    }
                    if to >= limit {
                        return Err(MessageError::Endless);
                    }
                    limit = to;
                    reader.at = to;
                }
                _ => return Err(MessageError::Endless),
            }
        }
        if !jumped {
            self.at = reader.at;
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer with these records behind the question; owner names are pointers to it unless
    /// given.
    fn answer(id: u16, flags: u16, host: &str, kind: RecordKind, records: &[Vec<u8>]) -> Vec<u8> {
        let mut message = query(id, host, kind).unwrap();
        message[2..4].copy_from_slice(&flags.to_be_bytes());
        message[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
        message.extend(records.concat());
        message
    }

    fn record(owner: &[u8], kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
        let mut record = owner.to_vec();
        record.extend(kind.to_be_bytes());
        record.extend(1_u16.to_be_bytes());
        record.extend(ttl.to_be_bytes());
        record.extend((data.len() as u16).to_be_bytes());
        record.extend(data);
        record
    }

    const SAME: &[u8] = &[0xc0, 12];

    #[test]
    fn addresses_and_the_least_time_they_hold() {
        let records = [record(SAME, 1, 300, &[192, 0, 2, 1]), record(SAME, 1, 60, &[192, 0, 2, 2])];
        let message = answer(7, 0x8180, "App.Example", RecordKind::A, &records);
        let parsed = parse(&message, 7, "app.example.", RecordKind::A).unwrap();
        let addresses = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        assert_eq!((parsed.addresses, parsed.ttl), (addresses.to_vec(), 60));
        assert!(!parsed.truncated && parsed.code == 0);
    }

    #[test]
    fn aliases_are_followed_and_others_addresses_are_not_taken() {
        let alias = [&[3][..], b"cdn", SAME].concat();
        let records = [
            record(SAME, ALIAS, 30, &alias),
            record(&alias, 28, 90, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]),
            record(&[4, b'e', b'v', b'i', b'l', 0], 28, 90, &[1; 16]),
            record(&alias, 28, 90, &[1; 15]),
        ];
        let message = answer(7, 0x8180, "app.example", RecordKind::Aaaa, &records);
        let parsed = parse(&message, 7, "app.example", RecordKind::Aaaa).unwrap();
        assert_eq!(parsed.addresses, ["2001:db8::9".parse::<IpAddr>().unwrap()]);
        assert_eq!(parsed.ttl, 30);
    }

    #[test]
    fn what_answers_another_question_is_no_answer() {
        let good = answer(7, 0x8180, "app.example", RecordKind::A, &[]);
        assert!(parse(&good, 7, "app.example", RecordKind::A).is_ok());
        for (id, host, kind) in [
            (8, "app.example", RecordKind::A),
            (7, "api.example", RecordKind::A),
            (7, "app.example", RecordKind::Aaaa),
        ] {
            assert_eq!(parse(&good, id, host, kind), Err(MessageError::Other));
        }
        let question = answer(7, 0x0100, "app.example", RecordKind::A, &[]);
        assert_eq!(parse(&question, 7, "app.example", RecordKind::A), Err(MessageError::Other));
    }

    #[test]
    fn refusals_and_truncation_are_told() {
        let message = answer(7, 0x8183, "app.example", RecordKind::A, &[]);
        assert_eq!(parse(&message, 7, "app.example", RecordKind::A).unwrap().code, 3);
        let message = answer(7, 0x8380, "app.example", RecordKind::A, &[vec![1]]);
        assert!(parse(&message, 7, "app.example", RecordKind::A).unwrap().truncated);
    }

    #[test]
    fn names_that_lead_in_circles_end() {
        for owner in [&[0xc0, 29][..], &[0xc0, 40], &[1, b'a', 0xc0, 29], &[0x80]] {
            let records = [record(owner, 1, 60, &[192, 0, 2, 1])];
            let message = answer(7, 0x8180, "app.example", RecordKind::A, &records);
            assert!(parse(&message, 7, "app.example", RecordKind::A).is_err(), "{owner:?}");
        }
        assert_eq!(query(1, &"a".repeat(64), RecordKind::A), Err(MessageError::Name));
        assert_eq!(query(1, "a..b", RecordKind::A), Err(MessageError::Name));
    }

    proptest! {
        /// Anything may come back; cut or changed, it is read without a panic, and never gives more
        /// addresses than its bytes have room for.
        #[test]
        fn no_bytes_are_a_danger(
            cut in 0_usize..120,
            flips in prop::collection::vec((0_usize..120, any::<u8>()), 0..6),
        ) {
            let alias = [&[3][..], b"cdn", SAME].concat();
            let records = [
                record(SAME, ALIAS, 30, &alias),
                record(&alias, 1, 90, &[192, 0, 2, 1]),
            ];
            let mut message = answer(7, 0x8180, "app.example", RecordKind::A, &records);
            for (at, to) in flips {
                if let Some(byte) = message.get_mut(at) {
                    *byte = to;
                }
            }
            message.truncate(message.len().saturating_sub(cut / 2));
            if let Ok(answer) = parse(&message, 7, "app.example", RecordKind::A) {
                prop_assert!(answer.addresses.len() <= message.len() / 4);
            }
        }
    }
}
