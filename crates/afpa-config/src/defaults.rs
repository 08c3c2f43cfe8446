//! Every setting with its default and its range.
//!
//! A setting is one call in one `read` function below, and nowhere else. docs/configuration.md is
//! compared with these calls by a test.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::acme;
use crate::choice::Choice;
use crate::dns_keys;
use crate::fault::path_rule;
use crate::fleet;
use crate::groups::{self, ServerGroup};
use crate::http2::Http2;
use crate::http3::Http3;
use crate::machine::Machine;
use crate::model::{
    AccessFormat, AccessTarget, Cache, Coding, Coherency, Compression, Config, Confine,
    Connections, Engine, FastPath, FastPathMode, Internals, Io, Level, Levels, Limits, Log,
    LogField, LogFormat, Policy, Timeouts, Tracing,
};
use crate::police::Police;
use crate::reader::{Reader, Section};
use crate::rules;
use crate::settings::INTERNALS;
use crate::shared_cache::SharedCache;
use crate::site_settings::SiteSettings;
use crate::tls::{CertificateFiles, Tls};
use crate::units::{Amount, GIB, KIB, MIB};
use crate::zones::{DnsSettings, ZoneSettings};

impl Config {
    /// Reads every setting; the only caller checks the findings before it uses the result.
    pub(crate) fn read(reader: &mut Reader<'_>, machine: &Machine) -> Config {
        let mut top = reader.section("");
        top.texts("include", "paths and patterns", Vec::new(), path_rule);
        let workers = top.count_or("workers", "auto", 1..=1024);
        if workers.is_none() {
            top.note("workers", machine.cores.to_string());
        }
        let (user, group) = ("user name or number as text", "group name or number as text");
        let (user, group) = (
            top.text_or("user", user, "auto", rules::account),
            top.text_or("group", group, "auto", rules::account),
        );
        let engine = Engine::read(reader.section("engine"));
        let limits = Limits::read(reader.section("limits"));
        let tls = Tls::read(reader.section("tls"));
        let mut config = Config {
            workers: workers.unwrap_or(machine.cores),
            user,
            group,
            engine,
            http2: Http2::read(reader.section("http2"), limits.head),
            http3: Http3::read(reader.section("http3")),
            limits,
            police: Police::read(reader),
            timeouts: Timeouts::read(reader.section("timeouts")),
            certificates: Vec::new(),
            acme: acme::read(reader.section("acme")),
            fleet: fleet::read(reader.section("fleet"), tls.ticket_lifetime),
            revision: None,
            tls,
            cache: Cache::read(reader.section("cache"), machine.memory),
            shared_cache: SharedCache::read(reader.section("shared_cache"), machine.memory),
            coherency: Coherency::read(reader.section("coherency")),
            fast_path: FastPath::read(reader.section("fast_path")),
            compression: Compression::read(reader),
            log: Log::read(reader.section("log")),
            tracing: Tracing::read(reader.section("tracing")),
            admin: reader.section("admin").text_or("listen", "address", "off", rules::tcp),
            control: read_control(reader.section("control")),
            resolver: groups::read_resolver(reader.section("resolver")),
            groups: Vec::new(),
            sites: Vec::new(),
            dns: DnsSettings::read(reader.section("dns")),
            dns_keys: dns_keys::read(reader),
            zones: Vec::new(),
            internals: Internals::read(reader.section(INTERNALS)),
        };
        for item in reader.items("certificate", None) {
            config.certificates.push(CertificateFiles::read(reader, &item));
        }
        for item in reader.items("zone", None) {
            config.zones.extend(ZoneSettings::read(reader, &item));
        }
        for item in reader.items("server_group", None) {
            config.groups.push(ServerGroup::read(reader, &item));
        }
        let has_zones = !config.zones.is_empty();
        for item in reader.sites(has_zones) {
            config.sites.push(SiteSettings::read(reader, &item));
        }
        config
    }
}

impl Engine {
    fn read(mut s: Section<'_, '_>) -> Self {
        Engine { io: s.choice("io", Io::Auto), confine: s.choice("confine", Confine::On) }
    }
}

impl Limits {
    fn read(mut s: Section<'_, '_>) -> Self {
        Limits {
            connections: s.count("connections", 10_000, 1..=1_000_000),
            connections_per_client: s.count("connections_per_client", 2_000, 1..=1_000_000),
            head: s.size("head", 32 * KIB, 256..=256 * KIB),
            body: s.size("body", MIB, 0..=GIB),
        }
    }
}

impl Timeouts {
    fn read(mut s: Section<'_, '_>) -> Self {
        let range = || Duration::from_millis(100)..=Duration::from_secs(3600);
        Timeouts {
            head: s.duration("head", Duration::from_secs(10), range()),
            body: s.duration("body", Duration::from_secs(30), range()),
            idle: s.duration("idle", Duration::from_secs(60), range()),
            write: s.duration("write", Duration::from_secs(60), range()),
            shutdown: s.duration("shutdown", Duration::from_secs(30), range()),
        }
    }
}

impl Cache {
    fn read(mut s: Section<'_, '_>, memory: usize) -> Self {
        let pinned_limit = s.amount("pinned_limit", Amount::Percent(25), "memory", memory);
        Cache {
            pinned_limit,
            pin_threshold: s.size("pin_threshold", 64 * KIB, 0..=64 * MIB),
            open_files: s.count("open_files", 4096, 16..=1_000_000),
            // With files of 20 KiB on average, each of which takes some 4 KiB of tables, both are full at once.
            tables_limit: pinned_limit / 5,
            policy: s.choice("policy", Policy::AfpaLru),
        }
    }
}

impl Coherency {
    fn read(mut s: Section<'_, '_>) -> Self {
        let hour = Duration::from_secs(3600);
        Coherency {
            watch: s.flag("watch", true),
            unwatched_max_age: s.duration(
                "unwatched_max_age",
                Duration::from_secs(1),
                Duration::ZERO..=hour,
            ),
            push: s.flag("push", true),
        }
    }
}

/// Head and content that fit into one Ethernet segment.
const ONE_SEGMENT: usize = afpa_abi::ANSWER_MAX;
/// Longer answers cost the kernel, which sends them segment by segment, more than AFPA in user mode: the two
/// cross behind 14 KB (`make bench-fast-path`), and a mix of sizes is served best so (`docs/figures.md`).
const LONG_ENOUGH: usize = 16 * KIB;

impl FastPath {
    fn read(mut s: Section<'_, '_>) -> Self {
        FastPath {
            mode: s.choice("mode", FastPathMode::Auto),
            connections: s.choice("connections", Connections::Known),
            memory: s.size("memory", 64 * MIB, 128 * KIB..=2 * GIB),
            answer_max: s.size("answer_max", LONG_ENOUGH, ONE_SEGMENT..=68 * KIB),
            log_every: s.count("log_every", 1, 0..=1_000_000),
            survive_restart: s.flag("survive_restart", true),
        }
    }
}

impl Internals {
    fn read(mut s: Section<'_, '_>) -> Self {
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        Internals {
            // `afpa_bpf::BYPASS_AFTER` has the reason.
            bypass_after: s.count("bypass_after", 64, 0..=60_000),
            // A ban ends the answers on open connections within two of these.
            firewall_interval: s.duration("firewall_interval", second, Duration::ZERO..=hour),
            // `afpa_server::Settings` has the reason.
            least_rate: s.size("least_rate", 240, 0..=MIB),
            // Less than a millisecond of a link of 10 Gbit/s, so long do short responses wait.
            long_sends: s.size("long_sends", MIB, 0..=64 * MIB),
            // Programs renew certificates weeks ahead.
            reread: s.duration("reread", 10 * second, Duration::from_millis(10)..=hour),
            // At a million answers a second some 250, of which ten are compared: no load, and a wrong byte in an answer that
            // is asked for often is found within minutes.
            self_check: s.count("self_check", 4096, 0..=10_000_000),
        }
    }
}

/// Types that shrink; images, sound and archives are compressed already.
const COMPRESSED_TYPES: [&str; 7] = [
    "text/*",
    "application/javascript",
    "application/json",
    "application/manifest+json",
    "application/wasm",
    "application/xml",
    "image/svg+xml",
];

impl Compression {
    fn read(reader: &mut Reader<'_>) -> Self {
        let mut s = reader.section("compression");
        let types = COMPRESSED_TYPES.map(String::from).to_vec();
        Compression {
            enabled: s.flag("enabled", true),
            types: s.texts("types", "media types", types, rules::media_pattern),
            min_size: s.size("min_size", 512, 0..=64 * MIB),
            max_size: s.size("max_size", MIB, 1..=64 * MIB),
            codings: s.choices("codings", Coding::ALL),
            levels: Levels::read(reader.section("compression.levels")),
        }
    }
}

impl Levels {
    fn read(mut s: Section<'_, '_>) -> Self {
        let mut level = |key, default, range: RangeInclusive<usize>| {
            u32::try_from(s.count(key, default, range)).unwrap_or(u32::MAX)
        };
        Levels {
            br: level("br", 6, 0..=11),
            zstd: level("zstd", 9, 1..=19),
            gzip: level("gzip", 6, 1..=9),
        }
    }
}

impl Log {
    fn read(mut s: Section<'_, '_>) -> Self {
        let level = s.choice("level", Level::Info);
        let format = s.choice("format", LogFormat::Text);
        let access =
            s.path_or("access", "path, `-` for standard output, or `off`", &["-", "off"], "off");
        let access = match access.as_str() {
            "off" => AccessTarget::Off,
            "-" => AccessTarget::Standard,
            path => AccessTarget::File(PathBuf::from(path)),
        };
        Log {
            level,
            format,
            access,
            access_format: s.choice("access_format", AccessFormat::Combined),
            access_fields: s.choices_or("access_fields", "header:", LogField::Own, |name| {
                Ok(LogField::Request(rules::logged_field(name)?.into()))
            }),
            access_queue: ACCESS_QUEUE,
        }
    }
}

/// Some 5,000 records: the disk may stop for a second at 5,000 requests a second of a worker.
const ACCESS_QUEUE: usize = MIB;

impl Tracing {
    fn read(mut s: Section<'_, '_>) -> Self {
        let service = "afpa".to_owned();
        Self {
            otlp: s.text_or("otlp", "URL", "off", rules::collector),
            service: s.text("service", "name", service, rules::service),
            headers: s.pairs("headers", "field names and values", rules::header),
        }
    }
}

fn read_control(mut s: Section<'_, '_>) -> Option<PathBuf> {
    let path = s.path_or("path", "path, or `auto`", &["auto"], "auto");
    (path != "auto").then(|| PathBuf::from(path))
}
