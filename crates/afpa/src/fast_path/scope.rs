//! Which cache objects may be answered in the kernel, and under which URLs: those that host and path
//! alone lead to.

use std::sync::Arc;

use afpa_cache::Key;
use afpa_http::Method;
use afpa_module_http::Global;
use afpa_router::{Action, ListenerId, Question, RequestSet, Router, SiteId};

/// The part of what is served that the kernel can answer.
pub(crate) struct Scope {
    router: Option<Arc<Router>>,
    /// Where each root stands in URLs.
    ways: Vec<Vec<Way>>,
    /// What logs and metrics call each site.
    names: Vec<String>,
}

/// From URLs to a root.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    site: SiteId,
    /// What URLs of the site have before the path below the root.
    head: Box<[u8]>,
}

/// Places in URLs at which one root is looked for: each of its objects is pinned at every one of them.
const MOST_WAYS: usize = 8;

impl Scope {
    /// What may be answered for `global`.
    pub(crate) fn of(global: &Global) -> Self {
        let names = global.sites.iter().map(|site| site.name.clone()).collect();
        Scope::new(global.router.clone(), global.roots.len(), names)
    }

    fn new(router: Option<Arc<Router>>, roots: usize, names: Vec<String>) -> Self {
        let mut ways = vec![Vec::new(); roots];
        for set in router.iter().flat_map(|router| router.sets()) {
            let Some((root, way)) = way(set) else { continue };
            let Some(known) = ways.get_mut(root).filter(|known| known.len() < MOST_WAYS) else {
                continue;
            };
            if !known.contains(&way) {
                known.push(way);
            }
        }
        Scope { router, ways, names }
    }

    /// What the sites are called, in the order of the configuration.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Sites, by their place in the configuration, and their URL paths for which every GET and HEAD is
    /// answered with the key's object, whatever its fields are.
    pub(super) fn urls(&self, key: &Key) -> Vec<(usize, Vec<u8>)> {
        let Some(router) = &self.router else { return vec![(0, key.path.to_vec())] };
        let ways = self.ways.get(key.site as usize).into_iter().flatten();
        let urls = ways.map(|way| (way.site, [&way.head, &key.path[..]].concat()));
        urls.filter(|(site, url)| leads(router, *site, url, key))
            .map(|(site, url)| (site.0 as usize, url))
            .collect()
    }
}

/// By which URLs a request set may lead to its root; `None`: it has none.
fn way(set: &RequestSet) -> Option<(usize, Way)> {
    let Action::Cached { root } = set.behaviour.action else { return None };
    let head = match &set.behaviour.rewrite {
        None => &[][..],
        // What more than a prefix gives way is not to be guessed from the path below the root.
        Some(rewrite) if rewrite.head.is_empty() => set.prefix.get(..rewrite.strip)?,
        Some(_) => return None,
    };
    Some((root.0 as usize, Way { site: set.site, head: head.into() }))
}

/// Whether the router certainly leads from the URL to the object.
fn leads(router: &Router, site: SiteId, url: &[u8], key: &Key) -> bool {
    let question = Question {
        listener: ListenerId(0),
        host: "",
        method: Method::Get,
        path: url,
        query: None,
        fields: (),
    };
    let Ok(verdict) = router.route_in(site, &question) else { return false };
    let Action::Cached { root } = verdict.action else { return false };
    verdict.certain && root.0 == key.site && *verdict.path.join(&mut Vec::new()) == *key.path
}

#[cfg(test)]
mod tests {
    use super::*;
    use afpa_config::{Hierarchy, Machine, Overrides, Source, parse_text};

    fn scope(text: &str) -> (Scope, Hierarchy) {
        let source = Source::new("f", text);
        let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
        let hierarchy = Hierarchy::of(&loaded.config, &mut |_| 0);
        let router = Router::compile(&hierarchy.table).unwrap();
        let roots = hierarchy.roots.len();
        (Scope::new(Some(Arc::new(router)), roots, Vec::new()), hierarchy)
    }

    fn root(hierarchy: &Hierarchy, directory: &str) -> u32 {
        let found = hierarchy.roots.iter().position(|root| root.directory.ends_with(directory));
        found.unwrap() as u32
    }

    fn urls(scope: &Scope, root: u32, path: &str) -> Vec<(usize, String)> {
        let urls = scope.urls(&Key::new(root, path.as_bytes()));
        urls.into_iter().map(|(site, url)| (site, String::from_utf8(url).unwrap())).collect()
    }

    #[test]
    fn only_what_host_and_path_alone_decide_is_allowed() {
        let (scope, hierarchy) = scope(
            r#"
            [[site]]
            root = "/srv"
            to = "127.0.0.1:3000"
            cached = ["html", "css"]
            [[site.path]]
            prefix = "/two/"
            root = "/other"
            [[site.path]]
            prefix = "/two/private/"
            to = "127.0.0.1:3000"
            [[site.path]]
            prefix = "/beta/"
            if_cookies = { beta = "*" }
            to = "127.0.0.1:3000"
            [[site.path]]
            prefix = "/post/"
            if_methods = ["POST"]
            to = "127.0.0.1:3000"
        "#,
        );
        let (own, other) = (root(&hierarchy, "srv"), root(&hierarchy, "other"));
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
        let plain = Scope::new(None, 1, Vec::new());
        assert_eq!(urls(&plain, 0, "/anything"), [(0, "/anything".to_owned())]);
    }

    #[test]
    fn a_root_belongs_to_its_site_and_may_stand_in_several_places() {
        let (scope, hierarchy) = scope(
            r#"
            [[site]]
            hosts = ["a.org"]
            root = "/one"
            [[site]]
            hosts = ["b.org"]
            root = "/two"
            [[site.path]]
            prefix = "/x/"
            root = "/shared"
            [[site.path]]
            prefix = "/y/"
            root = "/shared"
            [[site]]
            hosts = ["c.org"]
            to = "127.0.0.1:3000"
        "#,
        );
        let url = |site, url: &str| (site, url.to_owned());
        let at = |directory| root(&hierarchy, directory);
        assert_eq!(urls(&scope, at("one"), "/a"), [url(0, "/a")]);
        assert_eq!(urls(&scope, at("two"), "/a"), [url(1, "/a")]);
        assert_eq!(urls(&scope, at("shared"), "/a"), [url(1, "/x/a"), url(1, "/y/a")]);
        assert_eq!(urls(&scope, 99, "/a"), []);
    }
}
