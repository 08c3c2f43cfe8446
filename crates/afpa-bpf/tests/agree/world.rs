//! The objects that are pinned while the two parsers are compared, and how the programs' tables hold them.

use std::mem::{offset_of, size_of};

use afpa_abi::{
    FIELD_NAME_MAX, HOST_MAX, ObjectKey, PATH_FILTER_BITS, PATH_MAX, Shared, Site, SiteKey, Slot,
};
use afpa_http::request::{CLASSED, FieldClass, FieldClasses};
use afpa_http::{
    Coding, CodingSet, EntityTag, FieldSlots, HttpDate, RequestLimits, Target, request, target,
};

/// Site of every Host that names none; `verdict.h` has the same number.
pub const ANY_HOST: u32 = 1;
/// Host values that select a site, each with an odd character that a careless comparison takes for another.
pub const HOSTS: [(&str, u32); 4] =
    [("other.example", 2), ("[fd99::1]:8080", 3), ("a~b", 4), ("under_score.", 5)];
/// Last-Modified of every object.
pub const MODIFIED: u64 = 784_111_777;
/// Spellings that clients use, and the ones from which mutations start.
pub const TARGETS: [&str; 6] =
    ["/", "/index.html", "/style.css", "/a%20b.css", "/data.json?version=3", "/dir/"];

const LISTENER: u32 = 1;
/// The secret of the hashes.
pub const HASH_SEED: u64 = 0x0123_4567_89ab_cdef;
/// A power of two; `user_space.c` has the same number.
pub const HEADER_BLOCKS: u32 = 64;

/// One object under one spelling of its path.
pub struct Pinned {
    pub site: u32,
    pub target: Vec<u8>,
    /// The normalised path: the object's name in user mode.
    pub name: Vec<u8>,
}

impl Pinned {
    pub fn codings(&self) -> CodingSet {
        let stored = |bit: usize| self.name.len() >> bit & 1 == 1;
        let all = [Coding::Gzip, Coding::Brotli, Coding::Zstd].into_iter().enumerate();
        match &self.name[..] {
            b"/index.html" => Coding::ALL.into_iter().collect(),
            b"/" => CodingSet::IDENTITY,
            _ => all.filter(|(bit, _)| stored(*bit)).map(|(_, coding)| coding).collect(),
        }
    }

    /// Classes of request fields, and rules of `abi.h`, that do not change its answer. Most objects are those of our own
    /// server, whose answers depend only on fields that the parser reads.
    pub fn unimportant(&self) -> u32 {
        match &self.name[..] {
            b"/" => FieldClasses::classed().bits(),
            b"/dir/" => 0,
            b"/a b.css" => !(1 << FieldClass::Via as u32),
            _ => !0,
        }
    }

    /// Spellings of one name share it: they are one object.
    pub fn etag(&self, coding: Coding) -> EntityTag {
        EntityTag::from_stamp(self.name.len() as u64, self.site.into(), None, coding)
    }
}

/// Everything that is pinned. An object's variants have four slots in a row, the first is never 0.
pub struct World {
    pub objects: Vec<Pinned>,
}

/// The tables of the programs that hold a [`World`]. `user_space.c` has them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Sites = 0,
    Objects = 1,
    Slots = 2,
    Shared = 3,
    Fields = 4,
}

/// An entry as it lies in its table.
pub struct Entry {
    pub table: Table,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl World {
    /// Pins [`TARGETS`] for every site, and further spellings, where they name anything, for
    /// [`ANY_HOST`].
    pub fn new(spellings: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut world = Self { objects: Vec::new() };
        for site in HOSTS.iter().map(|(_, site)| *site).chain([ANY_HOST]) {
            TARGETS.iter().for_each(|target| world.pin(site, target.as_bytes()));
        }
        spellings.into_iter().for_each(|target| world.pin(ANY_HOST, &target));
        world
    }

    /// As user mode does: a spelling that it would refuse is never pinned.
    fn pin(&mut self, site: u32, spelling: &[u8]) {
        let head = [b"GET ", spelling, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        let (mut slots, mut scratch) = (FieldSlots::new(), Vec::new());
        let Ok(Some(request)) = request::parse(&head, &mut slots, &RequestLimits::default()) else {
            return;
        };
        let Target::Origin { path, .. } = request.target else { return };
        let known = |other: &Pinned| other.site == site && other.target == spelling;
        let Ok(name) = target::normalise(path, &mut scratch) else { return };
        if spelling.len() <= PATH_MAX && !self.objects.iter().any(known) {
            let (target, name) = (spelling.to_vec(), name.to_vec());
            self.objects.push(Pinned { site, target, name });
        }
    }

    /// The object that has this slot, and the coding of the slot's variant.
    pub fn owner(&self, slot: u32) -> Option<(&Pinned, Coding)> {
        let object = self.objects.get((slot / 4).checked_sub(1)? as usize)?;
        Some((
            object,
            [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Zstd][slot as usize % 4],
        ))
    }

    /// The object of this name of a site.
    pub fn find(&self, site: u32, name: &[u8]) -> Option<&Pinned> {
        self.objects.iter().find(|object| object.site == site && object.name == name)
    }

    /// The tables' content.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> =
            HOSTS.iter().map(|(host, site)| site_entry(host, *site)).collect();
        let mut paths = vec![0u64; PATH_FILTER_BITS / 64];
        for (object, first) in self.objects.iter().zip((4u32..).step_by(4)) {
            let hash = sum::path_hash(HASH_SEED, &object.target);
            paths[hash as usize % PATH_FILTER_BITS / 64] |= 1 << (hash % 64);
            entries.push(object_entry(object, hash, first));
            entries.extend(slot_entries(object, first));
        }
        entries.push(shared_entry(&paths));
        entries.extend(CLASSED.iter().map(|(name, class)| field_entry(name, *class)));
        entries
    }
}

fn site_entry(host: &str, site: u32) -> Entry {
    let mut key = Record::new(size_of::<SiteKey>());
    key.put(offset_of!(SiteKey, listener), &LISTENER.to_ne_bytes());
    key.put(offset_of!(SiteKey, host_length), &(host.len() as u32).to_ne_bytes());
    assert!(host.len() <= HOST_MAX);
    key.put(offset_of!(SiteKey, host), host.to_ascii_lowercase().as_bytes());
    Entry { table: Table::Sites, key: key.0, value: Site { site, host: 0 }.to_bytes().to_vec() }
}

fn field_entry(name: &str, class: FieldClass) -> Entry {
    let mut key = Record::new(FIELD_NAME_MAX);
    key.put(0, name.as_bytes());
    let value = (1u32 << class as u32).to_ne_bytes().to_vec();
    Entry { table: Table::Fields, key: key.0, value }
}

fn object_entry(object: &Pinned, hash: u64, first: u32) -> Entry {
    let mut key = Record::new(size_of::<ObjectKey>());
    key.put(offset_of!(ObjectKey, path_hash), &hash.to_ne_bytes());
    key.put(offset_of!(ObjectKey, site), &object.site.to_ne_bytes());
    key.put(offset_of!(ObjectKey, path_length), &(object.target.len() as u16).to_ne_bytes());
    let slot = |coding| if object.codings().contains(coding) { first + coding as u32 } else { 0 };
    let slots = [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Zstd].map(slot);
    // The answers that close a connection, and those to HTTP/1.0 that keeps it, are the same here.
    let words = slots.into_iter().chain(slots).chain(slots).chain([object.unimportant(), 0]);
    let value = words.flat_map(u32::to_ne_bytes).collect();
    Entry { table: Table::Objects, key: key.0, value }
}

fn slot_entries(object: &Pinned, first: u32) -> impl Iterator<Item = Entry> {
    let stored = Coding::ALL.into_iter().filter(|coding| object.codings().contains(*coding));
    stored.map(move |coding| {
        let (index, etag) = (first + coding as u32, object.etag(coding));
        let answer = [100u16, 80, 23, 0].map(u16::to_ne_bytes).concat(); // any that is not empty
        let mut slot = Record::new(size_of::<Slot>());
        slot.put(offset_of!(Slot, version), &u64::from(index).to_ne_bytes());
        slot.put(offset_of!(Slot, whole), &answer);
        slot.put(offset_of!(Slot, not_modified), &answer);
        slot.put(offset_of!(Slot, path_length), &(object.target.len() as u16).to_ne_bytes());
        slot.put(offset_of!(Slot, etag_length), &(etag.as_bytes().len() as u16).to_ne_bytes());
        slot.put(offset_of!(Slot, site), &object.site.to_ne_bytes());
        slot.put(offset_of!(Slot, path), &object.target);
        slot.put(offset_of!(Slot, etag), etag.as_bytes());
        slot.put(offset_of!(Slot, last_modified), HttpDate::new(MODIFIED).as_bytes());
        Entry { table: Table::Slots, key: index.to_ne_bytes().to_vec(), value: slot.0 }
    })
}

fn shared_entry(paths: &[u64]) -> Entry {
    let mut shared = Record::new(size_of::<Shared>());
    shared.put(offset_of!(Shared, hash_seed), &HASH_SEED.to_ne_bytes());
    shared.put(offset_of!(Shared, fields_matter), &1u32.to_ne_bytes());
    shared.put(offset_of!(Shared, checked_mask), &(HEADER_BLOCKS - 1).to_ne_bytes());
    let words: Vec<u8> = paths.iter().flat_map(|word| word.to_ne_bytes()).collect();
    shared.put(offset_of!(Shared, paths), &words);
    Entry { table: Table::Shared, key: vec![0; 4], value: shared.0 }
}

/// A C structure that is written member by member.
struct Record(Vec<u8>);

impl Record {
    fn new(size: usize) -> Self {
        Self(vec![0; size])
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

#[path = "../../src/net/sum.rs"]
#[allow(dead_code, unreachable_pub)]
mod sum;
