//! The program for QUIC: an object of its own, with its own maps, on the tcx hooks of interfaces, behind the programs of HTTP.
//!
//! Nothing of it outlives the process: the kernel takes programs off their hooks with the last descriptor of their links. Its
//! knowledge follows from the keys and the clock, so the next process goes on where this one ends.

mod table;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use afpa_abi::address_bytes;
pub use afpa_abi::quic as abi;
use afpa_abi::quic::{QuicAddress, QuicConfig, QuicPrefix, Reason, quic_rule};
use afpa_police::{Prefix, Rule, Rules, Step};
use libbpf_rs::libbpf_sys::BPF_TCX_INGRESS;
use libbpf_rs::{MapCore, MapFlags, MapHandle, ObjectBuilder};
pub use table::table as tag_table;

use crate::dry_run::{DryRun, run, run_gso};
use crate::kernel::Kernel;
use crate::net::hooked::Hooks;
use crate::net::{interfaces, links};
use crate::settings::Settings;
use crate::unavailable::{Unavailable, broken_object, explain};

/// The loaded program. When this is dropped, nothing is answered or dropped any more.
pub struct QuicPath {
    ingress: OwnedFd,
    maps: HashMap<String, MapHandle>,
    /// Links by interface.
    hooked: Mutex<HashMap<u32, OwnedFd>>,
    /// The addresses that the program knows.
    served: Mutex<HashSet<SocketAddr>>,
    /// The rules that it knows.
    rules: Mutex<BTreeMap<Prefix, Rule>>,
}

impl QuicPath {
    /// Loads program and maps. Nothing is attached or served yet.
    ///
    /// # Errors
    /// When the kernel is too old, or refuses.
    pub fn load() -> Result<Self, Unavailable> {
        if let Some(why) = Kernel::this().refusals().into_iter().next() {
            return Err(why);
        }
        crate::verify::keep_complaints();
        let object = ObjectBuilder::default()
            .name("afpa_quic")
            .and_then(|builder| builder.open_memory(&crate::QUIC_OBJECT.unpacked()?))
            .and_then(|open| open.load())
            .map_err(|error| explain("kernel refuses the program for QUIC", &error))?;
        let program = object.progs().find(|program| program.name() == "afpa_quic_ingress");
        let program = program.ok_or_else(|| broken_object("afpa_quic_ingress"))?;
        let ingress = program.as_fd().try_clone_to_owned();
        let ingress = ingress.map_err(|error| explain("program cannot be kept", &error))?;
        let mut maps = HashMap::new();
        for map in object.maps() {
            let handle =
                MapHandle::try_from(&map).map_err(|error| explain("map cannot be kept", &error))?;
            maps.insert(map.name().to_string_lossy().into_owned(), handle);
        }
        let path = Self {
            ingress,
            maps,
            hooked: Mutex::default(),
            served: Mutex::default(),
            rules: Mutex::default(),
        };
        path.put("quic_tables", &0u32.to_ne_bytes(), &table::table().to_bytes())
            .map_err(|error| explain("map cannot be written", &error))?;
        Ok(path)
    }

    /// Why the program cannot be put on interfaces here.
    pub fn refusal() -> Option<Unavailable> {
        (Hooks::of_this_kernel(&Settings::default()) == Hooks::Clsact).then(|| Unavailable {
            reason: "this kernel has no tcx, on which the program for QUIC is".into(),
            remedy: "Linux 6.6 or newer",
        })
    }

    fn map(&self, name: &str) -> libbpf_rs::Result<&MapHandle> {
        let lacks = || libbpf_rs::Error::from(io::Error::other(format!("no map {name}")));
        self.maps.get(name).ok_or_else(lacks)
    }

    fn put(&self, map: &str, key: &[u8], value: &[u8]) -> libbpf_rs::Result<()> {
        self.map(map)?.update(key, value, MapFlags::ANY)
    }

    /// Puts the program on an interface of the current network namespace; false: it is there already. It comes behind all
    /// others: a program that drops packets does so first, and no hit of HTTP passes it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(&self, interface: u32) -> io::Result<bool> {
        let mut hooked = locked(&self.hooked);
        hooked.retain(|interface, _| !interfaces::is_gone(*interface));
        if hooked.contains_key(&interface) {
            return Ok(false);
        }
        let link = links::append_link(&self.ingress, interface, BPF_TCX_INGRESS)?;
        hooked.insert(interface, link);
        Ok(true)
    }

    /// Takes the program off all interfaces at once.
    pub fn detach(&self) {
        locked(&self.hooked).drain().for_each(|(_, link)| links::detach(&link));
    }

    /// The interfaces that it is on.
    pub fn attached(&self) -> BTreeSet<u32> {
        locked(&self.hooked).keys().copied().collect()
    }

    /// Says what user mode says.
    ///
    /// # Errors
    /// When the kernel refuses, here and below.
    pub fn configure(&self, config: &QuicConfig) -> libbpf_rs::Result<()> {
        self.put("quic_configs", &0u32.to_ne_bytes(), &config.to_bytes())
    }

    /// Has the program look at what comes for these addresses, which this host has, and for no others.
    pub fn serve(&self, addresses: impl IntoIterator<Item = SocketAddr>) -> libbpf_rs::Result<()> {
        let wanted: HashSet<SocketAddr> = addresses.into_iter().collect();
        let mut served = locked(&self.served);
        let map = self.map("quic_addresses")?;
        for gone in served.difference(&wanted) {
            let _absent = map.delete(&address(*gone));
        }
        served.retain(|address| wanted.contains(address));
        for new in &wanted {
            if served.insert(*new) {
                map.update(&address(*new), &1u32.to_ne_bytes(), MapFlags::ANY)?;
            }
        }
        Ok(())
    }

    /// This socket is ours.
    pub fn own(&self, socket: impl AsFd) -> libbpf_rs::Result<()> {
        let socket = socket.as_fd().as_raw_fd();
        self.put("quic_sockets", &socket.to_ne_bytes(), &1u32.to_ne_bytes())
    }

    /// Replaces the rules of clients' prefixes, in steps that refuse or admit no client against the old and the new ones.
    /// True: there are any.
    pub fn rule(&self, rules: &Rules) -> libbpf_rs::Result<bool> {
        let mut now = locked(&self.rules);
        let map = self.map("quic_rules")?;
        for step in rules.steps_from(&*now) {
            match step {
                Step::Put(prefix, rule) => {
                    let value = match rule {
                        Rule::Allow => quic_rule::ALLOW,
                        Rule::Deny => quic_rule::DENY,
                    };
                    map.update(&key(prefix), &u32::from(value).to_ne_bytes(), MapFlags::ANY)?;
                    now.insert(prefix, rule);
                }
                Step::Remove(prefix) => {
                    map.delete(&key(prefix))?;
                    now.remove(&prefix);
                }
            }
        }
        Ok(!now.is_empty())
    }

    /// How often each way out of the program was taken.
    pub fn counters(&self) -> libbpf_rs::Result<Vec<(Reason, u64)>> {
        let map = self.map("quic_counters")?;
        let count = |reason: &Reason| {
            let found = map.lookup_percpu(&(*reason as u32).to_ne_bytes(), MapFlags::ANY)?;
            let of_core =
                |bytes: &Vec<u8>| bytes.as_slice().try_into().map_or(0, u64::from_ne_bytes);
            Ok((*reason, found.unwrap_or_default().iter().map(of_core).sum()))
        };
        Reason::ALL.iter().map(count).collect()
    }

    /// Runs the program `repeat` times on an Ethernet frame, as if it had been merged of datagrams with so many bytes each if
    /// that is not 0.
    pub fn dry_run(&self, frame: &[u8], gso_size: u32, repeat: u32) -> io::Result<DryRun> {
        match gso_size {
            0 => run(&self.ingress, frame, repeat),
            size => run_gso(&self.ingress, frame, size),
        }
    }

    /// Instructions that the verifier has looked at.
    pub fn verified_instructions(&self) -> io::Result<u32> {
        let statistics = crate::program::statistics("afpa_quic_ingress", &self.ingress)?;
        Ok(statistics.verified_instructions)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn address(address: SocketAddr) -> Vec<u8> {
    let port = address.port();
    QuicAddress { address: address_bytes(address.ip()), port, reserved: 0 }.to_bytes().to_vec()
}

fn key(prefix: Prefix) -> Vec<u8> {
    let mut key = QuicPrefix { bits: 32 + u32::from(prefix.bits()), ..QuicPrefix::ZERO };
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
    key.to_bytes().to_vec()
}
