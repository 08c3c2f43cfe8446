//! The paths of a site, with the roots, scripts and servers behind them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use afpa_http::Status;
use afpa_http::edits::FieldRules;
use afpa_proxy::select::Affinity;
use afpa_router::{
    Action, Conditions, Content, Fixed, GroupId, PathEntry, Reach, Redirect, Rewrite, RootId,
    Scripts,
};
use foldhash::fast::FixedState;

use super::parts::{conditions, content_group, reach, replacement};
use super::root::{Origin, Root};
use crate::fallback::Fallback;
use crate::field_rules::field_rules;
use crate::filters::RootFilter;
use crate::php::{INDEX, Php, seen_root};
use crate::site_settings::{Behaviour, ContentGroup, SiteSettings, Symlinks, UrlPath};

/// Numbers of roots. They are the operator's, so their hash needs no secret seed.
pub(super) type KnownRoots = HashMap<Root, usize, FixedState>;

/// A site while its paths are put together.
pub(super) struct Building<'c, 'h> {
    pub(super) site: &'c SiteSettings,
    /// The first site with the same settings of roots.
    pub(super) settings: usize,
    pub(super) groups: &'h HashMap<&'c str, (GroupId, Affinity)>,
    pub(super) roots: &'h mut Vec<Root>,
    pub(super) known: &'h mut KnownRoots,
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
pub(super) struct RootSettings<'c> {
    listing: bool,
    symlinks: Symlinks,
    dotfiles: bool,
    homes: Option<&'c str>,
    headers: &'c [(String, String)],
    types: &'c [(String, String)],
}

impl<'c> RootSettings<'c> {
    pub(super) fn of(site: &'c SiteSettings) -> Self {
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
    pub(super) fn paths(&mut self) -> (Vec<PathEntry>, Vec<Origin>) {
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

/// Whether a name is that of a script.
fn is_script(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("php"))
}
