//! Selects the server for a request. This is the whole state of a group, without I/O, locks or clocks.
//!
//! Each server has a *slot*, whose number stays the same while requests are in flight. `order` lists the slots
//! of the servers that belong to the group now, in the order of the configuration. When a server leaves the
//! group, its slot is *retired*; it is reused when the last request of that server has ended.

mod members;

use std::net::SocketAddr;
use std::sync::Arc;

use super::address::{Address, ServerAddress};
use super::cookie::{self, Secret};
use super::queue::{Full, Queue, Wait};
use super::ring::{self, Ring};
use super::settings::{Affinity, GroupSettings, Select};
use super::share::Held;
use super::target::Target;
use super::turns::{Turn, Turns};
use super::{Chosen, ServerIndex, WhyNone};
use crate::client::Client;
use crate::health::{AttemptOutcome, Change, Life, WhyDown};
use crate::observe::ServerCounts;

/// One server, as the group sees it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) target: Arc<Target>,
    pub(super) weight: u32,
    pub(super) max: u32,
    pub(super) retired: bool,
    pub(super) in_flight: u32,
    /// The shares of clients in these requests.
    pub(super) held: Held,
    pub(super) life: Life,
    pub(super) counts: ServerCounts,
}

/// A request that was given to a server; to be given back with [`Core::release`].
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) server: ServerIndex,
    pub(super) epoch: u32,
    pub(super) target: Arc<Target>,
    /// The client does not have the cookie of this server yet.
    pub(super) new_cookie: bool,
    /// The client whose share it takes.
    pub(super) client: Option<Client>,
}

/// The decision about a request.
#[derive(Debug)]
pub(super) enum Decision {
    Server(Placed),
    /// It waits, for this server or for any.
    Wait(Wait),
    None(WhyNone),
}

/// How many requests were refused, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refusals {
    pub(super) waited: u64,
    pub(super) queue_full: u64,
    pub(super) client_waits: u64,
    pub(super) shed: u64,
    pub(super) left_queue: u64,
    pub(super) all_down: u64,
}

/// The state of a group. A `W` notifies a request that waits.
#[derive(Debug)]
pub(super) struct Core<W> {
    pub(super) settings: GroupSettings,
    secret: Secret,
    pub(super) slots: Vec<Slot>,
    pub(super) order: Vec<usize>,
    /// Addresses of the names, by configured address.
    resolved: Vec<(ServerAddress, Vec<SocketAddr>)>,
    /// Servers that an administrator has ordered to drain, with any weight.
    drained: Vec<Address>,
    turns: Turns,
    ring: Ring,
    rotor: usize,
    pub(super) queue: Queue<W>,
    /// Time a request takes, a moving average in microseconds.
    service_us: u64,
    pub(super) refusals: Refusals,
    /// The latest time that was passed in.
    pub(super) now_ms: u64,
}

impl<W> Core<W> {
    pub(super) fn new(settings: GroupSettings, now_ms: u64) -> Self {
        let secret = settings.cookie_secret.as_deref().map(Secret::from_text);
        let mut core = Self {
            secret: secret.unwrap_or_else(Secret::random),
            settings,
            slots: Vec::new(),
            order: Vec::new(),
            resolved: Vec::new(),
            drained: Vec::new(),
            turns: Turns::default(),
            ring: Ring::default(),
            rotor: 0,
            queue: Queue::default(),
            service_us: 0,
            refusals: Refusals::default(),
            now_ms,
        };
        core.arrange();
        core
    }

    /// Takes new settings. Servers that stay keep their health, counts and requests in flight.
    pub(super) fn reconfigure(&mut self, settings: GroupSettings, now_ms: u64) {
        self.now_ms = self.now_ms.max(now_ms);
        if settings.cookie_secret != self.settings.cookie_secret {
            let secret = settings.cookie_secret.as_deref().map(Secret::from_text);
            self.secret = secret.unwrap_or_else(Secret::random);
        }
        self.resolved.retain(|(place, _)| settings.servers.iter().any(|s| s.to == *place));
        self.settings = settings;
        self.arrange();
    }

    /// Selects a server, or says that the request waits, or why it cannot be served.
    pub(super) fn pick(
        &mut self,
        now_ms: u64,
        chosen: &Chosen<'_>,
        excluded: &[ServerIndex],
    ) -> Decision {
        self.now_ms = self.now_ms.max(now_ms);
        let affinity = chosen.affinity.unwrap_or(self.settings.affinity);
        let bound = self.bound(affinity, chosen, excluded);
        let new_cookie = affinity == Affinity::Cookie && bound.is_none();
        let client = chosen.sharer.map(Client::from);
        let percent = self.settings.client_share;
        let found = match bound {
            Some(slot) => Some(slot).filter(|slot| self.slots[*slot].has_room_for(client, percent)),
            None => self.select(chosen, client, excluded),
        };
        match found {
            Some(slot) => Decision::Server(self.place(slot, client, new_cookie)),
            None => {
                let excluded = excluded.to_vec();
                self.full_or_down(Wait { bound, excluded, new_cookie, client })
            }
        }
    }

    /// A request has ended. `outcome` is `None` when the client went away.
    pub(super) fn release(
        &mut self,
        now_ms: Option<u64>,
        placed: &Placed,
        outcome: Option<AttemptOutcome>,
    ) -> Option<Change> {
        self.now_ms = self.now_ms.max(now_ms.unwrap_or(0));
        let (number, epoch) = (placed.server.0 as usize, placed.epoch);
        let judged = self.slots.get(number)?.life.is_judged_next(&self.settings.health);
        let may_eject = judged && self.may_eject(number);
        let slot = self.slots.get_mut(number)?;
        slot.in_flight = slot.in_flight.saturating_sub(1);
        slot.held.give_back(placed.client);
        let Some(outcome) = outcome else {
            slot.counts.cancelled += 1;
            return None;
        };
        slot.counts.outcome(outcome);
        if let AttemptOutcome::Ok { total_us, .. } = outcome {
            let old = if self.service_us == 0 { u64::from(total_us) } else { self.service_us };
            self.service_us = (old * 15 + u64::from(total_us)) / 16;
        }
        let health = &self.settings.health;
        let change = slot.life.outcome(self.now_ms, epoch, outcome, health, may_eject);
        if let Some(change) = change {
            slot.counts.change(change);
        }
        change
    }

    /// The waiting requests that can be served now, or that never can. To be called after a request has ended
    /// or a server has changed.
    pub(super) fn settle(&mut self) -> Vec<(W, Result<Placed, WhyNone>)> {
        let mut settled = Vec::new();
        if self.queue.is_empty() {
            return settled;
        }
        for slot in 0..self.slots.len() {
            if !self.slots[slot].is_usable() {
                self.queue.unbind(slot);
            }
        }
        for at in 0..self.order.len() {
            let slot = self.order[at];
            while self.slots[slot].is_usable() && self.slots[slot].has_room() {
                let (place, percent) = (&self.slots[slot], self.settings.client_share);
                let may = |client| place.has_room_for(client, percent);
                let next = self.queue.next_for(slot, place.weight > 0, may);
                let Some((waiter, wait)) = next else { break };
                let placed = self.place(slot, wait.client, wait.new_cookie);
                settled.push((waiter, Ok(placed)));
            }
        }
        if !self.order.iter().any(|slot| self.slots[*slot].is_usable()) {
            let why = self.why_none();
            for waiter in self.queue.drain() {
                self.refusals.all_down += 1;
                settled.push((waiter, Err(why)));
            }
        }
        settled
    }

    /// Puts a request into the queue, unless that is full.
    pub(super) fn wait(&mut self, wait: Wait, waiter: W) -> Result<u64, (W, WhyNone)> {
        let usable = self.order.iter().filter(|slot| self.slots[**slot].is_usable()).count();
        let most = match wait.bound {
            Some(_) => self.settings.queue.length as usize,
            None => (self.settings.queue.length as usize).saturating_mul(usable),
        };
        match self.queue.enter(wait, waiter, most, self.settings.client_share) {
            Ok(ticket) => {
                self.refusals.waited += 1;
                Ok(ticket)
            }
            Err(Full::All(waiter)) => {
                self.refusals.queue_full += 1;
                Err((waiter, WhyNone::QueueFull))
            }
            Err(Full::Client(waiter)) => {
                self.refusals.client_waits += 1;
                Err((waiter, WhyNone::ClientWaits))
            }
        }
    }

    /// Gives up waiting.
    pub(super) fn leave_queue(&mut self, ticket: u64) {
        if self.queue.leave(ticket) {
            self.refusals.left_queue += 1;
        }
    }

    /// The server that affinity binds the request to, if that server can be used.
    fn bound(
        &self,
        affinity: Affinity,
        chosen: &Chosen<'_>,
        excluded: &[ServerIndex],
    ) -> Option<usize> {
        let can = |slot: &usize| self.slots[*slot].is_usable() && !excludes(excluded, *slot);
        match affinity {
            Affinity::None => None,
            Affinity::Client => {
                let hash = ring::hash(&client_bytes(chosen.client?));
                self.ring.walk(hash).find(can)
            }
            Affinity::Cookie => {
                let sent = chosen.cookie?;
                let mut all = self.order.iter().copied();
                all.find(|slot| cookie::is(sent, &self.slots[*slot].target.cookie)).filter(can)
            }
        }
    }

    fn select(
        &mut self,
        chosen: &Chosen<'_>,
        client: Option<Client>,
        excluded: &[ServerIndex],
    ) -> Option<usize> {
        let percent = self.settings.client_share;
        let can = |(number, slot): (usize, &Slot)| {
            slot.can_take(client, percent) && !excludes(excluded, number)
        };
        match self.settings.select {
            Select::RoundRobin => self.by_turn(can),
            Select::LeastConnections => self.by_load(can),
            Select::UrlHash => {
                self.by_hash(chosen.url_hash.to_le_bytes().as_slice(), excluded, can)
            }
            Select::ClientHash => match chosen.client {
                Some(client) => self.by_hash(&client_bytes(client), excluded, can),
                None => self.by_turn(can),
            },
        }
    }

    fn by_turn(&mut self, can: impl Fn((usize, &Slot)) -> bool) -> Option<usize> {
        let (slots, order, health) = (&self.slots, &self.order, &self.settings.health);
        let turn = |at: usize| {
            let number = order[at];
            let slot = &slots[number];
            let weight = if can((number, slot)) { slot.weight } else { 0 };
            Turn { weight, share: slot.life.share(self.now_ms, health) }
        };
        self.turns.next(order.len(), turn).map(|at| order[at])
    }

    /// The server with the fewest requests for its weight; among equals, the next one after the last selected.
    fn by_load(&mut self, can: impl Fn((usize, &Slot)) -> bool) -> Option<usize> {
        let count = self.order.len();
        let mut best: Option<(usize, u64, u64)> = None;
        for step in 1..=count {
            let at = (self.rotor + step) % count;
            let number = self.order[at];
            let slot = &self.slots[number];
            if !can((number, slot)) {
                continue;
            }
            let load = u64::from(slot.in_flight) + 1;
            let weight = self.milliweight(slot);
            if best.is_none_or(|(_, other, its)| load * its < other * weight) {
                best = Some((at, load, weight));
            }
        }
        let (at, ..) = best?;
        self.rotor = at;
        Some(self.order[at])
    }

    /// Consistent hashing with bounded load (Mirrokni, Thorup, Zadimoghaddam 2016): the first server
    /// from the hash on that has not more than its share of all requests, and some percent.
    fn by_hash(
        &self,
        key: &[u8],
        excluded: &[ServerIndex],
        can: impl Fn((usize, &Slot)) -> bool,
    ) -> Option<usize> {
        let members = self.order.iter().map(|number| (*number, &self.slots[*number]));
        let members = members.filter(|(number, slot)| {
            slot.is_usable() && slot.weight > 0 && !excludes(excluded, *number)
        });
        let (requests, weights) = members.fold((1_u64, 0_u64), |(requests, weights), (_, slot)| {
            (requests + u64::from(slot.in_flight), weights + self.milliweight(slot))
        });
        let percent = u64::from(self.settings.load_bound_percent.clamp(101, 10_000));
        let bounded = |slot: &Slot| {
            let fair = requests * self.milliweight(slot) * percent;
            u64::from(slot.in_flight) < fair.div_ceil(100 * weights.max(1))
        };
        let hash = ring::hash(key);
        let mut any = self.ring.walk(hash).filter(|number| can((*number, &self.slots[*number])));
        let first = any.next()?;
        if bounded(&self.slots[first]) {
            return Some(first);
        }
        // If no server within its limits is below the bound, the first with room is taken.
        any.find(|number| bounded(&self.slots[*number])).or(Some(first))
    }

    /// No server has room: the request waits if that will help, or is refused.
    fn full_or_down(&mut self, wait: Wait) -> Decision {
        let usable = |slot: &&usize| {
            self.slots[**slot].is_usable()
                && !excludes(&wait.excluded, **slot)
                && (self.slots[**slot].weight > 0 || wait.bound == Some(**slot))
        };
        let members = self.order.iter().filter(usable);
        let members = members.filter(|slot| wait.bound.is_none_or(|bound| bound == **slot));
        let places: u64 = members.map(|slot| u64::from(self.slots[*slot].max)).sum();
        if places == 0 {
            return self.last_resort(&wait);
        }
        // A request that would wait longer than the queue's time-out is refused at once. Clients that have their share
        // of all servers do not go before it.
        let percent = self.settings.client_share;
        let may = |client| {
            self.order.iter().any(|slot| self.slots[*slot].would_have_room_for(client, percent))
        };
        let ahead = self.queue.ahead(wait.bound, may) as u64 + 1;
        let expected_us = ahead.saturating_mul(self.service_us) / places;
        if u128::from(expected_us) > self.settings.queue.timeout.as_micros() {
            self.refusals.shed += 1;
            return Decision::None(WhyNone::Shed);
        }
        Decision::Wait(wait)
    }

    fn last_resort(&mut self, wait: &Wait) -> Decision {
        let Wait { excluded, new_cookie, client, .. } = wait;
        let health = &self.settings.health;
        let any_up = self.order.iter().any(|slot| self.slots[*slot].is_usable());
        if !any_up {
            for at in 0..self.order.len() {
                let number = self.order[at];
                let slot = &mut self.slots[number];
                let can = slot.weight > 0 && slot.has_room() && !excludes(excluded, number);
                if can && slot.life.last_resort(self.now_ms, health) {
                    return Decision::Server(self.place(number, *client, *new_cookie));
                }
            }
        }
        self.refusals.all_down += 1;
        // If none was excluded, all servers that are up drain.
        let tried = any_up && !excluded.is_empty();
        Decision::None(if tried { WhyNone::AllTried } else { self.why_none() })
    }

    /// Why no server can be selected: of several reasons, the most informative one.
    fn why_none(&self) -> WhyNone {
        let members = self.order.iter().map(|slot| &self.slots[*slot]);
        let why = members.clone().filter_map(|slot| slot.life.why_down()).min();
        let Some(why) = why else { return WhyNone::NoServers };
        let health = &self.settings.health;
        let probes = members.filter_map(|slot| slot.life.next_probe(health));
        let wait_ms = probes.min().unwrap_or(0).saturating_sub(self.now_ms);
        let retry_after_s = wait_ms.div_ceil(1000).clamp(1, 60) as u32;
        WhyNone::AllDown { why, retry_after_s }
    }

    fn place(&mut self, number: usize, client: Option<Client>, new_cookie: bool) -> Placed {
        let slot = &mut self.slots[number];
        slot.in_flight += 1;
        slot.held.take(client);
        slot.counts.requests += 1;
        Placed {
            server: ServerIndex(number as u32),
            epoch: slot.life.epoch(),
            target: Arc::clone(&slot.target),
            new_cookie,
            client,
        }
    }

    fn milliweight(&self, slot: &Slot) -> u64 {
        let share = slot.life.share(self.now_ms, &self.settings.health);
        (u64::from(slot.weight) * u64::from(share)).max(1)
    }

    /// Whether a server may be ejected because of its errors: not if it is the last one, nor if more servers
    /// than the settings allow would be ejected. This looks at all servers.
    fn may_eject(&self, number: usize) -> bool {
        let members = || self.order.iter().map(|slot| (*slot, &self.slots[*slot]));
        let ejected = members().filter(|(_, s)| s.life.why_down() == Some(WhyDown::Errors)).count();
        let others = members().any(|(n, slot)| n != number && slot.is_usable() && slot.weight > 0);
        let most = self.settings.health.errors.most_ejected_percent as usize;
        others && (ejected + 1) * 100 <= most * self.order.len()
    }
}

impl Slot {
    /// Whether requests may go to it, whether or not it has room.
    pub(super) fn is_usable(&self) -> bool {
        self.life.is_up() && !self.retired
    }

    fn has_room(&self) -> bool {
        self.in_flight < self.max
    }

    /// Whether there is room that this client may have.
    fn has_room_for(&self, client: Option<Client>, percent: u32) -> bool {
        self.has_room() && self.held.allows(client, (self.in_flight, self.max), percent)
    }

    /// Whether there would be room for this client once one request has ended.
    fn would_have_room_for(&self, client: Option<Client>, percent: u32) -> bool {
        self.held.allows(client, (self.in_flight.saturating_sub(1), self.max), percent)
    }

    fn can_take(&self, client: Option<Client>, percent: u32) -> bool {
        self.is_usable() && self.weight > 0 && self.has_room_for(client, percent)
    }
}

fn excludes(excluded: &[ServerIndex], slot: usize) -> bool {
    excluded.iter().any(|other| other.0 as usize == slot)
}

fn client_bytes(client: std::net::IpAddr) -> [u8; 16] {
    match client {
        std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(v6) => v6.octets(),
    }
}
