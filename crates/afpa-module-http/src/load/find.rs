//! From a path to open files: the file itself, an index file, stored codings.

use afpa_cache::Coverage;
use afpa_cache::root::{Entry, Listed, ListedKind, OpenDirectory, OpenFile, ResolveError};
use afpa_cache::watch;
use afpa_framework::GATHERED;
use afpa_http::{Coding, Status};

use super::fault::BuildError;
use super::homes::RootedPath;
use super::listing;
use super::loaded::{Listing, Loaded};
use super::page::PageInMemory;
use super::refusal::Refusal;
use super::sources::Sources;
use crate::doc_root::DocRoot;
use crate::script::{self, Script};

/// The result of looking for a path.
pub(super) enum Found {
    /// A file, with the codings that are stored beside it.
    File(Sources),
    /// No file: the answer is made from this instead. A watch reports it, or not, when there is one.
    Nothing(Loaded, Coverage),
}

/// Looks for what `path` names. `depend` is called with every path before that is opened
/// (I6 of docs/rules).
pub(super) fn find(doc_root: &DocRoot, path: &[u8], depend: &mut dyn FnMut(&[u8])) -> Found {
    let Some(place) = doc_root.place(path) else {
        depend(path);
        return Found::Nothing(Loaded::Failed(Status::NOT_FOUND), Coverage::Unwatched);
    };
    let mut finder = Finder { place, depend, coverage: watch::Coverage::Watched };
    let outcome = finder.before(doc_root).and_then(|()| match path.ends_with(b"/") {
        true => finder.index(doc_root, path),
        false => finder.file(doc_root),
    });
    match outcome {
        Ok((path, file)) => Found::File(finder.sources(path, file)),
        Err(loaded) => Found::Nothing(loaded, finder.coverage.into()),
    }
}

struct Finder<'a> {
    place: RootedPath<'a>,
    depend: &'a mut dyn FnMut(&[u8]),
    coverage: watch::Coverage,
}

type Opened = (Vec<u8>, OpenFile);

impl Finder<'_> {
    /// Looks for a script in the path. The rest of the path behind it is no file.
    fn before(&mut self, doc_root: &DocRoot) -> Result<(), Loaded> {
        if !doc_root.settings().scripts {
            return Ok(());
        }
        for end in script::ends(self.place.path) {
            let script = Script::at(self.place.path, end);
            match self.open(&script.path) {
                Ok(Entry::File(_)) => return Err(self.script(script)),
                Ok(Entry::Directory(_)) | Err(ResolveError::NotFound) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    /// A script in a user's home is nobody's.
    fn script(&self, script: Script) -> Loaded {
        match self.place.prefix {
            b"" => Loaded::Script(script),
            _ => Loaded::Failed(Status::FORBIDDEN),
        }
    }

    /// A file that may be sent. A link to a script may not, nor a stored coding of one.
    fn sendable(
        &self,
        doc_root: &DocRoot,
        path: Vec<u8>,
        file: OpenFile,
    ) -> Result<Opened, Loaded> {
        let is_source = || {
            let real = file.real.as_deref().unwrap_or(&path);
            script::is_source(&path) || script::is_source(real)
        };
        match doc_root.settings().scripts && is_source() {
            true => Err(Loaded::Failed(Status::FORBIDDEN)),
            false => Ok((path, file)),
        }
    }

    fn file(&mut self, doc_root: &DocRoot) -> Result<Opened, Loaded> {
        let path = self.place.path.to_vec();
        match self.open(&path) {
            Ok(Entry::File(file)) => self.sendable(doc_root, path, file),
            Ok(Entry::Directory(_)) => Err(Loaded::Slash),
            Err(error) => Err(failed(error)),
        }
    }

    /// The first index file of the directory, or else its listing, if listings are allowed.
    fn index(&mut self, doc_root: &DocRoot, shown_as: &[u8]) -> Result<Opened, Loaded> {
        for name in &doc_root.settings().index {
            let path = [self.place.path, name.as_bytes()].concat();
            match self.open(&path) {
                Ok(Entry::File(_)) if doc_root.settings().scripts && script::is_script(&path) => {
                    return Err(self.script(Script { path, info: Vec::new() }));
                }
                Ok(Entry::File(file)) => return self.sendable(doc_root, path, file),
                Ok(Entry::Directory(_)) | Err(ResolveError::NotFound) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        let path = self.place.path.to_vec();
        match self.open(&path) {
            Ok(Entry::Directory(directory)) => Err(self.listing(doc_root, shown_as, &directory)),
            Ok(Entry::File(_)) => Err(Loaded::Failed(Status::NOT_FOUND)),
            Err(error) => Err(failed(error)),
        }
    }

    fn listing(&self, doc_root: &DocRoot, shown_as: &[u8], directory: &OpenDirectory) -> Loaded {
        if !doc_root.settings().listing {
            return Loaded::Refused(Refusal::NoListing);
        }
        let dotfiles = self.place.root.settings().dotfiles;
        match directory.list_first(dotfiles, listing::MOST) {
            Ok((names, more)) => {
                let names =
                    names.into_iter().map(|listed| self.row(doc_root, shown_as, directory, listed));
                as_sent(doc_root, listing::page(shown_as, names, more))
            }
            Err(error) => Loaded::Refused(Refusal::Unlisted(error)),
        }
    }

    /// A row of a listing, and whether its link would lead to the named file.
    fn row(
        &self,
        doc_root: &DocRoot,
        shown_as: &[u8],
        directory: &OpenDirectory,
        mut listed: Listed,
    ) -> (Listed, bool) {
        let mut there = directory.may_open(&listed);
        if listed.kind == ListedKind::Link {
            let path = [self.place.path, &listed.name].concat();
            match self.place.root.resolve(&path) {
                Ok(Entry::File(file)) => listed.kind = ListedKind::File(file.stamp.size),
                Ok(Entry::Directory(_)) => listed.kind = ListedKind::Directory,
                Err(_) => there = false,
            }
        }
        let leads = there && listing::has_link(doc_root.settings(), shown_as, &listed.name);
        (listed, leads)
    }

    /// Adds the stored codings. A sibling older than the file is of an earlier version of it.
    fn sources(&mut self, path: Vec<u8>, file: OpenFile) -> Sources {
        let mut stored = Vec::new();
        for coding in Coding::ALL {
            if coding == Coding::Identity || is_coded(&path) {
                continue;
            }
            let sibling = [&path, coding.file_suffix().as_bytes()].concat();
            if let Ok(Entry::File(found)) = self.open(&sibling)
                && found.stamp.mtime_ns >= file.stamp.mtime_ns
            {
                stored.push((coding, found));
            }
        }
        let path = [self.place.prefix, &path].concat();
        Sources { path, file, stored, coverage: self.coverage.into() }
    }

    fn open(&mut self, path: &[u8]) -> Result<Entry, ResolveError> {
        let prefix = self.place.prefix;
        let mut depend = |place: &[u8]| (self.depend)(&[prefix, place].concat());
        match self.place.watcher {
            Some(watcher) => {
                let (entry, coverage) = watcher.resolve(&self.place.root, path, &mut depend);
                self.coverage = self.coverage.and(coverage);
                entry
            }
            None => {
                depend(path);
                self.coverage = watch::Coverage::Unwatched(watch::Reason::Disabled);
                self.place.root.resolve(path)
            }
        }
    }
}

/// Whether the file is a stored coding itself. Then no codings of it are looked for.
fn is_coded(path: &[u8]) -> bool {
    Coding::ALL.iter().any(|coding| {
        *coding != Coding::Identity && path.ends_with(coding.file_suffix().as_bytes())
    })
}

/// A listing that is longer than what is copied for a response is held in a file without a name.
fn as_sent(doc_root: &DocRoot, html: Vec<u8>) -> Loaded {
    if html.len() as u64 <= GATHERED {
        return Loaded::Listing(Listing::Short(html));
    }
    match PageInMemory::of(doc_root.cache(), &html) {
        Ok(page) => Loaded::Listing(Listing::Long(page)),
        Err(BuildError::NoRoom) => Loaded::Refused(Refusal::NoRoom),
        Err(BuildError::Io(error)) => Loaded::Refused(Refusal::Unread(error)),
        Err(BuildError::Changed | BuildError::Refused(_)) => {
            Loaded::Failed(Status::INTERNAL_SERVER_ERROR)
        }
    }
}

fn failed(error: ResolveError) -> Loaded {
    match error {
        ResolveError::NotFound => Loaded::Failed(Status::NOT_FOUND),
        error => Loaded::Refused(Refusal::Open(error)),
    }
}
