//! A client's TCP, as far as a sender can tell: ACKs, SACK, DSACK, windows, delayed ACKs, ECN.

use crate::step::{Ack, Micros, Transmission};

const DELAYED_ACK: Micros = 40_000;

/// A rule that was broken, in words.
pub type Broken = String;

/// The receiving side of one transfer.
#[derive(Clone, Debug)]
pub struct Client {
    length: u32,
    /// The received bytes, as ranges that do not touch, ascending.
    ranges: Vec<(u32, u32)>,
    /// Everything below was received.
    next: u32,
    /// The application has read everything below.
    read: u32,
    /// Receive buffer, bytes.
    buffer: u32,
    /// The right edge of the window that was ever offered (S6).
    offered: u32,
    /// Bytes the application reads each millisecond.
    speed: u32,
    unacknowledged: u32,
    acknowledge_by: Option<Micros>,
    /// SACK blocks, the newest first.
    blocks: Vec<(u32, u32)>,
    duplicate: Option<(u32, u32)>,
    timestamps: bool,
    echo: u32,
    /// ECE is set in each ACK until a segment with CWR comes.
    ece: bool,
    last_read: Micros,
}

impl Client {
    /// A client that waits for `length` bytes.
    pub fn new(length: u32, buffer: u32, speed: u32, timestamps: bool) -> Self {
        Self {
            length,
            ranges: Vec::new(),
            next: 0,
            read: 0,
            buffer,
            offered: buffer,
            speed,
            unacknowledged: 0,
            acknowledge_by: None,
            blocks: Vec::new(),
            duplicate: None,
            timestamps,
            echo: 0,
            ece: false,
            last_read: 0,
        }
    }

    /// Whether the whole transfer was received.
    pub fn is_done(&self) -> bool {
        self.next == self.length
    }

    /// Whether all these bytes were received.
    pub fn has(&self, from: u32, to: u32) -> bool {
        self.ranges.iter().any(|&(a, b)| a <= from && to <= b)
    }

    /// When a delayed ACK or a window update is due.
    pub fn deadline(&self) -> Option<Micros> {
        let update = (self.window() < self.buffer / 2 && self.read < self.next)
            .then_some(self.last_read + 1000);
        [self.acknowledge_by, update].into_iter().flatten().min()
    }

    /// A segment is received; an ACK may leave at once.
    pub fn on_segment(
        &mut self,
        now: Micros,
        send: &Transmission,
        stamp: u32,
        ce: bool,
    ) -> Result<Option<Ack>, Broken> {
        self.drain(now);
        let (from, to) = (send.offset, send.offset + send.length);
        if to > self.length {
            return Err(format!("S1: beyond the end: {send:?}"));
        }
        if to > self.offered && send.length > 0 {
            return Err(format!("S6: beyond the offered window {}: {send:?}", self.offered));
        }
        self.ece = ce || (self.ece && !send.cwr);
        if send.length == 0 {
            return Ok(Some(self.acknowledge()));
        }
        if self.timestamps && from <= self.next {
            self.echo = stamp;
        }
        let known = self.ranges.iter().any(|&(a, b)| a < to && from < b);
        if known {
            self.duplicate = Some((from, to));
        }
        let gap_before = from > self.next || !self.blocks.is_empty();
        let run = self.insert(from, to);
        self.next = self.ranges.first().filter(|range| range.0 == 0).map_or(0, |range| range.1);
        self.note_block(run);
        self.unacknowledged += 1;
        if gap_before || known || self.unacknowledged >= 2 || self.is_done() {
            return Ok(Some(self.acknowledge()));
        }
        self.acknowledge_by = Some(now + DELAYED_ACK);
        Ok(None)
    }

    /// The time is `now`.
    pub fn on_time(&mut self, now: Micros) -> Option<Ack> {
        let small = self.window() < self.buffer / 2;
        self.drain(now);
        let opened = small && self.window() >= self.buffer / 2;
        (opened || self.acknowledge_by.is_some_and(|by| by <= now)).then(|| self.acknowledge())
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

    fn acknowledge(&mut self) -> Ack {
        self.unacknowledged = 0;
        self.acknowledge_by = None;
        let mut window = self.window();
        // No silly windows, and no shrinking one (RFC 9293, 3.8.6.2.2).
        if window < self.buffer / 4 {
            window = 0;
        }
        self.offered = self.offered.max(self.next + window);
        let mut sack = [(0, 0); 4];
        let blocks = self.duplicate.take().into_iter().chain(self.blocks.iter().copied());
        for (place, block) in sack.iter_mut().zip(blocks.take(3)) {
            *place = block;
        }
        let tsecr = self.timestamps.then_some(self.echo);
        let wnd = self.offered - self.next;
        Ack { ack: self.next, wnd, sack, tsecr, ece: self.ece, earlier_dsack: false }
    }

    /// The range that contains the bytes then.
    fn insert(&mut self, from: u32, to: u32) -> (u32, u32) {
        let (mut low, mut high) = (from, to);
        self.ranges.retain(|&(a, b)| {
            let touches = a <= to && from <= b;
            if touches {
                low = low.min(a);
                high = high.max(b);
            }
            !touches
        });
        let place = self.ranges.partition_point(|&(a, _)| a < low);
        self.ranges.insert(place, (low, high));
        (low, high)
    }

    /// Notes a SACK block. The range around the last segment comes first; a range below `next` is no block.
    fn note_block(&mut self, (low, high): (u32, u32)) {
        let next = self.next;
        self.blocks.retain(|&(a, b)| b > next && !(low <= a && b <= high));
        if low > next {
            self.blocks.insert(0, (low, high));
        }
    }
}
