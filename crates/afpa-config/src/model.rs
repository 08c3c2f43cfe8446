//! The configuration as the rest of the program sees it: plain values, resolved for this machine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use afpa_acme::AcmeSettings;
use afpa_fleet::{FleetSettings, Revision};
use afpa_http::RequestLimits;
use afpa_names::ResolveSettings;

use crate::choice::{Choice as _, choice};
use crate::dns_keys::DnsKeySettings;
use crate::groups::ServerGroup;
use crate::http2::Http2;
use crate::http3::Http3;
use crate::police::Police;
use crate::shared_cache::SharedCache;
use crate::site_settings::SiteSettings;
use crate::tls::{CertificateFiles, Tls};
use crate::zones::{DnsSettings, ZoneSettings};

/// A configuration with every value resolved for this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Worker threads, each with its own event loop on its own core.
    pub workers: usize,
    /// User to become after binding; `None`: www-data, else nobody, when started as root.
    pub user: Option<String>,
    /// Group to become; `None`: the user's own.
    pub group: Option<String>,
    /// `[engine]`.
    pub engine: Engine,
    /// `[limits]`.
    pub limits: Limits,
    /// `[http2]`.
    pub http2: Http2,
    /// `[http3]`.
    pub http3: Http3,
    /// `[police]`.
    pub police: Police,
    /// `[timeouts]`.
    pub timeouts: Timeouts,
    /// `[tls]`.
    pub tls: Tls,
    /// Every `[[certificate]]`.
    pub certificates: Vec<CertificateFiles>,
    /// `[acme]`: certificates that come by themselves.
    pub acme: AcmeSettings,
    /// `[fleet]`: machines that serve the same sites.
    pub fleet: FleetSettings,
    /// The revision of the fleet's files that are in it; `None`: none are.
    pub revision: Option<Revision>,
    /// `[cache]`.
    pub cache: Cache,
    /// `[shared_cache]`.
    pub shared_cache: SharedCache,
    /// `[coherency]`.
    pub coherency: Coherency,
    /// `[fast_path]`.
    pub fast_path: FastPath,
    /// `[compression]`.
    pub compression: Compression,
    /// `[log]`.
    pub log: Log,
    /// Spans of requests.
    pub tracing: Tracing,
    /// `[admin] listen`: metrics and health over TCP, if wanted.
    pub admin: Option<SocketAddr>,
    /// `[control] path`; `None`: the default path, at which `afpa stats` looks.
    pub control: Option<PathBuf>,
    /// `[resolver]`.
    pub resolver: ResolveSettings,
    /// Every `[[server_group]]`, followed by one for each `to` that names its servers by address.
    pub groups: Vec<ServerGroup>,
    /// Every `[[site]]`; none where there are zones alone.
    pub sites: Vec<SiteSettings>,
    /// `[dns]`.
    pub dns: DnsSettings,
    /// Every `[[dns.key]]`.
    pub dns_keys: Vec<DnsKeySettings>,
    /// Every `[[zone]]`.
    pub zones: Vec<ZoneSettings>,
    /// `[internals]`.
    pub internals: Internals,
}

choice! {
    /// How workers wait for their connections.
    Io {
        /// Each worker as its load suggests.
        Auto = "auto",
        /// By epoll.
        Readiness = "readiness",
        /// By io_uring, where it is possible.
        Completion = "completion",
    }
}

choice! {
    /// Whether threads give up the rights that they do not need.
    Confine {
        /// Threads give up all rights that they do not need.
        On = "on",
        /// Nothing is given up, and the kernel's log shows the calls that a thread would have been refused.
        Log = "log",
        /// Nothing is given up.
        Off = "off",
    }
}

/// How the engine works.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// Whether threads give up the rights that they do not need.
    pub confine: Confine,
    /// How workers wait for their connections.
    pub io: Io,
}

/// Limits for clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Open connections in total.
    pub connections: usize,
    /// Open connections of one client address.
    pub connections_per_client: usize,
    /// Bytes of a request head.
    pub head: usize,
    /// Bytes of a request body that are read and discarded.
    pub body: usize,
}

impl Limits {
    /// The limits of a request head. A request line may take up a quarter of it, as by default in nginx.
    pub fn of_requests(&self) -> RequestLimits {
        let (head, default) = (self.head, RequestLimits::default());
        RequestLimits { request_line: head / 4, head, ..default }
    }
}

/// How long is waited.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeouts {
    /// For a request head, from its first byte to its last.
    pub head: Duration,
    /// For the next bytes of a request body.
    pub body: Duration,
    /// For the next request of a connection.
    pub idle: Duration,
    /// For a client to take more bytes of a response.
    pub write: Duration,
    /// For connections to end during a graceful stop.
    pub shutdown: Duration,
}

choice! {
    /// Which object is ejected when the pinned arena is full.
    Policy {
        /// AFPA's modified LRU: prefers to eject objects no smaller than the one that comes.
        AfpaLru = "afpa-lru",
        /// Least recently used.
        Lru = "lru",
        /// Least frequently used.
        Lfu = "lfu",
        /// S3-FIFO, whose working set survives a scan.
        S3Fifo = "s3-fifo",
        /// Classes by size and type, each with its share of the room.
        Structured = "structured",
        /// The policy that does best on the recent requests.
        Auto = "auto",
    }
}

/// The objects in memory, and their limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// Bytes of the locked arena.
    pub pinned_limit: usize,
    /// Largest payload that is pinned; larger ones are sent from their file.
    pub pin_threshold: usize,
    /// File-system objects, which hold a descriptor each.
    pub open_files: usize,
    /// Bytes of what objects have beside their content: names, heads, entries in tables.
    pub tables_limit: usize,
    /// Replacement policy.
    pub policy: Policy,
}

impl Cache {
    /// One object takes a tenth of the arena at most, all its codings together, so that it cannot eject all others.
    pub const LARGEST_SHARE: usize = 10;
}

/// How a change of a file is noticed.
#[derive(Clone, Debug, PartialEq)]
pub struct Coherency {
    /// Whether directories are watched.
    pub watch: bool,
    /// Age up to which an object that cannot be watched is served without comparing it with its file.
    pub unwatched_max_age: Duration,
    /// Whether a file written into the tree enters the cache at once.
    pub push: bool,
}

impl Coherency {
    /// Directories that are watched, of all sites together: each costs the kernel 1 KB, and a tree of more changes too
    /// rarely to need it. Files in the others are compared with what is kept of them.
    pub const MOST_WATCHES: usize = 65_536;
}

choice! {
    /// Where connections begin, and so which clients the host's firewall is asked about.
    Connections {
        /// In the kernel's TCP, all of them.
        Kernel = "kernel",
        /// Connections of clients that the kernel's TCP has let in lately begin without a socket.
        Known = "known",
        /// As `Known`; in a flood of SYNs connections of all other clients, too, as far as the way back is sure.
        Flood = "flood",
        /// Connections of all clients begin so, as far as the way back is sure. The firewall is not asked.
        Everyone = "everyone",
    }
}

choice! {
    /// Whether requests are answered in the kernel.
    FastPathMode {
        /// Where it is possible.
        Auto = "auto",
        /// Or AFPA does not start.
        On = "on",
        /// Never.
        Off = "off",
    }
}

/// The settings of the fast path.
#[derive(Clone, Debug, PartialEq)]
pub struct FastPath {
    /// Whether the kernel answers requests by itself.
    pub mode: FastPathMode,
    /// Where connections begin.
    pub connections: Connections,
    /// Bytes that answers may take up.
    pub memory: usize,
    /// Bytes of the longest of them.
    pub answer_max: usize,
    /// Of so many answers one goes to the access log; 0: none.
    pub log_every: usize,
    /// Whether programs and connections survive a process that is killed, for the next one to take over.
    pub survive_restart: bool,
}

/// `[internals]`: constants that AFPA's own tests and benchmarks set to other values, in the program as it is installed.
/// No page describes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Internals {
    /// Consecutive requests that the kernel could not answer, after which user mode alone serves the
    /// connection; 0: never.
    pub bypass_after: usize,
    /// Clients are answered in the kernel for so long after a packet of theirs got through netfilter, cgroup
    /// programs and routes; zero: for ever.
    pub firewall_interval: Duration,
    /// Bytes a second that a client has to move while it is waited for; 0: any will do.
    pub least_rate: usize,
    /// Bytes of long responses that a worker sends before it looks at its other connections again; 0: no limit.
    pub long_sends: usize,
    /// How often files of certificates and ticket keys are looked at.
    pub reread: Duration,
    /// Of so many answers of the kernel one is compared with user mode's; 0: none.
    pub self_check: usize,
}

choice! {
    /// A content coding that AFPA can produce.
    Coding {
        /// Brotli (RFC 7932).
        Brotli = "br",
        /// Zstandard (RFC 8878).
        Zstd = "zstd",
        /// Gzip (RFC 1952).
        Gzip = "gzip",
    }
}

/// The compression of objects that are asked for again.
#[derive(Clone, Debug, PartialEq)]
pub struct Compression {
    /// Whether anything is compressed.
    pub enabled: bool,
    /// Media types; `text/*` means all of a kind.
    pub types: Vec<String>,
    /// Smallest file in bytes.
    pub min_size: usize,
    /// Largest file in bytes.
    pub max_size: usize,
    /// Codings made.
    pub codings: Vec<Coding>,
    /// How hard each coding tries.
    pub levels: Levels,
}

/// `[compression.levels]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    /// Brotli quality.
    pub br: u32,
    /// Zstandard level.
    pub zstd: u32,
    /// Gzip level.
    pub gzip: u32,
}

choice! {
    /// How much is logged.
    Level {
        /// A fault that stops AFPA from doing its work.
        Error = "error",
        /// A condition that an operator should look at.
        Warn = "warn",
        /// Start, stop, reload.
        Info = "info",
        /// Decisions.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

choice! {
    /// How messages are written.
    LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

choice! {
    /// How the access log is written.
    AccessFormat {
        /// The combined format of nginx and Apache.
        Combined = "combined",
        /// One JSON object a line.
        Json = "json",
        /// Names and values, one line for a request.
        Logfmt = "logfmt",
    }
}

choice! {
    /// A field of the lines of the access log.
    AccessField {
        /// When the request was understood.
        Time = "time",
        /// The client's address.
        Client = "client",
        /// The user whose password was checked.
        User = "user",
        /// The id of the request.
        RequestId = "request_id",
        /// The number of its trace.
        TraceId = "trace_id",
        /// As sent.
        Method = "method",
        /// The path and the query, as sent.
        Target = "target",
        /// The version of HTTP.
        Version = "version",
        /// The field of that name.
        Host = "host",
        /// That of the answer.
        Status = "status",
        /// Bytes of content.
        BodyBytes = "body_bytes",
        /// Microseconds until the last byte was handed to the kernel.
        Duration = "duration_us",
        /// The part that answered.
        Source = "source",
        /// Answers that the line stands for.
        Weight = "weight",
        /// The server that was asked.
        Server = "server",
        /// Microseconds until its response began.
        FirstByte = "first_byte_us",
        /// How many servers were asked.
        Attempts = "attempts",
        /// The version of TLS.
        Tls = "tls",
        /// Its cipher suite.
        Cipher = "cipher",
        /// Whether its session was resumed.
        Resumed = "resumed",
        /// Whether the request came before the handshake was complete.
        EarlyData = "early_data",
        /// The protocol that ALPN chose.
        Protocol = "protocol",
        /// That of the client's certificate.
        Subject = "subject",
        /// The field of that name.
        Referer = "referer",
        /// The field of that name.
        UserAgent = "user_agent",
    }
}

/// A field of the lines of the access log, or one that a request has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogField {
    /// A field that AFPA itself knows.
    Own(AccessField),
    /// The field of a request that has this name, in lower case.
    Request(Box<str>),
}

impl std::fmt::Display for LogField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LogField::Own(field) => f.write_str(field.word()),
            LogField::Request(name) => write!(f, "header:{name}"),
        }
    }
}

/// Spans of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// The URL of the collector that gets them by OTLP; `None`: nobody does.
    pub otlp: Option<String>,
    /// The name of this service in them.
    pub service: String,
    /// Further fields of the requests to the collector.
    pub headers: Vec<(String, String)>,
}

/// Where the access log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTarget {
    /// Nowhere.
    Off,
    /// Standard output.
    Standard,
    /// A file, appended to.
    File(PathBuf),
}

/// Messages and the access log.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// Messages of this level and above.
    pub level: Level,
    /// Their form.
    pub format: LogFormat,
    /// Where the access log goes.
    pub access: AccessTarget,
    /// Its form.
    pub access_format: AccessFormat,
    /// The fields of its lines, in order; empty: those that its form has.
    pub access_fields: Vec<LogField>,
    /// Bytes of access records that may wait in each worker; beyond that lines are dropped.
    pub access_queue: usize,
}
