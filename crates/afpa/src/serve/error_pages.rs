//! The operator's own error pages: reads their files, and gives each request set the pages that it has.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use afpa_config::{Config, ErrorPage, SiteSettings, error_pages, read_error_page};
use afpa_http::media::MediaTypes;
use afpa_module_http::{
    ErrorPages, ErrorRule, ErrorTables, PageFile, PageServer, PageSource, ServerGroup, of_clients,
    reserved,
};
use afpa_router::{RequestSet, Router};
use anyhow::Context as _;

use super::serving::Serving;

/// Files that were read, by path and media type.
pub(super) type PageFiles = HashMap<(PathBuf, String), Arc<PageFile>>;

/// Reads the files of all pages.
///
/// # Errors
/// With the file that cannot be read.
pub(super) fn read(config: &Config) -> anyhow::Result<PageFiles> {
    let mut files = PageFiles::new();
    for site in &config.sites {
        let media = media(site);
        let paths = site.paths.iter();
        let contents = paths.flat_map(|path| path.contents.iter().flat_map(|group| &group.errors));
        let pages = site.errors.iter().chain(site.paths.iter().flat_map(|path| &path.errors));
        for (_, path) in pages.chain(contents).flat_map(ErrorPage::files) {
            let key = key(&media, &path);
            if files.contains_key(&key) {
                continue;
            }
            let content = read_error_page(&path)
                .with_context(|| format!("cannot read the error page {}", path.display()))?;
            let page = PageFile::new(path, key.1.clone(), content);
            files.insert(key, Arc::new(page));
        }
    }
    Ok(files)
}

fn media(site: &SiteSettings) -> MediaTypes {
    let mut media = MediaTypes::default();
    site.types.iter().for_each(|(extension, kind)| media.set(extension, kind));
    media
}

fn key(media: &MediaTypes, path: &std::path::Path) -> (PathBuf, String) {
    let kind = media.content_type(path.as_os_str().as_encoded_bytes()).into_owned();
    (path.to_owned(), kind)
}

/// The pages of each request set and site. Sites behind those of the configuration lead to TLS.
pub(super) fn tables(
    config: &Config,
    router: Option<&Router>,
    groups: &[ServerGroup],
    files: PageFiles,
) -> ErrorTables {
    let leading = config.sites.iter().filter(|site| site.https_only && !site.listen.is_empty());
    let all: Vec<&SiteSettings> = config.sites.iter().chain(leading).collect();
    let tables = Tables { config, groups, files: &files };
    let of_set = |set: &RequestSet| {
        let index = set.site.0 as usize;
        let site = all.get(index)?;
        let path = site.paths.get(set.path).filter(|_| index < config.sites.len());
        let content = path.and_then(|path| path.contents.get(set.content));
        tables.pages(site, error_pages(site, path, content))
    };
    let sets = router.map_or(&[][..], |router| router.sets()).iter().map(of_set).collect();
    let sites = all.iter().map(|site| tables.pages(site, error_pages(site, None, None)));
    let sites = sites.collect();
    ErrorTables { sets, sites, files: files.into_values().collect() }
}

struct Tables<'c> {
    config: &'c Config,
    groups: &'c [ServerGroup],
    files: &'c PageFiles,
}

impl Tables<'_> {
    fn pages(
        &self,
        site: &SiteSettings,
        pages: Vec<(&ErrorPage, (u16, u16))>,
    ) -> Option<Arc<ErrorPages>> {
        if pages.is_empty() {
            return None;
        }
        let media = media(site);
        let mut rules = Vec::new();
        for (page, range) in &pages {
            let answer = page.answer.map(|answer| answer.0);
            if page.file.is_some() {
                for (statuses, path) in files_within(page, *range) {
                    if let Some(file) = self.files.get(&key(&media, &path)) {
                        let page = PageSource::File(Arc::clone(file));
                        rules.push(ErrorRule { statuses, page, answer });
                    }
                }
                continue;
            }
            let page = match &page.to {
                Some(to) => match self.server(to, &page.path) {
                    Some(server) => PageSource::Server(Arc::new(server)),
                    None => continue,
                },
                None => PageSource::BuiltIn,
            };
            rules.push(ErrorRule { statuses: *range, page, answer });
        }
        let forwarded_from = site.forwarded_from.as_slice().into();
        let (replaces, reserved) = (replaces(&pages), reserved(site.copied_fields()));
        let of_consents = of_clients(site.copied_fields());
        Some(Arc::new(ErrorPages { rules, replaces, forwarded_from, reserved, of_consents }))
    }

    /// The checks report a group that does not exist.
    fn server(&self, to: &str, path: &str) -> Option<PageServer> {
        let known = self.config.groups.iter().position(|group| group.settings.name == to)?;
        let ServerGroup { group, settings } = self.groups.get(known)?;
        let (group, settings) = (Arc::clone(group), Arc::clone(settings));
        Some(PageServer { group, settings, path: path.to_owned() })
    }
}

/// The files of a page for statuses of this range.
fn files_within(page: &ErrorPage, range: (u16, u16)) -> Vec<((u16, u16), PathBuf)> {
    let within = |own: &((u16, u16), PathBuf)| range.0 <= own.0.0 && own.0.1 <= range.1;
    page.files().into_iter().filter(within).collect()
}

/// The statuses for which the first page that has them says `intercept`. Of a class with a file for each status, a page
/// has those whose file is there.
pub(super) fn replaces(pages: &[(&ErrorPage, (u16, u16))]) -> Option<Arc<[(u16, u16)]>> {
    let statuses = |page: &ErrorPage, range: (u16, u16)| match page.file {
        Some(_) => files_within(page, range).into_iter().map(|(own, _)| own).collect(),
        None => vec![range],
    };
    let all: Vec<(bool, Vec<(u16, u16)>)> =
        pages.iter().map(|(page, range)| (page.intercept, statuses(page, *range))).collect();
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for code in 400..=599 {
        let has = |(first, last): &(u16, u16)| *first <= code && code <= *last;
        let page = all.iter().find(|(_, statuses)| statuses.iter().any(has));
        if page.is_some_and(|(intercept, _)| *intercept) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == code => *last = code,
                _ => ranges.push((code, code)),
            }
        }
    }
    (!ranges.is_empty()).then(|| ranges.into())
}

impl Serving {
    /// Reads the files of error pages again. A page whose file cannot be read stays as it is.
    pub(super) fn reread_error_pages(&self) {
        for file in &self.global.errors.files {
            if let Err(error) = file.reread(read_error_page) {
                let path = file.path.display();
                tracing::warn!(%path, %error, "an error page cannot be read again: it stays as it is");
            }
        }
    }
}
