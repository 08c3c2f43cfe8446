//! The places of `forward_auth`, and whether each says which path of which server is asked for.

use crate::finding::Finding;
use crate::forward_auth::ForwardAuth;
use crate::model::Config;
use crate::settings::{Section, Settings};
use crate::site_settings::SiteSettings;

/// Every section that can have a server asked.
pub(crate) fn places(config: &Config) -> impl Iterator<Item = (Section, Option<&ForwardAuth>)> {
    config.sites.iter().flat_map(of_site)
}

fn of_site(site: &SiteSettings) -> impl Iterator<Item = (Section, Option<&ForwardAuth>)> {
    site.sections(site.forward_auth.as_ref(), |behaviour| behaviour.forward_auth.as_ref())
}

impl SiteSettings {
    /// The fields that servers get from answers of servers that are asked in some place of the site.
    pub fn copied_fields(&self) -> impl Iterator<Item = &str> {
        of_site(self).flat_map(|(_, auth)| match auth {
            Some(ForwardAuth::Server { copy, .. }) => copy.iter().map(String::as_str),
            _ => [].iter().map(String::as_str),
        })
    }
}

/// Servers without a path, and settings without a server; looks at nothing else.
pub(crate) fn consistency(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((section, instance), auth) in places(config) {
        let at = |key| settings.location_in(section, instance, key);
        match auth {
            Some(ForwardAuth::Server { path, .. }) if path.is_empty() => {
                let cause = "`forward_auth` without `forward_auth_path`: which path says who may?";
                let remedy = "write the one that its documentation names: /api/authz/forward-auth \
                              (Authelia), / (oauth2-proxy); see docs/forward-auth.md";
                findings.push(Finding::error(at("forward_auth"), cause, remedy));
            }
            Some(ForwardAuth::Server { .. }) => {}
            _ => {
                for key in ["forward_auth_path", "forward_auth_copy"] {
                    if settings.differs(section, instance, key) {
                        let cause = format!("`{key}` has no effect without `forward_auth`");
                        let remedy = "write `forward_auth` in the same section, or remove it";
                        findings.push(Finding::error(at(key), cause, remedy));
                    }
                }
            }
        }
    }
    findings
}
