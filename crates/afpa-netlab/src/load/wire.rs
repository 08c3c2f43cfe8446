//! User mode's own way to the server, past the kernel's TCP.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

use super::packet::Segment;
use super::program::{FlowLayout, Program};
use crate::PacketSocket;
use crate::object::Fields;

pub(crate) struct Wire {
    socket: PacketSocket,
    server: SocketAddr,
    /// Link addresses: the client's and the server's.
    links: ([u8; 6], [u8; 6]),
}

impl Wire {
    pub(crate) fn open(interface: &str, server: SocketAddr) -> Result<Self> {
        Ok(Self { socket: PacketSocket::open(interface)?, server, links: Default::default() })
    }

    /// Takes the link addresses that the program has seen.
    pub(crate) fn learn(&mut self, program: &Program) -> Result<()> {
        self.links = program.peer()?;
        Ok(())
    }

    /// A segment as the flow would send it now, as far as it does not depend on what is sent.
    pub(crate) fn segment(&self, layout: &FlowLayout, flow: &[u8], local: SocketAddr) -> Segment {
        let (from_link, to_link) = self.links;
        let value = ((now() / 1_000_000) as u32).wrapping_add(flow.u32_at(layout.ts_offset));
        let stamped = flow.u32_at(layout.stamped) != 0;
        Segment {
            from_link,
            to_link,
            from: (local.ip(), local.port()),
            to: (self.server.ip(), self.server.port()),
            ack: flow.u32_at(layout.ack),
            stamps: stamped.then(|| (value, flow.u32_at(layout.ts_recent))),
        }
    }

    pub(crate) fn send(&self, frame: &[u8]) -> Result<()> {
        // A full device loses it; it is sent again when it was missed for long enough.
        self.socket.send(frame).map(drop).context("cannot send a frame")
    }
}

/// CLOCK_MONOTONIC in nanoseconds: the clock of `bpf_ktime_get_ns`.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
