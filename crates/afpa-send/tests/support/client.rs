//! A client's TCP, as far as a sender can tell: acknowledgements, SACK, windows, delays.

use afpa_send::{Ack, Micros, Send};

const DELAYED_ACK: Micros = 40_000;

/// The receiving side of one connection.
pub(crate) struct Client {
    /// What has arrived of the answer, byte by byte.
    have: Vec<bool>,
    /// Everything below has arrived.
    next: u32,
    /// Below, the application has read it.
    read: u32,
    /// Receive buffer, bytes.
    buffer: u32,
    /// Right edge that was ever offered.
    offered: u32,
    /// Bytes the application reads each millisecond.
    speed: u32,
    segments_unanswered: u32,
    acknowledge_by: Option<Micros>,
    /// Newest block first.
    blocks: Vec<(u32, u32)>,
    duplicate: Option<(u32, u32)>,
    timestamps: bool,
    echo: u32,
    last_read: Micros,
}

impl Client {
    /// A client that waits for `length` bytes.
    pub(crate) fn new(length: u32, buffer: u32, speed: u32, timestamps: bool) -> Self {
        Self {
            have: vec![false; length as usize],
            next: 0,
            read: 0,
            buffer,
            offered: buffer,
            speed,
            segments_unanswered: 0,
            acknowledge_by: None,
            blocks: Vec::new(),
            duplicate: None,
            timestamps,
            echo: 0,
            last_read: 0,
        }
    }

    /// Whether all of the answer is there.
    pub(crate) fn is_done(&self) -> bool {
        self.next as usize == self.have.len()
    }

    /// When a delayed acknowledgement or a window update is due.
    pub(crate) fn deadline(&self) -> Option<Micros> {
        let update = (self.window() < self.buffer / 2 && self.read < self.next)
            .then_some(self.last_read + 1000);
        [self.acknowledge_by, update].into_iter().flatten().min()
    }

    /// A segment arrives; an acknowledgement may leave at once.
    pub(crate) fn on_segment(&mut self, now: Micros, send: &Send, stamp: u32) -> Option<Ack> {
        self.drain(now);
        let (from, to) = (send.offset, send.offset + send.length);
        assert!(to as usize <= self.have.len(), "S1: nothing beyond the answer: {send:?}");
        assert!(to <= self.offered || send.length == 0, "S6: nothing beyond the window: {send:?}");
        if send.length == 0 {
            return Some(self.acknowledge(now));
        }
        if self.timestamps && from <= self.next {
            self.echo = stamp;
        }
        let known = (from..to).filter(|&at| self.have[at as usize]).count() as u32;
        if known > 0 {
            self.duplicate = Some((from, to));
        }
        for at in from..to {
            self.have[at as usize] = true;
        }
        let gap_before = from > self.next || !self.blocks.is_empty();
        while (self.next as usize) < self.have.len() && self.have[self.next as usize] {
            self.next += 1;
        }
        self.note_block(from, to);
        self.segments_unanswered += 1;
        if gap_before || known > 0 || self.segments_unanswered >= 2 || self.is_done() {
            return Some(self.acknowledge(now));
        }
        self.acknowledge_by = Some(now + DELAYED_ACK);
        None
    }

    /// The time is `now`.
    pub(crate) fn on_time(&mut self, now: Micros) -> Option<Ack> {
        let small = self.window() < self.buffer / 2;
        self.drain(now);
        let opened = small && self.window() >= self.buffer / 2;
        (opened || self.acknowledge_by.is_some_and(|by| by <= now)).then(|| self.acknowledge(now))
    }

    fn drain(&mut self, now: Micros) {
        let can = (now - self.last_read).saturating_mul(u64::from(self.speed)) / 1000;
        if can > 0 || self.read == self.next {
            self.read =
                self.next.min(self.read.saturating_add(can.min(u64::from(u32::MAX)) as u32));
            self.last_read = now;
        }
    }

    fn window(&self) -> u32 {
        self.buffer.saturating_sub(self.next - self.read)
    }

    fn acknowledge(&mut self, _now: Micros) -> Ack {
        self.segments_unanswered = 0;
        self.acknowledge_by = None;
        let mut window = self.window();
        // No silly windows, and no shrinking one (RFC 9293, 3.8.6.2.2).
        if window < self.buffer / 4 {
            window = 0;
        }
        self.offered = self.offered.max(self.next + window);
        let window = self.offered - self.next;
        let mut sack = [(0, 0); 4];
        let blocks = self.duplicate.take().into_iter().chain(self.blocks.iter().copied());
        for (place, block) in sack.iter_mut().zip(blocks.take(3)) {
            *place = block;
        }
        let echo = self.timestamps.then_some(self.echo);
        Ack { ack: self.next, window, sack, echo, marked: false, earlier: false }
    }

    /// The run of bytes around what arrived comes first; what is below `next` is gone.
    fn note_block(&mut self, from: u32, to: u32) {
        let has = |at: u32| self.have.get(at as usize).copied().unwrap_or(false);
        let (mut low, mut high) = (from, to);
        while low > 0 && has(low - 1) {
            low -= 1;
        }
        while has(high) {
            high += 1;
        }
        let next = self.next;
        self.blocks.retain(|&(a, b)| b > next && !(low <= a && b <= high));
        if low > next {
            self.blocks.insert(0, (low, high));
        }
    }
}
