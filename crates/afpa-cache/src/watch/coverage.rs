//! Whether changes in a directory are heard, and what to do about it when they are not.

use std::collections::BTreeMap;
use std::fmt;

/// Whether a later change of the files in a directory will be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coverage {
    /// It will.
    Watched,
    /// It may not: the files' stamps must be compared from time to time.
    Unwatched(Reason),
}

/// Why changes are not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Watching is switched off.
    Disabled,
    /// The kernel grants this user no further inotify instance.
    NoInstance,
    /// The kernel grants this user no further watch.
    KernelLimit,
    /// As many directories are watched as our own setting allows.
    OwnLimit,
    /// The file system lies on another machine or in another process, and changes there make no
    /// sound here: NFS, SMB, FUSE, 9p, Ceph and their like.
    NetworkFileSystem,
    /// The content is made up when it is read: /proc, /sys, cgroups.
    PseudoFileSystem,
    /// The files lie in layers below, and a change there makes no sound here: overlayfs.
    Layers,
    /// The file has other names, and may be changed through one of them.
    HardLinks,
    /// The directory is mounted in two places, and its changes are reported for the other.
    SeveralPlaces,
    /// The directory may be searched, but not read, and so not watched.
    Denied,
    /// No such directory, or a link stands in its place.
    Missing,
    /// The directory was not asked for, and the scan has not come to it.
    NotReached,
    /// /proc is not mounted; watches are added through it.
    NoProc,
    /// The root was deleted or unmounted.
    RootGone,
    /// Links on the way were changing too fast to follow.
    Unsettled,
    /// Another error, such as a lack of memory or descriptors.
    Failed,
}

/// How far the watching has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Directories that are watched.
    pub watched: usize,
    /// Whether the whole tree has been scanned (again, after an overflow).
    pub complete: bool,
}

/// The result of the scan, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Directories that are watched.
    pub watched: usize,
    /// Directories that could not be, by reason. Directories below them are not counted.
    pub unwatched: BTreeMap<Reason, usize>,
    /// Whether the whole tree has been scanned.
    pub complete: bool,
}

impl Coverage {
    /// The lesser of two: Watched only when both are.
    pub fn and(self, other: Coverage) -> Coverage {
        match self {
            Coverage::Watched => other,
            Coverage::Unwatched(_) => self,
        }
    }
}

impl Summary {
    /// The sum of several trees.
    pub fn of(trees: impl Iterator<Item = Summary>) -> Summary {
        let mut sum = Summary { watched: 0, unwatched: BTreeMap::new(), complete: true };
        for tree in trees {
            sum.watched += tree.watched;
            sum.complete &= tree.complete;
            for (reason, count) in tree.unwatched {
                *sum.unwatched.entry(reason).or_default() += count;
            }
        }
        sum
    }
}

/// The coverage, as far as the cache needs to know it.
impl From<Coverage> for crate::Coverage {
    fn from(coverage: Coverage) -> Self {
        match coverage {
            Coverage::Watched => crate::Coverage::Watched,
            Coverage::Unwatched(_) => crate::Coverage::Unwatched,
        }
    }
}

impl Reason {
    /// The remedy for an administrator, if there is one.
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            Reason::NoInstance => Some("raise the sysctl fs.inotify.max_user_instances"),
            Reason::KernelLimit => Some("raise the sysctl fs.inotify.max_user_watches"),
            Reason::OwnLimit => Some("raise the setting for the number of watches"),
            Reason::Layers => Some("serve the files from a volume, not from the image"),
            Reason::Denied => Some("let the server's user read these directories"),
            Reason::NoProc => Some("mount /proc"),
            Reason::RootGone => Some("restore the document root, and reload"),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Disabled => "watching is switched off",
            Reason::NoInstance => "no inotify instance is left",
            Reason::KernelLimit => "the kernel's limit of watches is reached",
            Reason::OwnLimit => "the configured limit of watches is reached",
            Reason::NetworkFileSystem => "on a network file system",
            Reason::PseudoFileSystem => "on a pseudo file system",
            Reason::Layers => "on an overlay, whose layers change without a notice",
            Reason::HardLinks => "the file has several names",
            Reason::SeveralPlaces => "also mounted elsewhere in the tree",
            Reason::Denied => "not readable",
            Reason::Missing => "no such directory",
            Reason::NotReached => "not scanned yet",
            Reason::NoProc => "/proc is not mounted",
            Reason::RootGone => "the document root is gone",
            Reason::Unsettled => "links kept changing",
            Reason::Failed => "watching failed",
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} directories watched", self.watched)?;
        if !self.complete {
            f.write_str(" so far")?;
        }
        for (reason, count) in &self.unwatched {
            write!(f, "; {count} and what is below not watched: {reason}")?;
            if let Some(remedy) = reason.remedy() {
                write!(f, " ({remedy})")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_reasons_and_remedies() {
        let unwatched = BTreeMap::from([(Reason::KernelLimit, 3), (Reason::NetworkFileSystem, 1)]);
        let text = Summary { watched: 7, unwatched, complete: true }.to_string();
        assert_eq!(
            text,
            "7 directories watched; 3 and what is below not watched: the kernel's limit of watches \
             is reached (raise the sysctl fs.inotify.max_user_watches); 1 and what is below not \
             watched: on a network file system"
        );
    }

    #[test]
    fn the_lesser_coverage_wins() {
        let unwatched = Coverage::Unwatched(Reason::Denied);
        assert_eq!(Coverage::Watched.and(Coverage::Watched), Coverage::Watched);
        assert_eq!(Coverage::Watched.and(unwatched), unwatched);
        assert_eq!(unwatched.and(Coverage::Watched), unwatched);
    }
}
