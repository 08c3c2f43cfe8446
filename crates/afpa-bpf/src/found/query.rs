//! Questions to the kernel about programs and maps that are not ours.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{bpf_obj_get_info_by_fd, bpf_prog_info, bpf_prog_query_opts};
use libbpf_rs::{MapCore, MapHandle, ProgramImpl};

/// A program on a hook.
pub(super) struct Attached {
    /// Its number.
    pub(super) program: u32,
    /// The number of its link; 0: it has none.
    pub(super) link: u32,
}

/// More programs on one hook than anybody has.
const MOST: usize = 64;

/// The programs on a hook, in the order in which they run.
pub(super) fn chain(interface: u32, hook: u32) -> io::Result<Vec<Attached>> {
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
    Ok(pairs.map(|(program, link)| Attached { program, link }).collect())
}

/// What the kernel says of a program.
pub(super) struct Program {
    pub(super) name: String,
    descriptor: OwnedFd,
    maps: u32,
}

/// A program by its number. None: it has just gone.
pub(super) fn program(id: u32) -> io::Result<Option<Program>> {
    let descriptor = match ProgramImpl::fd_from_id(id).map_err(plain) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        descriptor => descriptor?,
    };
    let mut info = bpf_prog_info::default();
    ask(&descriptor, &mut info)?;
    let name = info.name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    let name = String::from_utf8(name).unwrap_or_default();
    Ok(Some(Program { name, descriptor, maps: info.nr_map_ids }))
}

impl Program {
    /// Its maps, by their names.
    pub(super) fn maps(&self) -> io::Result<BTreeMap<String, Map>> {
        let mut ids = vec![0u32; self.maps as usize];
        let mut info = bpf_prog_info {
            nr_map_ids: self.maps,
            map_ids: ids.as_mut_ptr() as u64,
            ..Default::default()
        };
        ask(&self.descriptor, &mut info)?;
        let mut maps = BTreeMap::new();
        for id in ids {
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

fn ask(program: &OwnedFd, info: &mut bpf_prog_info) -> io::Result<()> {
    let mut length = size_of::<bpf_prog_info>() as u32;
    let into = (info as *mut bpf_prog_info).cast();
    // JUSTIFICATION: libbpf-rs offers no way to ask about a program it does not own.
    // SAFETY: `into` points to `length` writable bytes; the arrays that it names are as long as it says.
    let result = unsafe { bpf_obj_get_info_by_fd(program.as_raw_fd(), into, &mut length) };
    if result != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
