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
mod pipeline;

use crate::path_rule::PathRule;
use crate::settings::{Charset, DocRootSettings};
use fields::{Codings, Fields, NamedCharset};
use includes::Includes;
use pipeline::Filter;
pub(crate) use pipeline::Pipeline;
pub(super) use pipeline::{Draft, Origin};

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
}
