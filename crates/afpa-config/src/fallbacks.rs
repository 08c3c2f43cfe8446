//! Checks each `fallback`: that it has an effect, and names something.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::fallback::Fallback;
use crate::finding::{Finding, Location};
use crate::model::Config;
use crate::settings::{Instance, Settings};
use crate::site_settings::{Behaviour, SiteSettings, UrlPath};

/// Fallbacks without effect, and servers that are the site itself; looks at nothing else.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &config.sites {
        if site.fallback.is_some() && site.root.is_none() {
            let location = settings.location_in("site", site.instance, "fallback");
            let cause = "`fallback` has no effect without `root`";
            findings.push(Finding::error(location, cause, "write `root`, or `to` alone"));
        }
        let useless = site.paths.iter().flat_map(without_effect);
        findings.extend(useless.map(|(section, instance)| {
            let location = settings.location_in(section, instance, "fallback");
            let cause = "`fallback` has no effect: no file is looked for";
            Finding::error(location, cause, "remove it, or write `root` instead")
        }));
        for place in places(site) {
            if let Fallback::To(to) = place.fallback
                && let Some(address) = own_address(config, site, to)
            {
                let cause = format!("{address} is an address of this site: it would ask itself");
                let remedy = "name the server of the application";
                findings.push(Finding::error(place.location(settings), cause, remedy));
            }
        }
    }
    findings
}

/// The sections of a path whose `fallback` applies to no directory.
fn without_effect(path: &UrlPath) -> impl Iterator<Item = (&'static str, Instance)> {
    let acts = |behaviour: &Behaviour| behaviour.fallback.is_some() && behaviour.acts();
    // Content groups that say nothing else inherit it.
    let inherited = path.contents.iter().any(|content| !content.behaviour.acts());
    let own = acts(&path.behaviour) && !inherited;
    let own = own.then_some(("site.path", path.instance));
    let contents = path.contents.iter().filter(move |content| acts(&content.behaviour));
    let contents = contents.map(|content| ("site.path.content", content.instance));
    own.into_iter().chain(contents)
}

/// An address of the site that is one of the servers of a group.
fn own_address(config: &Config, site: &SiteSettings, to: &str) -> Option<String> {
    let group = config.groups.iter().find(|group| group.settings.name == to)?;
    let mut addresses = site.addresses().map(|(listen, _)| listen.to_string());
    addresses.find(|own| group.settings.servers.iter().any(|server| server.to.to_string() == *own))
}

/// Whether the files exist.
pub(crate) fn feasibility(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &config.sites {
        for place in places(site) {
            let Fallback::File(file) = place.fallback else { continue };
            if let Some((cause, remedy)) = fault(site, place.root, file) {
                let finding = Finding::error(place.location(settings), cause, remedy);
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
    }
    findings
}

/// Why a file below a root cannot be a fallback, and the remedy.
fn fault(site: &SiteSettings, root: &Path, file: &str) -> Option<(String, &'static str)> {
    let hidden = |name: &str| name.starts_with('.') && name != ".well-known";
    if !site.dotfiles && file.split('/').any(hidden) {
        let cause = format!("{file} is hidden: a name in it begins with a dot");
        return Some((cause, "give it another name"));
    }
    // A directory that is not there is reported by itself.
    let real_root = root.canonicalize().ok()?;
    let path = root.join(file.trim_start_matches('/'));
    let shown = path.display();
    match fs::metadata(&path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied) => None,
        Err(_) => Some((
            format!("file {shown} does not exist"),
            "create it, or write the path of a file from `root` on: \"/index.html\"",
        )),
        Ok(found) if !found.is_file() => {
            Some((format!("{shown} is not a file"), "write \"/index.html\", or a server group"))
        }
        Ok(_) if !path.canonicalize().is_ok_and(|real| real.starts_with(real_root)) => {
            let cause = format!("{shown} leads out of {}", root.display());
            Some((cause, "copy the file to a place below `root`"))
        }
        Ok(_) => None,
    }
}

/// A directory with its fallback, and the section that has it.
struct PlaceOf<'c> {
    section: (&'static str, Instance),
    root: &'c Path,
    fallback: &'c Fallback,
}

impl PlaceOf<'_> {
    fn location(&self, settings: &Settings) -> Location {
        settings.location_in(self.section.0, self.section.1, "fallback")
    }
}

/// Every directory of a site that has a fallback.
fn places<'c>(site: &'c SiteSettings) -> Vec<PlaceOf<'c>> {
    let mut places = Vec::new();
    let mut enter = |section, root: Option<&'c PathBuf>, fallback| {
        if let (Some(root), Some(fallback)) = (root, fallback) {
            places.push(PlaceOf { section, root, fallback });
        }
    };
    enter(("site", site.instance), site.root.as_ref(), site.fallback.as_ref());
    for path in &site.paths {
        let UrlPath { behaviour, contents, .. } = path;
        let own = (("site.path", path.instance), behaviour.fallback.as_ref());
        let root = behaviour.root.as_ref().or(site.root.as_ref());
        if contents.is_empty() {
            enter(own.0, root, own.1);
        }
        for content in contents.iter().filter(|content| !content.behaviour.acts()) {
            let root = content.behaviour.root.as_ref().or(root);
            let (section, fallback) = match &content.behaviour.fallback {
                Some(fallback) => (("site.path.content", content.instance), Some(fallback)),
                None => own,
            };
            enter(section, root, fallback);
        }
    }
    places
}
