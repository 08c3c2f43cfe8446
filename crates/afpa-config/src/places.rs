//! The places of a site: its paths, and within each its content groups.

use crate::errors::ErrorPage;
use crate::headers::FieldSettings;
use crate::settings::Section;
use crate::shared_cache::CacheMode;
use crate::site_settings::{Behaviour, SiteSettings, UrlPath};

/// A path, or a content group of one.
pub(crate) struct Place<'c> {
    pub(crate) section: Section,
    pub(crate) behaviour: &'c Behaviour,
    pub(crate) fields: &'c FieldSettings,
    pub(crate) errors: &'c [ErrorPage],
}

impl UrlPath {
    /// The path, then its content groups.
    fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let UrlPath { behaviour, fields, errors, .. } = self;
        let own = Place { section: ("site.path", self.instance), behaviour, fields, errors };
        let contents = self.contents.iter().map(|content| Place {
            section: ("site.path.content", content.instance),
            behaviour: &content.behaviour,
            fields: &content.fields,
            errors: &content.errors,
        });
        std::iter::once(own).chain(contents)
    }
}

impl SiteSettings {
    /// Every place, in the order of the file.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        self.paths.iter().flat_map(UrlPath::places)
    }

    /// The setting of a content group of a path, or else of the path, by their numbers in the router's table.
    pub(crate) fn of_place<'c, T>(
        &'c self,
        (path, content): (usize, usize),
        of: impl Fn(&'c Behaviour) -> Option<T>,
    ) -> Option<T> {
        let path = self.paths.get(path)?;
        let content = path.contents.get(content).and_then(|content| of(&content.behaviour));
        content.or_else(|| of(&path.behaviour))
    }

    /// Which answers of servers are kept in a content group of a path, by their numbers in the router's table.
    pub fn cache_mode(&self, path: usize, content: usize) -> CacheMode {
        self.of_place((path, content), |place| place.cache).unwrap_or(self.cache.mode)
    }

    /// Whether answers of servers to requests of a content group of a path are compressed.
    pub fn compresses(&self, path: usize, content: usize) -> bool {
        self.of_place((path, content), |place| place.compress).unwrap_or(self.compress)
    }

    /// The section of the site, and those of its places, each with what `own` and `of` say.
    pub(crate) fn sections<'c, T>(
        &'c self,
        own: T,
        of: impl Fn(&'c Behaviour) -> T + 'c,
    ) -> impl Iterator<Item = (Section, T)> {
        let places = self.places().map(move |place| (place.section, of(place.behaviour)));
        std::iter::once((("site", self.instance), own)).chain(places)
    }
}
