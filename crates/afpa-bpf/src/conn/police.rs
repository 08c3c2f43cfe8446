//! The part of the police that the programs enforce (`bpf/include/afpa/conn/police.h`).

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use afpa_abi::{
    POLICE_CLASS_PREFIXES, POLICE_PREFIXES, PoliceSet, Prefix as Key, police_part, police_rule,
};
use afpa_police::{Enforced, Pace, PoliceKernel, Prefix, Rule, Step, words_of_table};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::conn::listen::endpoints;
use crate::programs::Programs;
use crate::region::{Region, Words};
use crate::unavailable::Unavailable;

/// The contents of the maps of prefixes and listeners.
#[derive(Default)]
struct InForce {
    rules: HashMap<Prefix, Rule>,
    /// Prefixes of classes, and addresses that listen, by their keys.
    classes: Numbers,
    listeners: Numbers,
}

type Numbers = BTreeMap<Vec<u8>, u32>;

const _: () = assert!(size_of::<PoliceSet>() == 8 * afpa_abi::POLICE_WAYS);

/// The programs' part of the police.
pub struct Police {
    region: Arc<Region>,
    buckets: Words,
    prefixes: MapHandle,
    classes: MapHandle,
    listeners: MapHandle,
    in_force: Mutex<InForce>,
}

impl PoliceKernel for Police {
    fn words(&self) -> &[AtomicU64] {
        self.buckets.all()
    }

    fn seed(&self) -> u64 {
        self.region.hash_seed().load(Ordering::Relaxed)
    }

    fn enforce(&self, what: &Enforced<'_>) -> io::Result<()> {
        if what.rules.len() > POLICE_PREFIXES / 2 {
            let most = POLICE_PREFIXES / 2;
            return Err(io::Error::other(format!("there are more than {most} prefixes")));
        }
        if what.classes.prefixes().len() > POLICE_CLASS_PREFIXES / 2 {
            let most = POLICE_CLASS_PREFIXES / 2;
            return Err(io::Error::other(format!("classes have more than {most} prefixes")));
        }
        let paces = [what.connections, what.requests].concat();
        for (at, word) in what.masks.words().into_iter().enumerate() {
            self.region.police_mask(at).store(word, Ordering::Relaxed);
        }
        for (at, pace) in paces.into_iter().enumerate() {
            set(self.region.police_pace(at), pace);
        }
        for (at, pace) in what.class_paces.into_iter().enumerate() {
            set(self.region.class_pace(at), pace);
        }
        let limited = |paces: [Pace; 2]| paces.iter().any(|pace| pace.limits());
        let part = |wanted: bool, part: u8| if wanted { u32::from(part) } else { 0 };
        let rates = part(limited(what.connections), police_part::CONNECTIONS)
            | part(limited(what.requests), police_part::REQUESTS)
            | part(!what.classes.is_empty(), police_part::SHARES);
        let rules = part(!what.rules.is_empty(), police_part::RULES);
        // While prefixes change they are all looked at.
        self.region.police().fetch_or(rates | rules, Ordering::SeqCst);
        let changed = self.replace_rules(what).and_then(|()| self.replace_classes(what));
        let before = part(!self.in_force().rules.is_empty(), police_part::RULES);
        self.region.police().store(rates | rules | before, Ordering::SeqCst);
        changed
    }
}

impl Police {
    pub(crate) fn over(programs: &Programs, region: &Arc<Region>) -> Result<Self, Unavailable> {
        Ok(Self {
            region: Arc::clone(region),
            buckets: programs.words("police_buckets", size_of::<PoliceSet>())?,
            prefixes: programs.map("police_prefixes")?,
            classes: programs.map("police_classes")?,
            listeners: programs.map("police_listeners")?,
            in_force: Mutex::default(),
        })
    }

    /// Replaces the rules, in steps that refuse or admit no client against the old and the new ones.
    fn replace_rules(&self, what: &Enforced<'_>) -> io::Result<()> {
        let now = &mut self.in_force().rules;
        for step in what.rules.steps_from(&*now) {
            match step {
                Step::Put(prefix, rule) => {
                    let value = match rule {
                        Rule::Allow => police_rule::ALLOW,
                        Rule::Deny => police_rule::DENY,
                    };
                    let value = u32::from(value).to_ne_bytes();
                    let prefixes = &self.prefixes;
                    let put = prefixes.update(&key(prefix).to_bytes(), &value, MapFlags::ANY);
                    put.map_err(io::Error::other)?;
                    now.insert(prefix, rule);
                }
                Step::Remove(prefix) => {
                    let taken = self.prefixes.delete(&key(prefix).to_bytes());
                    taken.map_err(io::Error::other)?;
                    now.remove(&prefix);
                }
            }
        }
        Ok(())
    }

    /// While they change, a connection may be counted to a class that it was in before.
    fn replace_classes(&self, what: &Enforced<'_>) -> io::Result<()> {
        let InForce { classes, listeners, .. } = &mut *self.in_force();
        let prefixes = what.classes.prefixes().iter();
        let prefixes = prefixes.map(|(prefix, class)| (key(prefix).to_bytes().to_vec(), class));
        replace(&self.classes, classes, prefixes.collect())?;
        let mut addresses: Vec<_> = what.classes.listeners().collect();
        // The entry of 0.0.0.0 comes last, to replace the one that [::] makes for the same key.
        addresses.sort_by_key(|(address, _)| address.is_ipv4());
        let keys = |(address, class)| {
            endpoints(address).into_iter().map(move |key| (key.to_bytes().to_vec(), class))
        };
        replace(&self.listeners, listeners, addresses.into_iter().flat_map(keys).collect())
    }

    fn in_force(&self) -> MutexGuard<'_, InForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn set([interval, tolerance]: [&AtomicU64; 2], pace: Pace) {
    tolerance.store(pace.tolerance, Ordering::Relaxed);
    interval.store(pace.interval, Ordering::Relaxed);
}

/// Changes `map`, which has the entries `now`, to the entries `wanted`.
fn replace(map: &MapHandle, now: &mut Numbers, wanted: Numbers) -> io::Result<()> {
    for (key, number) in &wanted {
        if now.get(key) == Some(number) {
            continue;
        }
        map.update(key, &number.to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
        now.insert(key.clone(), *number);
    }
    let gone: Vec<_> = now.keys().filter(|key| !wanted.contains_key(*key)).cloned().collect();
    for key in gone {
        map.delete(&key).map_err(io::Error::other)?;
        now.remove(&key);
    }
    Ok(())
}

/// The map's key.
pub(crate) fn key(prefix: Prefix) -> Key {
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

const _: () = assert!(
    words_of_table()
        == (2 * afpa_abi::POLICE_SETS + 1) * afpa_abi::POLICE_WAYS + 2 * afpa_abi::POLICE_CLASSES
);
