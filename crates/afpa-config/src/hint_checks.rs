//! Checks of `[[site.hint]]`.

use std::time::Duration;

use crate::finding::{Finding, Location};
use crate::hints::{Keep, RootHint, SiteHint};
use crate::model::Config;
use crate::settings::Settings;
use crate::site_settings::SiteSettings;

/// Hints that say nothing, or contradict each other.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &config.sites {
        for (index, hint) in site.hints.iter().enumerate() {
            findings.extend(one(settings, site, hint));
            let twin = site.hints.iter().take(index).find(|other| overlap(&other.hint, &hint.hint));
            if twin.is_some() {
                let cause =
                    format!("another hint of this site is for \"{}\", too", hint.hint.prefix);
                let remedy = "write one hint for both, or other extensions";
                findings.push(Finding::error(hint.location.clone(), cause, remedy));
            }
        }
    }
    findings
}

fn one(settings: &Settings, site: &SiteSettings, hint: &SiteHint) -> Option<Finding> {
    let at = |key| settings.location_in("site.hint", hint.instance, key);
    let RootHint { keep, weight, expiry, .. } = hint.hint;
    let (weighs, expires) = (weight != 1, expiry > Duration::ZERO);
    let warning = |location: Location, cause: &str, remedy: &str| {
        Some(Finding::warning(location, cause.to_owned(), remedy.to_owned()))
    };
    if site.root.is_none() && site.paths.iter().all(|path| !path.has_root()) {
        let cause = "nothing of this site is cached, so hints have no effect";
        return warning(hint.location.clone(), cause, "set `root`, or remove the hint");
    }
    if keep == Keep::Never && (weighs || expires) {
        let key = if weighs { "weight" } else { "expiry" };
        let cause = format!("`{key}` has no effect on what is never kept");
        return Some(Finding::error(at(key), cause, format!("remove `{key}`, or `keep`")));
    }
    if keep == Keep::Always && weighs {
        let cause = "`weight` has no effect on what is always kept";
        return warning(at("weight"), cause, "remove it");
    }
    let written =
        ["keep", "weight", "expiry", "priority"].iter().any(|key| at(key) != Location::Nowhere);
    if !written {
        let cause = "this hint says nothing";
        return warning(
            hint.location.clone(),
            cause,
            "set `keep`, `weight`, `expiry` or `priority`",
        );
    }
    None
}

/// Whether two hints are for the same files, and neither of them is the more precise one.
fn overlap(one: &RootHint, other: &RootHint) -> bool {
    one.prefix == other.prefix
        && one.extensions.is_empty() == other.extensions.is_empty()
        && (one.extensions.is_empty()
            || one.extensions.iter().any(|extension| other.extensions.contains(extension)))
}
