//! Zones for secondaries, whole or by differences (RFC 5936, 1995), and the word that a zone is new (RFC 1996).

use std::iter::Peekable;

use crate::journal::{Difference, Journal};
use crate::message::{Section, Writer};
use crate::query::Query;
use crate::rtype;
use crate::zone::{Line, Zone};

const IN: u16 = 1;
const AA: u8 = 0x04;
const QR: u8 = 0x80;
/// A message holds records up to about this length, so that pointers of its names reach everything before.
const LONG: usize = 16_000;
/// The longest message, with room for a signature.
const LONGEST: usize = u16::MAX as usize - 512;
const NOTIFY: u8 = 4 << 3;

/// The messages of a transfer, each made when it is asked for. Whole: the zone's SOA, everything else, and the SOA again. A client
/// of IXFR gets what has changed since its version, if the journal tells (RFC 1995 section 4), and the SOA alone if its version is
/// this one or a newer one (section 2).
pub fn transfer<'z>(
    zone: &'z Zone,
    journal: &'z Journal,
    query: &'z Query<'z>,
) -> impl Iterator<Item = Vec<u8>> + 'z {
    let soa = || zone.records().next();
    let known = query.serial.filter(|_| query.rtype == rtype::IXFR);
    // Serial numbers wrap around (RFC 1982).
    let is_current = |known: u32| known.wrapping_sub(zone.serial()) as i32 >= 0;
    let records: Box<dyn Iterator<Item = Line<'z>> + 'z> = match known {
        Some(known) if is_current(known) => Box::new(soa().into_iter()),
        known => match known.and_then(|known| journal.since(known)) {
            Some(Difference { removed, added }) => {
                let changed = removed.into_iter().chain(added).map(Line::from);
                Box::new(soa().into_iter().chain(changed).chain(soa()))
            }
            None => Box::new(zone.records().chain(soa())),
        },
    };
    Messages { query, records: records.peekable(), is_first: true }
}

struct Messages<'z, R: Iterator<Item = Line<'z>>> {
    query: &'z Query<'z>,
    records: Peekable<R>,
    is_first: bool,
}

impl<'z, R: Iterator<Item = Line<'z>>> Iterator for Messages<'z, R> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        self.records.peek()?;
        let query = self.query;
        let mut out = Vec::with_capacity(LONG);
        let mut writer = Writer::new(&mut out, LONGEST);
        if std::mem::take(&mut self.is_first) {
            writer.question(query.name, query.rtype, query.class);
        }
        while let Some(Line { owner, rtype, ttl, data }) = self.records.peek() {
            if writer.len() > LONG {
                break;
            }
            let head = (*rtype, IN, *ttl);
            if writer.record(Section::Answer, owner.wire(), head, data).is_err()
                && writer.count(Section::Answer) > 0
            {
                break;
            }
            self.records.next();
        }
        let [first, second, ..] = query.header;
        writer.finish([first, second], [QR | AA, 0]);
        Some(out)
    }
}

/// A message that tells a secondary of the zone's serial number.
pub fn notify(zone: &Zone, id: u16) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, 512);
    writer.question(zone.apex().wire(), rtype::SOA, IN);
    if let Some(set) = zone.top().and_then(|top| top.set(rtype::SOA)) {
        for data in &set.data {
            // It is only a hint, and may be left out.
            let _ =
                writer.record(Section::Answer, zone.apex().wire(), (rtype::SOA, IN, set.ttl), data);
        }
    }
    writer.finish(id.to_be_bytes(), [NOTIFY | AA, 0]);
    out
}

/// Whether a message is a secondary's answer to such a message.
pub fn is_answer_to_notify(message: &[u8], id: u16) -> bool {
    match message {
        [a, b, flags, ..] => [*a, *b] == id.to_be_bytes() && flags & 0xf8 == QR | NOTIFY,
        _ => false,
    }
}
