//! tcx links: a program on a hook of an interface, for as long as a descriptor or a pinned file holds it.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libbpf_rs::libbpf_sys::{
    bpf_link_create, bpf_link_detach, bpf_link_update, bpf_obj_get, bpf_obj_pin,
    bpf_prog_query_opts,
};

/// Interfaces with programs, by index.
pub(crate) type Attachments = HashMap<u32, Attachment>;

/// The links of both programs on one interface.
pub(crate) struct Attachment {
    pub(crate) ingress: OwnedFd,
    pub(crate) egress: OwnedFd,
}

/// Takes the program off its hook at once; closing the descriptor alone takes effect a little later.
pub(crate) fn detach(link: &OwnedFd) {
    // JUSTIFICATION: libbpf-rs has no tcx yet. SAFETY: plain system call wrapper.
    let _gone = unsafe { bpf_link_detach(link.as_raw_fd()) };
}

/// Puts a program on a hook.
pub(crate) fn create_link(program: &OwnedFd, interface: u32, hook: u32) -> io::Result<OwnedFd> {
    // JUSTIFICATION: libbpf-rs has no tcx yet.
    // SAFETY: plain system call wrapper; no options means a null pointer, which it allows.
    let fd =
        unsafe { bpf_link_create(program.as_raw_fd(), interface as i32, hook, std::ptr::null()) };
    owned(fd)
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

/// Opens a pinned link, and puts `program` into it in one step.
pub(crate) fn take_over(path: &Path, program: &OwnedFd) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // JUSTIFICATION: as above. SAFETY: plain system call wrapper; `path` ends with a zero byte.
    let link = owned(unsafe { bpf_obj_get(path.as_ptr()) })?;
    // JUSTIFICATION: as above. SAFETY: plain system call wrapper; no options are allowed.
    let result =
        unsafe { bpf_link_update(link.as_raw_fd(), program.as_raw_fd(), std::ptr::null()) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(link) }
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
