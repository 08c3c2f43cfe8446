//! RFC 2883 and 4015: retransmissions that were spurious cost no cwnd.

use crate::sender::{BEGUN, Sender, sack, warm};
use crate::step::{Ack, Path, progress};
use crate::worker::Worker;

const NOW: u64 = BEGUN + 20_000;

/// Ten segments of which the first is overtaken by four others, and retransmitted: cwnd 7.
fn reduced(worker: &mut Worker) -> Sender<'_> {
    let mut sender = Sender::begin(worker, 10, warm());
    sender.send_all(BEGUN);
    sender.ack(NOW, &sack(0, &[(1, 5)]));
    assert_eq!(sender.send_segments(NOW), [0]);
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (7, 7));
    sender
}

pub(super) fn all_spurious_restores_cwnd_and_ssthresh(worker: &mut Worker) {
    let mut sender = reduced(worker);
    sender.ack(NOW + 1_000, &sack(5, &[]));
    assert_eq!(sender.state.cwnd, 7, "nothing says yet which of the two was delivered");
    sender.ack(NOW + 21_000, &sack(5, &[(0, 1)]));
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (10, 255));
    assert_eq!((sender.state.undo_cwnd, sender.state.undo_retrans), (0, 0));
    assert_eq!((sender.state.reo_wnd_mult, sender.state.reo_wnd_persist), (2, 16));
}

pub(super) fn one_of_two_restores_nothing(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, warm());
    sender.send_all(BEGUN);
    sender.ack(NOW, &sack(0, &[(2, 6)]));
    assert_eq!(sender.send_segments(NOW), [0, 1]);
    sender.ack(NOW + 1_000, &sack(6, &[]));
    sender.ack(NOW + 20_000, &sack(6, &[(0, 1)]));
    assert_eq!((sender.state.cwnd, sender.state.undo_retrans), (7, 1), "the other may be a loss");
    sender.ack(NOW + 20_100, &sack(6, &[(1, 2)]));
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (10, 255));
}

/// Of a short transfer the DSACK comes when the next one is on its way.
pub(super) fn the_next_transfer_restores_it(worker: &mut Worker) {
    let mut sender = reduced(worker);
    assert_eq!(sender.ack_segments(NOW + 1_000, 10), progress::DONE);
    let path = sender.state.path();
    assert_eq!((path.cwnd, path.undo_retrans), (7, 1));
    let mut next = Sender::begin(worker, 10, Path { last_sent: BEGUN, ..path });
    next.send_all(BEGUN);
    next.ack(NOW, &Ack { earlier_dsack: true, ..sack(0, &[]) });
    assert_eq!((next.state.cwnd, next.state.ssthresh), (10, 255));
}

pub(super) fn an_old_timestamp_restores_at_once(worker: &mut Worker) {
    let mut sender = reduced(worker);
    let tsecr = Some((BEGUN / 1000) as u32);
    sender.ack(NOW + 1_000, &Ack { tsecr, ..sack(5, &[]) });
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (10, 255));
    assert_eq!(sender.state.reordering_seen, 1);
    let mut real = reduced(worker);
    let tsecr = Some((NOW / 1000) as u32);
    real.ack(NOW + 20_000, &Ack { tsecr, ..sack(5, &[]) });
    assert_eq!((real.state.cwnd, real.state.ssthresh), (7, 7), "an echo of the retransmission");
}

/// RFC 7323, 4.3: beyond a gap, the echo is that of the last segment before the gap.
pub(super) fn a_timestamp_behind_a_gap_says_nothing(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, warm());
    sender.send_all(BEGUN);
    let probed = sender.fire();
    assert_eq!(sender.send_segments(probed), [3]);
    let now = probed + 20_000;
    sender.ack(now, &Ack { tsecr: Some((BEGUN / 1000) as u32 - 1), ..sack(0, &[(3, 4)]) });
    assert_eq!(sender.send_segments(now), [0, 1, 2], "at once, not after a timeout");
    assert_eq!(sender.state.reordering_seen, 0);
    assert!(sender.state.cwnd < 10);
}

pub(super) fn copies_of_the_network_say_nothing(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, warm());
    sender.send_all(BEGUN);
    sender.ack_segments(NOW, 3);
    let before = sender.state.path();
    sender.ack(NOW + 100, &sack(3, &[(1, 2)]));
    sender.ack(NOW + 200, &Ack { earlier_dsack: true, ..sack(3, &[]) });
    assert_eq!(sender.state.path(), before);
}

pub(super) fn a_timeout_cannot_be_undone(worker: &mut Worker) {
    let mut sender = reduced(worker);
    let fired = sender.fire();
    sender.send_all(fired);
    assert_eq!((sender.state.cwnd, sender.state.undo_cwnd), (1, 0));
    sender.ack(fired + 1_000, &sack(5, &[(0, 1)]));
    assert!(sender.state.cwnd <= 6, "slow start: {}", sender.state.cwnd);
    assert_eq!(sender.state.ssthresh, 7);
}
