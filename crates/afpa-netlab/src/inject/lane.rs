//! One direction: the fate of each packet, and the time at which it leaves. Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Add;
use std::time::Duration;

use afpa_testkit::Random;
use afpa_testkit::packet::TcpView;

use super::Impairment;
use super::mark::mark;

/// The counts of a lane. All but `sent` are decided when a packet is admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Packets received.
    pub received: u64,
    /// Bytes of TCP payload in them.
    pub payload: u64,
    /// Packets sent on, copies included.
    pub sent: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Lost in bursts.
    pub burst_lost: u64,
    /// Marked instead of being dropped.
    pub marked: u64,
    /// Lost by a drop rule.
    pub rule_dropped: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Held back.
    pub held: u64,
    /// Left after a packet that had come later: of the packets held back, those whose order the receiver sees changed.
    pub overtaken: u64,
    /// Dropped because the queue of the rate limit was full.
    pub queue_dropped: u64,
    /// Larger than the wire allows, dropped: an offload is still on.
    pub oversize: u64,
    /// Refused by the outgoing device.
    pub refused: u64,
}

impl Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            payload: self.payload + other.payload,
            sent: self.sent + other.sent,
            lost: self.lost + other.lost,
            burst_lost: self.burst_lost + other.burst_lost,
            marked: self.marked + other.marked,
            rule_dropped: self.rule_dropped + other.rule_dropped,
            duplicated: self.duplicated + other.duplicated,
            held: self.held + other.held,
            overtaken: self.overtaken + other.overtaken,
            queue_dropped: self.queue_dropped + other.queue_dropped,
            oversize: self.oversize + other.oversize,
            refused: self.refused + other.refused,
        }
    }
}

/// Packets on their way in one direction. Times are counted from any fixed moment.
///
/// Call [`admit`](Self::admit) for each packet that arrives, then [`release`](Self::release) until
/// it gives nothing more, then sleep until [`next_due`](Self::next_due).
#[derive(Debug)]
pub struct Lane {
    impairment: Impairment,
    random: Random,
    /// Packets of the current burst still to lose.
    burst_left: u32,
    /// No packet that is not held back leaves before one admitted earlier.
    latest_due: Duration,
    /// When the rate limit has sent what it was given, packet by packet.
    transmissions: VecDeque<Duration>,
    waiting: BinaryHeap<Reverse<DelayedFrame>>,
    admitted: u64,
    latest_released: u64,
    counts: Counts,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DelayedFrame {
    due: Duration,
    /// Order of admission; decides between equal times.
    order: u64,
    frame: Vec<u8>,
}

impl Lane {
    /// An empty lane.
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        Self {
            impairment,
            random: Random::new(seed),
            burst_left: 0,
            latest_due: Duration::ZERO,
            transmissions: VecDeque::new(),
            waiting: BinaryHeap::new(),
            admitted: 0,
            latest_released: 0,
            counts: Counts::default(),
        }
    }

    /// A packet has arrived: decides its fate.
    pub fn admit(&mut self, now: Duration, mut frame: Vec<u8>) {
        self.counts.received += 1;
        let segment = TcpView::of_frame(&frame);
        self.counts.payload += segment.map_or(0, |segment| segment.payload.len() as u64);
        if self.loses(&frame) {
            return;
        }
        if self.impairment.mark > 0.0 && self.random.chance(self.impairment.mark) {
            if !mark(&mut frame) {
                self.counts.lost += 1;
                return;
            }
            self.counts.marked += 1;
        }
        let copies = if self.random.chance(self.impairment.duplicate) { 2 } else { 1 };
        self.counts.duplicated += copies - 1;
        for _ in 1..copies {
            self.enqueue(now, frame.clone());
        }
        self.enqueue(now, frame);
    }

    /// A packet that is due, if there is one.
    pub fn release(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(packet) = self.waiting.pop()?;
        if packet.order < self.latest_released {
            self.counts.overtaken += 1;
        }
        self.latest_released = self.latest_released.max(packet.order);
        self.counts.sent += 1;
        Some(packet.frame)
    }

    /// When the next packet leaves.
    pub fn next_due(&self) -> Option<Duration> {
        self.waiting.peek().map(|Reverse(packet)| packet.due)
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }

    fn loses(&mut self, frame: &[u8]) -> bool {
        if self.rule_drops(frame) {
            self.counts.rule_dropped += 1;
            return true;
        }
        if self.burst_loses() {
            self.counts.burst_lost += 1;
            return true;
        }
        let lost = self.random.chance(self.impairment.loss);
        self.counts.lost += u64::from(lost);
        lost
    }

    fn rule_drops(&mut self, frame: &[u8]) -> bool {
        let rules = &mut self.impairment.drop_rules;
        if rules.is_empty() {
            return false;
        }
        let Some(segment) = TcpView::of_frame(frame) else { return false };
        // Every rule counts its matches, also when an earlier one has dropped the packet.
        rules.iter_mut().fold(false, |dropped, rule| dropped | rule.drops(&segment))
    }

    fn burst_loses(&mut self) -> bool {
        let Some(burst) = self.impairment.burst else { return false };
        if self.burst_left == 0 && self.random.chance(burst.start) {
            self.burst_left = burst.length;
        }
        let loses = self.burst_left > 0;
        self.burst_left = self.burst_left.saturating_sub(1);
        loses
    }

    fn enqueue(&mut self, now: Duration, frame: Vec<u8>) {
        let Some(transmitted) = self.transmit(now, frame.len()) else {
            self.counts.queue_dropped += 1;
            return;
        };
        let jitter = match self.impairment.jitter {
            Duration::ZERO => Duration::ZERO,
            jitter => jitter.mul_f64(self.random.fraction()),
        };
        let mut due = self.latest_due.max(transmitted + self.impairment.delay + jitter);
        if self.random.chance(self.impairment.reorder) {
            self.counts.held += 1;
            due += self.impairment.hold;
        } else {
            self.latest_due = due;
        }
        self.admitted += 1;
        self.waiting.push(Reverse(DelayedFrame { due, order: self.admitted, frame }));
    }

    /// When the rate limit has put the packet on the wire; `None` when its queue is full.
    fn transmit(&mut self, now: Duration, length: usize) -> Option<Duration> {
        let Some(rate) = self.impairment.rate else { return Some(now) };
        while self.transmissions.front().is_some_and(|done| *done <= now) {
            self.transmissions.pop_front();
        }
        // The first of them is on the wire, the others wait.
        if self.transmissions.len() > self.impairment.queue {
            return None;
        }
        let start = self.transmissions.back().map_or(now, |last| now.max(*last));
        let done = start + Duration::from_secs_f64(length as f64 * 8.0 / rate.max(1) as f64);
        self.transmissions.push_back(done);
        Some(done)
    }
}

#[cfg(test)]
#[path = "lane_tests.rs"]
mod tests;
