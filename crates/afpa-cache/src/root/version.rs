//! Reads one version of a file as a whole, or fails.

use super::fine;
use crate::Stamp;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Why a version could not be read.
#[derive(Debug, thiserror::Error)]
pub enum VersionError {
    /// The file is no longer the version that was asked for. Worth another try from the start.
    #[error("the file changed while it was read")]
    Changed,
    /// It is longer than the version that was asked for, and may begin with it.
    #[error("the file grew while it was read")]
    Grown,
    /// The disk or the file system failed.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
}

/// Fills `buffer` with the version `stamp` of `file`; `buffer` is exactly `stamp.size` bytes long.
///
/// The bytes are of one version: the stamp is compared before and after reading, once writes that have begun are over,
/// which may take longer than a tick. Where each version has a time of its own, that is enough. Other files carry the
/// time of the kernel's last tick, so two writes within one tick leave the same stamp; a file
/// younger than that is given the time to age, at most [`TICK`] (or [`COARSE_TICK`] where the file
/// system keeps whole seconds). Call it where waiting is allowed.
///
/// A change through a shared mapping is not detected before the writer unmaps the file: until then it leaves
/// no trace in the stamp.
///
/// # Errors
/// [`VersionError::Grown`] for a longer version, [`VersionError::Changed`] for any other, and for a `buffer`
/// of another length than the stamp's.
pub fn read_exact_version(
    file: &File,
    stamp: &Stamp,
    buffer: &mut [u8],
) -> Result<(), VersionError> {
    if u64::try_from(buffer.len()) != Ok(stamp.size) {
        return Err(VersionError::Changed);
    }
    if let Age::Missing(pause) = age(file, stamp) {
        std::thread::sleep(pause);
    }
    let mut before = same_content(file, stamp)?;
    for _ in 0..ATTEMPTS {
        fine::await_writers(file);
        read_whole(file, buffer)?;
        let after = same_content(file, stamp)?;
        if after == before {
            return Ok(());
        }
        before = after;
    }
    Err(VersionError::Changed)
}

/// The stamp that the file has now, if its content is still that of `stamp`.
///
/// The change time alone also moves when the file is renamed, or replaced by another and so unlinked: then the open
/// file still has the whole version, and it is read once more to be sure.
fn same_content(file: &File, stamp: &Stamp) -> Result<Stamp, VersionError> {
    let now = Stamp::from(&rustix::fs::fstat(file).map_err(io::Error::from)?);
    let same = Stamp { ctime_ns: stamp.ctime_ns, ..now } == *stamp;
    match same {
        true => Ok(now),
        false if now.size > stamp.size => Err(VersionError::Grown),
        false => Err(VersionError::Changed),
    }
}

/// How often a version is read whose change time keeps moving.
const ATTEMPTS: u32 = 4;

fn read_whole(file: &File, buffer: &mut [u8]) -> Result<(), VersionError> {
    let mut offset = 0;
    let mut rest = buffer;
    while !rest.is_empty() {
        match rustix::io::pread(file, &mut *rest, offset) {
            Ok(0) => return Err(VersionError::Changed),
            Ok(count) => {
                offset += count as u64;
                rest = rest.get_mut(count..).unwrap_or_default();
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(VersionError::Io(error.into())),
        }
    }
    Ok(())
}

/// Whether any further write must give a file another stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Age {
    /// Yes: the file is older than a tick.
    Enough,
    /// Yes, at any age.
    Fine,
    /// Not before this time has passed.
    Missing(Duration),
}

fn age(file: &File, stamp: &Stamp) -> Age {
    match time_to_age(stamp, now()) {
        None => Age::Enough,
        Some(_) if !in_whole_seconds(stamp) && fine::has_fine_times(file) => Age::Fine,
        Some(pause) => Age::Missing(pause),
    }
}

/// A file system that keeps no fractions of seconds; or a file whose times happen to have none.
fn in_whole_seconds(stamp: &Stamp) -> bool {
    stamp.ctime_ns % NANOSECONDS == 0 && stamp.mtime_ns % NANOSECONDS == 0
}

/// How long to wait until a write would fall into another tick than that of the stamp.
fn time_to_age(stamp: &Stamp, now_ns: i128) -> Option<Duration> {
    let tick = if in_whole_seconds(stamp) { COARSE_TICK } else { TICK };
    let tick_ns = i128::try_from(tick.as_nanos()).unwrap_or(0);
    let age = now_ns.saturating_sub(stamp.ctime_ns);
    if age >= tick_ns {
        return None;
    }
    // Another machine's clock may be ahead of ours: wait one tick and no longer.
    let missing = tick_ns.saturating_sub(age).min(tick_ns);
    u64::try_from(missing).ok().map(Duration::from_nanos)
}

fn now() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(i128::MAX)
}

/// A little more than a tick of the slowest common kernels (HZ=100).
pub const TICK: Duration = Duration::from_millis(12);
/// The tick of old file systems: ext3 one second, FAT two.
pub const COARSE_TICK: Duration = Duration::from_secs(2);

const NANOSECONDS: i128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn file_of(content: &[u8]) -> (File, Stamp) {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(content, 0).unwrap();
        let stamp = Stamp::from(&rustix::fs::fstat(&file).unwrap());
        (file, stamp)
    }

    #[test]
    fn a_quiet_file_is_read_whole() {
        let (file, stamp) = file_of(b"one version");
        let mut buffer = [0; 11];
        read_exact_version(&file, &stamp, &mut buffer).unwrap();
        assert_eq!(&buffer, b"one version");
    }

    #[test]
    fn an_empty_file_is_a_version_too() {
        let (file, stamp) = file_of(b"");
        read_exact_version(&file, &stamp, &mut []).unwrap();
    }

    #[test]
    fn shorter_longer_and_rewritten_files_are_refused() {
        let changes: [fn(&File); 3] = [
            |file| file.set_len(3).unwrap(),
            |file| file.write_all_at(b"more", 11).unwrap(),
            |file| file.write_all_at(b"two", 0).unwrap(),
        ];
        for change in changes {
            let (file, stamp) = file_of(b"one version");
            // Without this the write could fall into the tick of the stamp.
            std::thread::sleep(TICK);
            change(&file);
            let outcome = read_exact_version(&file, &stamp, &mut [0; 11]);
            let other = matches!(outcome, Err(VersionError::Changed | VersionError::Grown));
            assert!(other, "{outcome:?}");
        }
    }

    #[test]
    fn a_buffer_of_another_length_is_refused() {
        let (file, stamp) = file_of(b"one version");
        let outcome = read_exact_version(&file, &stamp, &mut [0; 10]);
        assert!(matches!(outcome, Err(VersionError::Changed)));
    }

    #[test]
    fn only_young_files_are_waited_for() {
        let at = |ctime_ns| Stamp { ctime_ns, mtime_ns: 1, ..Stamp::default() };
        assert_eq!(time_to_age(&at(5_000_000_001), 6_000_000_000), None);
        let wait = time_to_age(&at(5_999_000_000), 6_000_000_000).unwrap();
        assert_eq!(wait, TICK - Duration::from_millis(1));
        assert_eq!(time_to_age(&at(9_000_000_000_001), 6_000_000_000), Some(TICK));
        let coarse = Stamp { ctime_ns: 5 * NANOSECONDS, ..Stamp::default() };
        assert_eq!(time_to_age(&coarse, 6 * NANOSECONDS), Some(Duration::from_secs(1)));
    }

    /// Other threads may take the core away for a while, so the best of several attempts counts.
    #[test]
    fn a_young_file_is_not_waited_for_where_times_are_fine() {
        let fastest = (0..20).filter_map(|_| {
            let (file, stamp) = file_of(b"one version");
            fine::has_fine_times(&file).then(|| {
                let begun = std::time::Instant::now();
                read_exact_version(&file, &stamp, &mut [0; 11]).unwrap();
                begun.elapsed()
            })
        });
        match fastest.min() {
            Some(fastest) => assert!(fastest < TICK / 4, "{fastest:?}"),
            None => println!("SKIP: the times of this file system are coarse"),
        }
    }

    /// Each write takes as long as it takes to read the file, and follows the one before within a tick. The times are
    /// those of the new version while the bytes are still copied.
    #[test]
    fn no_mixture_comes_out_of_a_write_that_has_begun() {
        const SIZE: usize = 8 << 20;
        let (file, _) = file_of(&vec![b'a'; SIZE]);
        if !fine::has_fine_times(&file) {
            println!("SKIP: the times of this file system are coarse");
            return;
        }
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let contents = [vec![b'a'; SIZE], vec![b'b'; SIZE]];
                for content in contents.iter().cycle() {
                    if stop.load(std::sync::atomic::Ordering::Relaxed) {
                        break;
                    }
                    file.write_all_at(content, 0).unwrap();
                    std::thread::sleep(TICK / 8);
                }
            });
            let (mut read, mut tried, mut mixed) = (0, 0, false);
            let mut buffer = vec![0; SIZE];
            while read < 300 && tried < 3000 && !mixed {
                tried += 1;
                let stamp = Stamp::from(&rustix::fs::fstat(&file).unwrap());
                match read_exact_version(&file, &stamp, &mut buffer) {
                    Ok(()) => {
                        read += 1;
                        let first = buffer[0];
                        mixed |= buffer.iter().step_by(4096).any(|&byte| byte != first);
                    }
                    Err(VersionError::Changed | VersionError::Grown) => {}
                    Err(VersionError::Io(_)) => break,
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(!mixed, "a mixed version after {read}");
            assert!(read > 0, "nothing was read in {tried} attempts");
            println!("under a fast writer: {read} of {tried} attempts read a version");
        });
    }

    /// A writer alternates between two contents of the same length; no mixture may ever come out.
    #[test]
    fn no_mixture_comes_out_under_a_writer() {
        const SIZE: usize = 256 * 1024;
        let (file, _) = file_of(&vec![b'a'; SIZE]);
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut letter = b'a';
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    letter = if letter == b'a' { b'b' } else { b'a' };
                    file.write_all_at(&vec![letter; SIZE], 0).unwrap();
                    std::thread::sleep(Duration::from_millis(15));
                }
            });
            let (mut read, mut refused) = (0, 0);
            let mut buffer = vec![0; SIZE];
            for _ in 0..60 {
                let stamp = Stamp::from(&rustix::fs::fstat(&file).unwrap());
                match read_exact_version(&file, &stamp, &mut buffer) {
                    Ok(()) => {
                        read += 1;
                        let first = buffer[0];
                        assert!(buffer.iter().all(|&byte| byte == first), "a mixed version");
                    }
                    Err(VersionError::Changed) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(read + refused, 60);
            println!("under a writer: {read} versions read, {refused} refused");
        });
    }
}
