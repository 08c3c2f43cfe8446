//! From sites, paths and content groups to the changes of fields that a request meets.

use afpa_http::edits::{Cors, FieldRules};

use crate::model::{ContentGroup, SiteSettings, UrlPath};

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
    FieldRules { rules: headers.chain(cors.iter().map(Cors::rule)).collect(), cors }
}
