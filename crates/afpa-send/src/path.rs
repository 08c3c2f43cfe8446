//! What a connection remembers of its path from one answer to the next.

use crate::{INITIAL_WINDOW, Micros, Rtt};

/// Segments that the congestion window may grow to; more than an answer has are of no use.
const WINDOW_MAX: u16 = 255;
/// Recoveries that patience outlives (RFC 8985, 6.2, step 4).
const PERSIST: u8 = 16;

/// A connection's congestion state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Round trips.
    pub rtt: Rtt,
    /// Congestion window, segments.
    pub window: u16,
    /// Slow start ends here, segments.
    pub threshold: u16,
    /// Segments acknowledged towards the next growth of the window: an answer alone is seldom enough.
    pub credit: u16,
    /// A segment was seen to overtake another one.
    pub reordering: bool,
    /// Quarters of the shortest round trip that a segment may then be late without being lost (RFC 8985,
    /// 6.2).
    pub patience: u8,
    /// Recoveries without a needless repetition before that is one quarter again.
    pub persist: u8,
    /// How to take the last reduction back.
    pub undo: Undo,
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
            credit: 0,
            reordering: false,
            patience: 1,
            persist: 0,
            undo: Undo::default(),
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
    /// a whole segment yet (RFC 5681, 3.1, with appropriate byte counting). Who gives up less at a loss
    /// grows slower: a segment for 15/8 windows (RFC 9438, 4.3).
    pub(crate) fn grow(&mut self, acked: u16) {
        if self.window < self.threshold {
            self.window = (self.window + acked).min(WINDOW_MAX);
            return;
        }
        let whole = self.window * 15 / 8;
        self.credit += acked;
        if self.credit >= whole {
            self.credit -= whole;
            self.window = (self.window + 1).min(WINDOW_MAX);
        }
    }

    /// The network marked instead of dropping: the same as a loss, once, and the client is to be told (RFC 3168).
    pub(crate) fn marked(&mut self) {
        self.shrink();
        self.reduced = true;
    }

    /// Something was lost: to seven tenths (RFC 9438, 4.6), of the window as CUBIC does in the
    /// kernel, not of what happens to be on its way: answers are short, and seldom fill it.
    pub(crate) fn shrink(&mut self) {
        self.threshold = (self.window * 7 / 10).max(2);
        self.window = self.threshold;
        self.credit = 0;
    }

    /// How late a segment may be.
    pub(crate) fn lateness(&self) -> u32 {
        let quarters = self.rtt.shortest / 4 * u32::from(self.patience);
        quarters.min(self.rtt.smoothed)
    }

    /// Something was sent again in vain since the last round trip: more patience.
    pub(crate) fn wait_longer(&mut self) {
        self.reordering = true; // nothing else makes a repetition needless
        self.patience = self.patience.saturating_add(1);
        self.persist = PERSIST;
    }

    /// A recovery has ended: after so many that were not needless, less patience.
    pub(crate) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.patience = 1;
        }
    }

    /// A recovery begins: the window as it is may come back.
    pub(crate) fn remember(&mut self) {
        let [window, threshold] = [self.window, self.threshold].map(|segments| segments as u8);
        self.undo = Undo { window, threshold, open: 0 };
    }

    /// A segment is sent again.
    pub(crate) fn repeated(&mut self) {
        self.undo.open = self.undo.open.saturating_add(1);
    }

    /// The client had so many of the segments that were sent again. With the last of them the recovery has
    /// proven needless as a whole.
    pub(crate) fn needless(&mut self, segments: u8) {
        self.undo.open = self.undo.open.saturating_sub(segments);
        if segments > 0 && self.undo.window > 0 && self.undo.open == 0 {
            self.window = self.window.max(self.undo.window.into());
            self.threshold = self.threshold.max(self.undo.threshold.into());
            self.undo = Undo::default();
        }
    }
}

/// The window as it was before a reduction that may prove needless. It is the connection's: that a
/// repetition was in vain is often heard only when the next answer is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Undo {
    /// Segments; 0: there is nothing to take back.
    pub window: u8,
    /// Segments.
    pub threshold: u8,
    /// Segments sent again that have not proven needless.
    pub open: u8,
}
