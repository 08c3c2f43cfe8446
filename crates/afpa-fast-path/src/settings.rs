//! The fast path's view of the configuration. The program converts its own configuration into this.

use std::net::SocketAddr;
use std::time::Duration;

use afpa_bpf::Admission;
use afpa_framework::Network;
use afpa_http::RequestLimits;

/// The configuration, as far as the kernel's part depends on it.
#[derive(Clone, Debug)]
pub struct FastPathSettings {
    /// Whether the fast path is used.
    pub mode: FastPathUse,
    /// Most answers in the kernel, one for each coding of an object.
    pub objects: usize,
    /// Bytes of the longest answer, head and content.
    pub answer_max: usize,
    /// Bytes of the longest answer to a request that asks for the end of a connection without a socket.
    pub last_answer_max: usize,
    /// Bytes that all answers may take up.
    pub memory: usize,
    /// Most connections shared with the kernel.
    pub flows: usize,
    /// After this many consecutive requests that the kernel could not answer, AFPA alone serves the rest of
    /// a connection; 0: never.
    pub bypass_after: usize,
    /// Clients are answered for so long after a packet of theirs got through the kernel's own path; zero: for ever.
    pub firewall_interval: Duration,
    /// Whether connections of known clients begin without a socket.
    pub socketless: bool,
    /// Open connections of all clients that there may be, those without a socket among them.
    pub connections: usize,
    /// Connections that one client may have, those without a socket among them.
    pub connections_per_client: u32,
    /// The clients whose connections may begin without a socket.
    pub admission: Admission,
    /// The server's patience with idle connections, for those without a socket.
    pub idle: Duration,
    /// One in this many answers goes to the access log; 0: none.
    pub log_every: usize,
    /// One in this many answers of one segment is compared with user mode's; 0: none.
    pub self_check: usize,
    /// Whether there is an access log.
    pub access_log: bool,
    /// Whether connections survive a restart of the process.
    pub survive_restart: bool,
    /// Whether changes of files are watched.
    pub watches_files: bool,
    /// The limits beyond which user mode refuses a request.
    pub request_limits: RequestLimits,
    /// The sites, in the order of the configuration.
    pub sites: Vec<KernelSite>,
}

/// Whether the fast path is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPathUse {
    /// Never.
    Off,
    /// Where it is possible.
    Auto,
    /// Always: without it, the process must not start.
    On,
}

/// A site, as far as the kernel may answer for it.
#[derive(Clone, Debug, Default)]
pub struct KernelSite {
    /// Its name for people.
    pub name: String,
    /// TCP addresses on which it is served, as configured: a port may be 0.
    pub addresses: Vec<SocketAddr>,
    /// Host names; `*.example.org` stands for all names below. None: every host that no other site has.
    pub hosts: Vec<String>,
    /// Whether its connections begin with the PROXY protocol.
    pub proxy_protocol: bool,
    /// Whether any of its files are cached.
    pub caches: bool,
    /// Whether answers of its servers are kept that the kernel may give.
    pub caches_answers: bool,
    /// Routers whose X-Forwarded-For is believed.
    pub forwarded_from: Vec<Network>,
}

impl KernelSite {
    /// Whether it is served on this configured address.
    pub(crate) fn listens(&self, address: SocketAddr) -> bool {
        self.addresses.contains(&address)
    }
}

/// For tests: two sites with names and one for any host, of which the second caches nothing.
#[cfg(test)]
pub(crate) fn sample_sites() -> Vec<KernelSite> {
    vec![
        sample_site(&["10.0.0.1:80", "10.0.0.2:81"], &["a.org", "www.a.org"]),
        KernelSite { caches: false, ..sample_site(&["10.0.0.1:80"], &["b.org"]) },
        sample_site(&["10.0.0.1:80"], &[]),
    ]
}

/// For tests: a site that caches.
#[cfg(test)]
pub(crate) fn sample_site(addresses: &[&str], hosts: &[&str]) -> KernelSite {
    KernelSite {
        addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        caches: true,
        ..KernelSite::default()
    }
}

/// For tests: settings with these sites, and the rest as the program has it by default.
#[cfg(test)]
pub(crate) fn sample(sites: Vec<KernelSite>) -> FastPathSettings {
    FastPathSettings {
        mode: FastPathUse::Auto,
        objects: 8192,
        answer_max: 65_536,
        last_answer_max: 65_536,
        memory: 64 << 20,
        flows: 65_536,
        bypass_after: 64,
        firewall_interval: Duration::from_secs(1),
        socketless: false,
        connections: 10_000,
        connections_per_client: 0,
        admission: Admission::Recent,
        idle: Duration::from_secs(60),
        log_every: 1,
        self_check: 4096,
        access_log: true,
        survive_restart: true,
        watches_files: true,
        request_limits: RequestLimits::default(),
        sites,
    }
}
