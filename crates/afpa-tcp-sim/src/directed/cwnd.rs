//! RFC 5681, 6928, 7661 and 9438: the congestion window, in segments.

use crate::sender::{BEGUN, Sender, warm, with_cwnd};
use crate::step::{Path, Step, ca_state, timer};
use crate::worker::Worker;

pub(super) fn the_initial_window(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 40, Path::default());
    assert_eq!(sender.send_all(BEGUN).len(), 10, "RFC 6928");
    assert_eq!(sender.state.ssthresh, 255, "RFC 5681, 3.1: arbitrarily high");
}

pub(super) fn slow_start(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 60, Path::default());
    sender.send_all(BEGUN);
    sender.ack_segments(BEGUN + 20_000, 2);
    assert_eq!(sender.state.cwnd, 12, "one for each that was acknowledged");
    assert_eq!(sender.send_all(BEGUN + 20_000).len(), 4, "two that were delivered, two more");
    sender.ack_segments(BEGUN + 20_000, 10);
    assert_eq!(sender.state.cwnd, 20, "doubled in a round trip");
    let mut huge = Sender::begin(worker, 4, with_cwnd(250, 255));
    huge.step(BEGUN, &Step::GrowCwnd(9));
    assert_eq!(huge.state.cwnd, 255, "more than two words of segments is of no use");
}

/// RFC 9438, 4.3, with beta 0.7: alpha = 3 * 0.3 / 1.7 = 9/17 of a segment each window; here 8/15.
pub(super) fn congestion_avoidance(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 60, with_cwnd(8, 8));
    sender.step(BEGUN, &Step::GrowCwnd(14));
    assert_eq!((sender.state.cwnd, sender.state.cwnd_cnt), (8, 14));
    sender.step(BEGUN, &Step::GrowCwnd(1));
    assert_eq!((sender.state.cwnd, sender.state.cwnd_cnt), (9, 0), "8 * 15/8 = 15");
    sender.step(BEGUN, &Step::GrowCwnd(15));
    assert_eq!((sender.state.cwnd, sender.state.cwnd_cnt), (9, 15));
    sender.step(BEGUN, &Step::GrowCwnd(3));
    assert_eq!((sender.state.cwnd, sender.state.cwnd_cnt), (10, 2), "9 * 15/8 = 16");
    let mut below = Sender::begin(worker, 60, with_cwnd(7, 8));
    below.step(BEGUN, &Step::GrowCwnd(1));
    assert_eq!((below.state.cwnd, below.state.cwnd_cnt), (8, 0), "below ssthresh: slow start");
}

/// RFC 9438, 4.6: 0.7 of cwnd, rounded down; RFC 5681, equation 4: not below two.
pub(super) fn a_reduction(worker: &mut Worker) {
    for (cwnd, reduced) in [(20, 14), (15, 10), (10, 7), (4, 2), (3, 2), (2, 2), (1, 2), (255, 178)]
    {
        let path = Path { cwnd_cnt: 1, ..with_cwnd(cwnd, 255) };
        let mut sender = Sender::begin(worker, 4, path);
        sender.step(BEGUN, &Step::ReduceCwnd);
        let state = &sender.state;
        assert_eq!((state.cwnd, state.ssthresh, state.cwnd_cnt), (reduced, reduced, 0), "{cwnd}");
    }
}

/// RFC 7661: a window of which less than half was used says nothing.
pub(super) fn an_unused_window_does_not_grow(worker: &mut Worker) {
    for (segments, cwnd) in [(4, 10), (5, 10), (6, 16)] {
        let mut sender = Sender::begin(worker, segments, warm());
        sender.send_all(BEGUN);
        sender.ack_segments(BEGUN + 20_000, segments);
        assert_eq!(sender.state.cwnd, cwnd, "after {segments} segments in flight");
    }
}

/// RFC 5681, 4.1: after more than an RTO without sending. The RTO is 20 ms + 200 ms here.
pub(super) fn an_idle_path_begins_anew(worker: &mut Worker) {
    for (idle, cwnd, expected) in
        [(220_000, 40, 40), (220_001, 40, 10), (5_000_000, 4, 4), (1_000, 40, 40)]
    {
        let path = Path { last_sent: BEGUN - idle, ..with_cwnd(cwnd, 30) };
        let sender = Sender::begin(worker, 60, path);
        assert_eq!(sender.state.cwnd, expected, "cwnd {cwnd} after {idle} us");
        assert_eq!(sender.state.ssthresh, 30);
    }
}

/// RFC 5681, 3.1, and RFC 8985, 6.3.
pub(super) fn a_retransmission_timeout(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    sender.send_all(BEGUN);
    let probed = sender.fire();
    sender.send_all(probed);
    assert_eq!(sender.state.timer, timer::RTO);
    let fired = sender.fire();
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (1, 7));
    assert_eq!(sender.state.ca_state, ca_state::LOSS);
    assert_eq!(sender.send_segments(fired), [0], "one segment, the first");
}

pub(super) fn a_second_timeout_reduces_nothing_more(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    sender.send_all(BEGUN);
    for _ in 0..4 {
        let fired = sender.fire();
        sender.send_all(fired);
    }
    assert_eq!(sender.state.rto_backoff, 3, "a probe, and three timeouts");
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (1, 7));
}

pub(super) fn recovery_after_a_timeout_is_slow_start(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    sender.send_all(BEGUN);
    let probed = sender.fire();
    sender.send_all(probed);
    let fired = sender.fire();
    sender.send_all(fired);
    sender.ack_segments(fired + 20_000, 1);
    assert_eq!(sender.state.cwnd, 2);
    assert_eq!(sender.send_segments(fired + 20_000), [1, 2]);
    sender.ack_segments(fired + 40_000, 3);
    assert_eq!(sender.send_segments(fired + 40_000), [3, 4, 5, 6]);
    sender.ack_segments(fired + 60_000, 11);
    assert_eq!(sender.state.ca_state, ca_state::OPEN, "all that had been sent is acknowledged");
}
