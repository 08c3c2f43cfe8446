//! Global data: everything that is independent of core, connection and request. A reload replaces it as
//! a whole.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use afpa_cache::watch::{Summary, Watcher};
use afpa_cache::{Cache, View};
use afpa_framework::{Client, Now, Secured};
use afpa_http::edits::{Edits, FieldRules};
use afpa_http::{BodyLength, Host, Method, Request, RequestLimits};
use afpa_police::Police;
use afpa_proxy::coding::CodingRules;
use afpa_proxy::exchange;
use afpa_proxy::request::Origin;
use afpa_proxy::select::Group;
use afpa_router::{Action, GroupId, ListenerId, RequestSet, RequestSetId, Router, SiteId};
use afpa_shared_cache::{CacheRequest, KernelRules, Responses, SiteCache, StoredResponse};

use crate::doc_root::DocRoot;
use crate::errors::{ErrorPages, PageFile};
use crate::guard::Guards;
use crate::header::HttpHeader;
use crate::mirror::Mirrors;
use crate::rates::Rates;
use crate::remote::{self, Distributed};
use crate::scope_stats::ScopeTable;
use crate::script::seen_scheme;
use crate::site::Site;

/// The settings and tables that the modules of all cores share. The default serves nothing.
#[derive(Default)]
pub struct Global {
    /// Decides between request sets. `None`: every request goes to the first root.
    pub router: Option<Arc<Router>>,
    /// Document roots, by the number that the router has for them. They share one cache.
    pub roots: Vec<Arc<DocRoot>>,
    /// The addresses of listeners, likewise; `None` for unix sockets.
    pub listeners: Vec<Option<SocketAddr>>,
    /// Sites, likewise.
    pub sites: Vec<Site>,
    /// Server groups, likewise.
    pub groups: Vec<ServerGroup>,
    /// The answers of servers that are kept, for all sites.
    pub responses: Option<Arc<Responses>>,
    /// How a request set uses them, by its number; `None`: not at all.
    pub caches: Vec<Option<SiteCache>>,
    /// The parts of sites that not everybody may use, if there are any.
    pub guards: Option<Arc<Guards>>,
    /// The changes of fields.
    pub fields: Fields,
    /// The operator's own error pages.
    pub errors: ErrorTables,
    /// The compression of servers' answers.
    pub codings: Codings,
    /// The settings of exchanges in places with limits of their own.
    pub exchanges: Exchanges,
    /// Other groups that get requests to servers as well.
    pub mirrors: Mirrors,
    /// How often clients may ask.
    pub rates: Rates,
    /// Limits on request heads.
    pub limits: RequestLimits,
    /// Most bytes of request content that are read and thrown away to keep a connection.
    pub body_limit: u64,
    /// How many request sets have counters of their own; the others are counted with their site.
    pub counted_sets: usize,
    /// Other machines that ask this one for answers.
    pub peers: PeerPlaces,
    /// Decides which clients' requests are answered, and how often.
    pub police: Police,
    /// Answers to the challenges of an authority for certificates, if there is one.
    pub challenges: Option<Challenges>,
}

/// The content by which the challenge with a token is answered (RFC 8555 section 8.3); `None`: nobody waits for it.
pub type Challenges = Arc<dyn Fn(&str) -> Option<Arc<str>> + Send + Sync>;

/// The path of such an answer, before the token.
const CHALLENGE: &[u8] = b"/.well-known/acme-challenge/";

/// The changes of fields, which the router's request sets and sites have.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// Of a request set, by its number.
    pub sets: Vec<Option<Arc<FieldRules>>>,
    /// Of a site, for requests that belong to no set.
    pub sites: Vec<Option<Arc<FieldRules>>>,
}

impl Fields {
    /// The changes for a request set.
    #[inline]
    pub fn of_set(&self, set: RequestSetId) -> Option<&Arc<FieldRules>> {
        self.sets.get(set.0 as usize)?.as_ref()
    }

    pub(crate) fn of_site(&self, site: SiteId) -> Option<&Arc<FieldRules>> {
        self.sites.get(site.0 as usize)?.as_ref()
    }
}

/// Where other machines ask this one for answers.
#[derive(Clone, Debug, Default)]
pub struct PeerPlaces {
    /// The listener at which they ask; `None`: they do not.
    pub listener: Option<ListenerId>,
    /// Request sets by the digest of their rules.
    pub sets: HashMap<[u8; 16], RequestSetId>,
}

/// The compression of servers' answers, which some request sets have.
#[derive(Clone, Debug, Default)]
pub struct Codings {
    /// Whether a request set has it, by its number.
    pub sets: Vec<bool>,
    /// Which answers; `None`: none.
    pub rules: Option<Arc<CodingRules>>,
}

impl Codings {
    /// The compression of a request set.
    #[inline]
    pub(crate) fn of(&self, set: Option<RequestSetId>) -> Option<&Arc<CodingRules>> {
        let has_it = self.sets.get(set?.0 as usize).is_some_and(|has_it| *has_it);
        self.rules.as_ref().filter(|_| has_it)
    }
}

/// The settings of exchanges of request sets with limits of their own.
#[derive(Clone, Debug, Default)]
pub struct Exchanges {
    /// The settings of each request set, by its number, with each server group that it asks; empty: no request set has any.
    pub sets: Vec<Vec<(GroupId, Arc<exchange::Settings>)>>,
}

impl Exchanges {
    /// The settings of a request set with a group; `None`: the group's own.
    #[inline]
    pub(crate) fn of(
        &self,
        set: Option<RequestSetId>,
        group: GroupId,
    ) -> Option<&Arc<exchange::Settings>> {
        let own = self.sets.get(set?.0 as usize)?;
        own.iter().find(|(known, _)| *known == group).map(|(_, settings)| settings)
    }
}

/// The operator's own error pages, which the router's request sets and sites have.
#[derive(Debug, Default)]
pub struct ErrorTables {
    /// Of a request set, by its number.
    pub sets: Vec<Option<Arc<ErrorPages>>>,
    /// Of a site, for requests that belong to no set.
    pub sites: Vec<Option<Arc<ErrorPages>>>,
    /// The files of all of them.
    pub files: Vec<Arc<PageFile>>,
}

impl ErrorTables {
    /// The pages of the request set, if there is one, else of the site.
    #[inline]
    pub(crate) fn of(
        &self,
        scope: Option<(SiteId, Option<RequestSetId>)>,
    ) -> Option<&Arc<ErrorPages>> {
        match scope? {
            (_, Some(set)) => self.sets.get(set.0 as usize)?.as_ref(),
            (site, None) => self.sites.get(site.0 as usize)?.as_ref(),
        }
    }
}

/// A server group, and the settings of exchanges with its servers.
pub struct ServerGroup {
    /// Selection and health.
    pub group: Arc<Group>,
    /// Time-outs, limits, fields.
    pub settings: Arc<exchange::Settings>,
}

impl Global {
    /// The changes of fields of an answer to input that is not taken for a request: those of the site for its host, as far as
    /// they depend on no path.
    pub(crate) fn edits_of_refusal(&self, listener: ListenerId, host: &[u8]) -> Option<Edits<'_>> {
        let host = Host::parse(host).unwrap_or(Host::ABSENT);
        let site = self.router.as_ref()?.site(listener, host.name())?;
        let rules = self.fields.of_site(site)?;
        Some(Edits { rules, mask: rules.mask(b""), origin: None, marks: None })
    }

    /// One document root, served as a whole to everybody.
    pub fn alone(root: Arc<DocRoot>) -> Arc<Global> {
        let (limits, body_limit) = (root.settings().limits, root.settings().body_limit);
        let (listeners, sites, groups) = (Vec::new(), Vec::new(), Vec::new());
        let roots = vec![root];
        let (counted_sets, police) = (0, Police::default());
        let (router, challenges) = (None, None);
        let (responses, caches) = (None, Vec::new());
        Arc::new(Global {
            router,
            roots,
            listeners,
            sites,
            groups,
            responses,
            caches,
            guards: None,
            fields: Fields::default(),
            errors: ErrorTables::default(),
            codings: Codings::default(),
            exchanges: Exchanges::default(),
            mirrors: Mirrors::default(),
            rates: Rates::default(),
            limits,
            body_limit,
            counted_sets,
            peers: PeerPlaces::default(),
            police,
            challenges,
        })
    }

    /// The cache of all roots; `None` when there is no root.
    pub fn cache(&self) -> Option<&Arc<Cache<HttpHeader>>> {
        let cache = self.roots.first().map(|root| root.cache());
        let shared = |cache| self.roots.iter().all(|root| Arc::ptr_eq(root.cache(), cache));
        debug_assert!(cache.is_none_or(shared), "all roots share one cache");
        cache
    }

    pub(crate) fn view(&self, wake: &Arc<dyn Fn() + Send + Sync>) -> Option<View<HttpHeader>> {
        let wake = Arc::clone(wake);
        self.cache().map(|cache| cache.view(Box::new(move || wake())))
    }

    pub(crate) fn response_view(
        &self,
        wake: &Arc<dyn Fn() + Send + Sync>,
    ) -> Option<View<StoredResponse>> {
        self.responses.as_ref().map(|responses| responses.view(wake))
    }

    /// The counters of the sites and request sets that there are now. A scope that was there before, by
    /// name, goes on counting.
    pub(crate) fn scopes(&self, previous: &ScopeTable) -> ScopeTable {
        let sets = self.router.as_ref().map_or(&[][..], |router| router.sets());
        let sites = self.sites.iter().map(|site| &*site.name);
        ScopeTable::new(sites, sets, self.counted_sets, previous)
    }

    /// Whether a request has more content than is thrown away for it.
    pub(crate) fn leaves_content(&self, request: &Request<'_, '_>) -> bool {
        matches!(request.body, BodyLength::Length(length) if length > self.body_limit)
    }

    /// The client of a request to a site, as the access log names it.
    pub(crate) fn logged_client(
        &self,
        request: &Request<'_, '_>,
        site: Option<SiteId>,
        peer: Client,
    ) -> Client {
        let site = site.and_then(|site| self.sites.get(site.0 as usize));
        site.map_or(peer, |site| site.logged_client(request, peer))
    }

    /// The client whose share a request takes, whether or not there is an access log. A router in front that the site
    /// believes has none: behind it may be anybody.
    pub(crate) fn sharer(
        &self,
        request: &Request<'_, '_>,
        site: Option<SiteId>,
        peer: Client,
    ) -> Option<IpAddr> {
        let Client::Ip(client) = self.logged_client(request, site, peer) else { return None };
        let site = site.and_then(|site| self.sites.get(site.0 as usize));
        remote::sharer(self, site, Some(client))
    }

    /// Whether a peer is a router in front that the site believes.
    pub(crate) fn trusts(&self, site: Option<SiteId>, peer: Client) -> bool {
        let site = site.and_then(|site| self.sites.get(site.0 as usize));
        site.is_some_and(|site| site.trusts(peer))
    }

    /// The answer to a challenge, whatever site the request is for. The token is enough: the part that orders
    /// certificates knows the names.
    pub(crate) fn challenge(&self, request: &Request<'_, '_>) -> Option<Arc<str>> {
        let challenges = self.challenges.as_ref()?;
        let plain = matches!(request.method, Method::Get | Method::Head)
            && request.body == BodyLength::None;
        let token = request.target.path().filter(|_| plain)?.strip_prefix(CHALLENGE)?;
        challenges(std::str::from_utf8(token).ok()?)
    }

    /// Whether a connection may be used for a site, as far as the client's certificate is concerned.
    #[inline]
    pub(crate) fn admits(&self, site: SiteId, tls: Option<&Secured>) -> bool {
        self.sites.get(site.0 as usize).is_none_or(|site| site.admits(tls))
    }

    /// Whether the server of a request gets the subject of the client's certificate. Its answer is for that client
    /// then.
    pub(crate) fn tells_subject(&self, to: &Distributed<'_>, tls: Option<&Secured>) -> bool {
        let group = self.groups.get(to.group.0 as usize);
        let site = self.sites.get(to.site.0 as usize);
        let subject = site.zip(tls).and_then(|(site, tls)| site.subject(tls));
        subject.is_some()
            && group.is_some_and(|group| group.settings.request.client_subject.is_some())
    }

    /// The value of Strict-Transport-Security for a site.
    pub(crate) fn hsts(&self, site: Option<SiteId>) -> Option<&Arc<str>> {
        self.sites.get(site?.0 as usize)?.hsts.as_ref()
    }

    /// A distributed request of a request set as the cache sees it, if it has one.
    pub(crate) fn shared_request<'a, 's, 'b>(
        &'a self,
        request: &'a Request<'s, 'b>,
        (to, set): (&Distributed<'a>, RequestSetId),
        (client, tls, now): (Client, Option<&Secured>, Now),
    ) -> Option<CacheRequest<'a, 's, 'b>> {
        let cache = self.caches.get(set.0 as usize)?.as_ref()?;
        let site = self.sites.get(to.site.0 as usize)?;
        let exchange = &*self.groups.get(to.group.0 as usize)?.settings;
        let trusted = site.trusts(client);
        let origin = Origin { trusted, secure: tls.is_some(), ..Origin::default() };
        // A script learns the scheme that a router in front names, whatever fields it gets (HTTPS and REQUEST_SCHEME).
        let is_told = to.script.is_some() && seen_scheme(request, origin) == b"https";
        let origin = Origin { secure: origin.secure || is_told, ..origin };
        let names_client = self.tells_subject(to, tls);
        let is_early = tls.is_some_and(|tls| tls.is_early);
        Some(CacheRequest {
            cache,
            exchange,
            origin,
            request,
            url: to.url,
            path: to.path,
            sent: self.sent(request, (to, set)),
            client,
            is_early,
            names_client,
            now,
        })
    }

    /// The target that the client has sent, if the server learns more of it than the URL tells: REQUEST_URI of a script is the path
    /// before all rewrites, and in the client's own spelling; the operator's changes of a request go by the path before a rewrite.
    fn sent<'b>(
        &self,
        request: &Request<'_, 'b>,
        (to, set): (&Distributed<'_>, RequestSetId),
    ) -> Option<&'b [u8]> {
        let is_rewritten = request.rewrites > 0;
        let asks_by_path = || self.fields.of_set(set).is_some_and(|rules| rules.asks_by_path());
        match to.script {
            Some(_) => (is_rewritten || request.target.path() != Some(to.url))
                .then_some(request.raw_target),
            None if is_rewritten && asks_by_path() => request.sent_target().path(),
            None => None,
        }
    }

    /// How the kernel may answer for a request set with kept answers of servers; `None`: not at all.
    pub fn kernel_rules(&self, number: usize, set: &RequestSet) -> Option<KernelRules> {
        let cache = self.caches.get(number)?.as_ref()?;
        // The kernel counts no request by its place.
        if self.rates.counts(number) {
            return None;
        }
        // Changes of fields are made when an answer is sent.
        let rules = self.fields.sets.get(number).and_then(Option::as_ref);
        if rules.is_some_and(|rules| rules.changes_answers()) {
            return None;
        }
        let Action::Distributed { group, .. } = set.behaviour.action else { return None };
        let exchange = &self.groups.get(group.0 as usize)?.settings;
        let site = self.sites.get(set.site.0 as usize)?;
        KernelRules::of(cache, exchange, !site.forwarded_from.is_empty())
    }

    /// A summary of the watches below the roots. Several roots may lie in one directory, which is watched once.
    pub fn watched(&self) -> Summary {
        let mut trees = HashSet::new();
        let watchers = self.roots.iter().filter_map(|root| root.watcher());
        let once = watchers.filter(|watcher| trees.insert(watcher.tree()));
        Summary::of(once.map(Watcher::summary))
    }

    pub(crate) fn root(&self, number: u32) -> Option<&Arc<DocRoot>> {
        self.roots.get(number as usize)
    }
}

#[cfg(test)]
mod tests {
    use afpa_http::{FieldSlots, request};
    use afpa_proxy::limit::Gate;

    use super::*;

    #[test]
    fn a_share_is_that_of_the_client_that_a_router_names() {
        let router = "10.0.0.0/8".parse().expect("a network");
        let site = Site {
            name: "site".into(),
            gate: Gate::new(Default::default()),
            forwarded_from: [router].into(),
            hsts: None,
            clients: None,
        };
        let global = Global { sites: vec![site], ..Global::default() };
        let sharer = |named: &str, site: Option<u32>, peer: Client| {
            let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {named}\r\n\r\n");
            let mut slots = FieldSlots::default();
            let parsed = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
            let parsed = parsed.expect("a request").expect("all of it");
            global.sharer(&parsed, site.map(SiteId), peer).map(|client| client.to_string())
        };
        let ip = |text: &str| Client::Ip(text.parse().expect("an address"));
        let (client, other) = (Some("192.0.2.1".to_owned()), Some("192.0.2.2".to_owned()));
        assert_eq!(sharer("192.0.2.1", Some(0), ip("10.0.0.1")), client);
        assert_eq!(sharer("192.0.2.1", Some(0), ip("192.0.2.2")), other, "it may say anything");
        assert_eq!(sharer("10.0.0.2", Some(0), ip("10.0.0.1")), None, "anybody may be behind");
        assert_eq!(sharer("192.0.2.1", None, ip("192.0.2.2")), other);
        assert_eq!(sharer("192.0.2.1", Some(0), Client::Unix), None);
    }
}
