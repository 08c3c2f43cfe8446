//! Clients that are answered without a word of the kernel's to themselves: those behind a gateway to which it has spoken
//! (`bpf/include/afpa/conn/client_way.h`, N10), always or while there is a flood (`syn_flood.h`, N12).

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::conn::police::key;
use crate::net::next_hops::{self, NextHops};
use crate::preflight::Changes;
use crate::programs::Programs;
use crate::region::Region;
use crate::unavailable::Unavailable;

/// The routes that the programs' map has.
#[derive(Default)]
struct RoutesInForce {
    hops: NextHops,
    edition: u32,
    changes: Option<Changes>,
    read: Option<Instant>,
    due: bool,
    refusal: Option<String>,
}

/// Many routes change often.
const REST: Duration = Duration::from_secs(5);
const MANY: usize = 256;

impl RoutesInForce {
    /// Whether routes or rules may have changed since they were read.
    fn is_due(&mut self) -> bool {
        let Some(read) = self.read else { return true };
        self.due |= self.changes.as_ref().is_none_or(Changes::any);
        self.due && (self.hops.len() < MANY || read.elapsed() >= REST)
    }
}

/// The gateways behind which clients are.
pub(crate) struct Routes {
    region: Arc<Region>,
    map: MapHandle,
    in_force: Mutex<RoutesInForce>,
}

impl Routes {
    pub(crate) fn over(programs: &Programs, region: &Arc<Region>) -> Result<Self, Unavailable> {
        let map = programs.map("routes")?;
        Ok(Self { region: Arc::clone(region), map, in_force: Mutex::default() })
    }

    /// Reads again which clients have which gateway, in the current network namespace, if the routes have changed. If
    /// they cannot be read, or are too many, only known clients are admitted.
    pub(crate) fn look(&self) {
        let mut now = self.in_force();
        if !now.is_due() {
            return;
        }
        if now.changes.is_none() {
            now.changes = Changes::listen().ok(); // before they are read, so that nothing is missed
        }
        (now.read, now.due) = (Some(Instant::now()), false);
        let wanted = match next_hops::of_this_namespace() {
            Ok(Some(wanted)) if wanted.values().all(|number| *number == 0) => {
                Err("no gateway is sure: rules choose the route, or there are several".to_owned())
            }
            Ok(Some(wanted)) => Ok(wanted),
            Ok(None) => Err("there are too many routes".to_owned()),
            Err(error) => Err(format!("routes cannot be read: {error}")),
        };
        if wanted.as_ref() == Ok(&now.hops) {
            return;
        }
        // While the routes change, no client is known by a next hop: its number may mean another gateway then.
        self.region.next_hops().store(0, Ordering::SeqCst);
        let replaced = wanted.and_then(|wanted| {
            let replaced = self.replace_routes(&mut now, wanted);
            replaced.map_err(|error| format!("the kernel does not take the routes: {error}"))
        });
        if replaced.is_ok() {
            now.edition = now.edition.wrapping_add(1).max(1);
            self.region.next_hops().store(now.edition, Ordering::SeqCst);
        } else {
            now.hops.clear();
        }
        now.refusal = replaced.err();
    }

    /// Why only clients are admitted that the kernel's own path knows, although the settings admit others, too. None: the
    /// others are admitted, or the settings do not admit them.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.in_force().refusal.clone()
    }

    fn replace_routes(&self, now: &mut RoutesInForce, wanted: NextHops) -> std::io::Result<()> {
        now.hops.clear(); // nothing is known of the table if this fails
        let mut gone: BTreeSet<Vec<u8>> = self.map.keys().collect();
        for (prefix, number) in &wanted {
            let key = key(*prefix).to_bytes();
            let put = self.map.update(&key, &number.to_ne_bytes(), MapFlags::ANY);
            put.map_err(std::io::Error::other)?;
            gone.remove(&key[..]);
        }
        for key in gone {
            self.map.delete(&key).map_err(std::io::Error::other)?;
        }
        now.hops = wanted;
        Ok(())
    }

    fn in_force(&self) -> MutexGuard<'_, RoutesInForce> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
