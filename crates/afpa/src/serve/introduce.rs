//! Collects the summary that the start prints.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use afpa_cache::Arena;
use afpa_proxy::select::ServerAddress;
use afpa_server::Address;

use super::Server;
use crate::privileges::Limit;
use crate::sockets;
use crate::summary::{Memory, Summary, Watches};

/// How long the start waits for the scan of the tree before it prints which directories are watched.
const SCAN_TIMEOUT: Duration = Duration::from_secs(2);

impl Server {
    /// Prints the summary of the start.
    pub(super) fn introduce(&self, descriptors: Limit, waiting: String) {
        let summary = Summary {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            workers: self.config.workers,
            listeners: self
                .engine
                .listeners()
                .filter(|listener| !listener.settings.is_inner)
                .map(|listener| url(&listener.address, listener.settings.tls.is_some()))
                .chain(self.dns.addresses().iter().map(|address| format!("dns://{address}")))
                .collect(),
            waiting,
            confined: self.confinement.line(),
            root: self.served(),
            absent: self.absent(),
            user: self.user.clone().unwrap_or_default(),
            pinned_limit: self.arena.usage().limit as u64,
            memory: memory(&self.arena),
            descriptors,
            watches: self.watches(),
            fast_path: self.observed.fast_path.line(),
            sockets: self.observed.fast_path.sockets(),
            control: self.admin.addresses().find_map(|address| match address {
                Address::Unix(path) => Some(path.display().to_string()),
                Address::Tcp(_) => None,
            }),
            admin: self
                .admin
                .addresses()
                .find(|a| matches!(a, Address::Tcp(_)))
                .map(|a| url(a, false)),
        };
        afpa_say::error(&summary.to_string());
    }

    fn watches(&self) -> Watches {
        let max_age = format!("{:?}", self.config.coherency.unwatched_max_age);
        if !self.config.coherency.watch {
            return Watches::Off { max_age };
        }
        let serving = self.observed.serving.load();
        let deadline = Instant::now() + SCAN_TIMEOUT;
        for watcher in serving.global.roots.iter().filter_map(|root| root.watcher()) {
            watcher.wait_complete(deadline.saturating_duration_since(Instant::now()));
        }
        let summary = serving.global.watched();
        let directories = summary.watched;
        match summary.unwatched.first_key_value() {
            None => Watches::All { directories },
            Some((reason, count)) => Watches::Some {
                directories,
                reason: format!("{count}: {reason}"),
                max_age,
                remedy: reason
                    .remedy()
                    .unwrap_or("their files are compared when they are old")
                    .into(),
            },
        }
    }

    /// Servers on this machine that do not listen. They may start later, but a slip in an address shows here.
    fn absent(&self) -> String {
        let groups = self.config.groups.iter();
        let all = groups.flat_map(|group| &group.settings.servers).map(|server| &server.to);
        let listening = LazyCell::new(sockets::Listening::now);
        let is_absent = |server: &&ServerAddress| match server {
            ServerAddress::Fixed(Address::Tcp(address)) => {
                address.ip().is_loopback() && !listening.has(*address)
            }
            ServerAddress::Fixed(Address::Unix(path)) => !path.exists(),
            ServerAddress::Name { .. } => false,
        };
        let absent: Vec<String> = all.filter(is_absent).map(ToString::to_string).collect();
        match &absent[..] {
            [] => String::new(),
            [one] => format!("{one} is not there yet (afpa check --probe FILE)"),
            [first, ..] => {
                let more = absent.len() - 1;
                format!("{first} and {more} more are not there yet (afpa check --probe FILE)")
            }
        }
    }

    /// The directories and server groups that are served.
    fn served(&self) -> String {
        let groups = self.config.groups.iter().map(|group| group.settings.name.clone());
        let roots = self.config.directories().map(|root| root.display().to_string());
        let mut known = HashSet::new();
        let mut served: Vec<String> = Vec::new();
        let zones = self.config.zones.iter().map(|zone| zone.name.to_string());
        served.extend(roots.chain(groups).chain(zones).filter(|name| known.insert(name.clone())));
        const SHOWN: usize = 4;
        let more = served.len().saturating_sub(SHOWN);
        served.truncate(SHOWN);
        let more = if more > 0 { format!("  and {more} more") } else { String::new() };
        format!("{}{more}", served.join("  "))
    }
}

fn memory(arena: &Arena) -> Memory {
    match arena.lock_report() {
        afpa_cache::LockReport::Locked => Memory::Locked,
        afpa_cache::LockReport::NotLocked { reason, remedy } => {
            Memory::NotLocked { reason: reason.clone(), remedy: remedy.clone() }
        }
    }
}

fn url(address: &Address, tls: bool) -> String {
    match address {
        Address::Tcp(address) if tls => format!("https://{address}/"),
        Address::Tcp(address) => format!("http://{address}/"),
        Address::Unix(_) => address.to_string(),
    }
}
