//! From sites, paths and content groups to the table of the router.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afpa_http::Status;
use afpa_http::edits::FieldRules;
use afpa_police::Prefix;
use afpa_proxy::select::Affinity;
use afpa_router::{
    Action, ClientNetwork, Conditions, Content, Expression, FieldCondition, FieldSource, Fixed,
    GroupId, HostPattern, ListenerId, PathEntry, Pattern, Reach, Redirect, Rewrite, RootId,
    Scripts, SiteId, Table,
};
use foldhash::fast::FixedState;

use crate::consents;
use crate::error_checks;
use crate::fallback::Fallback;
use crate::field_rules::field_rules;
use crate::filters::RootFilter;
use crate::finding::Location;
use crate::forward_auth::ForwardAuth;
use crate::groups::ServerGroup;
use crate::hints::RootHint;
use crate::mirror::Mirror;
use crate::mirror_checks;
use crate::model::Config;
use crate::php::{INDEX, Php, seen_root};
use crate::places::Place;
use crate::rules::server_addresses;
use crate::settings::Section;
use crate::site_settings::{Behaviour, ContentGroup, SiteSettings, Symlinks, UrlPath};
use crate::traps::has_escape;
use crate::units::Listen;

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

/// A directory from which request sets are cached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Root {
    /// The index of the site whose settings apply to it: the first of the sites with these settings.
    pub site: usize,
    /// The directory.
    pub directory: PathBuf,
    /// Its default files.
    pub index: Vec<String>,
    /// Whether it is the document root of the site, which alone has home directories.
    pub is_site_root: bool,
    /// Whether files whose names end in `.php` are scripts, which are never sent.
    pub scripts: bool,
    /// The hints for its files. Their prefixes are below the directory.
    pub hints: Vec<RootHint>,
    /// The changes of its files. Their prefixes are below the directory.
    pub filters: Vec<RootFilter>,
    /// The changes of the fields of answers.
    pub fields: Arc<FieldRules>,
    /// The part of a URL path that the directory stands for, without a slash at its end. It is set only where there
    /// are filters, because a page may include other pages by their URLs, or fields that depend on the URL.
    pub mount: String,
}

/// Where a path and its content groups are written.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) path: Location,
    pub(crate) contents: Vec<Location>,
}

/// Whether a name is that of a script.
fn is_script(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("php"))
}

/// Adds a server group for each `to` that names servers by their addresses.
pub(crate) fn name_servers(config: &mut Config) {
    let named: Vec<String> = destinations(config).map(|(_, _, to)| to.to_owned()).collect();
    let groups = config.groups.iter().map(|group| group.settings.name.clone());
    let mut known: HashSet<String> = groups.collect();
    for to in named {
        if known.insert(to.clone())
            && let (true, Ok(addresses)) = (to.contains([':', '/']), server_addresses(&to))
        {
            config.groups.push(ServerGroup::of_servers(&to, addresses));
        }
    }
}

/// Every server group or server that is named, with the section and the setting in which it is.
pub(crate) fn destinations(config: &Config) -> impl Iterator<Item = (Section, Key, &str)> {
    let own = config.sites.iter().flat_map(|site| {
        let own = named(("site", site.instance), site.to.as_deref(), site.fallback.as_ref());
        let own = own.chain(site.php.as_deref().map(|to| (("site", site.instance), "php", to)));
        let pages = error_checks::all(site).filter_map(|page| {
            page.to.as_deref().map(|to| ((page.section, page.instance), "to", to))
        });
        let own = own.chain(pages);
        let places = site.places().flat_map(|Place { section, behaviour, .. }| {
            let Behaviour { to, fallback, php, .. } = behaviour;
            let php = match php {
                Some(Php::To(to)) => Some((section, "php", &**to)),
                _ => None,
            };
            named(section, to.as_deref(), fallback.as_ref()).chain(php)
        });
        own.chain(places)
    });
    let asked = consents::places(config).filter_map(|(section, auth)| {
        auth.and_then(ForwardAuth::to).map(|to| (section, "forward_auth", to))
    });
    let mirrored = mirror_checks::places(config).filter_map(|(section, mirror)| {
        mirror.and_then(Mirror::to).map(|to| (section, "mirror", to))
    });
    own.chain(asked).chain(mirrored)
}

/// The servers that a section names.
fn named<'c>(
    section: Section,
    to: Option<&'c str>,
    fallback: Option<&'c Fallback>,
) -> impl Iterator<Item = (Section, Key, &'c str)> + use<'c> {
    let fallback = match fallback {
        Some(Fallback::To(to)) => Some((section, "fallback", &**to)),
        _ => None,
    };
    to.map(|to| (section, "to", to)).into_iter().chain(fallback)
}

/// The name of a setting.
pub(crate) type Key = &'static str;

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

/// Numbers of roots. They are the operator's, so their hash needs no secret seed.
type KnownRoots = HashMap<Root, usize, FixedState>;

/// A site while its paths are put together.
struct Building<'c, 'h> {
    site: &'c SiteSettings,
    /// The first site with the same settings of roots.
    settings: usize,
    groups: &'h HashMap<&'c str, (GroupId, Affinity)>,
    roots: &'h mut Vec<Root>,
    known: &'h mut KnownRoots,
}

/// The servers of FastCGI that run scripts, and the directory as they see it.
#[derive(Clone, Copy)]
struct PhpPlace<'c> {
    to: &'c str,
    root: Option<&'c str>,
}

/// The settings of its site that a root depends on, besides those in [`Root`] itself. Sites that agree in them share
/// their roots, with all objects that are kept for them.
#[derive(PartialEq, Eq, Hash)]
struct RootSettings<'c> {
    listing: bool,
    symlinks: Symlinks,
    dotfiles: bool,
    homes: Option<&'c str>,
    headers: &'c [(String, String)],
    types: &'c [(String, String)],
}

impl<'c> RootSettings<'c> {
    fn of(site: &'c SiteSettings) -> Self {
        RootSettings {
            listing: site.listing,
            symlinks: site.symlinks,
            dotfiles: site.dotfiles,
            homes: site.homes.then_some(&site.homes_directory),
            headers: &site.headers,
            types: &site.types,
        }
    }
}

impl<'s> Building<'s, '_> {
    fn paths(&mut self) -> (Vec<PathEntry>, Vec<Origin>) {
        let mut paths = Vec::new();
        let mut origins = Vec::new();
        for path in &self.site.paths {
            let (entry, origin) = self.path(path);
            paths.push(entry);
            origins.push(origin);
        }
        let own = self.site.paths.iter().position(UrlPath::is_whole_site);
        let own = own.and_then(|own| Some((paths.get_mut(own)?, origins.get_mut(own)?)));
        if let Some((entry, origin)) = own {
            let path = self.site.paths.iter().find(|path| path.is_whole_site());
            self.stand_behind(path, entry, origin);
        } else if self.site.root.is_some() || self.site.to.is_some() {
            let contents = self.default_contents();
            let locations = vec![self.site.location.clone(); contents.len()];
            origins.push(Origin { path: self.site.location.clone(), contents: locations });
            paths.push(PathEntry { prefix: b"/".to_vec(), reach: Reach::Recursion, contents });
        }
        (paths, origins)
    }

    /// Adds the site's root for requests that the section for the path `/` leaves over.
    fn stand_behind(&mut self, path: Option<&UrlPath>, entry: &mut PathEntry, origin: &mut Origin) {
        let Some(root) = self.site.root.clone().filter(|_| entry.leaves_over()) else { return };
        let group = afpa_router::ContentGroup::All;
        let (conditions, rewrite) = (Conditions::default(), None);
        let fields = field_rules(self.site, path, None);
        let fallback = self.site.fallback.as_ref();
        let action = self.cached(root, (&[], None), fields, (fallback, self.php(&[])));
        entry.contents.push(Content { group, conditions, action, rewrite });
        origin.contents.push(self.site.location.clone());
    }

    /// The path `/` of a site that has no section for it: the paper's common case.
    fn default_contents(&mut self) -> Vec<Content> {
        let plain = |group, action| Content {
            group,
            conditions: Conditions::default(),
            action,
            rewrite: None,
        };
        let fallback = self.site.fallback.as_ref();
        let root = self.site.root.clone();
        let fields = field_rules(self.site, None, None);
        let php = self.php(&[]);
        let cached = root.map(|root| self.cached(root, (&[], None), fields, (fallback, php)));
        let to = self.site.to.as_deref().map(|to| self.distributed(to, self.site.affinity));
        let all = afpa_router::ContentGroup::All;
        match (cached, to) {
            (Some(cached), Some(to)) => {
                vec![plain(content_group(&self.site.cached), cached), plain(all, to)]
            }
            (one, other) => one.or(other).map(|action| plain(all, action)).into_iter().collect(),
        }
    }

    fn path(&mut self, path: &UrlPath) -> (PathEntry, Origin) {
        let mut contents = Vec::new();
        let mut locations = Vec::new();
        for content in &path.contents {
            let group = content_group(&content.extensions);
            contents.push(self.content((path, Some(content)), group, &content.behaviour));
            locations.push(content.location.clone());
        }
        if path.contents.is_empty() || path.behaviour.acts() {
            let all = afpa_router::ContentGroup::All;
            contents.push(self.content((path, None), all, &path.behaviour));
            locations.push(path.location.clone());
        }
        let (prefix, reach) = (path.prefix.clone().into_bytes(), reach(path));
        let entry = PathEntry { prefix, reach, contents };
        (entry, Origin { path: path.location.clone(), contents: locations })
    }

    fn content(
        &mut self,
        (path, group_of): (&UrlPath, Option<&ContentGroup>),
        group: afpa_router::ContentGroup,
        behaviour: &Behaviour,
    ) -> Content {
        let mut rewrite = None;
        let action = if let Some(location) = &behaviour.redirect {
            let status = behaviour.redirect_status.status();
            Action::Redirect(Redirect { status, location: location.clone() })
        } else if let Some(status) = behaviour.status {
            let body = behaviour.body.clone().into_bytes();
            Action::Fixed(Fixed { status, content_type: behaviour.content_type.clone(), body })
        } else if let Some(to) = &behaviour.to {
            let new = behaviour.rewrite.as_deref();
            rewrite = new.map(|new| replacement(&path.prefix, new));
            self.distributed(to, behaviour.affinity)
        } else if let Some(target) = &behaviour.rewrite {
            Action::Again(target.as_str().into())
        } else if let Some(root) = behaviour.root.as_ref().or(path.behaviour.root.as_ref()) {
            // The directory replaces the prefix, except for its last slash.
            let strip = path.prefix.len().saturating_sub(1);
            rewrite = (strip > 0).then_some(Rewrite::Prefix { strip, head: Vec::new() });
            let index = [&behaviour.index, &path.behaviour.index];
            let index = index.into_iter().find(|index| !index.is_empty());
            let index = index.map_or(&[][..], |index| index);
            let fallback = behaviour.fallback.as_ref().or(path.behaviour.fallback.as_ref());
            let fields = field_rules(self.site, Some(path), group_of);
            let php = self.php(&[behaviour, &path.behaviour]);
            self.cached(root.clone(), (index, path.prefix.get(..strip)), fields, (fallback, php))
        } else {
            let own = behaviour.fallback.as_ref().or(path.behaviour.fallback.as_ref());
            let fallback = own.or(self.site.fallback.as_ref());
            let root = self.site.root.clone().unwrap_or_default();
            let fields = field_rules(self.site, Some(path), group_of);
            let php = self.php(&[behaviour, &path.behaviour]);
            self.cached(root, (&behaviour.index, None), fields, (fallback, php))
        };
        Content { group, conditions: conditions(behaviour), action, rewrite }
    }

    /// `mount`: the part of a URL path that the directory stands for; `None`: the directory is the root of the site.
    fn cached(
        &mut self,
        directory: PathBuf,
        (index, mount): (&[String], Option<&str>),
        fields: FieldRules,
        (fallback, php): (Option<&Fallback>, Option<PhpPlace<'_>>),
    ) -> Action {
        let index = if index.is_empty() { &self.site.index } else { index };
        let mut index = index.to_vec();
        if php.is_some() && index == ["index.html"] {
            index.insert(0, INDEX.to_owned());
        }
        let scripts = php.map(|php| {
            let (group, affinity) = self.group(php.to, None);
            let root = seen_root(php.root, &directory);
            let (mount, params) =
                (mount.unwrap_or_default().as_bytes().into(), self.site.php_params.clone());
            Arc::new(Scripts { group, affinity, root, mount, params })
        });
        let below = mount.unwrap_or_default();
        let hints = self.site.hints.iter().filter_map(|hint| hint.below(below));
        let filters = self.site.filters.iter().filter_map(|filter| filter.below(below));
        let filters: Vec<RootFilter> = filters.collect();
        let is_plain = filters.is_empty() && !fields.has_prefixes();
        let root = Root {
            site: self.settings,
            directory,
            index,
            is_site_root: mount.is_none(),
            scripts: self.site.has_scripts(),
            hints: hints.collect(),
            mount: if is_plain { String::new() } else { below.to_owned() },
            // Marks belong to requests: files do not differ by them.
            fields: Arc::new(FieldRules { id: None, trace: None, ..fields }),
            filters,
        };
        let number = *self.known.entry(root).or_insert_with_key(|root| {
            self.roots.push(root.clone());
            self.roots.len() - 1
        });
        // Nothing runs a script here: as a fallback it would be a refusal of whatever is no file.
        let is_dead = |path: &str| scripts.is_none() && self.site.has_scripts() && is_script(path);
        let fallback = fallback.map(|fallback| match fallback {
            Fallback::File(path) if is_dead(path) => {
                afpa_router::Fallback::Status(Status::NOT_FOUND)
            }
            fallback => self.fallback(fallback),
        });
        let root = RootId(u32::try_from(number).unwrap_or(u32::MAX));
        Action::Cached { root, fallback, scripts }
    }

    /// The servers that run scripts, of the first of these sections that says it, else of the site.
    fn php<'b>(&self, said: &[&'b Behaviour]) -> Option<PhpPlace<'b>>
    where
        's: 'b,
    {
        let root = said.iter().find_map(|behaviour| behaviour.php_root.as_deref());
        let has_root = said.iter().any(|behaviour| behaviour.root.is_some());
        let root = root.or(self.site.php_root.as_deref().filter(|_| !has_root));
        match said.iter().find_map(|behaviour| behaviour.php.as_ref()) {
            Some(Php::Off) => None,
            Some(Php::To(to)) => Some(PhpPlace { to, root }),
            None => self.site.php.as_deref().map(|to| PhpPlace { to, root }),
        }
    }

    fn fallback(&self, fallback: &Fallback) -> afpa_router::Fallback {
        match fallback {
            Fallback::File(path) => afpa_router::Fallback::File(path.as_bytes().into()),
            Fallback::To(to) => {
                let (group, affinity) = self.group(to, self.site.affinity);
                afpa_router::Fallback::Distributed { group, affinity }
            }
            Fallback::Status(status) => afpa_router::Fallback::Status(*status),
        }
    }

    /// The checks report a group that does not exist.
    fn group(&self, to: &str, affinity: Option<Affinity>) -> (GroupId, afpa_router::Affinity) {
        let (group, default) =
            self.groups.get(to).copied().unwrap_or((GroupId(u32::MAX), Affinity::None));
        let affinity = match affinity.unwrap_or(default) {
            Affinity::None => afpa_router::Affinity::None,
            Affinity::Client => afpa_router::Affinity::Client,
            Affinity::Cookie => afpa_router::Affinity::Cookie,
        };
        (group, affinity)
    }

    fn distributed(&self, to: &str, affinity: Option<Affinity>) -> Action {
        let (group, affinity) = self.group(to, affinity);
        Action::Distributed { group, affinity }
    }
}

impl UrlPath {
    /// Whether every path of the site begins with it.
    pub(crate) fn is_whole_site(&self) -> bool {
        self.prefix == "/" && self.recursion && !self.exact
    }

    /// Whether a directory of its own is cached somewhere below it.
    pub(crate) fn has_root(&self) -> bool {
        let contents = self.contents.iter().map(|content| &content.behaviour);
        contents.chain([&self.behaviour]).any(|behaviour| behaviour.root.is_some())
    }
}

impl Behaviour {
    /// Whether it says what happens with a request. A `root` that content groups inherit does not count.
    pub(crate) fn acts(&self) -> bool {
        let Behaviour { to, redirect, status, rewrite, .. } = self;
        to.is_some() || redirect.is_some() || status.is_some() || rewrite.is_some()
    }

    /// Whether it depends on more than the path.
    pub(crate) fn has_conditions(&self) -> bool {
        !conditions(self).is_empty()
    }
}

/// How far a path reaches.
pub(crate) fn reach(path: &UrlPath) -> Reach {
    match (path.exact, path.recursion) {
        (true, _) => Reach::Exact,
        (false, true) => Reach::Recursion,
        (false, false) => Reach::NoRecursion,
    }
}

pub(crate) fn content_group(extensions: &[String]) -> afpa_router::ContentGroup {
    if extensions.is_empty() {
        return afpa_router::ContentGroup::All;
    }
    let special = |word: &str| extensions.iter().any(|extension| extension == word);
    let plain = extensions.iter().filter(|e| !matches!(e.as_str(), "none" | "others"));
    afpa_router::ContentGroup::List {
        extensions: plain.cloned().collect(),
        none: special("none"),
        others: special("others"),
    }
}

/// The name of a condition on the client's certificate; other conditions have the name of a field here.
const SUBJECT: &str = "subject of the client";

pub(crate) fn conditions(behaviour: &Behaviour) -> Conditions {
    let condition = |source| {
        move |(name, value): &(String, String)| FieldCondition {
            source,
            name: name.clone(),
            value: Pattern::new(value),
        }
    };
    let headers = behaviour.if_headers.iter().map(condition(FieldSource::Field));
    let cookies = behaviour.if_cookies.iter().map(condition(FieldSource::Cookie));
    let subject =
        behaviour.if_client_subject.as_ref().map(|value| (SUBJECT.to_owned(), value.clone()));
    let subject = subject.as_ref().map(condition(FieldSource::Subject));
    let parameters = behaviour.if_query.iter().map(condition(FieldSource::Query));
    let network =
        |prefix: &Prefix| ClientNetwork { address: prefix.address(), bits: prefix.bits() };
    Conditions {
        methods: behaviour.if_methods.clone(),
        clients: behaviour.if_clients.iter().map(network).collect(),
        paths: behaviour.if_path.iter().map(|text| Pattern::new(text)).collect(),
        fields: parameters.chain(headers).chain(cookies).chain(subject).collect(),
    }
}

/// `new` in the place of `prefix`, or of all. When both end with a slash, the path keeps its own.
fn replacement(prefix: &str, new: &str) -> Rewrite {
    if is_target(new) {
        return Rewrite::Target(new.into());
    }
    if has_escape(new) {
        // Escapes are for the target of the request, and not for the path, in which they would be escaped once more.
        return Rewrite::Target(format!("{new}{{rest}}").into());
    }
    let (strip, head) = match (prefix.strip_suffix('/'), new.strip_suffix('/')) {
        (Some(prefix), Some(new)) => (prefix.len(), new),
        _ => (prefix.len(), new),
    };
    Rewrite::Prefix { strip, head: head.as_bytes().to_vec() }
}

/// Whether a `rewrite` beside `to` is a whole target, and not the text that replaces the prefix.
pub(crate) fn is_target(rewrite: &str) -> bool {
    rewrite.contains(['{', '?'])
}
