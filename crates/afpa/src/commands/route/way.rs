//! The way of a request through the router: its site, its path, and the request sets that were tried.

use afpa_http::target;
use afpa_router::{Explanation, Extension, HostMatch, MatchResult, Router, SiteId, Unmet};

use super::told::Told;
use super::url::Url;
use afpa_config::field_name;

impl Told<'_> {
    pub(super) fn site(&mut self, explanation: &Explanation<'_, '_>) {
        let Some((site, by)) = explanation.site else { return self.row("site", "none") };
        let by = match by {
            HostMatch::Exact(name) => format!("by the host {}", String::from_utf8_lossy(name)),
            HostMatch::Below(name) => format!("by the host *.{}", String::from_utf8_lossy(name)),
            HostMatch::Matching(expression) => format!("by the host {expression}"),
            HostMatch::Any => "which answers to any other host".to_owned(),
        };
        let SiteId(index) = site;
        let location = self.loaded.config.sites.get(index as usize).map(|site| &site.location);
        let origin = self.loaded.location_name(location);
        let name = self.routes.hierarchy.site_name(site);
        self.row("site", format!("{name}, {by}{origin}").trim_end());
    }

    pub(super) fn path(&mut self, url: &Url<'_>, path: &[u8], explanation: &Explanation<'_, '_>) {
        let shown = target::shown(path);
        if shown == url.path {
            self.row("path", &shown);
        } else {
            self.row("path", &format!("{shown}  (normalised from {})", url.path));
        }
        let extension = match explanation.extension {
            Extension::None => "none".to_owned(),
            Extension::Some(extension) => target::shown(extension),
        };
        self.row("extension", &extension);
    }

    pub(super) fn tried(&mut self, explanation: &Explanation<'_, '_>) {
        let mut name = "tried";
        for considered in &explanation.considered {
            let Some(set) = self.routes.router.set(considered.set) else { continue };
            let why = match considered.outcome {
                MatchResult::Reach => "does not reach that far".to_owned(),
                MatchResult::Content => "does not have the extension".to_owned(),
                MatchResult::Unmet(Unmet::Method) => "wants another method".to_owned(),
                MatchResult::Unmet(Unmet::Client) => "wants another client".to_owned(),
                MatchResult::Unmet(Unmet::Path) => "wants another path".to_owned(),
                MatchResult::Unmet(Unmet::Field(field)) => {
                    format!("{} is not as it wants it", field_name(field))
                }
                MatchResult::Taken => "this one".to_owned(),
            };
            let prefix = String::from_utf8_lossy(&set.prefix).into_owned();
            let location = self.routes.hierarchy.content_location(set.site, set.path, set.content);
            let origin = self.loaded.location_name(location);
            self.row(name, &format!("{prefix}  {}: {why}{origin}", set.behaviour.group));
            name = "";
        }
    }
}

/// The conditions that decide about a request, besides its host and the beginning and end of its path.
pub(super) fn conditions(router: &Router, explanation: &Explanation<'_, '_>) -> String {
    let looked_at = explanation.considered.iter().filter(|considered| {
        matches!(considered.outcome, MatchResult::Taken | MatchResult::Unmet(_))
    });
    let sets = looked_at.filter_map(|considered| router.set(considered.set));
    let mut all: Vec<String> = Vec::new();
    for conditions in sets.map(|set| &set.behaviour.conditions) {
        let fields = conditions.fields.iter().map(field_name);
        let others = [
            ("the method", !conditions.methods.is_empty()),
            ("the client", !conditions.clients.is_empty()),
            ("the form of the path", !conditions.paths.is_empty()),
        ];
        let others = others.iter().filter(|(_, is)| *is).map(|(name, _)| (*name).to_owned());
        for name in others.chain(fields) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    if all.is_empty() { "the method".to_owned() } else { all.join(", ") }
}
