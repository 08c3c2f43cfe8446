//! RFC 3168, section 6.1: ECE reduces cwnd once a window, and the client is sent CWR once.

use crate::sender::{BEGUN, Sender, sack, warm};
use crate::step::{Ack, Path, Step, ca_state, progress, tlp};
use crate::worker::Worker;

const NOW: u64 = BEGUN + 20_000;

fn ece(ack: Ack) -> Ack {
    Ack { ece: true, ..ack }
}

pub(super) fn one_reduction_a_window(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 40, warm());
    sender.send_all(BEGUN);
    sender.ack(NOW, &ece(sack(2, &[])));
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (8, 8), "0.7 of 12, as after a loss");
    // The client repeats it in every ACK until CWR comes.
    let mut told = 0;
    for acked in 3..=10 {
        sender.ack(NOW, &ece(sack(acked, &[])));
        told += sender.send_all(NOW).iter().filter(|sent| sent.cwr).count();
    }
    assert_eq!(told, 1);
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (8, 8), "one reduction");
    // The segment with CWR was delivered, and still the client says so: that is a new mark.
    sender.ack(NOW + 20_000, &ece(sack(11, &[])));
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (5, 5), "0.7 of 8");
}

pub(super) fn ece_at_the_end_is_told_with_the_next_transfer(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, warm());
    assert!(sender.send_all(BEGUN).iter().all(|sent| sent.ect && !sent.cwr));
    assert_eq!(sender.ack(NOW, &ece(sack(4, &[]))), progress::DONE);
    let path = sender.state.path();
    assert!(path.cwr_pending);
    assert_eq!(path.cwnd, 7, "0.7 of cwnd, however little was in flight");
    let mut next = Sender::begin(worker, 4, Path { last_sent: BEGUN, ..path });
    let cwr: Vec<bool> = next.send_all(BEGUN).iter().map(|sent| sent.cwr).collect();
    assert_eq!(cwr, [true, false, false, false]);
    assert_eq!(next.state.cwr_pending, 0);
    next.ack(BEGUN, &ece(sack(0, &[])));
    assert_eq!(next.state.cwnd, 7, "the request said it again, before CWR came");
}

pub(super) fn retransmissions_are_not_ecn_capable(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, Path { cwr_pending: true, ..warm() });
    sender.send_all(BEGUN);
    let mut again = Vec::new();
    while again.len() < 4 {
        let now = sender.fire();
        again.extend(sender.send_all(now).into_iter().filter(|sent| sent.retransmitted));
    }
    assert!(again.iter().all(|sent| !sent.ect && !sent.cwr), "{again:?}");
}

pub(super) fn ece_in_a_recovery(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 40, warm());
    sender.send_all(BEGUN);
    sender.ack(NOW, &sack(0, &[(1, 5)]));
    assert_eq!(sender.state.cwnd, 7);
    sender.ack(NOW, &ece(sack(0, &[(1, 10)])));
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (7, 7), "once a window, for a loss");
    let sent = sender.send_all(NOW);
    assert!(sent.iter().filter(|sent| !sent.retransmitted).any(|sent| sent.cwr), "{sent:?}");
    assert!(sent.iter().filter(|sent| sent.retransmitted).all(|sent| !sent.cwr), "{sent:?}");
}

/// The request carries ECE, and its ACK is processed a second time when the transfer is on its way.
pub(super) fn ece_with_the_request(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    sender.step(BEGUN, &Step::RequestEce);
    assert_eq!((sender.state.cwnd, sender.state.cwr_pending), (7, 1));
    let sent = sender.send_all(BEGUN);
    assert_eq!(sent.iter().map(|one| one.cwr).filter(|cwr| *cwr).count(), 1);
    assert!(sent[0].cwr);
    sender.ack(BEGUN + 100, &ece(sack(0, &[])));
    assert_eq!(sender.state.cwnd, 7);
    let mut again = Sender::begin(worker, 20, Path { cwr_pending: true, ..warm() });
    again.step(BEGUN, &Step::RequestEce);
    assert_eq!(again.state.cwnd, 10, "reduced already, before this transfer");
}

/// One ACK ends a probe's repair (RFC 8985, 7.4), carries ECE, and shows a loss: that is one window's congestion.
pub(super) fn one_reduction_for_several_signs(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, warm());
    assert_eq!(sender.send_all(BEGUN).len(), 10);
    let probed = sender.fire();
    assert_eq!(sender.state.tlp, tlp::DUE);
    // There is nothing new: the probe sends the last segment again.
    assert_eq!(sender.send_segments(probed), [9]);
    let before = sender.state.cwnd;
    // Segment 9 is delivered by the probe, 1 to 8 as well, and 0 is lost.
    sender.ack(probed + 20_000, &ece(sack(0, &[(1, 10)])));
    assert_eq!(sender.state.ca_state, ca_state::FAST_RECOVERY, "the loss is repaired all the same");
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (before * 7 / 10, before * 7 / 10));
    assert_eq!(sender.state.cwr_pending, 1, "the client is to be told of it");
}

/// A loss of the window that an ECE has reduced begins a recovery, and reduces nothing more.
pub(super) fn a_loss_behind_an_ece(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 40, warm());
    sender.send_all(BEGUN);
    sender.ack(NOW, &ece(sack(1, &[])));
    let reduced = sender.state.cwnd;
    sender.ack(NOW, &sack(1, &[(2, 8)]));
    assert_eq!(sender.state.ca_state, ca_state::FAST_RECOVERY);
    assert_eq!(sender.state.cwnd, reduced);
}
