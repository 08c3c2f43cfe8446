//! Buffers for what arrives, which the kernel chooses from: `io_uring_register_buf_ring(3)`.

use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use memmap2::{MmapMut, MmapRaw};

/// The only group of buffers of a ring.
pub(crate) const GROUP: u16 = 0;

/// Equal buffers in one mapping, and the queue by which the kernel gets them.
///
/// A buffer is either the kernel's, from the time at which it is queued, or that of the one [`Piece`] that names it.
pub(crate) struct Buffers {
    queue: MmapRaw,
    memory: MmapRaw,
    count: u16,
    size: usize,
    tail: u16,
    lent: usize,
}

/// A part of a buffer, filled by the kernel. The buffer has no other user until it is [given back](Buffers::give_back).
#[derive(Debug)]
pub(crate) struct Piece {
    buffer: u16,
    start: usize,
    end: usize,
}

impl Piece {
    /// Drops the first `n` bytes.
    pub(crate) fn advance(&mut self, n: usize) {
        self.start = self.end.min(self.start + n);
    }
}

impl Buffers {
    /// `count`, a power of two up to 2^15, buffers of `size` bytes. All of them are queued.
    pub(crate) fn new(count: u16, size: usize) -> io::Result<Self> {
        if !count.is_power_of_two() || count > 1 << 15 || u32::try_from(size).is_err() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let queue = MmapMut::map_anon(usize::from(count) * size_of::<BufRingEntry>())?.into();
        let memory = MmapMut::map_anon(usize::from(count) * size.max(1))?.into();
        let lent = usize::from(count);
        let mut buffers = Self { queue, memory, count, size, tail: 0, lent };
        for buffer in 0..count {
            buffers.give_back(Piece { buffer, start: 0, end: 0 });
        }
        Ok(buffers)
    }

    /// Tells the kernel of them.
    ///
    /// # Safety
    /// `self` is not dropped before the ring of `submitter`.
    #[expect(unsafe_code, reason = "the kernel is given addresses")]
    pub(crate) unsafe fn register(&self, submitter: &Submitter<'_>) -> io::Result<()> {
        let address = self.queue.as_ptr().addr() as u64;
        // JUSTIFICATION: the queue is memory of ours.
        // SAFETY: it is a mapping, so it begins at a page, has room for `count` entries, and lives as long as the
        // ring, as the contract above says.
        unsafe { submitter.register_buf_ring_with_flags(address, self.count, GROUP, 0) }
    }

    /// The buffer that the kernel has filled with `len` bytes, by the number that the kernel has named.
    pub(crate) fn filled(&mut self, buffer: u16, len: usize) -> Piece {
        assert!(buffer < self.count, "the kernel names buffers of its own");
        self.lent += 1;
        Piece { buffer, start: 0, end: len.min(self.size) }
    }

    /// The bytes in it.
    #[expect(unsafe_code, reason = "cuts a slice out of the mapping")]
    pub(crate) fn bytes(&self, piece: &Piece) -> &[u8] {
        let at = usize::from(piece.buffer) * self.size + piece.start;
        // JUSTIFICATION: the kernel writes to other buffers of the mapping while this slice lives.
        // SAFETY: in bounds, because `filled` and `advance` keep `start <= end <= size` and `buffer < count`; the
        // mapping began as zeros; the kernel does not write to a buffer that it has given away, and the borrow of
        // the piece keeps it from being given back.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().add(at), piece.end - piece.start) }
    }

    /// Moves the bytes of `next` behind `last`, if its buffer has room for them, and gives the buffer of `next` back.
    /// Otherwise `next` comes back.
    pub(crate) fn join(&mut self, last: &mut Piece, next: Piece) -> Option<Piece> {
        let len = next.end - next.start;
        if self.size - last.end < len {
            return Some(next);
        }
        self.copy(&next, usize::from(last.buffer) * self.size + last.end);
        last.end += len;
        self.give_back(next);
        None
    }

    #[expect(unsafe_code, reason = "writes to the mapping")]
    fn copy(&mut self, from: &Piece, to: usize) {
        let bytes = self.bytes(from);
        // JUSTIFICATION: the kernel writes to other buffers of the mapping meanwhile.
        // SAFETY: `join`, the only caller, names a place behind the bytes of another piece, with room for these in the
        // same buffer. The kernel has given that one away, and no slice of it lives, because its piece is borrowed
        // mutably. A buffer has one piece, so the two places do not overlap.
        unsafe {
            let to = self.memory.as_mut_ptr().add(to);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }

    /// Queues the buffer for the kernel.
    #[expect(unsafe_code, reason = "writes where the kernel reads")]
    pub(crate) fn give_back(&mut self, piece: Piece) {
        let place = usize::from(self.tail & (self.count - 1));
        let address = self.memory.as_ptr().addr() + usize::from(piece.buffer) * self.size;
        let entries = self.queue.as_mut_ptr().cast::<BufRingEntry>();
        // JUSTIFICATION: the queue is shared with the kernel.
        // SAFETY: `place < count`, the mapping has room for `count` entries and is aligned to a page; any bytes are an
        // entry. The kernel reads no entry behind the tail, and never has more than `count` before it, because a
        // buffer is queued only by the piece that owns it.
        let entry = unsafe { &mut *entries.add(place) };
        entry.set_addr(address as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(piece.buffer);
        self.tail = self.tail.wrapping_add(1);
        self.lent -= 1;
        // JUSTIFICATION: the kernel reads the tail while we write it.
        // SAFETY: `entries` is the first entry of the queue, in which the tail lies, aligned to two bytes.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(entries).cast_mut()) };
        // The entry is written before the kernel sees that it is there.
        tail.store(self.tail, Ordering::Release);
    }

    /// How many are not the kernel's now.
    pub(crate) fn lent(&self) -> usize {
        self.lent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_what_is_left_of_its_buffer() {
        let mut buffers = Buffers::new(4, 100).expect("a mapping");
        assert_eq!(buffers.lent(), 0);
        let mut piece = buffers.filled(3, 60);
        assert_eq!((buffers.lent(), buffers.bytes(&piece).len()), (1, 60));
        piece.advance(50);
        assert_eq!(buffers.bytes(&piece).len(), 10);
        piece.advance(50);
        assert!(buffers.bytes(&piece).is_empty());
        buffers.give_back(piece);
        assert_eq!(buffers.lent(), 0);
        let piece = buffers.filled(0, 1000);
        assert_eq!(buffers.bytes(&piece).len(), 100, "never beyond the buffer");
    }

    #[test]
    fn short_pieces_share_a_buffer_until_it_is_full() {
        let mut buffers = Buffers::new(4, 100).expect("a mapping");
        let mut last = buffers.filled(0, 60);
        last.advance(50);
        let next = buffers.filled(1, 40);
        assert!(buffers.join(&mut last, next).is_none());
        assert_eq!((buffers.lent(), buffers.bytes(&last).len()), (1, 50));
        let next = buffers.filled(2, 1);
        let next = buffers.join(&mut last, next).expect("the buffer is full to its end");
        assert_eq!((buffers.lent(), buffers.bytes(&next).len()), (2, 1));
        assert_eq!(buffers.bytes(&last).len(), 50);
    }

    #[test]
    fn numbers_that_the_kernel_would_refuse_are_refused() {
        for count in [0, 3, 1000, 1 << 15 | 1] {
            assert!(Buffers::new(count, 100).is_err(), "{count}");
        }
    }
}
