//! Buffers that a core reuses.

use std::cell::{Cell, RefCell};

/// Bytes of a buffer: the most that one read takes from a server. It fits the second-level cache of a
/// core, so that the bytes stay there on their way from one socket to the other.
pub const BUFFER: usize = 128 * 1024;

/// Room for one read; always [`BUFFER`] bytes.
#[derive(Debug)]
pub struct Buffer(Box<[u8]>);

impl std::ops::Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::ops::DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// Spare buffers. An exchange holds a buffer only while there are bytes in it, so a few buffers are enough
/// for many exchanges.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    rooms: RefCell<Vec<Buffer>>,
    /// For heads, and for content that is framed anew.
    texts: RefCell<Vec<Vec<u8>>>,
    /// Bytes of memory of `texts`.
    kept: Cell<usize>,
}

/// The memory of a new vector: that of most heads, so that it does not grow piece by piece.
const TEXT: usize = 1024;

/// A vector that grew beyond this is not kept.
const LARGEST_TEXT: usize = 2 * BUFFER;

/// The memory of all vectors that are kept: some thousand requests may wait for their servers at once.
const MOST_KEPT: usize = 4 << 20;

/// Spare buffers that are kept; beyond it they are given back to the system.
const SPARE: usize = 16;

impl Buffers {
    pub(super) fn take(&self) -> Buffer {
        let spare = self.rooms.borrow_mut().pop();
        spare.unwrap_or_else(|| Buffer(vec![0; BUFFER].into_boxed_slice()))
    }

    pub(super) fn give_back(&self, buffer: Buffer) {
        let mut spare = self.rooms.borrow_mut();
        if spare.len() < SPARE {
            spare.push(buffer);
        }
    }

    pub(super) fn take_text(&self) -> Vec<u8> {
        let Some(text) = self.texts.borrow_mut().pop() else { return Vec::with_capacity(TEXT) };
        self.kept.set(self.kept.get() - text.capacity());
        text
    }

    pub(super) fn give_back_text(&self, mut text: Vec<u8>) {
        let kept = self.kept.get() + text.capacity();
        if (1..=LARGEST_TEXT).contains(&text.capacity()) && kept <= MOST_KEPT {
            text.clear();
            self.kept.set(kept);
            self.texts.borrow_mut().push(text);
        }
    }
}
