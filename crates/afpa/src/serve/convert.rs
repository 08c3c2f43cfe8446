//! From the configuration to the settings of the crates.

use std::path::PathBuf;
use std::sync::Arc;

use afpa_cache::root::{RootSettings, SymlinkPolicy};
use afpa_cache::watch::WatchSettings;
use afpa_cache::{CacheSettings, Hint, Keep, PolicyKind, PolicySetting};
use afpa_framework::Priority;
use afpa_http::caching::store::SetCookie;
use afpa_http::{Coding, CodingSet};
use afpa_module_http::{Charset, Compression, DocRootSettings, FileHint, FilterRule, PathRule};
use afpa_police::Police;
use afpa_proxy::coding::CodingRules;
use afpa_server::{Address, Io, KernelActivity, Settings};
use afpa_shared_cache::{CachePolicy, Mode, QueryRule};

use afpa_config::{self as config, Config, Listen, Policy, Root, SiteSettings, Symlinks};

pub(super) fn engine(
    config: &Config,
    kernel_activity: Option<KernelActivity>,
    police: &Police,
) -> Settings {
    let default = Settings::default();
    Settings {
        io: io(config),
        kernel_activity,
        police: police.clone(),
        workers: config.workers,
        head_timeout: config.timeouts.head,
        body_timeout: config.timeouts.body,
        idle_timeout: config.timeouts.idle,
        write_timeout: config.timeouts.write,
        handshake_timeout: config.timeouts.head,
        handshakes: default.handshakes.max(config.limits.connections / 5),
        handshakes_per_client: default
            .handshakes_per_client
            .max(config.limits.connections_per_client / 10),
        connections: config.limits.connections,
        connections_per_client: config.limits.connections_per_client,
        remote_timeout: {
            let of_groups = config.groups.iter().map(|group| group.exchange.shortest());
            let of_peers = config.peers_listen().map(|_| super::peers::settings().shortest());
            let of_sites = config.sites.iter().filter_map(SiteSettings::shortest_timeout);
            of_groups.chain(of_sites).chain(of_peers).min()
        },
        http2: config.http2.limits,
        least_rate: config.internals.least_rate as u64,
        long_sends: config.internals.long_sends,
        ..default
    }
}

pub(super) fn io(config: &Config) -> Io {
    match config.engine.io {
        config::Io::Auto => Io::Auto,
        config::Io::Readiness => Io::Readiness,
        config::Io::Completion => Io::Completion,
    }
}

pub(super) fn cache(config: &Config) -> CacheSettings {
    let cache = &config.cache;
    CacheSettings {
        pin_threshold: cache.pin_threshold,
        largest_share: config::Cache::LARGEST_SHARE,
        open_files_limit: cache.open_files,
        bookkeeping_limit: cache.tables_limit,
        max_age_unwatched: config.coherency.unwatched_max_age,
        policy: match cache.policy {
            Policy::AfpaLru => PolicyKind::ModifiedLru.into(),
            Policy::Lru => PolicyKind::Lru.into(),
            Policy::Lfu => PolicyKind::Lfu.into(),
            Policy::S3Fifo => PolicyKind::S3Fifo.into(),
            Policy::Structured => PolicyKind::Structured.into(),
            Policy::Auto => PolicySetting::Auto,
        },
        ..CacheSettings::default()
    }
}

pub(super) fn root(site: &config::SiteSettings) -> RootSettings {
    RootSettings {
        symlinks: match site.symlinks {
            Symlinks::Never => SymlinkPolicy::Never,
            Symlinks::Owner => SymlinkPolicy::OwnerMatch,
            Symlinks::Always => SymlinkPolicy::Always,
        },
        dotfiles: site.dotfiles,
    }
}

pub(super) fn watch(config: &Config) -> WatchSettings {
    WatchSettings { enabled: config.coherency.watch, max_watches: config::Coherency::MOST_WATCHES }
}

pub(super) fn site(config: &Config, site: &config::SiteSettings, root: &Root) -> DocRootSettings {
    DocRootSettings {
        limits: config.limits.of_requests(),
        body_limit: config.limits.body as u64,
        hosts: site.hosts.clone(),
        index: root.index.clone(),
        scripts: root.scripts,
        listing: site.listing,
        homes: (site.homes && root.is_site_root).then(|| PathBuf::from(&site.homes_directory)),
        headers: site.headers.clone(),
        types: site.types.iter().cloned().collect(),
        compression: compression(&config.compression),
        push: config.coherency.push,
        mount: root.mount.clone(),
        filters: root.filters.iter().map(filter).collect(),
        fields: Arc::clone(&root.fields),
        http3: config.http3.enabled && !site.tls.is_empty(),
        hints: root.hints.iter().map(hint).collect(),
        ..DocRootSettings::default()
    }
}

/// Limits of the shared cache.
pub(super) fn shared_cache(config: &Config) -> CacheSettings {
    CacheSettings {
        // Each site has its `max_object`, which a reload may change.
        pin_threshold: usize::MAX,
        largest_share: 1,
        // It counts against the limit itself.
        bookkeeping_limit: usize::MAX,
        counts_all: true,
        ..cache(config)
    }
}

/// How the answers of a site's servers are kept in this mode; `None`: none is kept.
pub(super) fn cache_policy(
    site: &config::SiteSettings,
    mode: config::CacheMode,
) -> Option<CachePolicy> {
    let cache = &site.cache;
    let mode = match mode {
        config::CacheMode::Auto => Mode::Auto,
        config::CacheMode::Heuristic => Mode::Heuristic,
        config::CacheMode::Off => return None,
    };
    let names = || cache.query_names.clone();
    Some(CachePolicy {
        mode,
        forced: cache.times.iter().map(|(status, time)| (*status, time.as_secs())).collect(),
        grace: cache.grace.as_secs(),
        wait: cache.wait,
        set_cookie: match cache.set_cookie {
            config::SetCookie::Pass => SetCookie::Pass,
            config::SetCookie::Strip => SetCookie::Strip,
            config::SetCookie::Store => SetCookie::Store,
        },
        targets: cache.targets.clone(),
        query: match cache.query {
            config::QueryMode::All => QueryRule::All,
            config::QueryMode::None => QueryRule::None,
            config::QueryMode::Only => QueryRule::Only(names()),
            config::QueryMode::Without => QueryRule::Without(names()),
        },
        sort_query: cache.query_sort,
        cookies: cache.cookies.clone(),
        bypass_cookies: cache.bypass_cookies.clone(),
        bypass_fields: cache.bypass_headers.clone(),
        purge_from: cache.purge_from.clone(),
        parts: cache.parts,
        largest: cache.max_object,
        obey_clients: cache.obey_clients,
        status_field: cache.status_field,
        in_kernel: cache.in_kernel,
        ..CachePolicy::default()
    })
}

fn filter(filter: &config::RootFilter) -> FilterRule {
    let rule = PathRule { prefix: filter.prefix.clone(), extensions: filter.extensions.clone() };
    let charset = match filter.charset.as_str() {
        "keep" => Charset::Keep,
        "none" => Charset::None,
        name => Charset::Named(name.to_owned()),
    };
    FilterRule { rule, includes: filter.includes, charset, headers: filter.headers.clone() }
}

fn hint(hint: &config::RootHint) -> FileHint {
    let rule = PathRule { prefix: hint.prefix.clone(), extensions: hint.extensions.clone() };
    let keep = match hint.keep {
        config::Keep::Auto => Keep::Auto,
        config::Keep::Always => Keep::Always,
        config::Keep::Never => Keep::Never,
    };
    let weight = u8::try_from(hint.weight).unwrap_or(u8::MAX);
    // The cache counts whole seconds: at least as many as were written.
    let seconds = hint.expiry.as_millis().div_ceil(1000);
    let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
    let expiry = (seconds > 0).then_some(seconds);
    let priority = match hint.priority {
        config::Priority::High => Priority::High,
        config::Priority::Normal => Priority::Normal,
        config::Priority::Low => Priority::Low,
    };
    FileHint { rule, cache: Hint { keep, weight, expiry }, priority }
}

fn compression(settings: &config::Compression) -> Compression {
    let level = |coding: &config::Coding| match coding {
        config::Coding::Brotli => (Coding::Brotli, settings.levels.br),
        config::Coding::Zstd => (Coding::Zstd, settings.levels.zstd),
        config::Coding::Gzip => (Coding::Gzip, settings.levels.gzip),
    };
    let codings = if settings.enabled { &settings.codings[..] } else { &[] };
    Compression {
        codings: codings.iter().map(level).collect(),
        min_size: settings.min_size as u64,
        max_size: settings.max_size as u64,
        types: settings.types.clone(),
        ..Compression::default()
    }
}

/// Which answers of servers are compressed, where a site has that; `None`: none, because nothing is compressed at all.
pub(super) fn coding_rules(settings: &config::Compression) -> Option<Arc<CodingRules>> {
    let coding = |coding: &config::Coding| match coding {
        config::Coding::Brotli => Coding::Brotli,
        config::Coding::Zstd => Coding::Zstd,
        config::Coding::Gzip => Coding::Gzip,
    };
    let codings: CodingSet = settings.codings.iter().map(coding).collect();
    let rules = CodingRules {
        codings,
        types: settings.types.iter().map(|kind| kind.to_ascii_lowercase()).collect(),
        least: settings.min_size as u64,
    };
    (settings.enabled && codings != CodingSet::IDENTITY).then(|| Arc::new(rules))
}

fn address(listen: &Listen) -> Address {
    match listen {
        Listen::Tcp(address) => Address::Tcp(*address),
        Listen::Unix(path) => Address::Unix(path.clone()),
    }
}

/// Every address of every site, once.
pub(super) fn addresses(config: &Config) -> Vec<(Listen, Address)> {
    let mut addresses: Vec<(Listen, Address)> = Vec::new();
    for (listen, _) in config.sites.iter().flat_map(SiteSettings::addresses) {
        if !addresses.iter().any(|(known, _)| known == listen) {
            addresses.push((listen.clone(), address(listen)));
        }
    }
    addresses.extend(config.peers_listen().map(|listen| {
        let address = address(&listen);
        (listen, address)
    }));
    addresses
}
