//! Settings of the engine.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use afpa_framework::{Client, Timeouts};
use afpa_police::Police;

use crate::io::Io;

/// Time-outs and limits of the engine, with safe defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Cores to run on; each gets a worker.
    pub workers: usize,
    /// From the first byte of a request's head to its last.
    pub head_timeout: Duration,
    /// Between two arrivals of a request's content.
    pub body_timeout: Duration,
    /// From the end of a response to the first byte of the next request.
    pub idle_timeout: Duration,
    /// Without the client taking a single byte of a response.
    pub write_timeout: Duration,
    /// The bytes a second that a client has to take of a response, or to send of a request's content of a length, while it
    /// is waited for; 0: any will do.
    pub least_rate: u64,
    /// From the acceptance of a connection of TLS to the end of its handshake.
    pub handshake_timeout: Duration,
    /// Handshakes of TLS in progress, all cores together.
    pub handshakes: usize,
    /// Handshakes of TLS in progress of one client address (IPv6: of one /64).
    pub handshakes_per_client: usize,
    /// Open connections, all cores together.
    pub connections: usize,
    /// Open connections of one client address (IPv6: of one /64).
    pub connections_per_client: usize,
    /// Requests of one connection that are answered before others get their turn.
    pub pipelined: usize,
    /// The shortest of the module's time-outs towards other servers, if it has any. The sweep must be as
    /// frequent.
    pub remote_timeout: Option<Duration>,
    /// Bytes of long responses that a core sends before it looks at its other connections again; 0: no limit.
    pub long_sends: usize,
    /// Work items a core may have with its helper threads.
    pub helper_places: usize,
    /// Helper threads of a core; 0: none until a reload gives it some.
    pub helper_threads: usize,
    /// The first work of helper threads.
    pub helper_start: HelperStart,
    /// Connections that wait in the kernel to be accepted.
    pub backlog: i32,
    /// How the workers wait for their connections.
    pub io: Io,
    /// Tells when the kernel's fast path last answered on a connection; `None` without a fast path.
    pub kernel_activity: Option<KernelActivity>,
    /// The police, which decides which clients are let in.
    pub police: Police,
    /// The limits of a connection of HTTP/2. `head` follows the module's longest head.
    pub http2: afpa_h2::Limits,
}

impl Settings {
    /// How long clients may take.
    pub(crate) fn client_timeouts(&self) -> Timeouts {
        let (body, write) = (self.body_timeout, self.write_timeout);
        Timeouts { body, write, least_rate: self.least_rate }
    }
}

/// The first work of helper threads, for example to give rights up. It runs once, on a thread from which all helpers of
/// the engine descend. A reload with another one makes new helpers, because a thread cannot take back the rights that
/// it has given up.
#[derive(Clone, Default)]
pub struct HelperStart(Option<Arc<dyn Fn() + Send + Sync>>);

impl HelperStart {
    /// Helpers begin with `begin`.
    pub fn new(begin: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(begin)))
    }

    /// Does it, on the calling thread.
    pub fn begin(&self) {
        if let Some(begin) = &self.0 {
            begin();
        }
    }
}

impl fmt::Debug for HelperStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HelperStart")
    }
}

impl PartialEq for HelperStart {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

impl Eq for HelperStart {}

/// Tells when the kernel's fast path last answered on a connection. User mode does not see these requests, so
/// a connection that seems idle may be busy.
#[derive(Clone)]
pub struct KernelActivity {
    since: Arc<Since>,
    connections: Option<Arc<Connections>>,
    all: Option<Arc<All>>,
}

/// How many connections of a client the kernel has that user mode does not see.
type Connections = dyn Fn(IpAddr) -> usize + Send + Sync;
/// How many it has of all clients.
type All = dyn Fn() -> usize + Send + Sync;
type Since = dyn Fn(SocketAddr, SocketAddr) -> Option<Duration> + Send + Sync;

impl KernelActivity {
    /// `since` tells, for the addresses of client and server, how long ago the last answer was given;
    /// `None`: there was none. It is asked when a connection is about to be closed, and must not block.
    pub fn new(
        since: impl Fn(SocketAddr, SocketAddr) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        Self { since: Arc::new(since), connections: None, all: None }
    }

    /// `connections` tells how many connections of a client there are that user mode does not see, but that count
    /// against its limit. It is asked for each connection that is accepted, and must not block.
    #[must_use]
    pub fn with_connections(
        self,
        connections: impl Fn(IpAddr) -> usize + Send + Sync + 'static,
    ) -> Self {
        Self { connections: Some(Arc::new(connections)), ..self }
    }

    /// As [`with_connections`](Self::with_connections), for the connections of all clients together.
    #[must_use]
    pub fn with_all(self, all: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        Self { all: Some(Arc::new(all)), ..self }
    }

    pub(crate) fn all(&self) -> usize {
        self.all.as_ref().map_or(0, |all| all())
    }

    pub(crate) fn connections(&self, client: Client) -> usize {
        match (&self.connections, client) {
            (Some(connections), Client::Ip(client)) => connections(client),
            _ => 0,
        }
    }

    pub(crate) fn since(&self, client: SocketAddr, server: SocketAddr) -> Option<Duration> {
        (self.since)(client, server)
    }
}

impl fmt::Debug for KernelActivity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KernelActivity")
    }
}

impl PartialEq for KernelActivity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.since, &other.since)
    }
}

impl Eq for KernelActivity {}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: 1,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            // The slowest modem takes 240 bytes a second (2,400 bit/s with its start and stop bits), and a phone at the edge of
            // its network takes more.
            least_rate: 240,
            handshake_timeout: Duration::from_secs(10),
            handshakes: 2_000,
            handshakes_per_client: 200,
            connections: 10_000,
            connections_per_client: 2_000,
            // Few enough that other connections of the core wait for less than a millisecond, and enough to share a write.
            pipelined: 128,
            remote_timeout: None,
            long_sends: 1024 * 1024,
            helper_places: 1024,
            helper_threads: 16,
            helper_start: HelperStart::default(),
            backlog: 4096,
            io: Io::Readiness,
            kernel_activity: None,
            police: Police::default(),
            http2: afpa_h2::Limits::default(),
        }
    }
}
