//! The way to one descriptor of the operator's.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::{Errno, write};
use rustix::net::{SendFlags, send};

/// How long a message waits for a reader that was quick enough until then; after that, messages are lost at once until
/// one gets through.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The most bytes of one write where the descriptor blocks: a pipe that is ready for writing has room for them.
const PIECE: usize = 4096;

/// The state of a descriptor. Messages are written one after the other, so that none is torn by another.
#[derive(Debug)]
pub(crate) struct Line {
    /// `None` until the first message.
    way: Option<Way>,
    /// The last message was not taken.
    stalled: bool,
    /// Of the last message only a part was taken.
    torn: bool,
    lost: u64,
}

/// How to write without waiting. The descriptor itself is shared with other processes, which would all have to cope with
/// its being non-blocking.
#[derive(Debug)]
pub(crate) enum Way {
    /// The same pipe or terminal, opened once more, and non-blocking.
    Own(OwnedFd),
    Socket,
    /// Asked before each write.
    Shared,
}

impl Line {
    pub(crate) const fn new() -> Self {
        Self { way: None, stalled: false, torn: false, lost: 0 }
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Writes a message, or loses it, or the rest of it.
    pub(crate) fn say(&mut self, to: BorrowedFd<'_>, message: &[u8]) {
        if self.torn && self.write_all(to, b"\n").is_ok() {
            self.torn = false;
        }
        match self.write_all(to, message) {
            Ok(()) => self.stalled = false,
            Err(rest) => {
                self.torn |= rest < message.len();
                self.stalled = true;
                self.lost += 1;
            }
        }
    }

    /// An error is the count of bytes that were not written.
    fn write_all(&mut self, to: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), usize> {
        let mut rest = bytes;
        let mut may_wait = !self.stalled;
        while !rest.is_empty() {
            match self.write(to, rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if may_wait && is_ready(to, &PATIENCE) => may_wait = false,
                Err(_) => return Err(rest.len()),
            }
        }
        Ok(())
    }

    /// Finds the way there, unless it is known.
    pub(crate) fn open(&mut self, to: BorrowedFd<'_>) -> &Way {
        self.way.get_or_insert_with(|| Way::to(to))
    }

    /// Writes some of it, without waiting.
    pub(crate) fn write(&mut self, to: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        match self.open(to) {
            Way::Own(own) => write(own, bytes),
            Way::Socket => send(to, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            Way::Shared if !is_ready(to, &Timespec::default()) => Err(Errno::AGAIN),
            Way::Shared => write(to, bytes.get(..PIECE).unwrap_or(bytes)),
        }
    }
}

impl Way {
    fn to(descriptor: BorrowedFd<'_>) -> Self {
        match fstat(descriptor).map(|about| FileType::from_raw_mode(about.st_mode)) {
            Ok(FileType::Socket) => Way::Socket,
            Ok(FileType::Fifo | FileType::CharacterDevice) => {
                open_again(descriptor).map_or(Way::Shared, Way::Own)
            }
            _ => Way::Shared,
        }
    }
}

/// The same pipe or terminal, opened once more, and non-blocking.
fn open_again(descriptor: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let name = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    open(name, flags, Mode::empty())
}

/// Whether it can be written to within `patience`. A descriptor that is broken can: the write says why.
fn is_ready(to: BorrowedFd<'_>, patience: &Timespec) -> bool {
    let to = to.as_fd();
    let mut asked = [PollFd::new(&to, PollFlags::OUT)];
    matches!(poll(&mut asked, Some(patience)), Ok(ready) if ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    /// More than any pipe holds.
    const MANY: usize = 40_000;

    fn flood(line: &mut Line, to: BorrowedFd<'_>) {
        for number in 0..MANY {
            line.say(to, format!("message {number}\n").as_bytes());
        }
    }

    /// Every line is whole but the one at which the reader fell behind.
    fn whole_lines(text: &str) -> usize {
        text.lines().filter(|line| line.starts_with("message ")).count()
    }

    #[test]
    fn a_pipe_that_nobody_reads_loses_messages_and_is_not_waited_for() {
        let (reader, writer) = pipe().unwrap();
        let mut line = Line::new();
        flood(&mut line, writer.as_fd());
        assert!(line.lost > 0 && line.lost < MANY as u64, "{}", line.lost);
        let mut room = vec![0; 1 << 20];
        let count = rustix::io::read(&reader, &mut room).unwrap();
        assert!(whole_lines(&String::from_utf8_lossy(&room[..count])) > 100);
        // The pipe is read again: the next message is a line of its own.
        let before = line.lost;
        line.say(writer.as_fd(), b"again\n");
        assert_eq!(line.lost, before);
        drop((writer, line));
        let mut rest = String::new();
        File::from(reader).read_to_string(&mut rest).unwrap();
        assert!(rest.lines().any(|line| line == "again"), "{rest:?}");
    }

    #[test]
    fn a_socket_that_nobody_reads_is_not_waited_for() {
        let (reader, writer) = UnixStream::pair().unwrap();
        let mut line = Line::new();
        flood(&mut line, writer.as_fd());
        assert!(line.lost > 0, "{}", line.lost);
        drop(reader);
        line.say(writer.as_fd(), b"nobody is there\n");
    }

    #[test]
    fn a_reader_that_has_gone_and_a_full_disk_cost_messages_only() {
        let (reader, writer) = pipe().unwrap();
        let mut line = Line::new();
        line.say(writer.as_fd(), b"first\n");
        drop(reader);
        line.say(writer.as_fd(), b"second\n");
        assert_eq!(line.lost, 1);

        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut line = Line::new();
        line.say(full.as_fd(), b"first\n");
        assert_eq!(line.lost, 1);
    }

    #[test]
    fn a_descriptor_that_cannot_be_written_to_costs_messages_only() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let only_read = File::open(file.path()).unwrap();
        let mut line = Line::new();
        line.say(only_read.as_fd(), b"first\n");
        assert_eq!(line.lost, 1);
    }

    #[test]
    fn messages_stand_in_a_file_as_they_were_said() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut line = Line::new();
        line.say(file.as_file().as_fd(), b"one\n");
        line.say(file.as_file().as_fd(), &[b'x'; 3 * PIECE]);
        line.say(file.as_file().as_fd(), b"two\n");
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(text, format!("one\n{}two\n", "x".repeat(3 * PIECE)));
        assert_eq!(line.lost, 0);
    }
}
