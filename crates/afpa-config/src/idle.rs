//! Settings that no request meets.

use afpa_router::{Action, Content, Fallback};

use crate::finding::Finding;
use crate::hierarchy::Hierarchy;
use crate::model::Config;
use crate::settings::{Section, Settings};
use crate::site_settings::{Behaviour, UrlPath};

/// The settings about servers that a place may have.
const ABOUT_SERVERS: [&str; 8] = [
    "compress",
    "largest_content",
    "connect",
    "first_byte",
    "idle",
    "total",
    "tunnel_idle",
    "mirror",
];

/// Warns of settings about servers where no server is asked, and of patterns that no path fits.
pub(crate) fn warnings(
    config: &Config,
    settings: &Settings,
    hierarchy: &Hierarchy,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (site, entry) in config.sites.iter().zip(&hierarchy.table.sites) {
        let all = entry.paths.iter().flat_map(|path| &path.contents);
        found.extend(without_server(settings, ("site", site.instance), all));
        for (path, entry) in site.paths.iter().zip(&entry.paths) {
            let own = ("site.path", path.instance);
            found.extend(without_server(settings, own, &entry.contents));
            found.extend(unfit(settings, own, path, &path.behaviour));
            for (content, compiled) in path.contents.iter().zip(&entry.contents) {
                let own = ("site.path.content", content.instance);
                found.extend(without_server(settings, own, [compiled]));
                found.extend(unfit(settings, own, path, &content.behaviour));
            }
        }
    }
    found
}

/// The settings of a section that are about servers, if none of its places asks one.
fn without_server<'c>(
    settings: &Settings,
    (section, instance): Section,
    places: impl IntoIterator<Item = &'c Content>,
) -> impl Iterator<Item = Finding> {
    let asks = places.into_iter().any(|content| match &content.action {
        Action::Distributed { .. } => true,
        Action::Cached { fallback, scripts, .. } => {
            scripts.is_some() || matches!(fallback, Some(Fallback::Distributed { .. }))
        }
        _ => false,
    });
    let said = ABOUT_SERVERS
        .into_iter()
        .filter(move |key| !asks && settings.differs(section, instance, key));
    said.map(move |key| {
        let cause = format!("`{key}` has no effect: no server is asked here");
        Finding::warning(settings.location_in(section, instance, key), cause, "remove it")
    })
}

/// An `if_path` of a section that no path of its prefix fits.
fn unfit(
    settings: &Settings,
    (section, instance): Section,
    path: &UrlPath,
    behaviour: &Behaviour,
) -> Option<Finding> {
    let patterns = &behaviour.if_path;
    if patterns.is_empty() || patterns.iter().any(|pattern| may_fit(pattern, path)) {
        return None;
    }
    let cause = format!("no path that begins with \"{}\" fits this", path.prefix);
    let remedy = "patterns are for whole paths: begin with the prefix";
    let location = settings.location_in(section, instance, "if_path");
    Some(Finding::warning(location, cause, remedy))
}

/// Whether a path of this section may fit a pattern, as far as the beginning of the pattern tells.
fn may_fit(pattern: &str, path: &UrlPath) -> bool {
    let prefix = path.prefix.as_str();
    let meets = |begin: &str| match path.exact {
        true => prefix.starts_with(begin),
        false => prefix.starts_with(begin) || begin.starts_with(prefix),
    };
    match (pattern.strip_prefix('~'), pattern.strip_suffix('*')) {
        (Some(expression), _) => meets(begin_of(expression)),
        (None, _) if pattern.starts_with('*') => true,
        (None, Some(begin)) => meets(begin),
        (None, None) if path.exact => pattern == prefix,
        (None, None) => pattern.starts_with(prefix),
    }
}

/// The text that all begins with that an expression finds, as far as that is plain.
fn begin_of(expression: &str) -> &str {
    let Some(rest) = expression.strip_prefix('^').filter(|rest| !rest.contains('|')) else {
        return "";
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/-_~".contains(letter);
    let end = rest.find(|letter| !is_plain(letter)).unwrap_or(rest.len());
    let (plain, behind) = rest.split_at(end);
    match behind.starts_with(['?', '*', '{']) {
        // The last letter may not be there.
        true => plain.get(..end.saturating_sub(1)).unwrap_or_default(),
        false => plain,
    }
}
