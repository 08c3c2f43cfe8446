//! The protocol pipeline (JAWS): filters between a file and the object that is published for it.
//!
//! ```text
//! find ── Draft ── includes ── charset ── fields ── codings ── payloads, heads ── publish
//! ```
//!
//! Filters run when an object is loaded, in the helper thread, so that a hit costs no more than without them. Their
//! result may depend on other files; a filter announces those before it opens them (I6 of `docs/rules`), so that
//! a change drops the object. The result cannot depend on the request.

mod fields;
mod includes;

use afpa_cache::Hint;
use afpa_framework::Priority;
use afpa_http::CodingSet;

use super::build::BuildError;
use super::find::Sources;
use crate::doc_root::DocRoot;
use crate::path_rule::PathRule;
use crate::settings::{Charset, DocRootSettings};
use fields::{Codings, Fields, NamedCharset};
use includes::Includes;

/// The object that is to be published for a file, so far.
pub(super) struct Draft {
    /// Content-Type.
    pub(super) content_type: String,
    /// Further fields of the answer.
    pub(super) fields: Vec<(String, String)>,
    /// The content that replaces the file's, if a filter made one.
    pub(super) content: Option<Vec<u8>>,
    /// Codings that are to be made when the object is asked for again.
    pub(super) due: CodingSet,
    /// Hints about the file, for the cache.
    pub(super) hint: Hint,
    /// Among the long responses of a core that is behind.
    pub(super) priority: Priority,
}

/// Where a draft comes from.
pub(super) struct Origin<'a> {
    pub(super) doc_root: &'a DocRoot,
    /// Announces a path before it is opened.
    pub(super) depend: &'a dyn Fn(&[u8]),
    /// Whether the faults of a page are news, and go to the log.
    pub(super) tells: bool,
    /// The file and its stored codings. A filter that replaces the content removes the codings, and adds the coverage
    /// of the files that it reads.
    pub(super) sources: &'a mut Sources,
}

/// One step of the pipeline.
trait Filter: Send + Sync {
    /// Changes the draft.
    ///
    /// # Errors
    /// When there is nothing that could be published.
    fn filter(&self, draft: &mut Draft, origin: &mut Origin<'_>) -> Result<(), BuildError>;
}

/// The filters of a document root, in their order.
pub(crate) struct Pipeline {
    steps: Vec<(PathRule, Box<dyn Filter>)>,
}

impl Pipeline {
    /// The filters that the settings ask for. Filters of one kind are in the order of the settings.
    pub(crate) fn new(settings: &DocRootSettings) -> Pipeline {
        let mut steps: Vec<(PathRule, Box<dyn Filter>)> = Vec::new();
        let rules = || settings.filters.iter();
        for filter in rules().filter(|filter| filter.includes) {
            steps.push((filter.rule.clone(), Box::new(Includes)));
        }
        for filter in rules().filter(|filter| filter.charset != Charset::Keep) {
            steps.push((filter.rule.clone(), Box::new(NamedCharset(filter.charset.clone()))));
        }
        for filter in rules().filter(|filter| !filter.headers.is_empty()) {
            steps.push((filter.rule.clone(), Box::new(Fields(filter.headers.clone()))));
        }
        steps.push((PathRule::default(), Box::new(Codings)));
        Pipeline { steps }
    }

    /// Runs the filters that are for the file.
    ///
    /// # Errors
    /// That of the first filter that fails.
    pub(super) fn run(&self, draft: &mut Draft, origin: &mut Origin<'_>) -> Result<(), BuildError> {
        let path = origin.sources.path.clone();
        for (_, filter) in self.steps.iter().filter(|(rule, _)| rule.fits(&path)) {
            filter.filter(draft, origin)?;
        }
        Ok(())
    }
}

impl Draft {
    /// A file as it is.
    pub(super) fn of(doc_root: &DocRoot, sources: &Sources) -> Draft {
        let settings = doc_root.settings();
        let (hint, priority) = settings.hint(&sources.path);
        Draft {
            content_type: doc_root.media_type(&sources.path),
            fields: settings.headers.clone(),
            content: None,
            due: CodingSet::IDENTITY,
            hint,
            priority,
        }
    }

    /// Bytes of its content.
    fn len(&self, sources: &Sources) -> u64 {
        self.content.as_ref().map_or(sources.file.stamp.size, |content| content.len() as u64)
    }
}
