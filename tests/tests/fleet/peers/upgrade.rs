//! Machines that ask one another while one of them replaces its program.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use afpa_testkit::eventually_within;
use rustix::process::Signal;

use super::{Bed, Machine, counts, gather, slow};
use crate::bed::{Next, SOON, process};

#[test]
fn an_upgrade_harms_no_request_of_any_machine() {
    let Some(bed) = Bed::new() else { return };
    let origin = slow(Duration::from_millis(2));
    let mut machines = ["a", "b"].map(|name| bed.machine(name, &origin, ""));
    gather(&machines.each_ref());
    let before = machines[1].server.pid();
    let (ends, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let next = thread::scope(|scope| {
        for machine in &machines {
            for client in 0..3 {
                let (ends, asked) = (&ends, &asked);
                scope.spawn(move || ask(machine, client, ends, asked));
            }
        }
        machines[1].server.signal(Signal::USR2);
        let is_next = || process(&machines[1].server).is_some_and(|pid| pid != before);
        eventually_within(SOON, "the next process takes orders", is_next);
        let next = Next(process(&machines[1].server).expect("it is there"));
        // Both ask the other one again, whoever it is now.
        gather(&machines.each_ref());
        let answered = counts(&machines[0], "answered");
        eventually_within(SOON, "the next process is asked", || {
            counts(&machines[0], "answered") > answered + 20 && counts(&machines[1], "served") > 20
        });
        eventually_within(SOON, "it asks", || counts(&machines[1], "answered") > 20);
        ends.store(true, Ordering::SeqCst);
        next
    });
    assert!(asked.load(Ordering::SeqCst) > 100);
    assert!(machines[1].server.wait(SOON).is_some(), "the process before has ended");
    drop(next);
}

/// Asks for something else each time, by a connection of its own: the process before accepts no more.
fn ask(machine: &Machine, client: usize, ends: &AtomicBool, asked: &AtomicUsize) {
    let port = machine.peers.port();
    for number in 0.. {
        if ends.load(Ordering::SeqCst) {
            return;
        }
        let target = format!("/{port}/{client}/{number}");
        let answer = machine.server.get(&target);
        // A question that nobody answers any more goes to the server.
        assert!(answer.status == 200 && answer.text().starts_with(&target), "{answer:?}");
        asked.fetch_add(1, Ordering::SeqCst);
    }
}
