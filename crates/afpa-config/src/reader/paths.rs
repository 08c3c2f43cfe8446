//! Settings that are paths: relative ones are resolved.

use std::path::{Path, PathBuf};

use super::Section;
use crate::document::Node;
use crate::fault::{path_rule, read_text};
use crate::finding::Location;
use crate::settings::quote;

impl Section<'_, '_> {
    /// A list of paths. Relative ones are resolved.
    pub(crate) fn paths(&mut self, key: &'static str) -> Vec<PathBuf> {
        let paths = self.texts(key, "paths", Vec::new(), path_rule);
        paths.into_iter().map(|path| self.resolve(key, path)).collect()
    }

    /// A path that has no default; empty if it was not given.
    pub(crate) fn required_path(&mut self, key: &'static str) -> PathBuf {
        match self.required(key, "path", path_rule) {
            Some(path) => self.resolve(key, path),
            None => PathBuf::new(),
        }
    }

    /// A path, or `none`.
    pub(crate) fn optional_path(&mut self, key: &'static str) -> Option<PathBuf> {
        let path = self.path_or(key, "path, or `none`", &["none"], "none");
        (path != "none").then(|| PathBuf::from(path))
    }

    /// A path, or one of some words with a meaning of their own. Relative paths are resolved.
    pub(crate) fn path_or(
        &mut self,
        key: &'static str,
        kind: &str,
        words: &[&str],
        default: &str,
    ) -> String {
        let show = |value: &String| quote(value);
        let default = default.to_owned();
        let path =
            self.read(key, || kind.to_owned(), default, show, |node| read_text(node, path_rule));
        if words.contains(&path.as_str()) {
            return path;
        }
        self.resolve(key, path).to_string_lossy().into_owned()
    }

    /// A file's paths are relative to its folder, an option's to the working directory.
    fn resolve(&mut self, key: &'static str, path: String) -> PathBuf {
        let resolved = match self.reader.settings.location_in(self.path, self.instance, key) {
            Location::Option(_) => PathBuf::from(&path),
            Location::File(span) => self.reader.source.folder_at(span.start).join(&path),
            Location::Nowhere => self.reader.source.folder_at(0).join(&path),
        };
        let resolved = std::path::absolute(&resolved).unwrap_or(resolved);
        let is_secret = self.find(key).0.is_some_and(Node::is_secret);
        if resolved != Path::new(&path) && !is_secret {
            self.note(key, resolved.display().to_string());
        }
        resolved
    }
}
