//! What the programs enforce of the police (`bpf/include/afpa/conn/police.h`).

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use afpa_abi::{POLICE_PREFIXES, Prefix as Key, police_part, police_rule};
use afpa_police::{Enforced, Pace, PoliceKernel, Prefix, Rule, words_of_table};
use libbpf_rs::{MapCore, MapFlags};

use crate::load::FastPath;

/// What the map of prefixes has.
pub(crate) type InForce = HashMap<Prefix, Rule>;

const _: () = assert!(size_of::<afpa_abi::PoliceSet>() == 8 * afpa_abi::POLICE_WAYS);

impl PoliceKernel for FastPath {
    fn words(&self) -> &[AtomicU64] {
        self.buckets.words()
    }

    fn seed(&self) -> u64 {
        self.region.hash_seed().load(Ordering::Relaxed)
    }

    fn enforce(&self, what: &Enforced<'_>) -> io::Result<()> {
        if what.rules.len() > POLICE_PREFIXES / 2 {
            let most = POLICE_PREFIXES / 2;
            return Err(io::Error::other(format!("there are more than {most} prefixes")));
        }
        let paces = [what.connections, what.requests].concat();
        for (at, word) in what.masks.words().into_iter().enumerate() {
            self.region.police_mask(at).store(word, Ordering::Relaxed);
        }
        for (at, Pace { interval, tolerance }) in paces.into_iter().enumerate() {
            let [to_interval, to_tolerance] = self.region.police_pace(at);
            to_tolerance.store(tolerance, Ordering::Relaxed);
            to_interval.store(interval, Ordering::Relaxed);
        }
        let limited = |paces: [Pace; 2]| paces.iter().any(|pace| pace.limits());
        let part = |wanted: bool, part: u8| if wanted { u32::from(part) } else { 0 };
        let rates = part(limited(what.connections), police_part::CONNECTIONS)
            | part(limited(what.requests), police_part::REQUESTS);
        let rules = part(!what.rules.is_empty(), police_part::RULES);
        // While prefixes change they are all looked at.
        self.region.police().fetch_or(rates | rules, Ordering::SeqCst);
        let changed = self.replace_rules(what);
        let before = part(!self.in_force().is_empty(), police_part::RULES);
        self.region.police().store(rates | rules | before, Ordering::SeqCst);
        changed
    }
}

impl FastPath {
    /// First what is allowed comes, and last it goes: so nobody is refused, or let in, on the way.
    fn replace_rules(&self, what: &Enforced<'_>) -> io::Result<()> {
        let mut now = self.in_force();
        for rule in [Rule::Allow, Rule::Deny] {
            for (prefix, _) in what.rules.iter().filter(|(_, said)| *said == rule) {
                if now.get(&prefix) == Some(&rule) {
                    continue;
                }
                let value = match rule {
                    Rule::Allow => police_rule::ALLOW,
                    Rule::Deny => police_rule::DENY,
                };
                let value = u32::from(value).to_ne_bytes();
                let put =
                    self.police_prefixes.update(&key(prefix).to_bytes(), &value, MapFlags::ANY);
                put.map_err(io::Error::other)?;
                now.insert(prefix, rule);
            }
        }
        for rule in [Rule::Deny, Rule::Allow] {
            let gone = |(prefix, said): (&Prefix, &Rule)| {
                (*said == rule && what.rules.exactly(*prefix).is_none()).then_some(*prefix)
            };
            for prefix in now.iter().filter_map(gone).collect::<Vec<_>>() {
                let taken = self.police_prefixes.delete(&key(prefix).to_bytes());
                taken.map_err(io::Error::other)?;
                now.remove(&prefix);
            }
        }
        Ok(())
    }

    fn in_force(&self) -> std::sync::MutexGuard<'_, InForce> {
        self.police_in_force.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The map's key.
fn key(prefix: Prefix) -> Key {
    let mut key = Key { bits: 32 + u32::from(prefix.bits()), ..Key::default() };
    match prefix.address() {
        IpAddr::V4(v4) => {
            key.family = 4;
            key.address[..4].copy_from_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            key.family = 6;
            key.address = v6.octets();
        }
    }
    key
}

const _: () = assert!(words_of_table() == (2 * afpa_abi::POLICE_SETS + 1) * afpa_abi::POLICE_WAYS);
