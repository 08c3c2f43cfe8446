//! Which cache objects may be answered in the kernel: those that host and path alone lead to.

use std::net::SocketAddr;
use std::sync::Arc;

use afpa_cache::Key;
use afpa_http::Method;
use afpa_module_http::Global;
use afpa_router::{Action, Question, Router, SiteId};

use crate::config::{Config, Listen};

/// The part of a configuration that the kernel can answer for.
pub(crate) struct Scope {
    router: Option<Arc<Router>>,
}

impl Scope {
    /// What may be answered for `global`.
    pub(crate) fn of(global: &Global) -> Self {
        Scope { router: global.router.clone() }
    }

    /// Whether every GET and HEAD for the key's path, at the one site that there is, is answered with
    /// the key's object.
    pub(super) fn allows(&self, key: &Key) -> bool {
        let Some(router) = &self.router else { return true };
        let verdict = router.route_in(
            SiteId(0),
            &Question {
                listener: afpa_router::ListenerId(0),
                host: "",
                method: Method::Get,
                path: &key.path,
                query: None,
                fields: (),
            },
        );
        // An object is named by the path below its root. Only where that is the URL's own path, the
        // kernel finds it under the right one.
        verdict.is_ok_and(|verdict| {
            let root = match verdict.action {
                Action::Cached { root } => Some(root.0),
                _ => None,
            };
            verdict.certain
                && root == Some(key.site)
                && verdict.path.head.is_empty()
                && verdict.path.tail.len() == key.path.len()
        })
    }
}

/// Whether the kernel can be told all of it: it knows one site, and no PROXY protocol.
pub(super) fn is_one_site(config: &Config) -> bool {
    config.sites.len() == 1
}

/// The bound addresses that the kernel may answer on.
pub(super) fn answerable(config: &Config, bound: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(site) = config.sites.first().filter(|_| is_one_site(config)) else {
        return Vec::new();
    };
    // Behind a router in front connections begin with its header, and the client is somebody else.
    if !site.proxy_from.is_empty() {
        return Vec::new();
    }
    bound.to_vec()
}

/// The TCP addresses of a configuration.
pub(super) fn addresses(config: &Config) -> Vec<SocketAddr> {
    let listen = config.sites.iter().flat_map(|site| &site.listen);
    let tcp = listen.filter_map(|listen| match listen {
        Listen::Tcp(address) => Some(*address),
        Listen::Unix(_) => None,
    });
    tcp.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Hierarchy, Machine, Overrides, Source, parse_text};

    #[test]
    fn only_what_host_and_path_alone_decide_is_allowed() {
        let text = r#"
            [[site]]
            root = "/srv"
            to = "127.0.0.1:3000"
            cached = ["html", "css"]
            [[site.path]]
            prefix = "/two/"
            root = "/other"
            [[site.path]]
            prefix = "/beta/"
            if_cookies = { beta = "*" }
            to = "127.0.0.1:3000"
            [[site.path]]
            prefix = "/post/"
            if_methods = ["POST"]
            to = "127.0.0.1:3000"
        "#;
        let source = Source::new("f", text);
        let loaded = parse_text(source, &Overrides::default(), &Machine::probe()).unwrap();
        let hierarchy = Hierarchy::of(&loaded.config, &mut |_| 0);
        let router = Router::compile(&hierarchy.table).unwrap();
        let scope = Scope { router: Some(Arc::new(router)) };
        let own = hierarchy.roots.iter().position(|root| root.is_site_root).unwrap() as u32;
        for (root, path, allowed) in [
            (own, "/a.html", true),
            (own, "/post/a.html", true),
            (own, "/a.php", false),
            (own, "/", false),
            (own, "/beta/a.html", false),
            // Another root answers for this URL, and under another path.
            (own, "/two/a.html", false),
            (1 - own, "/two/a.html", false),
            (1 - own, "/a.html", false),
        ] {
            assert_eq!(scope.allows(&Key::new(root, path.as_bytes())), allowed, "{root} {path}");
        }
        assert!(Scope { router: None }.allows(&Key::new(0, b"/anything")));
    }
}
