//! Puts the programs on interfaces, as tcx links, which end with their descriptors unless they are pinned; or as filters,
//! where the kernel has no tcx.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use afpa_abi::carried;
use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, BPF_TCX_INGRESS};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::net::clsact::{self, Filter};
use crate::net::filters;
use crate::net::hooked::{Hooked, Hooks};
use crate::net::links::{self, Attachment, Attachments};
use crate::programs::Programs;
use crate::region::Region;
use crate::settings::Settings;
use crate::stats::Stats;
use crate::unavailable::Unavailable;

/// The programs' places: on interfaces, and the guard.
pub struct Interfaces {
    pub(super) region: Arc<Region>,
    stats: Arc<Stats>,
    /// How programs are put on interfaces here.
    pub(super) hooks: Hooks,
    pub(crate) ingress: OwnedFd,
    pub(crate) egress: OwnedFd,
    /// Ingress of interfaces whose packets have no Ethernet header.
    pub(super) tunnel: OwnedFd,
    /// None: there is no tcx, and so there are no chains.
    pub(super) chain: Option<OwnedFd>,
    /// See [`Interfaces::guard`].
    pub(super) guards: [OwnedFd; 2],
    pub(super) guarding: Mutex<Vec<OwnedFd>>,
    carriers: MapHandle,
    attached: Mutex<Attachments>,
    /// See [`Settings::keep_in`].
    pub(super) keep_in: Option<PathBuf>,
}

impl Interfaces {
    pub(crate) fn over(
        programs: &Programs,
        region: &Arc<Region>,
        stats: &Arc<Stats>,
        settings: &Settings,
    ) -> Result<Self, Unavailable> {
        let program = |name| programs.program(name);
        Ok(Self {
            region: Arc::clone(region),
            stats: Arc::clone(stats),
            hooks: Hooks::of_this_kernel(settings),
            ingress: program("afpa_ingress")?,
            egress: program("afpa_egress")?,
            tunnel: program("afpa_tunnel")?,
            chain: program("afpa_chain").ok(),
            guards: [program("afpa_guard_egress")?, program("afpa_guard_ingress")?],
            guarding: Mutex::default(),
            carriers: programs.map("carriers")?,
            attached: Mutex::default(),
            keep_in: settings.keep_in.clone(),
        })
    }

    /// Attach to the interface with this index in the current network namespace, before all other programs. Every
    /// interface that carries a listener needs both programs before the first answer. Attaching twice changes nothing.
    pub fn attach(&self, interface: u32) -> Result<(), Unavailable> {
        self.attach_as(interface, false)
    }

    /// The same for an interface whose packets begin with an IP header ([`Interface::bare`](crate::Interface)): requests
    /// that come in there are answered, on connections whose own segments leave by another interface.
    pub fn attach_bare(&self, interface: u32) -> Result<(), Unavailable> {
        self.attach_as(interface, true)
    }

    fn attach_as(&self, interface: u32, bare: bool) -> Result<(), Unavailable> {
        let mut attached = self.attached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if attached.contains_key(&interface) {
            return Ok(());
        }
        // Egress first: no connection may need translation before the server's segments are translated. Its
        // descriptor is the lower one, too, which is closed first if the process is killed: as long as
        // acknowledgements are still translated, the server goes on from where the client stands. The guard handles
        // connections that come in by an interface with only one of the two (E5).
        let egress = (!bare).then(|| self.hook(&self.egress, interface, BPF_TCX_EGRESS));
        let egress = egress.transpose().map_err(explain)?;
        let ingress = if bare { &self.tunnel } else { &self.ingress };
        let ingress = self.hook(ingress, interface, BPF_TCX_INGRESS).map_err(explain)?;
        let key = interface.to_ne_bytes();
        let carries = if bare { carried::UP } else { carried::UP | carried::DOWN };
        let known = self.carriers.update(&key, &u32::from(carries).to_ne_bytes(), MapFlags::ANY);
        known.map_err(|error| explain(io::Error::other(error)))?;
        attached.insert(interface, Attachment { ingress, egress });
        drop(attached);
        self.stats.count_apart(interface, &self.attached());
        Ok(())
    }

    /// Take the programs off an interface. Connections with a sequence offset break, so end them first
    /// (see [`Flows::translated_flows`](crate::Flows::translated_flows)). False: they were not on it.
    pub fn detach(&self, interface: u32) -> bool {
        let mut attached = self.attached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let attachment = attached.remove(&interface);
        let was_on = attachment.is_some();
        if let Some(Attachment { ingress, egress }) = attachment {
            let _gone = self.carriers.delete(&interface.to_ne_bytes());
            // Ingress first: no connection may begin to need translation any more.
            let _left = ingress.detach().and(egress.map_or(Ok(()), Hooked::detach));
        }
        for hook in [BPF_TCX_INGRESS, BPF_TCX_EGRESS] {
            if let Some(path) = self.kept_link(interface, hook) {
                let _absent = std::fs::remove_file(path);
            }
        }
        was_on
    }

    /// Interfaces the programs are on.
    pub fn attached(&self) -> Vec<u32> {
        self.attached
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .keys()
            .copied()
            .collect()
    }

    /// Whether it was attached by [`Interfaces::attach_bare`].
    pub(super) fn is_bare(&self, interface: u32) -> bool {
        let attached = self.attached.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        attached.get(&interface).is_some_and(|attachment| attachment.egress.is_none())
    }

    /// How many programs, ours or others, are on both hooks of an interface of the current network
    /// namespace: 2 for each fast path. Needs `CAP_NET_ADMIN`.
    pub fn programs_on(interface: u32) -> io::Result<u32> {
        let mut count = 0;
        for hook in [BPF_TCX_INGRESS, BPF_TCX_EGRESS] {
            count += filters::on(interface, hook)?.len() as u32;
            count += match links::count_programs(interface, hook) {
                Err(error) if error.raw_os_error() == Some(22) => 0, // EINVAL: no tcx here
                other => other?,
            };
        }
        Ok(count)
    }

    /// Whether this process needs `CAP_NET_ADMIN` as long as it runs: for programs that are filters, to put them on
    /// interfaces that appear later, and to take them off at its end.
    pub fn needs_net_admin(&self) -> bool {
        self.hooks == Hooks::Clsact
    }

    fn hook(&self, program: &OwnedFd, interface: u32, hook: u32) -> io::Result<Hooked> {
        match self.hooks {
            Hooks::Tcx => self.link(program, interface, hook).map(Hooked::Link),
            Hooks::Clsact => self.filter(program, interface, hook).map(Hooked::Filter),
        }
    }

    /// `link`, for kernels without tcx. Removes the filters that a killed process left here.
    fn filter(&self, program: &OwnedFd, interface: u32, hook: u32) -> io::Result<Filter> {
        let kept = self.kept_link(interface, hook);
        let taken_over =
            kept.as_deref().map(|path| Filter::take_over(path, program, interface, hook));
        // Later, without the rights to look, nothing is found, and nothing is to be.
        let _not_allowed = clsact::remove_orphans(interface, hook, program);
        if let Some(Ok(filter)) = taken_over {
            return Ok(filter);
        }
        let mut filter = Filter::put(program, interface, hook)?;
        if let Some(path) = kept {
            filter.keep(&path)?;
        }
        Ok(filter)
    }

    /// Puts our program into the link of an earlier process in one step; without one, makes a new link.
    fn link(&self, program: &OwnedFd, interface: u32, hook: u32) -> io::Result<OwnedFd> {
        let kept = self.kept_link(interface, hook);
        let take_over = |path: &Path| links::take_over(path, program, interface, hook).ok();
        if let Some(link) = kept.as_deref().and_then(take_over) {
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
        Some(self.keep_in.as_ref()?.join(format!("{name}-{interface}")))
    }
}

fn explain(error: io::Error) -> Unavailable {
    let remedy = match error.raw_os_error() {
        Some(1 | 13) => "CAP_BPF and CAP_NET_ADMIN are needed, or root",
        Some(19) => "the interface must exist in this network namespace",
        _ => {
            "the kernel must have CONFIG_NET_XGRESS (Linux 6.6 or newer), or sch_ingress and cls_bpf"
        }
    };
    Unavailable { reason: format!("programs cannot be attached: {error}"), remedy }
}
