//! Which files a setting is for: by prefix and extension.

use afpa_router::Extension;

/// Some of the files of a document root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathRule {
    /// The beginning of the path, byte by byte. Paths begin with a slash, and are those of the files: an index file has
    /// its own name.
    pub prefix: String,
    /// Extensions in lower case; `none` stands for paths without one. Empty: any.
    pub extensions: Vec<String>,
}

impl PathRule {
    /// Whether it is for the file at `path`.
    pub fn fits(&self, path: &[u8]) -> bool {
        path.starts_with(self.prefix.as_bytes())
            && (self.extensions.is_empty() || self.lists(Extension::of(path)))
    }

    /// Of two rules for one file, the more precise one is larger: the longer prefix, then the one with
    /// extensions.
    pub(crate) fn precision(&self) -> (usize, bool) {
        (self.prefix.len(), !self.extensions.is_empty())
    }

    fn lists(&self, extension: Extension<'_>) -> bool {
        let listed = |wanted: &[u8]| {
            self.extensions.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(wanted))
        };
        match extension {
            Extension::None => listed(b"none"),
            Extension::Some(extension) => listed(extension),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(prefix: &str, extensions: &[&str]) -> PathRule {
        let extensions = extensions.iter().map(|extension| (*extension).to_owned()).collect();
        PathRule { prefix: prefix.to_owned(), extensions }
    }

    #[test]
    fn a_rule_is_for_what_begins_and_ends_as_it_says() {
        assert!(rule("/", &[]).fits(b"/a/b.html"));
        assert!(rule("/a/", &["html", "css"]).fits(b"/a/b.HTML"));
        assert!(!rule("/a/", &["html"]).fits(b"/b/a.html"));
        assert!(!rule("/a/", &["html"]).fits(b"/a/html"));
        assert!(rule("/a/", &["none"]).fits(b"/a/html"));
        assert!(!rule("/", &["none"]).fits(b"/a.none.b"));
    }

    #[test]
    fn the_longer_prefix_is_more_precise_than_an_extension() {
        assert!(rule("/a/", &[]).precision() > rule("/", &["css"]).precision());
        assert!(rule("/a/", &["css"]).precision() > rule("/a/", &[]).precision());
    }
}
