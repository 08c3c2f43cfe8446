//! Global data: everything that is independent of core, connection and request, swapped whole at a
//! reload.

use std::sync::Arc;

use afpa_cache::{Cache, View};
use afpa_framework::{Client, Network};
use afpa_http::{BodyLength, Request, RequestLimits};
use afpa_proxy::exchange;
use afpa_proxy::limit::Gate;
use afpa_proxy::select::Group;
use afpa_router::{Action, ListenerId, Question, RequestSetId, Router, SiteId, Unrouted, Verdict};

use crate::doc_root::DocRoot;
use crate::header::HttpHeader;
use crate::remote::client_of;

/// What the modules of all cores serve from.
pub struct Global {
    /// Decides between request sets; `None`: everything belongs to the first root.
    pub router: Option<Arc<Router>>,
    /// Document roots, by the number that the router knows them by. They share one cache.
    pub roots: Vec<Arc<DocRoot>>,
    /// Virtual sites, likewise.
    pub sites: Vec<Site>,
    /// Server groups, likewise.
    pub groups: Vec<ServerGroup>,
    /// Limits on request heads.
    pub limits: RequestLimits,
    /// Most bytes of request content that are read and thrown away to keep a connection.
    pub body_limit: u64,
    /// Most request sets that are counted each for itself; the others are counted with their site.
    pub counted_sets: usize,
}

/// What a virtual site is apart from its routes.
pub struct Site {
    /// What logs and metrics call it.
    pub name: String,
    /// Its limits on requests that go to servers.
    pub gate: Arc<Gate>,
    /// Routers in front whose X-Forwarded-For names the client.
    pub forwarded_from: Arc<[Network]>,
}

/// A server group, and how its servers are dealt with.
pub struct ServerGroup {
    /// Selection and health.
    pub group: Arc<Group>,
    /// Time-outs, limits, fields.
    pub settings: Arc<exchange::Settings>,
}

impl Global {
    /// One root, served as a whole to everybody.
    pub fn alone(site: Arc<DocRoot>) -> Arc<Global> {
        let (limits, body_limit) = (site.settings().limits, site.settings().body_limit);
        let (sites, groups) = (Vec::new(), Vec::new());
        let roots = vec![site];
        Arc::new(Global { router: None, roots, sites, groups, limits, body_limit, counted_sets: 0 })
    }

    /// The cache of all roots; `None` when there is no root.
    pub fn cache(&self) -> Option<&Arc<Cache<HttpHeader>>> {
        let cache = self.roots.first().map(|root| root.cache());
        let shared = |cache| self.roots.iter().all(|root| Arc::ptr_eq(root.cache(), cache));
        debug_assert!(cache.is_none_or(shared), "all roots share one cache");
        cache
    }

    /// A verdict that was given before for the same request and path.
    pub(crate) fn again<'r, 'q>(
        &'r self,
        routed: Routed,
        path: &'q [u8],
    ) -> Option<Verdict<'r, 'q>> {
        self.router.as_ref()?.again(routed.set, path, routed.certain)
    }

    pub(crate) fn view(&self, wake: &Arc<dyn Fn() + Send + Sync>) -> Option<View<HttpHeader>> {
        let wake = Arc::clone(wake);
        self.cache().map(|cache| cache.view(Box::new(move || wake())))
    }

    /// Where a request with a normalised path goes; `None` without a router.
    pub(crate) fn verdict<'r, 'q>(
        &'r self,
        listener: ListenerId,
        request: &'q Request<'_, 'q>,
        path: &'q [u8],
    ) -> Option<Result<Verdict<'r, 'q>, Unrouted>> {
        Some(self.router.as_ref()?.route(&question(listener, request, path)))
    }

    /// What may have a cached answer to a GET or HEAD of which the router said `verdict`.
    pub(crate) fn cached<'a>(
        &'a self,
        request: &Request<'_, '_>,
        path: &'a [u8],
        verdict: Option<Result<Verdict<'a, 'a>, Unrouted>>,
        joined: &'a mut Vec<u8>,
    ) -> Option<Cached<'a>> {
        let Some(verdict) = verdict else {
            let root = self.roots.first().filter(|root| root.serves(request.host))?;
            return Some(Cached { site: SiteId(0), set: None, root, path });
        };
        let verdict = verdict.ok()?;
        let Action::Cached { root } = verdict.action else { return None };
        let (site, set) = (verdict.site, Some(verdict.set));
        let root = self.root(root.0)?;
        Some(Cached { site, set, root, path: verdict.path.join(joined) })
    }

    /// Whether a request has more content than is thrown away for it.
    pub(crate) fn leaves_content(&self, request: &Request<'_, '_>) -> bool {
        matches!(request.body, BodyLength::Length(length) if length > self.body_limit)
    }

    /// Whom a log, if there is one, has as the client of a request to a site: routers in front name it.
    pub(crate) fn named(
        &self,
        request: &Request<'_, '_>,
        site: SiteId,
        peer: Client,
        logged: bool,
    ) -> Client {
        let site = self.sites.get(site.0 as usize);
        let site = site.filter(|site| logged && !site.forwarded_from.is_empty());
        match (peer, site) {
            (Client::Ip(address), Some(_)) => {
                client_of(request, site, Some(address)).0.map_or(peer, Client::Ip)
            }
            _ => peer,
        }
    }

    pub(crate) fn root(&self, number: u32) -> Option<&Arc<DocRoot>> {
        self.roots.get(number as usize)
    }
}

/// What is kept of a verdict while its request waits to be derived further: the router walks once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routed {
    set: RequestSetId,
    certain: bool,
}

impl Routed {
    pub(crate) fn of(verdict: &Verdict<'_, '_>) -> Self {
        Self { set: verdict.set, certain: verdict.certain }
    }
}

/// Where a cached answer may be.
pub(crate) struct Cached<'a> {
    pub(crate) site: SiteId,
    /// `None` without a router.
    pub(crate) set: Option<RequestSetId>,
    pub(crate) root: &'a Arc<DocRoot>,
    /// Below the root.
    pub(crate) path: &'a [u8],
}

/// What the router is asked about a request.
pub(crate) fn question<'q, 's>(
    listener: ListenerId,
    request: &'q Request<'s, 'q>,
    path: &'q [u8],
) -> Question<'q, &'q Request<'s, 'q>> {
    let query = request.target.query();
    let (host, method) = (request.host.name(), request.method);
    Question { listener, host, method, path, query, fields: request }
}
