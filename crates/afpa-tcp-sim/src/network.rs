//! A network in virtual time that loses, delays, doubles, reorders and marks, with a sender at one end and a
//! client at the other.
//!
//! A [`Network`] is a state machine: [`Network::begin`] gives the first step for the sender, and each
//! [`Network::advance`] takes the state after a step and gives the next one. So very many networks share one
//! exchange with the worker.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::client::{Broken, Client};
use crate::oracle;
use crate::random::Random;
use crate::step::{Ack, Micros, Path, SenderState, Step, Transmission, progress, timer};

/// The behaviour of the network, and of the transfers. Percentages are of packets, each way.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Bytes of a transfer.
    pub length: u32,
    /// Payload of a full segment.
    pub segment: u32,
    /// One way, microseconds.
    pub delay: Micros,
    /// Percent that are lost.
    pub loss: f64,
    /// Percent that arrive twice.
    pub duplication: f64,
    /// Percent that are delayed for longer.
    pub reordering: f64,
    /// Percent of ECN-capable segments that are marked.
    pub marks: f64,
    /// Bytes a millisecond through the bottleneck; 0: it has none.
    pub rate: u64,
    /// The bottleneck's queue, bytes.
    pub queue: u64,
    /// The client's receive buffer, bytes.
    pub buffer: u32,
    /// Bytes the client's application reads each millisecond.
    pub speed: u32,
    /// Whether the connection has timestamps.
    pub timestamps: bool,
    /// Segments that may leave in one interrupt.
    pub burst: u32,
    /// Longer payloads are dropped without a word: an MTU black hole. 0: there is none.
    pub blackhole: u32,
    /// Percent of steps at which ICMP says that the packets on their way were too big.
    pub mtu_lowered: f64,
    /// Percent of steps at which an ACK of unsent data comes.
    pub nonsense: f64,
    /// Transfers on one connection, and the pause between them.
    pub transfers: u32,
    /// Microseconds.
    pub pause: Micros,
}

impl Conditions {
    /// A good network with nothing special about it.
    pub fn calm(length: u32) -> Self {
        Self {
            length,
            segment: 1448,
            delay: 10_000,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            marks: 0.0,
            rate: 0,
            queue: 0,
            buffer: 65_535,
            speed: 1_000_000,
            timestamps: true,
            burst: 16,
            blackhole: 0,
            mtu_lowered: 0.0,
            nonsense: 0.0,
            transfers: 1,
            pause: 0,
        }
    }

    /// Any network.
    pub fn wild(random: &mut Random) -> Self {
        Self {
            length: random.between(1, 65_536) as u32,
            segment: random.pick(&[536, 1220, 1440, 1448, 1460, 9000]),
            delay: random.pick(&[20, 200, 2_000, 20_000, 100_000, 200_000]),
            loss: random.pick(&[0.0, 0.0, 1.0, 5.0, 20.0]),
            duplication: random.pick(&[0.0, 0.0, 5.0]),
            reordering: random.pick(&[0.0, 0.0, 5.0, 30.0]),
            marks: random.pick(&[0.0, 0.0, 2.0, 20.0]),
            rate: random.pick(&[0, 0, 125, 1250]),
            queue: random.pick(&[3_000, 30_000, 300_000]),
            buffer: random.pick(&[700, 4_096, 16_384, 65_535, 1 << 20]),
            speed: random.pick(&[3, 50, 1_000_000]),
            timestamps: random.chance(80.0),
            burst: random.pick(&[1, 4, 16]),
            blackhole: random.pick(&[0, 0, 0, 0, 0, 0, 0, 1200]),
            mtu_lowered: random.pick(&[0.0, 0.0, 0.0, 0.5]),
            nonsense: random.pick(&[0.0, 0.0, 0.0, 2.0]),
            transfers: random.pick(&[1, 1, 1, 3]),
            pause: random.pick(&[1_000, 100_000, 3_000_000]),
        }
    }
}

/// How it went.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkResult {
    /// Until the client had the last byte of the last transfer.
    pub time: Micros,
    /// Segments that were sent.
    pub segments: u32,
    /// Number of them that were retransmissions.
    pub retransmissions: u32,
    /// Steps of the sender.
    pub steps: u64,
    /// The sender gave the client up.
    pub given_up: bool,
    /// The state of the path at the end.
    pub path: Path,
}

/// The next step of a simulation, or its result.
#[derive(Debug)]
pub enum Next {
    /// A step for the sender, at [`Network::now`].
    Step(Step),
    /// All transfers have ended.
    Over(NetworkResult),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ToClient(u32),
    ToServer(u32),
}

/// The activity of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Begin,
    Poll { left: u32 },
    Ack,
    Timer,
    Icmp,
    Nonsense,
}

/// One connection through one network.
pub struct Network {
    conditions: Conditions,
    random: Random,
    now: Micros,
    begun: Micros,
    state: SenderState,
    step: Step,
    doing: Doing,
    client: Client,
    events: BinaryHeap<Reverse<(Micros, u64, Event)>>,
    number: u64,
    sends: Vec<(Transmission, u32, bool)>,
    acks: Vec<Ack>,
    free_at: Micros,
    transfers: u32,
    complete: bool,
    outcome: NetworkResult,
    trace: bool,
}

const STEPS_MAX: u64 = 400_000;

impl Network {
    /// A network, and the first step.
    pub fn begin(conditions: &Conditions, mut random: Random, path: Path) -> (Self, Step) {
        let now = 1_000_000_000 + random.between(0, 1 << 33); // past the wrap of 32 bits
        let step = begin_step(conditions, path);
        let mut network = Self {
            conditions: *conditions,
            random,
            now,
            begun: now,
            state: SenderState::default(),
            step,
            doing: Doing::Begin,
            client: new_client(conditions),
            events: BinaryHeap::new(),
            number: 0,
            sends: Vec::new(),
            acks: Vec::new(),
            free_at: 0,
            transfers: 1,
            complete: false,
            outcome: NetworkResult::default(),
            trace: std::env::var_os("AFPA_TRACE").is_some(),
        };
        network.client.on_time(now);
        (network, step)
    }

    /// The time of the step that was given last.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// The state after the step that was given last: holds it against the oracle, and goes on.
    pub fn advance(&mut self, after: &SenderState) -> Result<Next, Broken> {
        oracle::check(&self.state, self.now, &self.step, after).map_err(|broken| {
            format!(
                "{broken}\nbefore {:?}\nat {} {:?}\nafter {after:?}",
                self.state, self.now, self.step
            )
        })?;
        if self.trace {
            println!("{} {:?} -> {after:?}", self.now, self.step);
        }
        self.outcome.steps += 1;
        if self.outcome.steps > STEPS_MAX {
            return Err(format!("S5: it does not end: {after:?}"));
        }
        if self.doing == Doing::Begin && after.result == 0 {
            return Ok(Next::Over(self.outcome)); // refused: the state is another sender's
        }
        self.state = *after;
        self.check_rtt()?;
        self.check_delivered()?;
        match self.doing {
            Doing::Begin => self.poll(self.conditions.burst),
            Doing::Poll { left } if after.result == 1 => {
                self.transmit(after.transmission());
                self.poll(left - 1)
            }
            Doing::Poll { .. } | Doing::Nonsense => self.next_event(),
            Doing::Icmp => self.poll(self.conditions.burst),
            Doing::Ack | Doing::Timer => {
                // To serve a timer takes some time. Without it, a RACK RTT of zero would make one
                // segment lost and retransmitted for ever at the same instant.
                self.now += u64::from(self.doing == Doing::Timer);
                self.on_progress(after.result)
            }
        }
    }

    fn on_progress(&mut self, result: u64) -> Result<Next, Broken> {
        match result {
            progress::IMPOSSIBLE => Err("S7: this client acknowledges what it has".into()),
            progress::GIVEN_UP => {
                self.outcome.given_up = true;
                self.over()
            }
            progress::DONE => self.done(),
            _ => self.poll(self.conditions.burst),
        }
    }

    fn give(&mut self, doing: Doing, step: Step) -> Result<Next, Broken> {
        self.doing = doing;
        self.step = step;
        Ok(Next::Step(step))
    }

    fn poll(&mut self, left: u32) -> Result<Next, Broken> {
        if left == 0 { self.next_event() } else { self.give(Doing::Poll { left }, Step::Poll) }
    }

    fn over(&mut self) -> Result<Next, Broken> {
        self.outcome.path = self.state.path();
        Ok(Next::Over(self.outcome))
    }

    fn done(&mut self) -> Result<Next, Broken> {
        if !self.client.is_done() {
            return Err("S8: done before the client has everything".into());
        }
        if self.transfers == self.conditions.transfers {
            return self.over();
        }
        self.transfers += 1;
        self.now += self.conditions.pause;
        self.begun = self.now;
        self.client = new_client(&self.conditions);
        self.client.on_time(self.now);
        self.events.clear();
        self.complete = false;
        let step = begin_step(&self.conditions, self.state.path());
        self.state = SenderState::default();
        self.give(Doing::Begin, step)
    }

    /// No round trip is shorter than the network's delay both ways (Karn's algorithm, RFC 6298, 3).
    fn check_rtt(&self) -> Result<(), Broken> {
        let shortest = 2 * self.conditions.delay;
        if self.state.srtt != 0 && self.state.min_rtt < shortest {
            return Err(format!("a round trip of {} takes {shortest}", self.state.min_rtt));
        }
        Ok(())
    }

    /// Checks that the client has all bytes that the sender takes for delivered.
    fn check_delivered(&self) -> Result<(), Broken> {
        let mut rest = self.state.sacked();
        while rest != 0 {
            let segment = u64::from(rest.trailing_zeros());
            rest &= rest - 1;
            let from = segment * self.state.mss;
            let to = (from + self.state.mss).min(self.state.length);
            if !self.client.has(from as u32, to as u32) {
                return Err(format!("S2: segment {segment} was not delivered: {:?}", self.state));
            }
        }
        Ok(())
    }

    /// Runs the network until the sender has something to do.
    fn next_event(&mut self) -> Result<Next, Broken> {
        if let Some((doing, step)) = self.aside() {
            return self.give(doing, step);
        }
        loop {
            let deadline = (self.state.timer != timer::NONE).then_some(self.state.deadline);
            let arrival = self.events.peek().map(|Reverse((at, ..))| *at);
            let due = [arrival, deadline, self.client.deadline()].into_iter().flatten().min();
            let Some(due) = due else { return Err("S5: nothing will ever happen".into()) };
            self.now = self.now.max(due);
            if arrival.is_some_and(|at| at <= self.now) {
                let Some(Reverse((_, _, event))) = self.events.pop() else { continue };
                match event {
                    Event::ToClient(index) => self.on_client(index)?,
                    Event::ToServer(index) => {
                        return self.give(Doing::Ack, Step::Ack(self.acks[index as usize]));
                    }
                }
            } else if self.client.deadline().is_some_and(|at| at <= self.now) {
                if let Some(ack) = self.client.on_time(self.now) {
                    self.acknowledge(ack);
                }
            } else {
                return self.give(Doing::Timer, Step::Timer);
            }
        }
    }

    /// Steps beside the client's: ICMP, and ACKs of bytes that were never sent.
    fn aside(&mut self) -> Option<(Doing, Step)> {
        let Conditions { mtu_lowered, nonsense, .. } = self.conditions;
        if mtu_lowered > 0.0 && self.random.chance(mtu_lowered) {
            return Some((Doing::Icmp, Step::MtuLowered));
        }
        let sent = (self.state.next * self.state.mss).min(self.state.length) as u32;
        if nonsense > 0.0 && sent < self.conditions.length && self.random.chance(nonsense) {
            let above = self.random.between(1, 3_000) as u32;
            let ack = Ack { ack: sent + above, wnd: 65_535, ..Ack::default() };
            return Some((Doing::Nonsense, Step::Ack(ack)));
        }
        None
    }

    fn on_client(&mut self, index: u32) -> Result<(), Broken> {
        let (send, stamp, ce) = self.sends[index as usize];
        if let Some(ack) = self.client.on_segment(self.now, &send, stamp, ce)? {
            self.acknowledge(ack);
        }
        if self.client.is_done() && !self.complete {
            self.complete = true;
            self.outcome.time = self.now - self.begun;
        }
        Ok(())
    }

    /// A segment leaves: as one packet, or in pieces when the sender suspects an MTU black hole.
    fn transmit(&mut self, sent: Transmission) {
        self.outcome.segments += 1;
        self.outcome.retransmissions += u32::from(sent.retransmitted);
        let limit = self.conditions.blackhole;
        if limit == 0 || sent.length <= limit {
            return self.packet(sent);
        }
        if self.state.mtu_blackhole == 0 {
            return; // dropped without a word
        }
        let end = sent.offset + sent.length;
        for offset in (sent.offset..end).step_by(limit as usize) {
            let length = limit.min(end - offset);
            self.packet(Transmission { offset, length, last: offset + length == end, ..sent });
        }
    }

    fn packet(&mut self, sent: Transmission) {
        let index = self.sends.len() as u32;
        let ce = sent.ect && self.random.chance(self.conditions.marks);
        self.sends.push((sent, (self.now / 1000) as u32, ce));
        if let Some(left) = self.through_bottleneck(u64::from(sent.length) + 66) {
            self.carry(left, Event::ToClient(index));
        }
    }

    fn acknowledge(&mut self, ack: Ack) {
        let index = self.acks.len() as u32;
        self.acks.push(ack);
        self.carry(self.now, Event::ToServer(index));
    }

    fn through_bottleneck(&mut self, bytes: u64) -> Option<Micros> {
        let Conditions { rate, queue, .. } = self.conditions;
        if rate == 0 {
            return Some(self.now);
        }
        let begin = self.free_at.max(self.now);
        if (begin - self.now) * rate / 1000 > queue {
            return None;
        }
        self.free_at = begin + bytes * 1000 / rate;
        Some(self.free_at)
    }

    fn carry(&mut self, left: Micros, event: Event) {
        let Conditions { delay, loss, duplication, reordering, .. } = self.conditions;
        let copies = 1 + u32::from(self.random.chance(duplication));
        for _ in 0..copies {
            if self.random.chance(loss) {
                continue;
            }
            let mut at = left + delay;
            if self.random.chance(reordering) {
                at += self.random.between(0, delay / 2 + 2_000);
            }
            self.number += 1;
            self.events.push(Reverse((at, self.number, event)));
        }
    }
}

fn begin_step(conditions: &Conditions, path: Path) -> Step {
    let Conditions { length, segment, buffer, .. } = *conditions;
    Step::Begin { length, segment, window: buffer, path }
}

fn new_client(conditions: &Conditions) -> Client {
    let Conditions { length, buffer, speed, timestamps, .. } = *conditions;
    Client::new(length, buffer, speed, timestamps)
}
