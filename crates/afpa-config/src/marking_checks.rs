//! Checks `request_id`: that nothing else writes its field, and that the name of the field has a use.

use crate::finding::{Finding, Location};
use crate::marking::IdMode;
use crate::model::{Config, SiteSettings, UrlPath};
use crate::settings::Settings;

/// Fields of ids that something else writes, and names of fields that nothing carries.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    config.sites.iter().flat_map(|site| of_site(site, settings)).collect()
}

fn of_site(site: &SiteSettings, settings: &Settings) -> Vec<Finding> {
    let at = |key| settings.location_in("site", site.instance, key);
    let field = &site.marks.request_id_field;
    let contents = |path: &UrlPath| {
        let contents = path.contents.iter().map(|content| content.behaviour.marks.request_id);
        contents.collect::<Vec<_>>()
    };
    let own = site.paths.iter().flat_map(|path| {
        [path.behaviour.marks.request_id].into_iter().chain(contents(path)).flatten()
    });
    let is_on = std::iter::once(site.marks.request_id).chain(own).any(|mode| mode != IdMode::Off);
    if !is_on && settings.differs("site", site.instance, "request_id_field") {
        let cause = "`request_id_field` has no effect without `request_id`";
        let remedy = "write request_id = \"on\", or \"servers\"";
        return vec![Finding::error(at("request_id_field"), cause, remedy)];
    }
    let mut findings = Vec::new();
    let remedy = "remove one of the two, or choose another `request_id_field`";
    let mut twice = |location: Location| {
        let cause = format!("`request_id` writes {field}, too");
        findings.push(Finding::error(location, cause, remedy));
    };
    let is_field = |(name, _): &(String, String)| name.eq_ignore_ascii_case(field);
    if is_on && site.headers.iter().any(is_field) {
        twice(at("headers"));
    }
    let paths = site.paths.iter().flat_map(|path| {
        let groups = path.contents.iter().map(|group| &group.fields);
        std::iter::once(&path.fields).chain(groups)
    });
    let headers = std::iter::once(&site.fields).chain(paths).flat_map(|level| &level.headers);
    for header in headers.filter(|_| is_on) {
        let (answer, request) = (&header.rule.answer, &header.rule.request);
        let pairs = [
            ("set", &answer.set),
            ("add", &answer.add),
            ("request_set", &request.set),
            ("request_add", &request.add),
        ];
        for (key, _) in pairs.into_iter().filter(|(_, pairs)| pairs.iter().any(is_field)) {
            twice(settings.location_in(header.section, header.instance, key));
        }
    }
    findings
}
