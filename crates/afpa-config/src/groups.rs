//! Server groups: every setting with its default and its range.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use afpa_framework::PrefaceVersion;
use afpa_http::Status;
use afpa_names::ResolveSettings;
use afpa_proxy::exchange::{self, HalfClosed};
use afpa_proxy::health::{CheckSettings, ErrorSettings, HealthSettings};
use afpa_proxy::request::{HostPolicy, Mark, RequestPolicy};
use afpa_proxy::select::{
    Affinity, CookieSettings, GroupSettings, QueueSettings, SameSite, Secure, Select,
    ServerAddress, ServerSettings,
};

use crate::choice::words;
use crate::document::{Given, Node, Value};
use crate::fault::{Fault, read_count, read_text};
use crate::http2;
use crate::items::Item;
use crate::reader::{Reader, Section};
use crate::rules;
use crate::settings::{Instance, quote};
use crate::suggest;
use crate::tls::GroupTls;
use crate::units::{GIB, KIB, Unfit};

/// A `[[server_group]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerGroup {
    /// Servers, selection, health, queue.
    pub settings: GroupSettings,
    /// `[server_group.timeouts]`, `[server_group.connections]` and `[server_group.request]`.
    pub exchange: exchange::Settings,
    /// How its servers are reached by TLS; `None`: without it.
    pub tls: Option<GroupTls>,
    /// Which `[[server_group]]`.
    pub instance: Instance,
}

words! {
    Select {
        Select::RoundRobin = "round-robin",
        Select::LeastConnections = "least-connections",
        Select::UrlHash = "url-hash",
        Select::ClientHash = "client-hash",
    }
    Affinity {
        Affinity::None = "none",
        Affinity::Client = "client",
        Affinity::Cookie = "cookie",
    }
    Secure {
        Secure::Auto = "auto",
        Secure::Always = "always",
        Secure::Never = "never",
    }
    Option<PrefaceVersion> {
        None = "off",
        Some(PrefaceVersion::V1) = "v1",
        Some(PrefaceVersion::V2) = "v2",
    }
    SameSite {
        SameSite::Strict = "strict",
        SameSite::Lax = "lax",
        SameSite::None = "none",
    }
    HalfClosed {
        HalfClosed::Answer = "answer",
        HalfClosed::Cancel = "cancel",
    }
    Mark {
        Mark::Keep = "keep",
        Mark::Remove = "remove",
        Mark::Replace = "replace",
        Mark::Append = "append",
    }
}

impl ServerGroup {
    /// Reads one `[[server_group]]`.
    pub(crate) fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let default = GroupSettings::default();
        let mut s = reader.at(item);
        let mut settings = GroupSettings {
            name: s.required("name", "name", rules::group_name).unwrap_or_default(),
            servers: s.required_list(
                "servers",
                "servers, or tables of `to`, `weight` and `max_connections`",
                shown_server,
                read_server,
            ),
            select: s.choice("select", default.select),
            affinity: s.choice("affinity", default.affinity),
            cookie: s.text("cookie", "cookie name", default.cookie, rules::token),
            cookie_settings: CookieSettings {
                secure: s.choice("cookie_secure", default.cookie_settings.secure),
                same_site: s.choice("cookie_same_site", default.cookie_settings.same_site),
                lifetime: s.duration_or(
                    "cookie_lifetime",
                    "session",
                    from_to(1_000, 400 * 24 * HOUR),
                ),
            },
            cookie_secret: s.text_or("cookie_secret", "text", "auto", rules::secret),
            client_share: small(s.count("client_share", default.client_share as usize, 1..=100)),
            ..default
        };
        let tls = s.flag("tls", false);
        let asks_http2 = s.flag("http2", false);
        settings.preface = s.choice("proxy_protocol", None);
        let inner = reader.within("server_group.queue", item);
        settings.queue = read_queue(reader.at(&inner));
        let inner = reader.within("server_group.health", item);
        settings.health = read_health(reader.at(&inner));
        let inner = reader.within("server_group.check", item);
        settings.health.check = read_check(reader.at(&inner));
        let inner = reader.within("server_group.errors", item);
        settings.health.errors = read_errors(reader.at(&inner));
        let mut exchange = exchange::Settings::default();
        let inner = reader.within("server_group.timeouts", item);
        read_timeouts(reader.at(&inner), &mut exchange);
        let inner = reader.within("server_group.connections", item);
        settings.sources = read_connections(reader.at(&inner), &mut exchange);
        let inner = reader.within("server_group.request", item);
        read_request(reader.at(&inner), &mut exchange);
        let inner = reader.within("server_group.streams", item);
        let limits = http2::read_of_servers(reader.at(&inner), exchange.head_limit);
        settings.http2 = asks_http2.then_some(limits);
        let inner = reader.within("server_group.verify", item);
        let tls = GroupTls::read(reader.at(&inner), tls);
        ServerGroup { settings, exchange, tls, instance: item.instance }
    }

    /// The group of the servers that a `to` names by their addresses, as in `to = "127.0.0.1:3000"`.
    pub(crate) fn of_servers(name: &str, addresses: Vec<ServerAddress>) -> Self {
        let settings = GroupSettings {
            name: name.to_owned(),
            servers: addresses.into_iter().map(ServerSettings::at).collect(),
            ..GroupSettings::default()
        };
        let exchange = exchange::Settings::default();
        ServerGroup { settings, exchange, tls: None, instance: [usize::MAX; 4] }
    }
}

fn read_queue(mut s: Section<'_, '_>) -> QueueSettings {
    let default = QueueSettings::default();
    QueueSettings {
        length: small(s.count("length", default.length as usize, 0..=1_000_000)),
        timeout: s.duration("timeout", default.timeout, from_to(1, 600_000)),
    }
}

fn read_health(mut s: Section<'_, '_>) -> HealthSettings {
    let default = HealthSettings::default();
    HealthSettings {
        refused: small(s.count("refused", default.refused as usize, 1..=100)),
        timeouts: small(s.count("timeouts", default.timeouts as usize, 1..=100)),
        probe_every: s.duration("probe_every", default.probe_every, from_to(100, HOUR)),
        probe_timeout: s.duration("probe_timeout", default.probe_timeout, from_to(10, 60_000)),
        slow_start: s.duration("slow_start", default.slow_start, from_to(0, HOUR)),
        ..default
    }
}

fn read_check(mut s: Section<'_, '_>) -> Option<CheckSettings> {
    let default = CheckSettings::default();
    let path = s.text_or("path", "URL path", "none", rules::check_path);
    let settings = CheckSettings {
        path: path.clone().unwrap_or_default(),
        host: s.text_or("host", "host name", "server", rules::host).unwrap_or_default(),
        every: s.duration("every", default.every, from_to(100, HOUR)),
        expect: {
            let range = StatusRange(default.expect.0, default.expect.1);
            let StatusRange(first, last) =
                s.text("expect", "status, or range of them", range, statuses);
            (first, last)
        },
        fall: small(s.count("fall", default.fall as usize, 1..=100)),
        rise: small(s.count("rise", default.rise as usize, 1..=100)),
    };
    path.map(|_| settings)
}

fn read_errors(mut s: Section<'_, '_>) -> ErrorSettings {
    let default = ErrorSettings::default();
    ErrorSettings {
        percent: small(s.count("percent", default.percent as usize, 0..=100)),
        statuses: s.flag("statuses", default.statuses),
        eject: s.duration("eject", default.eject, from_to(100, HOUR)),
        ..default
    }
}

fn read_timeouts(mut s: Section<'_, '_>, settings: &mut exchange::Settings) {
    settings.connect = s.duration("connect", settings.connect, from_to(10, 600_000));
    settings.first_byte = s.duration("first_byte", settings.first_byte, from_to(10, HOUR));
    settings.idle = s.duration("idle", settings.idle, from_to(10, 24 * HOUR));
    let total = s.duration("total", settings.total.unwrap_or_default(), from_to(0, 24 * HOUR));
    settings.total = (!total.is_zero()).then_some(total);
    settings.tunnel_idle = s.duration("tunnel_idle", settings.tunnel_idle, from_to(10, 24 * HOUR));
}

/// Returns the local addresses to connect from.
fn read_connections(mut s: Section<'_, '_>, settings: &mut exchange::Settings) -> Vec<IpAddr> {
    settings.idle_connections = s.count("idle", settings.idle_connections, 0..=100_000);
    let timeout = settings.idle_connection_timeout;
    settings.idle_connection_timeout = s.duration("idle_timeout", timeout, from_to(10, HOUR));
    settings.repeats = small(s.count("repeats", settings.repeats as usize, 0..=100));
    settings.head_limit = s.size("head", settings.head_limit, KIB..=exchange::Settings::MOST_HEAD);
    settings.half_closed = s.choice("half_closed", settings.half_closed);
    s.texts("source_addresses", "addresses", Vec::new(), rules::source_address)
}

fn read_request(mut s: Section<'_, '_>, settings: &mut exchange::Settings) {
    let content = s.size_or("content", "any", 0..=1024 * GIB);
    settings.largest_content = content.map(|bytes| bytes as u64);
    let default = RequestPolicy::default();
    let host = s.text("host", "host name, `keep` or `server`", "keep".to_owned(), rules::sent_host);
    settings.request = RequestPolicy {
        host: match host.as_str() {
            "keep" => HostPolicy::Keep,
            "server" => HostPolicy::Server,
            _ => HostPolicy::Name(host),
        },
        via: s.flag("via", default.via),
        forwarded: s.choice("forwarded", default.forwarded),
        x_forwarded: s.choice("x_forwarded", default.x_forwarded),
        upgrades: s.texts("upgrades", "protocols", default.upgrades, rules::upgrade),
        client_subject: s.text_or("client_subject", "field name", "none", rules::added_field),
        client_address: s.text_or("client_address", "field name", "none", rules::address_field),
        early_data: s.flag("early_data", default.early_data),
    };
}

/// Reads `[resolver]`.
pub(crate) fn read_resolver(mut s: Section<'_, '_>) -> ResolveSettings {
    let default = ResolveSettings::default();
    ResolveSettings {
        name_servers: s.texts("name_servers", "addresses", default.name_servers, rules::tcp),
        timeout: s.duration("timeout", default.timeout, from_to(50, 60_000)),
        most_ttl: s.duration("most_ttl", default.most_ttl, from_to(1000, 24 * HOUR)),
        ..default
    }
}

/// `"127.0.0.1:3000"`, or `{ to = "127.0.0.1:3000", weight = 3 }`.
fn read_server(node: &Node) -> Result<ServerSettings, Vec<Fault>> {
    let Value::Table(table) = &node.value else {
        return read_text(node, rules::server_address).map(ServerSettings::at);
    };
    let known = ["to", "weight", "max_connections"];
    if let Some((key, _)) = table.iter().find(|(key, _)| !known.contains(&key.name.as_str())) {
        let remedy = match suggest::nearest(&key.name, known.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "a server has `to`, `weight` and `max_connections`".to_owned(),
        };
        let cause = format!("unknown setting `{}` of a server", key.name);
        let at = Node { span: key.span.clone(), value: Value::Flag(true), given: Given::Written };
        return Err(Fault::unfit(&at, Unfit::new(cause, remedy)));
    }
    let get = |name: &str| table.iter().find(|(key, _)| key.name == name).map(|(_, node)| node);
    let Some(to) = get("to") else {
        let cause = "a server without `to`";
        return Err(Fault::unfit(node, Unfit::new(cause, "write { to = \"127.0.0.1:3000\" }")));
    };
    let default = ServerSettings::at(read_text(to, rules::server_address)?);
    let count = |name: &str, default: u32, range: RangeInclusive<usize>| match get(name) {
        None => Ok(default),
        Some(node) => read_count(node, &range).map(small),
    };
    Ok(ServerSettings {
        weight: count("weight", default.weight, 0..=1000)?,
        max_connections: count("max_connections", default.max_connections, 1..=1_000_000)?,
        to: default.to,
    })
}

fn shown_server(server: &ServerSettings) -> String {
    let default = ServerSettings::at(server.to.clone());
    if *server == default {
        return quote(&server.to.to_string());
    }
    let ServerSettings { to, weight, max_connections } = server;
    let to = quote(&to.to_string());
    format!("{{ to = {to}, weight = {weight}, max_connections = {max_connections} }}")
}

/// First and last good status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StatusRange(u16, u16);

impl std::fmt::Display for StatusRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == self.1 { self.0.fmt(f) } else { write!(f, "{}-{}", self.0, self.1) }
    }
}

fn statuses(text: &str) -> Result<StatusRange, Unfit> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let code = |text: &str| Status::parse(text).map(Status::code);
    // The last response to a request is never an interim one.
    match (code(first), code(last)) {
        (Some(first), Some(last)) if first <= last && last >= 200 => Ok(StatusRange(first, last)),
        _ => {
            let cause = format!("\"{text}\" is no range of statuses of final responses");
            Err(Unfit::new(cause, "write for example \"200\" or \"200-399\""))
        }
    }
}

const HOUR: u64 = 3_600_000;

/// Durations from and to so many milliseconds.
fn from_to(low: u64, high: u64) -> RangeInclusive<Duration> {
    Duration::from_millis(low)..=Duration::from_millis(high)
}

/// Counts are bounded by their ranges.
fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
