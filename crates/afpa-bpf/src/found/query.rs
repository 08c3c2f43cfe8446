//! Questions to the kernel about programs and maps that are not ours.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use libbpf_rs::libbpf_sys::bpf_prog_query_opts;
use libbpf_rs::{MapCore, MapHandle, ProgramImpl};

use crate::net::tcx::detach_link;
use crate::net::{clsact, filters};

/// A program on a hook.
pub(super) struct Attached {
    /// Its number.
    pub(super) program: u32,
    pub(super) held: Held,
}

/// The holder of a program on its hook.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
    /// A link of this number; 0: it has none.
    Link(u32),
    /// A filter of clsact, on this interface and hook, which runs this program.
    Filter(u32, u32, u32),
}

impl Held {
    /// Takes the program off.
    pub(super) fn remove(self) -> io::Result<()> {
        let gone = match self {
            Self::Link(link) => detach_link(link),
            Self::Filter(interface, hook, program) => {
                clsact::remove_if(interface, hook, |found| found.program == program)
            }
        };
        match gone {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// More programs on one hook than anybody has.
const MOST: usize = 64;

/// The programs on a hook, in the order in which they run: first tcx, where there is tcx, then filters.
pub(super) fn chain(interface: u32, hook: u32) -> io::Result<Vec<Attached>> {
    let mut chain = match tcx(interface, hook) {
        Err(error) if error.raw_os_error() == Some(NO_TCX) => Vec::new(),
        chain => chain?,
    };
    chain.extend(filters::on(interface, hook)?.into_iter().map(|filter| Attached {
        program: filter.program,
        held: Held::Filter(interface, hook, filter.program),
    }));
    Ok(chain)
}

/// EINVAL: the kernel does not know such hooks.
const NO_TCX: i32 = 22;

fn tcx(interface: u32, hook: u32) -> io::Result<Vec<Attached>> {
    let (mut programs, mut links) = ([0u32; MOST], [0u32; MOST]);
    let mut options = bpf_prog_query_opts {
        sz: size_of::<bpf_prog_query_opts>() as _,
        prog_ids: programs.as_mut_ptr(),
        link_ids: links.as_mut_ptr(),
        ..Default::default()
    };
    options.__bindgen_anon_1.count = MOST as u32;
    // JUSTIFICATION: libbpf-rs has no tcx yet.
    // SAFETY: both arrays have room for `count` numbers, and outlive the call.
    let result =
        unsafe { libbpf_rs::libbpf_sys::bpf_prog_query_opts(interface as i32, hook, &mut options) };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: both names of the union are the same number.
    let count = unsafe { options.__bindgen_anon_1.count } as usize;
    let pairs = programs.into_iter().zip(links).take(count);
    Ok(pairs.map(|(program, link)| Attached { program, held: Held::Link(link) }).collect())
}

/// The kernel's information about a program.
pub(super) struct Program {
    pub(super) name: String,
    descriptor: OwnedFd,
}

/// A program by its number. None: it has just gone.
pub(super) fn program(id: u32) -> io::Result<Option<Program>> {
    let descriptor = match ProgramImpl::fd_from_id(id).map_err(plain) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        descriptor => descriptor?,
    };
    Ok(Some(Program { name: crate::program::name(&descriptor)?, descriptor }))
}

impl Program {
    /// Its maps, by their names.
    pub(super) fn maps(&self) -> io::Result<BTreeMap<String, Map>> {
        let mut maps = BTreeMap::new();
        for id in crate::program::maps(&self.descriptor)? {
            let Ok(map) = MapHandle::from_map_id(id) else { continue };
            maps.insert(map.name().to_string_lossy().into_owned(), Map { id });
        }
        Ok(maps)
    }
}

/// A map by its number.
pub(super) struct Map {
    pub(super) id: u32,
}

impl Map {
    pub(super) fn open(&self) -> io::Result<MapHandle> {
        MapHandle::from_map_id(self.id).map_err(plain)
    }
}

/// The error that the kernel gave.
pub(super) fn plain(error: libbpf_rs::Error) -> io::Error {
    let kind = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        libbpf_rs::ErrorKind::NotFound => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
