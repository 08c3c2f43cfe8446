//! Which error pages a request meets, and checks of `[[site.errors]]`: that each says one thing, and that its files are
//! there.

use std::io;
use std::path::Path;

use crate::errors::{ErrorPage, read_error_page};
use crate::finding::Finding;
use crate::model::Config;
use crate::settings::Settings;
use crate::site_settings::{ContentGroup, SiteSettings, UrlPath};

/// The error pages for the requests of a content group. The group's own come first, as they count most, then those of its path,
/// then those of the site.
pub fn error_pages<'c>(
    site: &'c SiteSettings,
    path: Option<&'c UrlPath>,
    content: Option<&'c ContentGroup>,
) -> Vec<(&'c ErrorPage, (u16, u16))> {
    let levels =
        [content.map(|content| &content.errors), path.map(|path| &path.errors), Some(&site.errors)];
    let mut pages = Vec::new();
    for level in levels.into_iter().flatten() {
        let of_page =
            |page: &'c ErrorPage| page.ranges().into_iter().map(move |range| (page, range));
        let mut own: Vec<_> = level.iter().flat_map(of_page).collect();
        own.sort_by_key(|(_, (first, last))| last - first);
        pages.extend(own);
    }
    pages
}

/// Every page of a site.
pub(crate) fn all(site: &SiteSettings) -> impl Iterator<Item = &ErrorPage> {
    site.errors.iter().chain(site.places().flat_map(|place| place.errors))
}

/// Pages that contradict themselves; looks at nothing else.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in config.sites.iter().flat_map(all) {
        let at = |key| settings.location_in(page.section, page.instance, key);
        if page.file.is_some() && page.to.is_some() {
            let cause = "a page comes from a `file` or from a server (`to`), not from both";
            findings.push(Finding::error(at("to"), cause, "remove one of the two"));
        }
        if page.to.is_none() && settings.differs(page.section, page.instance, "path") {
            let cause = "`path` has no effect without `to`";
            findings.push(Finding::error(at("path"), cause, "write `to`, or `file` instead"));
        }
    }
    findings
}

/// Whether the files can be read.
pub(crate) fn feasibility(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in config.sites.iter().flat_map(all) {
        let Some(file) = &page.file else { continue };
        let files = page.files();
        let at = settings.location_in(page.section, page.instance, "file");
        if files.is_empty() {
            let cause = format!("no file {} exists for any of these statuses", file.display());
            let remedy = "create one, for example for 404, or write a name without {status}";
            findings.push(Finding::error(at.clone(), cause, remedy));
        }
        let mut told: Vec<&Path> = Vec::new();
        for (_, path) in &files {
            let Err(error) = read_error_page(path) else { continue };
            if told.contains(&path.as_path()) {
                continue;
            }
            told.push(path);
            let cause = format!("cannot read the error page {}: {error}", path.display());
            findings.push(Finding::error(at.clone(), cause, remedy(&error)));
        }
    }
    findings
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "create the file; a path that does not begin with / is relative to this file's folder"
        }
        io::ErrorKind::PermissionDenied => "give the user that AFPA runs as the right to read it",
        _ => "name a file of at most 64KiB",
    }
}
