//! Whether our programs come first at their hooks.

use std::io;
use std::sync::atomic::Ordering;

use libbpf_rs::libbpf_sys::{BPF_TCX_EGRESS, BPF_TCX_INGRESS};

use crate::dry_run::run_from;
use crate::net::attach::Interfaces;
use crate::net::filters;
use crate::net::hooked::Hooks;
use crate::net::interfaces::is_gone;
use crate::program::id;

const ETHERNET: usize = 14;
/// Bits of the verdict of `afpa_chain`.
const INGRESS: i32 = 1;
const EGRESS: i32 = 2;

impl Interfaces {
    /// Looks at the interfaces that the programs are on. On those where a program of somebody else comes before ours, at
    /// either hook, nothing is answered any more: it may end the chain, and then segments are not translated. Returns
    /// their indices. To be called once a second, in the network namespace of the interfaces; it needs no rights.
    pub fn look_at_chains(&self) -> io::Result<Vec<u32>> {
        let mut behind = Vec::new();
        for interface in self.attached() {
            if self.is_behind_links(interface)? || self.is_behind_filters(interface)? {
                behind.push(interface);
            }
        }
        let bits = behind.iter().fold(0, |bits, interface| bits | 1u64 << (interface % 64));
        self.region.not_first().store(bits, Ordering::Relaxed);
        Ok(behind)
    }

    fn is_behind_links(&self, interface: u32) -> io::Result<bool> {
        let Some(chain) = &self.chain else { return Ok(false) };
        let bare = self.is_bare(interface);
        let ingress = if bare { &self.tunnel } else { &self.ingress };
        let ids = [id(ingress)?, id(&self.egress)?].map(u32::to_ne_bytes).concat();
        let frame = [&[0; ETHERNET][..], &ids].concat();
        let run = run_from(chain, &frame, interface)?;
        let hooks = if bare { INGRESS } else { INGRESS | EGRESS };
        Ok(run.is_some_and(|run| run.verdict & hooks != 0))
    }

    /// Where our programs are filters themselves.
    fn is_behind_filters(&self, interface: u32) -> io::Result<bool> {
        if self.hooks == Hooks::Tcx {
            return Ok(false);
        }
        let both = [(&self.ingress, BPF_TCX_INGRESS), (&self.egress, BPF_TCX_EGRESS)];
        let one = [(&self.tunnel, BPF_TCX_INGRESS)];
        for (program, hook) in if self.is_bare(interface) { &one[..] } else { &both[..] } {
            if !filters::is_first(interface, *hook, id(program)?)? {
                return Ok(!is_gone(interface));
            }
        }
        Ok(false)
    }
}
