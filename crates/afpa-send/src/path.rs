//! What a connection remembers of its path from one answer to the next.

use crate::{INITIAL_WINDOW, Micros, Rtt};

/// Segments that the congestion window may grow to; more than an answer has are of no use.
const WINDOW_MAX: u16 = 256;

/// A connection's congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Round trips.
    pub rtt: Rtt,
    /// Congestion window, segments.
    pub window: u16,
    /// Slow start ends here, segments.
    pub threshold: u16,
    /// Quarters of the shortest round trip that a segment may be late without being lost;
    /// 0 until reordering was seen (RFC 8985, 6.2).
    pub patience: u8,
    /// When something was last sent.
    pub used: Micros,
    /// The window was reduced for a mark, and the client is still to be told (CWR, RFC 3168).
    pub reduced: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            rtt: Rtt::default(),
            window: INITIAL_WINDOW,
            threshold: WINDOW_MAX,
            patience: 0,
            used: 0,
            reduced: false,
        }
    }
}

impl Path {
    /// After an idle time the window says nothing about the path any more (RFC 5681, 4.1).
    pub(crate) fn restart(&mut self, now: Micros) {
        if now.saturating_sub(self.used) > self.rtt.time_out(0) {
            self.window = self.window.min(INITIAL_WINDOW);
        }
    }

    /// `acked` segments arrived while the window was made use of. `credit` collects what does not make
    /// a whole segment yet (RFC 5681, 3.1, with appropriate byte counting).
    pub(crate) fn grow(&mut self, acked: u16, credit: &mut u16) {
        if self.window < self.threshold {
            self.window = (self.window + acked).min(WINDOW_MAX);
            return;
        }
        *credit += acked;
        if *credit >= self.window {
            *credit -= self.window;
            self.window = (self.window + 1).min(WINDOW_MAX);
        }
    }

    /// The network marked instead of dropping: half the window (RFC 3168, 6.1.2), whatever it was made use of.
    pub(crate) fn marked(&mut self) {
        self.shrink(self.window);
        self.reduced = true;
    }

    /// Something was lost while `outstanding` segments were on their way (RFC 5681, 3.2).
    pub(crate) fn shrink(&mut self, outstanding: u16) {
        self.threshold = (outstanding / 2).max(2);
        self.window = self.threshold;
    }

    /// Nothing came back at all (RFC 5681, 3.1): begin again.
    pub(crate) fn collapse(&mut self, outstanding: u16) {
        self.shrink(outstanding);
        self.window = 1;
    }

    /// How late a segment may be.
    pub(crate) fn lateness(&self) -> u32 {
        let quarters = self.rtt.shortest / 4 * u32::from(self.patience);
        quarters.min(self.rtt.smoothed)
    }

    /// A segment overtook another one, or was sent again in vain.
    pub(crate) fn reordered(&mut self) {
        self.patience = self.patience.max(1);
    }

    /// The receiver says that it had a segment already.
    pub(crate) fn sent_in_vain(&mut self) {
        self.patience = self.patience.saturating_add(1).min(16);
    }
}
