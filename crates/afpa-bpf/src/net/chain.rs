//! Whether our programs come first at their hooks.

use std::io;
use std::sync::atomic::Ordering;

use crate::dry_run::run_from;
use crate::load::FastPath;
use crate::program::id;

const ETHERNET: usize = 14;

impl FastPath {
    /// Looks at the interfaces that the programs are on. On those where a program of somebody else comes before ours, at
    /// either hook, nothing is answered any more: it may end the chain, and then segments are not translated. Returns
    /// their indices. To be called once a second, in the network namespace of the interfaces; it needs no rights.
    pub fn look_at_chains(&self) -> io::Result<Vec<u32>> {
        let ids = [id(&self.ingress)?, id(&self.egress)?].map(u32::to_ne_bytes).concat();
        let frame = [&[0; ETHERNET][..], &ids].concat();
        let mut behind = Vec::new();
        let Some(chain) = &self.chain else { return Ok(behind) };
        for interface in self.interfaces() {
            let run = run_from(chain, &frame, interface)?;
            if run.is_some_and(|run| run.verdict != 0) {
                behind.push(interface);
            }
        }
        let bits = behind.iter().fold(0, |bits, interface| bits | 1u64 << (interface % 64));
        self.region.not_first().store(bits, Ordering::Relaxed);
        Ok(behind)
    }
}
