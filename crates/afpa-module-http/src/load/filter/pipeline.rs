//! The steps of a pipeline, and the draft that passes through them.

use afpa_cache::Hint;
use afpa_framework::Priority;
use afpa_http::CodingSet;

use crate::doc_root::DocRoot;
use crate::load::fault::BuildError;
use crate::load::sources::Sources;
use crate::path_rule::PathRule;

/// The object that is to be published for a file, so far.
pub(in crate::load) struct Draft {
    /// Content-Type.
    pub(in crate::load) content_type: String,
    /// Further fields of the answer.
    pub(in crate::load) fields: Vec<(String, String)>,
    /// The content that replaces the file's, if a filter made one.
    pub(in crate::load) content: Option<Vec<u8>>,
    /// Codings that are to be made when the object is asked for again.
    pub(in crate::load) due: CodingSet,
    /// Hints about the file, for the cache.
    pub(in crate::load) hint: Hint,
    /// Among the long responses of a core that is behind.
    pub(in crate::load) priority: Priority,
}

/// Where a draft comes from.
pub(in crate::load) struct Origin<'a> {
    pub(in crate::load) doc_root: &'a DocRoot,
    /// Announces a path before it is opened.
    pub(in crate::load) depend: &'a dyn Fn(&[u8]),
    /// Whether the faults of a page are news, and go to the log.
    pub(in crate::load) tells: bool,
    /// The file and its stored codings. A filter that replaces the content removes the codings, and adds the coverage
    /// of the files that it reads.
    pub(in crate::load) sources: &'a mut Sources,
}

/// One step of the pipeline.
pub(super) trait Filter: Send + Sync {
    /// Changes the draft.
    ///
    /// # Errors
    /// When there is nothing that could be published.
    fn filter(&self, draft: &mut Draft, origin: &mut Origin<'_>) -> Result<(), BuildError>;
}

/// The filters of a document root, in their order.
pub(crate) struct Pipeline {
    pub(super) steps: Vec<(PathRule, Box<dyn Filter>)>,
}

impl Pipeline {
    /// Runs the filters that are for the file.
    ///
    /// # Errors
    /// That of the first filter that fails.
    pub(in crate::load) fn run(
        &self,
        draft: &mut Draft,
        origin: &mut Origin<'_>,
    ) -> Result<(), BuildError> {
        let path = origin.sources.path.clone();
        for (_, filter) in self.steps.iter().filter(|(rule, _)| rule.fits(&path)) {
            filter.filter(draft, origin)?;
        }
        Ok(())
    }
}

impl Draft {
    /// A file as it is.
    pub(in crate::load) fn of(doc_root: &DocRoot, sources: &Sources) -> Draft {
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
    pub(super) fn len(&self, sources: &Sources) -> u64 {
        self.content.as_ref().map_or(sources.file.stamp.size, |content| content.len() as u64)
    }
}
