//! From sites, paths and content groups to the changes of fields that a request meets, and its marks.

use afpa_http::edits::{Cors, FieldRules};
use afpa_http::marks::IdRule;
use afpa_http::trace::TraceRule;

use crate::marking::{IdMode, SiteMarks, TraceMode};
use crate::site_settings::{ContentGroup, SiteSettings, UrlPath};

/// The changes for the requests of a content group: those of the site first, then those of the path and its own. The
/// innermost `cors` decides alone, and comes last: its fields are the only ones of their names.
pub fn field_rules(
    site: &SiteSettings,
    path: Option<&UrlPath>,
    content: Option<&ContentGroup>,
) -> FieldRules {
    let levels =
        [Some(&site.fields), path.map(|path| &path.fields), content.map(|content| &content.fields)];
    let levels = || levels.into_iter().flatten();
    let cors = levels().filter_map(|level| level.cors.as_ref()).next_back().cloned();
    let headers = levels().flat_map(|level| &level.headers).map(|header| header.rule.clone());
    let id = id_rule(site, path, content);
    let trace = trace_rule(site, path, content);
    let first = site.alternative.iter().cloned();
    let rules = first.chain(headers).chain(cors.iter().map(Cors::rule)).collect();
    FieldRules { rules, cors, id, trace }
}

/// The ids of the requests of a content group.
fn id_rule(
    site: &SiteSettings,
    path: Option<&UrlPath>,
    content: Option<&ContentGroup>,
) -> Option<IdRule> {
    let of_path = path.and_then(|path| path.behaviour.marks.request_id);
    let own = content.and_then(|content| content.behaviour.marks.request_id).or(of_path);
    let SiteMarks { request_id, request_id_field, .. } = &site.marks;
    let field = request_id_field.clone();
    match own.unwrap_or(*request_id) {
        IdMode::Off => None,
        mode => Some(IdRule { field, in_answers: mode == IdMode::On }),
    }
}

/// The traces of these requests.
fn trace_rule(
    site: &SiteSettings,
    path: Option<&UrlPath>,
    content: Option<&ContentGroup>,
) -> Option<TraceRule> {
    let of_path = path.and_then(|path| path.behaviour.marks.traceparent);
    let own = content.and_then(|content| content.behaviour.marks.traceparent).or(of_path);
    let SiteMarks { traceparent, trace_share: share, .. } = &site.marks;
    match own.unwrap_or(*traceparent) {
        TraceMode::Off => None,
        mode => Some(TraceRule { of_anybody: mode == TraceMode::On, share: *share }),
    }
}
