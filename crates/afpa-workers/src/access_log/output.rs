//! Writes lines to a file or standard output, and handles failures.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// How long a write waits for the reader of a pipe, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// A file or standard output. Writing may fail for a while and then work again.
pub(super) struct Output {
    stream: Box<dyn Write + Send>,
    /// `None` for standard output, which cannot be opened again.
    path: Option<PathBuf>,
    /// Lines lost since writing began to fail; `None` while it works.
    failing: Option<u64>,
    /// The last write ended within a line.
    torn: bool,
}

/// Numbers of lines that one write has written and lost.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineCounts {
    pub(super) written: u64,
    pub(super) lost: u64,
}

impl Output {
    pub(super) fn standard() -> Self {
        Output { stream: Box::new(afpa_say::Output), path: None, failing: None, torn: false }
    }

    /// Appends to `path`, which is created for its user and group to read.
    pub(super) fn file(path: &Path) -> io::Result<Self> {
        let (stream, path) = (Box::new(open(path)?), Some(path.to_owned()));
        Ok(Output { stream, path, failing: None, torn: false })
    }

    /// Continues with a new file of the same name, or with the old file if the new one cannot be opened.
    pub(super) fn reopen(&mut self) {
        let Some(path) = &self.path else { return };
        match open(path) {
            Ok(file) => {
                self.stream = Box::new(file);
                self.torn = false;
                tracing::info!(path = %path.display(), "access log opened again");
            }
            Err(error) => {
                let path = path.display();
                tracing::error!(
                    %path,
                    %error,
                    "cannot open the access log again, so the old file is kept: its directory \
                     must be writable"
                );
            }
        }
    }

    /// Writes whole lines; those that cannot be written are lost and counted.
    pub(super) fn write(&mut self, lines: &[u8]) -> LineCounts {
        let mut rest = lines;
        let result = self.write_rest(&mut rest);
        let lost = count_lines(rest);
        let written = count_lines(lines) - lost;
        match result {
            Err(error) => {
                self.torn = match lines.strip_suffix(rest) {
                    None | Some([]) => self.torn,
                    Some(head) => !head.ends_with(b"\n"),
                };
                self.failed(&error, lost);
            }
            Ok(()) => self.recovered(),
        }
        LineCounts { written, lost }
    }

    fn write_rest(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        if self.torn {
            self.stream.write_all(b"\n")?;
            self.torn = false;
        }
        // A reader that was there until now is waited for; then lines are lost until it is back.
        let deadline = self.failing.is_none().then(|| Instant::now() + PATIENCE);
        let is_early = || deadline.is_some_and(|deadline| Instant::now() < deadline);
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *rest = rest.get(count..).unwrap_or(&[]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && is_early() => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
        self.stream.flush()
    }

    fn failed(&mut self, error: &io::Error, lost: u64) {
        if self.failing.is_none() {
            let path = self.name();
            tracing::error!(
                path,
                %error,
                "cannot write the access log; lines are dropped until it works again"
            );
        }
        *self.failing.get_or_insert(0) += lost;
    }

    fn recovered(&mut self) {
        if let Some(lines) = self.failing.take() {
            let path = self.name();
            tracing::warn!(path, lines, "the access log is written again; these lines were lost");
        }
    }

    fn name(&self) -> String {
        self.path.as_ref().map_or("standard output".to_owned(), |path| path.display().to_string())
    }
}

/// Opens for appending, and waits for nobody: a named pipe without a reader is opened for both ends, so that a reader may
/// come later, and go.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.mode(0o640).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    match options.clone().append(true).create(true).open(path) {
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            options.read(true).write(true).open(path)
        }
        opened => opened,
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// A disk with so many bytes of room.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (room, content) = &mut *self.0.lock().unwrap();
            let count = bytes.len().min(*room);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= count;
            content.extend_from_slice(&bytes[..count]);
            Ok(count)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_costs_lines_and_never_glues_two_together() {
        let disk = Disk::default();
        let stream = Box::new(disk.clone());
        let mut output = Output { stream, path: None, failing: None, torn: false };
        disk.0.lock().unwrap().0 = 6;
        assert_eq!(output.write(b"one\ntwo\nthree\n"), LineCounts { written: 1, lost: 2 });
        assert_eq!(output.write(b"four\n"), LineCounts { written: 0, lost: 1 });
        disk.0.lock().unwrap().0 = 100;
        assert_eq!(output.write(b"five\n"), LineCounts { written: 1, lost: 0 });
        assert_eq!(disk.0.lock().unwrap().1, b"one\ntw\nfive\n");
        assert_eq!(output.failing, None);
    }

    #[test]
    fn the_device_that_is_always_full_loses_every_line() {
        let mut output = Output::file(Path::new("/dev/full")).unwrap();
        assert_eq!(output.write(b"a\nb\n"), LineCounts { written: 0, lost: 2 });
        assert_eq!(output.failing, Some(2));
    }

    #[test]
    fn a_pipe_without_a_reader_is_not_waited_for_and_loses_lines_when_it_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut output = Output::file(&path).unwrap();
        let lines = "line\n".repeat(400_000);
        let counts = output.write(lines.as_bytes());
        assert!(counts.lost > 0 && counts.written > 0, "{counts:?}");
        assert_eq!(output.write(b"a\n"), LineCounts { written: 0, lost: 1 });
        let mut reader = File::open(&path).unwrap();
        let read = std::io::Read::read(&mut reader, &mut vec![0; 1 << 20]).unwrap();
        assert!(read > 1000, "{read}");
        assert_eq!(output.write(b"b\n"), LineCounts { written: 1, lost: 0 });
    }

    #[test]
    fn a_moved_file_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
        let mut output = Output::file(&path).unwrap();
        output.write(b"a\n");
        std::fs::rename(&path, &moved).unwrap();
        output.write(b"b\n");
        output.reopen();
        output.write(b"c\n");
        assert_eq!(std::fs::read(&moved).unwrap(), b"a\nb\n");
        assert_eq!(std::fs::read(&path).unwrap(), b"c\n");
    }

    #[test]
    fn a_file_that_cannot_be_opened_again_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut output = Output::file(&path).unwrap();
        let moved = folder.path().join("moved");
        std::fs::rename(&path, &moved).unwrap();
        std::fs::create_dir(&path).unwrap();
        output.reopen();
        assert_eq!(output.write(b"a\n"), LineCounts { written: 1, lost: 0 });
        assert_eq!(std::fs::read(&moved).unwrap(), b"a\n");
    }
}
