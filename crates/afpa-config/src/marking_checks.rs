//! Checks `request_id` and `traceparent`: that nothing else writes their fields, and that settings beside them have an
//! effect.

use afpa_http::trace::TRACEPARENT;

use crate::finding::Finding;
use crate::headers::HeaderRule;
use crate::marking::{IdMode, OwnMarks, TraceMode};
use crate::model::Config;
use crate::settings::Settings;
use crate::site_settings::SiteSettings;

/// Fields of marks that something else writes, and settings of marks that there are none of.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    config.sites.iter().flat_map(|site| of_site(site, settings)).collect()
}

fn of_site(site: &SiteSettings, settings: &Settings) -> Vec<Finding> {
    let at = |key| settings.location_in("site", site.instance, key);
    let own = || site.own_marks();
    let field = &*site.marks.request_id_field;
    let ids = site.marks.request_id != IdMode::Off
        || own().any(|own| own.request_id.is_some_and(|mode| mode != IdMode::Off));
    let traces = site.marks.traceparent != TraceMode::Off
        || own().any(|own| own.traceparent.is_some_and(|mode| mode != TraceMode::Off));
    let mut findings = Vec::new();
    for (is_on, key, of, value) in [
        (ids, "request_id_field", "request_id", "\"on\", or \"servers\""),
        (traces, "trace_share", "traceparent", "\"on\", or \"trusted\""),
    ] {
        if !is_on && settings.differs("site", site.instance, key) {
            let cause = format!("`{key}` has no effect without `{of}`");
            findings.push(Finding::error(at(key), cause, format!("write {of} = {value}")));
        }
    }
    let written = [(ids, "request_id", field), (traces, "traceparent", TRACEPARENT)];
    for (_, setting, name) in written.into_iter().filter(|(is_on, ..)| *is_on) {
        let in_files = site.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let in_files = in_files.then(|| at("headers"));
        let in_rules = rules(site).flat_map(|rule| {
            let HeaderRule { section, instance, .. } = rule;
            let keys = keys_with(rule, name);
            keys.into_iter().map(|key| settings.location_in(section, *instance, key))
        });
        findings.extend(in_files.into_iter().chain(in_rules).map(|location| {
            let cause = format!("`{setting}` writes {name}, too");
            Finding::error(location, cause, "remove one of the two")
        }));
    }
    findings
}

impl SiteSettings {
    /// The marks of paths and content groups.
    pub(crate) fn own_marks(&self) -> impl Iterator<Item = OwnMarks> {
        self.places().map(|place| place.behaviour.marks)
    }
}

/// Every header rule of a site.
fn rules(site: &SiteSettings) -> impl Iterator<Item = &HeaderRule> {
    let places = site.places().map(|place| place.fields);
    std::iter::once(&site.fields).chain(places).flat_map(|level| &level.headers)
}

/// The settings of a rule that write a field.
fn keys_with(rule: &HeaderRule, name: &str) -> Vec<&'static str> {
    let (answer, request) = (&rule.rule.answer, &rule.rule.request);
    let pairs = [
        ("set", &answer.set),
        ("add", &answer.add),
        ("request_set", &request.set),
        ("request_add", &request.add),
    ];
    let writes =
        |pairs: &[(String, String)]| pairs.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    pairs.into_iter().filter(|(_, pairs)| writes(pairs)).map(|(key, _)| key).collect()
}
