//! User mode's own way to the server, past the kernel's TCP.

use std::net::SocketAddr;

use afpa_testkit::packet::{MacPair, PacketSocket, Segment};
use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

use super::program::{FlowLayout, Program};
use crate::object::Fields;

pub(crate) struct Wire {
    socket: PacketSocket,
    server: SocketAddr,
    macs: MacPair,
}

impl Wire {
    pub(crate) fn open(interface: &str, server: SocketAddr) -> Result<Self> {
        let socket = PacketSocket::open(interface)
            .with_context(|| format!("cannot open a packet socket on {interface}"))?;
        Ok(Self { socket, server, macs: MacPair::default() })
    }

    /// Takes the link addresses that the program has seen.
    pub(crate) fn learn(&mut self, program: &Program) -> Result<()> {
        self.macs = program.peer()?;
        Ok(())
    }

    /// A segment as the flow would send it now, but for its sequence number, flags and payload.
    pub(crate) fn segment(&self, layout: &FlowLayout, flow: &[u8], local: SocketAddr) -> Segment {
        let mut segment =
            Segment { ack: flow.u32_at(layout.ack), ..Segment::new(local, self.server) };
        if flow.u32_at(layout.stamped) != 0 {
            let value = ((now() / 1_000_000) as u32).wrapping_add(flow.u32_at(layout.ts_offset));
            segment.ts_value = value.max(1); // 0 would be no timestamp
            segment.ts_echo = flow.u32_at(layout.ts_recent);
        }
        segment
    }

    pub(crate) fn send(&self, segment: &Segment) -> Result<()> {
        // A full device loses it; it is sent again when it was missed for long enough.
        self.socket.send(&segment.frame(&self.macs)).map(drop).context("cannot send a frame")
    }
}

/// CLOCK_MONOTONIC in nanoseconds: the clock of `bpf_ktime_get_ns`.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
