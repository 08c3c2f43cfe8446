//! `[[site.hint]]`: hints about some files, for the cache (JAWS's *hinted* caching).

use std::time::Duration;

use crate::choice::choice;
use crate::finding::{Finding, Location};
use crate::items::Item;
use crate::model::{Config, SiteSettings};
use crate::reader::Reader;
use crate::rules;
use crate::settings::{Instance, Settings};

choice! {
    /// Whether an object stays in the cache.
    Keep {
        /// As long as the policy finds room for it.
        Auto = "auto",
        /// It is not ejected.
        Always = "always",
        /// It is served and not kept.
        Never = "never",
    }
}

choice! {
    /// Which long responses go first when a worker is behind.
    Priority {
        /// Before all others.
        High = "high",
        /// By the bytes that are left.
        Normal = "normal",
        /// After all others.
        Low = "low",
    }
}

/// A `[[site.hint]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteHint {
    /// The hint, and the URL paths that it is about.
    pub hint: RootHint,
    /// Which `[[site.hint]]`.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

/// A hint about some files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RootHint {
    /// The prefix of their paths.
    pub prefix: String,
    /// Extensions in lower case, `none` among them; empty: all.
    pub extensions: Vec<String>,
    /// Whether the objects stay.
    pub keep: Keep,
    /// How often the policy has to choose one before it goes.
    pub weight: usize,
    /// Age at which an object is made anew; zero: none.
    pub expiry: Duration,
    /// Among the long responses of a worker that is behind.
    pub priority: Priority,
}

impl SiteHint {
    /// Reads one `[[site.hint]]`.
    pub(crate) fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let mut s = reader.at(item);
        let day = Duration::from_secs(24 * 3600);
        let hint = RootHint {
            prefix: s.text("prefix", "URL path prefix", "/".to_owned(), rules::prefix),
            extensions: s.texts("extensions", "extensions", Vec::new(), rules::file_extension),
            keep: s.choice("keep", Keep::Auto),
            weight: s.count("weight", 1, 0..=16),
            expiry: s.duration("expiry", Duration::ZERO, Duration::ZERO..=day),
            priority: s.choice("priority", Priority::Normal),
        };
        SiteHint { hint, instance: item.instance, location: item.location.clone() }
    }

    /// The hint for the directory that stands for `mount`; `None` if it is for other paths.
    pub(crate) fn below(&self, mount: &str) -> Option<RootHint> {
        let prefix = below(&self.hint.prefix, mount)?.to_owned();
        Some(RootHint { prefix, ..self.hint.clone() })
    }
}

/// The part of `prefix` below a directory that stands for `mount`; `None` if the two do not meet.
pub(crate) fn below<'p>(prefix: &'p str, mount: &str) -> Option<&'p str> {
    match prefix.strip_prefix(mount) {
        Some("") => Some("/"),
        Some(rest) => Some(rest),
        None => mount.starts_with(prefix).then_some("/"),
    }
}

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
