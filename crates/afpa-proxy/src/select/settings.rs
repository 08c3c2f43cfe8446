//! Settings of a server group.

use std::net::IpAddr;
use std::time::Duration;

use afpa_framework::PrefaceVersion;

use super::address::ServerAddress;
use super::cookie::CookieSettings;
use crate::health::HealthSettings;
use crate::pool::TlsToServers;

/// A server group: servers that can all answer the same requests (IBM paper, section 4).
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSettings {
    /// Its name, for logs and metrics.
    pub name: String,
    /// Its servers; at least one, at most 1000.
    pub servers: Vec<ServerSettings>,
    /// How a server is selected for a request without affinity.
    pub select: Select,
    /// Whether requests of one client stay with one server, unless the request set says otherwise.
    pub affinity: Affinity,
    /// Name of the cookie of [`Affinity::Cookie`]: a token of RFC 6265.
    pub cookie: String,
    /// The attributes of that cookie.
    pub cookie_settings: CookieSettings,
    /// Secret from which the values of that cookie are made. If every front end has the same text, also after
    /// a restart, clients stay with their servers. `None`: a new secret at each start.
    pub cookie_secret: Option<String>,
    /// With [`Select::UrlHash`] and [`Select::ClientHash`]: how much of the average load a server
    /// may carry before its requests go to its neighbours, in percent; 101 to 10000.
    pub load_bound_percent: u32,
    /// When a server counts as unavailable, and when it is used again.
    pub health: HealthSettings,
    /// Per cent of a server's requests at a time, and of the places in its queue, that one client may have: see
    /// docs/rules/clients.md, C1; 1 to 100, which is no limit.
    pub client_share: u32,
    /// The queue for requests when all servers have reached their limit.
    pub queue: QueueSettings,
    /// How its servers are reached by TLS; `None`: without it.
    pub tls: Option<TlsToServers>,
    /// Whether its servers are asked for HTTP/2, and the limits for them.
    pub http2: Option<afpa_h2::Limits>,
    /// Whether its servers speak FastCGI.
    pub fastcgi: bool,
    /// The PROXY protocol, by which its servers hear of each client.
    pub preface: Option<PrefaceVersion>,
    /// Local addresses from which its servers are reached, in turn; empty: the system chooses.
    pub sources: Vec<IpAddr>,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            name: String::new(),
            servers: Vec::new(),
            select: Select::default(),
            affinity: Affinity::default(),
            cookie: "afpa".to_owned(),
            cookie_settings: CookieSettings::default(),
            cookie_secret: None,
            // The value that the paper on consistent hashing with bounded loads measures with, and HAProxy suggests.
            load_bound_percent: 125,
            health: HealthSettings::default(),
            client_share: 75,
            queue: QueueSettings::default(),
            tls: None,
            http2: None,
            fastcgi: false,
            preface: None,
            sources: Vec::new(),
        }
    }
}

/// One server of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Where it is.
    pub to: ServerAddress,
    /// Requests that it gets before the next server's turn; 0 to 1000. With 0 it drains: it gets only requests
    /// that affinity binds to it.
    pub weight: u32,
    /// Most requests at a time; 1 to 1000000.
    pub max_connections: u32,
}

impl ServerSettings {
    /// A server at `to`, with the defaults: weight 1 and 1024 requests at a time.
    pub fn at(to: ServerAddress) -> Self {
        Self { to, weight: 1, max_connections: 1024 }
    }
}

/// How a server is selected (IBM paper, section 3, and later methods).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Select {
    /// Weighted round robin, as in the paper: a server gets as many requests as its weight says, then it is
    /// the next server's turn.
    #[default]
    RoundRobin,
    /// The server with the fewest requests in flight for its weight.
    LeastConnections,
    /// By the URL, so that each server gets its own part of the site (the aim of LARD): consistent hashing
    /// with bounded load.
    UrlHash,
    /// By the client's address, likewise.
    ClientHash,
}

/// Which requests must go to the same server (IBM paper, section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Any request may go to any server.
    #[default]
    None,
    /// All requests from one client address go to one server.
    Client,
    /// All requests that bring the cookie that the first response of a server set.
    Cookie,
}

/// The queue for requests while every server has reached its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// How many may wait for each server; 0 to 1000000. With 0 no request waits.
    pub length: u32,
    /// How long; 1 ms to 10 min.
    pub timeout: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self { length: 256, timeout: Duration::from_secs(5) }
    }
}
