//! Replaying a trace of requests through a policy.

use std::fmt::Write;

use hashbrown::HashMap;

use super::identity::{ByPlace, Identities};
use super::{Family, Hint, Newcomer, ObjectId, Policy, PolicyKind};

/// One entry of a trace: requests for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which object.
    pub key: u64,
    /// Its size; the first one seen while it is cached counts.
    pub size: u64,
    /// How many requests came for it, one after the other.
    pub count: u32,
    /// The family of its content.
    pub family: Family,
    /// The configured hint.
    pub hint: Hint,
}

impl Request {
    /// One request for an object without particulars.
    pub fn new(key: u64, size: u64) -> Request {
        Request { key, size, count: 1, family: Family::default(), hint: Hint::default() }
    }
}

/// The result of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayResult {
    /// Requests in the trace.
    pub requests: u64,
    /// Requests that were answered from the cache.
    pub hits: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes that were answered from the cache.
    pub hit_bytes: u64,
    /// Objects that made room for others.
    pub ejections: u64,
}

impl ReplayResult {
    /// Hits per request.
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.requests.max(1) as f64
    }

    /// Bytes hit per byte asked for.
    pub fn byte_hit_ratio(&self) -> f64 {
        self.hit_bytes as f64 / self.bytes.max(1) as f64
    }
}

/// A cache without content that serves a trace and ejects what its policy says.
pub struct Replay<P> {
    pub(super) policy: P,
    capacity: u64,
    cached: HashMap<u64, (ObjectId, u64)>,
    keys: ByPlace<u64>,
    identities: Identities,
    used: u64,
    result: ReplayResult,
}

impl<P: Policy> Replay<P> {
    /// An empty cache of `capacity` bytes.
    pub fn new(policy: P, capacity: u64) -> Replay<P> {
        let (cached, keys, identities) =
            (HashMap::new(), ByPlace::default(), Identities::default());
        let result = ReplayResult::default();
        Replay { policy, capacity, cached, keys, identities, used: 0, result }
    }

    /// Serves the requests of one entry. An object larger than the cache is never taken in.
    pub fn serve(&mut self, request: &Request) {
        let Request { key, size, count, family, hint } = *request;
        let requests = u64::from(count);
        self.result.requests += requests;
        self.result.bytes += size * requests;
        if let Some((id, _)) = self.cached.get(&key) {
            self.policy.touch(*id, count);
            return self.hit(size, requests);
        }
        if size > self.capacity || !self.make_room(size) {
            return;
        }
        let id = self.identities.give();
        // Keys below four billion stay distinct, and hashes are not changed much.
        let fingerprint = (key ^ (key >> 32)) as u32;
        self.policy.insert(Newcomer { id, size, fingerprint, family, hint });
        self.cached.insert(key, (id, size));
        self.keys.insert(id, key);
        self.used += size;
        if count > 1 {
            self.policy.touch(id, count - 1);
            self.hit(size, requests - 1);
        }
    }

    /// The result so far.
    pub fn result(&self) -> ReplayResult {
        self.result
    }

    /// Forgets the objects that `stays` does not hold for, and all room but one part in `parts`.
    pub(super) fn shrink(&mut self, parts: u64, stays: impl Fn(u64) -> bool) {
        let gone: Vec<u64> = self.cached.keys().copied().filter(|key| !stays(*key)).collect();
        for key in gone {
            if let Some((id, size)) = self.cached.remove(&key) {
                self.policy.remove(id);
                self.forget(id);
                self.used -= size;
            }
        }
        self.capacity /= parts.max(1);
        self.make_room(0);
    }

    /// Its key.
    fn forget(&mut self, id: ObjectId) -> Option<u64> {
        let key = self.keys.remove(id)?;
        self.identities.take_back(id);
        Some(key)
    }

    fn hit(&mut self, size: u64, requests: u64) {
        self.result.hits += requests;
        self.result.hit_bytes += size * requests;
    }

    /// Ejects until `size` fits. `false`: the policy keeps what there is.
    fn make_room(&mut self, size: u64) -> bool {
        while self.used + size > self.capacity {
            let Some(victim) = self.policy.victim(size) else { return false };
            let key = self.forget(victim).expect("a victim is a cached object");
            self.used -= self.cached.remove(&key).expect("a victim is a cached object").1;
            self.result.ejections += 1;
        }
        true
    }
}

/// Serves `trace` from a cache of `capacity` bytes that ejects what `policy` says. An object larger
/// than the cache is never taken in.
pub fn replay(policy: Box<dyn Policy>, capacity: u64, trace: &[Request]) -> ReplayResult {
    let mut replay = Replay::new(policy, capacity);
    trace.iter().for_each(|request| replay.serve(request));
    replay.result()
}

/// Replays `trace` through every policy, from an empty cache each.
pub fn compare(
    capacity: u64,
    trace: &[Request],
) -> [(PolicyKind, ReplayResult); PolicyKind::ALL.len()] {
    PolicyKind::ALL.map(|kind| (kind, replay(kind.build(), capacity, trace)))
}

/// Formats results, one line each.
pub fn table(outcomes: &[(PolicyKind, ReplayResult)]) -> String {
    let mut table =
        format!("{:<14}{:>9}{:>14}{:>12}\n", "policy", "hits", "bytes hit", "ejections");
    outcomes.iter().for_each(|(kind, outcome)| line(&mut table, kind.name(), outcome));
    table
}

/// Adds a line to a [`table`].
pub fn line(table: &mut String, name: &str, outcome: &ReplayResult) {
    let (hits, bytes) = (100.0 * outcome.hit_ratio(), 100.0 * outcome.byte_hit_ratio());
    let _ = writeln!(table, "{name:<14}{hits:>8.2}%{bytes:>13.2}%{:>12}", outcome.ejections);
}
