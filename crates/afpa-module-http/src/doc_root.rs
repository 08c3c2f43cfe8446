//! A document root with its cache, watcher and settings.

mod open;

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};

use afpa_cache::root::DocumentRoot;
use afpa_cache::watch::Watcher;
use afpa_cache::{Cache, Key, Millis, Object};
use afpa_http::media::MediaTypes;
use afpa_http::{Host, Request};

pub use open::DocRootError;

use crate::common::Common;
use crate::header::HttpHeader;
use crate::known_scripts::{ChangeNumber, KnownScripts};
use crate::load::{Compresses, Homes, Pipeline, RootedPath, split_home};
use crate::script::{self, Script};
use crate::settings::DocRootSettings;

/// A document root. It is independent of connections and requests, and replaced as a whole at a reload.
pub struct DocRoot {
    key: u32,
    settings: DocRootSettings,
    /// Operations may change it.
    media: RwLock<MediaTypes>,
    pipeline: Pipeline,
    common: Arc<Common>,
    root: DocumentRoot,
    homes: Option<Homes>,
    watcher: OnceLock<Watcher>,
    /// The number changes with each change that is reported.
    changes: Arc<ChangeNumber>,
}

/// A path below a home: the part that names the home, and the rest.
type Split<'a> = (&'a [u8], &'a [u8]);

impl DocRoot {
    /// The number that distinguishes objects of this document root from others in the same cache.
    pub fn key(&self) -> u32 {
        self.key
    }

    /// The directory itself.
    pub fn directory(&self) -> Arc<OwnedFd> {
        self.root.handle()
    }

    /// The settings in force.
    pub fn settings(&self) -> &DocRootSettings {
        &self.settings
    }

    /// The cache, which several document roots may share.
    pub fn cache(&self) -> &Arc<Cache<HttpHeader>> {
        self.common.cache()
    }

    /// The watcher, for its coverage and progress.
    pub fn watcher(&self) -> Option<&Watcher> {
        self.watcher.get()
    }

    /// Drops the object of a normalised path. Returns whether there was one.
    pub fn purge(&self, path: &[u8]) -> bool {
        self.cache().purge(&Key::new(self.key, path))
    }

    /// Notes a request that is answered from `object`, and queues the object for compression if the request
    /// shows that this is wanted. It costs a hit one or two loads.
    #[inline]
    pub(crate) fn note(
        self: &Arc<Self>,
        object: &Arc<Object<HttpHeader>>,
        request: &Request<'_, '_>,
    ) {
        if object.header().wants_codings(request) {
            let root: Weak<dyn Compresses> = Arc::<Self>::downgrade(self);
            self.common.compressor().enqueue(root, object);
        }
    }

    pub(crate) fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// The media type of a file, by its path.
    pub(crate) fn media_type(&self, path: &[u8]) -> String {
        self.media.read().unwrap_or_else(PoisonError::into_inner).content_type(path).into_owned()
    }

    /// The media type of files with this extension.
    pub(crate) fn type_of(&self, extension: &str) -> String {
        self.media_type(format!("a.{extension}").as_bytes())
    }

    /// Extensions, and their media types that are not the built-in ones.
    pub(crate) fn types(&self) -> Vec<(String, String)> {
        self.media.read().unwrap_or_else(PoisonError::into_inner).overrides()
    }

    /// Changes the table of media types. When this returns, no answer with a type of before is given any more: everything
    /// is loaded anew, for an answer may be that of a file whose name is not in the URL.
    pub(crate) fn change_types(&self, change: impl FnOnce(&mut MediaTypes)) {
        change(&mut self.media.write().unwrap_or_else(PoisonError::into_inner));
        // A load depends on its place before it asks for the type.
        self.cache().invalidate_tree(self.key, b"");
    }

    /// Whether requests for this host are answered. Names are compared without regard to case; the
    /// port does not matter.
    pub(crate) fn serves(&self, host: Host<'_>) -> bool {
        let hosts = &self.settings.hosts;
        hosts.is_empty() || hosts.iter().any(|known| known.eq_ignore_ascii_case(host.name()))
    }

    /// The directory that a path is looked up in; `None` if it names the home of an unknown user.
    pub(crate) fn place<'a>(&'a self, path: &'a [u8]) -> Option<RootedPath<'a>> {
        let Some((homes, (prefix, rest))) = self.home(path) else {
            return Some(RootedPath::in_doc_root(&self.root, self.watcher.get(), path));
        };
        let name = prefix.strip_prefix(b"/~").unwrap_or_default();
        homes.root(name).map(|root| RootedPath::in_home(root, prefix, rest))
    }

    /// Whether a path that named nothing before names nothing now, as far as that is known without waiting for a disk.
    pub(crate) fn is_absent_again(&self, path: &[u8]) -> bool {
        // A home may have to be looked up.
        self.common.absent().has(self.key, path)
            && self.home(path).is_none()
            && self.root.is_known_absent(path)
    }

    /// Whether a path that led to no file before leads to none now: there is nothing, or a directory without index files
    /// that is not listed. As far as that is known without waiting for a disk.
    pub(crate) fn is_no_file_again(&self, path: &[u8]) -> bool {
        let absent = |name: &String| self.root.is_known_absent(&[path, name.as_bytes()].concat());
        let is_plain_directory = || {
            let DocRootSettings { index, listing, .. } = &self.settings;
            path.ends_with(b"/") && !listing && index.iter().all(absent)
        };
        self.common.absent().has(self.key, path)
            && self.home(path).is_none()
            && (self.root.is_known_absent(path) || is_plain_directory())
    }

    /// Writes the script that a path leads to into `script`, as far as one is known without waiting for a disk. A core that
    /// has found it lately asks nobody, if a watch reports what becomes of it (D12 of docs/rules).
    pub(crate) fn known_script(
        &self,
        path: &[u8],
        (known, now): (&mut KnownScripts, Millis),
        script: &mut Script,
    ) -> bool {
        if !self.settings.scripts || self.home(path).is_some() {
            return false;
        }
        // The number and the watch come first: a change behind them makes another number.
        let changes = self.changes.get();
        if let Some(found) = known.get(path, changes, now) {
            script.path.clone_from(&found.path);
            script.info.clone_from(&found.info);
            return true;
        }
        let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or_default();
        let directory = path.get(..end).unwrap_or_default();
        let covers = |watcher: &Watcher| watcher.is_known_to_cover(directory);
        let is_covered = self.watcher().is_some_and(covers);
        let Some(found) = self.find_known_script(path) else { return false };
        // Where a path goes on behind the name of a script, that lies in another directory.
        if is_covered && found.info.is_empty() {
            known.note(path, changes, now, &found);
        }
        *script = found;
        true
    }

    fn find_known_script(&self, path: &[u8]) -> Option<Script> {
        for end in script::ends(path) {
            let name = path.get(..end).unwrap_or_default();
            if self.root.is_known_file(name) {
                return Some(Script::at(path, end));
            }
            if !self.root.is_known_absent(name) {
                return None;
            }
        }
        if !path.ends_with(b"/") {
            return None;
        }
        let mut names = self.settings.index.iter().map(|name| [path, name.as_bytes()].concat());
        let name = names.find(|name| !self.root.is_known_absent(name))?;
        let is_known = script::is_script(&name) && self.root.is_known_file(&name);
        is_known.then(|| Script { path: name, info: Vec::new() })
    }

    /// Whether a component of a path is hidden.
    pub(crate) fn hides(&self, path: &[u8]) -> bool {
        self.root.hides(path)
    }

    /// A path names nothing, or nothing but a directory without an answer of its own.
    pub(crate) fn note_absent(&self, path: &[u8]) {
        self.common.absent().note(self.key, path);
    }

    /// The homes, if the path is below one of them.
    fn home<'a>(&self, path: &'a [u8]) -> Option<(&Homes, Split<'a>)> {
        self.homes.as_ref().zip(split_home(path))
    }
}
