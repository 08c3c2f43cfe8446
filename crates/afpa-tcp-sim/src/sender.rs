//! One sender, driven by hand, for directed tests.

use crate::oracle;
use crate::step::{Ack, Micros, Path, SenderState, Step, Transmission};
use crate::worker::Worker;

/// When [`Sender::begin`] begins its transfer.
pub const BEGUN: Micros = 5_000_000;

/// The payload of its segments.
pub const MSS: u32 = 1448;

/// A transfer on its way. Every step is held against the [oracle]; a rule that is broken panics.
pub struct Sender<'w> {
    worker: &'w mut Worker,
    /// After the last step.
    pub state: SenderState,
}

impl<'w> Sender<'w> {
    /// A transfer of so many full segments that begins at [`BEGUN`] with a window of a megabyte. Nothing has
    /// left yet.
    pub fn begin(worker: &'w mut Worker, segments: u32, path: Path) -> Self {
        let length = segments * MSS;
        Self::begin_with(worker, BEGUN, length, MSS, 1 << 20, path).expect("a transfer")
    }

    /// A transfer. None: the sender does not take it.
    pub fn begin_with(
        worker: &'w mut Worker,
        now: Micros,
        length: u32,
        segment: u32,
        window: u32,
        path: Path,
    ) -> Option<Self> {
        let mut sender = Self { worker, state: SenderState::default() };
        let begun = sender.step(now, &Step::Begin { length, segment, window, path });
        (begun == 1).then_some(sender)
    }

    /// Takes any step. Returns the step's result.
    pub fn step(&mut self, now: Micros, step: &Step) -> u64 {
        let after = self.worker.step(0, now, step);
        if let Err(broken) = oracle::check(&self.state, now, step, &after) {
            panic!("{broken}\nbefore {:?}\nat {now} {step:?}\nafter {after:?}", self.state);
        }
        self.state = after;
        after.result
    }

    /// All that may leave now.
    pub fn send_all(&mut self, now: Micros) -> Vec<Transmission> {
        let mut sent = Vec::new();
        while self.step(now, &Step::Poll) == 1 {
            sent.push(self.state.transmission());
        }
        sent
    }

    /// The numbers of the segments that may leave now.
    pub fn send_segments(&mut self, now: Micros) -> Vec<u32> {
        self.send_all(now).iter().map(|sent| sent.offset / MSS).collect()
    }

    /// An ACK; the `enum progress`.
    pub fn ack(&mut self, now: Micros, ack: &Ack) -> u64 {
        self.step(now, &Step::Ack(*ack))
    }

    /// A cumulative ACK of so many segments.
    pub fn ack_segments(&mut self, now: Micros, segments: u32) -> u64 {
        self.ack(now, &sack(segments, &[]))
    }

    /// Lets the timer fire; returns when.
    pub fn fire(&mut self) -> Micros {
        let deadline = self.state.deadline;
        self.step(deadline, &Step::Timer);
        deadline
    }
}

/// An ACK of the segments below `ack`, with blocks of segments.
pub fn sack(ack: u32, blocks: &[(u32, u32)]) -> Ack {
    let mut all = [(0, 0); 4];
    for (place, (from, to)) in all.iter_mut().zip(blocks) {
        *place = (from * MSS, to * MSS);
    }
    Ack { ack: ack * MSS, wnd: 1 << 20, sack: all, ..Ack::default() }
}

/// A path whose RTT was once measured, as 20 ms, and that was used just now.
pub fn warm() -> Path {
    Path {
        last_sent: BEGUN,
        srtt: 20_000,
        rttvar: 10_000,
        min_rtt: 20_000,
        cwnd: 10,
        ssthresh: 255,
        reo_wnd_mult: 1,
        ..Path::default()
    }
}

/// The same path with another cwnd and ssthresh.
pub fn with_cwnd(cwnd: u32, ssthresh: u32) -> Path {
    Path { cwnd, ssthresh, ..warm() }
}
