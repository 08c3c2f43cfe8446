//! RFC 1191, 8201 and 8899: paths whose MTU is lower than the connection believes.

use crate::sender::{BEGUN, MSS, Sender, sack, warm};
use crate::step::{Step, progress, timer};
use crate::worker::Worker;

pub(super) fn too_big_is_no_congestion(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    let first = sender.send_segments(BEGUN);
    sender.step(BEGUN + 300, &Step::MtuLowered);
    assert_eq!(sender.state.lost(), 0x3ff, "ten segments");
    assert_eq!(sender.state.timer, timer::PERSIST, "nothing is in flight");
    assert_eq!(sender.state.deadline, BEGUN + 300 + 220_000);
    let again = sender.send_all(BEGUN + 400);
    assert!(again.iter().all(|sent| sent.retransmitted && !sent.ect));
    let numbers: Vec<u32> = again.iter().map(|sent| sent.offset / MSS).collect();
    assert_eq!(numbers, first);
    assert_eq!((sender.state.cwnd, sender.state.ssthresh), (10, 255));
    assert_eq!(sender.state.mtu_blackhole, 0, "the router has said how long they may be");
}

pub(super) fn what_was_delivered_stays(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    sender.send_all(BEGUN);
    sender.ack(BEGUN + 200, &sack(3, &[(5, 7)]));
    sender.send_all(BEGUN + 200);
    sender.step(BEGUN + 300, &Step::MtuLowered);
    let again = sender.send_segments(BEGUN + 300);
    assert_eq!(again[..4], [3, 4, 7, 8]);
}

pub(super) fn a_timeout_suspects_a_black_hole(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 6, warm());
    sender.send_all(BEGUN);
    let probed = sender.fire();
    sender.send_all(probed);
    assert_eq!((sender.state.mtu_blackhole, sender.state.any_delivered), (0, 0));
    let fired = sender.fire();
    sender.send_all(fired);
    assert_eq!((sender.state.mtu_blackhole, sender.state.any_delivered), (1, 0));
    // The first segment is delivered in two pieces, and so are the others.
    let mut acked = 1228;
    let now = fired + 20_000;
    let ack = |acked| crate::step::Ack { ack: acked, ..sack(0, &[]) };
    while sender.ack(now, &ack(acked)) != progress::DONE {
        assert_eq!((sender.state.mtu_blackhole, sender.state.any_delivered), (1, 1));
        sender.send_all(now);
        acked = if acked % MSS == 0 { acked + 1228 } else { acked.next_multiple_of(MSS) };
    }
}
