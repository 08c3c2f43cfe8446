//! Settings of a document root.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use afpa_cache::Hint;
use afpa_framework::Priority;
use afpa_http::edits::FieldRules;
use afpa_http::{Coding, RequestLimits};

use crate::path_rule::PathRule;

/// Settings of one document root, with safe defaults.
#[derive(Clone, Debug)]
pub struct DocRootSettings {
    /// Limits on request heads.
    pub limits: RequestLimits,
    /// Most bytes of request content that are read and thrown away to keep a connection.
    pub body_limit: u64,
    /// Host names that are served, in lower case; empty: any.
    pub hosts: Vec<String>,
    /// Files served for a directory, the first that exists.
    pub index: Vec<String>,
    /// Whether some files are scripts: their content is never sent.
    pub scripts: bool,
    /// Whether a directory without index file is listed.
    pub listing: bool,
    /// Directory of a user's home that `/~user/` stands for.
    pub homes: Option<PathBuf>,
    /// Fields added to every answer with content.
    pub headers: Vec<(String, String)>,
    /// Media types by lower-case extension, before the built-in ones.
    pub types: HashMap<String, String>,
    /// Compression of objects in the cache.
    pub compression: Compression,
    /// Whether files written into the tree are loaded before they are asked for.
    pub push: bool,
    /// Most ranges of one request; with more, the whole is sent.
    pub ranges: usize,
    /// The beginning of this directory's URL paths, if it stands for a prefix; without a slash at the end.
    pub mount: String,
    /// Changes on the way from a file to the answer. Every rule that fits applies, in this order.
    pub filters: Vec<FilterRule>,
    /// Bytes of the longest page that includes others, expanded.
    pub includes_size: usize,
    /// The operator's changes of the answers' fields.
    pub fields: Arc<FieldRules>,
    /// Whether clients may come by HTTP/3: the heads of answers are kept as that has them, too.
    pub http3: bool,
    /// Hints about files, for the cache. The most precise rule for a file decides.
    pub hints: Vec<FileHint>,
}

/// Hints about some files.
#[derive(Clone, Debug, Default)]
pub struct FileHint {
    /// Which files.
    pub rule: PathRule,
    /// For the cache.
    pub cache: Hint,
    /// Among the long responses of a core that is behind.
    pub priority: Priority,
}

/// Changes on the way from some files to the answer.
#[derive(Clone, Debug, Default)]
pub struct FilterRule {
    /// For which files.
    pub rule: PathRule,
    /// Whether server-side includes are expanded.
    pub includes: bool,
    /// The charset of text.
    pub charset: Charset,
    /// Fields that are added, or replace others; a field without a value is removed.
    pub headers: Vec<(String, String)>,
}

/// The charset of text in Content-Type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// As the media type of the extension has it.
    #[default]
    Keep,
    /// Nothing: the file says it itself.
    None,
    /// This one.
    Named(String),
}

impl DocRootSettings {
    /// Whether server-side includes are expanded in the file at `path`.
    pub(crate) fn has_includes(&self, path: &[u8]) -> bool {
        self.filters.iter().any(|filter| filter.includes && filter.rule.fits(path))
    }

    /// The hints about the file at `path`.
    pub(crate) fn hint(&self, path: &[u8]) -> (Hint, Priority) {
        let fit = self.hints.iter().filter(|hint| hint.rule.fits(path));
        let best = fit.max_by_key(|hint| hint.rule.precision());
        best.map_or_else(Default::default, |hint| (hint.cache, hint.priority))
    }
}

/// Which objects are compressed. Each is compressed once, when it is asked for again.
#[derive(Clone, Debug)]
pub struct Compression {
    /// Codings to make, and at which level.
    pub codings: Vec<(Coding, u32)>,
    /// Smaller files are not compressed: it would save too little.
    pub min_size: u64,
    /// Larger files are not compressed: it would take too long.
    pub max_size: u64,
    /// Media types besides the built-in compressible ones.
    pub types: Vec<String>,
    /// Objects that may wait to be compressed. If the queue is full, a later request for the object tries
    /// again.
    pub queue: usize,
}

impl Default for Compression {
    fn default() -> Self {
        Self {
            codings: vec![(Coding::Brotli, 5), (Coding::Zstd, 6), (Coding::Gzip, 6)],
            min_size: 256,
            max_size: 1024 * 1024,
            types: Vec::new(),
            // A file that finds no place waits for its next request.
            queue: 1024,
        }
    }
}

impl Default for DocRootSettings {
    fn default() -> Self {
        Self {
            limits: RequestLimits::default(),
            body_limit: 1024 * 1024,
            hosts: Vec::new(),
            index: vec!["index.html".into()],
            scripts: false,
            listing: false,
            homes: None,
            headers: Vec::new(),
            types: HashMap::new(),
            compression: Compression::default(),
            push: true,
            ranges: 16,
            mount: String::new(),
            filters: Vec::new(),
            // An expanded page is one object in memory.
            includes_size: 1024 * 1024,
            fields: Arc::default(),
            http3: false,
            hints: Vec::new(),
        }
    }
}
