//! RFC 8985, section 7 (TLP), and RFC 6298, section 5 (RTO). The warm path has SRTT 20 ms, RTTVAR 10 ms: its PTO
//! is 40 ms, and its RTO 220 ms.

use crate::sender::{BEGUN, Sender, sack, warm};
use crate::step::{Path, Step, ca_state, progress, timer, tlp};
use crate::worker::Worker;

pub(super) fn probe_then_timeouts_that_double(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, warm());
    sender.send_all(BEGUN);
    let mut waits = Vec::new();
    let mut before = BEGUN;
    for _ in 0..6 {
        let fired = sender.fire();
        assert_eq!(sender.send_all(fired).len(), 1);
        waits.push((fired - before) / 1000);
        before = fired;
    }
    assert_eq!(waits, [40, 220, 440, 880, 1760, 3520], "milliseconds: PTO, RTO, twice as long ...");
}

/// 7.3 and 7.4: the last segment again; that it repaired a loss reduces cwnd.
pub(super) fn a_probe_repairs_a_lost_tail(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, warm());
    sender.send_all(BEGUN);
    sender.ack_segments(BEGUN + 20_000, 9);
    let cwnd = sender.state.cwnd;
    assert_eq!(cwnd, 19);
    // One segment in flight, so the receiver may delay its ACK: bounded by the RTO. SRTT stays, and RTTVAR falls.
    assert_eq!((sender.state.srtt, sender.state.rttvar), (20_000, 7_500));
    assert_eq!(sender.state.deadline, BEGUN + 20_000 + 220_000);
    let fired = sender.fire();
    assert_eq!(sender.send_segments(fired), [9]);
    assert_eq!((sender.state.tlp, sender.state.tlp_segment), (tlp::RETRANSMITTED, 9));
    assert_eq!(sender.state.timer, timer::RTO, "one probe");
    assert_eq!(sender.ack_segments(fired + 20_000, 10), progress::DONE);
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (13, 13), "0.7 of 19");
}

/// 7.3: new data if there is any, even beyond cwnd.
pub(super) fn a_probe_of_new_data(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 12, warm());
    sender.send_all(BEGUN); // ten
    let fired = sender.fire();
    assert_eq!(sender.send_segments(fired), [10]);
    assert_eq!(sender.state.tlp, tlp::NEW_DATA);
    sender.ack(fired + 20_000, &sack(2, &[]));
    assert_eq!(sender.state.tlp, tlp::NONE);
    assert_eq!(sender.state.cwnd, 12, "nothing was lost");
}

/// 7.4: a DSACK of the probe says that nothing was lost, and nothing about reordering.
pub(super) fn a_probe_that_was_not_needed(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, warm());
    sender.send_all(BEGUN);
    let fired = sender.fire();
    assert_eq!(sender.send_segments(fired), [9]);
    sender.ack(fired + 1_000, &sack(9, &[]));
    let cwnd = sender.state.cwnd;
    sender.ack(fired + 2_000, &sack(10, &[(9, 10)]));
    assert!(sender.state.cwnd >= cwnd);
    assert_eq!((sender.state.ssthresh, sender.state.reordering_seen), (255, 0));
    assert_eq!(sender.state.reo_wnd_mult, 1);
}

/// RFC 6298, 5.7: an ACK of new data ends the back-off. The slow path is taken, for something was retransmitted.
pub(super) fn progress_ends_the_backoff(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, warm());
    sender.send_all(BEGUN);
    let mut fired = BEGUN;
    for _ in 0..4 {
        fired = sender.fire();
        sender.send_all(fired);
    }
    assert_eq!(sender.state.rto_backoff, 3);
    assert_eq!(sender.state.deadline - fired, 8 * 220_000);
    sender.ack_segments(fired + 20_000, 1);
    assert_eq!(sender.state.rto_backoff, 0);
    sender.send_all(fired + 20_000);
    assert_eq!(sender.state.timer, timer::RTO, "no probe in a recovery");
    assert_eq!(sender.state.ca_state, ca_state::LOSS);
    assert_eq!(sender.state.deadline, fired + 20_000 + 220_000, "Karn: no sample, no back-off");
}

/// The client has vanished: given up after a minute without progress.
pub(super) fn a_minute_of_silence(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, Path::default());
    sender.send_all(BEGUN);
    sender.ack_segments(BEGUN + 1_000_000, 1);
    sender.send_all(BEGUN + 1_000_000);
    let silent = BEGUN + 1_000_000 + 60_000_000;
    assert!(sender.state.deadline < silent);
    while sender.state.deadline < silent {
        let now = sender.state.deadline;
        assert_eq!(sender.step(now, &Step::Timer), progress::GOING);
        sender.send_all(now);
    }
    assert_eq!(sender.step(sender.state.deadline, &Step::Timer), progress::GIVEN_UP);
}

/// RFC 6298, 5.1: the timer counts from the last segment that left.
pub(super) fn what_is_sent_restarts_the_timer(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, warm());
    sender.step(BEGUN, &Step::Poll);
    sender.step(BEGUN, &Step::Poll);
    assert_eq!(sender.state.deadline, BEGUN + 40_000);
    sender.step(BEGUN + 3_000, &Step::Poll);
    assert_eq!(sender.state.deadline, BEGUN + 3_000 + 40_000);
}
