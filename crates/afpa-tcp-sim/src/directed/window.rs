//! RFC 9293, 3.8.6: the client's window.

use crate::sender::{BEGUN, MSS, Sender, sack, warm};
use crate::step::{Ack, Step, progress, timer};
use crate::worker::Worker;

fn begin(worker: &mut Worker, segments: u32, window: u32) -> Sender<'_> {
    let length = segments * MSS;
    Sender::begin_with(worker, BEGUN, length, MSS, window, warm()).expect("a transfer")
}

fn ack(bytes: u32, wnd: u32) -> Ack {
    Ack { ack: bytes, wnd, ..sack(0, &[]) }
}

pub(super) fn the_window_is_never_exceeded(worker: &mut Worker) {
    for (window, whole) in [(3 * MSS, 3), (4 * MSS - 1, 3), (4 * MSS, 4), (4 * MSS + 1, 4)] {
        let mut sender = begin(worker, 10, window);
        assert_eq!(sender.send_all(BEGUN).len(), whole, "{window}: whole segments alone");
    }
    let mut sender = begin(worker, 10, 3 * MSS);
    sender.send_all(BEGUN);
    sender.ack(BEGUN + 20_000, &ack(MSS, 2 * MSS));
    assert_eq!(sender.send_all(BEGUN + 20_000).len(), 0, "the same right edge");
    sender.ack(BEGUN + 20_000, &ack(MSS, 3 * MSS));
    assert_eq!(sender.send_segments(BEGUN + 20_000), [3]);
    sender.ack(BEGUN + 20_000, &ack(MSS, u32::MAX));
    assert_eq!(sender.state.snd_wnd_end, u64::from(u32::MAX), "no wrap");
}

/// 3.8.6.2.1: half the window, or a client with less than two segments of it would wait for ever.
pub(super) fn a_small_window_gets_small_segments(worker: &mut Worker) {
    for (window, mss) in [(2 * MSS, MSS), (2 * MSS - 1, MSS - 1), (1000, 500)] {
        let sender = begin(worker, 3, window);
        assert_eq!(sender.state.mss, u64::from(mss), "{window}");
    }
    for (length, window) in [(0, 65_535), (MSS, 1), (129 * MSS, 1 << 20), (128 * MSS + 1, 1 << 20)]
    {
        let sender = Sender::begin_with(worker, BEGUN, length, MSS, window, warm());
        assert!(sender.is_none(), "{length} in a window of {window}");
    }
    assert!(Sender::begin_with(worker, BEGUN, 128 * MSS, MSS, 1 << 20, warm()).is_some());
}

/// 3.8.6.1: an empty segment below what the client expects, less and less often.
pub(super) fn a_closed_window_is_probed(worker: &mut Worker) {
    let mut sender = begin(worker, 10, 3 * MSS);
    sender.send_all(BEGUN);
    sender.ack(BEGUN + 20_000, &ack(3 * MSS, 0));
    assert!(sender.send_all(BEGUN + 20_000).is_empty());
    assert_eq!(sender.state.timer, timer::PERSIST);
    let mut before = BEGUN + 20_000;
    for backoff in 0..4 {
        assert_eq!(sender.state.deadline - before, 220_000 << backoff);
        before = sender.fire();
        let sent = sender.send_all(before);
        assert_eq!(sent.len(), 1);
        assert_eq!((sent[0].offset, sent[0].length, sent[0].ect), (3 * MSS, 0, false));
    }
    sender.ack(before, &ack(3 * MSS, 4 * MSS));
    assert_eq!(sender.send_segments(before), [3, 4, 5, 6]);
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (10, 255), "no congestion");
}

/// A window of less than a segment: the probe carries the bytes that the client accepts.
pub(super) fn a_probe_fills_what_is_open(worker: &mut Worker) {
    let mut sender = begin(worker, 5, 3 * MSS);
    sender.send_all(BEGUN);
    sender.ack(BEGUN + 20_000, &ack(3 * MSS, 100));
    let now = sender.fire();
    let sent = sender.send_all(now);
    assert_eq!((sent[0].offset, sent[0].length, sent[0].last), (3 * MSS, 100, false));
    sender.ack(now + 20_000, &ack(3 * MSS + 100, 4 * MSS));
    let sent = sender.send_all(now + 20_000);
    let lengths: Vec<(u32, u32)> = sent.iter().map(|one| (one.offset, one.length)).collect();
    assert_eq!(lengths, [(3 * MSS + 100, MSS - 100), (4 * MSS, MSS)], "the rest of it");
}

pub(super) fn half_a_segment_is_not_sent_again(worker: &mut Worker) {
    let mut sender = begin(worker, 4, 1 << 20);
    sender.send_all(BEGUN);
    sender.ack(BEGUN + 20_000, &ack(MSS + 300, 1 << 20));
    sender.step(BEGUN + 20_000, &Step::MtuLowered);
    let again = sender.send_all(BEGUN + 20_000);
    assert_eq!((again[0].offset, again[0].length), (MSS + 300, MSS - 300));
    assert_eq!((again[1].offset, again[1].length), (2 * MSS, MSS));
    assert_eq!(sender.ack(BEGUN + 40_000, &ack(4 * MSS, 1 << 20)), progress::DONE);
}
