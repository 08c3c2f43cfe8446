//! File systems that give each version of a file a time of its own.

use rustix::fs::{SeekFrom, fstatfs};
use std::fs::File;
use std::sync::OnceLock;

/// Whether two versions of this file never have the same times, if somebody has looked at them in between.
///
/// Usually a change is given the time of the kernel's last tick, so several changes within one tick look the same.
/// Since Linux 6.13 some file systems have *multigrain timestamps* (Documentation/filesystems/multigrain-ts.rst): a
/// change after somebody has asked for the times gets a time that is exact to the nanosecond.
pub(super) fn has_fine_times(file: &File) -> bool {
    kernel_has_fine_times()
        && fstatfs(file).is_ok_and(|found| FINE.contains(&i64::from(found.f_type as u32)))
}

/// Waits until every write that has set the times already has copied its bytes, too.
///
/// A write sets the times before it copies, and holds the lock of the inode all the while. To look for a hole takes
/// that lock as well (ext4, btrfs, tmpfs); on XFS reading itself does. Direct writes, which may share the lock, and
/// shared mappings are not waited for: a watch reports the first when they are done.
pub(super) fn await_writers(file: &File) {
    // The place of the hole does not matter, nor whether there is one. No code reads from the descriptor's offset.
    let _ = rustix::fs::seek(file, SeekFrom::Hole(0));
}

/// The file systems with the kernel's flag FS_MGTIME, by their magic numbers: ext4, XFS, btrfs, tmpfs. A stacked file
/// system (overlayfs) does not say which ones lie below it.
const FINE: [i64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

fn kernel_has_fine_times() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let uname = rustix::system::uname();
        version(uname.release().to_bytes()).is_some_and(|version| version >= (6, 13))
    })
}

/// The first two numbers of a release such as `6.18.44-generic`.
fn version(release: &[u8]) -> Option<(u32, u32)> {
    let mut numbers = std::str::from_utf8(release).ok()?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use std::os::unix::fs::FileExt;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version(b"6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version(b"6.9"), Some((6, 9)));
        assert_eq!(version(b"6.13-rc1"), Some((6, 13)));
        assert_eq!(version(b"Linux"), None);
    }

    /// The promise of `has_fine_times`.
    #[test]
    fn where_times_are_fine_no_two_versions_share_a_stamp() {
        let mut folders = vec![std::env::temp_dir(), "/dev/shm".into()];
        folders.retain(|folder| folder.is_dir());
        for folder in folders {
            let file = tempfile::tempfile_in(&folder).unwrap();
            if !has_fine_times(&file) {
                println!("SKIP {}: its times are coarse", folder.display());
                continue;
            }
            let stamp = || Stamp::from(&rustix::fs::fstat(&file).unwrap());
            file.write_all_at(b"0000", 0).unwrap();
            let mut last = stamp();
            for n in 0..2000 {
                file.write_all_at(format!("{n:04}").as_bytes(), 0).unwrap();
                let next = stamp();
                assert_ne!(next.mtime_ns, last.mtime_ns, "version {n} in {}", folder.display());
                last = next;
            }
        }
    }
}
