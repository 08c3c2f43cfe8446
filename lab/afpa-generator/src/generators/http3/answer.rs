//! One answer: its frames (RFC 9114 section 4.1), its head, its content. No stream, no clock.

use std::collections::HashSet;

use afpa_h3::frame::{kind, read_header};
use afpa_h3::qpack;

use crate::workload::Request;

/// An answer as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The frame that has begun: its type, and the bytes that it still has.
    frame: Option<(u64, u64)>,
    /// A header of a frame or a field section that has not come whole.
    partial: Vec<u8>,
    has_head: bool,
    /// Bytes of content.
    received: u64,
    is_compared: bool,
}

/// Field sections that were right: a server sends the same again, until its clock goes on.
#[derive(Debug, Default)]
pub(super) struct Heads {
    right: HashSet<(usize, Vec<u8>)>,
    last: (usize, Vec<u8>),
}

/// A head has so many forms at most that are remembered.
const MOST_HEADS: usize = 1000;

impl Answer {
    /// With `is_compared`, every byte is.
    pub(super) fn new(is_compared: bool) -> Self {
        Self { is_compared, ..Self::default() }
    }

    /// Bytes of content that have come.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Takes bytes of the stream; `wanted` has its number among all requests.
    ///
    /// # Errors
    ///
    /// The reason why the answer is wrong.
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        wanted: (usize, &Request),
        heads: &mut Heads,
    ) -> Result<(), String> {
        while let Some(first) = bytes.first() {
            let Some((kind, left)) = self.frame else {
                let whole = if self.partial.is_empty() { read_header(bytes) } else { None };
                if let Some((kind, length, n)) = whole {
                    bytes = bytes.get(n..).unwrap_or_default();
                    self.begin(kind, length)?;
                    continue;
                }
                self.partial.push(*first);
                bytes = bytes.get(1..).unwrap_or_default();
                if let Some((kind, length, _)) = read_header(&self.partial) {
                    self.partial.clear();
                    self.begin(kind, length)?;
                }
                continue;
            };
            let n = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let (piece, rest) = bytes.split_at_checked(n).unwrap_or((bytes, b""));
            bytes = rest;
            let left = left - n as u64;
            match kind {
                kind::DATA => self.content(piece, wanted.1)?,
                kind::HEADERS if left == 0 && self.partial.is_empty() => {
                    self.head(piece, wanted, heads)?;
                }
                kind::HEADERS => {
                    self.partial.extend_from_slice(piece);
                    if left == 0 {
                        let section = std::mem::take(&mut self.partial);
                        self.head(&section, wanted, heads)?;
                    }
                }
                _ => {}
            }
            self.frame = (left > 0).then_some((kind, left));
        }
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    ///
    /// When something is missing.
    pub(super) fn end(&self, wanted: &Request) -> Result<(), String> {
        if !self.has_head || self.frame.is_some() || !self.partial.is_empty() {
            return Err("cut short".into());
        }
        match wanted.body {
            Some(body) if body.length() != self.received => {
                Err(format!("{} bytes of {}", self.received, body.length()))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, kind: u64, length: u64) -> Result<(), String> {
        match kind {
            kind::DATA if !self.has_head => Err("content before the head".into()),
            kind::HEADERS if length == 0 => Err("an empty head".into()),
            kind::SETTINGS | kind::GOAWAY => Err(format!("a frame of type {kind} in an answer")),
            _ => {
                self.frame = (length > 0).then_some((kind, length));
                Ok(())
            }
        }
    }

    fn content(&mut self, piece: &[u8], wanted: &Request) -> Result<(), String> {
        if let Some(body) = wanted.body
            && self.is_compared
            && !body.check(self.received, piece)
        {
            return Err(format!("wrong content at {} or after", self.received));
        }
        self.received += piece.len() as u64;
        Ok(())
    }

    fn head(
        &mut self,
        section: &[u8],
        (number, wanted): (usize, &Request),
        heads: &mut Heads,
    ) -> Result<(), String> {
        if self.has_head || heads.knows(number, section) {
            // Behind the content they are trailers.
            self.has_head = true;
            return Ok(());
        }
        let (mut status, mut length) = (None, None);
        qpack::decode(section, |name, value| match name {
            b":status" => status = number_of(value),
            b"content-length" => length = number_of(value),
            _ => {}
        })
        .map_err(|error| format!("its head: {error}"))?;
        match status {
            Some(100..200) => return Ok(()),
            Some(status) if status == u64::from(wanted.status) => {}
            _ => return Err(format!("status {}", status.unwrap_or(0))),
        }
        if let (Some(length), Some(body)) = (length, wanted.body)
            && length != body.length()
        {
            return Err(format!("a Content-Length of {length}, and not {}", body.length()));
        }
        self.has_head = true;
        heads.learn(number, section);
        Ok(())
    }
}

impl Heads {
    fn knows(&mut self, number: usize, section: &[u8]) -> bool {
        if self.last.0 == number && self.last.1 == section {
            return true;
        }
        // Rare: another file, another second.
        let key = (number, section.to_vec());
        let is_known = self.right.contains(&key);
        if is_known {
            self.last = key;
        }
        is_known
    }

    fn learn(&mut self, number: usize, section: &[u8]) {
        if self.right.len() >= MOST_HEADS {
            self.right.clear();
        }
        self.last = (number, section.to_vec());
        self.right.insert(self.last.clone());
    }
}

fn number_of(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use afpa_h3::frame::put_header;

    use super::*;
    use crate::workload::Object;

    /// `:status: 200` of the static table, and content-length as a literal.
    fn head(status: u8, length: usize) -> Vec<u8> {
        let digits = length.to_string();
        let mut section = vec![0, 0, status, 0x54, digits.len() as u8];
        section.extend_from_slice(digits.as_bytes());
        section
    }

    const OK: u8 = 0xc0 | 25;
    const MISSING: u8 = 0xc0 | 27;

    fn framed(section: &[u8], pieces: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_header(&mut bytes, kind::HEADERS, section.len() as u64);
        bytes.extend_from_slice(section);
        // A frame that nobody knows (RFC 9114 section 9).
        put_header(&mut bytes, 0x21, 3);
        bytes.extend_from_slice(b"abc");
        for piece in pieces {
            put_header(&mut bytes, kind::DATA, piece.len() as u64);
            bytes.extend_from_slice(piece);
        }
        bytes
    }

    fn wanted(length: u64) -> (Request, Vec<u8>) {
        let object = Object::new("/a", length);
        let mut content = Vec::new();
        object.body.write(&mut content).unwrap();
        (Request::get(&object), content)
    }

    fn read(bytes: &[u8], piece: usize, wanted: &Request) -> Result<u64, String> {
        let (mut answer, mut heads) = (Answer::new(true), Heads::default());
        for piece in bytes.chunks(piece) {
            answer.take(piece, (0, wanted), &mut heads)?;
        }
        answer.end(wanted)?;
        Ok(answer.received())
    }

    #[test]
    fn a_right_answer_is_right_in_any_pieces() {
        let (wanted, content) = wanted(5000);
        let (one, other) = content.split_at(1234);
        let bytes = framed(&head(OK, 5000), &[one, b"", other]);
        for piece in [1, 2, 7, 1000, usize::MAX] {
            assert_eq!(read(&bytes, piece, &wanted), Ok(5000), "in pieces of {piece}");
        }
    }

    #[test]
    fn wrong_answers_are_told() {
        let (wanted, content) = wanted(600);
        let right = framed(&head(OK, 600), &[&content]);
        let mut changed = content.clone();
        changed[599] ^= 1;
        let longer = [&content[..], b"x"].concat();
        for (bytes, word) in [
            (framed(&head(MISSING, 600), &[&content]), "status 404"),
            (framed(&head(OK, 601), &[&content]), "Content-Length"),
            (framed(&head(OK, 600), &[&changed]), "wrong content"),
            (framed(&head(OK, 600), &[&longer]), "wrong content"),
            (framed(&head(OK, 600), &[&content[..599]]), "599 bytes"),
            (right[..right.len() - 1].to_vec(), "cut short"),
            (right[..1].to_vec(), "cut short"),
            (vec![0x00, 0x01, 0x61], "before the head"),
            (vec![0x01, 0x00], "empty head"),
            (vec![0x01, 0x03, 0x05, 0x00, 0xd9], "its head"),
        ] {
            let error = read(&bytes, 100, &wanted).unwrap_err();
            assert!(error.contains(word), "{error}, and not {word}");
        }
    }

    #[test]
    fn an_answer_before_the_answer_is_passed_over() {
        let (wanted, content) = wanted(10);
        // 103, then 200.
        let mut bytes = vec![0x01, 0x03, 0x00, 0x00, 0xc0 | 24];
        bytes.extend(framed(&head(OK, 10), &[&content]));
        assert_eq!(read(&bytes, 3, &wanted), Ok(10));
    }

    #[test]
    fn a_head_is_known_for_its_request_alone() {
        let mut heads = Heads::default();
        heads.learn(0, b"one");
        assert!(heads.knows(0, b"one") && !heads.knows(1, b"one") && !heads.knows(0, b"two"));
        heads.learn(0, b"two");
        assert!(heads.knows(0, b"one") && heads.knows(0, b"two"));
    }
}
