//! Putting the programs on interfaces, as tcx links that end with their descriptors, or are kept.

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::{
    BPF_TCX_EGRESS, BPF_TCX_INGRESS, bpf_link_create, bpf_link_detach, bpf_link_update,
    bpf_obj_get, bpf_obj_pin, bpf_prog_query_opts,
};

use crate::load::{FastPath, Unavailable};

pub(crate) type Attachments = HashMap<u32, Attachment>;

/// Both programs on one interface.
pub(crate) struct Attachment {
    ingress: OwnedFd,
    egress: OwnedFd,
}

impl FastPath {
    /// Attach to the interface with this index in the current network namespace. Answers leave by
    /// the interface the request came in, so every interface that carries a listener needs both
    /// programs before the first answer. Attaching twice changes nothing.
    pub fn attach(&self, interface: u32) -> Result<(), Unavailable> {
        let mut attached = self.attached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if attached.contains_key(&interface) {
            return Ok(());
        }
        // Egress first: nothing may drift before the way back is translated.
        let egress = self.link(&self.egress, interface, BPF_TCX_EGRESS).map_err(explain)?;
        let ingress = self.link(&self.ingress, interface, BPF_TCX_INGRESS).map_err(explain)?;
        attached.insert(interface, Attachment { ingress, egress });
        drop(attached);
        self.count_apart(interface);
        Ok(())
    }

    /// Take the programs off an interface. Connections that have drifted break, so end them first
    /// (see [`FastPath::translated_flows`]). False: they were not on it.
    pub fn detach(&self, interface: u32) -> bool {
        for hook in [BPF_TCX_INGRESS, BPF_TCX_EGRESS] {
            if let Some(path) = self.kept_link(interface, hook) {
                let _absent = std::fs::remove_file(path);
            }
        }
        let mut attached = self.attached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(attachment) = attached.remove(&interface) else { return false };
        // Closing alone would take effect a little later. Ingress first: nothing may drift any more.
        for link in [attachment.ingress, attachment.egress] {
            // JUSTIFICATION: libbpf-rs has no tcx yet. SAFETY: plain system call wrapper.
            let _gone = unsafe { bpf_link_detach(link.as_raw_fd()) };
        }
        true
    }

    /// Interfaces the programs are on.
    pub fn interfaces(&self) -> Vec<u32> {
        self.attached
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .keys()
            .copied()
            .collect()
    }

    /// How many programs, of whomever, are on both hooks of an interface of the current network
    /// namespace: 2 for each fast path. Needs `CAP_NET_ADMIN`.
    pub fn programs_on(interface: u32) -> io::Result<u32> {
        Ok(count_programs(interface, BPF_TCX_INGRESS)? + count_programs(interface, BPF_TCX_EGRESS)?)
    }

    /// Remove what [`Settings::keep_in`](crate::Settings::keep_in) left behind. Programs of a process
    /// that has ended are detached by it; connections that have drifted break.
    pub fn forget(folder: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            std::fs::remove_file(entry?.path())?;
        }
        std::fs::remove_dir(folder)
    }

    /// A link of an earlier process is handed our program, in one step; else a new one is made.
    fn link(&self, program: &OwnedFd, interface: u32, hook: u32) -> io::Result<OwnedFd> {
        let kept = self.kept_link(interface, hook);
        if let Some(link) = kept.as_deref().and_then(|path| take_over(path, program).ok()) {
            return Ok(link);
        }
        let link = create_link(program, interface, hook)?;
        if let Some(path) = kept {
            let _stale = std::fs::remove_file(&path); // of an interface that is gone
            keep(&link, &path)?;
        }
        Ok(link)
    }

    fn kept_link(&self, interface: u32, hook: u32) -> Option<PathBuf> {
        let name = if hook == BPF_TCX_INGRESS { "ingress" } else { "egress" };
        Some(self.settings.keep_in.as_ref()?.join(format!("{name}-{interface}")))
    }
}

fn create_link(program: &OwnedFd, interface: u32, hook: u32) -> io::Result<OwnedFd> {
    // JUSTIFICATION: libbpf-rs has no tcx yet.
    // SAFETY: plain system call wrapper; no options means a null pointer, which it allows.
    let fd =
        unsafe { bpf_link_create(program.as_raw_fd(), interface as i32, hook, std::ptr::null()) };
    owned(fd)
}

fn count_programs(interface: u32, hook: u32) -> io::Result<u32> {
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

fn take_over(path: &Path, program: &OwnedFd) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // JUSTIFICATION: as above. SAFETY: plain system call wrapper; `path` ends with a zero byte.
    let link = owned(unsafe { bpf_obj_get(path.as_ptr()) })?;
    // JUSTIFICATION: as above. SAFETY: plain system call wrapper; no options are allowed.
    let result =
        unsafe { bpf_link_update(link.as_raw_fd(), program.as_raw_fd(), std::ptr::null()) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(link) }
}

fn keep(link: &OwnedFd, path: &Path) -> io::Result<()> {
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

fn explain(error: io::Error) -> Unavailable {
    let remedy = match error.raw_os_error() {
        Some(1 | 13) => "CAP_BPF and CAP_NET_ADMIN are needed, or root",
        Some(19) => "the interface must exist in this network namespace",
        _ => "the kernel must have CONFIG_NET_XGRESS (Linux 6.6 or newer)",
    };
    Unavailable { reason: format!("programs cannot be attached: {error}"), remedy }
}
