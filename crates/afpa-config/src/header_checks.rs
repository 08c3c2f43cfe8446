//! Checks `[[site.header]]` and `[site.cors]`: that they change something, and do what they seem to do.

use afpa_http::edits::{Cors, MOST_RULES};

use crate::field_rules::field_rules;
use crate::finding::{Finding, Location};
use crate::headers::{FieldSettings, HeaderRule, NAMES, Names};
use crate::model::Config;
use crate::settings::{Instance, Settings};
use crate::site_settings::SiteSettings;
use crate::suggest;

/// Rules without effect, and values that browsers ignore.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &config.sites {
        for (level, names, instance) in levels(site) {
            findings.extend(cors(level, names, instance, settings));
            for header in &level.headers {
                findings.extend(rule(site, header, settings));
            }
        }
        findings.extend(twice(site, settings));
        findings.extend(too_many(site));
    }
    findings
}

/// Every level of a site that has fields.
pub(crate) fn levels(site: &SiteSettings) -> Vec<(&FieldSettings, Names, Instance)> {
    let [of_site, of_path, of_group] = NAMES;
    let mut levels = vec![(&site.fields, of_site, site.instance)];
    for path in &site.paths {
        levels.push((&path.fields, of_path, path.instance));
        let groups = path.contents.iter();
        levels.extend(groups.map(|group| (&group.fields, of_group, group.instance)));
    }
    levels
}

fn rule(site: &SiteSettings, header: &HeaderRule, settings: &Settings) -> Vec<Finding> {
    let HeaderRule { rule, section, instance, location } = header;
    let at = |key| settings.location_in(section, *instance, key);
    let mut findings = Vec::new();
    // A value that was given but is wrong has been reported already.
    let keys = ["set", "add", "remove", "request_set", "request_add", "request_remove"];
    if keys.into_iter().all(|key| at(key) == Location::Nowhere) {
        let remedy = "write `set`, `add`, `remove`, or the same for requests: `request_set`";
        findings.push(Finding::warning(location.clone(), "no field is changed here", remedy));
    } else if rule.answer.is_empty() {
        for key in
            ["status", "types"].into_iter().filter(|key| settings.differs(section, *instance, key))
        {
            let cause = format!("`{key}` has no effect on requests");
            findings.push(Finding::error(at(key), cause, "remove it, or change fields of answers"));
        }
    }
    for (key, pairs) in [("set", &rule.answer.set), ("add", &rule.answer.add)] {
        for (name, value) in pairs {
            if name.eq_ignore_ascii_case("strict-transport-security") && site.hsts.is_some() {
                let cause = format!("`hsts` of the site writes {name}, too");
                findings.push(Finding::error(at(key), cause, "remove one of the two"));
            }
            let is_policy = name.to_ascii_lowercase().starts_with("content-security-policy");
            if let Some((cause, remedy)) = policy_fault(value).filter(|_| is_policy) {
                findings.push(Finding::warning(at(key), cause, remedy));
            }
        }
    }
    findings
}

/// Fields of `cors` that a header rule of the same place, or of one within, writes as well: those of `cors` count.
fn twice(site: &SiteSettings, settings: &Settings) -> Vec<Finding> {
    let of_site = site.fields.cors.is_some();
    let mut places = vec![(&site.fields, of_site)];
    for path in &site.paths {
        let of_path = of_site || path.fields.cors.is_some();
        places.push((&path.fields, of_path));
        let groups = path.contents.iter();
        places.extend(groups.map(|group| (&group.fields, of_path || group.fields.cors.is_some())));
    }
    let headers =
        places.into_iter().filter(|(_, cors)| *cors).flat_map(|(level, _)| &level.headers);
    let mut findings = Vec::new();
    for HeaderRule { rule, section, instance, .. } in headers {
        for (key, pairs) in [("set", &rule.answer.set), ("add", &rule.answer.add)] {
            let own = pairs.iter().map(|(name, _)| name).filter(|name| Cors::writes(name));
            findings.extend(own.map(|name| {
                let cause = format!("`cors` decides about {name}, so that this has no effect");
                let remedy = "remove one of the two";
                Finding::error(settings.location_in(section, *instance, key), cause, remedy)
            }));
        }
    }
    findings
}

/// Directives of a Content-Security-Policy (CSP level 3, and its extensions).
const DIRECTIVES: [&str; 28] = [
    "base-uri",
    "block-all-mixed-content",
    "child-src",
    "connect-src",
    "default-src",
    "fenced-frame-src",
    "font-src",
    "form-action",
    "frame-ancestors",
    "frame-src",
    "img-src",
    "manifest-src",
    "media-src",
    "object-src",
    "prefetch-src",
    "report-sample",
    "report-to",
    "report-uri",
    "require-trusted-types-for",
    "sandbox",
    "script-src",
    "script-src-attr",
    "script-src-elem",
    "style-src",
    "style-src-attr",
    "style-src-elem",
    "trusted-types",
    "upgrade-insecure-requests",
];

/// Sources that are meant only in single quotes.
const QUOTED: [&str; 8] = [
    "none",
    "report-sample",
    "self",
    "strict-dynamic",
    "unsafe-eval",
    "unsafe-hashes",
    "unsafe-inline",
    "wasm-unsafe-eval",
];

/// The part of a policy that browsers ignore, and the remedy.
fn policy_fault(policy: &str) -> Option<(String, String)> {
    for directive in policy.split(';').map(str::trim).filter(|text| !text.is_empty()) {
        let mut words = directive.split_ascii_whitespace();
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        if !DIRECTIVES.contains(&&*name) {
            let near = suggest::nearest(&name, DIRECTIVES.into_iter());
            let remedy = match near {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => "browsers ignore it: write for example \"default-src 'self'\"".to_owned(),
            };
            return Some((format!("\"{name}\" is no directive of a policy"), remedy));
        }
        let bare = words.filter(|_| name.ends_with("-src") || name.contains("src-"));
        if let Some(word) = bare.into_iter().find(|word| QUOTED.contains(word)) {
            let cause = format!("{word} in \"{name}\" is the name of a host without its quotes");
            return Some((cause, format!("write '{word}' in single quotes")));
        }
    }
    None
}

fn cors(
    level: &FieldSettings,
    names: Names,
    instance: Instance,
    settings: &Settings,
) -> Vec<Finding> {
    let at = |key| settings.location_in(names.cors, instance, key);
    let mut findings = Vec::new();
    let Some(cors) = &level.cors else {
        let keys = ["methods", "headers", "expose", "credentials", "max_age"];
        let given = |key: &&'static str| settings.differs(names.cors, instance, key);
        if let Some(key) = keys.into_iter().find(|key| given(key))
            && at("origins") == Location::Nowhere
        {
            let cause = format!("`{key}` has no effect without `origins`");
            let remedy = "write origins = [\"https://app.example.org\"]";
            findings.push(Finding::error(at(key), cause, remedy));
        }
        return findings;
    };
    if cors.is_for_all() && cors.origins.len() > 1 {
        let cause = "\"*\" lets in every origin: the others have no effect";
        findings.push(Finding::error(at("origins"), cause, "keep either of them"));
    }
    if cors.is_for_all() && cors.credentials {
        let cause = "`credentials` with every origin: browsers refuse that, as any page could act for its visitor";
        findings.push(Finding::error(at("credentials"), cause, "list the origins"));
    }
    findings
}

/// More rules than a request can meet.
fn too_many(site: &SiteSettings) -> Option<Finding> {
    let paths = site.paths.iter().flat_map(|path| {
        let groups =
            path.contents.iter().map(move |group| field_rules(site, Some(path), Some(group)));
        std::iter::once(field_rules(site, Some(path), None)).chain(groups)
    });
    let most = paths.chain([field_rules(site, None, None)]).map(|rules| rules.rules.len()).max();
    let most = most.filter(|most| *most > MOST_RULES)?;
    let cause = format!("{most} rules for fields meet one request: {MOST_RULES} are the most");
    Some(Finding::error(site.location.clone(), cause, "put rules of one condition together"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_a_policy_are_found() {
        for policy in [
            "default-src 'self'; img-src * data:",
            "upgrade-insecure-requests",
            "sandbox allow-scripts; frame-ancestors 'none';",
            "",
        ] {
            assert_eq!(policy_fault(policy), None, "{policy}");
        }
        let remedy = |policy| policy_fault(policy).map(|(_, remedy)| remedy).unwrap_or_default();
        assert_eq!(remedy("defualt-src 'self'"), "did you mean \"default-src\"?");
        assert_eq!(remedy("script-src self"), "write 'self' in single quotes");
        assert_eq!(
            remedy("style-src-elem 'self' unsafe-inline"),
            "write 'unsafe-inline' in single quotes"
        );
    }
}
