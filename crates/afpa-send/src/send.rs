//! What leaves next.

use crate::Micros;
use crate::flight::{Flight, Probe, Recovery};
use crate::path::Undo;

/// Bytes to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Of the answer.
    pub offset: u32,
    /// Zero asks whether a closed window has opened: an empty segment one byte below `offset`.
    pub length: u32,
    /// It was sent before.
    pub again: bool,
    /// Tell the client that a mark was heard (CWR, RFC 3168). Never on bytes sent again.
    pub reduced: bool,
    /// The network may mark it instead of dropping it (ECT, RFC 3168): new data, and no question about the
    /// window.
    pub markable: bool,
    /// The last bytes of the answer.
    pub last: bool,
}

impl Flight {
    /// The next segment to send, if one may leave now. Call it until there is none; a caller that
    /// stops earlier, to bound its work, goes on after the next acknowledgement.
    pub fn poll_send(&mut self, now: Micros) -> Option<Send> {
        let send = self.choose(now)?;
        self.base = now;
        self.set_timer(now);
        Some(send)
    }

    fn choose(&mut self, now: Micros) -> Option<Send> {
        if self.asking {
            self.asking = false;
            return Some(self.ask(now));
        }
        if self.probe == Probe::Due {
            self.probe = Probe::None;
            if let Some(segment) = self.tail() {
                let fresh = segment == self.next;
                self.probe = if fresh { Probe::Fresh } else { Probe::Repeated(segment) };
                return Some(self.send(now, segment));
            }
        }
        let segment = self.ready()?;
        self.urgent = false;
        Some(self.send(now, segment))
    }

    /// The segment that may leave now: what was lost goes before what is new.
    pub(crate) fn ready(&self) -> Option<u8> {
        let room = self.pipe() < self.path.window;
        match self.lost.first() {
            Some(segment) => ((room || self.urgent) && self.fits(segment)).then_some(segment),
            None => (room && self.fits(self.next)).then_some(self.next),
        }
    }

    /// Whether the client takes the segment whole (RFC 9293, 3.8.6.2.1: no silly windows).
    fn fits(&self, segment: u8) -> bool {
        segment < self.count && self.start(segment + 1) <= self.edge
    }

    /// What a probe consists of: something new if the client takes it, else the last thing it is not
    /// known to have.
    fn tail(&self) -> Option<u8> {
        let last = self.outstanding().last().filter(|&segment| self.fits(segment));
        if self.fits(self.next) { Some(self.next) } else { last }
    }

    fn send(&mut self, now: Micros, segment: u8) -> Send {
        let again = segment < self.next;
        if again {
            self.again.set(segment);
            self.lost.clear(segment);
            self.path.repeated();
        } else {
            self.next = segment + 1;
        }
        self.sent_at[usize::from(segment)] = now as u32;
        self.path.used = now;
        self.peak = self.peak.max(self.pipe());
        // What is already there need not come again: a client may take half a segment.
        let offset = self.start(segment).max(self.una);
        let end = self.start(segment + 1);
        let reduced = !again && std::mem::take(&mut self.path.reduced);
        let last = end == self.length;
        Send { offset, length: end - offset, again, reduced, markable: !again, last }
    }

    /// Asks whether the window has opened: with the bytes that it takes, if there are any.
    fn ask(&mut self, now: Micros) -> Send {
        let segment = self.first();
        let end = self.start(segment + 1).min(self.edge).max(self.una);
        let again = segment < self.next;
        let mut reduced = false;
        if end > self.una {
            // Sent in part: the rest of it is owed.
            reduced = self.send(now, segment).reduced;
            self.lost.set(segment);
        }
        Send {
            offset: self.una,
            length: end - self.una,
            again,
            reduced,
            markable: false,
            last: end == self.length,
        }
    }

    /// Everything that is on its way is taken for lost: nothing came back in time.
    pub(crate) fn lose_all(&mut self) {
        // A loss that was known has reduced the window already.
        if self.recovery == Recovery::Open {
            self.path.shrink();
        }
        self.path.window = 1;
        self.recovery = Recovery::Slow(self.next);
        self.path.undo = Undo::default();
        self.lost = self.outstanding();
        self.probe = Probe::None;
        self.newest.known = false;
        self.urgent = true;
        self.narrow = true;
    }
}
