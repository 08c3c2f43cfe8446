//! From the configuration to the settings of the crates.

use std::path::PathBuf;

use afpa_cache::root::{RootSettings, SymlinkPolicy};
use afpa_cache::watch::WatchSettings;
use afpa_cache::{CacheSettings, PolicyKind};
use afpa_http::{Coding, RequestLimits};
use afpa_module_http::{Compression, DocRootSettings};
use afpa_police::Police;
use afpa_server::{Address, Io, KernelActivity, Settings};

use afpa_config::{self as config, Config, Listen, Policy, Root, Symlinks};

pub(super) fn engine(
    config: &Config,
    kernel_activity: Option<KernelActivity>,
    police: &Police,
) -> Settings {
    Settings {
        io: io(config),
        kernel_activity,
        police: police.clone(),
        workers: config.workers,
        head_timeout: config.timeouts.head,
        body_timeout: config.timeouts.body,
        idle_timeout: config.timeouts.idle,
        write_timeout: config.timeouts.write,
        connections: config.limits.connections,
        connections_per_client: config.limits.connections_per_client,
        remote_timeout: config.groups.iter().map(|group| group.exchange.shortest()).min(),
        pipelined: config.limits.pipelined,
        ..Settings::default()
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
        largest_share: cache.pinned_limit.checked_div(cache.max_object).unwrap_or(1).max(1),
        open_files_limit: cache.open_files,
        objects_limit: cache.objects,
        max_age_unwatched: config.coherency.unwatched_max_age,
        policy: match cache.policy {
            Policy::AfpaLru => PolicyKind::ModifiedLru,
            Policy::Lru => PolicyKind::Lru,
            Policy::Lfu => PolicyKind::Lfu,
            Policy::S3Fifo => PolicyKind::S3Fifo,
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
    WatchSettings { enabled: config.coherency.watch, max_watches: config.coherency.max_watches }
}

pub(super) fn request_limits(config: &Config) -> RequestLimits {
    RequestLimits {
        request_line: config.limits.request_line,
        head: config.limits.head,
        fields: config.limits.fields,
    }
}

pub(super) fn site(config: &Config, site: &config::SiteSettings, root: &Root) -> DocRootSettings {
    DocRootSettings {
        limits: request_limits(config),
        body_limit: config.limits.body as u64,
        hosts: site.hosts.clone(),
        index: root.index.clone(),
        listing: site.listing,
        homes: (site.homes && root.is_site_root).then(|| PathBuf::from(&site.homes_directory)),
        headers: site.headers.clone(),
        types: site.types.iter().cloned().collect(),
        compression: compression(&config.compression),
        push: config.coherency.push,
        ..DocRootSettings::default()
    }
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
        queue: settings.queue,
    }
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
    for listen in config.sites.iter().flat_map(|site| &site.listen) {
        if !addresses.iter().any(|(known, _)| known == listen) {
            addresses.push((listen.clone(), address(listen)));
        }
    }
    addresses
}
