//! A message that is written: sections, compression of names, and a limit of its length.

use crate::name::suffixes;
use crate::query::HEADER;
use crate::rtype;

/// Names that later ones are compared with.
const MOST_PLACES: usize = 48;
/// A pointer has 14 bits.
const FARTHEST: usize = 0x3fff;
const POINTER: u16 = 0xc000;

/// The sections of a message behind its question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// The answer.
    Answer = 1,
    /// The authority.
    Authority = 2,
    /// The additional section.
    Additional = 3,
}

/// A record does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A message in the making, at the end of a buffer that may hold others before it.
#[derive(Debug)]
pub(crate) struct Writer<'b> {
    out: &'b mut Vec<u8>,
    start: usize,
    limit: usize,
    /// Where names that are written out begin, from the start of the message.
    places: [u16; MOST_PLACES],
    used: usize,
    counts: [u16; 4],
}

/// A place to which a message can return.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    length: usize,
    used: usize,
    counts: [u16; 4],
}

impl<'b> Writer<'b> {
    /// A message of at most `limit` bytes, which begins with a header of zeroes.
    pub(crate) fn new(out: &'b mut Vec<u8>, limit: usize) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; HEADER]);
        Self { out, start, limit, places: [0; MOST_PLACES], used: 0, counts: [0; 4] }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { length: self.out.len(), used: self.used, counts: self.counts }
    }

    pub(crate) fn go_back(&mut self, mark: Mark) {
        self.out.truncate(mark.length);
        (self.used, self.counts) = (mark.used, mark.counts);
    }

    /// Leaves so many bytes of the limit for later.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.limit = self.limit.saturating_sub(bytes);
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        self.limit += bytes;
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    pub(crate) fn count(&self, section: Section) -> u16 {
        self.counts.get(section as usize).copied().unwrap_or(0)
    }

    pub(crate) fn question(&mut self, name: &[u8], rtype: u16, class: u16) {
        self.remember(name, self.len());
        self.out.extend_from_slice(name);
        self.numbers(&[rtype, class]);
        self.counts[0] = 1;
    }

    /// Writes a record; one that does not fit leaves no trace.
    pub(crate) fn record(
        &mut self,
        section: Section,
        owner: &[u8],
        (rtype, class, ttl): (u16, u16, u32),
        data: &[u8],
    ) -> Result<(), Full> {
        let mark = self.mark();
        self.name(owner);
        self.numbers(&[rtype, class]);
        self.out.extend_from_slice(&ttl.to_be_bytes());
        let length_at = self.out.len();
        self.numbers(&[0]);
        self.data(rtype, data);
        let length = self.out.len() - length_at - 2;
        if let (Some(place), Ok(length)) =
            (self.out.get_mut(length_at..length_at + 2), u16::try_from(length))
        {
            place.copy_from_slice(&length.to_be_bytes());
        }
        if self.len() > self.limit {
            self.go_back(mark);
            return Err(Full);
        }
        if let Some(count) = self.counts.get_mut(section as usize) {
            *count += 1;
        }
        Ok(())
    }

    /// Writes the header: the id, and the two bytes of flags.
    pub(crate) fn finish(self, id: [u8; 2], flags: [u8; 2]) {
        let Self { out, start, counts, .. } = self;
        let [i, j] = id;
        let [f, g] = flags;
        let mut header = [i, j, f, g, 0, 0, 0, 0, 0, 0, 0, 0];
        for (place, count) in header[4..].chunks_exact_mut(2).zip(counts) {
            place.copy_from_slice(&count.to_be_bytes());
        }
        if let Some(place) = out.get_mut(start..start + HEADER) {
            place.copy_from_slice(&header);
        }
    }

    fn data(&mut self, rtype: u16, data: &[u8]) {
        let Some((before, names)) = rtype::compressible(rtype) else {
            return self.out.extend_from_slice(data);
        };
        let (head, mut rest) = data.split_at_checked(before).unwrap_or((data, &[]));
        self.out.extend_from_slice(head);
        for _ in 0..names {
            let length = crate::name::wire_length(rest).unwrap_or(0);
            let (name, behind) = rest.split_at_checked(length).unwrap_or((&[], rest));
            self.name(name);
            rest = behind;
        }
        self.out.extend_from_slice(rest);
    }

    /// Writes a name, of which the end that was written before becomes a pointer.
    pub(crate) fn name(&mut self, name: &[u8]) {
        let mut written = 0;
        let begin = self.len();
        for suffix in suffixes(name) {
            if suffix.len() == 1 {
                break;
            }
            if let Some(place) = self.find(suffix) {
                self.out.extend_from_slice(name.get(..written).unwrap_or_default());
                self.numbers(&[POINTER | place]);
                self.remember_first(name, begin, written);
                return;
            }
            written += suffix.first().map_or(0, |length| usize::from(*length) + 1);
        }
        self.out.extend_from_slice(name);
        self.remember_first(name, begin, written);
    }

    fn remember(&mut self, name: &[u8], begin: usize) {
        self.remember_first(name, begin, name.len().saturating_sub(1));
    }

    /// Remembers the labels in the first `written` bytes of a name.
    fn remember_first(&mut self, name: &[u8], begin: usize, written: usize) {
        for suffix in suffixes(name) {
            let offset = name.len() - suffix.len();
            let at = begin + offset;
            if offset >= written || at > FARTHEST {
                return;
            }
            let Some(place) = self.places.get_mut(self.used) else { return };
            *place = at as u16;
            self.used += 1;
        }
    }

    fn find(&self, name: &[u8]) -> Option<u16> {
        let message = self.out.get(self.start..)?;
        let places = self.places.get(..self.used)?;
        places.iter().copied().find(|place| is_at(message, usize::from(*place), name))
    }

    fn numbers(&mut self, numbers: &[u16]) {
        for number in numbers {
            self.out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Whether the name that begins at `at` of our own message is this one.
fn is_at(message: &[u8], mut at: usize, name: &[u8]) -> bool {
    let mut rest = name;
    loop {
        let Some(&length) = message.get(at) else { return false };
        if u16::from(length) << 8 >= POINTER {
            let Some(&low) = message.get(at + 1) else { return false };
            at = usize::from(u16::from_be_bytes([length, low]) & !POINTER);
            continue;
        }
        let end = usize::from(length) + 1;
        let (Some(label), Some(own)) = (message.get(at..at + end), rest.get(..end)) else {
            return false;
        };
        if !label.eq_ignore_ascii_case(own) {
            return false;
        }
        if length == 0 {
            return true;
        }
        (at, rest) = (at + end, rest.get(end..).unwrap_or_default());
    }
}
