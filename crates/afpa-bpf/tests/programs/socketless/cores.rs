//! Connections whose packets move from one core to the other, as receive-side scaling moves them when its table changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afpa_bpf::{Reason, RtxThread};
use afpa_netlab::Bed;

use super::bad_path::traffic;
use crate::support::inside;
use crate::support::socketless::Bench;

fn has_two_cores() -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores < 2 {
        println!("SKIP: one core only");
    }
    cores >= 2
}

/// Each step of one connection on another core than the step before.
#[test]
fn a_connection_that_moves_between_two_cores_at_each_step() {
    if !has_two_cores() {
        return;
    }
    let Some(bench) = Bench::new() else { return };
    let device = bench.world.server().interface(Bed::DEVICE);
    let steer = |turn: usize| device.steer(Some(turn % 2)).expect("steered");
    for first in 0..2 {
        steer(first);
        let mut client = bench.open();
        for turn in 1..7 {
            steer(first + turn);
            let reply = client.ask(&client.get("/kernel.html"));
            assert!(reply.text().ends_with("from the kernel"), "{reply:?}");
        }
        steer(first);
        client.ask_user();
        steer(first + 1);
        bench.goes_on(&mut client);
        client.reset();
    }
    assert!(bench.count(Reason::SocketlessToKernel) >= 2, "{:?}", bench.counts());
}

/// Several clients, while packets are sent to one core, to the other, and to where they come from.
#[test]
fn traffic_that_moves_between_two_cores_again_and_again() {
    if !has_two_cores() {
        return;
    }
    let Some(bench) = Bench::new() else { return };
    bench.world.file("long.bin", &vec![b'z'; 300_000]);
    bench.fast_path.flows.set_bypass_after(0);
    let fast_path = std::sync::Arc::clone(&bench.fast_path);
    let _rtx = inside(bench.world.server(), || {
        RtxThread::start(move || fast_path.rtx.service_timers(), |error| panic!("{error}"))
    })
    .expect("a thread");
    let (over, bench) = (AtomicBool::new(false), &bench);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let device = bench.world.server().interface(Bed::DEVICE);
            let mut moves = 0;
            while !over.load(Ordering::Acquire) {
                for core in [Some(0), Some(1), None] {
                    device.steer(core).expect("steered");
                    moves += 1;
                }
            }
            assert!(moves > 10, "{moves}");
        });
        let run = |seed| {
            move || {
                inside(bench.world.bed.client(), || traffic(bench, seed, Duration::from_secs(3)))
            }
        };
        let clients: Vec<_> = (0..4).map(|seed| scope.spawn(run(seed))).collect();
        let (mut hits, mut misses) = (0, 0);
        for client in clients {
            let tally = client.join().expect("no panic");
            assert_eq!(tally.reset, 0, "{tally:?} {:?}", bench.counts());
            hits += tally.hits;
            misses += tally.misses;
        }
        over.store(true, Ordering::Release);
        println!("{hits} hits, {misses} misses, {:?}", bench.counts());
        assert!(hits > 20 && misses > 5, "{hits} {misses}");
    });
    assert!(bench.count(Reason::SocketlessOpened) > 5, "{:?}", bench.counts());
}
