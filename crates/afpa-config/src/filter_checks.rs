//! Checks of `[[site.filter]]`.

use crate::finding::{Finding, Location};
use crate::model::Config;
use crate::settings::Settings;

/// Filters that change nothing.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for site in &config.sites {
        let has_root = site.root.is_some() || site.paths.iter().any(|path| path.has_root());
        for filter in &site.filters {
            let written = |key| {
                settings.location_in("site.filter", filter.instance, key) != Location::Nowhere
            };
            let changed = ["includes", "charset", "headers"].into_iter().any(written);
            let (cause, remedy) = match (has_root, changed) {
                (false, _) => {
                    ("this site has no files that could be filtered", "set `root`, or remove it")
                }
                (true, false) => {
                    ("this filter changes nothing", "set `includes`, `charset` or `headers`")
                }
                (true, true) => continue,
            };
            findings.push(Finding::warning(filter.location.clone(), cause, remedy));
        }
    }
    findings
}
