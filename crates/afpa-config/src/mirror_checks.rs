//! The places of `mirror`, and whether each share is one of something.

use crate::finding::Finding;
use crate::mirror::{Mirror, SHARE};
use crate::model::Config;
use crate::settings::{Section, Settings};
use crate::site_settings::SiteSettings;

/// Every section that can have requests mirrored.
pub(crate) fn places(config: &Config) -> impl Iterator<Item = (Section, Option<&Mirror>)> {
    let sites = config.sites.iter();
    sites.flat_map(|site| site.sections(site.mirror.as_ref(), |place| place.mirror.as_ref()))
}

impl SiteSettings {
    /// The mirror of a content group of a path, by their numbers in the router's table; `None`: there is none.
    pub fn mirror_of(&self, path: usize, content: usize) -> Option<(&str, u32)> {
        let own = self.of_place((path, content), |place| place.mirror.as_ref());
        match own.or(self.mirror.as_ref())? {
            Mirror::Off => None,
            Mirror::To { to, share } => Some((to, *share)),
        }
    }
}

impl Config {
    /// Whether anything is mirrored.
    pub fn mirrors(&self) -> bool {
        places(self).any(|(_, mirror)| mirror.is_some_and(|mirror| mirror.to().is_some()))
    }
}

/// A share of nothing; looks at nothing else.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let shares = places(config).filter(|((section, instance), mirror)| {
        let is_one = mirror.is_some_and(|mirror| mirror.to().is_some());
        !is_one && settings.differs(section, *instance, SHARE)
    });
    let findings = shares.map(|((section, instance), _)| {
        let cause = format!("`{SHARE}` has no effect without `mirror`");
        let remedy = "write `mirror` in the same section, or remove it";
        Finding::error(settings.location_in(section, instance, SHARE), cause, remedy)
    });
    findings.collect()
}
