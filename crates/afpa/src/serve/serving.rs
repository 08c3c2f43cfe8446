//! The state that the workers serve from.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use afpa_cache::root::DocumentRoot;
use afpa_cache::watch::WatchThread;
use afpa_cache::{Arena, Cache, CacheSettings};
use afpa_framework::steady_ms;
use afpa_http::edits::FieldRules;
use afpa_module_http::{
    Challenges, ClientDemand, Codings, Common, Comparer, Compression, Compressor, DocRoot,
    Exchanges, Fields, Global, Guards, HttpHeader, MirrorPlace, Mirrors, PeerPlaces, ServerGroup,
    Site,
};
use afpa_police::Police;
use afpa_proxy::coding::CodingRules;
use afpa_proxy::limit::Gate;
use afpa_proxy::pool::TlsToServers;
use afpa_proxy::request::{HostPolicy, RequestPolicy};
use afpa_proxy::select::{Group, GroupSettings};
use afpa_router::{Action, Fallback, GroupId, ListenerId, RequestSet, RequestSetId, Router};
use afpa_shared_cache::{CachePolicy, Responses, SiteCache};
use anyhow::Context as _;

use super::convert;
use super::error_pages::{self, PageFiles};
use super::guards;
use super::rates;
use super::tls::AdoptedTls;
use crate::confine::Confinement;
use afpa_config::{
    Config, Listen, Routes, ServerGroup as ServerGroupSettings, SiteSettings, UrlPath, field_rules,
};

/// The state that the workers serve from.
pub(super) struct Serving {
    pub(super) global: Arc<Global>,
    /// The cache of all roots. It exists even without roots.
    pub(super) cache: Arc<Cache<HttpHeader>>,
    /// Compresses for all roots.
    pub(super) compressor: Arc<Compressor>,
    /// Compares cached objects with their files.
    pub(super) _comparer: Option<Comparer>,
    /// The hosts of all sites.
    pub(super) hosts: Vec<String>,
}

impl Serving {
    /// Serves nothing: the state before the first configuration is taken into use.
    pub(super) fn empty(arena: Arena) -> Self {
        let global = Global { rates: rates::none(), ..Global::default() };
        Serving {
            global: Arc::new(global),
            cache: Cache::new(CacheSettings::default(), arena),
            compressor: Arc::default(),
            _comparer: None,
            hosts: Vec::new(),
        }
    }

    /// The document roots of all sites.
    pub(super) fn roots(&self) -> impl Iterator<Item = &Arc<DocRoot>> {
        self.global.roots.iter()
    }
}

/// How often the replacement policy is judged, where AFPA chooses it.
const POLICY_PERIOD: Duration = Duration::from_secs(10);

/// Request sets that have metrics of their own: each has some twenty, and a monitoring system that reads many more is
/// slowed down by them.
const COUNTED_REQUEST_SETS: usize = 1000;

/// The error of a thread that cannot be started, with the usual limits.
const NO_THREAD: &str = "cannot start a thread (TasksMax of the unit and ulimit -u limit them)";

/// Everything of a [`Serving`] that can fail.
pub(super) struct Content {
    router: Option<Arc<Router>>,
    names: Vec<String>,
    guards: Option<Arc<Guards>>,
    listeners: Vec<Option<SocketAddr>>,
    roots: Vec<Arc<DocRoot>>,
    cache: Arc<Cache<HttpHeader>>,
    compressor: Arc<Compressor>,
    comparer: Comparer,
    pages: PageFiles,
    /// Where other machines ask for answers.
    peers_listener: Option<ListenerId>,
}

/// Whether there is only one site with nothing but a root, as in `afpa serve DIR`. It needs no router.
fn is_plain(config: &Config) -> bool {
    match &config.sites[..] {
        [site] => {
            let wildcard = site.hosts.iter().any(|host| host.starts_with('*'));
            let one_way = !site.https_only || site.listen.is_empty();
            site.root.is_some()
                && site.to.is_none()
                && site.fallback.is_none()
                && site.fields.is_empty()
                && site.marks.is_off()
                && site.errors.is_empty()
                && site.php.is_none()
                && site.paths.is_empty()
                && site.access.is_open()
                && site.basic_auth.is_none()
                && site.forward_auth.is_none()
                && !site.has_rates()
                && !wildcard
                && one_way
        }
        _ => false,
    }
}

impl Content {
    /// Starts the threads that watch the roots and compress, so privileges must be dropped before.
    ///
    /// # Errors
    /// When one of them cannot be started.
    pub(super) fn build(
        config: &Config,
        routes: &Routes,
        roots: Vec<DocumentRoot>,
        arena: Arena,
        (watch_thread, confinement): (&Arc<WatchThread>, &Confinement),
        previous: &Global,
    ) -> anyhow::Result<Self> {
        let cache = Cache::new(convert::cache(config), arena);
        cache.start_choosing(POLICY_PERIOD).context(NO_THREAD)?;
        let compressor = Compressor::start(Compression::default().queue).context(NO_THREAD)?;
        let Routes { hierarchy, router, .. } = routes;
        let router = (!is_plain(config)).then(|| Arc::clone(router));
        watch_thread.retry();
        let common = Common::start(
            Arc::clone(&cache),
            Arc::clone(&compressor),
            Arc::clone(watch_thread),
            convert::watch(config),
            config.coherency.push,
        )
        .context(NO_THREAD)?;
        let held = watch_thread.hold();
        let mut sites = Vec::with_capacity(roots.len());
        for ((opened, root), key) in roots.into_iter().zip(&hierarchy.roots).zip(0..) {
            let site = config.sites.get(root.site).context("a root belongs to a site")?;
            let settings = convert::site(config, site, root);
            sites.push(DocRoot::open_in(opened, settings, &common, key)?);
        }
        drop(held);
        watch_thread.announce();
        let names = hierarchy.table.sites.iter().map(|site| site.name.clone()).collect();
        let comparer = Comparer::start(&cache, &sites).context(NO_THREAD)?;
        let guards = guards::build(config, routes, confinement, previous)?;
        let listeners = routes.listeners.listeners().iter().map(|listen| match listen {
            Listen::Tcp(address) => Some(*address),
            Listen::Unix(_) => None,
        });
        let listeners = listeners.collect();
        let of_peers = config.peers_listen();
        let mut all = routes.listeners.listeners().iter().zip(0..);
        let peers_listener = all
            .find(|(listen, _)| of_peers.as_ref() == Some(*listen))
            .map(|(_, number)| ListenerId(number));
        let pages = error_pages::read(config)?;
        let roots = sites;
        Ok(Self {
            router,
            names,
            listeners,
            guards,
            roots,
            cache,
            compressor,
            comparer,
            pages,
            peers_listener,
        })
    }

    /// The content with its sites and server groups. From now on the health of servers that stay, and
    /// the requests in flight that a site counts, belong to the new ones: nothing may fail after it.
    pub(super) fn serve(
        self,
        config: &Config,
        tls: AdoptedTls,
        previous: &Global,
        police: &Police,
        responses: &Arc<Responses>,
        challenges: Option<Challenges>,
    ) -> Serving {
        let Content {
            router,
            names,
            listeners,
            guards,
            roots,
            cache,
            compressor,
            comparer,
            pages,
            peers_listener,
        } = self;
        let groups = groups(config, tls.groups, previous);
        let codings = codings(config, router.as_deref());
        let caches = caches(config, router.as_deref(), &names, &codings, responses);
        let global = Global {
            fields: fields(config, router.as_deref()),
            peers: peers(peers_listener, &caches),
            caches,
            codings,
            exchanges: exchanges(config, router.as_deref(), &groups),
            mirrors: mirrors(config, router.as_deref(), previous),
            rates: rates::build(config, router.as_deref(), &names, previous),
            guards,
            roots,
            listeners,
            sites: sites(config, names, tls.clients, previous),
            errors: error_pages::tables(config, router.as_deref(), &groups, pages),
            groups,
            responses: Some(Arc::clone(responses)),
            limits: config.limits.of_requests(),
            body_limit: config.limits.body as u64,
            counted_sets: COUNTED_REQUEST_SETS,
            police: police.clone(),
            challenges,
            router,
        };
        let hosts = config.sites.iter().flat_map(|site| site.hosts.iter().cloned()).collect();
        Serving { global: Arc::new(global), cache, compressor, _comparer: Some(comparer), hosts }
    }
}

/// The changes of fields of each request set and site. Sites behind those of the configuration lead to TLS.
fn fields(config: &Config, router: Option<&Router>) -> Fields {
    let leading = config.sites.iter().filter(|site| site.https_only && !site.listen.is_empty());
    let all: Vec<&SiteSettings> = config.sites.iter().chain(leading).collect();
    let kept = |rules: FieldRules| (!rules.is_empty()).then(|| Arc::new(rules));
    let of_set = |set: &RequestSet| {
        let index = set.site.0 as usize;
        let site = all.get(index)?;
        let path = site.paths.get(set.path).filter(|_| index < config.sites.len());
        let content = path.and_then(|path| path.contents.get(set.content));
        kept(field_rules(site, path, content))
    };
    let sets = router.map_or(&[][..], |router| router.sets()).iter().map(of_set).collect();
    let sites = all.iter().map(|site| kept(field_rules(site, None, None))).collect();
    Fields { sets, sites }
}

/// Which request sets compress what servers answer.
fn codings(config: &Config, router: Option<&Router>) -> Codings {
    let compresses = |set: &RequestSet| {
        let site = config.sites.get(set.site.0 as usize);
        site.is_some_and(|site| site.compresses(set.path, set.content))
    };
    let sets = router.map_or(&[][..], |router| router.sets()).iter().map(compresses).collect();
    Codings { sets, rules: convert::coding_rules(&config.compression) }
}

/// The settings of exchanges in places with limits of their own.
fn exchanges(config: &Config, router: Option<&Router>, groups: &[ServerGroup]) -> Exchanges {
    let limits = |set: &RequestSet| {
        let site = config.sites.get(set.site.0 as usize);
        site.map(|site| site.server_limits(set.path, set.content)).unwrap_or_default()
    };
    let sets = router.map_or(&[][..], |router| router.sets());
    if sets.iter().all(|set| limits(set).is_empty()) {
        return Exchanges::default();
    }
    let of_set = |set: &RequestSet| {
        let limits = limits(set);
        let asked = asked_groups(&set.behaviour.action).filter(|_| !limits.is_empty());
        let settings = asked.filter_map(|id| {
            let mut settings = (*groups.get(id.0 as usize)?.settings).clone();
            settings.largest_content = limits.largest_content.or(settings.largest_content);
            settings.connect = limits.connect.unwrap_or(settings.connect);
            settings.first_byte = limits.first_byte.unwrap_or(settings.first_byte);
            settings.idle = limits.idle.unwrap_or(settings.idle);
            settings.tunnel_idle = limits.tunnel_idle.unwrap_or(settings.tunnel_idle);
            if let Some(total) = limits.total {
                settings.total = (!total.is_zero()).then_some(total);
            }
            Some((id, Arc::new(settings)))
        });
        settings.collect()
    };
    Exchanges { sets: sets.iter().map(of_set).collect() }
}

/// Where the requests of request sets are mirrored.
fn mirrors(config: &Config, router: Option<&Router>, previous: &Global) -> Mirrors {
    let stock = Arc::clone(&previous.mirrors.stock);
    if !config.mirrors() {
        return Mirrors { stock, ..Mirrors::default() };
    }
    let of_set = |set: &RequestSet| {
        let site = config.sites.get(set.site.0 as usize)?;
        let (to, share) = site.mirror_of(set.path, set.content)?;
        // The checks have reported a group that does not exist.
        let at = config.groups.iter().position(|group| group.settings.name == to)?;
        Some(Arc::new(MirrorPlace::new(GroupId(u32::try_from(at).ok()?), share)))
    };
    let all = router.map_or(&[][..], |router| router.sets());
    let sets: Vec<_> = all.iter().map(of_set).collect();
    let mut sites = vec![false; config.sites.len()];
    for (set, _) in all.iter().zip(&sets).filter(|(_, mirror)| mirror.is_some()) {
        if let Some(has_mirror) = sites.get_mut(set.site.0 as usize) {
            *has_mirror = true;
        }
    }
    Mirrors { sets, sites, stock }
}

/// The settings of a group by which its servers get other requests, as text.
fn asked_as(group: &ServerGroupSettings) -> String {
    let RequestPolicy { host, via, forwarded, x_forwarded, client_subject, client_address, .. } =
        &group.exchange.request;
    let mut text = format!(
        "\n{host:?} {via} {forwarded:?} {x_forwarded:?} {client_subject:?} {client_address:?}"
    );
    if *host == HostPolicy::Server {
        let mut names: Vec<_> =
            group.settings.servers.iter().map(|server| server.to.to_string()).collect();
        names.sort_unstable();
        text.push_str(&format!(" {names:?}"));
    }
    text
}

/// The server groups that an action may ask.
fn asked_groups(action: &Action) -> impl Iterator<Item = GroupId> {
    let (own, behind) = match action {
        Action::Distributed { group, .. } => (Some(*group), None),
        Action::Cached { fallback, scripts, .. } => {
            let behind = match fallback {
                Some(Fallback::Distributed { group, .. }) => Some(*group),
                _ => None,
            };
            (scripts.as_ref().map(|scripts| scripts.group), behind)
        }
        _ => (None, None),
    };
    own.into_iter().chain(behind)
}

/// How the request sets use the shared cache. Answers that were kept under other rules are not found any more.
fn caches(
    config: &Config,
    router: Option<&Router>,
    names: &[String],
    codings: &Codings,
    responses: &Arc<Responses>,
) -> Vec<Option<SiteCache>> {
    let sets = router.map_or(&[][..], |router| router.sets()).iter();
    let caches = sets.zip(&codings.sets).map(|(set, compresses)| {
        let index = set.site.0 as usize;
        let (site, name) = (config.sites.get(index)?, names.get(index)?);
        let rules = codings.rules.as_deref().filter(|_| *compresses);
        set_cache((config, site), set, (name, rules), responses)
    });
    caches.collect()
}

/// Where other machines ask for answers: of each place the one with its rules.
fn peers(listener: Option<ListenerId>, caches: &[Option<SiteCache>]) -> PeerPlaces {
    let Some(listener) = listener else { return PeerPlaces::default() };
    let sets = caches.iter().zip(0..).filter_map(|(cache, number)| {
        let cache = cache.as_ref()?;
        Some((cache.place, RequestSetId(number)))
    });
    PeerPlaces { listener: Some(listener), sets: sets.collect() }
}

/// Each request set keeps its own answers: its conditions are no part of a key, and after a rewrite two paths may be one
/// for different servers.
fn set_cache(
    (config, site): (&Config, &SiteSettings),
    set: &RequestSet,
    (name, codings): (&str, Option<&CodingRules>),
    responses: &Arc<Responses>,
) -> Option<SiteCache> {
    let fallback = match &set.behaviour.action {
        Action::Distributed { .. } => None,
        Action::Cached { fallback: Some(fallback @ Fallback::Distributed { .. }), .. } => {
            Some(fallback)
        }
        Action::Cached { scripts: Some(_), .. } => None,
        // Files have a cache of their own.
        _ => return None,
    };
    let policy = convert::cache_policy(site, site.cache_mode(set.path, set.content))?;
    let allowed = codings.map_or(policy.codings, |rules| rules.codings);
    let policy = CachePolicy { codings: allowed, ..policy };
    // The place of a path in the file does not matter, nor do other paths: answers stay valid after an edit elsewhere.
    let mut rules = format!("\n{:?}\n{policy:?}", site.to);
    if let Action::Cached { scripts: Some(scripts), .. } = &set.behaviour.action {
        rules.push_str(&format!("\n{:?} {:?} {:?}", site.php, scripts.root, site.fallback));
        rules.push_str(&format!("\n{:?} {:?}", scripts.mount, scripts.params));
    }
    if let Some(path) = site.paths.get(set.path) {
        let UrlPath { prefix, recursion, exact, behaviour, .. } = path;
        rules.push_str(&format!("\n{prefix} {recursion} {exact} {behaviour:?}"));
        if let Some(content) = path.contents.get(set.content) {
            rules.push_str(&format!("\n{:?} {:?}", content.extensions, content.behaviour));
        }
    }
    if fallback.is_some() {
        rules.push_str(&format!("\nfallback {:?}", site.fallback));
    }
    // Servers may answer otherwise, when they are asked otherwise.
    let path = site.paths.get(set.path);
    let content = path.and_then(|path| path.contents.get(set.content));
    let fields = field_rules(site, path, content);
    for rule in fields.rules.iter().filter(|rule| !rule.request.is_empty()) {
        rules.push_str(&format!("\n{:?} {:?}", rule.prefix, rule.request));
    }
    let asked = asked_groups(&set.behaviour.action);
    for group in asked.filter_map(|id| config.groups.get(id.0 as usize)) {
        rules.push_str(&asked_as(group));
    }
    // Answers are kept without it.
    if let Some(id) = &fields.id {
        rules.push_str(&format!("\nid {}", id.field));
    }
    if let Some(trace) = &fields.trace {
        rules.push_str(&format!("\n{trace:?}"));
    }
    // None of these is kept.
    let pages = afpa_config::error_pages(site, path, content);
    if let Some(ranges) = error_pages::replaces(&pages) {
        rules.push_str(&format!("\nreplaced {ranges:?}"));
    }
    if let Some(codings) = codings {
        rules.push_str(&format!("\n{codings:?}"));
    }
    // It decides about the form of what is kept alone.
    let http3 = config.http3.enabled && !site.tls.is_empty();
    let policy = Arc::new(CachePolicy { http3, ..policy });
    let scope = responses.scope(&format!("{name}{rules}"), &policy);
    // An address is each machine's own: a site that has no other name has none for the others.
    let is_address = site.addresses().any(|(listen, _)| listen.to_string() == *name);
    let shared = if is_address { "" } else { name };
    let place = Responses::place(&format!("{shared}{rules}"));
    Some(SiteCache { responses: Arc::clone(responses), policy, scope, place })
}

fn sites(
    config: &Config,
    names: Vec<String>,
    clients: Vec<Option<ClientDemand>>,
    previous: &Global,
) -> Vec<Site> {
    let mut known: HashMap<&str, Vec<&Site>> = HashMap::new();
    for site in &previous.sites {
        known.entry(&site.name).or_default().push(site);
    }
    let sites = config.sites.iter().zip(names).zip(clients).map(|((site, name), clients)| {
        // With the same limits, requests in flight stay counted; with others, counting starts again.
        let same = |before: &&&Site| *before.gate.settings() == site.limits;
        let before = known.get(name.as_str()).and_then(|sites| sites.iter().find(same));
        let gate = before.map_or_else(|| Gate::new(site.limits), |site| Arc::clone(&site.gate));
        let hsts = site.hsts.as_deref().map(Arc::from);
        let forwarded_from = site.forwarded_from.as_slice().into();
        Site { name, gate, forwarded_from, hsts, clients }
    });
    sites.collect()
}

fn groups(config: &Config, tls: Vec<Option<TlsToServers>>, previous: &Global) -> Vec<ServerGroup> {
    let now = steady_ms();
    let known: HashMap<&str, &ServerGroup> =
        previous.groups.iter().map(|before| (before.group.name(), before)).collect();
    let groups = config.groups.iter().zip(tls).map(|(configured, tls)| {
        let settings = GroupSettings { tls, ..configured.settings.clone() };
        let before = known.get(configured.settings.name.as_str()).map(|before| &*before.group);
        ServerGroup {
            group: Group::new(settings, before, now),
            settings: Arc::new(configured.exchange.clone()),
        }
    });
    groups.collect()
}

impl Serving {
    /// Server groups, for their prober.
    pub(super) fn groups(&self) -> Vec<Arc<Group>> {
        self.global.groups.iter().map(|group| Arc::clone(&group.group)).collect()
    }
}
