//! A file that is sent from where it lies, and may grow meanwhile.

use std::cmp::Ordering;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;

use foldhash::fast::FixedState;

use super::{VersionError, fine};
use crate::{PageCharge, Stamp};

/// The bytes that a file had when a response announced them. Bytes that are written behind them do not change them.
///
/// Its size and modification time show that the file is unchanged. A file that has grown has another time as well, and
/// nothing tells where it was written. So some samples of the bytes are taken at the beginning, and compared then: a
/// file that was cut and written anew has others.
#[derive(Debug)]
pub struct FileBody {
    file: File,
    len: u64,
    samples: u64,
    /// Of a page in memory.
    _charge: Option<PageCharge>,
}

/// Samples of a file: the first and the last bytes, and some in between.
const SAMPLES: u64 = 8;

/// How often a file of another time is looked at before those who write to it are waited for.
const LOOKS: u32 = if cfg!(test) { 1 } else { 50 };

/// Bytes of a sample.
const SAMPLE: usize = 1024;

impl FileBody {
    /// The version `stamp` of a file.
    ///
    /// # Errors
    /// [`VersionError::Grown`] and [`VersionError::Changed`] for another version.
    pub fn of(file: File, stamp: &Stamp) -> Result<FileBody, VersionError> {
        let body = FileBody::growing(file, stamp.size)?;
        match Change::since(stamp, &body.file)? {
            Change::None => Ok(body),
            Change::Grown(_) => Err(VersionError::Grown),
            Change::Other => Err(VersionError::Changed),
        }
    }

    /// The first `len` bytes of a file that grows all the time.
    ///
    /// # Errors
    /// [`VersionError::Changed`] where the file is shorter.
    pub fn growing(file: File, len: u64) -> Result<FileBody, VersionError> {
        let samples = samples(&file, len).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => VersionError::Changed,
            _ => VersionError::Io(error),
        })?;
        Ok(FileBody { file, len, samples, _charge: None })
    }

    /// A page in memory, which counts until the last response that holds it has ended.
    #[must_use]
    pub fn charged(self, charge: PageCharge) -> FileBody {
        FileBody { _charge: Some(charge), ..self }
    }

    /// Whether the bytes are the announced ones, as far as the file shows. `seen` is the version at the last look, at
    /// first the announced one.
    ///
    /// The change time (ctime) is not compared: it also changes when the file is renamed, or unlinked because another
    /// file replaced it, and then the open file still has one whole version.
    pub fn holds(&self, seen: &mut Stamp) -> bool {
        match Change::since(seen, &self.file) {
            Ok(Change::None) => true,
            Ok(Change::Grown(now)) if seen.size >= self.len => {
                *seen = now;
                samples(&self.file, self.len).is_ok_and(|samples| samples == self.samples)
            }
            Ok(Change::Grown(_) | Change::Other) | Err(_) => false,
        }
    }
}

impl AsFd for FileBody {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Deref for FileBody {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

/// A change of the content of a file.
enum Change {
    None,
    /// It is longer.
    Grown(Stamp),
    Other,
}

impl Change {
    fn since(seen: &Stamp, file: &File) -> io::Result<Change> {
        // Somebody may be about to write behind them: the kernel sets the time first, and the size when it has the bytes.
        for _ in 0..LOOKS {
            if let Some(change) = Change::seen(seen, file)? {
                return Ok(change);
            }
            std::thread::yield_now();
        }
        // On a busy core the writer may not have got on. It holds the file's lock until its size is set.
        fine::await_writers(file);
        // On XFS it is reading that waits.
        let _ = file.read_at(&mut [0], 0);
        Ok(Change::seen(seen, file)?.unwrap_or(Change::Other))
    }

    /// `None`: only its time is another one.
    fn seen(seen: &Stamp, file: &File) -> io::Result<Option<Change>> {
        let now = Stamp::from(&rustix::fs::fstat(file)?);
        Ok(match now.size.cmp(&seen.size) {
            Ordering::Equal => (now.mtime_ns == seen.mtime_ns).then_some(Change::None),
            Ordering::Greater => Some(Change::Grown(now)),
            Ordering::Less => Some(Change::Other),
        })
    }
}

fn samples(file: &File, len: u64) -> io::Result<u64> {
    let mut hasher = FixedState::default().build_hasher();
    let mut room = [0; SAMPLE];
    let last = len.saturating_sub(SAMPLE as u64);
    for number in 0..SAMPLES {
        let at = last / (SAMPLES - 1) * number + last % (SAMPLES - 1) * number / (SAMPLES - 1);
        let length = usize::try_from(len - at).unwrap_or(SAMPLE).min(SAMPLE);
        let sample = room.get_mut(..length).unwrap_or_default();
        file.read_exact_at(sample, at)?;
        hasher.write(sample);
    }
    Ok(hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use super::*;

    const LEN: usize = 100_000;

    fn file_of(content: &[u8]) -> (File, Stamp) {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(content, 0).unwrap();
        let stamp = Stamp::from(&rustix::fs::fstat(&file).unwrap());
        (file, stamp)
    }

    fn patterned(seed: usize) -> Vec<u8> {
        (0..LEN).map(|at| ((at * 7 + seed) % 251) as u8).collect()
    }

    /// Whether the body still holds after a change that falls into another tick.
    fn holds_after(change: impl Fn(&File)) -> bool {
        let (file, mut stamp) = file_of(&patterned(0));
        let body = FileBody::of(file, &stamp).unwrap();
        assert!(body.holds(&mut stamp));
        std::thread::sleep(super::super::TICK);
        change(&body);
        body.holds(&mut stamp)
    }

    #[test]
    fn what_is_written_behind_the_end_changes_nothing() {
        assert!(holds_after(|file| file.write_all_at(b"more", LEN as u64).unwrap()));
        assert!(holds_after(|file| file.set_len(2 * LEN as u64).unwrap()));
        let (file, mut stamp) = file_of(&patterned(0));
        let body = FileBody::of(file, &stamp).unwrap();
        for round in 0..5 {
            body.write_all_at(b"more", (LEN + 4 * round) as u64).unwrap();
            assert!(body.holds(&mut stamp), "round {round}");
        }
    }

    #[test]
    fn a_file_that_was_written_anew_or_in_place_is_another_one() {
        let changes: [fn(&File); 6] = [
            |file| file.set_len(LEN as u64 - 1).unwrap(),
            |file| file.write_all_at(b"x", 0).unwrap(),
            |file| file.write_all_at(b"x", LEN as u64 / 2).unwrap(),
            |file| {
                file.set_len(0).unwrap();
                file.write_all_at(&patterned(1), 0).unwrap();
            },
            |file| {
                file.set_len(0).unwrap();
                file.write_all_at(&[patterned(1), patterned(2)].concat(), 0).unwrap();
            },
            |file| {
                file.set_len(10).unwrap();
                file.set_len(2 * LEN as u64).unwrap();
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            assert!(!holds_after(change), "change {number}");
        }
    }

    /// However seldom it is looked at, and whatever a writer has done by then.
    #[test]
    fn a_writer_is_waited_for_until_it_has_set_the_size() {
        let (file, mut stamp) = file_of(&patterned(0));
        let mut log = file.try_clone().unwrap();
        let body = FileBody::of(file, &stamp).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                log.seek(SeekFrom::End(0)).unwrap();
                (0..20_000).for_each(|_| log.write_all(b"a line\n").unwrap());
            });
            while !writer.is_finished() {
                assert!(body.holds(&mut stamp));
            }
        });
        assert!(stamp.size > LEN as u64);
    }

    #[test]
    fn another_version_is_no_body_of_this_one() {
        let (file, stamp) = file_of(&patterned(0));
        let again = file.try_clone().unwrap();
        file.write_all_at(b"more", LEN as u64).unwrap();
        assert!(matches!(FileBody::of(again, &stamp), Err(VersionError::Grown)));
        file.set_len(5).unwrap();
        assert!(matches!(FileBody::of(file, &stamp), Err(VersionError::Changed)));
    }

    #[test]
    fn short_files_are_sampled_whole() {
        for len in [0, 1, 7, 1023, 1024, 1025, 5000] {
            let (file, mut stamp) = file_of(&patterned(3)[..len]);
            assert!(FileBody::of(file, &stamp).unwrap().holds(&mut stamp), "{len}");
        }
    }
}
