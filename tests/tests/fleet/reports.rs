//! The revision that a machine reports is the one that it runs.

use std::time::{Duration, Instant};

use afpa_testkit::{Server, eventually_within};
use rustix::process::Signal;

use crate::bed::{Next, SOON, process};
use crate::configuration::{Taker, three};

/// The word that belongs to a revision.
const WORDS: [&str; 2] = ["one", "two"];

/// The revision that a machine reports, if it is the one that it serves. It may be asked in the middle of a change.
#[track_caller]
fn reported(taker: &Taker) -> Option<u64> {
    let begun = Instant::now();
    loop {
        let (before, word, after) = (taker.runs(), taker.word(), taker.runs());
        let of_word = WORDS.iter().position(|one| word.as_deref() == Some(one));
        if before == after && before == of_word.map(|place| place as u64 + 1) {
            return before;
        }
        assert!(begun.elapsed() < SOON, "it reports {before:?}, and serves {word:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn hup(server: &Server) {
    let reloads = || server.log().matches("reloaded").count();
    let before = reloads();
    server.signal(Signal::HUP);
    eventually_within(SOON, "reloaded", || reloads() > before);
}

#[test]
fn a_machine_reports_what_is_in_force_whatever_its_disk_has() {
    let Some((_nats, _application, desk, takers)) = three("") else { return };
    let [a, b, _] = &takers;
    a.pushes(&desk.site("one"));
    let kept = b.server.home().join("fleet/configuration");
    let first = std::fs::read(&kept).expect("kept");
    a.pushes(&desk.site("two"));
    eventually_within(SOON, "b has the second one", || reported(b) == Some(2));

    // As when another process of this machine was there at the same time.
    std::fs::write(&kept, &first).expect("written");
    assert_eq!(reported(b), Some(2));
    let takes =
        || b.server.log().matches("the configuration of the fleet is taken: revision 2").count();
    let before = takes();
    hup(&b.server);
    eventually_within(
        SOON,
        "it has the one of its disk, says so, and takes the other one again",
        || reported(b) == Some(2) && takes() > before,
    );
    // A disk that has lost it.
    std::fs::remove_file(&kept).expect("removed");
    hup(&b.server);
    eventually_within(SOON, "it takes it again", || kept.exists() && reported(b) == Some(2));
}

#[test]
fn an_upgrade_while_a_configuration_is_taken_reports_what_is_in_force() {
    let Some((_nats, _application, desk, takers)) = three("") else { return };
    let [a, b, _] = &takers;
    a.pushes(&desk.site("one"));
    let (is_well, text) = a.push(&desk.site("two"), &["--no-wait"]);
    assert!(is_well, "{text}");
    // The next process reads what is kept while this one, which is the first of the roll-out, takes the other one.
    let before = b.server.pid();
    b.server.signal(Signal::USR2);
    let is_next = || process(&b.server).is_some_and(|pid| pid != before);
    eventually_within(SOON, "the next process takes orders", is_next);
    let next = Next(process(&b.server).expect("it is there"));
    eventually_within(SOON, "the roll-out is over", || {
        matches!(a.rollout()["phase"].as_str(), Some("done" | "back"))
    });
    let wanted = || crate::bed::look(&b.server)["configuration"]["wanted"].as_u64();
    eventually_within(SOON, "b runs what it is to run", || reported(b) == wanted());
    drop(next);
}
