//! The conflicts of the router's table, in the words of the configuration.

use afpa_router::{Action, Conflict, Misuse};

use super::Checks;
use crate::finding::{Finding, Location};
use crate::hierarchy::Hierarchy;
use crate::site_settings::SiteSettings;
use crate::units::Listen;

impl Checks<'_> {
    pub(super) fn conflict(&self, hierarchy: &Hierarchy, conflict: Conflict) -> Finding {
        let path_location = |site: usize, path: usize| {
            let origin = hierarchy.origins.get(site).and_then(|site| site.get(path));
            origin.map_or(Location::Nowhere, |origin| origin.path.clone())
        };
        let content_location = |site: usize, path: usize, content: usize| {
            let origin = hierarchy.origins.get(site).and_then(|site| site.get(path));
            let location = origin.and_then(|origin| origin.contents.get(content));
            location.cloned().unwrap_or(Location::Nowhere)
        };
        let (location, cause, remedy) = match conflict {
            Conflict::Host { first, second, host } => {
                return self.host_conflict(first, second, host);
            }
            Conflict::Path { site, second, .. } => (
                path_location(site, second),
                "this path is in its site twice".to_owned(),
                "put its content groups under the first one".to_owned(),
            ),
            Conflict::Prefix { site, path } => (
                path_location(site, path),
                "no normalised path begins with this prefix".to_owned(),
                "write it as a normalised path: \"/a/b/\"".to_owned(),
            ),
            Conflict::Extension { site, path, second, what, .. } => {
                let shown = match what.contains(' ') {
                    true => what,
                    false => format!("the extension \"{what}\""),
                };
                (
                    content_location(site, path, second),
                    format!("{shown} is in two content groups of the same path"),
                    "remove it from one of them, or give one a condition (`if_...`)".to_owned(),
                )
            }
            Conflict::BadExtension { site, path, content, extension } => (
                content_location(site, path, content),
                format!("\"{extension}\" is not an extension"),
                "write the part after the last dot".to_owned(),
            ),
            Conflict::Rewrite { site, path, content } => (
                content_location(site, path, content),
                "the rewritten path would not begin with a slash".to_owned(),
                "end prefix and `rewrite` with a slash, or neither".to_owned(),
            ),
            Conflict::Target { site, path, content } => (
                content_location(site, path, content),
                "`rewrite` gives no target of a request".to_owned(),
                "begin with a slash, escape what URLs do not have, and write no `.` or `..` between slashes".to_owned(),
            ),
            Conflict::Loop { site, path, content } => (
                content_location(site, path, content),
                "`rewrite` leads back to itself: such requests would be rewritten again and again".to_owned(),
                "lead to another path, or write `if_path` with a pattern that the new path does not fit".to_owned(),
            ),
            Conflict::Variable { site, path, content, variable, why } => {
                let entry = hierarchy.table.sites.get(site).and_then(|site| site.paths.get(path));
                let behaviour = entry.and_then(|entry| entry.contents.get(content));
                let is_redirect = behaviour
                    .is_some_and(|content| matches!(content.action, Action::Redirect(_)));
                let (cause, remedy) = misuse(&variable, why, is_redirect);
                (content_location(site, path, content), cause, remedy)
            }
            Conflict::TooManyConditions { site, path } => (
                path_location(site, path),
                format!(
                    "more than {} content groups with conditions",
                    afpa_router::MAX_CONDITIONAL
                ),
                "they are tried one by one for each request: use several paths".to_owned(),
            ),
        };
        Finding::error(location, cause, remedy)
    }

    fn host_conflict(&self, first: usize, second: usize, host: Option<String>) -> Finding {
        let (Some(first), Some(second)) =
            (self.config.sites.get(first), self.config.sites.get(second))
        else {
            return Finding::error(Location::Nowhere, "two sites have one host", "");
        };
        let has = |site: &SiteSettings, wanted: &Listen| {
            site.addresses().any(|(listen, _)| listen == wanted)
        };
        let shared = second.addresses().map(|(listen, _)| listen).find(|listen| has(first, listen));
        let address = shared.map(ToString::to_string).unwrap_or_default();
        let line =
            |site: &SiteSettings| (site.instance.first().copied().unwrap_or(0) + 1).to_string();
        let (one, two) = (line(first), line(second));
        let key = if host.is_some() { "hosts" } else { "listen" };
        let location = |site: &SiteSettings| match self.location("site", site.instance, key) {
            Location::Nowhere => site.location.clone(),
            location => location,
        };
        let (cause, remedy) = match host {
            Some(host) => (
                format!("the host \"{host}\" on {address} belongs to site {one} already"),
                "remove it from one of the two sites".to_owned(),
            ),
            None => (
                format!(
                    "the address {address} is in use by site {one}, which answers to any host too"
                ),
                format!("give site {one} or {two} its `hosts`, or another address"),
            ),
        };
        Finding::error(location(second), cause, remedy).against(location(first))
    }
}

/// A variable that cannot be used, and the remedy.
fn misuse(variable: &str, why: Misuse, is_redirect: bool) -> (String, String) {
    let setting = if is_redirect { "redirect" } else { "rewrite" };
    match why {
        Misuse::Unknown => (
            format!("`{setting}` has {variable}, which stands for nothing"),
            match is_redirect {
                true => "there are {host}, {path}, {rest}, {query} and the groups of `if_path`",
                false => "there are {path}, {rest}, {query} and the groups of `if_path`",
            }
            .to_owned(),
        ),
        Misuse::NoGroup => (
            format!("`{setting}` has {variable}, which is no group of each pattern of `if_path`"),
            "write if_path = ['~^/u/(.*)$'] for {1}, or '~^/u/(?<name>.*)$' for {name}".to_owned(),
        ),
        Misuse::TwoMeanings => (
            format!("`{setting}` has {variable}, and a group has this name too"),
            "give the group another name".to_owned(),
        ),
        Misuse::Host => (
            format!(
                "`{setting}` has {variable} behind the name of a host, so that a client could choose another one"
            ),
            match variable {
                "{rest}" => {
                    "write \"https://example.org/{rest}\", and end `prefix` with a slash".to_owned()
                }
                other => format!("write \"https://example.org/{other}\""),
            },
        ),
    }
}
