//! tcx links: a program on a hook of an interface, for as long as a descriptor or a pinned file holds it.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libbpf_rs::libbpf_sys::{
    BPF_F_BEFORE, BPF_LINK_TYPE_TCX, BPF_TRACE_ITER, bpf_link_create, bpf_link_create_opts,
    bpf_link_detach, bpf_link_info, bpf_link_update, bpf_obj_get, bpf_obj_get_info_by_fd,
    bpf_obj_pin, bpf_prog_query_opts,
};

use crate::net::hooked::Hooked;

/// Interfaces with programs, by index.
pub(crate) type Attachments = HashMap<u32, Attachment>;

/// The programs on one interface.
pub(crate) struct Attachment {
    pub(crate) ingress: Hooked,
    /// None: its packets have no Ethernet header.
    pub(crate) egress: Option<Hooked>,
}

/// Takes the program off its hook at once; closing the descriptor alone takes effect a little later.
pub(crate) fn detach(link: &OwnedFd) {
    // JUSTIFICATION: libbpf-rs has no tcx yet. SAFETY: plain system call wrapper.
    let _gone = unsafe { bpf_link_detach(link.as_raw_fd()) };
}

/// Puts a program on a hook, before those that are there: one of them may end the chain, and packets that passed it
/// would not be translated.
pub(crate) fn create_link(program: &OwnedFd, interface: u32, hook: u32) -> io::Result<OwnedFd> {
    create_link_where(program, interface, hook, BPF_F_BEFORE)
}

/// Puts a program on a hook, behind those that are there: they decide first.
pub(crate) fn append_link(program: &OwnedFd, interface: u32, hook: u32) -> io::Result<OwnedFd> {
    create_link_where(program, interface, hook, 0)
}

fn create_link_where(
    program: &OwnedFd,
    interface: u32,
    hook: u32,
    flags: u32,
) -> io::Result<OwnedFd> {
    let options = bpf_link_create_opts {
        sz: size_of::<bpf_link_create_opts>() as _,
        flags,
        ..Default::default()
    };
    // JUSTIFICATION: libbpf-rs has no tcx yet.
    // SAFETY: plain system call wrapper; `options` outlives it, and has the size that it says.
    owned(unsafe { bpf_link_create(program.as_raw_fd(), interface as i32, hook, &options) })
}

/// Attaches a program to a control group.
pub(crate) fn create_group_link(
    program: &OwnedFd,
    group: &OwnedFd,
    hook: u32,
) -> io::Result<OwnedFd> {
    // JUSTIFICATION: libbpf-rs wants the object, which is not kept.
    // SAFETY: plain system call wrapper; no options means a null pointer, which it allows.
    owned(unsafe {
        bpf_link_create(program.as_raw_fd(), group.as_raw_fd(), hook, std::ptr::null())
    })
}

/// How many programs are on a hook.
pub(crate) fn count_programs(interface: u32, hook: u32) -> io::Result<u32> {
    let mut options =
        bpf_prog_query_opts { sz: size_of::<bpf_prog_query_opts>() as _, ..Default::default() };
    // JUSTIFICATION: libbpf-rs has no tcx yet.
    // SAFETY: no room for ids is offered, so the kernel writes the count into `options` and no more.
    let result =
        unsafe { libbpf_rs::libbpf_sys::bpf_prog_query_opts(interface as i32, hook, &mut options) };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    // SAFETY: both names of the union are the same number.
    Ok(unsafe { options.__bindgen_anon_1.count })
}

/// Makes a program that runs over the kernel's objects ready to be run.
pub(crate) fn create_iterator(program: &OwnedFd) -> io::Result<OwnedFd> {
    // JUSTIFICATION: libbpf-rs wants the object, which is not kept.
    // SAFETY: plain system call wrapper; no options means a null pointer, which it allows.
    owned(unsafe { bpf_link_create(program.as_raw_fd(), 0, BPF_TRACE_ITER, std::ptr::null()) })
}

/// Opens the pinned link of a hook, and puts `program` into it in one step.
pub(crate) fn take_over(
    path: &Path,
    program: &OwnedFd,
    interface: u32,
    hook: u32,
) -> io::Result<OwnedFd> {
    let link = open_pinned(path)?;
    if place(&link)? != (interface, hook) {
        return Err(io::Error::other("it is the link of another hook"));
    }
    replace(link, program)
}

/// `take_over`, for a control group's link, which takes no program but one for its hook.
pub(crate) fn take_over_group(path: &Path, program: &OwnedFd) -> io::Result<OwnedFd> {
    replace(open_pinned(path)?, program)
}

fn open_pinned(path: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // JUSTIFICATION: as above. SAFETY: plain system call wrapper; `path` ends with a zero byte.
    owned(unsafe { bpf_obj_get(path.as_ptr()) })
}

fn replace(link: OwnedFd, program: &OwnedFd) -> io::Result<OwnedFd> {
    // JUSTIFICATION: as above. SAFETY: plain system call wrapper; no options are allowed.
    let result =
        unsafe { bpf_link_update(link.as_raw_fd(), program.as_raw_fd(), std::ptr::null()) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(link) }
}

/// The interface and the hook of a tcx link. An interface that is gone has no number.
fn place(link: &OwnedFd) -> io::Result<(u32, u32)> {
    let mut info = bpf_link_info::default();
    let mut length = size_of::<bpf_link_info>() as u32;
    let into = (&raw mut info).cast();
    // JUSTIFICATION: as above. SAFETY: `into` points to `length` writable bytes, zeroed.
    let result = unsafe { bpf_obj_get_info_by_fd(link.as_raw_fd(), into, &mut length) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    if info.type_ != BPF_LINK_TYPE_TCX {
        return Err(io::Error::other("it is no tcx link"));
    }
    // SAFETY: the type says which member the kernel has written; all bytes were zeroed before.
    let tcx = unsafe { info.__bindgen_anon_1.tcx };
    Ok((tcx.ifindex, tcx.attach_type))
}

/// Pins a link, so that it outlives the process.
pub(crate) fn pin(link: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // JUSTIFICATION: as above. SAFETY: plain system call wrapper; `path` ends with a zero byte.
    let result = unsafe { bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// libbpf gives a descriptor or a negative error number.
fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(-fd));
    }
    // JUSTIFICATION: the link lives as long as its descriptor. SAFETY: fresh, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
