//! A loaded eBPF object whose structs and enums are read from its own BTF.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};

use afpa_testkit::packet::checksum;
use anyhow::{Context, Result, bail, ensure};
use libbpf_rs::btf::types::{Enum, MemberAttr, Struct};
use libbpf_rs::btf::{Btf, HasSize};
use libbpf_rs::{Map, MapCore, MapFlags, Object, ObjectBuilder, TC_INGRESS, TcHook, TcHookBuilder};
use nix::sched::{CloneFlags, setns};

/// An object in the kernel, and its BTF.
pub(crate) struct Loaded {
    object: Object,
    bytes: &'static [u8],
}

/// Bytes that an ELF reader can use where they lie.
#[repr(align(8))]
pub(crate) struct Aligned<B: ?Sized>(pub(crate) B);

impl Loaded {
    /// Loads an object; `sizes` are the entries of maps that the source leaves open.
    pub(crate) fn load(name: &str, bytes: &'static [u8], sizes: &[(&str, u32)]) -> Result<Self> {
        ensure!(!bytes.is_empty(), "this program was built without clang: no eBPF programs");
        let mut open = ObjectBuilder::default().name(name)?.open_memory(bytes)?;
        for (map, entries) in sizes {
            let mut found = open.maps_mut().find(|found| found.name() == *map);
            found.as_mut().context("no such map")?.set_max_entries(*entries)?;
        }
        let object = open.load().with_context(|| format!("cannot load the program {name}"))?;
        Ok(Self { object, bytes })
    }

    pub(crate) fn map(&self, name: &str) -> Result<Map<'_>> {
        let found = self.object.maps().find(|map| map.name() == name);
        found.with_context(|| format!("the object has no map {name}"))
    }

    /// Attaches a program to the ingress of an interface of the calling thread's namespace.
    pub(crate) fn attach(&self, program: &str, interface: &str) -> Result<Attachment> {
        let found = self.object.progs().find(|found| found.name() == program);
        let found = found.with_context(|| format!("the object has no program {program}"))?;
        let index = nix::net::if_::if_nametoindex(interface).context("no such interface")?;
        let mut hook = hook(found.as_fd(), index as i32);
        quietly(|| hook.create()).context("cannot create the clsact qdisc")?;
        hook.attach().context("cannot attach to TC")?;
        let namespace = File::open("/proc/thread-self/ns/net").context("/proc/thread-self")?;
        Ok(Attachment { namespace, index: index as i32 })
    }

    pub(crate) fn layout(&self, name: &str) -> Result<Layout> {
        let btf = self.btf()?;
        let found: Struct<'_> = btf.type_by_name(name).with_context(|| format!("no {name}"))?;
        Layout::of(&found)
    }

    /// The names of an enum in the object, by value, in lower case and without their prefix.
    pub(crate) fn names(&self, name: &str, prefix: &str) -> Result<BTreeMap<u32, String>> {
        let btf = self.btf()?;
        let found: Enum<'_> = btf.type_by_name(name).with_context(|| format!("no {name}"))?;
        let names = found.iter().filter_map(|member| {
            let name = member.name?.to_str()?.strip_prefix(prefix)?.to_lowercase();
            Some((u32::try_from(member.value).ok()?, name))
        });
        Ok(names.collect())
    }

    fn btf(&self) -> Result<Btf<'static>> {
        Btf::from_raw("object", self.bytes)?.context("the object carries no BTF")
    }
}

/// libbpf reports a qdisc that is there already as an error, on stderr; it is none.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let printer = libbpf_rs::set_print(None);
    let done = work();
    libbpf_rs::set_print(printer);
    done
}

/// A program on an interface; removed when dropped, on any thread.
pub(crate) struct Attachment {
    namespace: File,
    index: i32,
}

impl Attachment {
    fn detach(&self) -> Result<()> {
        setns(&self.namespace, CloneFlags::CLONE_NEWNET)?;
        // Which program it is plays no part in its removal.
        Ok(hook(self.namespace.as_fd(), self.index).detach()?)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // The interface may be gone already, and the program with it. The thread is there to
        // enter the interface's namespace, where indices mean what they meant on attaching.
        std::thread::scope(|scope| drop(scope.spawn(|| self.detach()).join()));
    }
}

/// The first filter at the ingress of an interface.
fn hook(program: BorrowedFd<'_>, index: i32) -> TcHook {
    let mut builder = TcHookBuilder::new(program);
    builder.ifindex(index).replace(true).handle(1).priority(1);
    builder.hook(TC_INGRESS)
}

/// Where the fields of a C struct lie.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    size: usize,
    fields: BTreeMap<String, usize>,
}

impl Layout {
    fn of(found: &Struct<'_>) -> Result<Self> {
        let mut fields = BTreeMap::new();
        for member in found.iter() {
            let MemberAttr::Normal { offset } = member.attr else { bail!("a bit field") };
            let name = member.name.and_then(|name| name.to_str()).context("a nameless field")?;
            fields.insert(name.to_owned(), offset as usize / 8);
        }
        Ok(Self { size: found.size(), fields })
    }

    pub(crate) fn zeroed(&self) -> Vec<u8> {
        vec![0; self.size]
    }

    /// Where a field lies; it is a programming error to ask for one that is not there.
    pub(crate) fn field(&self, name: &str) -> Result<usize> {
        self.fields.get(name).copied().with_context(|| format!("the struct has no field {name}"))
    }
}

/// Reads and writes of fixed-width fields in a struct's bytes.
pub(crate) trait Fields {
    fn u32_at(&self, offset: usize) -> u32;
    fn u64_at(&self, offset: usize) -> u64;
    fn put(&mut self, offset: usize, bytes: &[u8]);
    fn put_u32(&mut self, offset: usize, value: u32) {
        self.put(offset, &value.to_ne_bytes());
    }
    fn put_u64(&mut self, offset: usize, value: u64) {
        self.put(offset, &value.to_ne_bytes());
    }
}

impl Fields for [u8] {
    fn u32_at(&self, offset: usize) -> u32 {
        self[offset..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
    }

    fn u64_at(&self, offset: usize) -> u64 {
        self[offset..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        self[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}

/// Writes an element of an array map.
pub(crate) fn store(map: &Map<'_>, index: u32, value: &[u8]) -> Result<()> {
    map.update(&index.to_ne_bytes(), value, MapFlags::ANY)
        .with_context(|| format!("cannot write element {index} of {:?}", map.name()))
}

/// Reads an element of an array map.
pub(crate) fn fetch(map: &Map<'_>, index: u32) -> Result<Vec<u8>> {
    let value = map.lookup(&index.to_ne_bytes(), MapFlags::ANY)?;
    value.with_context(|| format!("{:?} has no element {index}", map.name()))
}

/// Reads an element of a per-core array of counters, summed over the cores.
pub(crate) fn sum(map: &Map<'_>, index: u32) -> Result<u64> {
    let values = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)?;
    Ok(values.context("no such element")?.iter().map(|value| value.u64_at(0)).sum())
}

/// The Internet checksum's sum in the host's byte order, as the programs expect it.
pub(crate) fn internet_sum(bytes: &[u8]) -> u32 {
    checksum::sum(&[bytes]).to_be().into()
}
