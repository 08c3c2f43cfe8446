//! Checks of `[[police.class]]`.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;

use afpa_police::{Class, Classes};

use crate::finding::{Finding, Location};
use crate::model::Config;
use crate::police_classes::PoliceClass;
use crate::settings::Settings;
use crate::units::Listen;

/// The kernel's table has room for twice as many.
const MOST_PREFIXES: usize = 4096;
/// Every class may have its listeners, and `[::]` counts twice.
const MOST_LISTENERS: usize = 256;

/// Findings about classes: shares of a rate without a limit, shares of more than 100 per cent together, classes without
/// clients, and names or clients that two classes have.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let classes = &config.police.classes;
    let Some(first) = classes.first() else { return Vec::new() };
    let mut findings = Vec::new();
    let error = |location: &Location, cause: String, remedy: String| {
        Finding::error(location.clone(), cause, remedy)
    };
    if !config.police.settings.limits.connections.limits() {
        let cause = "a share is one of `connections_per_second`, which has no limit".to_owned();
        let remedy = "set it under [police] to what this machine can take".to_owned();
        findings.push(error(&first.location, cause, remedy));
    }
    if let Some(one_more) = classes.get(Classes::MOST) {
        let cause = format!("there are more than {} classes", Classes::MOST);
        findings.push(error(&one_more.location, cause, "join some of them".to_owned()));
    }
    let sum: u32 = classes.iter().map(|class| u32::from(class.class.share)).sum();
    if sum > 100 {
        let last = classes.last().unwrap_or(first);
        let at = settings.location_in("police.class", last.instance, "share");
        let cause = format!("the shares of all classes are {sum} per cent");
        findings.push(error(&at, cause, "lower them to 100 together, or less".to_owned()));
    }
    for class in classes.iter().filter(|class| class.class.name.is_empty()) {
        if settings.location_in("police.class", class.instance, "name") == Location::Nowhere {
            let cause = "a class without a `name`".to_owned();
            findings.push(error(&class.location, cause, "write name = \"partners\"".to_owned()));
        }
    }
    for class in classes.iter().filter(|class| is_nobody(&class.class)) {
        let cause = format!("nobody is in the class \"{}\"", class.class.name);
        let remedy = "set `prefixes` or `listeners`, or remove it".to_owned();
        findings.push(error(&class.location, cause, remedy));
    }
    findings.extend(listeners_of_nobody(config, settings));
    findings.extend(in_two(classes, settings, "name", |class| vec![class.name.clone()]));
    findings.extend(in_two(classes, settings, "prefixes", |class| class.prefixes.clone()));
    findings.extend(in_two(classes, settings, "listeners", |class| class.listeners.clone()));
    let count = |of: fn(&Class) -> usize| classes.iter().map(|class| of(&class.class)).sum();
    let counts: [(usize, usize, &str); 2] = [
        (count(|class| class.prefixes.len()), MOST_PREFIXES, "prefixes"),
        (count(|class| class.listeners.len()), MOST_LISTENERS, "listeners"),
    ];
    for (count, most, what) in counts.into_iter().filter(|(count, most, _)| count > most) {
        let cause = format!("classes have {count} {what}, and there is room for {most}");
        findings.push(error(&first.location, cause, "name fewer".to_owned()));
    }
    findings
}

fn is_nobody(class: &Class) -> bool {
    class.prefixes.is_empty() && class.listeners.is_empty()
}

fn listeners_of_nobody(config: &Config, settings: &Settings) -> Vec<Finding> {
    let bound: HashSet<&Listen> =
        config.sites.iter().flat_map(|site| site.addresses()).map(|(listen, _)| listen).collect();
    let mut findings = Vec::new();
    for PoliceClass { class, instance, .. } in &config.police.classes {
        for listener in &class.listeners {
            if !bound.contains(&Listen::Tcp(*listener)) {
                let at = settings.location_in("police.class", *instance, "listeners");
                let cause = format!("no site listens on {listener}");
                let remedy = "write an address as it stands in `listen` or `tls` of a [[site]]";
                findings.push(Finding::error(at, cause, remedy));
            }
        }
    }
    findings
}

/// Errors for values that two classes have, where only one class may have them.
fn in_two<T: Eq + Hash + Display>(
    classes: &[PoliceClass],
    settings: &Settings,
    key: &'static str,
    of: fn(&Class) -> Vec<T>,
) -> Vec<Finding> {
    let mut seen = HashSet::new();
    let mut findings = Vec::new();
    for PoliceClass { class, instance, .. } in classes {
        for one in of(class) {
            let text = one.to_string();
            if !text.is_empty() && !seen.insert(one) {
                let at = settings.location_in("police.class", *instance, key);
                let cause = format!("`{key}` has {text}, which a class has already");
                findings.push(Finding::error(at, cause, "remove one of the two"));
            }
        }
    }
    findings
}
