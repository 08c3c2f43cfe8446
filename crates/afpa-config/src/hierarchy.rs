//! From sites, paths and content groups to the table of the router.

mod building;
mod named;
mod parts;
mod root;

use std::collections::HashMap;

use afpa_http::Status;
use afpa_proxy::select::Affinity;
use afpa_router::{
    Action, Conditions, Content, Expression, GroupId, HostPattern, ListenerId, PathEntry, Reach,
    Redirect, RootId, SiteId, Table,
};

use crate::finding::Location;
use crate::model::Config;
use crate::site_settings::SiteSettings;
use crate::units::Listen;
use building::{Building, KnownRoots, RootSettings};
pub(crate) use named::{Key, destinations, name_servers};
pub(crate) use parts::{conditions, content_group, is_target, reach};
use root::Origin;
pub use root::Root;

/// The paper's hierarchy as it was configured, with every default filled in.
#[derive(Clone, Debug, Default)]
pub struct Hierarchy {
    /// For the router. Its numbers are indices of the lists below.
    pub table: Table,
    /// File-system directories.
    pub roots: Vec<Root>,
    /// Where each path of each site is written, and each of its content groups.
    pub(crate) origins: Vec<Vec<Origin>>,
}

impl Hierarchy {
    /// Fills in every default. `number` gives listeners the numbers by which connections name them.
    pub fn of(config: &Config, number: &mut dyn FnMut(&Listen) -> u32) -> Self {
        let mut hierarchy = Hierarchy::default();
        let names = config.groups.iter().enumerate();
        let groups: HashMap<&str, (GroupId, Affinity)> = names
            .map(|(index, group)| {
                let id = GroupId(u32::try_from(index).unwrap_or(u32::MAX));
                (group.settings.name.as_str(), (id, group.settings.affinity))
            })
            .collect();
        let (mut agreeing, mut known) = (HashMap::new(), KnownRoots::default());
        for (index, site) in config.sites.iter().enumerate() {
            let settings = *agreeing.entry(RootSettings::of(site)).or_insert(index);
            let (roots, known) = (&mut hierarchy.roots, &mut known);
            let mut building = Building { site, settings, groups: &groups, roots, known };
            let (paths, origins) = building.paths();
            hierarchy.origins.push(origins);
            hierarchy.table.sites.push(afpa_router::SiteEntry {
                name: name(site, index),
                listeners: site
                    .addresses()
                    .filter(|(_, tls)| *tls || !site.https_only)
                    .map(|(listen, _)| ListenerId(number(listen)))
                    .collect(),
                hosts: site.hosts.iter().map(|host| host_pattern(host)).collect(),
                paths,
            });
        }
        // Behind all others, so that the number of a site is its place in the configuration.
        for site in config.sites.iter().filter(|site| site.https_only && !site.listen.is_empty()) {
            hierarchy.table.sites.push(redirected(site, number));
        }
        hierarchy
    }

    /// The directory of a number.
    pub fn root(&self, id: RootId) -> Option<&Root> {
        self.roots.get(id.0 as usize)
    }

    /// Where a content group is written.
    pub fn content_location(&self, site: SiteId, path: usize, content: usize) -> Option<&Location> {
        let path = self.origins.get(site.0 as usize).and_then(|paths| paths.get(path));
        path.and_then(|origin| origin.contents.get(content))
    }

    /// The name of a site.
    pub fn site_name(&self, id: SiteId) -> &str {
        self.table.sites.get(id.0 as usize).map_or("", |site| &site.name)
    }
}

/// The entry of a site where it is reached without TLS: a redirect to its first address with TLS.
fn redirected(
    site: &SiteSettings,
    number: &mut dyn FnMut(&Listen) -> u32,
) -> afpa_router::SiteEntry {
    let port = site.tls.iter().find_map(|listen| match listen {
        Listen::Tcp(address) if address.port() != 443 => Some(format!(":{}", address.port())),
        _ => None,
    });
    let location = format!("https://{{host}}{}{{path}}{{query}}", port.unwrap_or_default());
    let content = Content {
        group: afpa_router::ContentGroup::All,
        conditions: Conditions::default(),
        action: Action::Redirect(Redirect { status: Status::PERMANENT_REDIRECT, location }),
        rewrite: None,
    };
    let paths =
        vec![PathEntry { prefix: b"/".to_vec(), reach: Reach::Recursion, contents: vec![content] }];
    afpa_router::SiteEntry {
        name: format!("{} without TLS", name(site, 0)),
        listeners: site.listen.iter().map(|listen| ListenerId(number(listen))).collect(),
        hosts: site.hosts.iter().map(|host| host_pattern(host)).collect(),
        paths,
    }
}

fn name(site: &SiteSettings, index: usize) -> String {
    let host = || site.hosts.iter().find(|host| !host.starts_with('~')).cloned();
    let address = || site.addresses().next().map(|(listen, _)| listen.to_string());
    site.name.clone().or_else(host).or_else(address).unwrap_or_else(|| format!("site {index}"))
}

fn host_pattern(host: &str) -> HostPattern {
    // The case of letters means nothing in a host (RFC 3986 section 3.2.2).
    let text = host.strip_prefix('~').map(|text| text.strip_prefix('*').unwrap_or(text));
    if let Some(Ok(expression)) = text.map(|text| Expression::new(text, true)) {
        return HostPattern::Matching(expression);
    }
    match host.strip_prefix("*.") {
        Some(name) => HostPattern::Below(name.to_owned()),
        None => HostPattern::Exact(host.to_owned()),
    }
}
