//! A network that loses, delays, doubles and reorders, and the two ends of one connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use afpa_send::{Ack, Begin, Flight, Micros, Path, Progress, Send};

use super::{Client, Random};

/// What the network does. Percentages are of packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) length: u32,
    pub(crate) segment: u32,
    /// One way, microseconds.
    pub(crate) delay: Micros,
    /// Each way.
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) reordering: f64,
    /// Bytes a millisecond through the bottleneck, and its queue in bytes; 0: none.
    pub(crate) rate: u64,
    pub(crate) queue: u64,
    pub(crate) buffer: u32,
    /// Bytes the client's application reads each millisecond.
    pub(crate) speed: u32,
    pub(crate) timestamps: bool,
    /// Segments that may leave in one interrupt.
    pub(crate) burst: u32,
}

impl Conditions {
    /// A good network with nothing special about it.
    pub(crate) fn calm(length: u32) -> Self {
        Self {
            length,
            segment: 1448,
            delay: 10_000,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            rate: 0,
            queue: 0,
            buffer: 65_535,
            speed: 1_000_000,
            timestamps: true,
            burst: 16,
        }
    }
}

/// How it went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) complete: bool,
    /// Until the client had the last byte.
    pub(crate) time: Micros,
    pub(crate) segments: u32,
    pub(crate) again: u32,
    pub(crate) given_up: bool,
    pub(crate) path: Path,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ToClient(u32),
    ToServer(u32),
}

struct Lane {
    free_at: Micros,
}

struct World<'a> {
    conditions: &'a Conditions,
    random: &'a mut Random,
    events: BinaryHeap<Reverse<(Micros, u64, Event)>>,
    number: u64,
    sends: Vec<(Send, u32)>,
    acks: Vec<Ack>,
    bottleneck: Lane,
}

/// One answer through the network; panics when an invariant breaks.
pub(crate) fn run(conditions: &Conditions, random: &mut Random, path: Path) -> Outcome {
    let mut outcome = Outcome::default();
    let begun: Micros = 1_000_000_000 + random.between(0, 1 << 33); // the wrap of 32 bits comes by
    let Conditions { length, segment, buffer, speed, timestamps, .. } = *conditions;
    let begin = Begin { length, segment, window: buffer, path };
    let Some(mut flight) = Flight::begin(begun, &begin) else { return outcome };
    let mut client = Client::new(length, buffer, speed, timestamps);
    let mut world = World {
        conditions,
        random,
        events: BinaryHeap::new(),
        number: 0,
        sends: Vec::new(),
        acks: Vec::new(),
        bottleneck: Lane { free_at: 0 },
    };
    client.on_time(begun);
    let mut now = begun;
    world.send(&mut flight, now, &mut outcome);
    for _step in 0..200_000 {
        flight.check_invariants();
        let due = [
            world.events.peek().map(|Reverse((at, ..))| *at),
            flight.deadline(),
            client.deadline(),
        ];
        let Some(at) = due.into_iter().flatten().min() else { break };
        now = now.max(at);
        let mut progress = Progress::Going;
        if world.events.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, event))) = world.events.pop() else { break };
            match event {
                Event::ToClient(index) => {
                    let (send, stamp) = world.sends[index as usize];
                    if let Some(ack) = client.on_segment(now, &send, stamp) {
                        world.acknowledge(now, ack);
                    }
                    if client.is_done() && !outcome.complete {
                        outcome.complete = true;
                        outcome.time = now - begun;
                    }
                }
                Event::ToServer(index) => {
                    progress = flight.on_ack(now, &world.acks[index as usize])
                }
            }
        } else if client.deadline().is_some_and(|at| at <= now) {
            if let Some(ack) = client.on_time(now) {
                world.acknowledge(now, ack);
            }
        } else {
            progress = flight.on_time(now);
        }
        assert_ne!(progress, Progress::Impossible, "S7: this client is in its senses");
        if progress == Progress::GivenUp {
            outcome.given_up = true;
            break;
        }
        if progress == Progress::Done {
            assert!(client.is_done(), "S8: done is when the client has everything");
            break;
        }
        world.send(&mut flight, now, &mut outcome);
    }
    flight.check_invariants();
    assert!(flight.is_done() || outcome.given_up, "it ends: {conditions:?} {flight:?}");
    outcome.path = flight.path();
    outcome
}

impl World<'_> {
    fn send(&mut self, flight: &mut Flight, now: Micros, outcome: &mut Outcome) {
        for _ in 0..self.conditions.burst {
            let Some(send) = flight.poll_send(now) else { return };
            outcome.segments += 1;
            outcome.again += u32::from(send.again);
            let index = self.sends.len() as u32;
            self.sends.push((send, (now / 1000) as u32));
            let Some(left) = self.through_bottleneck(now, u64::from(send.length) + 66) else {
                continue;
            };
            self.carry(left, Event::ToClient(index));
        }
    }

    fn acknowledge(&mut self, now: Micros, ack: Ack) {
        let index = self.acks.len() as u32;
        self.acks.push(ack);
        self.carry(now, Event::ToServer(index));
    }

    fn through_bottleneck(&mut self, now: Micros, bytes: u64) -> Option<Micros> {
        let Conditions { rate, queue, .. } = *self.conditions;
        if rate == 0 {
            return Some(now);
        }
        let begin = self.bottleneck.free_at.max(now);
        if (begin - now) * rate / 1000 > queue {
            return None;
        }
        self.bottleneck.free_at = begin + bytes * 1000 / rate;
        Some(self.bottleneck.free_at)
    }

    fn carry(&mut self, now: Micros, event: Event) {
        let copies = 1 + u32::from(self.random.chance(self.conditions.duplication));
        for _ in 0..copies {
            if self.random.chance(self.conditions.loss) {
                continue;
            }
            let mut at = now + self.conditions.delay;
            if self.random.chance(self.conditions.reordering) {
                at += self.random.between(0, self.conditions.delay / 2 + 2_000);
            }
            self.number += 1;
            self.events.push(Reverse((at, self.number, event)));
        }
    }
}
