//! Fast paths on the interfaces of this network namespace, of all processes and for any spelling of their
//! addresses: the programs on the hooks lead to their maps, and the maps have everything else.
//!
//! Looking needs `CAP_NET_ADMIN` (programs on a hook) and `CAP_SYS_ADMIN` (objects of others, by their numbers).

pub(crate) mod connections;
mod process;
mod query;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use afpa_abi::{Flow, FlowKey, Shared};
use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, BPF_TCX_INGRESS};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

pub use process::Process;

use crate::entries::Entries;
use crate::net::devices::devices;
use crate::pin_dir::PinDir;
use crate::region::Region;

/// A fast path that is on some interface: one that a process drives, or one that an ended process left behind.
pub struct FoundFastPath {
    /// The number of its region, which is its name in the kernel.
    id: u32,
    /// None: it is of another version of AFPA, with another layout.
    region: Option<Region>,
    /// Of its ingress programs; several while one process takes over from another.
    alive: Vec<MapHandle>,
    flows: Option<MapHandle>,
    interfaces: BTreeMap<u32, String>,
    /// The links and filters that hold its programs on their hooks.
    held: Vec<query::Held>,
}

/// A program on a hook of an interface that is not a fast path's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherProgram {
    /// The name of the interface.
    pub interface: String,
    /// Whether it is on the ingress hook; else on the egress hook.
    pub ingress: bool,
    /// Whether it comes before the programs of a fast path; true too where there is none.
    pub first: bool,
    /// Its name, as far as it may be asked.
    pub name: String,
}

/// Everything on the hooks of this network namespace.
#[derive(Default)]
pub struct OnHooks {
    /// Fast paths.
    pub fast_paths: Vec<FoundFastPath>,
    /// Programs of others.
    pub others: Vec<OtherProgram>,
}

/// Names of the attached programs.
const INGRESS: &str = "afpa_ingress";
const EGRESS: &str = "afpa_egress";
const TUNNEL: &str = "afpa_tunnel";
/// How the names of all our programs begin.
const OWN: &str = "afpa_";

impl OnHooks {
    /// Looks at all interfaces of the calling thread's network namespace.
    ///
    /// # Errors
    /// When the process lacks the rights.
    pub fn look() -> io::Result<Self> {
        let mut seen = Self::default();
        for device in devices()? {
            for hook in [BPF_TCX_INGRESS, BPF_TCX_EGRESS] {
                let chain = match query::chain(device.index, hook) {
                    Err(error) if error.raw_os_error() == Some(19) => continue, // it has just gone
                    chain => chain?,
                };
                seen.add(device.index, &device.name, hook == BPF_TCX_INGRESS, &chain)?;
            }
        }
        Ok(seen)
    }

    fn add(
        &mut self,
        index: u32,
        name: &str,
        ingress: bool,
        chain: &[query::Attached],
    ) -> io::Result<()> {
        let mut first = true;
        for attached in chain {
            let Some(program) = query::program(attached.program)? else { continue };
            let maps = match &*program.name {
                INGRESS | EGRESS | TUNNEL => program.maps()?,
                _ => BTreeMap::new(),
            };
            if let Some(shared) = maps.get(".data.shared") {
                self.add_ours(index, name, attached.held, shared, &maps)?;
                first = false;
                continue;
            }
            // Those for DNS and for QUIC come behind all others, wherever they stand now.
            if program.name.starts_with(OWN) {
                continue;
            }
            let interface = name.to_owned();
            self.others.push(OtherProgram { interface, ingress, first, name: program.name });
        }
        Ok(())
    }

    fn add_ours(
        &mut self,
        index: u32,
        name: &str,
        held: query::Held,
        shared: &query::Map,
        maps: &BTreeMap<String, query::Map>,
    ) -> io::Result<()> {
        let known = self.fast_paths.iter().position(|found| found.id == shared.id);
        let place = match known {
            Some(place) => place,
            None => {
                self.fast_paths.push(FoundFastPath::new(shared)?);
                self.fast_paths.len() - 1
            }
        };
        let Some(found) = self.fast_paths.get_mut(place) else { return Ok(()) };
        found.interfaces.insert(index, name.to_owned());
        found.held.push(held);
        if let Some(alive) = maps.get("alive") {
            found.alive.push(alive.open()?);
        }
        if found.flows.is_none()
            && let Some(flows) = maps.get("flows")
        {
            found.flows = Some(flows.open()?);
        }
        Ok(())
    }
}

impl FoundFastPath {
    /// All of this network namespace.
    ///
    /// # Errors
    /// As [`OnHooks::look`].
    pub fn all() -> io::Result<Vec<Self>> {
        Ok(OnHooks::look()?.fast_paths)
    }

    fn new(shared: &query::Map) -> io::Result<Self> {
        let map = shared.open()?;
        let fits = map.value_size() as usize == size_of::<Shared>();
        let region = if fits { Some(Region::map(&map)?) } else { None };
        Ok(Self {
            id: shared.id,
            region,
            alive: Vec::new(),
            flows: None,
            interfaces: BTreeMap::new(),
            held: Vec::new(),
        })
    }

    /// The ports that it serves, or translates connections of. `None`: it is of another version of AFPA.
    pub fn ports(&self) -> Option<Vec<u16>> {
        let region = self.region.as_ref()?;
        Some((0..=u16::MAX).filter(|port| is_marked(region, *port)).collect())
    }

    /// Whether it serves a port; yes, if that is not known.
    pub fn serves(&self, port: u16) -> bool {
        self.region.as_ref().is_none_or(|region| is_marked(region, port))
    }

    /// Whether a process drives it. A process that was killed may seem to drive it for some milliseconds.
    pub fn is_alive(&self) -> bool {
        let first = 0u32.to_ne_bytes();
        self.alive.iter().any(|map| matches!(map.lookup(&first, MapFlags::ANY), Ok(Some(_))))
    }

    /// The process that drives it, if this one may see it.
    pub fn process(&self) -> Option<Process> {
        let ids = self.alive.iter().filter_map(|map| Some(map.info().ok()?.info.id));
        Process::holding(&ids.collect())
    }

    /// Names of the interfaces that it is on.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        self.interfaces.values().map(String::as_str)
    }

    /// Whether it answers clients that the firewall has not let in. `None`: it is of another version of AFPA.
    pub fn admits_everyone(&self) -> Option<bool> {
        let region = self.region.as_ref()?;
        let by_next_hop = region.next_hops().load(Ordering::SeqCst) != 0;
        Some(by_next_hop && region.flood_syns().load(Ordering::SeqCst) == 0)
    }

    /// Whether it answers SYNs that the firewall has not seen, while they come in a flood. `None`: as above.
    pub fn answers_floods(&self) -> Option<bool> {
        Some(self.region.as_ref()?.flood_syns().load(Ordering::SeqCst) != 0)
    }

    /// Whether it gives answers that no file stands behind, for an attached server. `None`: as above.
    pub fn keeps_answers(&self) -> Option<bool> {
        Some(self.region.as_ref()?.notes_requests().load(Ordering::SeqCst) != 0)
    }

    /// Whether its answers are paused. `None`: it is of another version of AFPA.
    pub fn is_paused(&self) -> Option<bool> {
        Some(self.region.as_ref()?.paused().load(Ordering::SeqCst) != 0)
    }

    /// Pauses its answers, or resumes them: this writes one word, which the programs read for each request. Its
    /// process has no part in that, and may hang. False: it is of another version of AFPA.
    pub fn set_paused(&self, paused: bool) -> bool {
        let word = self.region.as_ref().map(Region::paused);
        word.map(|word| word.store(u32::from(paused), Ordering::SeqCst)).is_some()
    }

    /// Connections that would break without it: they have a sequence offset, and a socket.
    ///
    /// # Errors
    /// When the connections of this network namespace cannot be listed.
    pub fn needed_by(&self) -> io::Result<usize> {
        let Some(flows) = &self.flows else { return Ok(0) };
        let all = Entries::of(flows).map_err(query::plain)?;
        let offset = all.iter().filter_map(|(key, flow)| {
            let flow = Flow::from_bytes(flow)?;
            (flow.rx_offset | flow.tx_offset != 0).then(|| FlowKey::from_bytes(key))?
        });
        let offset: Vec<FlowKey> = offset.collect();
        if offset.is_empty() {
            return Ok(0);
        }
        let open: HashSet<_> = connections::open()?.into_iter().collect();
        Ok(offset.iter().filter(|key| open.contains(&key.to_bytes())).count())
    }

    /// The folder in which it was kept for a next process.
    pub fn kept_in(&self) -> Option<PathBuf> {
        PinDir::names().ok()?.into_iter().find_map(|name| {
            let folder = PinDir::look(&name).ok()?;
            (pinned_id(&folder, "shared") == Some(self.id)).then(|| PinDir::shown(&name))
        })
    }

    /// Takes its programs off all interfaces, and removes its pins. Connections that need it break.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove(&self) -> io::Result<()> {
        self.held.iter().try_for_each(|held| held.remove())?;
        for name in PinDir::names()? {
            let Ok(folder) = PinDir::look(&name) else { continue };
            if pinned_id(&folder, "shared") == Some(self.id) {
                PinDir::remove_found(&name, &folder)?;
            }
        }
        Ok(())
    }

    /// Whether the region that is kept in a folder is its own.
    pub(crate) fn is_kept_in(&self, folder: &File) -> bool {
        pinned_id(folder, "shared") == Some(self.id)
    }
}

fn is_marked(region: &Region, port: u16) -> bool {
    region.ports(port).load(Ordering::SeqCst) & (1 << (port % 64)) != 0
}

/// The number of the map that is pinned under this name.
fn pinned_id(folder: &File, name: &str) -> Option<u32> {
    let map = MapHandle::from_pinned_path(crate::pin_dir::within(folder).join(name)).ok()?;
    Some(map.info().ok()?.info.id)
}

/// Numbers of maps.
pub(crate) type Ids = BTreeSet<u32>;
