//! The stamp that tells one version of a file from the next, and how a change to it comes to be known.

/// The identity of one version of a file, as `fstat` gave it.
///
/// Two equal stamps mean the same bytes as far as the file system can tell. `ctime_ns` is part of it
/// because a writer may set the modification time back, but not the time of that act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Device that holds the file.
    pub dev: u64,
    /// Inode number on that device.
    pub ino: u64,
    /// Length in bytes.
    pub size: u64,
    /// Last modification of the content, nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Last change of content or inode, nanoseconds since 1970.
    pub ctime_ns: i128,
}

impl Stamp {
    /// The modification time in whole seconds since 1970; 0 for a time before that.
    pub fn modified(&self) -> u64 {
        u64::try_from(self.mtime_ns.div_euclid(NANOSECONDS)).unwrap_or(0)
    }
}

impl From<&rustix::fs::Stat> for Stamp {
    // The widths of these fields differ between architectures.
    #[allow(clippy::unnecessary_cast)]
    fn from(stat: &rustix::fs::Stat) -> Self {
        Stamp {
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: nanoseconds(stat.st_mtime as i128, stat.st_mtime_nsec as i128),
            ctime_ns: nanoseconds(stat.st_ctime as i128, stat.st_ctime_nsec as i128),
        }
    }
}

/// How a change of the files behind an object becomes known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coverage {
    /// A watch speaks when one of them changes: the object is fresh until then.
    #[default]
    Watched,
    /// No watch can see them all: the object is fresh for a stated age, then re-checked.
    Unwatched,
}

fn nanoseconds(seconds: i128, fraction: i128) -> i128 {
    seconds * NANOSECONDS + fraction
}

const NANOSECONDS: i128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_a_real_file_follows_its_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page");
        std::fs::write(&path, b"one").unwrap();
        let first = Stamp::from(&rustix::fs::stat(&path).unwrap());
        std::fs::write(&path, b"three").unwrap();
        let second = Stamp::from(&rustix::fs::stat(&path).unwrap());

        assert_eq!((first.size, second.size), (3, 5));
        assert_eq!((first.dev, first.ino), (second.dev, second.ino));
        assert_ne!(first, second);
        assert!(second.modified() > 1_600_000_000);
    }

    #[test]
    fn times_before_1970_count_as_its_beginning() {
        assert_eq!(Stamp { mtime_ns: -1, ..Stamp::default() }.modified(), 0);
        assert_eq!(Stamp { mtime_ns: 1_999_999_999, ..Stamp::default() }.modified(), 1);
    }
}
