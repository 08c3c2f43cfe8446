//! One request a connection: slots of connections that the program opens and closes by itself.
//!
//! User mode sends each slot's first SYN, sends again what got lost, and goes on with slots that
//! an error has stopped.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use afpa_testkit::packet::{ACK, PSH, RST, SYN, Segment, SynOptions};
use anyhow::{Context, Result};

use super::exchange::{Learned, exchange};
use super::flows::LookedAfter;
use super::options::{LoadOptions, total};
use super::ports::{FIRST_PORT, PORTS, offset};
use super::program::Program;
use super::wire::{Wire, now};
use crate::object::{Fields, fetch, store};

/// A segment that is outstanding for so long is sent again; the same for each repetition.
const RESEND_AFTER: u64 = 200_000_000;
/// A connection on which nothing came for so long is an error, and given up.
const STALLED_AFTER: u64 = 2_000_000_000;
/// How long the ends of connections are awaited at the end.
const DRAIN: Duration = Duration::from_secs(3);

/// The options of a SYN: as `syn_options` in the program.
const SYN_OPTIONS: SynOptions = SynOptions { mss: Some(1460), sack: true, scale: Some(7) };

pub(crate) struct Slots {
    options: LoadOptions,
    first_source: IpAddr,
    targets: Vec<Learned>,
    wire: Wire,
    /// The state of each slot when it was looked after last.
    seen: Vec<Seen>,
    looked_after: LookedAfter,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Progress {
    flow: u32,
    state: u32,
    got: u32,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    progress: Progress,
    /// Since when it is the same, and when something was sent for it.
    since: u64,
    sent: u64,
}

impl Slots {
    pub(crate) fn new(
        options: &LoadOptions,
        first_source: IpAddr,
        targets: Vec<Learned>,
    ) -> Result<Self> {
        Ok(Self {
            first_source,
            wire: Wire::open(&options.interface, options.to)?,
            options: options.clone(),
            targets,
            seen: vec![Seen::default(); options.connections as usize],
            looked_after: LookedAfter::default(),
        })
    }

    pub(crate) fn looked_after(&self) -> LookedAfter {
        self.looked_after
    }

    /// Learns the link addresses, then begins the first connection of each slot.
    pub(crate) fn open(&mut self, program: &Program) -> Result<()> {
        let first = self.targets.first().context("there is a target")?;
        let mut stream = std::net::TcpStream::connect(self.options.to)?;
        exchange(&mut stream, &first.request, &first.target)?;
        drop(stream);
        self.wire.learn(program)?;
        // Another place for each run: the server may know the ports of the last one.
        let rounds = total(&self.options) / self.options.connections;
        let round = (now() >> 20) as u32 % rounds.max(1);
        for slot in 0..self.options.connections {
            let ordinal = round * self.options.connections + slot;
            self.begin(program, slot, flow_at(ordinal), slot.wrapping_mul(7919))?;
        }
        Ok(())
    }

    pub(crate) fn look_after(&mut self, program: &Program) -> Result<()> {
        for slot in 0..self.options.connections {
            self.look_after_slot(program, slot)?;
        }
        Ok(())
    }

    /// Lets connections end, and resets those that do not.
    pub(crate) fn close(&mut self, program: &Program) -> Result<()> {
        program.stop()?;
        let deadline = Instant::now() + DRAIN;
        loop {
            let open = self.open_slots(program)?;
            if open.is_empty() || Instant::now() >= deadline {
                return open.into_iter().try_for_each(|index| self.reset(program, index));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn open_slots(&self, program: &Program) -> Result<Vec<u32>> {
        let (slots, flows) = (program.slots()?, program.flows()?);
        let mut open = Vec::new();
        for slot in 0..self.options.connections {
            let index = fetch(&slots, slot)?.u32_at(0);
            let state = fetch(&flows, index)?.u32_at(program.flow.state);
            if state != program.states.done {
                open.push(index);
            }
        }
        Ok(open)
    }

    fn look_after_slot(&mut self, program: &Program, slot: u32) -> Result<()> {
        let (now, layout, states) = (now(), &program.flow, &program.states);
        let index = fetch(&program.slots()?, slot)?.u32_at(0);
        let flow = fetch(&program.flows()?, index)?;
        let (state, got) = (flow.u32_at(layout.state), flow.u32_at(layout.got));
        let Some(seen) = self.seen.get_mut(slot as usize) else { return Ok(()) };
        let progress = Progress { flow: index, state, got };
        if seen.progress != progress {
            *seen = Seen { progress, since: now, sent: now };
            return Ok(());
        }
        let (still, silent) = (now - seen.since, now - seen.sent);
        if silent < RESEND_AFTER {
            return Ok(());
        }
        seen.sent = now;
        if state == states.done || still >= STALLED_AFTER {
            if state != states.done {
                self.looked_after.stalled += 1;
                self.reset(program, index)?;
            }
            self.looked_after.reopened += 1;
            let next = next_flow(&self.options, index);
            return self.begin(program, slot, next, flow.u32_at(layout.cursor));
        }
        self.resend(program, index, &flow)
    }

    /// Sends the SYN or the request again. The server retransmits its own segments by itself.
    fn resend(&mut self, program: &Program, index: u32, flow: &[u8]) -> Result<()> {
        let (layout, states) = (&program.flow, &program.states);
        let (state, seq) = (flow.u32_at(layout.state), flow.u32_at(layout.seq));
        let segment = self.segment(program, index, flow);
        let segment = if state == states.syn_sent {
            syn(segment, seq.wrapping_sub(1))
        } else if state == states.asked && flow.u32_at(layout.got) == 0 {
            let target = flow.u32_at(layout.target) as usize;
            let request = &self.targets.get(target).context("no such target")?.request;
            let seq = seq.wrapping_sub(request.len() as u32);
            Segment { flags: PSH | ACK, seq, payload: request.clone(), ..segment }
        } else {
            return Ok(());
        };
        self.looked_after.resent += 1;
        self.wire.send(&segment)
    }

    fn begin(&self, program: &Program, slot: u32, index: u32, cursor: u32) -> Result<()> {
        let (now, layout) = (now(), &program.flow);
        let mut flow = layout.fresh(program.states.syn_sent);
        // As the program chooses them, so that numbers grow with the clock.
        let number = (now >> 10) as u32;
        flow.put_u32(layout.seq, number.wrapping_add(1));
        flow.put_u32(layout.cursor, cursor);
        flow.put_u32(layout.stamped, 1);
        flow.put_u64(layout.sent_ns, now);
        store(&program.flows()?, index, &flow)?;
        store(&program.slots()?, slot, &index.to_ne_bytes())?;
        let segment = self.segment(program, index, &flow);
        self.wire.send(&syn(segment, number))
    }

    fn reset(&self, program: &Program, index: u32) -> Result<()> {
        let (flows, layout) = (program.flows()?, &program.flow);
        let mut flow = fetch(&flows, index)?;
        let segment = self.segment(program, index, &flow);
        let reset = Segment { flags: RST | ACK, seq: flow.u32_at(layout.seq), ..segment };
        flow.put_u32(layout.state, program.states.done);
        store(&flows, index, &flow)?;
        self.wire.send(&reset)
    }

    fn segment(&self, program: &Program, index: u32, flow: &[u8]) -> Segment {
        self.wire.segment(&program.flow, flow, address(self.first_source, index))
    }
}

/// A segment as the first of its connection.
fn syn(segment: Segment, seq: u32) -> Segment {
    Segment { flags: SYN, seq, syn: SYN_OPTIONS, ..segment }
}

/// The flow after one on the same slot; as `once_next` in the program.
fn next_flow(options: &LoadOptions, index: u32) -> u32 {
    let ordinal = (index >> 16) * PORTS + (index & 0xffff) - FIRST_PORT + options.connections;
    let total = total(options);
    flow_at(if ordinal >= total { ordinal - total } else { ordinal })
}

fn flow_at(ordinal: u32) -> u32 {
    (ordinal / PORTS) << 16 | (ordinal % PORTS + FIRST_PORT)
}

fn address(first_source: IpAddr, index: u32) -> SocketAddr {
    SocketAddr::new(offset(first_source, index >> 16), index as u16)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn slots_go_through_all_their_ports_and_share_none() {
        let to = "10.0.0.1:80".parse().unwrap();
        let options =
            LoadOptions { connections: 7, sources: 2, ..LoadOptions::new(to, Vec::new()) };
        let mut all = HashSet::new();
        for slot in 0..7 {
            let (first, mut index) = (flow_at(slot), flow_at(slot));
            loop {
                assert!(all.insert(index), "{index:x} twice");
                assert!(index & 0xffff >= FIRST_PORT && index >> 16 < 2);
                index = next_flow(&options, index);
                if index == first {
                    break;
                }
            }
        }
        assert_eq!(all.len() as u32, total(&options));
        assert!(total(&options) > 2 * PORTS - 7);
    }

    #[test]
    fn a_flow_is_an_address_and_a_port() {
        let first = "10.0.0.255".parse().unwrap();
        assert_eq!(address(first, flow_at(0)).to_string(), "10.0.0.255:1024");
        assert_eq!(address(first, flow_at(PORTS + 1)).to_string(), "10.0.1.0:1025");
    }
}
