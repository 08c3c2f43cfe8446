//! The outbox: where a module leaves its responses for *send response*.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use afpa_cache::root::FileBody;
use afpa_cache::{Pinned, Stamp};

/// Content up to this size is copied behind its head; larger content is sent from the cache object.
pub const GATHERED: u64 = 16 * 1024;

/// The module's own note of a response that is not sent at once. The engine keeps it, and gives it back to
/// [`Module::sent`](crate::Module::sent).
pub type Receipt = Box<dyn Any>;

/// Responses to send, in order: `bytes` first, in one write, then the parts.
///
/// Small answers, also those to pipelined requests, are gathered in `bytes`. A body that is too large to be
/// copied follows as a [`Part`]. After the first part nothing may be gathered until all of it was sent:
/// [`Outbox::takes_more`] says so.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Heads and small bodies, gathered.
    pub bytes: Vec<u8>,
    /// So many bytes at their front are a response's head in the form that connections with streams send, instead of the
    /// form of a connection for one request at a time; 0: they are not.
    pub block: usize,
    /// Parts that follow the bytes.
    pub parts: VecDeque<Part>,
    /// The priority of the response to which the parts belong, where long responses wait for one another.
    pub priority: Priority,
    /// The note of the response to which the parts belong.
    pub receipt: Option<Receipt>,
}

/// Which long responses go first when a core is behind. The first one is the smallest in the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Before all others.
    High,
    /// By the bytes that are left.
    #[default]
    Normal,
    /// After all others.
    Low,
}

/// Bytes that do not change: several responses share them, or a limit counts them until the last response lets them go.
pub trait SharedBytes: AsRef<[u8]> + fmt::Debug {}

impl<T: AsRef<[u8]> + fmt::Debug> SharedBytes for T {}

/// A piece of a response that is sent from where it lies.
#[derive(Debug)]
pub enum Part {
    /// Bytes made for this response: a multipart boundary, a listing.
    Bytes(Vec<u8>),
    /// A range of bytes that others may hold as well.
    Shared(Rc<dyn SharedBytes>, Range<usize>),
    /// A range of a pinned cache object.
    Pinned(Pinned, Range<usize>),
    /// A range of a file-system cache object, as long as the file has these bytes.
    File {
        /// The open descriptor.
        file: Arc<FileBody>,
        /// The version at the last look: at first the one that was announced in the head.
        stamp: Stamp,
        /// Bytes to send; never beyond the announced size.
        range: Range<u64>,
    },
}

impl Part {
    /// Bytes in this part.
    pub fn len(&self) -> u64 {
        match self {
            Part::Bytes(bytes) => bytes.len() as u64,
            Part::Shared(_, range) | Part::Pinned(_, range) => range.len() as u64,
            Part::File { range, .. } => range.end.saturating_sub(range.start),
        }
    }

    /// Whether there is nothing (left) to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the first `n` bytes, which have been sent.
    pub fn advance(&mut self, n: u64) {
        debug_assert!(n <= self.len(), "more was sent than there was");
        let n = n.min(self.len());
        match self {
            Part::Bytes(bytes) => drop(bytes.drain(..n as usize)),
            Part::Shared(_, range) | Part::Pinned(_, range) => range.start += n as usize,
            Part::File { range, .. } => range.start += n,
        }
    }
}

impl Outbox {
    /// When so many bytes are gathered, they are sent, even if more requests wait.
    pub const GATHER: usize = 64 * 1024;

    /// Whether another response may be derived before this is sent.
    pub fn takes_more(&self) -> bool {
        self.parts.is_empty() && self.bytes.len() < Self::GATHER
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.parts.is_empty()
    }

    /// Puts a part behind the others.
    pub fn push(&mut self, part: Part) {
        if !part.is_empty() {
            self.parts.push_back(part);
        }
    }

    /// Bytes that wait, in memory and in files.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64 + self.parts.iter().map(Part::len).sum::<u64>()
    }

    /// Empties the outbox; the memory of the gather buffer is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.block = 0;
        self.parts.clear();
        self.priority = Priority::default();
        self.receipt = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_gathering_until_it_has_left() {
        let mut out = Outbox::default();
        assert!(out.takes_more() && out.is_empty());
        out.bytes.extend_from_slice(b"head");
        assert!(out.takes_more());
        out.push(Part::Bytes(b"body".to_vec()));
        assert!(!out.takes_more());
        assert_eq!(out.len(), 8);
        out.clear();
        assert!(out.takes_more() && out.is_empty());
    }

    #[test]
    fn empty_parts_are_not_kept_and_sent_bytes_go_from_the_front() {
        let mut out = Outbox::default();
        out.push(Part::Bytes(Vec::new()));
        assert!(out.is_empty());
        let mut part = Part::Bytes(b"abcdef".to_vec());
        part.advance(4);
        assert!(matches!(&part, Part::Bytes(b) if b == b"ef"));
        part.advance(2);
        assert!(part.is_empty());
    }
}
