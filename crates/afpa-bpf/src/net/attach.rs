//! Puts the programs on interfaces, as tcx links. A link ends with its descriptor, unless it is pinned.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, BPF_TCX_INGRESS};

use crate::load::{FastPath, Unavailable};
use crate::net::links::{self, Attachment};

impl FastPath {
    /// Attach to the interface with this index in the current network namespace. Answers leave by
    /// the interface the request came in, so every interface that carries a listener needs both
    /// programs before the first answer. Attaching twice changes nothing.
    pub fn attach(&self, interface: u32) -> Result<(), Unavailable> {
        let mut attached = self.attached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if attached.contains_key(&interface) {
            return Ok(());
        }
        // Egress first: no connection may need translation before what it sends back is translated.
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
        // Ingress first: no connection may begin to need translation any more.
        links::detach(&attachment.ingress);
        links::detach(&attachment.egress);
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

    /// How many programs, ours or others, are on both hooks of an interface of the current network
    /// namespace: 2 for each fast path. Needs `CAP_NET_ADMIN`.
    pub fn programs_on(interface: u32) -> io::Result<u32> {
        Ok(links::count_programs(interface, BPF_TCX_INGRESS)?
            + links::count_programs(interface, BPF_TCX_EGRESS)?)
    }

    /// Remove what [`Settings::keep_in`](crate::Settings::keep_in) left behind. This detaches
    /// the programs of a process that has ended; connections that need translation break.
    pub fn forget(folder: &Path) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            std::fs::remove_file(entry?.path())?;
        }
        std::fs::remove_dir(folder)
    }

    /// Puts our program into the link of an earlier process in one step; without one, makes a new link.
    fn link(&self, program: &OwnedFd, interface: u32, hook: u32) -> io::Result<OwnedFd> {
        let kept = self.kept_link(interface, hook);
        if let Some(link) = kept.as_deref().and_then(|path| links::take_over(path, program).ok()) {
            return Ok(link);
        }
        let link = links::create_link(program, interface, hook)?;
        if let Some(path) = kept {
            let _stale = std::fs::remove_file(&path); // of an interface that is gone
            links::pin(&link, &path)?;
        }
        Ok(link)
    }

    fn kept_link(&self, interface: u32, hook: u32) -> Option<PathBuf> {
        let name = if hook == BPF_TCX_INGRESS { "ingress" } else { "egress" };
        Some(self.settings.keep_in.as_ref()?.join(format!("{name}-{interface}")))
    }
}

fn explain(error: io::Error) -> Unavailable {
    let remedy = match error.raw_os_error() {
        Some(1 | 13) => "CAP_BPF and CAP_NET_ADMIN are needed, or root",
        Some(19) => "the interface must exist in this network namespace",
        _ => "the kernel must have CONFIG_NET_XGRESS (Linux 6.6 or newer)",
    };
    Unavailable { reason: format!("programs cannot be attached: {error}"), remedy }
}
