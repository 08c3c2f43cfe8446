//! The generator's connections: opened through the kernel, handed over, looked after, reset.
//!
//! The kernel's TCP opens each and receives one response on it, then forgets it: from there on the
//! flow exists in the program's map only, so their number is bound by ports, not by files.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::Sub;
use std::time::{Duration, Instant};

use afpa_testkit::packet::{ACK, PSH, RST, Segment};
use anyhow::{Context, Result};

use super::LoadOptions;
use super::exchange::{Learned, receive};
use super::ports::{Ports, forget};
use super::program::Program;
use super::wire::{Wire, now};
use crate::object::{Fields, fetch, store};

/// A request that has been outstanding for so long is sent again; the same for each repetition.
const RESEND_AFTER: Duration = Duration::from_millis(200);
/// A flow whose request has been outstanding for so long counts as an error, once.
const STALLED_AFTER: Duration = Duration::from_secs(2);
/// How long outstanding responses are awaited at the end.
const DRAIN: Duration = Duration::from_secs(3);
/// Connections that are looked after in one go: a part of very many, so that the core is left to
/// the generator.
const LOOK_AFTER: usize = 4096;
/// Connections that are opened at once.
const BATCH: usize = 256;

/// Counts of user mode's work for the flows.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LookedAfter {
    pub(crate) resent: u64,
    pub(crate) reopened: u64,
    pub(crate) stalled: u64,
}

impl Sub for LookedAfter {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            resent: self.resent - earlier.resent,
            reopened: self.reopened - earlier.reopened,
            stalled: self.stalled - earlier.stalled,
        }
    }
}

pub(crate) struct Flows {
    options: LoadOptions,
    targets: Vec<Learned>,
    ports: Ports,
    wire: Wire,
    connections: Vec<Connection>,
    /// The connection that is looked after next.
    next: usize,
    looked_after: LookedAfter,
}

struct Connection {
    local: SocketAddr,
    index: u32,
    /// CLOCK_MONOTONIC, when the request that the kernel's TCP carried was sent.
    begun: u64,
    /// CLOCK_MONOTONIC, when user mode last sent something on it.
    resent: u64,
    stalled: bool,
}

impl Flows {
    pub(crate) fn new(
        options: &LoadOptions,
        first_source: IpAddr,
        targets: Vec<Learned>,
    ) -> Result<Self> {
        Ok(Self {
            ports: Ports::new(options.to, first_source, options.sources, now() as u32),
            wire: Wire::open(&options.interface, options.to)?,
            options: options.clone(),
            targets,
            connections: Vec::new(),
            next: 0,
            looked_after: LookedAfter::default(),
        })
    }

    pub(crate) fn looked_after(&self) -> LookedAfter {
        self.looked_after
    }

    /// Opens all connections, then sets all of them going.
    pub(crate) fn open(&mut self, program: &Program) -> Result<()> {
        let total = self.options.connections as usize;
        while self.connections.len() < total {
            let mut opened = Vec::new();
            let before = self.connections.len();
            for number in before..total.min(before + BATCH) {
                self.wait_for(number as u32);
                opened.push(self.begin(program)?);
            }
            for (connection, stream) in opened {
                self.connections.push(connection);
                self.hand_over(program, self.connections.len() - 1, stream)?;
            }
        }
        self.wire.learn(program)?;
        for number in 0..total {
            program.follow(self.connections[number].index, self.successor(number).index)?;
        }
        // The first round of the rings asks; the others wait for their turns.
        for number in 0..self.options.rings() {
            self.ask(program, number)?;
        }
        Ok(())
    }

    /// Waits until connection `number` is to be opened.
    fn wait_for(&self, number: u32) {
        let Some((first, each)) = self.options.pace else { return };
        let due = first + each * number;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }

    /// Sends again what has been outstanding for too long, opens again what was closed.
    pub(crate) fn look_after(&mut self, program: &Program) -> Result<()> {
        let flows = program.flows()?;
        for _ in 0..self.connections.len().min(LOOK_AFTER) {
            let number = self.next;
            self.next = (self.next + 1) % self.connections.len();
            let flow = fetch(&flows, self.connections[number].index)?;
            let state = flow.u32_at(program.flow.state);
            let asks = flow.u64_at(program.flow.sent_ns) != 0;
            if state == program.states.closed {
                self.reopen(program, number, asks)?;
            } else if state == program.states.driven && asks {
                self.push(program, number, &flow)?;
            }
        }
        Ok(())
    }

    /// Resets every connection with the numbers that the server expects.
    pub(crate) fn close(&mut self, program: &Program) -> Result<()> {
        program.stop()?;
        let end = Instant::now() + DRAIN;
        while self.any_asks(program)? && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        for number in 0..self.connections.len() {
            self.reset(program, number)?;
        }
        Ok(())
    }

    /// Connection numbers that are equal modulo the number of rings form a ring.
    fn successor(&self, number: usize) -> &Connection {
        let rings = self.options.rings();
        self.connections.get(number + rings).unwrap_or(&self.connections[number % rings])
    }

    fn predecessor(&self, number: usize) -> usize {
        let rings = self.options.rings();
        let last = (self.connections.len() - 1 - number % rings) / rings * rings + number % rings;
        number.checked_sub(rings).unwrap_or(last)
    }

    fn first(&self) -> Result<&Learned> {
        self.targets.first().context("there is a target")
    }

    /// Connects, has the program learn, and sends a request through the kernel.
    fn begin(&mut self, program: &Program) -> Result<(Connection, TcpStream)> {
        let (mut stream, local) = self.ports.connect()?;
        let index = program.index(local.ip(), local.port());
        store(&program.flows()?, index, &program.flow.fresh(program.states.learn))?;
        let begun = now();
        // The first target, with any weight: every server has it.
        stream.write_all(&self.first()?.request)?;
        Ok((Connection { local, index, begun, resent: 0, stalled: false }, stream))
    }

    /// Receives the one response that the kernel's TCP gets to see, and has it forget the
    /// connection.
    fn hand_over(&self, program: &Program, number: usize, mut stream: TcpStream) -> Result<()> {
        receive(&mut stream, &self.first()?.target)?;
        let (index, flows) = (self.connections[number].index, program.flows()?);
        let (mut flow, layout) = (fetch(&flows, index)?, &program.flow);
        // The server's answer echoes the timestamp of the request; the kernel's acknowledgement of the answer
        // had a later one. The server would drop our segments with older timestamps (RFC 7323, 5.3).
        let ahead = (now() - self.connections[number].begun) / 1_000_000 + 1;
        let offset = flow.u32_at(layout.ts_offset).wrapping_add(ahead as u32);
        flow.put_u32(layout.ts_offset, offset);
        // Flows begin at different places of the schedule.
        flow.put_u32(layout.cursor, (number as u32).wrapping_mul(7919));
        flow.put_u32(layout.state, program.states.driven);
        store(&flows, index, &flow)?;
        forget(stream)
    }

    /// Sends the first request on a flow that was handed over.
    fn ask(&self, program: &Program, number: usize) -> Result<()> {
        let (index, flows) = (self.connections[number].index, program.flows()?);
        let (mut flow, layout) = (fetch(&flows, index)?, &program.flow);
        let seq = flow.u32_at(layout.seq).wrapping_add(self.first()?.request.len() as u32);
        flow.put_u32(layout.seq, seq);
        flow.put_u32(layout.target, 0);
        flow.put_u64(layout.sent_ns, now());
        store(&flows, index, &flow)?;
        self.send_request(program, number, &flow)
    }

    fn push(&mut self, program: &Program, number: usize, flow: &[u8]) -> Result<()> {
        let (now, connection) = (now(), &mut self.connections[number]);
        let sent = flow.u64_at(program.flow.sent_ns);
        let age = |since: u64| Duration::from_nanos(now.saturating_sub(since));
        if age(sent.max(connection.resent)) < RESEND_AFTER {
            return Ok(());
        }
        let stalled = age(sent) >= STALLED_AFTER;
        if stalled && !connection.stalled {
            self.looked_after.stalled += 1;
        }
        connection.stalled = stalled;
        // The program may have written while it was read.
        if fetch(&program.flows()?, connection.index)? != flow {
            return Ok(());
        }
        connection.resent = now;
        self.looked_after.resent += 1;
        self.send_request(program, number, flow)
    }

    /// The server has closed its half; the other half goes by a reset, as nothing is to follow.
    fn reopen(&mut self, program: &Program, number: usize, asks: bool) -> Result<()> {
        self.looked_after.reopened += 1;
        self.reset(program, number)?;
        let (fresh, stream) = self.begin(program)?;
        let old = std::mem::replace(&mut self.connections[number], fresh);
        self.hand_over(program, number, stream)?;
        program.follow(self.connections[number].index, self.successor(number).index)?;
        if asks {
            self.ask(program, number)?;
        }
        let before = self.predecessor(number);
        program.follow(self.connections[before].index, self.connections[number].index)?;
        store(&program.flows()?, old.index, &program.flow.fresh(program.states.kernel))?;
        self.ports.release(old.local);
        Ok(())
    }

    /// Sends the flow's outstanding request, which ends at its next sequence number.
    fn send_request(&self, program: &Program, number: usize, flow: &[u8]) -> Result<()> {
        let target = flow.u32_at(program.flow.target) as usize;
        let request = &self.targets.get(target).context("no such target")?.request;
        let seq = flow.u32_at(program.flow.seq).wrapping_sub(request.len() as u32);
        let segment = self.segment(program, number, flow);
        self.wire.send(&Segment { flags: PSH | ACK, seq, payload: request.clone(), ..segment })
    }

    fn reset(&self, program: &Program, number: usize) -> Result<()> {
        let index = self.connections[number].index;
        let flow = fetch(&program.flows()?, index)?;
        let seq = flow.u32_at(program.flow.seq);
        let reset = Segment { flags: RST | ACK, seq, ..self.segment(program, number, &flow) };
        if flow.u64_at(program.flow.sent_ns) != 0 {
            // Has the outstanding request arrived? Only one of the two numbers is the expected.
            let target = flow.u32_at(program.flow.target) as usize;
            let length = self.targets.get(target).map_or(0, |learned| learned.request.len());
            let early = Segment { seq: seq.wrapping_sub(length as u32), ..reset.clone() };
            self.wire.send(&early)?;
        }
        self.wire.send(&reset)
    }

    fn segment(&self, program: &Program, number: usize, flow: &[u8]) -> Segment {
        self.wire.segment(&program.flow, flow, self.connections[number].local)
    }

    fn any_asks(&self, program: &Program) -> Result<bool> {
        let flows = program.flows()?;
        for connection in &self.connections {
            let flow = fetch(&flows, connection.index)?;
            let driven = flow.u32_at(program.flow.state) == program.states.driven;
            if driven && flow.u64_at(program.flow.sent_ns) != 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
