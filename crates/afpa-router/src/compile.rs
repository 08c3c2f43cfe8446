//! Compiles a table into a router, and finds every conflict in the table.

use std::collections::HashMap;

use crate::conditions::MAX_CONDITIONAL;
use crate::extension::MAX_EXTENSION;
use crate::extension_table::{ExtensionTable, FileKind};
use crate::hosts::Hosts;
use crate::ids::SiteId;
use crate::loops;
use crate::prefixes::Prefixes;
use crate::router::{RequestSet, Router};
use crate::site_paths::{CompiledPath, PrefixPaths, SitePaths};
use crate::table::{
    Action, Content, ContentGroup, HostPattern, PathEntry, Reach, Rewrite, SiteEntry, Table,
};
use crate::variables::{self, Misuse};

/// Why a table cannot be used. Numbers count sites, paths of a site and content groups of a path
/// from 0, in the order of the table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// Two sites of one listener have the same host name, or both answer for any.
    #[error("sites {first} and {second} both have the host {host:?} on one listener")]
    Host {
        /// The earlier site.
        first: usize,
        /// The later one.
        second: usize,
        /// The name; `None`: any.
        host: Option<String>,
    },
    /// Two paths of a site are the same.
    #[error("paths {first} and {second} of site {site} are the same")]
    Path {
        /// The site.
        site: usize,
        /// The earlier path.
        first: usize,
        /// The later one.
        second: usize,
    },
    /// A prefix that no normalised path begins with.
    #[error("path {path} of site {site} can never match")]
    Prefix {
        /// The site.
        site: usize,
        /// The path.
        path: usize,
    },
    /// An extension in two content groups of the same path, both without conditions.
    #[error("content groups {first} and {second} of path {path} of site {site} both have {what}")]
    Extension {
        /// The site.
        site: usize,
        /// The path.
        path: usize,
        /// The earlier content group.
        first: usize,
        /// The later one.
        second: usize,
        /// The extension, `none`, `others`, or `everything else`.
        what: String,
    },
    /// An extension that no path can have: empty, too long, or with a dot or slash in it.
    #[error("content group {content} of path {path} of site {site} lists {extension:?}")]
    BadExtension {
        /// The site.
        site: usize,
        /// The path.
        path: usize,
        /// The content group.
        content: usize,
        /// The extension.
        extension: String,
    },
    /// A rewritten path would begin with no slash, or with two.
    #[error("the rewrite of content group {content} of path {path} of site {site} breaks the path")]
    Rewrite {
        /// The site.
        site: usize,
        /// The path.
        path: usize,
        /// The content group.
        content: usize,
    },
    /// A text that gives targets which are none.
    #[error("the target of content group {content} of path {path} of site {site} is none")]
    Target {
        /// The site.
        site: usize,
        /// The path.
        path: usize,
        /// The content group.
        content: usize,
    },
    /// A target that is routed back to itself.
    #[error("the target of content group {content} of path {path} of site {site} leads back to it")]
    Loop {
        /// The site.
        site: usize,
        /// The path.
        path: usize,
        /// The content group.
        content: usize,
    },
    /// A redirect or target with a variable that cannot be used there.
    #[error("content group {content} of path {path} of site {site}: {variable}")]
    Variable {
        /// The site.
        site: usize,
        /// The path.
        path: usize,
        /// The content group.
        content: usize,
        /// The text in braces.
        variable: String,
        /// The reason.
        why: Misuse,
    },
    /// More than [`MAX_CONDITIONAL`] content groups with conditions on one path.
    #[error(
        "path {path} of site {site} has more than {MAX_CONDITIONAL} conditional content groups"
    )]
    TooManyConditions {
        /// The site.
        site: usize,
        /// The path.
        path: usize,
    },
}

impl Conflict {
    fn of_loop(set: &RequestSet) -> Self {
        let RequestSet { site, path, content, .. } = *set;
        Conflict::Loop { site: site.0 as usize, path, content }
    }
}

impl Router {
    /// Checks and compiles a table.
    ///
    /// # Errors
    /// With every conflict that was found.
    pub fn compile(table: &Table) -> Result<Router, Vec<Conflict>> {
        let mut conflicts = Vec::new();
        let listeners = compile_hosts(table, &mut conflicts);
        let mut sets = Vec::new();
        let sites = table.sites.iter().enumerate();
        let sites = sites
            .map(|(index, site)| {
                Compiling { site, index, conflicts: &mut conflicts }.places(&mut sets)
            })
            .collect();
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
        let router = Router { listeners, sites, sets };
        let loops: Vec<Conflict> = loops::find(&router).map(Conflict::of_loop).collect();
        if loops.is_empty() { Ok(router) } else { Err(loops) }
    }
}

fn compile_hosts(table: &Table, conflicts: &mut Vec<Conflict>) -> Vec<Hosts> {
    let ids = table.sites.iter().flat_map(|site| &site.listeners);
    let count = ids.map(|id| id.0 as usize + 1).max().unwrap_or(0);
    let mut listeners: Vec<Hosts> = (0..count).map(|_| Hosts::default()).collect();
    for (index, site) in table.sites.iter().enumerate() {
        let id = SiteId(number(index));
        for listener in &site.listeners {
            let Some(hosts) = listeners.get_mut(listener.0 as usize) else { continue };
            let patterns: Vec<Option<&HostPattern>> = match &site.hosts[..] {
                [] => vec![None],
                patterns => patterns.iter().map(Some).collect(),
            };
            for pattern in patterns {
                if let Some(before) = hosts.enter(pattern, id) {
                    let host = pattern.map(ToString::to_string);
                    let conflict = Conflict::Host { first: before.0 as usize, second: index, host };
                    if !conflicts.contains(&conflict) {
                        conflicts.push(conflict);
                    }
                }
            }
        }
    }
    listeners
}

/// One site while its paths are compiled.
struct Compiling<'t, 'c> {
    site: &'t SiteEntry,
    index: usize,
    conflicts: &'c mut Vec<Conflict>,
}

impl Compiling<'_, '_> {
    fn places(&mut self, sets: &mut Vec<RequestSet>) -> SitePaths {
        let mut prefixes = Prefixes::new();
        let mut by_prefix: Vec<PrefixPaths> = Vec::new();
        // The path of the table that each compiled path came from.
        let mut origins: HashMap<(u32, usize), usize> = HashMap::new();
        for (path, entry) in self.site.paths.iter().enumerate() {
            if !is_reachable(&entry.prefix) {
                self.conflicts.push(Conflict::Prefix { site: self.index, path });
            }
            let place = self.place(path, entry, sets);
            let at_prefix = number(by_prefix.len());
            let at_prefix = prefixes.enter(&entry.prefix, at_prefix).unwrap_or_else(|| {
                let (prefix_len, places) = (entry.prefix.len(), Vec::new());
                by_prefix.push(PrefixPaths { prefix_len, places, up: None });
                at_prefix
            });
            let rank = narrowness(entry.reach);
            if let Some(first) = origins.insert((at_prefix, rank), path) {
                self.conflicts.push(Conflict::Path { site: self.index, first, second: path });
            }
            if let Some(at_prefix) = by_prefix.get_mut(at_prefix as usize) {
                at_prefix.places.push(place);
                at_prefix.places.sort_by_key(|place| narrowness(place.reach));
            }
        }
        self.link(&prefixes, &mut by_prefix);
        SitePaths { prefixes, by_prefix }
    }

    /// Links each prefix to the next shorter one.
    fn link(&self, prefixes: &Prefixes, by_prefix: &mut [PrefixPaths]) {
        for entry in &self.site.paths {
            let own = prefixes.longest(&entry.prefix, &mut ());
            let shorter = entry.prefix.split_last().map(|(_, shorter)| shorter);
            let up = shorter.and_then(|shorter| prefixes.longest(shorter, &mut ()));
            if let Some(at_prefix) = own.and_then(|own| by_prefix.get_mut(own as usize)) {
                at_prefix.up = up;
            }
        }
    }

    fn place(
        &mut self,
        path: usize,
        entry: &PathEntry,
        sets: &mut Vec<RequestSet>,
    ) -> CompiledPath {
        let first = number(sets.len());
        for (content, behaviour) in entry.contents.iter().enumerate() {
            self.check(path, content, entry, behaviour);
            sets.push(self.request_set(path, content, entry, behaviour));
        }
        let conditional = entry.contents.iter().filter(|content| !content.conditions.is_empty());
        if conditional.count() > MAX_CONDITIONAL {
            self.conflicts.push(Conflict::TooManyConditions { site: self.index, path });
        }
        let table = ExtensionTable::of(&entry.contents);
        for (first, second, what) in table.disputed() {
            let site = self.index;
            self.conflicts.push(Conflict::Extension { site, path, first, second, what });
        }
        let candidates = |kind: FileKind<'_>| -> Box<[u32]> {
            table.candidates(kind).into_iter().map(|content| first + number(content)).collect()
        };
        CompiledPath {
            reach: entry.reach,
            sets: first..number(sets.len()),
            named: table
                .extensions()
                .into_iter()
                .map(|extension| {
                    (extension.as_bytes().into(), candidates(FileKind::Extension(&extension)))
                })
                .collect(),
            none: candidates(FileKind::None),
            others: candidates(FileKind::Other),
        }
    }

    fn check(&mut self, path: usize, content: usize, entry: &PathEntry, behaviour: &Content) {
        let site = self.index;
        if let ContentGroup::List { extensions, .. } = &behaviour.group {
            for extension in extensions {
                let bad = |byte: &u8| matches!(byte, b'.' | b'/') || byte.is_ascii_control();
                if extension.is_empty()
                    || extension.len() > MAX_EXTENSION
                    || extension.as_bytes().iter().any(bad)
                {
                    let extension = extension.clone();
                    self.conflicts.push(Conflict::BadExtension { site, path, content, extension });
                }
            }
        }
        if let Some(Rewrite::Prefix { strip, head }) = &behaviour.rewrite
            && !is_whole(head, entry.prefix.get(*strip..))
        {
            self.conflicts.push(Conflict::Rewrite { site, path, content });
        }
        if behaviour.target().is_some_and(|text| !variables::is_target(text)) {
            self.conflicts.push(Conflict::Target { site, path, content });
        }
        let (text, is_location) = match &behaviour.action {
            Action::Redirect(redirect) => (Some(&*redirect.location), true),
            _ => (behaviour.target(), false),
        };
        for (variable, why) in
            variables::misuses(text.unwrap_or_default(), is_location, &behaviour.conditions)
        {
            self.conflicts.push(Conflict::Variable { site, path, content, variable, why });
        }
    }

    fn request_set(
        &self,
        path: usize,
        content: usize,
        entry: &PathEntry,
        behaviour: &Content,
    ) -> RequestSet {
        let prefix = String::from_utf8_lossy(&entry.prefix);
        RequestSet {
            site: SiteId(number(self.index)),
            path,
            content,
            name: format!("{} {prefix} {}", self.site.name, behaviour.group),
            prefix: entry.prefix.clone(),
            reach: entry.reach,
            behaviour: behaviour.clone(),
            doubtful: behaviour.conditions.doubtful(),
        }
    }
}

/// The order in which paths of one prefix are tried.
fn narrowness(reach: Reach) -> usize {
    match reach {
        Reach::Exact => 0,
        Reach::NoRecursion => 1,
        Reach::Recursion => 2,
    }
}

/// Whether a normalised path can begin with this prefix.
fn is_reachable(prefix: &[u8]) -> bool {
    let Some((b'/', rest)) = prefix.split_first() else { return false };
    let mut segments = rest.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        // The last one is the beginning of a segment.
        if segments.peek().is_some() && matches!(segment, b"" | b"." | b"..") {
            return false;
        }
    }
    !prefix.iter().any(u8::is_ascii_control)
}

/// Whether `head` before the rest of a prefix, and any further path, begins with one slash.
fn is_whole(head: &[u8], rest: Option<&[u8]>) -> bool {
    match (head, rest) {
        (_, None) => false,
        ([], Some(rest)) => rest.first() == Some(&b'/'),
        (head, Some(_)) => is_reachable(head),
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
