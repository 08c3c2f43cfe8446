//! Limits of one site, and of each of its clients: rates, requests and connections at a time.
//!
//! The gate applies to requests that go to servers, because these are what costs. Cached answers do not pass
//! it, so they are still given when a limit is reached. A request that does not pass is refused at once and
//! does not wait: with 429 if its client's limit is reached, with 503 if the site's is.

mod bucket;
mod clients;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::client::Client as Key;
use afpa_http::Status;
use bucket::Bucket;
use clients::Clients;

/// Limits of one site; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Requests a second, of all clients together; up to 1000000000.
    pub requests_per_second: u32,
    /// Burst: how many may arrive at once; at least 1 where there is a rate.
    pub burst: u32,
    /// Requests at a time, of all clients together.
    pub in_flight: u32,
    /// Connections at a time on which requests arrive, of all clients together.
    pub connections: u32,
    /// Requests a second, of each client. The first 64 bits of an address identify an IPv6 client.
    pub client_requests_per_second: u32,
    /// Burst of one client: how many may arrive at once; at least 1 where there is a rate.
    pub client_burst: u32,
    /// Requests at a time, of each client.
    pub client_in_flight: u32,
    /// Connections at a time on which requests arrive, of each client.
    pub client_connections: u32,
    /// Clients that are remembered at a time, some 100 bytes each; 1 to 10000000. Idle clients are forgotten
    /// first.
    pub clients: usize,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            requests_per_second: 0,
            burst: 100,
            in_flight: 0,
            connections: 0,
            client_requests_per_second: 0,
            client_burst: 50,
            client_in_flight: 0,
            client_connections: 0,
            // Some 6 MB; those that are forgotten have been idle for longest, and begin with a full burst.
            clients: 65_536,
        }
    }
}

impl LimitSettings {
    /// Whether there is any limit on requests.
    pub const fn limits_requests(&self) -> bool {
        self.requests_per_second > 0 || self.in_flight > 0 || self.limits_clients()
    }

    /// Whether there is any limit on connections.
    pub const fn limits_connections(&self) -> bool {
        self.connections > 0 || self.client_connections > 0
    }

    const fn limits_clients(&self) -> bool {
        self.client_requests_per_second > 0 || self.client_in_flight > 0
    }
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The site's requests a second.
    SiteRate,
    /// The site's requests at a time.
    SiteInFlight,
    /// The client's requests a second.
    ClientRate,
    /// The client's requests at a time.
    ClientInFlight,
    /// The site's connections at a time.
    SiteConnections,
    /// The client's connections at a time.
    ClientConnections,
}

/// Names of the limits, in the order of [`Gate::refused`].
pub const LIMITS: [&str; 6] = [
    "site_rate",
    "site_in_flight",
    "client_rate",
    "client_in_flight",
    "site_connections",
    "client_connections",
];

/// Why a request or connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The limit that was reached.
    pub limit: Limit,
    retry_after_s: u32,
}

impl Refused {
    /// 429 (RFC 6585, section 4) for the client's own limit, 503 for the site's.
    pub const fn status(self) -> Status {
        match self.limit {
            Limit::ClientRate | Limit::ClientInFlight | Limit::ClientConnections => {
                Status::TOO_MANY_REQUESTS
            }
            Limit::SiteRate | Limit::SiteInFlight | Limit::SiteConnections => {
                Status::SERVICE_UNAVAILABLE
            }
        }
    }

    /// Whether the limit is one on connections: then the connection ends.
    pub const fn ends_connection(self) -> bool {
        matches!(self.limit, Limit::SiteConnections | Limit::ClientConnections)
    }

    /// Seconds after which the client may try again, as far as that is known; at least 1.
    pub const fn retry_after_s(self) -> u32 {
        self.retry_after_s
    }
}

/// Enforces the limits of one site. All workers share it.
#[derive(Debug)]
pub struct Gate {
    settings: LimitSettings,
    state: Mutex<GateState>,
}

#[derive(Debug)]
struct GateState {
    site: Bucket,
    in_flight: u32,
    connections: u32,
    clients: Clients,
    refused: [u64; LIMITS.len()],
}

/// A connection that counts against the limits of the site that its last request was for, until this is
/// dropped.
#[derive(Debug)]
pub struct ConnectionPermit {
    gate: Arc<Gate>,
    client: Option<Key>,
}

impl ConnectionPermit {
    /// Whether it counts against the limits of this gate.
    pub fn is_at(&self, gate: &Arc<Gate>) -> bool {
        Arc::ptr_eq(&self.gate, gate)
    }
}

/// A request that has passed the gate. It counts against the limits until this is dropped.
#[derive(Debug)]
pub struct Permit {
    _held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    gate: Arc<Gate>,
    client: Option<Key>,
}

impl Gate {
    /// A gate that no request has passed yet.
    pub fn new(settings: LimitSettings) -> Arc<Self> {
        let clients = Clients::new(settings.clients.max(1));
        let refused = [0; LIMITS.len()];
        let state =
            GateState { site: Bucket::default(), in_flight: 0, connections: 0, clients, refused };
        Arc::new(Self { settings, state: Mutex::new(state) })
    }

    /// Its settings.
    pub fn settings(&self) -> &LimitSettings {
        &self.settings
    }

    /// Lets a request pass, or says which limit is reached. A refused request does not count against a rate.
    /// The time is steady, in microseconds: to a coarser clock, requests one after the other would seem to
    /// arrive at once.
    pub fn admit(self: &Arc<Self>, now_us: u64, client: Option<IpAddr>) -> Result<Permit, Refused> {
        if !self.settings.limits_requests() {
            return Ok(Permit { _held: None });
        }
        let mut state = self.lock();
        match state.admit(&self.settings, now_us, client) {
            Ok(client) => {
                drop(state);
                let held = Held { gate: Arc::clone(self), client };
                Ok(Permit { _held: Some(held) })
            }
            Err(refused) => {
                state.refused[refused.limit as usize] += 1;
                Err(refused)
            }
        }
    }

    /// Counts a connection, or says which limit is reached. `None`: there are no limits on connections. A
    /// trusted router in front has no `client` here, because its connections carry requests of many clients.
    pub fn enter(
        self: &Arc<Self>,
        now_us: u64,
        client: Option<IpAddr>,
    ) -> Result<Option<ConnectionPermit>, Refused> {
        if !self.settings.limits_connections() {
            return Ok(None);
        }
        let mut state = self.lock();
        match state.enter(&self.settings, now_us, client) {
            Ok(client) => {
                drop(state);
                Ok(Some(ConnectionPermit { gate: Arc::clone(self), client }))
            }
            Err(refused) => {
                state.refused[refused.limit as usize] += 1;
                Err(refused)
            }
        }
    }

    /// How many were refused by each limit, in the order of [`LIMITS`].
    pub fn refused(&self) -> [u64; LIMITS.len()] {
        self.lock().refused
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GateState {
    /// The client's limits come first: a client beyond its own limit must not use up the site's rate.
    fn admit(
        &mut self,
        settings: &LimitSettings,
        now_us: u64,
        client: Option<IpAddr>,
    ) -> Result<Option<Key>, Refused> {
        let refused = |limit, wait_us: u64| {
            let retry_after_s = wait_us.div_ceil(1_000_000).clamp(1, 3600) as u32;
            Err(Refused { limit, retry_after_s })
        };
        if settings.in_flight > 0 && self.in_flight >= settings.in_flight {
            return refused(Limit::SiteInFlight, 0);
        }
        let site = self.site.look(now_us, settings.requests_per_second, settings.burst);
        let mut held = None;
        if let Some(key) = client.map(Key::from).filter(|_| settings.limits_clients())
            && let Some(client) = self.clients.get(key, now_us)
        {
            if settings.client_in_flight > 0 && client.in_flight >= settings.client_in_flight {
                return refused(Limit::ClientInFlight, 0);
            }
            let (rate, burst) = (settings.client_requests_per_second, settings.client_burst);
            let own = client.bucket.look(now_us, rate, burst);
            match (own, site) {
                (Err(wait_us), _) => return refused(Limit::ClientRate, wait_us),
                (_, Err(wait_us)) => return refused(Limit::SiteRate, wait_us),
                (Ok(()), Ok(())) => client.bucket.take(now_us, rate),
            }
            client.in_flight += 1;
            held = Some(key);
        }
        if let Err(wait_us) = site {
            return refused(Limit::SiteRate, wait_us);
        }
        self.site.take(now_us, settings.requests_per_second);
        self.in_flight += 1;
        Ok(held)
    }

    /// The client's limit first, as for requests.
    fn enter(
        &mut self,
        settings: &LimitSettings,
        now_us: u64,
        client: Option<IpAddr>,
    ) -> Result<Option<Key>, Refused> {
        let refused = |limit| Err(Refused { limit, retry_after_s: 1 });
        let full = settings.connections > 0 && self.connections >= settings.connections;
        let mut held = None;
        if let Some(key) = client.map(Key::from).filter(|_| settings.client_connections > 0)
            && let Some(client) = self.clients.get(key, now_us)
        {
            if client.connections >= settings.client_connections {
                return refused(Limit::ClientConnections);
            }
            if !full {
                client.connections += 1;
                held = Some(key);
            }
        }
        if full {
            return refused(Limit::SiteConnections);
        }
        self.connections += 1;
        Ok(held)
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.connections = state.connections.saturating_sub(1);
        if let Some(key) = self.client {
            state.clients.disconnect(key);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        if let Some(key) = self.client {
            state.clients.leave(key);
        }
    }
}

#[cfg(test)]
mod tests;
