//! One connection: a client, a server's kernel and the network between them, which send random segments through both
//! hooks. In the end the network is good, and everything must arrive.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use afpa_abi::{Way, flow_flags};
use afpa_bpf::{Flow, FlowKey, Hook, Place, TCX_DROP, TCX_NEXT, TCX_REDIRECT};
use afpa_testkit::Random;
use afpa_testkit::packet::{ACK, PSH, SYN, Segment};

use super::Bench;
use super::peers::{Client, Page, Server};
use super::wire::{Arrived, Reader, Shaped, shape};
use crate::support::{LISTENER, PORT, SERVER_V4, SERVER_V6, SITE};

const STEPS: usize = 60;
/// Time on a good network until everything must be there: a lost end of a transfer waits for a time-out or two.
const PATIENCE: Duration = Duration::from_secs(4);
const UNIT: usize = 1400;
/// `struct path` as `path_init` makes it, with a round trip of a millisecond.
const PATH: [u64; 4] = [0, 1000 | 500 << 32, 1000 | 10 << 32 | 255 << 48, 1 << 48];
const CLIENT_MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 9, 1], [2, 0, 0, 0, 9, 2]];

/// By which interface, and which of the client's routers.
type Leg = (usize, usize);

/// One client's connection: both ends, and their segments in the network.
pub(super) struct Connection<'b> {
    bench: &'b Bench,
    random: Random,
    ends: [SocketAddr; 2],
    stamped: bool,
    clock: u32,
    client: Client,
    server: Server,
    /// How much the server's kernel has sent once.
    emitted: u32,
    readers: [Reader; 2],
    in_leg: Leg,
    out_leg: Leg,
    history: Vec<Vec<u8>>,
    held: Vec<Vec<u8>>,
    good: bool,
    segments: usize,
}

impl<'b> Connection<'b> {
    pub(super) fn new(bench: &'b Bench, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let ipv6 = random.one_in(2);
        let [client, server] = if ipv6 { ["fd77::2", SERVER_V6] } else { ["10.77.0.2", SERVER_V4] };
        let end = |address: &str, port| SocketAddr::new(address.parse().expect("one"), port);
        let ends = [end(client, 10_000 + (seed % 50_000) as u16), end(server, PORT)];
        let mut number = || match random.below(3) {
            0 => u32::MAX - random.below(3000) as u32, // wraps soon
            _ => random.next() as u32,
        };
        let (wire, kernel) = (number(), number());
        let fresh = random.one_in(2);
        let offsets = if fresh { [0, 0] } else { [random.next() as u32, random.next() as u32] };
        let mut connection = Self {
            bench,
            ends,
            stamped: random.one_in(2),
            clock: 1000,
            client: Client::new(wire, kernel.wrapping_add(offsets[1])),
            server: Server::new(wire.wrapping_sub(offsets[0]), kernel),
            emitted: 0,
            readers: Default::default(),
            in_leg: (0, 0),
            out_leg: (0, 0),
            history: Vec::new(),
            held: Vec::new(),
            good: false,
            segments: 0,
            random,
        };
        connection.enter(offsets);
        connection
    }

    /// A SYN-ACK removes the old connection of the tuple; then the new one is as if its handshake were over, or as if
    /// answers had moved its numbers.
    fn enter(&mut self, [rx_offset, tx_offset]: [u32; 2]) {
        let fast_path = &self.bench.fast_path;
        fast_path.clock.beat();
        let first = Segment { flags: SYN | ACK, ..Segment::new(self.ends[1], self.ends[0]) };
        let frame = first.frame(&self.macs(self.out_leg, true));
        fast_path
            .interfaces
            .dry_run_at(Hook::Egress, &frame, self.place(self.out_leg, 0))
            .expect("run");
        let (wire, kernel) = (self.client.first, self.server.first);
        let now = now();
        let side = &self.bench.sides[0];
        let mut flow = Flow {
            flags: flow_flags::MULTI_SEGMENT
                | if self.stamped { flow_flags::TIMESTAMPS } else { 0 },
            client_scale: 7,
            server_scale: 7,
            window: 500u16.to_be(),
            mss: UNIT as u16,
            rx_offset,
            tx_offset,
            client_next: wire,
            kernel_received: wire.wrapping_sub(rx_offset),
            kernel_next: kernel,
            stale_below: kernel,
            acked_to_kernel: kernel,
            snd_una: kernel.wrapping_add(tx_offset),
            ts_sent: now.as_millis() as u32,
            ts_seen: 1000,
            listener: LISTENER,
            used_ns: now.as_nanos() as u64,
            user_ns: now.as_nanos() as u64,
            path: PATH,
            any_host_site: SITE,
            ..Flow::ZERO
        };
        if self.random.one_in(2) {
            let destination = CLIENT_MACS[0];
            flow.way = Way { destination, source: side.mac, interface: side.index };
            (flow.came_by, flow.came_from) = (side.index, destination);
        }
        let key = FlowKey::new(self.ends[0], self.ends[1]);
        fast_path.flows.put_flow(&key, &flow.to_bytes()).expect("entered");
    }

    pub(super) fn run(mut self) -> usize {
        for _ in 0..STEPS {
            self.step();
        }
        self.good = true;
        let begun = Instant::now();
        for round in 1.. {
            if self.client.has_all() {
                return self.segments;
            }
            if begun.elapsed() > PATIENCE {
                break;
            }
            if round % 8 == 0 {
                std::thread::sleep(Duration::from_millis(10));
                self.bench.fast_path.clock.beat();
                self.bench.fast_path.rtx.service_timers().expect("serviced");
            }
            self.catch_up();
        }
        let tally = self.bench.fast_path.stats.counters().expect("counters");
        let lines =
            tally.iter().filter(|(_, n)| *n > 0).map(|(r, n)| format!("{n} {}\n", r.text()));
        let key = FlowKey::new(self.ends[0], self.ends[1]);
        let flow = self.bench.fast_path.flows.flow(&key).expect("looked up");
        panic!(
            "stuck: {} of {} answered, {} of {} acknowledged\n{flow:?}\n{}",
            self.client.answered,
            self.client.asked.len(),
            self.client.acked,
            self.client.sent.len(),
            lines.collect::<String>()
        );
    }

    fn step(&mut self) {
        const STEPS: [(&str, usize); 9] = [
            ("a request", 22),
            ("an acknowledgement", 14),
            ("the client again", 8),
            ("an old frame again", 8),
            ("a forgery", 8),
            ("the server goes on", 24),
            ("the server again", 5),
            ("what was held back", 6),
            ("another way", 3),
        ];
        match self.random.weighted(&STEPS) {
            0 => self.ask(),
            1 => self.acknowledge(),
            2 => self.client_again(),
            3 if !self.history.is_empty() => {
                let mut frame = self.random.pick(&self.history).clone();
                frame[..12].copy_from_slice(&self.macs(self.in_leg, false));
                self.up(&frame, 0, false);
            }
            4 => self.forge(),
            5 => self.serve(),
            6 => self.server_again(),
            7 => self.release(),
            8 => self.change_ways(),
            _ => {}
        }
    }

    /// A round on a good network: each side sends the bytes that the other one lacks.
    fn catch_up(&mut self) {
        self.release();
        if (self.client.acked as usize) < self.client.sent.len() {
            let from = self.client.acked as usize;
            self.push(from, self.client.sent.len().min(from + UNIT));
        }
        self.acknowledge();
        self.server_again();
        self.serve();
    }

    // --- the client ---

    fn ask(&mut self) {
        let open = self.client.asked.len() - self.client.answered;
        if open > 2 || (open > 0 && !self.random.one_in(6)) {
            return self.acknowledge();
        }
        let from = self.client.sent.len();
        let page = *self.random.pick(&[Page::Pinned, Page::Pinned, Page::Long, Page::Missing]);
        self.client.ask(page);
        let end = self.client.sent.len();
        if self.random.one_in(10) {
            let middle = from + self.random.below(end - from);
            self.push(from, middle);
            return self.push(middle, end);
        }
        self.push(from, end);
    }

    fn client_again(&mut self) {
        let (from, end) = (self.client.acked as usize, self.client.sent.len());
        if from < end {
            let from =
                if self.random.one_in(4) { from + self.random.below(end - from) } else { from };
            self.push(from, end.min(from + UNIT));
        }
    }

    /// The client's bytes from here to there.
    fn push(&mut self, from: usize, end: usize) {
        let seq = self.client.first.wrapping_add(from as u32);
        let payload = self.client.sent[from..end].to_vec();
        let segment = Segment { flags: ACK | PSH, payload, ..self.segment_of_client(seq) };
        self.send_up(&segment, false);
    }

    fn acknowledge(&mut self) {
        let seq = self.client.first.wrapping_add(self.client.sent.len() as u32);
        let sack = self.client.got.blocks();
        let segment = Segment { sack, ..self.segment_of_client(seq) };
        self.send_up(&segment, false);
    }

    /// Sends a segment of a stranger, who does not know the numbers.
    fn forge(&mut self) {
        let seq = self.client.first.wrapping_add(self.client.sent.len() as u32);
        let mut segment = self.segment_of_client(seq);
        let far = 1 << 24 | self.random.below(1 << 29) as u32;
        match self.random.below(4) {
            0 => segment.seq = segment.seq.wrapping_add(far),
            1 => segment.ack = segment.ack.wrapping_add(far),
            2 if segment.from.is_ipv4() => return self.forge_header(segment),
            _ => segment.checksum_holds = false,
        }
        segment.flags = ACK | PSH;
        segment.payload = b"GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n".to_vec();
        self.send_up(&segment, true);
    }

    /// A segment that is right, in a packet whose own header does not sum up (P7).
    fn forge_header(&mut self, mut segment: Segment) {
        segment.payload = b"GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n".to_vec();
        let mut frame = segment.frame(&self.macs(self.in_leg, false));
        frame[14 + 8 + self.random.below(4)] ^= 1; // the TTL, the protocol, or the sum
        self.up(&frame, 0, true);
    }

    fn segment_of_client(&mut self, seq: u32) -> Segment {
        self.clock += 1;
        let (ts_value, ts_echo) =
            if self.stamped { (self.clock, self.client.ts_recent) } else { (0, 0) };
        Segment {
            seq,
            ack: self.client.got.number(),
            window: 1000,
            ts_value,
            ts_echo,
            ..Segment::new(self.ends[0], self.ends[1])
        }
    }

    fn send_up(&mut self, segment: &Segment, forged: bool) {
        let frame = segment.frame(&self.macs(self.in_leg, false));
        let plain = self.good || forged;
        let Shaped { frames, gso_size } = if plain {
            Shaped { frames: vec![frame], gso_size: 0 }
        } else {
            shape(&mut self.random, &frame)
        };
        for frame in frames {
            if !self.good && self.random.one_in(12) {
                continue; // lost
            }
            self.up(&frame, gso_size, forged);
            if !forged {
                self.history.push(frame);
            }
        }
    }

    /// A frame comes in.
    fn up(&mut self, frame: &[u8], gso_size: u32, forged: bool) {
        self.segments += 1;
        let place = self.place(self.in_leg, gso_size);
        let Ok(run) = self.bench.fast_path.interfaces.dry_run_at(Hook::Ingress, frame, place)
        else {
            return;
        };
        match run.verdict {
            TCX_NEXT => {
                let arrived = self.readers[0].take(&run.packet).filter(|a| self.is_ours(a, 0));
                arrived.iter().for_each(|arrived| self.server.receive(arrived));
            }
            TCX_REDIRECT => {
                assert!(!forged, "an answer to a forged segment");
                self.down(run.packet);
            }
            verdict => assert_eq!(verdict, TCX_DROP),
        }
        self.drain();
    }

    // --- the server ---

    fn serve(&mut self) {
        let from = self.emitted as usize;
        let rest = self.server.sent.len() - from;
        if rest == 0 {
            if std::mem::take(&mut self.server.owes_ack) {
                self.emit(from, from);
            }
            return;
        }
        let most = rest.min(UNIT);
        let length = if self.random.one_in(3) { 1 + self.random.below(most) } else { most };
        self.emitted += length as u32;
        self.emit(from, from + length);
    }

    fn server_again(&mut self) {
        let from = self.server.acked;
        if from < self.emitted {
            let end = self.emitted.min(from + UNIT as u32);
            self.emit(from as usize, end as usize);
        } else if self.good {
            self.emit(self.emitted as usize, self.emitted as usize);
        }
    }

    /// The server's bytes from here to there leave.
    fn emit(&mut self, from: usize, end: usize) {
        self.segments += 1;
        self.server.owes_ack = false;
        let now = now().as_millis() as u32;
        let (ts_value, ts_echo) = if self.stamped { (now, self.server.ts_recent) } else { (0, 0) };
        let segment = Segment {
            seq: self.server.first.wrapping_add(from as u32),
            ack: self.server.got.number(),
            flags: if from < end { ACK | PSH } else { ACK },
            window: 500,
            ts_value,
            ts_echo,
            payload: self.server.sent[from..end].to_vec(),
            ..Segment::new(self.ends[1], self.ends[0])
        };
        let frame = segment.frame(&self.macs(self.out_leg, true));
        let place = self.place(self.out_leg, 0);
        let run =
            self.bench.fast_path.interfaces.dry_run_at(Hook::Egress, &frame, place).expect("run");
        match run.verdict {
            TCX_NEXT => self.down(run.packet),
            verdict => assert_eq!(verdict, TCX_DROP),
        }
    }

    // --- the network ---

    /// Collects the segments that the programs have sent by themselves: copies of the packet in hand.
    fn drain(&mut self) {
        let mut frame = vec![0; 4096];
        for side in &self.bench.sides {
            while let Ok(Some(length)) = side.far.receive(&mut frame) {
                self.held.push(frame[..length].to_vec());
            }
        }
        if self.good || self.random.one_in(2) {
            self.release();
        }
    }

    fn release(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        if !self.good && held.len() > 1 && self.random.one_in(3) {
            let at = self.random.below(held.len());
            held.swap(0, at);
        }
        for frame in held {
            self.arrive(&frame);
        }
    }

    /// A frame on its way to the client: lost, late, twice, or as it should be.
    fn down(&mut self, frame: Vec<u8>) {
        match self.random.below(12) {
            0 if !self.good => {}
            1 if !self.good => self.held.push(frame),
            2 => [&frame, &frame].iter().for_each(|frame| self.arrive(frame)),
            _ => self.arrive(&frame),
        }
    }

    fn arrive(&mut self, frame: &[u8]) {
        let arrived = self.readers[1].take(frame).filter(|arrived| self.is_ours(arrived, 1));
        arrived.iter().for_each(|arrived| self.client.receive(arrived));
    }

    fn is_ours(&self, arrived: &Arrived, from: usize) -> bool {
        arrived.ports == [self.ends[from].port(), self.ends[1 - from].port()]
    }

    fn change_ways(&mut self) {
        let leg = (self.random.below(2), self.random.below(2));
        match self.random.below(3) {
            0 => self.in_leg = leg,
            1 => self.out_leg = leg,
            _ => (self.in_leg, self.out_leg) = (leg, leg),
        }
    }

    fn macs(&self, (side, router): Leg, from_server: bool) -> [u8; 12] {
        let (ours, client) = (self.bench.sides[side].mac, CLIENT_MACS[router]);
        let pair = if from_server { [client, ours] } else { [ours, client] };
        pair.concat().try_into().expect("two addresses")
    }

    fn place(&self, (side, _): Leg, gso_size: u32) -> Place {
        Place { interface: self.bench.sides[side].index, gso_size }
    }
}

/// The kernel's clock.
fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
