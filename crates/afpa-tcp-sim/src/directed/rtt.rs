//! RFC 6298: SRTT, RTTVAR and RTO; RFC 8985, 7.2: PTO. All in microseconds.

use crate::sender::{BEGUN, Sender, sack};
use crate::step::{Path, Step};
use crate::worker::Worker;

fn estimate(sender: &Sender<'_>) -> (u64, u64, u64) {
    (sender.state.srtt, sender.state.rttvar, sender.state.min_rtt)
}

fn sample(sender: &mut Sender<'_>, micros: u32) {
    sender.step(BEGUN, &Step::RttSample(micros));
}

fn rto(sender: &mut Sender<'_>, backoff: u32) -> u64 {
    sender.step(BEGUN, &Step::Rto(backoff))
}

pub(super) fn first_sample(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, Path::default());
    assert_eq!(rto(&mut sender, 0), 1_000_000, "2.1: one second before any sample");
    sample(&mut sender, 40_000);
    assert_eq!(estimate(&sender), (40_000, 20_000, 40_000), "2.2: SRTT = R, RTTVAR = R / 2");
    assert_eq!(rto(&mut sender, 0), 40_000 + 200_000, "4 * RTTVAR is below the floor of 200 ms");
}

pub(super) fn second_and_third_sample(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, Path::default());
    sample(&mut sender, 40_000);
    sample(&mut sender, 80_000);
    // RTTVAR = 3/4 * 20000 + 1/4 * |40000 - 80000|; SRTT = 7/8 * 40000 + 1/8 * 80000
    assert_eq!(estimate(&sender), (45_000, 25_000, 40_000));
    sample(&mut sender, 20_000);
    // RTTVAR = 3/4 * 25000 + 1/4 * |45000 - 20000|; SRTT = 7/8 * 45000 + 1/8 * 20000
    assert_eq!(estimate(&sender), (41_875, 25_000, 20_000));
}

pub(super) fn the_floor_and_the_ceiling(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, Path::default());
    sample(&mut sender, 400_000);
    assert_eq!(rto(&mut sender, 0), 400_000 + 4 * 200_000, "above the floor: SRTT + 4 * RTTVAR");
    sample(&mut sender, 70_000_000);
    assert_eq!(rto(&mut sender, 0), 60_000_000, "2.5: never more than a minute");
    assert_eq!(sender.state.srtt, 350_000 + 60_000_000 / 8, "a sample counts as a minute at most");
    let mut fast = Sender::begin(worker, 4, Path::default());
    sample(&mut fast, 0);
    assert_eq!(estimate(&fast), (1, 0, 1), "a sample of 0 would mean that there is none");
}

pub(super) fn timeouts_double(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, Path::default());
    sample(&mut sender, 400_000); // RTO 1.2 s
    let times = [0, 1, 2, 3, 5, 6, 40, 255].map(|backoff| rto(&mut sender, backoff) / 100_000);
    assert_eq!(times, [12, 24, 48, 96, 384, 600, 600, 600], "5.5: doubled, up to a minute");
}

pub(super) fn the_probe_timeout(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, Path::default());
    let pto = |sender: &mut Sender<'_>, outstanding| sender.step(BEGUN, &Step::Pto(outstanding));
    assert_eq!(pto(&mut sender, 3), 1_000_000, "one second before any sample");
    sample(&mut sender, 400_000); // RTO 1.2 s
    assert_eq!(pto(&mut sender, 3), 800_000, "2 * SRTT");
    assert_eq!(pto(&mut sender, 1), 1_000_000, "and a delayed ACK");
    let mut short = Sender::begin(worker, 4, Path::default());
    sample(&mut short, 1_000);
    assert_eq!(pto(&mut short, 3), 10_000, "not below 10 ms");
    assert_eq!(pto(&mut short, 1), 201_000, "not above the RTO");
}

/// RFC 6298, 3: a segment that was sent twice gives no sample.
pub(super) fn karns_algorithm(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 4, Path::default());
    sender.send_all(BEGUN);
    let probed = sender.fire();
    assert_eq!(sender.send_segments(probed), [3], "a TLP");
    let fired = sender.fire();
    assert_eq!(sender.send_segments(fired), [0]);
    sender.ack(fired + 300, &sack(1, &[]));
    assert_eq!(sender.state.srtt, 0, "which of the transmissions was it?");
    assert_eq!(sender.state.min_rtt, 0);
}

pub(super) fn plain_acks_give_samples(worker: &mut Worker) {
    let mut sender = Sender::begin(worker, 10, Path::default());
    sender.send_all(BEGUN);
    sender.ack_segments(BEGUN + 40_000, 2);
    assert_eq!(estimate(&sender), (40_000, 20_000, 40_000));
    sender.ack_segments(BEGUN + 80_000, 4);
    assert_eq!(estimate(&sender), (45_000, 25_000, 40_000));
    // With a gap, the newest segment that was delivered is the sample.
    sender.ack(BEGUN + 80_000, &sack(4, &[(6, 7)]));
    assert_eq!(estimate(&sender).0, 49_375, "7/8 * 45000 + 1/8 * 80000");
}
