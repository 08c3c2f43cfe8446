//! Following symbolic links, one name at a time.
//!
//! The kernel would follow them faster, but would not report which links it followed, nor their owners.
//! Each link is opened itself (`O_PATH | O_NOFOLLOW`); its owner and its text are read from that one descriptor, so
//! they belong together even if the name changes meanwhile. `..` in a link is taken from the path walked so far, never
//! from the file system.

use super::{
    DocumentRoot, Entry, ResolveError, SymlinkPolicy, Trail, beneath::open_beneath,
    beneath::relative, entry,
};
use rustix::fs::{FileType, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// Opens what `path` names, following links as the policy allows, and adds to `trail` all it met.
pub(super) fn follow(
    root: &DocumentRoot,
    path: &[u8],
    trail: &mut Trail,
) -> Result<Entry, ResolveError> {
    for _ in 0..ATTEMPTS {
        let mut walk = Walk::start(root, path, trail)?;
        walk.run()?;
        let Walk { here, .. } = walk;
        match root.open_entry(&here.path) {
            Ok((descriptor, stat)) if same_object(&stat, &here.stat) => {
                trail.add(here.path.clone());
                return entry(descriptor, &stat, Some(here.path));
            }
            // The object that was examined has been replaced: examine the new one.
            Ok(_) | Err(Errno::LOOP | Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ResolveError::Io(Errno::AGAIN.into()))
}

struct Walk<'w> {
    root: &'w DocumentRoot,
    here: Position,
    steps: VecDeque<Step>,
    links_left: u32,
    steps_left: u32,
    trail: &'w mut Trail,
}

/// Where a walk has come to: never a link.
struct Position {
    descriptor: OwnedFd,
    stat: Stat,
    path: Vec<u8>,
}

enum Step {
    /// Go to the entry of this name.
    Name(Vec<u8>),
    /// `..`
    Up,
    /// `.`, or a slash at the end: stay, but be in a directory.
    Stay,
    /// A link ends here that belongs to this user.
    OwnedBy(u32),
}

impl<'w> Walk<'w> {
    fn start(
        root: &'w DocumentRoot,
        path: &[u8],
        trail: &'w mut Trail,
    ) -> Result<Self, ResolveError> {
        let here = Position::open(root, b"/".to_vec())?;
        let steps = parse(path.strip_prefix(b"/").unwrap_or(path)).collect();
        Ok(Walk { root, here, steps, links_left: MAX_LINKS, steps_left: MAX_STEPS, trail })
    }

    fn run(&mut self) -> Result<(), ResolveError> {
        while let Some(step) = self.steps.pop_front() {
            self.steps_left = self.steps_left.checked_sub(1).ok_or(ResolveError::Forbidden)?;
            match step {
                Step::Name(name) => self.enter(&name)?,
                Step::Up => self.leave()?,
                Step::Stay => self.here.must_be_directory()?,
                Step::OwnedBy(user) if user != self.here.stat.st_uid => {
                    return Err(ResolveError::Forbidden);
                }
                Step::OwnedBy(_) => {}
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: &[u8]) -> Result<(), ResolveError> {
        let path = join(&self.here.path, name);
        let found = open_itself(&self.here.descriptor, name)
            .and_then(|descriptor| Ok((rustix::fs::fstat(&descriptor)?, descriptor)));
        let (stat, descriptor) = match found {
            Ok(found) => found,
            Err(error) => {
                self.trail.add(path);
                return Err(error.into());
            }
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            self.trail.add(path);
            return self.read_link(&descriptor, &stat);
        }
        self.here = Position { descriptor, stat, path };
        Ok(())
    }

    /// Replaces a link by the steps that it stands for. They begin in the directory that holds it.
    fn read_link(&mut self, link: &OwnedFd, stat: &Stat) -> Result<(), ResolveError> {
        self.links_left = self.links_left.checked_sub(1).ok_or(ResolveError::Forbidden)?;
        let text = rustix::fs::readlinkat(link, c"", Vec::new())?.into_bytes();
        if text.starts_with(b"/") {
            return Err(ResolveError::Forbidden);
        }
        if self.root.settings.symlinks == SymlinkPolicy::OwnerMatch {
            self.steps.push_front(Step::OwnedBy(stat.st_uid));
        }
        let steps: Vec<Step> = parse(&text).collect();
        steps.into_iter().rev().for_each(|step| self.steps.push_front(step));
        Ok(())
    }

    fn leave(&mut self) -> Result<(), ResolveError> {
        self.here.must_be_directory()?;
        if self.here.path == b"/" {
            return Err(ResolveError::Forbidden);
        }
        let above = parent(&self.here.path).to_vec();
        self.trail.add(std::mem::take(&mut self.here.path));
        self.here = Position::open(self.root, above)?;
        Ok(())
    }
}

impl Position {
    fn open(root: &DocumentRoot, path: Vec<u8>) -> Result<Self, ResolveError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = open_beneath(root, relative(&path), flags, ResolveFlags::NO_SYMLINKS)?;
        let stat = rustix::fs::fstat(&descriptor)?;
        Ok(Position { descriptor, stat, path })
    }

    fn must_be_directory(&self) -> Result<(), ResolveError> {
        match FileType::from_raw_mode(self.stat.st_mode) {
            FileType::Directory => Ok(()),
            _ => Err(ResolveError::NotFound),
        }
    }
}

/// The path of the directory that holds `path`; of `/` itself for `/`.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    match path.iter().rposition(|&byte| byte == b'/') {
        None | Some(0) => b"/",
        Some(slash) => path.get(..slash).unwrap_or(b"/"),
    }
}

/// The path of `name` in the directory `path`.
pub(crate) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + 1 + name.len());
    joined.extend_from_slice(path);
    if !path.ends_with(b"/") {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// Opens the entry `name` of a directory, and if it is a link, the link.
fn open_itself(directory: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open_beneath(directory, name, flags, ResolveFlags::NO_SYMLINKS)
}

fn parse(text: &[u8]) -> impl Iterator<Item = Step> {
    text.split(|&byte| byte == b'/').map(|name| match name {
        b"" | b"." => Step::Stay,
        b".." => Step::Up,
        name => Step::Name(name.to_vec()),
    })
}

/// The owner counts: it decided whether the link may be followed.
fn same_object(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino, one.st_uid) == (other.st_dev, other.st_ino, other.st_uid)
}

/// As the kernel's MAXSYMLINKS.
const MAX_LINKS: u32 = 40;
/// Forty links of 4095 bytes could ask for eighty thousand steps.
const MAX_STEPS: u32 = 1024;
/// How often a path is walked that changes under the walker.
const ATTEMPTS: u32 = 16;
