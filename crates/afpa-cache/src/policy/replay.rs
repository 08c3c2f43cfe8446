//! Replaying a trace of requests through a policy.

use std::fmt::Write;

use hashbrown::HashMap;

use super::{Newcomer, ObjectId, Policy, PolicyKind};

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which object.
    pub key: u64,
    /// Its size; the first one seen while it is cached counts.
    pub size: u64,
}

/// The result of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayResult {
    /// Requests in the trace.
    pub requests: u64,
    /// Of these, answered from the cache.
    pub hits: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Of these, answered from the cache.
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

/// Serves `trace` from a cache of `capacity` bytes that ejects what `policy` says. An object larger
/// than the cache is never taken in.
pub fn replay(policy: &mut dyn Policy, capacity: u64, trace: &[Request]) -> ReplayResult {
    let mut outcome = ReplayResult::default();
    let mut cached: HashMap<u64, (ObjectId, u64)> = HashMap::new();
    let mut keys: HashMap<ObjectId, u64> = HashMap::new();
    let mut used = 0;
    for (turn, request) in trace.iter().enumerate() {
        outcome.requests += 1;
        outcome.bytes += request.size;
        if let Some((id, _)) = cached.get(&request.key) {
            policy.touch(*id, 1);
            outcome.hits += 1;
            outcome.hit_bytes += request.size;
            continue;
        }
        if request.size > capacity {
            continue;
        }
        while used + request.size > capacity {
            let victim = policy.victim(request.size).expect("what is used belongs to some object");
            let key = keys.remove(&victim).expect("a victim is a cached object");
            used -= cached.remove(&key).expect("a victim is a cached object").1;
            outcome.ejections += 1;
        }
        let id = ObjectId(turn as u64);
        policy.insert(Newcomer { id, size: request.size, fingerprint: request.key });
        cached.insert(request.key, (id, request.size));
        keys.insert(id, request.key);
        used += request.size;
    }
    outcome
}

/// Replays `trace` through every policy, from an empty cache each.
pub fn compare(capacity: u64, trace: &[Request]) -> [(PolicyKind, ReplayResult); 4] {
    PolicyKind::ALL.map(|kind| (kind, replay(&mut *kind.build(), capacity, trace)))
}

/// Formats results, one line each.
pub fn table(outcomes: &[(PolicyKind, ReplayResult)]) -> String {
    let mut table =
        format!("{:<14}{:>9}{:>14}{:>12}\n", "policy", "hits", "bytes hit", "ejections");
    for (kind, outcome) in outcomes {
        let (hits, bytes) = (100.0 * outcome.hit_ratio(), 100.0 * outcome.byte_hit_ratio());
        let name = kind.name();
        let _ = writeln!(table, "{name:<14}{hits:>8.2}%{bytes:>13.2}%{:>12}", outcome.ejections);
    }
    table
}
