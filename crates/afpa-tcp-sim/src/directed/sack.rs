//! RFC 2018: the segments that SACK blocks cover.

use crate::sender::{BEGUN, MSS, Sender, sack, warm, with_cwnd};
use crate::step::{Ack, progress};
use crate::worker::Worker;

fn members(set: u128) -> Vec<u32> {
    (0..128).filter(|segment| set >> segment & 1 == 1).collect()
}

fn bytes(ack: u32, from: u32, to: u32) -> Ack {
    Ack { sack: [(from, to), (0, 0), (0, 0), (0, 0)], ..sack(ack, &[]) }
}

pub(super) fn blocks_count_whole_segments(worker: &mut Worker) {
    for (from, to, whole) in [
        (2 * MSS, 5 * MSS, vec![2, 3, 4]),
        (2 * MSS + 1, 5 * MSS, vec![3, 4]),
        (2 * MSS, 5 * MSS - 1, vec![2, 3]),
        (2 * MSS - 1, 5 * MSS + 1, vec![2, 3, 4]),
        (2 * MSS + 1, 3 * MSS - 1, vec![]),
    ] {
        let mut sender = Sender::begin(worker, 20, warm());
        sender.send_all(BEGUN);
        sender.ack(BEGUN + 20_000, &bytes(0, from, to));
        assert_eq!(members(sender.state.sacked()), whole, "{from} to {to}");
    }
}

pub(super) fn blocks_outside_of_what_was_sent(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    sender.send_all(BEGUN); // ten
    for (from, to) in [(9, 11), (12, 14), (0, 3), (5, 5), (7, 6)] {
        sender.ack(BEGUN + 20_000, &sack(0, &[(from, to)]));
        assert_eq!(members(sender.state.sacked()), [0; 0], "{from} to {to}");
    }
    sender.ack(BEGUN + 20_000, &sack(0, &[(9, 10), (7, 8), (2, 3), (4, 5)]));
    assert_eq!(members(sender.state.sacked()), [2, 4, 7, 9], "four blocks are read");
}

pub(super) fn the_last_segment_is_short(worker: &mut Worker) {
    let length = 9 * MSS + 100;
    let sender = Sender::begin_with(worker, BEGUN, length, MSS, 1 << 20, warm());
    let mut sender = sender.expect("a transfer");
    let sent = sender.send_all(BEGUN);
    assert_eq!(sent.last().map(|last| (last.offset, last.length)), Some((9 * MSS, 100)));
    assert!(sent.iter().all(|one| one.last == (one.offset == 9 * MSS)));
    sender.ack(BEGUN + 20_000, &bytes(0, 8 * MSS, length));
    assert_eq!(members(sender.state.sacked()), [8, 9]);
    assert_eq!(sender.ack(BEGUN + 20_000, &bytes(10, 0, 0)), progress::DONE);
}

/// RFC 2018, 8: the client may discard what it has SACKed. It lacks the byte at its cumulative ACK.
pub(super) fn a_client_that_reneges(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 20, warm());
    sender.send_all(BEGUN);
    sender.ack(BEGUN + 20_000, &sack(0, &[(1, 4)]));
    assert_eq!(members(sender.state.sacked()), [1, 2, 3]);
    sender.ack(BEGUN + 20_000, &sack(1, &[]));
    assert_eq!(members(sender.state.sacked()), [2, 3]);
}

pub(super) fn sets_of_more_than_64_segments(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 128, with_cwnd(200, 255));
    assert_eq!(sender.send_all(BEGUN).len(), 128);
    let now = BEGUN + 20_000;
    sender.ack(now, &sack(62, &[(66, 70), (63, 64), (127, 128)]));
    assert_eq!(members(sender.state.sacked()), [63, 66, 67, 68, 69, 127]);
    assert_eq!(sender.state.lost().count_ones(), 66 - 6, "all but the delivered ones, below 127");
    let again = sender.send_segments(now);
    assert_eq!(again[..6], [62, 64, 65, 70, 71, 72], "the lowest first");
    assert_eq!(again.len(), 60, "all that is lost fits into cwnd");
    assert_eq!(sender.ack_segments(now + 20_000, 128), progress::DONE);
}

/// S7, with and without anything to repair.
pub(super) fn acks_of_unsent_data(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 40, warm());
    sender.send_all(BEGUN); // ten
    let before = sender.state.at_rest();
    for ack in [Ack { ack: 10 * MSS + 1, ..sack(0, &[]) }, sack(11, &[]), sack(40, &[(3, 5)])] {
        assert_eq!(sender.ack(BEGUN + 20_000, &ack), progress::IMPOSSIBLE);
        assert_eq!(sender.state.at_rest(), before);
    }
    sender.ack(BEGUN + 20_000, &sack(2, &[(4, 5)]));
    let before = sender.state.at_rest();
    assert_eq!(sender.ack(BEGUN + 20_100, &sack(11, &[])), progress::IMPOSSIBLE);
    assert_eq!(sender.ack(BEGUN + 20_100, &sack(1, &[])), progress::GOING, "overtaken");
    assert_eq!(sender.state.at_rest(), before);
    assert_eq!(sender.ack_segments(BEGUN + 20_200, 10), progress::GOING, "all that was sent");
}
