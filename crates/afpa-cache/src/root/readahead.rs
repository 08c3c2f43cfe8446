//! Keeping `sendfile` from waiting for the disk on an event loop (Flash's AMPED idea: ask whether
//! the pages are there, and let a helper thread fetch them when they are not).

use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;

/// Whether `len` bytes from `offset` are, as far as a few samples tell, in the page cache.
///
/// Never waits for the disk. True also where the file system cannot answer, past the end of the
/// file, and on errors: sending is what tells then.
pub fn resident(file: &File, offset: u64, len: u64) -> bool {
    let Some(last) = len.checked_sub(1).and_then(|rest| offset.checked_add(rest)) else {
        return true;
    };
    let step = usize::try_from(SAMPLE_STEP).unwrap_or(usize::MAX);
    (offset..last).step_by(step).chain([last]).all(|place| sample(file, place))
}

/// Waits until `len` bytes from `offset` have been read into the page cache, or the file ends.
///
/// # Errors
/// Those of reading: this is where a bad disk shows before a byte of the response is sent.
pub fn fetch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    if let Some(len) = NonZeroU64::new(len) {
        // Only a hint: without it reading still works, one wait at a time.
        let _ = rustix::fs::fadvise(file, offset, Some(len), Advice::WillNeed);
    }
    let mut scratch = [0; SCRATCH];
    let mut place = offset;
    let end = offset.saturating_add(len);
    while place < end {
        let wanted = usize::try_from(end - place).unwrap_or(SCRATCH).min(SCRATCH);
        let target = scratch.get_mut(..wanted).unwrap_or_default();
        match rustix::io::pread(file, target, place) {
            Ok(0) => return Ok(()),
            Ok(count) => place += count as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether the file is seen to have other bytes than `content`, as far as it lies in the page cache. A store through a memory
/// map is always there at first, and the kernel changes the time of a page's file only for the first store before the page is
/// written to the disk.
///
/// Never waits for the disk, and reads nothing into memory. False where the file system cannot answer.
pub fn has_other_bytes(file: &File, content: &[u8]) -> bool {
    let mut scratch = vec![0; SCRATCH];
    let mut place = 0;
    for known in content.chunks(SCRATCH) {
        let there = scratch.get_mut(..known.len()).unwrap_or_default();
        let read =
            rustix::io::preadv2(file, &mut [IoSliceMut::new(there)], place, ReadWriteFlags::NOWAIT);
        if let Ok(count) = read
            && there.get(..count) != known.get(..count)
        {
            return true;
        }
        place += known.len() as u64;
    }
    false
}

/// Whether the byte at `place` can be read without waiting.
fn sample(file: &File, place: u64) -> bool {
    let mut byte = [0];
    let outcome =
        rustix::io::preadv2(file, &mut [IoSliceMut::new(&mut byte)], place, ReadWriteFlags::NOWAIT);
    outcome != Err(Errno::AGAIN)
}

/// Pages come and go in runs: a few samples for a chunk tell, and each is a system call.
const SAMPLE_STEP: u64 = 512 * 1024;
const SCRATCH: usize = 32 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const SIZE: u64 = 1 << 20;

    fn file_on_disk() -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; SIZE as usize]).unwrap();
        file
    }

    #[test]
    fn what_was_just_written_is_resident() {
        let file = file_on_disk();
        assert!(resident(&file, 0, SIZE));
        assert!(resident(&file, SIZE - 1, 1));
    }

    #[test]
    fn nothing_and_the_void_behind_the_end_count_as_resident() {
        let file = file_on_disk();
        assert!(resident(&file, 0, 0));
        assert!(resident(&file, SIZE * 2, 10));
        assert!(resident(&file, u64::MAX, 2));
        fetch(&file, SIZE * 2, 10).unwrap();
        fetch(&file, SIZE - 5, 10).unwrap();
    }

    #[test]
    fn fetching_brings_back_what_was_evicted() {
        let file = file_on_disk();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        if resident(&file, 0, SIZE) {
            println!("SKIP: this file system does not evict or cannot answer RWF_NOWAIT");
            return;
        }
        fetch(&file, 0, SIZE).unwrap();
        assert!(resident(&file, 0, SIZE));
    }
}
