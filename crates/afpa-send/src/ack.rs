//! What an acknowledgement changes.

use crate::flight::{Flight, Probe, Recovery};
use crate::{Bits, Micros};

/// What the client says, in offsets of the answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Everything below has arrived. Beyond the answer's end counts as its end.
    pub ack: u32,
    /// Bytes that the client takes from `ack` on.
    pub window: u32,
    /// Blocks that have arrived beyond (RFC 2018); empty ones are ignored. The first one may tell of a
    /// duplicate (RFC 2883).
    pub sack: [(u32, u32); 4],
    /// The timestamp that is echoed (RFC 7323), milliseconds of our clock.
    pub echo: Option<u32>,
    /// The network marked a segment of ours (ECE, RFC 3168).
    pub marked: bool,
    /// The first block tells of a duplicate of an earlier answer.
    pub earlier: bool,
}

/// Where the answer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// On its way.
    Going,
    /// Every byte is acknowledged.
    Done,
    /// The client acknowledges what was never sent: not our client, or not in its senses. Nothing was
    /// changed.
    Impossible,
    /// Nothing has arrived for [`PATIENCE`](crate::PATIENCE): the client is given up.
    GivenUp,
}

impl Flight {
    /// An acknowledgement has come. Follow up with [`poll_send`](Self::poll_send).
    pub fn on_ack(&mut self, now: Micros, ack: &Ack) -> Progress {
        let acked = ack.ack.min(self.length);
        if acked > self.sent() {
            return Progress::Impossible;
        }
        if acked < self.una {
            return Progress::Going; // it was overtaken by a newer one
        }
        let before = self.outstanding();
        let first = self.first();
        if acked > self.una {
            self.progress = now;
            self.backoff = 0;
        }
        self.una = acked;
        self.edge = acked.saturating_add(ack.window);
        let sacked = self.blocks(ack);
        let duplicate = is_duplicate(ack, acked);
        if ack.earlier || duplicate {
            self.sent_in_vain(ack);
        }
        self.sacked = self.sacked.or(sacked).and(Bits::range(self.first(), self.next));
        // The client lacks the first byte of it: if it said otherwise before, it has changed its mind
        // (RFC 2018, section 8).
        self.sacked.clear(self.first());
        self.lost = self.lost.and(self.outstanding());

        let delivered = before.without(self.outstanding());
        if !delivered.is_empty() {
            self.base = now;
        }
        self.note_delivery(now, delivered, ack.echo);
        let cumulative = self.first() - first;
        self.probe_answered(delivered, duplicate);
        self.congestion(u16::from(cumulative), ack.marked);
        self.find_losses(now);
        self.set_timer(now);
        if self.is_done() { Progress::Done } else { Progress::Going }
    }

    /// Segments that lie whole within the blocks.
    fn blocks(&self, ack: &Ack) -> Bits {
        let mut all = Bits::default();
        for (from, to) in ack.sack {
            if from < to && from > self.una && to <= self.sent() {
                let end = if to == self.length { self.count } else { (to / self.unit) as u8 };
                all = all.or(Bits::range(from.div_ceil(self.unit) as u8, end));
            }
        }
        all
    }

    /// Something arrived twice. What was not sent twice the network has doubled, which tells nothing; that a
    /// probe was not needed tells nothing of reordering.
    fn sent_in_vain(&mut self, ack: &Ack) {
        let segment = (ack.sack[0].0 / self.unit) as u8;
        let ours = if ack.earlier { self.path.undo.open > 0 } else { self.again.has(segment) };
        if !ours {
            return;
        }
        self.path.needless(1);
        if self.probe == Probe::Repeated(segment) && !ack.earlier {
            return;
        }
        if self.first() >= self.patient_until {
            self.path.wait_longer();
            self.patient_until = self.next;
        }
    }

    /// Learns from what arrived: round trips, reordering, the newest transmission that got through.
    fn note_delivery(&mut self, now: Micros, delivered: Bits, echo: Option<u32>) {
        let again = self.again;
        let mut sample = None;
        for segment in delivered.iter() {
            let sent_at = self.sent_at[usize::from(segment)];
            let round_trip = (now as u32).wrapping_sub(sent_at);
            let overtaken = segment < self.front;
            if self.again.has(segment) {
                // Which of the transmissions was it? Not the last one, if the echo is older than that,
                // or if no packet can have been that fast (RFC 8985, 6.2, step 2). What arrived behind a
                // gap is not echoed: the timestamp is that of the last segment before it (RFC 7323, 4.3),
                // and taken for an answer only where segments overtake each other.
                let behind = segment >= self.first();
                let late = self.path.reordering && self.probe != Probe::Repeated(segment);
                let echo = echo.filter(|_| !behind || late);
                let older = echo.is_some_and(|echo| is_before(echo, stamp_of(now, round_trip)));
                if older {
                    // It arrived before it was sent again (RFC 4015); the duplicate is no news then.
                    self.again.clear(segment);
                    self.path.reordering |= overtaken;
                    continue;
                }
                if round_trip < self.path.rtt.shortest {
                    continue;
                }
            } else {
                sample = Some(round_trip);
                self.path.reordering |= overtaken;
            }
            self.front = self.front.max(segment + 1);
            let newest = &mut self.newest;
            let newer = is_before(newest.sent_at, sent_at)
                || (newest.sent_at == sent_at && newest.segment <= segment);
            if !newest.known || newer {
                newest.known = true;
                newest.sent_at = sent_at;
                newest.segment = segment;
                newest.round_trip = round_trip;
            }
        }
        self.path.needless(again.without(self.again).count() as u8);
        if let Some(sample) = sample {
            self.path.rtt.measured(sample);
        }
    }

    /// A repeated tail that repaired a loss is a loss (RFC 8985, 7.4); one that was reported as a
    /// duplicate is none.
    fn probe_answered(&mut self, delivered: Bits, duplicate: bool) {
        match self.probe {
            Probe::Repeated(segment) if delivered.has(segment) => {
                if !duplicate && self.recovery == Recovery::Open {
                    self.path.shrink();
                }
                self.probe = Probe::None;
            }
            Probe::Fresh | Probe::Due if !delivered.is_empty() => self.probe = Probe::None,
            _ => {}
        }
    }

    /// The window after `acked` segments more, and perhaps a mark.
    fn congestion(&mut self, acked: u16, marked: bool) {
        match self.recovery {
            Recovery::Fast(until) | Recovery::Slow(until) if self.first() >= until => {
                self.recovery = Recovery::Open;
                self.path.recovered();
            }
            Recovery::Slow(_) => self.path.grow(acked),
            Recovery::Fast(_) => {}
            // A window that was not made use of says nothing about the path (RFC 7661).
            Recovery::Open if self.path.window < 2 * self.peak => {
                self.path.grow(acked);
            }
            Recovery::Open => {}
        }
        if marked && self.first() >= self.reduced_until {
            // Once a window, losses included; the client repeats it until it is told.
            if self.recovery == Recovery::Open {
                self.path.marked();
            }
            self.path.reduced = true;
            self.reduced_until = self.next + 1; // what tells it has arrived, too
        }
    }

    /// Takes for lost what should have arrived before the newest segment that did (RFC 8985, 6.2).
    /// Enters recovery with the first loss of a window.
    pub(crate) fn find_losses(&mut self, now: Micros) {
        let late = self.late(now);
        if late.is_empty() {
            return;
        }
        if self.recovery == Recovery::Open {
            self.path.remember();
            self.path.shrink();
            self.recovery = Recovery::Fast(self.next);
            self.urgent = true;
        }
        self.lost = self.lost.or(late);
    }

    fn late(&self, now: Micros) -> Bits {
        let mut late = Bits::default();
        for segment in self.overtaken().iter() {
            if self.waits(now, segment) == 0 {
                late.set(segment);
            }
        }
        late
    }

    /// On their way, though something that left after them has arrived.
    pub(crate) fn overtaken(&self) -> Bits {
        let mut overtaken = Bits::default();
        if !self.newest.known {
            return overtaken;
        }
        for segment in self.outstanding().without(self.lost).iter() {
            let sent_at = self.sent_at[usize::from(segment)];
            let earlier = is_before(sent_at, self.newest.sent_at)
                || (sent_at == self.newest.sent_at && segment < self.newest.segment);
            if earlier {
                overtaken.set(segment);
            }
        }
        overtaken
    }

    /// Microseconds that an overtaken segment may still be merely late.
    pub(crate) fn waits(&self, now: Micros, segment: u8) -> u32 {
        let age = (now as u32).wrapping_sub(self.sent_at[usize::from(segment)]);
        (self.newest.round_trip + self.lateness()).saturating_sub(age)
    }

    /// Three segments beyond, or a recovery under way, and reordering never seen: no patience.
    fn lateness(&self) -> u32 {
        if self.path.reordering {
            return self.path.lateness();
        }
        let sure = self.recovery != Recovery::Open || self.sacked.count() >= 3;
        if sure { 0 } else { self.path.rtt.shortest / 4 }
    }
}

/// The first block tells of bytes that had arrived before: below the acknowledgement, or within the
/// second block (RFC 2883, section 4).
fn is_duplicate(ack: &Ack, acked: u32) -> bool {
    let [(from, to), (second_from, second_to), ..] = ack.sack;
    from < to && (to <= acked || (second_from <= from && to <= second_to))
}

/// In wrapping numbers.
fn is_before(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) < 0
}

/// The timestamp that a segment sent `age` microseconds ago carries.
fn stamp_of(now: Micros, age: u32) -> u32 {
    (now.saturating_sub(u64::from(age)) / 1000) as u32
}
