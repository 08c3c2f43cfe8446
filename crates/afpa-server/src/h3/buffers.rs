//! Buffers for content of files, which the transport keeps until the client has acknowledged it.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_h3::frame::{HEADER, kind, put_header};
use bytes::Bytes;

/// The spare buffers of a worker. A buffer comes back when the last of its bytes was acknowledged, so long answers do not
/// ask the system for memory again and again.
#[derive(Default)]
pub(crate) struct Buffers {
    spare: Mutex<Vec<Box<[u8]>>>,
}

/// Content that a buffer holds at most: as much as the packets of one call take, of any size. With 64 KiB a second call would
/// follow each time, for the last two or three packets.
pub(super) const CONTENT: usize = 59 * 1024;

/// Up to this much content has a buffer of its own length.
const SMALL: usize = 16 * 1024;

/// Spare buffers at most: less than 1 MiB.
const SPARES: usize = 16;

impl Buffers {
    /// Reads up to `most` bytes of a file, as a frame of content. Returns their number, which is 0 at the end of the file.
    pub(super) fn read(
        self: &Arc<Self>,
        file: &File,
        offset: u64,
        most: usize,
    ) -> io::Result<(usize, Bytes)> {
        // Little content does not hold a large buffer until the client has it.
        let mut buffer = if most > SMALL { self.take() } else { self.of(HEADER + most) };
        let place = buffer.bytes.get_mut(HEADER..).unwrap_or_default();
        let most = most.min(place.len());
        let n = file.read_at(place.get_mut(..most).unwrap_or_default(), offset)?;
        let mut header = Vec::with_capacity(HEADER);
        put_header(&mut header, kind::DATA, n as u64);
        let start = HEADER - header.len();
        buffer.bytes.get_mut(start..HEADER).unwrap_or_default().copy_from_slice(&header);
        Ok((n, Bytes::from_owner(buffer).slice(start..HEADER + n)))
    }

    /// Gives the memory of spare buffers back.
    pub(super) fn shrink(&self) {
        *self.spare() = Vec::new();
    }

    fn take(self: &Arc<Self>) -> Buffer {
        let spare = self.spare().pop();
        match spare {
            Some(bytes) => Buffer { bytes, home: Arc::clone(self) },
            None => self.of(HEADER + CONTENT),
        }
    }

    fn of(self: &Arc<Self>, bytes: usize) -> Buffer {
        Buffer { bytes: vec![0; bytes].into_boxed_slice(), home: Arc::clone(self) }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Box<[u8]>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Buffers")
    }
}

/// A buffer in use.
struct Buffer {
    bytes: Box<[u8]>,
    home: Arc<Buffers>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut spare = self.home.spare();
        if self.bytes.len() == HEADER + CONTENT && spare.len() < SPARES {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use afpa_h3::frame::read_header;

    use super::super::socket::packets_of_a_call;
    use super::*;

    #[test]
    fn one_call_takes_a_full_buffer_in_packets_of_any_size() {
        // The header with the longest connection id, a stream's frame, and the tag.
        const AROUND: usize = (1 + 20 + 4) + (1 + 8 + 8) + 16;
        for packet in 1200..=1472 {
            let taken = packets_of_a_call(packet) * (packet - AROUND);
            assert!(taken >= HEADER + CONTENT, "{packet}: {taken}");
        }
    }

    #[test]
    fn a_buffer_has_a_frame_and_comes_back() {
        let mut file = tempfile::tempfile().expect("a file");
        let content: Vec<u8> = (0..100_000_u32).map(|at| at as u8).collect();
        file.write_all(&content).expect("written");
        let buffers = Arc::new(Buffers::default());
        for (offset, most, expected) in [
            (0, CONTENT, CONTENT),
            (0, usize::MAX, CONTENT),
            (10, 63, 63),
            (10, 64, 64),
            (99_990, CONTENT, 10),
            (100_000, 5, 0),
        ] {
            let (n, frame) = buffers.read(&file, offset, most).expect("read");
            assert_eq!(n, expected);
            let (kind, length, header) = read_header(&frame).expect("a header");
            assert_eq!((kind, length), (kind::DATA, n as u64));
            assert_eq!(frame[header..], content[offset as usize..offset as usize + n]);
            let was = buffers.spare().len();
            let second = frame.slice(1..);
            drop(frame);
            assert_eq!(buffers.spare().len(), was, "some of it is in use");
            drop(second);
            assert_eq!(buffers.spare().len(), 1, "the same one, and none of another length");
        }
        let many: Vec<_> =
            (0..50).map(|_| buffers.read(&file, 0, CONTENT).expect("read")).collect();
        drop(many);
        assert_eq!(buffers.spare().len(), SPARES);
        buffers.shrink();
        assert_eq!(buffers.spare().len(), 0);
    }
}
