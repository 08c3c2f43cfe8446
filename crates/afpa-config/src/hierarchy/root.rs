//! A directory from which request sets are cached, and the lines where a path is written.

use std::path::PathBuf;
use std::sync::Arc;

use afpa_http::edits::FieldRules;

use crate::filters::RootFilter;
use crate::finding::Location;
use crate::hints::RootHint;

/// A directory from which request sets are cached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Root {
    /// The index of the site whose settings apply to it: the first of the sites with these settings.
    pub site: usize,
    /// The directory.
    pub directory: PathBuf,
    /// Its default files.
    pub index: Vec<String>,
    /// Whether it is the document root of the site, which alone has home directories.
    pub is_site_root: bool,
    /// Whether files whose names end in `.php` are scripts, which are never sent.
    pub scripts: bool,
    /// The hints for its files. Their prefixes are below the directory.
    pub hints: Vec<RootHint>,
    /// The changes of its files. Their prefixes are below the directory.
    pub filters: Vec<RootFilter>,
    /// The changes of the fields of answers.
    pub fields: Arc<FieldRules>,
    /// The part of a URL path that the directory stands for, without a slash at its end. It is set only where there
    /// are filters, because a page may include other pages by their URLs, or fields that depend on the URL.
    pub mount: String,
}

/// Where a path and its content groups are written.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) path: Location,
    pub(crate) contents: Vec<Location>,
}
