//! RFC 8985, section 6. The RTT is 20 ms, so the smallest reordering window is 5 ms.

use crate::sender::{BEGUN, Sender, sack, warm};
use crate::step::{Path, ca_state, timer};
use crate::worker::Worker;

const RTT: u64 = 20_000;

fn ten(worker: &mut Worker, path: Path) -> Sender<'_> {
    let mut sender = Sender::begin(worker, 10, path);
    assert_eq!(sender.send_all(BEGUN).len(), 10);
    sender
}

/// 6.2, step 4: with DupThresh segments SACKed and no reordering seen, the reordering window is zero.
pub(super) fn three_blocks_lose_at_once(worker: &mut Worker) {
    let mut sender = ten(worker, warm());
    sender.ack(BEGUN + RTT, &sack(0, &[(1, 4)]));
    assert_eq!(sender.state.lost(), 1);
    assert_eq!(sender.state.ca_state, ca_state::FAST_RECOVERY);
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (7, 7), "0.7 of 10");
    assert_eq!((sender.state.undo_cwnd, sender.state.undo_ssthresh), (10, 255));
    assert_eq!(sender.send_segments(BEGUN + RTT), [0]);
    assert_eq!(sender.state.recovery_point, 10);
}

pub(super) fn two_blocks_wait_a_quarter_of_the_rtt(worker: &mut Worker) {
    let mut sender = ten(worker, warm());
    sender.ack(BEGUN + RTT, &sack(0, &[(1, 3)]));
    assert_eq!((sender.state.lost(), sender.state.cwnd), (0, 10));
    assert_eq!(sender.state.timer, timer::RACK);
    assert_eq!(sender.state.deadline, BEGUN + RTT + RTT / 4);
    sender.fire();
    assert_eq!((sender.state.lost(), sender.state.cwnd), (1, 7));
}

/// 5.1: segments that left at the same time are ordered by their sequence numbers.
pub(super) fn segments_that_left_together(worker: &mut Worker) {
    let mut sender = ten(worker, warm());
    sender.ack(BEGUN + RTT, &sack(0, &[(4, 7)]));
    assert_eq!(sender.state.lost(), 0b1111, "those before; 7, 8 and 9 may be on their way");
    assert_eq!(sender.state.rack_segment, 6);
    assert_eq!(sender.state.rack_rtt, RTT);
}

/// 6.2, step 4: `reo_wnd_mult` quarters of the minimum RTT, also with three segments SACKed.
pub(super) fn reordering_widens_the_window(worker: &mut Worker) {
    let path = Path { reordering_seen: true, reo_wnd_mult: 3, reo_wnd_persist: 16, ..warm() };
    let mut sender = ten(worker, path);
    sender.ack(BEGUN + RTT, &sack(0, &[(1, 5)]));
    assert_eq!((sender.state.lost(), sender.state.timer), (0, timer::RACK));
    assert_eq!(sender.state.deadline, BEGUN + RTT + 3 * RTT / 4);
}

pub(super) fn the_window_is_bounded_by_srtt(worker: &mut Worker) {
    let path = Path { reordering_seen: true, reo_wnd_mult: 8, reo_wnd_persist: 16, ..warm() };
    let mut sender = ten(worker, path);
    sender.ack(BEGUN + RTT, &sack(0, &[(1, 5)]));
    assert_eq!(sender.state.deadline, BEGUN + RTT + RTT, "not eight quarters of it");
}

/// Segments 0 and 1 are retransmitted for nothing, which the client says twice.
fn spurious(worker: &mut Worker, path: Path) -> Path {
    let mut sender = ten(worker, path);
    sender.ack(BEGUN + RTT, &sack(0, &[(2, 7)]));
    let late = BEGUN + 50_000;
    if sender.state.timer == timer::RACK {
        sender.fire();
    }
    assert!(!sender.send_all(late).is_empty());
    sender.ack(late + 1_000, &sack(7, &[(0, 1)]));
    sender.ack(late + 1_100, &sack(7, &[(1, 2)]));
    Path { cwnd: 10, ssthresh: 255, last_sent: BEGUN, ..sender.state.path() }
}

pub(super) fn one_widening_a_round_trip(worker: &mut Worker) {
    let mut path = warm();
    for mult in [2, 3, 4] {
        path = Path { srtt: 20_000, rttvar: 10_000, min_rtt: 20_000, ..spurious(worker, path) };
        assert_eq!((path.reo_wnd_mult, path.reo_wnd_persist), (mult, 16), "two DSACKs, one step");
        assert!(path.reordering_seen);
    }
}

pub(super) fn patience_ends_after_sixteen_recoveries(worker: &mut Worker) {
    let mut path = Path { reordering_seen: true, reo_wnd_mult: 4, reo_wnd_persist: 16, ..warm() };
    for left in (0..16).rev() {
        assert_eq!(path.reo_wnd_mult, 4, "{left}");
        let mut sender = ten(worker, path);
        sender.ack(BEGUN + RTT, &sack(0, &[(1, 5)]));
        let late = sender.fire();
        assert_eq!(sender.send_segments(late), [0]);
        sender.ack_segments(late + RTT, 10);
        assert_eq!(sender.state.reo_wnd_persist, left);
        path = Path { cwnd: 10, last_sent: BEGUN, ..sender.state.path() };
        path = Path { srtt: 20_000, rttvar: 10_000, ..path };
    }
    assert_eq!(path.reo_wnd_mult, 1);
}

/// RFC 6675, 5: until everything is acknowledged that had been sent when the loss was detected.
pub(super) fn a_recovery_ends_at_its_point(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    sender.send_all(BEGUN); // ten
    sender.ack(BEGUN + RTT, &sack(0, &[(1, 5)]));
    sender.send_all(BEGUN + RTT);
    sender.ack(BEGUN + 2 * RTT, &sack(9, &[]));
    assert_eq!((sender.state.ca_state, sender.state.cwnd), (ca_state::FAST_RECOVERY, 7));
    sender.send_all(BEGUN + 2 * RTT);
    sender.ack(BEGUN + 2 * RTT, &sack(10, &[]));
    assert_eq!((sender.state.ca_state, sender.state.cwnd), (ca_state::OPEN, 7));
}

/// A retransmission that is lost, too, is found by the segments that left after it; cwnd is reduced once.
pub(super) fn a_lost_retransmission(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 40, warm());
    sender.send_all(BEGUN);
    let now = BEGUN + RTT;
    sender.ack(now, &sack(0, &[(1, 6)]));
    assert_eq!(sender.send_segments(now)[..3], [0, 10, 11], "seven in flight");
    sender.ack(now + RTT, &sack(0, &[(10, 12), (1, 6)]));
    assert_eq!(sender.state.lost() & 1, 1, "10 and 11 left after it and were delivered");
    assert_eq!(sender.state.cwnd, 7);
}
