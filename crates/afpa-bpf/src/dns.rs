//! The programs that answer DNS: an object of its own, with its own maps, on tcx hooks beside those of HTTP.
//!
//! Nothing of it outlives the process: the kernel takes programs off their hooks with the last descriptor of their links. No
//! client notices, since each datagram is by itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use afpa_abi::address_bytes;
pub use afpa_abi::dns as abi;
use afpa_abi::dns::{
    DNS_COUNTS, DNS_REASON_PLACES, DNS_SHORT_TAILS, DNS_TYPE_CAA, DNS_TYPE_PLACES, DnsConfig,
    DnsPatch, DnsPin, DnsPrefix, DnsReport, DnsSample, DnsSeed, DnsShortTail, DnsTail, Reason,
};
use afpa_police::Prefix;
use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, BPF_TCX_INGRESS};
use libbpf_rs::{MapCore, MapFlags, MapHandle, ObjectBuilder};

use crate::dry_run::{DryRun, Hook, run};
use crate::kernel::Kernel;
use crate::net::hooked::Hooks;
use crate::net::next_hops::{self, NextHops};
use crate::net::{interfaces, links};
use crate::ring::Ring;
use crate::settings::Settings;
use crate::unavailable::{Unavailable, broken_object, explain};

/// The loaded programs. When this is dropped, nothing is answered any more.
pub struct DnsPath {
    ingress: OwnedFd,
    egress: OwnedFd,
    maps: HashMap<String, MapHandle>,
    /// Links by interface: egress first, since an answer of the server's must be seen before one is given.
    hooked: Mutex<HashMap<u32, [OwnedFd; 2]>>,
    /// The next hops that the programs know.
    hops: Mutex<NextHops>,
}

impl DnsPath {
    /// Loads programs and maps. Nothing is attached or answered yet.
    ///
    /// # Errors
    /// When the kernel is too old, or refuses.
    pub fn load() -> Result<Self, Unavailable> {
        if let Some(why) = Kernel::this().refusals().into_iter().next() {
            return Err(why);
        }
        if Hooks::of_this_kernel(&Settings::default()) == Hooks::Clsact {
            return Err(Unavailable {
                reason: "this kernel has no tcx, on which the programs for DNS are".into(),
                remedy: "Linux 6.6 or newer",
            });
        }
        let object = ObjectBuilder::default()
            .name("afpa_dns")
            .and_then(|builder| builder.open_memory(&crate::DNS_OBJECT.unpacked()?))
            .and_then(|open| open.load())
            .map_err(|error| explain("kernel refuses the programs for DNS", &error))?;
        let program = |name: &str| {
            let found = object.progs().find(|program| program.name() == name);
            let found = found.ok_or_else(|| broken_object(name))?;
            let kept = found.as_fd().try_clone_to_owned();
            kept.map_err(|error| explain("program cannot be kept", &error))
        };
        let mut maps = HashMap::new();
        for map in object.maps() {
            let handle =
                MapHandle::try_from(&map).map_err(|error| explain("map cannot be kept", &error))?;
            maps.insert(map.name().to_string_lossy().into_owned(), handle);
        }
        Ok(Self {
            ingress: program("afpa_dns_ingress")?,
            egress: program("afpa_dns_egress")?,
            maps,
            hooked: Mutex::default(),
            hops: Mutex::default(),
        })
    }

    fn map(&self, name: &str) -> libbpf_rs::Result<&MapHandle> {
        let lacks = || libbpf_rs::Error::from(std::io::Error::other(format!("no map {name}")));
        self.maps.get(name).ok_or_else(lacks)
    }

    fn put(&self, map: &str, key: &[u8], value: &[u8]) -> libbpf_rs::Result<()> {
        self.map(map)?.update(key, value, MapFlags::ANY)
    }

    fn hooked(&self) -> MutexGuard<'_, HashMap<u32, [OwnedFd; 2]>> {
        self.hooked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts both programs on an interface of the current network namespace; false: they are there already. They come behind all
    /// others: a program that drops packets does so first, and no hit of HTTP passes them.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(&self, interface: u32) -> std::io::Result<bool> {
        let mut hooked = self.hooked();
        hooked.retain(|interface, _| !interfaces::is_gone(*interface));
        if hooked.contains_key(&interface) {
            return Ok(false);
        }
        let egress = links::append_link(&self.egress, interface, BPF_TCX_EGRESS)?;
        let ingress = links::append_link(&self.ingress, interface, BPF_TCX_INGRESS)?;
        hooked.insert(interface, [egress, ingress]);
        Ok(true)
    }

    /// Takes the programs off all interfaces at once.
    pub fn detach(&self) {
        for [egress, ingress] in self.hooked().drain().map(|(_, links)| links) {
            links::detach(&ingress);
            links::detach(&egress);
        }
    }

    /// Says what user mode says.
    ///
    /// # Errors
    /// When the kernel refuses, here and below.
    pub fn configure(&self, config: &DnsConfig) -> libbpf_rs::Result<()> {
        self.put("dns_configs", &0u32.to_ne_bytes(), &config.to_bytes())
    }

    /// Gives the programs the secret of their hashes; once, before anything is pinned.
    pub fn plant(&self, seed: &DnsSeed) -> libbpf_rs::Result<()> {
        self.put("dns_seeds", &0u32.to_ne_bytes(), &seed.to_bytes())
    }

    /// Serves an address, by a number.
    pub fn serve(&self, address: IpAddr, number: u32) -> libbpf_rs::Result<()> {
        self.put("dns_servers", &address_bytes(address), &number.to_ne_bytes())
    }

    /// Reads the routes, and calls `change` when they are others than before, to say what is configured while they change (false)
    /// and after that (true). False: no gateway is sure.
    pub fn look_at_routes(&self, change: impl Fn(bool)) -> std::io::Result<bool> {
        let wanted = next_hops::of_this_namespace()?.unwrap_or_default();
        let sure = wanted.values().any(|number| *number != 0);
        let mut known = self.hops.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == wanted {
            return Ok(sure);
        }
        change(false);
        let map = self.map("dns_routes").map_err(std::io::Error::other)?;
        for prefix in known.keys() {
            let _absent = map.delete(&route(*prefix));
        }
        known.clear();
        for (prefix, number) in &wanted {
            let put = map.update(&route(*prefix), &number.to_ne_bytes(), MapFlags::ANY);
            put.map_err(std::io::Error::other)?;
        }
        *known = wanted;
        change(sure);
        Ok(sure)
    }

    /// Writes a tail that no key names, and none has named for a while.
    pub fn put_tail(&self, number: u32, tail: &DnsTail) -> libbpf_rs::Result<()> {
        if let Some(number) = number.checked_sub(DNS_SHORT_TAILS as u32) {
            return self.put("dns_tails", &number.to_ne_bytes(), &tail.to_bytes());
        }
        let mut short = DnsShortTail {
            sum: tail.sum,
            length: tail.length,
            cookie: tail.cookie,
            header: tail.header,
            ..DnsShortTail::ZERO
        };
        let length = short.bytes.len();
        short.bytes.copy_from_slice(tail.bytes.get(..length).unwrap_or_default());
        self.put("dns_short_tails", &number.to_ne_bytes(), &short.to_bytes())
    }

    /// Writes the address that the tail of an answer lacks, before that is pinned there. Nothing is pinned there now.
    pub fn put_patch(&self, place: u32, patch: DnsPatch) -> libbpf_rs::Result<()> {
        self.put("dns_patches", &place.to_ne_bytes(), &patch.to_bytes())
    }

    /// Pins an answer at a place where nothing is pinned.
    pub fn pin(&self, place: u32, check: u64, word: u64) -> libbpf_rs::Result<()> {
        let place = place.to_ne_bytes();
        // A program that sees the check must not see the word of a key before.
        self.put("dns_pins", &place, &DnsPin { check, word: 0 }.to_bytes())?;
        self.put("dns_pins", &place, &DnsPin { check, word }.to_bytes())
    }

    /// Takes the answer at a place back.
    pub fn unpin(&self, place: u32) {
        let _never_fails = self.put("dns_pins", &place.to_ne_bytes(), &DnsPin::ZERO.to_bytes());
    }

    /// Runs a program `repeat` times on an Ethernet frame.
    pub fn dry_run(&self, hook: Hook, frame: &[u8], repeat: u32) -> std::io::Result<DryRun> {
        run(if hook == Hook::Ingress { &self.ingress } else { &self.egress }, frame, repeat)
    }

    /// Until when answers of this edition of a zone may be given; 0: it is over.
    pub fn lease(&self, zone: u32, until: u64) -> libbpf_rs::Result<()> {
        self.put("dns_zones", &zone.to_ne_bytes(), &until.to_ne_bytes())
    }

    /// The numbers of the programs.
    pub fn counts(&self) -> libbpf_rs::Result<DnsCounts> {
        let found = self.map("dns_cores")?.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        let mut counts = vec![0; DNS_COUNTS];
        for core in found.unwrap_or_default() {
            let (words, _) = core.as_chunks::<8>();
            for (count, word) in counts.iter_mut().zip(words) {
                *count += u64::from_ne_bytes(*word);
            }
        }
        Ok(DnsCounts(counts))
    }

    /// Opens the stream of answers for dnstap.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn samples(&self) -> libbpf_rs::Result<DnsSamples<'_>> {
        Ring::of(self.map("dns_samples")?, DnsSample::from_bytes)
    }

    /// Opens the stream of the programs' reports. One reader is enough; it stays on its thread.
    pub fn reports(&self) -> libbpf_rs::Result<DnsReports<'_>> {
        Ring::of(self.map("dns_reports")?, DnsReport::from_bytes)
    }
}

/// The reader of answers for dnstap.
pub type DnsSamples<'p> = Ring<'p, DnsSample>;

/// The numbers of the programs, of all cores together.
#[derive(Clone, Debug, Default)]
pub struct DnsCounts(Vec<u64>);

impl DnsCounts {
    /// How often each way out of the programs was taken.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> {
        let count = |reason: &Reason| match reason {
            Reason::Answered => self.answered(),
            other => self.0.get(*other as usize).copied().unwrap_or(0),
        };
        Reason::ALL.iter().map(move |reason| (*reason, count(reason)))
    }

    /// Answers of the programs.
    pub fn answered(&self) -> u64 {
        self.0.iter().skip(DNS_REASON_PLACES).sum()
    }

    /// Those that say that the name does not exist.
    pub fn nxdomain(&self) -> u64 {
        self.0.iter().skip(DNS_REASON_PLACES + DNS_TYPE_PLACES).sum()
    }

    /// Answers by the type that was asked for, of types that were; None: types that have no count of their own.
    pub fn types(&self) -> impl Iterator<Item = (Option<u16>, u64)> {
        (0..DNS_TYPE_PLACES).filter_map(|place| {
            let of = |from: usize| self.0.get(from + place).copied().unwrap_or(0);
            let count = of(DNS_REASON_PLACES) + of(DNS_REASON_PLACES + DNS_TYPE_PLACES);
            let number = match place {
                0 => None,
                DNS_TYPE_CAA => Some(257),
                place => Some(place as u16),
            };
            (count > 0).then_some((number, count))
        })
    }
}

/// The key of a route.
fn route(prefix: Prefix) -> Vec<u8> {
    let mut key = DnsPrefix {
        bits: 32 + u32::from(prefix.bits()),
        family: if prefix.address().is_ipv6() { 6 } else { 4 },
        ..DnsPrefix::ZERO
    };
    let octets = match prefix.address() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    if let Some(place) = key.address.get_mut(..octets.len()) {
        place.copy_from_slice(&octets);
    }
    key.to_bytes().to_vec()
}

/// The reader of the programs' reports.
pub type DnsReports<'p> = Ring<'p, DnsReport>;
