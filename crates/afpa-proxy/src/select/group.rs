//! A server group, which all workers share.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use afpa_framework::PrefaceVersion;
use afpa_h2::Limits;

use super::address::{Address, ServerAddress};
use super::core::{Core, Decision, Placed};
use super::lease::{Cell, Lease, Waiter};
use super::settings::{Affinity, GroupSettings};
use super::{AttemptOutcome, Chosen, Pick, ServerIndex};
use crate::health::{Change, CheckSettings, ProbeKind};
use crate::observe::{GroupReport, ServerReport};
use crate::pool::TlsToServers;

/// A server group.
#[derive(Debug)]
pub struct Group {
    name: String,
    cookie: Option<String>,
    queue_timeout: Duration,
    tls: Option<TlsToServers>,
    http2: Option<Limits>,
    fastcgi: bool,
    preface: Option<PrefaceVersion>,
    sources: Arc<[IpAddr]>,
    shared: Arc<GroupCore>,
}

/// The state of a group. It outlives reloads: all configurations of one group share it.
#[derive(Debug)]
pub(super) struct GroupCore(Mutex<Core<Arc<Cell>>>);

/// A probe that is due. The result is reported with [`Group::probed`].
#[derive(Clone, Debug)]
pub struct ProbeTask {
    server: ServerIndex,
    id: u64,
    epoch: u32,
    /// The server's name, for logs.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// The kind of the probe.
    pub kind: ProbeKind,
    /// How long it may take.
    pub timeout: Duration,
    /// The active check, if there is one.
    pub check: Option<CheckSettings>,
    /// How the server is reached by TLS.
    pub tls: Option<TlsToServers>,
    /// Whether the server is asked for HTTP/2.
    pub http2: Option<Limits>,
    /// Whether the server speaks FastCGI.
    pub fastcgi: bool,
    /// The PROXY protocol, if connections to it begin with that.
    pub preface: Option<PrefaceVersion>,
    /// Local addresses to connect from.
    pub sources: Arc<[IpAddr]>,
}

impl Group {
    /// The group that `settings` describe. With `previous` it takes that group's state over at once: servers
    /// that stay keep their health, counters and requests in flight; requests with other servers end under
    /// the old configuration. So call it when nothing of the new configuration can fail any more.
    pub fn new(settings: GroupSettings, previous: Option<&Group>, now_ms: u64) -> Arc<Self> {
        let name = settings.name.clone();
        let cookie = Some(settings.cookie.clone());
        let queue_timeout = settings.queue.timeout;
        let (tls, http2, fastcgi) = (settings.tls.clone(), settings.http2, settings.fastcgi);
        let (preface, sources) = (settings.preface, settings.sources.as_slice().into());
        let shared = match previous {
            Some(previous) => {
                previous.shared.change(|core| core.reconfigure(settings, now_ms));
                Arc::clone(&previous.shared)
            }
            None => Arc::new(GroupCore(Mutex::new(Core::new(settings, now_ms)))),
        };
        Arc::new(Self {
            name,
            cookie,
            queue_timeout,
            tls,
            http2,
            fastcgi,
            preface,
            sources,
            shared,
        })
    }

    /// Selects a server for a request. Servers in `excluded` were tried already and are not selected.
    pub fn pick(
        self: &Arc<Self>,
        now_ms: u64,
        chosen: &Chosen<'_>,
        excluded: &[ServerIndex],
    ) -> Pick {
        let mut core = self.shared.lock();
        match core.pick(now_ms, chosen, excluded) {
            Decision::Server(placed) => Pick::Server(Lease::new(&self.shared, placed)),
            Decision::None(why) => Pick::None(why),
            Decision::Wait(wait) => {
                let cell = Arc::new(Cell::default());
                match core.wait(wait, Arc::clone(&cell)) {
                    Ok(ticket) => Pick::Queue(Waiter::new(&self.shared, ticket, cell)),
                    Err((_, why)) => Pick::None(why),
                }
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the affinity cookie. Every group has one, because a request set may ask for affinity by
    /// cookie even if the group does not.
    pub fn cookie_name(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    /// The affinity of requests whose request set has none of its own.
    pub fn affinity(&self) -> Affinity {
        self.shared.lock().settings.affinity
    }

    /// How long a request may wait in its queue.
    pub fn queue_timeout(&self) -> Duration {
        self.queue_timeout
    }

    /// How its servers are reached by TLS; `None`: without it.
    pub fn tls(&self) -> Option<&TlsToServers> {
        self.tls.as_ref()
    }

    /// Whether its servers are asked for HTTP/2, and the limits for them.
    pub fn http2(&self) -> Option<Limits> {
        self.http2
    }

    /// The PROXY protocol, if connections to its servers begin with that.
    pub fn preface(&self) -> Option<PrefaceVersion> {
        self.preface
    }

    /// Local addresses from which its servers are reached; empty: the system chooses.
    pub fn sources(&self) -> &[IpAddr] {
        &self.sources
    }

    /// The probes that are due.
    pub fn due_probes(&self, now_ms: u64) -> Vec<ProbeTask> {
        let mut core = self.shared.lock();
        let core = &mut *core;
        let health = &core.settings.health;
        let mut due = Vec::new();
        for number in &core.order {
            let slot = &mut core.slots[*number];
            let Some(kind) = slot.life.begin_probe(now_ms, health) else { continue };
            due.push(ProbeTask {
                server: ServerIndex(*number as u32),
                id: slot.target.id,
                epoch: slot.life.epoch(),
                name: slot.target.name.clone(),
                address: slot.target.address.clone(),
                kind,
                timeout: health.probe_timeout,
                check: health.check.clone(),
                tls: self.tls.clone(),
                http2: self.http2,
                fastcgi: self.fastcgi,
                preface: self.preface,
                sources: Arc::clone(&self.sources),
            });
        }
        due
    }

    /// When the next probe is due.
    pub fn next_probe(&self) -> Option<u64> {
        let core = self.shared.lock();
        let members = core.order.iter().map(|number| &core.slots[*number]);
        members.filter_map(|slot| slot.life.next_probe(&core.settings.health)).min()
    }

    /// Reports the result of a probe.
    pub fn probed(&self, now_ms: u64, task: &ProbeTask, good: bool) {
        self.shared.change(|core| {
            core.now_ms = core.now_ms.max(now_ms);
            let Some(slot) = core.slots.get_mut(task.server.0 as usize) else { return };
            if slot.target.id != task.id {
                return;
            }
            slot.counts.probes[usize::from(good)] += 1;
            let change = slot.life.probed(now_ms, task.epoch, good, &core.settings.health);
            if let Some(change) = change {
                slot.counts.change(change);
                tell(&core.settings.name, &task.name, change);
            }
        });
    }

    /// The names whose addresses must be looked up.
    pub fn names(&self) -> Vec<ServerAddress> {
        let core = self.shared.lock();
        let places = core.settings.servers.iter().map(|server| &server.to);
        places.filter(|place| matches!(place, ServerAddress::Name { .. })).cloned().collect()
    }

    /// A name has these addresses now. An empty list changes nothing.
    pub fn resolved(&self, place: &ServerAddress, addresses: &[SocketAddr], now_ms: u64) {
        self.shared.change(|core| core.resolved(place, addresses, now_ms));
    }

    /// Orders the servers called `name` to drain: they finish their requests, and get new ones only if
    /// affinity binds them to the server. Without `drain`, they get requests by their weight again. `name` is
    /// a server as it is configured, its address, or its name in [`Group::report`]. Returns the names of the
    /// servers that were meant; an empty list if the group has no such server.
    pub fn order_drain(&self, name: &str, drain: bool) -> Vec<String> {
        let mut meant = Vec::new();
        self.shared.change(|core| meant = core.order_drain(name, drain));
        for server in &meant {
            let (group, order) = (self.name.as_str(), if drain { "drain" } else { "ready" });
            tracing::info!(group, server = server.as_str(), order, "server was given an order");
        }
        meant
    }

    /// The group at this moment.
    pub fn report(&self, now_ms: u64) -> GroupReport {
        let core = self.shared.lock();
        let servers = core.order.iter().map(|number| {
            let slot = &core.slots[*number];
            let share = slot.life.share(now_ms.max(core.now_ms), &core.settings.health);
            ServerReport {
                name: slot.target.name.clone(),
                state: match slot.life.why_down() {
                    Some(why) => why.text(),
                    None if slot.weight == 0 => "draining",
                    None if share < 1000 => "growing",
                    None => "up",
                },
                available: slot.is_usable(),
                weight: slot.weight,
                in_flight: slot.in_flight,
                max_connections: slot.max,
                counts: slot.counts.clone(),
                connections: slot.target.tally.counts(),
                http2: slot.target.tally.http2_counts(),
            }
        });
        GroupReport {
            name: self.name.clone(),
            servers: servers.collect(),
            waiting: core.queue.len(),
            waited: core.refusals.waited,
            queue_full: core.refusals.queue_full,
            client_waits: core.refusals.client_waits,
            shed: core.refusals.shed,
            left_queue: core.refusals.left_queue,
            all_down: core.refusals.all_down,
        }
    }
}

impl GroupCore {
    pub(super) fn release(
        self: &Arc<Self>,
        now_ms: Option<u64>,
        placed: &Placed,
        outcome: Option<AttemptOutcome>,
    ) {
        self.change(|core| {
            let change = core.release(now_ms, placed, outcome);
            if let Some(change) = change {
                tell(&core.settings.name, &placed.target.name, change);
            }
        });
    }

    pub(super) fn leave_queue(&self, ticket: u64) {
        self.lock().leave_queue(ticket);
    }

    /// Makes a change, and then, without the lock, notifies the waiting requests that it affects.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Core<Arc<Cell>>)) {
        let mut core = self.lock();
        change(&mut core);
        let settled = core.settle();
        drop(core);
        for (cell, outcome) in settled {
            cell.deliver(match outcome {
                Ok(placed) => Pick::Server(Lease::new(self, placed)),
                Err(why) => Pick::None(why),
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core<Arc<Cell>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell(group: &str, server: &str, change: Change) {
    match change {
        Change::Up => tracing::info!(group, server, "server is available"),
        Change::Down(why) => {
            tracing::warn!(group, server, why = why.text(), "server is unavailable");
        }
    }
}
