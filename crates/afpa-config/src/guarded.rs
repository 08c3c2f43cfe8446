//! The parts of sites that not everybody may use.

use std::sync::Arc;

use afpa_http::Status;
use afpa_router::{Action, Conflict, Content, Fixed, PathEntry, Reach, Router, SiteEntry, Table};

use crate::access::Access;
use crate::hierarchy::{conditions, content_group, reach};
use crate::model::{Behaviour, Config, SiteSettings, UrlPath};

/// The parts of sites that not everybody may use, as request sets of their own: a request for one of them may belong to any
/// request set of the other router, for example to one that stands behind it.
#[derive(Clone, Debug, Default)]
pub struct Guarded {
    /// Its sites have the numbers of those of the configuration. Its actions mean nothing.
    pub router: Arc<Router>,
    /// The clients that may use each request set, in the order of their numbers.
    pub access: Vec<Access>,
}

impl Guarded {
    /// The guarded parts of a configuration; on an error, the conflicts between them.
    pub(crate) fn of(config: &Config) -> Result<Self, Vec<Conflict>> {
        let mut guarding = Guarding::default();
        let paths = config.sites.iter().map(|site| guarding.paths(site));
        let sites = paths.map(|paths| SiteEntry { paths, ..SiteEntry::default() });
        let table = Table { sites: sites.collect() };
        let router = Arc::new(Router::compile(&table)?);
        Ok(Guarded { router, access: guarding.access })
    }
}

/// Guarded parts while they are found.
#[derive(Default)]
struct Guarding {
    access: Vec<Access>,
}

impl Guarding {
    fn paths(&mut self, site: &SiteSettings) -> Vec<PathEntry> {
        let mut paths = Vec::new();
        let mut own = Some(&site.access).filter(|access| !access.is_open());
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
        if let Some(access) = own {
            let contents = vec![self.content(afpa_router::ContentGroup::All, None, access)];
            paths.push(PathEntry { prefix: b"/".to_vec(), reach: Reach::Recursion, contents });
        }
        paths
    }

    /// `behind`: the clients that may use the rest of the path.
    fn contents(&mut self, path: &UrlPath, behind: Option<&Access>) -> Vec<Content> {
        let own = Some(&path.behaviour.access).filter(|access| !access.is_open());
        let is_guarded = |behaviour: &Behaviour| !behaviour.access.is_open();
        let mut contents = Vec::new();
        for content in path.contents.iter().filter(|content| is_guarded(&content.behaviour)) {
            let group = content_group(&content.extensions);
            let behaviour = &content.behaviour;
            contents.push(self.content(group, Some(behaviour), &behaviour.access));
        }
        let all = afpa_router::ContentGroup::All;
        let takes_all = |contents: &[Content]| {
            contents.iter().any(|one| one.group == all && one.conditions.is_empty())
        };
        if let Some(access) = own.filter(|_| !takes_all(&contents)) {
            // The conditions of a path are those of its own answers; its content groups have theirs.
            let conditional = Some(&path.behaviour).filter(|_| path.contents.is_empty());
            contents.push(self.content(all.clone(), conditional, access));
        }
        if let Some(access) = behind.filter(|_| !takes_all(&contents)) {
            contents.push(self.content(all, None, access));
        }
        contents
    }

    fn content(
        &mut self,
        group: afpa_router::ContentGroup,
        behaviour: Option<&Behaviour>,
        access: &Access,
    ) -> Content {
        self.access.push(access.clone());
        let conditions = behaviour.map(conditions).unwrap_or_default();
        let (content_type, body) = (String::new(), Vec::new());
        let action = Action::Fixed(Fixed { status: Status::FORBIDDEN, content_type, body });
        Content { group, conditions, action, rewrite: None }
    }
}
