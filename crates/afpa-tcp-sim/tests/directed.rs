//! The directed cases against the C as it is.

use std::panic::{AssertUnwindSafe, catch_unwind};

use afpa_tcp_sim::directed;
use afpa_tcp_sim::worker::Worker;

#[test]
fn every_directed_case_holds() {
    let mut count = 0;
    let mut worker = Worker::default();
    let mut failed = Vec::new();
    for (name, case) in directed::ALL.iter().copied().flatten() {
        // The panic of a case says what differs; the other cases run nevertheless.
        if catch_unwind(AssertUnwindSafe(|| case(&mut worker))).is_err() {
            failed.push(name);
            worker = Worker::default();
        }
        count += 1;
    }
    assert!(failed.is_empty(), "{} of {count} cases: {failed:?}", failed.len());
}
