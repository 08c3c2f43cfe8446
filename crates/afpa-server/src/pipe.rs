//! A pipe that references pages of a file while the file's version is checked, before they are sent.

use std::cell::Cell;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// Most bytes of a file that are held. Bytes that a slow client does not take are released again; with a larger
/// limit, that would cost more than holding them saves.
pub(crate) const HELD: u64 = 128 * 1024;

/// Room for twice as many: a range that does not begin at a page boundary takes one more page, and the system
/// rounds.
const ROOM: usize = 2 * HELD as usize;

/// The pipe of a core, made when it is first needed. A pipe that is not in use is empty.
#[derive(Default)]
pub(crate) struct SparePipe(Cell<Option<Pipe>>);

struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    /// `/dev/null`: bytes that were not sent are spliced to it, which is cheaper than another pipe.
    null: Option<&'static File>,
}

static NULL: OnceLock<Option<File>> = OnceLock::new();

/// Opens `/dev/null` for all pipes.
pub(crate) fn open_null() -> Option<&'static File> {
    NULL.get_or_init(|| File::options().write(true).open("/dev/null").ok()).as_ref()
}

/// Pages of a file: references to the pages themselves, not copies.
pub(crate) struct Held {
    pipe: Pipe,
    len: usize,
}

impl SparePipe {
    /// Holds up to `len` bytes of `file` from `offset`. `None` if the file ends before that, cannot be spliced,
    /// or no pipe can be made.
    pub(crate) fn hold(&self, file: &File, offset: u64, len: usize) -> Option<Held> {
        let pipe = self.0.take().or_else(Pipe::new)?;
        let mut at = offset;
        let held = splice(file, Some(&mut at), &pipe.writer, None, len, SpliceFlags::NONBLOCK);
        match held {
            Ok(len) if len > 0 => Some(Held { pipe, len }),
            _ => {
                self.0.set(Some(pipe));
                None
            }
        }
    }

    /// Gives the held pages back, of which `sent` bytes were sent. The rest is released.
    pub(crate) fn release(&self, held: Held, sent: usize) {
        if held.pipe.let_go(held.len.saturating_sub(sent)) {
            self.0.set(Some(held.pipe));
        }
    }
}

impl Pipe {
    fn new() -> Option<Pipe> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // A smaller pipe works, too, in several turns.
        let _ = fcntl_setpipe_size(&writer, ROOM);
        Some(Pipe { reader, writer, null: open_null() })
    }

    /// Empties the pipe of its last `rest` bytes. Returns whether it is empty now.
    fn let_go(&self, rest: usize) -> bool {
        let Some(null) = self.null.filter(|_| rest > 0) else { return rest == 0 };
        splice(&self.reader, None, null, None, rest, SpliceFlags::NONBLOCK) == Ok(rest)
    }
}

impl Held {
    /// Bytes that are held.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The end of the pipe from which they are spliced.
    pub(crate) fn reader(&self) -> BorrowedFd<'_> {
        self.pipe.reader.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::FileExt;

    fn file_of(len: usize) -> (File, Vec<u8>) {
        let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        (file, bytes)
    }

    fn read(held: &Held, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        File::from(held.reader().try_clone_to_owned().unwrap()).read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_range_that_begins_and_ends_anywhere_is_held_whole() {
        let (file, bytes) = file_of(HELD as usize + 10_000);
        let spare = SparePipe::default();
        for (at, len) in [(0, 1), (1, HELD as usize), (4095, HELD as usize), (5000, 77)] {
            let held = spare.hold(&file, at as u64, len).unwrap();
            assert_eq!(held.len(), len);
            assert!(read(&held, len) == bytes[at..at + len], "{len} bytes from {at}");
            spare.release(held, len);
        }
    }

    #[test]
    fn what_was_not_sent_never_comes_before_what_is_held_next() {
        let (file, bytes) = file_of(50_000);
        let spare = SparePipe::default();
        let held = spare.hold(&file, 0, 30_000).unwrap();
        assert!(read(&held, 10_000) == bytes[..10_000]);
        spare.release(held, 10_000);
        assert!(spare.0.take().map(|pipe| spare.0.set(Some(pipe))).is_some(), "it is used again");
        let held = spare.hold(&file, 40_000, 5000).unwrap();
        assert!(read(&held, 5000) == bytes[40_000..45_000]);
    }

    #[test]
    fn behind_the_end_of_a_file_there_is_nothing_to_hold() {
        let (file, _) = file_of(5000);
        let spare = SparePipe::default();
        assert!(spare.hold(&file, 5000, 100).is_none());
        assert_eq!(spare.hold(&file, 4000, 5000).unwrap().len(), 1000);
    }
}
