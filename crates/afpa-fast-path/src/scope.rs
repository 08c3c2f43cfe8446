//! Which cache objects the kernel may answer with, and under which URLs: those that host and path alone
//! lead to.

use std::sync::Arc;

use afpa_cache::Key;
use afpa_http::Method;
use afpa_module_http::{Global, Guards};
use afpa_router::{
    Action, ListenerId, Question, RequestSet, RequestSetId, Rewrite, Router, SiteId,
};
use afpa_shared_cache::Responses;

use crate::answer_scope::AnswerScope;

/// The part of the configuration for which the kernel can answer.
pub struct KernelScope {
    router: Option<Arc<Router>>,
    /// For each root, the URLs that lead to it.
    ways: Vec<Vec<Way>>,
    /// Ways that are beyond the most of their root.
    left_out: usize,
    /// The name of each site in logs and metrics.
    names: Vec<String>,
    /// The requests that kept answers of servers may answer, and these answers.
    answers: Option<(AnswerScope, Arc<Responses>)>,
    /// The parts that not everybody may use, and for each root the names of its index files.
    guards: Option<(Arc<Guards>, Vec<Vec<String>>)>,
    /// By the number of the request set, whether its requests are counted, so that the kernel answers none of them.
    counted: Vec<bool>,
}

/// From URLs to a root.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    site: SiteId,
    /// The bytes that URLs of the site have before the path below the root.
    head: Box<[u8]>,
}

/// Most ways to one root: each of its objects is pinned once for every way.
pub const MOST_WAYS: usize = 8;

impl KernelScope {
    /// The scope of the configuration `global`.
    pub fn of(global: &Global) -> Self {
        let names = global.sites.iter().map(|site| site.name.clone()).collect();
        let answers = AnswerScope::of(global).zip(global.responses.clone());
        let fields = global.fields.sets.iter();
        let by_request =
            fields.map(|rules| rules.as_ref().is_some_and(|rules| rules.differs_by_request()));
        let by_request: Vec<bool> = by_request.collect();
        let files = KernelScope::new(global.router.clone(), global.roots.len(), names, &by_request);
        if files.left_out > 0 {
            tracing::info!(
                ways = files.left_out,
                "the kernel answers for files of one root by {MOST_WAYS} sites or prefixes; these are served from user mode"
            );
        }
        let index = || global.roots.iter().map(|root| root.settings().index.clone()).collect();
        let guards = global.guards.as_ref().map(|guards| (Arc::clone(guards), index()));
        let sets = global.router.as_ref().map_or(0, |router| router.sets().len());
        let counted = (0..sets).map(|set| global.rates.counts(set)).collect();
        KernelScope { answers, guards, counted, ..files }
    }

    /// The part of the answers of servers, which is cached elsewhere.
    pub(crate) fn take_answers(&mut self) -> Option<(AnswerScope, Arc<Responses>)> {
        self.answers.take()
    }

    /// `by_request`: which request sets have answers that differ from request to request.
    fn new(
        router: Option<Arc<Router>>,
        roots: usize,
        names: Vec<String>,
        by_request: &[bool],
    ) -> Self {
        let (mut ways, mut left_out) = (vec![Vec::new(); roots], 0);
        let sets = router.iter().flat_map(|router| router.sets()).enumerate();
        let same = |number: &usize| by_request.get(*number) != Some(&true);
        for (_, set) in sets.filter(|(number, _)| same(number)) {
            let Some((root, way)) = way(set) else { continue };
            let Some(known) = ways.get_mut(root) else { continue };
            match known.contains(&way) {
                true => {}
                false if known.len() < MOST_WAYS => known.push(way),
                false => left_out += 1,
            }
        }
        let (answers, guards, counted) = (None, None, Vec::new());
        KernelScope { router, ways, left_out, names, answers, guards, counted }
    }

    /// Whether not everybody may use an object by a URL.
    fn guards(&self, site: SiteId, url: &[u8], key: &Key) -> bool {
        let Some((guards, index)) = &self.guards else { return false };
        let index = index.get(key.site as usize).map_or(&[][..], |index| index);
        guards.may_refuse(site, url, index)
    }

    /// The names of the sites, in the order of the configuration.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Sites, by their place in the configuration, and their URL paths for which every GET and HEAD is
    /// answered with the key's object, for any request fields.
    pub(crate) fn urls(&self, key: &Key) -> Vec<(usize, Vec<u8>)> {
        let Some(router) = &self.router else { return vec![(0, key.path.to_vec())] };
        let ways = self.ways.get(key.site as usize).into_iter().flatten();
        let urls = ways.map(|way| (way.site, [&way.head, &key.path[..]].concat()));
        let leads = |site, url: &[u8]| {
            leads(router, site, url, key)
                .is_some_and(|set| self.counted.get(set.0 as usize) != Some(&true))
        };
        urls.filter(|(site, url)| leads(*site, url) && !self.guards(*site, url, key))
            .map(|(site, url)| (site.0 as usize, url))
            .collect()
    }
}

/// The URLs by which a request set may lead to its root. `None`: it has no root, or they do not follow from the path.
fn way(set: &RequestSet) -> Option<(usize, Way)> {
    let Action::Cached { root, .. } = set.behaviour.action else { return None };
    Some((root.0 as usize, Way { site: set.site, head: head(set)?.into() }))
}

/// Whether a request set is left to user mode because others have taken all ways to its root before it.
pub fn is_left_out(router: &Router, set: &RequestSet) -> bool {
    let Some((root, own)) = way(set) else { return false };
    let mut known = Vec::new();
    for (_, way) in router.sets().iter().filter_map(way).filter(|(other, _)| *other == root) {
        if way == own {
            return false;
        }
        if !known.contains(&way) {
            known.push(way);
        }
        if known.len() == MOST_WAYS {
            return true;
        }
    }
    false
}

/// The bytes that URLs of a request set have before the path that is asked for below its root, or of its servers. `None`:
/// the URLs do not follow from that path, because more than a prefix is replaced.
pub(crate) fn head(set: &RequestSet) -> Option<&[u8]> {
    match &set.behaviour.rewrite {
        None => Some(&[]),
        Some(Rewrite::Prefix { strip, head }) if head.is_empty() => set.prefix.get(..*strip),
        Some(_) => None,
    }
}

/// The request set by which the router certainly leads from the URL to the object.
fn leads(router: &Router, site: SiteId, url: &[u8], key: &Key) -> Option<RequestSetId> {
    let (action, set) = certainly(router, site, url, &key.path)?;
    let is_it = matches!(action, Action::Cached { root, .. } if root.0 == key.site);
    is_it.then_some(set)
}

/// A router's action for every GET and HEAD of a URL, and the request set that decides it, if that is certain and the
/// path then asked for is `path`.
pub(crate) fn certainly<'r>(
    router: &'r Router,
    site: SiteId,
    url: &[u8],
    path: &[u8],
) -> Option<(&'r Action, RequestSetId)> {
    let question = Question {
        listener: ListenerId(0),
        host: "",
        method: Method::Get,
        path: url,
        query: None,
        fields: (),
    };
    let verdict = router.route_in(site, &question).ok()?;
    let is_it = verdict.certain && *verdict.path.join(&mut Vec::new()) == *path;
    is_it.then_some((verdict.action, verdict.set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_router::{
        Conditions, Content, ContentGroup, FieldCondition, FieldSource, GroupId, PathEntry,
        Pattern, Reach, RootId, SiteEntry, Table,
    };

    const SERVER: Action =
        Action::Distributed { group: GroupId(0), affinity: afpa_router::Affinity::None };

    fn scope(sites: Vec<Vec<PathEntry>>, roots: usize) -> KernelScope {
        let sites = sites.into_iter().map(|paths| SiteEntry { paths, ..SiteEntry::default() });
        let table = Table { sites: sites.collect() };
        KernelScope::new(Some(Arc::new(Router::compile(&table).unwrap())), roots, Vec::new(), &[])
    }

    fn cached(root: u32) -> Action {
        Action::Cached { root: RootId(root), fallback: None, scripts: None }
    }

    fn path(prefix: &str, contents: Vec<Content>) -> PathEntry {
        PathEntry { prefix: prefix.into(), reach: Reach::Recursion, contents }
    }

    fn content(action: Action) -> Content {
        let (group, conditions) = (ContentGroup::All, Conditions::default());
        Content { group, conditions, action, rewrite: None }
    }

    /// A path with a directory of its own: its prefix gives way, but for the last slash.
    fn directory(prefix: &str, root: u32) -> PathEntry {
        let rewrite = Some(Rewrite::Prefix { strip: prefix.len() - 1, head: Vec::new() });
        path(prefix, vec![Content { rewrite, ..content(cached(root)) }])
    }

    fn urls(scope: &KernelScope, root: u32, path: &str) -> Vec<(usize, String)> {
        let urls = scope.urls(&Key::new(root, path.as_bytes()));
        urls.into_iter().map(|(site, url)| (site, String::from_utf8(url).unwrap())).collect()
    }

    #[test]
    fn only_what_host_and_path_alone_decide_is_allowed() {
        let (own, other) = (0, 1);
        let extensions = ["html", "css"].map(str::to_owned).to_vec();
        let files = ContentGroup::List { extensions, none: false, others: false };
        let cookie = FieldCondition {
            source: FieldSource::Cookie,
            name: "beta".to_owned(),
            value: Pattern::new("*"),
        };
        let beta = Conditions { fields: vec![cookie], ..Conditions::default() };
        let post = Conditions { methods: vec!["POST".to_owned()], ..Conditions::default() };
        let scope = scope(
            vec![vec![
                path("/", vec![Content { group: files, ..content(cached(own)) }, content(SERVER)]),
                directory("/two/", other),
                path("/two/private/", vec![content(SERVER)]),
                path("/beta/", vec![Content { conditions: beta, ..content(SERVER) }]),
                path("/post/", vec![Content { conditions: post, ..content(SERVER) }]),
            ]],
            2,
        );
        for (root, path, url) in [
            (own, "/a.html", Some("/a.html")),
            (own, "/post/a.html", Some("/post/a.html")),
            (own, "/a.php", None),
            (own, "/", None),
            (own, "/beta/a.html", None),
            // Another root answers for this URL.
            (own, "/two/a.html", None),
            (other, "/a.html", Some("/two/a.html")),
            (other, "/", Some("/two/")),
            (other, "/two/a.html", Some("/two/two/a.html")),
            (other, "/private/a.html", None),
        ] {
            let expected: Vec<_> = url.iter().map(|url| (0, (*url).to_owned())).collect();
            assert_eq!(urls(&scope, root, path), expected, "{root} {path}");
        }
        let plain = KernelScope::new(None, 1, Vec::new(), &[]);
        assert_eq!(urls(&plain, 0, "/anything"), [(0, "/anything".to_owned())]);
    }

    #[test]
    fn ways_beyond_the_most_are_counted() {
        let sites = (0..MOST_WAYS + 3).map(|_| vec![path("/", vec![content(cached(0))])]);
        let scope = scope(sites.collect(), 1);
        assert_eq!((urls(&scope, 0, "/a").len(), scope.left_out), (MOST_WAYS, 3));
        let router = scope.router.as_ref().unwrap();
        let left_out = router.sets().iter().map(|set| is_left_out(router, set));
        let expected = (0..MOST_WAYS + 3).map(|site| site >= MOST_WAYS);
        assert!(left_out.eq(expected));
    }

    #[test]
    fn a_root_belongs_to_its_site_and_may_stand_in_several_places() {
        let (one, two, shared) = (0, 1, 2);
        let scope = scope(
            vec![
                vec![path("/", vec![content(cached(one))])],
                vec![
                    path("/", vec![content(cached(two))]),
                    directory("/x/", shared),
                    directory("/y/", shared),
                ],
                vec![path("/", vec![content(SERVER)])],
            ],
            3,
        );
        let url = |site, url: &str| (site, url.to_owned());
        assert_eq!(urls(&scope, one, "/a"), [url(0, "/a")]);
        assert_eq!(urls(&scope, two, "/a"), [url(1, "/a")]);
        assert_eq!(urls(&scope, shared, "/a"), [url(1, "/x/a"), url(1, "/y/a")]);
        assert_eq!(urls(&scope, 99, "/a"), []);
    }
}
