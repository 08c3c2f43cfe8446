//! Connections shared with the fast path, and the sweep that removes those whose socket is gone.

use std::collections::HashSet;
use std::mem::offset_of;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use afpa_abi::{Flow, FlowKey, RTX_MAX, TICK_SHIFT, Transfer, flow_flags, socketless};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::time::{ClockId, clock_gettime};

use crate::entries::Entries;
use crate::programs::Programs;
use crate::region::Region;
use crate::settings::{BYPASS_AFTER_MAX, Settings};
use crate::time::ticks;
use crate::unavailable::Unavailable;

/// The results of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Flows in the table when it began.
    pub flows: usize,
    /// How many of these have a sequence offset, and need translation.
    pub translated: usize,
    /// How many of these have no socket.
    pub socketless: usize,
    /// Flows whose socket was looked for.
    pub probed: usize,
    /// Flows removed.
    pub removed: usize,
}

const ETHERNET: usize = 14;
/// Bytes that the program is run on: the flow's key is within them. Newer kernels run none on less than a header of the
/// protocol.
const PROBE: usize = ETHERNET + 40;

/// Connections closed both ways are looked after this soon.
const CLOSED_AFTER: Duration = Duration::from_secs(1);

/// The connections that are shared with the programs.
pub struct Flows {
    region: Arc<Region>,
    flows: MapHandle,
    transfers: MapHandle,
    /// Looks for the socket of a flow.
    probe: OwnedFd,
    /// See [`Settings::socketless_idle`].
    socketless_idle: Duration,
}

impl Flows {
    pub(crate) fn over(
        programs: &Programs,
        region: &Arc<Region>,
        settings: &Settings,
    ) -> Result<Self, Unavailable> {
        Ok(Self {
            region: Arc::clone(region),
            flows: programs.map("flows")?,
            transfers: programs.map("transfers")?,
            probe: programs.program("afpa_probe")?,
            socketless_idle: settings.socketless_idle,
        })
    }

    /// Remove flows that nothing was heard of for `idle` and whose socket is gone. Must run in the
    /// network namespace of the interfaces.
    pub fn sweep(&self, idle: Duration) -> libbpf_rs::Result<Swept> {
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
        let mut swept = Swept::default();
        let mut suspects = Vec::new();
        self.each_flow(|key, flow| {
            swept.flows += 1;
            swept.translated += usize::from(flow.rx_offset | flow.tx_offset != 0);
            swept.socketless += usize::from(has_no_socket(&flow));
            let closed = flow_flags::CLIENT_FIN | flow_flags::SERVER_FIN;
            let patience = match flow.socketless {
                _ if flow.flags & closed == closed => CLOSED_AFTER,
                socketless::OPEN => self.socketless_idle,
                socketless::CLOSING | socketless::FIN_WAIT => CLOSED_AFTER,
                _ => idle,
            };
            if now.saturating_sub(Duration::from_nanos(flow.used_ns)) >= patience {
                suspects.push(key);
            }
        })?;
        for key in &suspects {
            swept.probed += 1;
            swept.removed += usize::from(self.probe(key).map_err(libbpf_rs::Error::from)?);
        }
        Ok(swept)
    }

    /// The state of one connection.
    pub fn flow(&self, key: &FlowKey) -> libbpf_rs::Result<Option<Flow>> {
        let flow = self.flows.lookup(&key.to_bytes(), MapFlags::ANY)?;
        Ok(flow.and_then(|bytes| Flow::from_bytes(&bytes)))
    }

    /// Close connections without a socket, as a server that ends closes idle ones. Must run in the network namespace of the
    /// interfaces, once no SYN is answered any more ([`Socketless::drain`](crate::Socketless::drain)). A connection whose client has not acknowledged
    /// its answer yet stays open. Returns how many there are: call it again for them.
    ///
    /// # Errors
    ///
    /// The errors of system calls.
    pub fn close_socketless(&self) -> libbpf_rs::Result<usize> {
        let (idle, answered) = self.open_without_socket()?;
        for key in &idle {
            self.probe(key).map_err(libbpf_rs::Error::from)?;
        }
        Ok(answered)
    }

    /// Connections without a socket, counted one by one.
    pub(crate) fn count_without_socket(&self) -> usize {
        let mut count = 0;
        let seen = self.each_flow(|_, flow| count += usize::from(has_no_socket(&flow)));
        seen.map_or(0, |()| count)
    }

    /// Open connections without a socket: those whose clients have acknowledged everything, and the number of the others.
    fn open_without_socket(&self) -> libbpf_rs::Result<(Vec<FlowKey>, usize)> {
        let (mut idle, mut answered) = (Vec::new(), 0);
        self.each_flow(|key, flow| match flow.socketless {
            socketless::OPEN if is_outstanding(&flow) => answered += 1,
            socketless::OPEN => idle.push(key),
            _ => {}
        })?;
        Ok((idle, answered))
    }

    /// Answers that are under way when user mode ends, and that are not retransmitted when it is gone: those of several
    /// segments, and those on connections without a socket. Connections without a socket that have no such answer are closed
    /// ([`close_socketless`](Self::close_socketless)); those that cannot be closed are not counted.
    ///
    /// # Errors
    ///
    /// The connections cannot be listed: then any number of answers may be owed.
    pub fn answers_owed(&self) -> libbpf_rs::Result<usize> {
        let (idle, answered) = self.open_without_socket()?;
        for key in &idle {
            let _no_answer_is_lost_with_it = self.probe(key);
        }
        Ok(answered + self.transfers()?)
    }

    /// Connections that would break if the programs were detached now: they have a sequence offset, or no socket.
    pub fn translated_flows(&self) -> libbpf_rs::Result<usize> {
        let mut translated = 0;
        self.each_flow(|_, flow| translated += usize::from(breaks(&flow)))?;
        Ok(translated)
    }

    /// Time since the last answer on a connection, to a few milliseconds; None: nothing was answered on it. Mere
    /// acknowledgements do not count, lest a client holds a connection by them.
    pub fn since_answer(&self, key: &FlowKey) -> libbpf_rs::Result<Option<Duration>> {
        let answered = self.flow(key)?.filter(|flow| flow.tx_offset != 0);
        // An answer may come between the two looks.
        let ago = |flow: Flow| (ticks() as u32).wrapping_sub(flow.answered).cast_signed().max(0);
        Ok(answered.map(|flow| Duration::from_nanos((ago(flow) as u64) << TICK_SHIFT)))
    }

    fn each_flow(&self, mut visit: impl FnMut(FlowKey, Flow)) -> libbpf_rs::Result<()> {
        for (key, value) in Entries::of(&self.flows)?.iter() {
            if let (Some(key), Some(flow)) = (FlowKey::from_bytes(key), Flow::from_bytes(value)) {
                visit(key, flow);
            }
        }
        Ok(())
    }

    /// Answers of several segments that are under way.
    pub fn transfers(&self) -> libbpf_rs::Result<usize> {
        Ok(Entries::of(&self.transfers)?.len())
    }

    /// Slots, and the versions in them, of answers of several segments that are under way.
    pub(crate) fn in_transfer(&self) -> libbpf_rs::Result<HashSet<(u32, u64)>> {
        let entries = Entries::of(&self.transfers)?;
        let transfers = entries.iter().filter_map(|(_, bytes)| Transfer::from_bytes(bytes));
        Ok(transfers.map(|transfer| (transfer.slot, transfer.version)).collect())
    }

    /// Slots and versions that a client may still need: answers under way, and those that were not acknowledged.
    pub(crate) fn needed(&self) -> libbpf_rs::Result<HashSet<(u32, u64)>> {
        let mut needed = self.in_transfer()?;
        self.each_flow(|_, flow| {
            if is_outstanding(&flow) {
                needed.insert((flow.answer_slot, flow.answer_version));
            }
        })?;
        Ok(needed)
    }

    /// Ask the kernel whether the socket is there still; the program removes the flow if not.
    fn probe(&self, key: &FlowKey) -> std::io::Result<bool> {
        let mut packet = [0; PROBE];
        let is_ipv4 = key.client[..10] == [0; 10] && key.client[10..12] == [0xff; 2];
        packet[12..ETHERNET].copy_from_slice(if is_ipv4 { &[0x08, 0x00] } else { &[0x86, 0xdd] });
        packet[ETHERNET..][..size_of::<FlowKey>()].copy_from_slice(&key.to_bytes());
        Ok(crate::dry_run::run(&self.probe, &packet, 1)?.verdict == 1)
    }

    /// Change [`Settings::refresh`].
    pub fn set_refresh(&self, refresh: Duration) {
        self.region.refresh_ns().store(refresh.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Lower [`Settings::refresh`] to this time, if it is longer, or never.
    pub fn refresh_within(&self, most: Duration) {
        let most = most.as_nanos() as u64;
        let shorter = |now: u64| (now == 0 || now > most).then_some(most);
        let word = self.region.refresh_ns();
        let _shorter = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, shorter);
    }

    /// Change [`Settings::bypass_after`]. Connections that were left to user mode stay there.
    pub fn set_bypass_after(&self, passes: u32) {
        self.region.bypass_after().store(passes.min(BYPASS_AFTER_MAX), Ordering::Relaxed);
    }

    /// For tests: enters a connection as the programs would. Its bypass entries stay valid until the second ends.
    #[doc(hidden)]
    pub fn put_flow(&self, key: &FlowKey, flow: &[u8; size_of::<Flow>()]) -> libbpf_rs::Result<()> {
        self.flows.update(&key.to_bytes(), flow, MapFlags::ANY)
    }

    /// For tests: every answer of one segment as if it had been retransmitted for the last time, a minute ago.
    #[doc(hidden)]
    pub fn exhaust_retransmissions(&self) -> libbpf_rs::Result<()> {
        let keys: Vec<_> = self.flows.keys().collect();
        for key in keys {
            let Some(mut flow) = self.flows.lookup(&key, MapFlags::ANY)? else { continue };
            flow[offset_of!(Flow, retransmits)] = RTX_MAX as u8;
            let sent = offset_of!(Flow, answer_sent);
            let earlier = (ticks() as u32).wrapping_sub(60_000);
            flow[sent..sent + 4].copy_from_slice(&earlier.to_ne_bytes());
            self.flows.update(&key, &flow, MapFlags::ANY)?;
        }
        Ok(())
    }

    /// For tests: all transfers as if so much more time had gone by since anything came from their clients.
    #[doc(hidden)]
    pub fn age_transfers(&self, time: Duration) -> libbpf_rs::Result<()> {
        let sender = offset_of!(Transfer, sender);
        let keys: Vec<_> = self.transfers.keys().collect();
        for key in keys {
            let Some(mut transfer) = self.transfers.lookup(&key, MapFlags::ANY)? else { continue };
            // Three times in microseconds stand first in the state of the TCP sender.
            for word in transfer[sender..sender + 24].chunks_exact_mut(8) {
                let at = word.try_into().map(u64::from_ne_bytes).unwrap_or_default();
                let earlier = at.saturating_sub(time.as_micros() as u64);
                word.copy_from_slice(&earlier.to_ne_bytes());
            }
            self.transfers.update(&key, &transfer, MapFlags::ANY)?;
        }
        Ok(())
    }
}

/// Whether the connection needs the programs. One without a socket that was sent a FIN, and has all before it, does not.
fn breaks(flow: &Flow) -> bool {
    let sent = flow.kernel_next.wrapping_add(flow.tx_offset);
    match flow.socketless {
        socketless::NOT | socketless::ASSIGNED => flow.rx_offset | flow.tx_offset != 0,
        socketless::FIN_WAIT | socketless::LAST_ACK => is_before(flow.snd_una, sent),
        _ => true,
    }
}

/// Whether the kernel's TCP never saw the connection.
fn has_no_socket(flow: &Flow) -> bool {
    !matches!(flow.socketless, socketless::NOT | socketless::ASSIGNED)
}

/// Whether the client has not acknowledged all of the last answer.
fn is_outstanding(flow: &Flow) -> bool {
    flow.request_length != 0
        && is_before(flow.snd_una, flow.answer_seq.wrapping_add(flow.answer_size))
}

/// Whether a sequence number is before another one.
fn is_before(seq: u32, other: u32) -> bool {
    (seq.wrapping_sub(other) as i32) < 0
}
