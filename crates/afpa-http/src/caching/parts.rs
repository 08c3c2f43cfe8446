//! Parts of a representation: which may be combined (section 3.4), what of it they cover, and what contradicts them.
//!
//! A part is what one 206 has brought, or the start of a 200 that broke off. The parts of one representation are pieces
//! that neither overlap nor are empty. A piece that arrives is compared with those that it overlaps: a server that says
//! two things about one byte is not believed at all.

use std::fmt;
use std::ops::{Deref, Range};

use super::condition::StoredValidators;
use crate::etag::SentTag;
use crate::syntax::{number, trim};

/// The Content-Range of a 206 with one part (RFC 9110 section 14.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// The bytes of the part; there is at least one.
    pub range: Range<u64>,
    /// The length of the whole representation, which the range does not exceed.
    pub complete: u64,
}

impl ContentRange {
    /// `None`: it is malformed, of another unit, or does not say how long the whole is.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = value.split_at_checked("bytes ".len())?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let rest = trim(rest);
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        let (range, complete) = (rest.get(..slash)?, number(rest.get(slash + 1..)?)?);
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let (first, last) = (number(range.get(..dash)?)?, number(range.get(dash + 1..)?)?);
        (first <= last && last < complete).then(|| Self { range: first..last + 1, complete })
    }

    /// How many bytes the part has.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// Whether responses with these validators are parts of one representation, byte by byte (section 3.4): they have the same
/// strong entity tag, or none, and the same date that is a strong validator of both.
pub fn are_of_one(one: &StoredValidators<'_>, other: &StoredValidators<'_>) -> bool {
    match (one.etag, other.etag) {
        (Some(own), Some(new)) => own == new && is_strong_tag(own),
        (None, None) => {
            one.last_modified == other.last_modified && is_strong_date(one) && is_strong_date(other)
        }
        _ => false,
    }
}

/// Whether these name one version of a representation, byte by byte.
pub fn are_strong(validators: &StoredValidators<'_>) -> bool {
    are_of_one(validators, validators)
}

fn is_strong_tag(tag: &[u8]) -> bool {
    SentTag::parse(tag).is_some_and(|tag| !tag.weak)
}

/// RFC 9110 section 8.8.2.2: so long before Date that neither a second change within the second nor two clocks matter.
fn is_strong_date(validators: &StoredValidators<'_>) -> bool {
    const APART: u64 = 60;
    let apart = |modified: u64| validators.date.checked_sub(modified);
    validators.last_modified.and_then(apart).is_some_and(|apart| apart >= APART)
}

/// The parts of one representation. `B` holds the bytes of a piece, and is cheap to clone.
#[derive(Clone)]
pub struct Parts<B> {
    complete: u64,
    /// In order.
    pieces: Vec<Piece<B>>,
}

/// Bytes that follow one another.
#[derive(Clone)]
pub struct Piece<B> {
    /// Where they begin in the representation.
    pub start: u64,
    /// The bytes; there is at least one.
    pub bytes: B,
}

/// How much is kept of one representation.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Pieces.
    pub pieces: usize,
    /// Bytes of all pieces.
    pub bytes: u64,
}

/// Why bytes were not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAdded {
    /// The bytes lie outside the representation, or there are none.
    Outside,
    /// The bytes differ from those that are stored: nothing of the representation is to be believed.
    Contradiction,
    /// There is no room for the bytes.
    NoRoom,
}

impl<B: Deref<Target = [u8]> + Clone> Parts<B> {
    /// No part of a representation of so many bytes. It takes no memory yet.
    pub fn new(complete: u64) -> Self {
        Self { complete, pieces: Vec::new() }
    }

    /// How long the whole representation is.
    pub fn complete(&self) -> u64 {
        self.complete
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> &[Piece<B>] {
        &self.pieces
    }

    /// Whether there is all of it.
    pub fn is_complete(&self) -> bool {
        self.bytes() == self.complete
    }

    /// How many bytes of it there are. Pieces do not overlap, and lie within it.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(Piece::len).sum()
    }

    /// Where the bytes of a range lie: pieces, and ranges within them. `None`: some are not there, or there are none.
    pub fn find(&self, range: &Range<u64>) -> Option<Vec<(&Piece<B>, Range<usize>)>> {
        let mut at = range.start;
        let mut found = Vec::new();
        for piece in self.pieces.iter().filter(|piece| piece.end() > range.start) {
            if piece.start > at || at >= range.end {
                break;
            }
            let end = piece.end().min(range.end);
            found.push((piece, piece.place(at)?..piece.place(end)?));
            at = end;
        }
        (at == range.end && !found.is_empty()).then_some(found)
    }

    /// Adds bytes that begin at `start`. `room` copies all slices that it gets, one after the other, into one piece.
    ///
    /// If there are more pieces than `most` allows, neighbours are joined, and then the shortest pieces are left out.
    ///
    /// # Errors
    /// [`NotAdded`]; the parts are as they were.
    pub fn add(
        &mut self,
        start: u64,
        data: &[u8],
        most: Most,
        room: &mut impl FnMut(&[&[u8]]) -> Option<B>,
    ) -> Result<(), NotAdded> {
        let end = start.checked_add(data.len() as u64).filter(|end| *end <= self.complete);
        let Some(end) = end.filter(|_| !data.is_empty()) else { return Err(NotAdded::Outside) };
        let mut pieces = self.pieces.clone();
        if pieces.iter().any(|piece| piece.contradicts(start, data)) {
            return Err(NotAdded::Contradiction);
        }
        pieces.retain(|piece| piece.start < start || piece.end() > end);
        // Pieces that overlap it now begin before it, or end behind it.
        let before = pieces.iter().filter(|piece| piece.start < start).map(Piece::end).max();
        let behind = pieces.iter().filter(|piece| piece.end() > end).map(|piece| piece.start).min();
        let first = before.map_or(start, |before| before.max(start));
        let last = behind.map_or(end, |behind| behind.min(end));
        if first < last {
            let new = data.get((first - start) as usize..(last - start) as usize);
            let bytes = room(&[new.unwrap_or_default()]).ok_or(NotAdded::NoRoom)?;
            pieces.push(Piece { start: first, bytes });
            pieces.sort_by_key(|piece| piece.start);
        }
        self.pieces = fit(pieces, most, room).ok_or(NotAdded::NoRoom)?;
        Ok(())
    }
}

/// Pieces within a limit.
fn fit<B: Deref<Target = [u8]> + Clone>(
    mut pieces: Vec<Piece<B>>,
    most: Most,
    room: &mut impl FnMut(&[&[u8]]) -> Option<B>,
) -> Option<Vec<Piece<B>>> {
    let bytes = |pieces: &[Piece<B>]| pieces.iter().map(Piece::len).sum::<u64>();
    let is_beyond = |pieces: &[Piece<B>]| pieces.len() > most.pieces || bytes(pieces) > most.bytes;
    if pieces.len() > most.pieces {
        pieces = join(&pieces, room)?;
    }
    while is_beyond(&pieces) {
        let shortest = (0..pieces.len()).min_by_key(|&at| pieces.get(at).map(Piece::len))?;
        pieces.remove(shortest);
    }
    Some(pieces)
}

/// Pieces of which no two are neighbours.
fn join<B: Deref<Target = [u8]> + Clone>(
    pieces: &[Piece<B>],
    room: &mut impl FnMut(&[&[u8]]) -> Option<B>,
) -> Option<Vec<Piece<B>>> {
    let runs = pieces.chunk_by(|one, next| one.end() == next.start);
    let joined = runs.map(|run| match run {
        [only] => Some(only.clone()),
        run => {
            let all: Vec<&[u8]> = run.iter().map(|piece| &*piece.bytes).collect();
            let start = run.first()?.start;
            Some(Piece { start, bytes: room(&all)? })
        }
    });
    joined.collect()
}

impl<B: Deref<Target = [u8]>> Piece<B> {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Behind its last byte. It lies within a representation, so that this is no overflow.
    fn end(&self) -> u64 {
        self.start.saturating_add(self.len())
    }

    /// The place of a byte of the representation in it.
    fn place(&self, at: u64) -> Option<usize> {
        usize::try_from(at.checked_sub(self.start)?).ok()
    }

    /// Whether bytes that begin at `start` differ from it where both are.
    fn contradicts(&self, start: u64, data: &[u8]) -> bool {
        let first = self.start.max(start);
        let last = self.end().min(start.saturating_add(data.len() as u64));
        if first >= last {
            return false;
        }
        let own = self.bytes.get((first - self.start) as usize..(last - self.start) as usize);
        let new = data.get((first - start) as usize..(last - start) as usize);
        own.is_none() || own != new
    }
}

impl<B: Deref<Target = [u8]>> fmt::Debug for Parts<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}", self.pieces, self.complete)
    }
}

impl<B: Deref<Target = [u8]>> fmt::Debug for Piece<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end())
    }
}

#[cfg(test)]
mod tests;
