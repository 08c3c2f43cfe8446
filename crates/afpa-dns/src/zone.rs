//! A zone: its names and their sets of records, and what it has below a name.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use crate::fault::Fault;
use crate::name::{Name, canonical, suffixes};
use crate::nsec3::Nsec3;
use crate::rtype;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Its name, in the case of the zone file.
    pub owner: Name,
    /// Its type.
    pub rtype: u16,
    /// Seconds for which it may be kept.
    pub ttl: u32,
    /// Its data in wire form, without compression.
    pub data: Box<[u8]>,
}

/// A record of a zone, where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line<'z> {
    /// Its name.
    pub owner: &'z Name,
    /// Its type.
    pub rtype: u16,
    /// Seconds for which it may be kept.
    pub ttl: u32,
    /// Its data.
    pub data: &'z [u8],
}

impl Line<'_> {
    /// A record of its own.
    pub fn to_record(&self) -> Record {
        let Self { owner, rtype, ttl, data } = *self;
        Record { owner: owner.clone(), rtype, ttl, data: data.into() }
    }
}

impl<'r> From<&'r Record> for Line<'r> {
    fn from(record: &'r Record) -> Self {
        let Record { owner, rtype, ttl, data } = record;
        Self { owner, rtype: *rtype, ttl: *ttl, data }
    }
}

/// The records of one name and type, with their signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrSet {
    /// The type.
    pub rtype: u16,
    /// Seconds for which the set may be kept.
    pub ttl: u32,
    /// The data of each record.
    pub data: Vec<Box<[u8]>>,
    /// The data of each RRSIG that covers the set.
    pub signatures: Vec<Box<[u8]>>,
}

/// A name of the zone. One without sets is there because there are names below it.
#[derive(Clone, Debug)]
pub struct Node {
    /// The name, in the case of the zone file.
    pub owner: Name,
    /// Its sets, by type.
    pub sets: Vec<RrSet>,
}

impl Node {
    /// The set of a type.
    pub fn set(&self, rtype: u16) -> Option<&RrSet> {
        self.sets.iter().find(|set| set.rtype == rtype && !set.data.is_empty())
    }

    fn set_mut(&mut self, rtype: u16) -> &mut RrSet {
        let at = self.sets.partition_point(|set| set.rtype < rtype);
        if self.sets.get(at).is_none_or(|set| set.rtype != rtype) {
            let set = RrSet { rtype, ttl: 0, data: Vec::new(), signatures: Vec::new() };
            self.sets.insert(at, set);
        }
        &mut self.sets[at]
    }
}

/// A zone that can be served.
#[derive(Clone, Debug)]
pub struct Zone {
    apex: Name,
    /// By the name in lower case, in wire form.
    nodes: HashMap<Box<[u8]>, Node, RandomState>,
    /// The names of hashes, which are no names for questions (RFC 5155 section 7.2.8).
    hashed: HashMap<Box<[u8]>, Node, RandomState>,
    /// The names that have NSEC, in canonical order.
    chain: BTreeMap<Vec<u8>, Box<[u8]>>,
    nsec3: Option<Nsec3>,
    signed_until: Option<u32>,
}

/// Where a name is in a zone.
#[derive(Clone, Copy, Debug)]
pub enum Found<'z> {
    /// The name is there.
    Exact(&'z Node),
    /// The name is that of another zone or below it: the name servers are there.
    Cut(&'z Node),
    /// A name above it has another name for all below.
    Dname(&'z Node),
    /// It is not there, but a wildcard below its closest encloser is (RFC 4592).
    Wildcard(&'z Node, Encloser<'z>),
    /// It is not there.
    Nothing(Encloser<'z>),
}

/// The closest name above a missing one that is there, and the name one label longer than it.
#[derive(Clone, Copy, Debug)]
pub struct Encloser<'z> {
    /// The closest encloser.
    pub closest: &'z Node,
    /// The first byte of the *next closer* name in the name that was looked for.
    pub next_closer: usize,
}

impl Zone {
    pub(crate) fn new(apex: Name) -> Self {
        let mut zone = Self {
            apex: apex.clone(),
            nodes: HashMap::default(),
            hashed: HashMap::default(),
            chain: BTreeMap::new(),
            nsec3: None,
            signed_until: None,
        };
        zone.node_mut(&apex);
        zone
    }

    /// Its name.
    pub fn apex(&self) -> &Name {
        &self.apex
    }

    /// The node of its name.
    pub fn top(&self) -> Option<&Node> {
        self.nodes.get(self.apex.lower().wire())
    }

    /// The node of a name in lower case.
    pub fn node(&self, lower: &[u8]) -> Option<&Node> {
        self.nodes.get(lower)
    }

    /// The node of a hash, whose name is in lower case.
    pub(crate) fn hashed_node(&self, lower: &[u8]) -> Option<&Node> {
        self.hashed.get(lower)
    }

    pub(crate) fn hashed(&self) -> impl Iterator<Item = &Node> {
        self.hashed.values()
    }

    /// Every name.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// How many names it has. This takes no longer for a large zone.
    pub fn names(&self) -> usize {
        self.nodes.len()
    }

    /// Its serial number.
    pub fn serial(&self) -> u32 {
        let soa = self.top().and_then(|top| top.set(rtype::SOA));
        soa.and_then(|set| serial_of(set.data.first()?)).unwrap_or(0)
    }

    /// Unix time at which the first of its signatures ends, if there are any.
    pub fn signed_until(&self) -> Option<u32> {
        self.signed_until
    }

    /// The memory that it takes, about: each name, set and record with the heads of its allocations.
    pub fn memory(&self) -> usize {
        const HEAD: usize = 16;
        let of_set = |set: &RrSet| {
            let all = set.data.iter().chain(&set.signatures);
            size_of::<RrSet>() + all.map(|data| data.len() + 2 * HEAD).sum::<usize>()
        };
        let of_node = |node: &Node| node.sets.iter().map(of_set).sum::<usize>();
        let nodes = self.nodes.iter().chain(&self.hashed).map(|(name, node)| {
            let names = 2 * (name.len() + HEAD);
            size_of::<Node>() + names + of_node(node)
        });
        let chain = self.chain.iter().map(|(key, name)| key.len() + name.len() + 4 * HEAD);
        nodes.chain(chain).sum()
    }

    /// Whether it is signed.
    pub fn is_signed(&self) -> bool {
        !self.chain.is_empty() || self.nsec3.is_some()
    }

    /// Records of the zone, that of its authority first.
    pub fn records(&self) -> impl Iterator<Item = Line<'_>> {
        let top = self.top().into_iter();
        let others = self
            .nodes
            .values()
            .filter(|node| !node.owner.wire().eq_ignore_ascii_case(self.apex.wire()));
        top.chain(others).chain(self.hashed.values()).flat_map(|node| {
            let soa = node.sets.iter().filter(|set| set.rtype == rtype::SOA);
            let others = node.sets.iter().filter(|set| set.rtype != rtype::SOA);
            soa.chain(others).flat_map(move |set| {
                let own = set.data.iter().map(move |data| (set.rtype, data));
                let signatures = set.signatures.iter().map(|data| (rtype::RRSIG, data));
                own.chain(signatures).map(move |(rtype, data)| Line {
                    owner: &node.owner,
                    rtype,
                    ttl: set.ttl,
                    data,
                })
            })
        })
    }

    /// This zone with further records, which stand beside those of the same name and type.
    #[must_use]
    pub fn with(&self, further: &[Record]) -> Self {
        let mut zone = self.clone();
        for record in further.iter().filter(|record| record.owner.is_within(self.apex.wire())) {
            // A record that cannot stand there is left out, as an error in a zone file would be.
            let _ = zone.add(record);
        }
        zone
    }

    /// Looks a name up that is within the zone: in lower case, in wire form.
    pub fn find(&self, lower: &[u8]) -> Option<Found<'_>> {
        // Names from the apex down. A name has at most 127 labels.
        let mut starts = [0_u8; 128];
        let mut count = 0;
        let depth = lower.len().checked_sub(self.apex.wire().len())?;
        for suffix in suffixes(lower) {
            let start = lower.len() - suffix.len();
            if start > depth {
                break;
            }
            *starts.get_mut(count)? = start as u8;
            count += 1;
        }
        let mut current = self.top()?;
        let below = starts.get(..count.checked_sub(1)?)?;
        for &start in below.iter().rev() {
            let start = usize::from(start);
            if current.set(rtype::DNAME).is_some() {
                return Some(Found::Dname(current));
            }
            let Some(node) = self.nodes.get(lower.get(start..)?) else {
                let encloser = Encloser { closest: current, next_closer: start };
                return Some(self.wildcard(encloser));
            };
            current = node;
            if node.set(rtype::NS).is_some() {
                return Some(Found::Cut(node));
            }
        }
        Some(Found::Exact(current))
    }

    fn wildcard<'z>(&'z self, encloser: Encloser<'z>) -> Found<'z> {
        let star = Name::star_below(encloser.closest.owner.lower().wire());
        match star.and_then(|star| self.nodes.get(star.wire())) {
            Some(node) => Found::Wildcard(node, encloser),
            None => Found::Nothing(encloser),
        }
    }

    /// The node whose NSEC matches a name in lower case, or covers it.
    pub(crate) fn nsec(&self, lower: &[u8]) -> Option<&Node> {
        let key = canonical(lower);
        let before = self.chain.range(..=key).next_back();
        // The last one of the chain covers what is before the first.
        let (_, name) = before.or_else(|| self.chain.last_key_value())?;
        self.nodes.get(name)
    }

    pub(crate) fn nsec3(&self) -> Option<&Nsec3> {
        self.nsec3.as_ref()
    }

    fn node_mut(&mut self, owner: &Name) -> &mut Node {
        let lower = owner.lower();
        let depth = lower.wire().len().saturating_sub(self.apex.wire().len());
        for suffix in suffixes(lower.wire()).skip(1) {
            let start = lower.wire().len() - suffix.len();
            if start > depth || self.nodes.contains_key(suffix) {
                break;
            }
            let above = owner.wire().get(start..).and_then(Name::from_wire);
            let Some(above) = above else { break };
            self.nodes.insert(suffix.into(), Node { owner: above, sets: Vec::new() });
        }
        let node = || Node { owner: owner.clone(), sets: Vec::new() };
        self.nodes.entry(lower.wire().into()).or_insert_with(node)
    }

    /// Adds a record. One that is there already is left out.
    pub(crate) fn add(&mut self, record: &Record) -> Result<(), Fault> {
        let Record { owner, rtype, ttl, data } = record;
        let is_apex = owner.wire().eq_ignore_ascii_case(self.apex.wire());
        if !owner.is_within(self.apex.wire()) {
            return Err(Fault::Outside);
        }
        if *rtype == rtype::SOA && !is_apex {
            return Err(Fault::SoaBelow);
        }
        let covered = match (*rtype, data.first_chunk()) {
            (rtype::RRSIG, Some(covered)) => Some(u16::from_be_bytes(*covered)),
            _ => None,
        };
        if *rtype == rtype::NSEC {
            self.chain.insert(owner.canonical(), owner.lower().wire().into());
        }
        let node = if rtype::NSEC3 == covered.unwrap_or(*rtype) {
            let node = || Node { owner: owner.clone(), sets: Vec::new() };
            self.hashed.entry(owner.lower().wire().into()).or_insert_with(node)
        } else {
            self.node_mut(owner)
        };
        if let Some(covered) = covered {
            let set = node.set_mut(covered);
            if set.data.is_empty() && set.signatures.is_empty() {
                set.ttl = *ttl;
            }
            if !set.signatures.contains(data) {
                set.signatures.push(data.clone());
            }
            return Ok(());
        }
        let has = |rtype| node.set(rtype).is_some();
        let beside = |set: &RrSet| {
            !rtype::is_of_dnssec(set.rtype) && set.rtype != rtype::CNAME && !set.data.is_empty()
        };
        let clashes = match *rtype {
            rtype::CNAME => node.sets.iter().any(beside),
            other => has(rtype::CNAME) && !rtype::is_of_dnssec(other),
        };
        if clashes {
            return Err(Fault::BesideCname);
        }
        let only = matches!(*rtype, rtype::CNAME | rtype::DNAME | rtype::SOA);
        let set = node.set_mut(*rtype);
        if set.data.contains(data) {
            return Ok(());
        }
        if only && !set.data.is_empty() {
            return Err(Fault::Second);
        }
        let differs = !set.data.is_empty() && set.ttl != *ttl;
        // RFC 2181 section 5.2.
        set.ttl = if set.data.is_empty() { *ttl } else { set.ttl.min(*ttl) };
        set.data.push(data.clone());
        if differs { Err(Fault::TtlDiffers) } else { Ok(()) }
    }

    /// All records have been added.
    pub(crate) fn finish(&mut self) {
        self.nsec3 = Nsec3::of(self);
        let signatures = self.nodes.values().chain(self.hashed.values());
        let signatures = signatures.flat_map(|node| &node.sets).flat_map(|set| &set.signatures);
        // RFC 4034 section 3.1.5: it stands behind type, algorithm, labels and TTL.
        let ends = signatures.filter_map(|data| data.get(8..)?.first_chunk::<4>());
        self.signed_until = ends.map(|end| u32::from_be_bytes(*end)).min();
    }
}

/// The serial number in the data of an SOA.
pub fn serial_of(soa: &[u8]) -> Option<u32> {
    soa.len()
        .checked_sub(20)
        .and_then(|at| soa.get(at..)?.first_chunk())
        .map(|four| u32::from_be_bytes(*four))
}

/// The seconds for which a negative answer may be kept: the last number of an SOA.
pub(crate) fn minimum_of(soa: &[u8]) -> Option<u32> {
    soa.last_chunk().map(|four| u32::from_be_bytes(*four))
}
