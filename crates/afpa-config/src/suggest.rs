//! Unknown keys, and the setting that was probably meant.

use strsim::osa_distance as distance;

use crate::document::{Key, Table, Value};
use crate::finding::{Finding, Location};
use crate::foreign;
use crate::retired;
use crate::settings::{INTERNALS, Settings, heading};

/// A finding for every key of `document` that is neither a setting nor a section.
pub(crate) fn unknown_keys(document: &Table, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    visit(document, "", settings, &mut findings);
    findings
}

/// The candidate that differs from `word` the least, if it is near enough to be a slip.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let letters = word.chars().count();
    let tolerance = (letters / 4).max(1);
    // Another letter in a word of two makes another word.
    let fits = |candidate: &str| letters > 2 || candidate.starts_with(word);
    candidates
        .filter(|candidate| fits(candidate))
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= tolerance)
        .min()
        .map(|(_, candidate)| candidate)
}

fn visit(table: &Table, section: &str, settings: &Settings, findings: &mut Vec<Finding>) {
    for (key, node) in table {
        if settings.get(section, &key.name).is_some() {
            continue;
        }
        if let Some(finding) =
            retired::finding(section, &key.name, &Location::File(key.span.clone()))
        {
            findings.push(finding);
            continue;
        }
        let inner = match section {
            "" => key.name.clone(),
            _ => format!("{section}.{}", key.name),
        };
        match &node.value {
            _ if !sections(settings).any(|known| is_within(known, &inner)) => {
                findings.push(unknown(key, section, &node.value, settings));
            }
            Value::Table(table) => visit(table, &inner, settings, findings),
            Value::List(tables) => {
                for table in tables {
                    if let Value::Table(table) = &table.value {
                        visit(table, &inner, settings, findings);
                    }
                }
            }
            // A section's name with a plain value: reported when the section was read.
            _ => {}
        }
    }
}

fn unknown(key: &Key, section: &str, value: &Value, settings: &Settings) -> Finding {
    let location = Location::File(key.span.clone());
    let name = &key.name;
    if section.is_empty() && matches!(value, Value::Table(_)) {
        let described = || sections(settings).filter(|section| *section != INTERNALS);
        let remedy = match nearest(name, described()) {
            Some(near) => format!("did you mean {}?", heading(near)),
            None => format!("sections are {}", list(described().map(heading))),
        };
        return Finding::error(location, format!("unknown section [{name}]"), remedy);
    }
    let cause = format!("unknown setting `{name}` in {}", heading(section));
    Finding::error(location, cause, remedy(name, section, settings))
}

fn remedy(name: &str, section: &str, settings: &Settings) -> String {
    let elsewhere = settings.iter().find(|s| s.key == name && s.section != INTERNALS);
    let here = || settings.iter().filter(|s| s.section == section).map(|setting| setting.key);
    let inner = || sections(settings).filter_map(|known| child(known, section));
    if let Some(line) =
        foreign::remedy(name).filter(|_| section.is_empty() || section.starts_with("site"))
    {
        line.to_owned()
    } else if let Some(near) = nearest(name, here().chain(inner())) {
        format!("did you mean `{near}`?")
    } else if let Some(setting) = elsewhere {
        format!("`{name}` belongs to {}", heading(setting.section))
    } else {
        format!("settings here are {}", list(here().map(|key| format!("`{key}`"))))
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// The names of sections, once each: settings of one section stand together.
fn sections(settings: &Settings) -> impl Iterator<Item = &'static str> {
    let mut last = "";
    settings.iter().map(|setting| setting.section).filter(move |section| {
        let first = *section != last;
        last = section;
        first
    })
}

/// Whether `section` is `path` or a table inside it.
fn is_within(section: &str, path: &str) -> bool {
    section.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// `b` of the section `a.b` within `a`; sections stand within the top level.
fn child<'a>(known: &'a str, section: &str) -> Option<&'a str> {
    let inner = match section {
        "" => known,
        _ => known.strip_prefix(section)?.strip_prefix('.')?,
    };
    (!inner.contains('.')).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_slips() {
        assert_eq!(distance("listen", "listen"), 0);
        assert_eq!(distance("lisen", "listen"), 1);
        assert_eq!(distance("lsiten", "listen"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn only_near_words_are_suggested() {
        let words = || ["head", "body", "idle"].into_iter();
        assert_eq!(nearest("heda", words()), Some("head"));
        assert_eq!(nearest("bdoy", words()), Some("body"));
        assert_eq!(nearest("write", words()), None);
        assert_eq!(nearest("auth", ["path", "body"].into_iter()), None);
        assert_eq!(nearest("suffix", ["prefix"].into_iter()), None);
        assert_eq!(nearest("no", ["to"].into_iter()), None);
        assert_eq!(nearest("ap", ["app"].into_iter()), Some("app"));
        assert_eq!(
            nearest("redirct_staus", ["redirect_status"].into_iter()),
            Some("redirect_status")
        );
    }
}
