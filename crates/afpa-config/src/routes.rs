//! Checks sites, paths, content groups and server groups, and says how to correct them.

mod conflicts;

use std::collections::{HashMap, HashSet};
use std::fs;

use afpa_router::{Action, Conflict, PathEntry, Router};

use crate::compiled::Routes;
use crate::finding::{Finding, Location};
use crate::hierarchy::{Hierarchy, destinations, is_target};
use crate::idle;
use crate::model::Config;
use crate::rounds;
use crate::settings::{Instance, Settings};
use crate::site_settings::{Behaviour, SiteSettings, UrlPath};
use crate::suggest;
use crate::traps;
use crate::units::Listen;

/// Contradictions within the hierarchy, of which these routes were made with these conflicts; looks at nothing else.
pub(crate) fn consistency(
    config: &Config,
    settings: &Settings,
    routes: &Routes,
    conflicts: Vec<Conflict>,
) -> Vec<Finding> {
    let mut checks = Checks { config, settings, findings: Vec::new() };
    for site in &config.sites {
        checks.site(site);
    }
    checks.groups();
    checks.listeners();
    // Unknown groups are reported above; here they would only cause errors that do not exist.
    if conflicts.is_empty() {
        checks.reached(&routes.hierarchy, &routes.router);
        checks.findings.extend(idle::warnings(config, settings, &routes.hierarchy));
        checks.findings.extend(traps::warnings(config, settings));
        checks.findings.extend(rounds::warnings(config, routes));
    }
    for conflict in conflicts.into_iter().filter(|one| !is_told(&routes.hierarchy, one)) {
        let finding = checks.conflict(&routes.hierarchy, conflict);
        checks.findings.push(finding);
    }
    checks.findings
}

/// Whether a conflict follows from a fault that has been reported: of a prefix that could not be read, or of a `root` for
/// one that does not end with a slash.
fn is_told(hierarchy: &Hierarchy, conflict: &Conflict) -> bool {
    let entry = |site: usize, path: usize| {
        hierarchy.table.sites.get(site).and_then(|site| site.paths.get(path))
    };
    match *conflict {
        Conflict::Prefix { site, path } => {
            entry(site, path).is_some_and(|path| path.prefix.is_empty())
        }
        Conflict::Rewrite { site, path, content } => entry(site, path)
            .and_then(|path| path.contents.get(content))
            .is_some_and(|content| matches!(content.action, Action::Cached { .. })),
        _ => false,
    }
}

/// Whether the directories exist.
pub(crate) fn feasibility(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut look = |section, instance, root: Option<&std::path::PathBuf>| {
        let Some(root) = root else { return };
        if !fs::metadata(root).is_ok_and(|found| found.is_dir()) {
            let location = settings.location_in(section, instance, "root");
            let cause = format!("directory {} does not exist", root.display());
            findings.push(Finding::error(location, cause, "create it or correct `root`"));
        }
    };
    for path in config.sites.iter().flat_map(|site| &site.paths) {
        look("site.path", path.instance, path.behaviour.root.as_ref());
        for content in &path.contents {
            look("site.path.content", content.instance, content.behaviour.root.as_ref());
        }
    }
    findings
}

struct Checks<'a> {
    config: &'a Config,
    settings: &'a Settings,
    findings: Vec<Finding>,
}

impl Checks<'_> {
    fn error(&mut self, location: Location, cause: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding::error(location, cause, remedy));
    }

    fn warning(&mut self, location: Location, cause: impl Into<String>, remedy: impl Into<String>) {
        self.findings.push(Finding::warning(location, cause, remedy));
    }

    fn location(&self, section: &'static str, instance: Instance, key: &'static str) -> Location {
        self.settings.location_in(section, instance, key)
    }

    fn site(&mut self, site: &SiteSettings) {
        if site.to.is_some() && site.paths.iter().any(UrlPath::is_whole_site) {
            let location = self.location("site", site.instance, "to");
            let cause = "`to` has no effect: the section for the path \"/\" decides";
            self.error(location, cause, "move it to that path");
        }
        if site.to.is_none() || site.root.is_none() {
            let location = self.location("site", site.instance, "cached");
            if self.settings.differs("site", site.instance, "cached") {
                let cause = "`cached` needs both `root` and `to`";
                self.warning(location, cause, "without `to`, everything under `root` is cached");
            }
        }
        for path in &site.paths {
            self.path(site, path);
        }
    }

    fn path(&mut self, site: &SiteSettings, path: &UrlPath) {
        let recursive = path.recursion && !path.exact;
        // The traps have a word for a star.
        let is_trap = path.prefix.contains('*');
        if recursive && !path.prefix.is_empty() && !path.prefix.ends_with('/') && !is_trap {
            let location = self.location("site.path", path.instance, "prefix");
            let prefix = &path.prefix;
            let cause = format!("the prefix \"{prefix}\" also matches \"{prefix}x\"");
            let last = prefix.rsplit('/').next().unwrap_or_default();
            let remedy = match last.contains('.') {
                true => "`exact = true` is for this path alone".to_owned(),
                false => format!("\"{prefix}/\" matches only what is below it"),
            };
            self.warning(location, cause, remedy);
        }
        let own = ("site.path", path.instance);
        self.behaviour(site, path, &path.behaviour, own, !path.contents.is_empty());
        if path.behaviour.has_conditions() && !path.contents.is_empty() {
            let cause = "a path with content groups has conditions of its own";
            self.error(path.location.clone(), cause, "write them under [[site.path.content]]");
        }
        for content in &path.contents {
            let section = ("site.path.content", content.instance);
            self.behaviour(site, path, &content.behaviour, section, false);
        }
    }

    /// `base`: the path has content groups, and its `root` is only their default.
    fn behaviour(
        &mut self,
        site: &SiteSettings,
        path: &UrlPath,
        behaviour: &Behaviour,
        (section, instance): (&'static str, Instance),
        base: bool,
    ) {
        let said = [
            ("root", behaviour.root.is_some() && !base),
            ("to", behaviour.to.is_some()),
            ("redirect", behaviour.redirect.is_some()),
            ("status", behaviour.status.is_some()),
            ("rewrite", behaviour.rewrite.is_some() && behaviour.to.is_none()),
        ];
        let said: Vec<&'static str> =
            said.iter().filter(|(_, is)| *is).map(|(key, _)| *key).collect();
        if let [first, second, ..] = said[..] {
            let location = self.location(section, instance, second);
            let cause = format!("`{first}` and `{second}` are two things to do with one request");
            self.error(location, cause, "remove one of the two");
        }
        let inherited = path.behaviour.root.is_some() || site.root.is_some();
        if said.is_empty() && !inherited && !base {
            let location = match section {
                "site.path" => path.location.clone(),
                _ => self.location(section, instance, "extensions"),
            };
            let cause = "nothing says what is done with these requests";
            self.error(location, cause, "write `root`, `to`, `redirect`, `rewrite` or `status`");
        }
        if behaviour.root.is_some() && !path.prefix.ends_with('/') && said.len() < 2 {
            let location = self.location(section, instance, "root");
            let cause = format!(
                "`root` replaces the prefix \"{}\", which does not end with a slash",
                path.prefix
            );
            self.error(location, cause, format!("use the prefix \"{}/\"", path.prefix));
        }
        self.rewrite(path, behaviour, (section, instance));
        if let Some(status) = behaviour.status.filter(|status| !status.has_content())
            && !behaviour.body.is_empty()
        {
            let location = self.location(section, instance, "body");
            let cause = format!("a response with the status {} has no content", status.code());
            self.error(location, cause, "remove `body`, or use another status");
        }
        for (key, wants, has) in [
            ("affinity", "`to`", behaviour.to.is_some()),
            ("redirect_status", "`redirect`", behaviour.redirect.is_some()),
            ("body", "`status`", behaviour.status.is_some()),
            ("content_type", "`status`", behaviour.status.is_some()),
        ] {
            let location = self.location(section, instance, key);
            if self.settings.differs(section, instance, key) && !has {
                self.error(location, format!("`{key}` has no effect without {wants}"), "remove it");
            }
        }
    }

    fn rewrite(
        &mut self,
        path: &UrlPath,
        behaviour: &Behaviour,
        (section, instance): (&'static str, Instance),
    ) {
        let Some(new) = &behaviour.rewrite else { return };
        let (location, prefix) = (self.location(section, instance, "rewrite"), &path.prefix);
        if is_target(new) {
            return;
        }
        if behaviour.to.is_none() {
            let both = prefix.ends_with('/') && new.ends_with('/') && !path.exact;
            if both && behaviour.if_path.is_empty() {
                let cause = format!("every path below \"{prefix}\" becomes \"{new}\"");
                let remedy = format!("write \"{new}{{rest}}\" to replace only the prefix");
                self.warning(location, cause, remedy);
            }
        } else if prefix.ends_with('/') != new.ends_with('/') {
            let cause = format!("\"{new}\" instead of \"{prefix}\" would lose or double a slash");
            self.error(location, cause, "end both with a slash, or neither");
        }
    }

    /// Warns of request sets that no request can reach, and of roots from which nothing is served.
    fn reached(&mut self, hierarchy: &Hierarchy, router: &Router) {
        for set in router.unreachable().into_iter().filter_map(|id| router.set(id)) {
            let location = hierarchy.content_location(set.site, set.path, set.content);
            let Some(location) = location.cloned() else { continue };
            let cause = "no request reaches this: what stands before it takes them all";
            self.warning(location, cause, "remove it, or write it before the others");
        }
        for (index, site) in self.config.sites.iter().enumerate() {
            let Some(entries) = hierarchy.table.sites.get(index).map(|entry| &entry.paths) else {
                continue;
            };
            let serves = entries.iter().flat_map(|entry| &entry.contents).any(|content| {
                matches!(&content.action, Action::Cached { root, .. }
                    if hierarchy.root(*root).is_some_and(|root| root.is_site_root))
            });
            if site.root.is_some()
                && !serves
                && self.settings.differs("site", site.instance, "root")
            {
                let location = self.location("site", site.instance, "root");
                let cause =
                    "`root` has no effect: the sections for paths decide about every request";
                self.warning(location, cause, "remove it, or leave it some requests");
            }
            for (path, entry) in site.paths.iter().zip(entries) {
                self.switched_off(path, entry);
            }
        }
    }

    /// Warns of a `root` beside content groups, which is only their default: where no group uses it, or requests outside
    /// the groups get a 404.
    fn switched_off(&mut self, path: &UrlPath, entry: &PathEntry) {
        if path.behaviour.root.is_none() || path.contents.is_empty() {
            return;
        }
        let mut groups = path.contents.iter().map(|content| &content.behaviour);
        let cause = if groups.all(|group| group.acts() || group.root.is_some()) {
            "`root` has no effect: each content group of this path says something else"
        } else if path.is_whole_site() && entry.leaves_over() {
            "requests that fit no content group of this path are answered with 404: its `root` is \
             only the default of the groups"
        } else {
            return;
        };
        let location = self.location("site.path", path.instance, "root");
        let remedy = "write `root` in [[site]], which stands behind all paths, or add a content group \
                      without `extensions`";
        self.warning(location, cause, remedy);
    }

    fn groups(&mut self) {
        let mut seen: HashMap<&str, Location> = HashMap::new();
        let used: HashSet<&str> = destinations(self.config).map(|(_, _, to)| to).collect();
        for group in self.config.groups.iter().filter(|group| group.instance != [usize::MAX; 4]) {
            let (name, instance) = (&group.settings.name, group.instance);
            let at = |key| self.settings.location_in("server_group", instance, key);
            let mut found = Vec::new();
            if name.is_empty() && at("name") == Location::Nowhere {
                let cause = "a server group without a `name`";
                found.push(Finding::error(at("servers"), cause, "write name = \"app\""));
            } else if let Some(other) = seen.get(name.as_str()) {
                let cause = format!("there are two server groups called \"{name}\"");
                let twice = Finding::error(at("name"), cause, "rename one of them");
                found.push(twice.against(other.clone()));
            } else {
                seen.insert(name, at("name"));
            }
            let servers = &group.settings.servers;
            if servers.is_empty() && !matches!(at("servers"), Location::File(_)) {
                let cause = format!("server group \"{name}\" has no `servers`");
                let remedy = "write servers = [\"127.0.0.1:3000\"]";
                found.push(Finding::error(at("name"), cause, remedy));
            } else if !servers.is_empty() && servers.iter().all(|server| server.weight == 0) {
                let cause = format!("every server of \"{name}\" has the weight 0");
                found.push(Finding::error(at("servers"), cause, "give one of them another"));
            }
            for (index, server) in servers.iter().enumerate() {
                if servers.iter().take(index).any(|other| other.to == server.to) {
                    let cause = format!("`servers` has {} twice", server.to);
                    found.push(Finding::error(
                        at("servers"),
                        cause,
                        "use `weight` for a larger share",
                    ));
                }
            }
            if !used.contains(name.as_str()) && !name.is_empty() {
                let cause = format!("no request set is distributed to \"{name}\"");
                found.push(Finding::warning(at("name"), cause, format!("write to = \"{name}\"")));
            }
            self.findings.extend(found);
        }
        let names = || self.config.groups.iter().map(|group| group.settings.name.as_str());
        let known: HashSet<&str> = names().collect();
        let mut unknown = Vec::new();
        for ((section, instance), key, to) in destinations(self.config) {
            if !known.contains(to) {
                let remedy = match suggest::nearest(to, names()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None if to.parse::<std::net::IpAddr>().is_ok() || to == "localhost" => {
                        format!("a server has a port: \"{to}:8080\", for example")
                    }
                    None if to.bytes().all(|byte| byte.is_ascii_digit()) => {
                        format!("a server has an address: \"127.0.0.1:{to}\", for example")
                    }
                    None if key == "fallback" && to.contains('.') => {
                        format!("for the file below `root` write \"/{to}\"")
                    }
                    None => format!("write a [[server_group]] with name = \"{to}\""),
                };
                let location = self.settings.location_in(section, instance, key);
                let cause = format!("there is no server group \"{to}\"");
                unknown.push(Finding::error(location, cause, remedy));
            }
        }
        self.findings.extend(unknown);
    }

    /// Sites that share an address must agree on how its connections begin (`proxy_from`).
    fn listeners(&mut self) {
        let mut first: HashMap<&Listen, &SiteSettings> = HashMap::new();
        for site in &self.config.sites {
            for (listen, _) in site.addresses() {
                let other = *first.entry(listen).or_insert(site);
                if other.proxy_from != site.proxy_from {
                    let location = self.location("site", site.instance, "proxy_from");
                    let location = match location {
                        Location::Nowhere => self.location("site", other.instance, "proxy_from"),
                        location => location,
                    };
                    let cause = format!("two sites on {listen} differ in `proxy_from`");
                    let remedy = "it belongs to the address: write the same in both";
                    self.error(location, cause, remedy);
                    break;
                }
            }
        }
    }
}
