//! The parts of sites that not everybody may use.

use std::sync::Arc;

use afpa_http::Status;
use afpa_router::{Action, Conflict, Content, Fixed, PathEntry, Reach, Router, SiteEntry, Table};

use crate::access::{Access, BasicAuth};
use crate::forward_auth::ForwardAuth;
use crate::hierarchy::{conditions, content_group, reach};
use crate::model::Config;
use crate::site_settings::{Behaviour, SiteSettings, UrlPath};

/// The parts of sites that not everybody may use, by what they demand. Each demand is inherited by itself: a path that asks
/// for a password has the addresses of its surroundings.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    /// An address.
    pub addresses: Guards<Access>,
    /// A name and a password.
    pub passwords: Guards<BasicAuth>,
    /// The consent of a server.
    pub consents: Guards<ForwardAuth>,
}

/// Parts of sites with one kind of demand, as request sets of their own: a request for one of them may belong to any
/// request set of the other router, for example to one that stands behind it.
#[derive(Clone, Debug)]
pub struct Guards<T> {
    /// Its sites have the numbers of those of the configuration. Its actions mean nothing.
    pub router: Arc<Router>,
    /// The demand of each request set, in the order of their numbers.
    pub demands: Vec<T>,
}

impl<T> Default for Guards<T> {
    fn default() -> Self {
        Self { router: Arc::default(), demands: Vec::new() }
    }
}

impl Guarded {
    /// The guarded parts of a configuration; on an error, the conflicts between them.
    pub(crate) fn of(config: &Config) -> Result<Self, Vec<Conflict>> {
        let addresses = Guarding {
            of_site: |site| Some(&site.access).filter(|access| !access.is_open()),
            of: |behaviour| Some(&behaviour.access).filter(|access| !access.is_open()),
            demands_something: |_| true,
            demands: Vec::new(),
        };
        let passwords = Guarding {
            of_site: |site| site.basic_auth.as_ref(),
            of: |behaviour| behaviour.basic_auth.as_ref(),
            demands_something: |demand| *demand != BasicAuth::Off,
            demands: Vec::new(),
        };
        let consents = Guarding {
            of_site: |site| site.forward_auth.as_ref(),
            of: |behaviour| behaviour.forward_auth.as_ref(),
            demands_something: |demand| *demand != ForwardAuth::Off,
            demands: Vec::new(),
        };
        let (addresses, passwords) = (addresses.all(config)?, passwords.all(config)?);
        Ok(Guarded { addresses, passwords, consents: consents.all(config)? })
    }
}

/// Guarded parts while they are found.
struct Guarding<T> {
    of_site: fn(&SiteSettings) -> Option<&T>,
    of: fn(&Behaviour) -> Option<&T>,
    /// Whether it demands something: where nothing of a site does, nothing is guarded.
    demands_something: fn(&T) -> bool,
    demands: Vec<T>,
}

impl<T: Clone> Guarding<T> {
    fn all(mut self, config: &Config) -> Result<Guards<T>, Vec<Conflict>> {
        let paths = config.sites.iter().map(|site| self.paths(site));
        let sites = paths.map(|paths| SiteEntry { paths, ..SiteEntry::default() });
        let table = Table { sites: sites.collect() };
        let router = Arc::new(Router::compile(&table)?);
        Ok(Guards { router, demands: self.demands })
    }

    fn paths(&mut self, site: &SiteSettings) -> Vec<PathEntry> {
        let mut paths = Vec::new();
        if !self.all_of(site).any(self.demands_something) {
            return paths;
        }
        let mut own = (self.of_site)(site);
        for path in &site.paths {
            let behind = own.filter(|_| path.is_whole_site());
            let contents = self.contents(path, behind);
            if contents.is_empty() {
                continue;
            }
            own = own.filter(|_| !path.is_whole_site());
            let prefix = path.prefix.clone().into_bytes();
            paths.push(PathEntry { prefix, reach: reach(path), contents });
        }
        if let Some(demand) = own {
            let contents = vec![self.content(afpa_router::ContentGroup::All, None, demand)];
            paths.push(PathEntry { prefix: b"/".to_vec(), reach: Reach::Recursion, contents });
        }
        paths
    }

    /// Every demand in a site.
    fn all_of<'c>(&self, site: &'c SiteSettings) -> impl Iterator<Item = &'c T> + use<'c, T>
    where
        T: 'c,
    {
        let of = self.of;
        let places = site.places().filter_map(move |place| of(place.behaviour));
        (self.of_site)(site).into_iter().chain(places)
    }

    /// `behind`: the demand of the rest of the path.
    fn contents(&mut self, path: &UrlPath, behind: Option<&T>) -> Vec<Content> {
        let (of, own) = (self.of, (self.of)(&path.behaviour));
        let mut contents = Vec::new();
        for content in &path.contents {
            let behaviour = &content.behaviour;
            if let Some(demand) = of(behaviour) {
                let group = content_group(&content.extensions);
                contents.push(self.content(group, Some(behaviour), demand));
            }
        }
        let all = afpa_router::ContentGroup::All;
        let takes_all = |contents: &[Content]| {
            contents.iter().any(|one| one.group == all && one.conditions.is_empty())
        };
        if let Some(demand) = own.filter(|_| !takes_all(&contents)) {
            // The conditions of a path are those of its own answers; its content groups have theirs.
            let conditional = Some(&path.behaviour).filter(|_| path.contents.is_empty());
            contents.push(self.content(all.clone(), conditional, demand));
        }
        if let Some(demand) = behind.filter(|_| !takes_all(&contents)) {
            contents.push(self.content(all, None, demand));
        }
        contents
    }

    fn content(
        &mut self,
        group: afpa_router::ContentGroup,
        behaviour: Option<&Behaviour>,
        demand: &T,
    ) -> Content {
        self.demands.push(demand.clone());
        let conditions = behaviour.map(conditions).unwrap_or_default();
        let (content_type, body) = (String::new(), Vec::new());
        let action = Action::Fixed(Fixed { status: Status::FORBIDDEN, content_type, body });
        Content { group, conditions, action, rewrite: None }
    }
}
