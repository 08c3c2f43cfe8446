//! The calls of the kernel: to watch a directory, and to find whether that would be of any use.

use super::coverage::Reason;
use super::tree::Wd;
use rustix::fs::inotify::{self, WatchFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// Puts a watch on an open directory; if it has one already, that is returned.
pub(super) fn watch(inotify: &OwnedFd, directory: impl AsFd) -> Result<Wd, Reason> {
    // By the descriptor and not by a path: the directories above may not be searchable for us.
    let place = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
    match inotify::add_watch(inotify, place, interests()) {
        Err(Errno::NOENT) => Err(Reason::NoProc),
        outcome => Ok(outcome?),
    }
}

/// Why the file system of a directory makes no sound when it changes, if so.
pub(super) fn silence(directory: impl AsFd) -> Result<Option<Reason>, Errno> {
    Ok(silent(rustix::fs::fstatfs(directory)?.f_type))
}

impl From<Errno> for Reason {
    fn from(error: Errno) -> Self {
        match error {
            Errno::ACCESS | Errno::PERM => Reason::Denied,
            Errno::NOSPC => Reason::KernelLimit,
            error => {
                tracing::debug!(%error, "a directory cannot be watched");
                Reason::Failed
            }
        }
    }
}

fn interests() -> WatchFlags {
    WatchFlags::MODIFY
        | WatchFlags::ATTRIB
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR
        | WatchFlags::EXCL_UNLINK
}

/// Why a file system of this type makes no sound when it changes, if so (`statfs(2)`,
/// `linux/magic.h`; virtiofs calls itself FUSE).
#[allow(clippy::unnecessary_cast)] // the width of f_type differs between architectures
fn silent(f_type: rustix::fs::FsWord) -> Option<Reason> {
    // The types are 32 bits wide, and sign-extended on some architectures.
    match f_type as u32 {
        0x6969            // NFS
        | 0x517B          // SMB
        | 0xFF53_4D42     // CIFS
        | 0xFE53_4D42     // SMB 2 and 3
        | 0x6573_5546     // FUSE, virtiofs
        | 0x0102_1997     // 9p
        | 0x00C3_6400     // Ceph
        | 0x5346_414F     // AFS (OpenAFS)
        | 0x6B41_4653     // AFS (kernel)
        | 0x7375_7245     // Coda
        | 0x564C          // NCP
        | 0x0116_1970     // GFS2
        | 0x7461_636F     // OCFS2
        | 0x0BD0_0BD0     // Lustre
        | 0x4750_4653     // GPFS
        | 0x2003_0528     // OrangeFS
        | 0x1983_0326     // BeeGFS
        | 0x786F_4256     // VirtualBox shared folders
        => Some(Reason::NetworkFileSystem),
        0x9FA0            // proc
        | 0x6265_6572     // sysfs
        | 0x0027_E0EB     // cgroup
        | 0x6367_7270     // cgroup 2
        | 0x6462_6720     // debugfs
        | 0x7472_6163     // tracefs
        => Some(Reason::PseudoFileSystem),
        0x794C_7630       // overlayfs
        | 0xF15F          // eCryptfs
        => Some(Reason::Layers),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_elsewhere_are_told_from_local_ones() {
        let reason = |f_type: u32| silent(f_type as rustix::fs::FsWord);
        for network in [0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x0102_1997, 0x00C3_6400] {
            assert_eq!(reason(network), Some(Reason::NetworkFileSystem), "{network:x}");
        }
        assert_eq!(reason(0x794C_7630), Some(Reason::Layers), "overlayfs");
        // ext4, tmpfs, XFS, btrfs, ZFS.
        for local in [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E, 0x2FC1_2FC1] {
            assert_eq!(reason(local), None, "{local:x}");
        }
        let proc = rustix::fs::statfs("/proc").unwrap().f_type;
        assert_eq!(silent(proc), Some(Reason::PseudoFileSystem));
    }
}
