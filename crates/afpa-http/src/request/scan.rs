//! The cold half of the parser: finds the first offence in a head that is not known to be good.
//!
//! It reads byte by byte and never looks ahead, so a prefix of a refused head is either refused
//! for the same reason or incomplete. On top of what `httparse` refuses, it refuses
//!
//! * a bare LF anywhere, and more than one empty line before the request line;
//! * targets with bytes outside ASCII or without a place in a URI;
//! * anything longer than its limit, before the rest of it has arrived;
//! * versions other than 1.0 and 1.1 with a reason of their own.
//!
//! It runs on incomplete heads as well, where it costs one pass over at most `limits.head` bytes
//! for each read; that is as much as `httparse`, which starts from the front again, too.

use super::form::is_target_byte;
use super::{MAX_FIELDS, Refusal, RequestLimits};
use crate::syntax::{is_field_byte, is_tchar};

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The first offence.
    Offence(Refusal),
    /// No offence so far, and no end of the head.
    Incomplete,
    /// A well-formed head of so many bytes.
    Complete(usize),
}

/// Scans the head at the front of `input`.
#[cold]
pub(super) fn scan(input: &[u8], limits: &RequestLimits) -> Scan {
    let mut cursor = Cursor { input, position: 0, end: limits.head };
    match cursor.head(limits) {
        Ok(()) => Scan::Complete(cursor.position),
        Err(Stop::Offence(refusal)) => Scan::Offence(refusal),
        Err(Stop::Incomplete) => Scan::Incomplete,
    }
}

enum Stop {
    Offence(Refusal),
    Incomplete,
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Offence(refusal)
    }
}

struct Cursor<'b> {
    input: &'b [u8],
    position: usize,
    end: usize,
}

impl<'b> Cursor<'b> {
    fn head(&mut self, limits: &RequestLimits) -> Result<(), Stop> {
        if self.peek()? == b'\r' {
            self.crlf()?;
        }
        self.request_line(limits.request_line)?;
        let mut fields = 0;
        while self.peek()? != b'\r' {
            if fields == limits.fields.min(MAX_FIELDS) {
                return Err(Refusal::TooManyFields.into());
            }
            self.field_line()?;
            fields += 1;
        }
        self.crlf()
    }

    fn request_line(&mut self, limit: usize) -> Result<(), Stop> {
        let line = Line { start: self.position, limit };
        self.word(line, is_tchar, Refusal::RequestLine)?;
        self.word(line, is_target_byte, Refusal::TargetBytes)?;
        let start = self.position;
        while self.peek()? != b'\r' {
            line.check(self.position)?;
            match self.next()? {
                b'\n' => return Err(Refusal::BareLf.into()),
                byte if !byte.is_ascii_graphic() => return Err(Refusal::RequestLine.into()),
                _ => {}
            }
        }
        let version = self.input.get(start..self.position).unwrap_or_default();
        self.crlf()?;
        Ok(version_of_line(version)?)
    }

    /// One word of the request line and the space that ends it.
    fn word(&mut self, line: Line, fits: fn(u8) -> bool, refusal: Refusal) -> Result<(), Stop> {
        let start = self.position;
        loop {
            let byte = self.next()?;
            line.check(self.position - 1)?;
            match byte {
                b' ' if self.position - start > 1 => return Ok(()),
                b'\n' => return Err(Refusal::BareLf.into()),
                // An early end of the line or a double space: a word is missing.
                b' ' | b'\r' => return Err(Refusal::RequestLine.into()),
                byte if !fits(byte) => return Err(refusal.into()),
                _ => {}
            }
        }
    }

    fn field_line(&mut self) -> Result<(), Stop> {
        match self.next()? {
            b' ' | b'\t' => return Err(Refusal::Folded.into()),
            b'\n' => return Err(Refusal::BareLf.into()),
            byte if !is_tchar(byte) => return Err(Refusal::FieldName.into()),
            _ => {}
        }
        loop {
            match self.next()? {
                b':' => break,
                b' ' | b'\t' => return Err(Refusal::SpaceBeforeColon.into()),
                b'\n' => return Err(Refusal::BareLf.into()),
                byte if !is_tchar(byte) => return Err(Refusal::FieldName.into()),
                _ => {}
            }
        }
        while self.peek()? != b'\r' {
            match self.next()? {
                b'\n' => return Err(Refusal::BareLf.into()),
                byte if !is_field_byte(byte) => return Err(Refusal::FieldValue.into()),
                _ => {}
            }
        }
        self.crlf()
    }

    /// CR has been seen; LF must follow.
    fn crlf(&mut self) -> Result<(), Stop> {
        self.next()?;
        match self.next()? {
            b'\n' => Ok(()),
            _ => Err(Refusal::BareCr.into()),
        }
    }

    fn next(&mut self) -> Result<u8, Stop> {
        let byte = self.peek()?;
        self.position += 1;
        Ok(byte)
    }

    fn peek(&self) -> Result<u8, Stop> {
        match self.input.get(self.position) {
            Some(_) if self.position >= self.end => Err(Refusal::HeadTooLong.into()),
            Some(&byte) => Ok(byte),
            None => Err(Stop::Incomplete),
        }
    }
}

/// Start and limit of the request line.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    limit: usize,
}

impl Line {
    /// Refuses the byte at `position` when the line may not be so long.
    fn check(self, position: usize) -> Result<(), Refusal> {
        if position - self.start < self.limit { Ok(()) } else { Err(Refusal::RequestLineTooLong) }
    }
}

/// A version in the right form but another number is 505, anything else no request line at all.
fn version_of_line(version: &[u8]) -> Result<(), Refusal> {
    match version {
        b"HTTP/1.0" | b"HTTP/1.1" => Ok(()),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => Err(Refusal::Version),
        _ => Err(Refusal::RequestLine),
    }
}
