//! One answer on its way to the client.

use crate::{Bits, MAX_SEGMENTS, Micros, Path};

/// What an answer begins with.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    /// Bytes of the answer, head included.
    pub length: u32,
    /// Payload of a full segment on this path.
    pub segment: u32,
    /// Window that came with the request, bytes.
    pub window: u32,
    /// What the connection remembers.
    pub path: Path,
}

/// Whether losses are being repaired, and up to which segment (exclusive).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Recovery {
    #[default]
    Open,
    /// Acknowledgements told of a loss.
    Fast(u8),
    /// Nothing came back in time.
    Slow(u8),
}

/// What the deadline is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Timer {
    #[default]
    None,
    /// A segment is late, but may only have been overtaken.
    Reorder,
    /// The tail may be lost: send a probe.
    Probe,
    /// Retransmission time-out.
    Repeat,
    /// The client's window is closed: ask whether it has opened.
    Persist,
}

/// An answer on its way. Offsets are in bytes from its first one.
#[derive(Clone, Debug)]
pub struct Flight {
    pub(crate) length: u32,
    /// Bytes of every segment but the last.
    pub(crate) unit: u32,
    pub(crate) count: u8,
    /// Everything below is acknowledged.
    pub(crate) una: u32,
    /// The client takes nothing at or beyond.
    pub(crate) edge: u32,
    /// First segment that was never sent.
    pub(crate) next: u8,
    /// One behind the highest segment that is known to have arrived.
    pub(crate) front: u8,
    /// Arrived, above `una`.
    pub(crate) sacked: Bits,
    /// Taken for lost, and not sent again yet.
    pub(crate) lost: Bits,
    /// Sent more than once.
    pub(crate) again: Bits,
    /// When each was last sent, in wrapping microseconds.
    pub(crate) sent_at: [u32; MAX_SEGMENTS as usize],
    pub(crate) newest: Newest,
    pub(crate) path: Path,
    pub(crate) recovery: Recovery,
    /// A loss was just found: one segment may leave whatever the window says.
    pub(crate) urgent: bool,
    /// Most segments that were ever on their way at once.
    pub(crate) peak: u16,
    pub(crate) probe: Probe,
    /// The client's window is closed, and it is to be asked about it.
    pub(crate) asking: bool,
    pub(crate) timer: Timer,
    pub(crate) deadline: Micros,
    /// When something was last sent, or last arrived: time-outs count from here.
    pub(crate) base: Micros,
    pub(crate) backoff: u8,
    /// When a byte last arrived.
    pub(crate) progress: Micros,
    /// No second reduction for a mark before all below this segment is acknowledged.
    pub(crate) reduced_until: u8,
    /// Patience does not grow a second time before this segment is acknowledged.
    pub(crate) patient_until: u8,
    /// Nothing came back once: perhaps what is too long for the path is lost without a word.
    pub(crate) narrow: bool,
}

/// The most recently sent segment of those that arrived (RFC 8985, 6.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newest {
    pub(crate) known: bool,
    pub(crate) sent_at: u32,
    pub(crate) segment: u8,
    pub(crate) round_trip: u32,
}

/// The life of a probe for a lost tail (RFC 8985, section 7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Probe {
    #[default]
    None,
    /// To be sent.
    Due,
    /// Sent, with a segment that had not been sent before.
    Fresh,
    /// Sent, with a segment that may have been lost.
    Repeated(u8),
}

impl Flight {
    /// An answer that begins now. `None`: it has too many segments, or none, and is not for us.
    pub fn begin(now: Micros, begin: &Begin) -> Option<Self> {
        let Begin { length, segment, window, mut path } = *begin;
        // A client whose whole window is less than two segments gets smaller ones, or it would never
        // be sent anything (RFC 9293, 3.8.6.2.1).
        let unit = if window >= 2 * segment { segment } else { (window / 2).min(segment) };
        if length == 0 || unit == 0 || length.div_ceil(unit) > MAX_SEGMENTS {
            return None;
        }
        path.restart(now);
        Some(Self {
            length,
            unit,
            count: u8::try_from(length.div_ceil(unit)).ok()?,
            una: 0,
            edge: window,
            next: 0,
            front: 0,
            sacked: Bits::default(),
            lost: Bits::default(),
            again: Bits::default(),
            sent_at: [0; MAX_SEGMENTS as usize],
            newest: Newest::default(),
            path,
            recovery: Recovery::Open,
            urgent: false,
            peak: 0,
            probe: Probe::None,
            asking: false,
            timer: Timer::None,
            deadline: 0,
            base: now,
            backoff: 0,
            progress: now,
            reduced_until: path.reduced.into(), // the first segment tells
            patient_until: 0,
            narrow: false,
        })
    }

    /// When [`on_time`](Self::on_time) is due; `None` once everything is acknowledged.
    pub fn deadline(&self) -> Option<Micros> {
        (self.timer != Timer::None).then_some(self.deadline)
    }

    /// What the connection's next answer begins with.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Everything below has arrived.
    pub fn acknowledged(&self) -> u32 {
        self.una
    }

    /// Whether segments should be no longer than what every path takes: a caller sends longer ones in
    /// pieces. A client that has a segment in pieces has it.
    pub fn is_narrow(&self) -> bool {
        self.narrow
    }

    /// Whether anything has arrived.
    pub fn has_arrived(&self) -> bool {
        self.una > 0 || self.front > 0
    }

    /// Whether every byte has arrived.
    pub fn is_done(&self) -> bool {
        self.una == self.length
    }

    /// Where segment `segment` begins.
    pub(crate) fn start(&self, segment: u8) -> u32 {
        (u32::from(segment) * self.unit).min(self.length)
    }

    /// One behind the last byte that was ever sent.
    pub(crate) fn sent(&self) -> u32 {
        self.start(self.next)
    }

    /// The segment in which the first missing byte lies.
    pub(crate) fn first(&self) -> u8 {
        if self.is_done() { self.count } else { (self.una / self.unit) as u8 }
    }

    /// Sent, and not known to have arrived.
    pub(crate) fn outstanding(&self) -> Bits {
        Bits::range(self.first(), self.next).without(self.sacked)
    }

    /// What the network is thought to hold.
    pub(crate) fn pipe(&self) -> u16 {
        self.outstanding().without(self.lost).count()
    }

    /// Holds the invariants of LIFECYCLE.md.
    pub fn check_invariants(&self) {
        let known = Bits::range(self.first(), self.next);
        assert!(self.una <= self.sent() && self.sent() <= self.length, "S1");
        assert!(self.sacked.without(known).is_empty(), "S2: only what was sent can have arrived");
        assert!(self.lost.without(known).is_empty(), "S2: only what was sent can be lost");
        assert!(self.lost.and(self.sacked).is_empty(), "S3: what arrived is not lost");
        assert!(self.path.window >= 1 && self.path.threshold >= 2, "S4");
        assert!(self.is_done() || self.next == 0 || self.timer != Timer::None, "S5: it wakes up");
        assert!(self.front <= self.next, "S2");
    }
}
