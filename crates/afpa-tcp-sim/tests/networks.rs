//! The sender against networks of all kinds, in virtual time: every rule holds after each step, every transfer
//! arrives, and this is what it costs.
//!
//! `AFPA_NETWORKS=n` runs so many, `AFPA_SEED=n` that one alone; `AFPA_SCRIPTS=n` so many clients of a script.

use std::time::Instant;

use afpa_tcp_sim::client::Client;
use afpa_tcp_sim::network::{Conditions, NetworkResult};
use afpa_tcp_sim::random::Random;
use afpa_tcp_sim::run::{run, run_seeds};
use afpa_tcp_sim::script;
use afpa_tcp_sim::sender::{BEGUN, MSS, Sender, warm};
use afpa_tcp_sim::step::{Ack, Micros, Path, Step, progress, timer};
use afpa_tcp_sim::worker::Worker;

const NETWORKS: u64 = 100_000;
const SCRIPTS: u64 = 4_000;
/// Networks that share one exchange with the worker.
const SLOTS: usize = 256;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn every_transfer_arrives_through_every_network() {
    let seeds = match number("AFPA_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("AFPA_NETWORKS").unwrap_or(NETWORKS),
    };
    let (count, begun) = (seeds.end - seeds.start, Instant::now());
    let total = run_seeds(&mut Worker::default(), seeds, SLOTS).unwrap_or_else(|failure| {
        panic!("AFPA_SEED={} replays this: {}", failure.seed, failure.broken)
    });
    let each = count as f64 / begun.elapsed().as_secs_f64();
    println!("FIGURE {each:.0} networks a second: {total:?}");
    assert_eq!(total.networks, count);
    // One network in five loses every fifth packet, some of them with a black hole: less than 1 % of all is given up.
    assert!(total.given_up * 100 <= count.max(100), "{} given up", total.given_up);
}

/// The same seed is the same network, among others or alone.
#[test]
fn a_seed_replays_exactly() {
    let mut worker = Worker::default();
    let steps: u64 = (40..48)
        .map(|seed| {
            run_seeds(&mut worker, seed..seed + 1, 1).map(|total| total.steps).expect("it holds")
        })
        .sum();
    for _ in 0..2 {
        let total = run_seeds(&mut worker, 40..48, SLOTS).expect("it holds");
        assert_eq!(total.steps, steps);
    }
}

#[test]
fn no_client_brings_the_sender_out_of_its_rules() {
    let mut worker = Worker::default();
    let scripts = number("AFPA_SCRIPTS").unwrap_or(SCRIPTS);
    let mut steps = 0;
    for seed in 0..scripts {
        steps += script::play(seed, |now, step| worker.step(0, now, step));
    }
    assert!(steps > 10 * scripts, "{steps} steps of {scripts} transfers are too few");
}

fn calm(length: u32) -> NetworkResult {
    calm_on(length, Path::default())
}

fn calm_on(length: u32, path: Path) -> NetworkResult {
    run_one(&Conditions::calm(length), Random::new(1), path)
}

fn run_one(conditions: &Conditions, random: Random, path: Path) -> NetworkResult {
    run(&mut Worker::default(), conditions, random, path)
        .unwrap_or_else(|broken| panic!("{broken}"))
}

#[test]
fn a_calm_network_sees_each_segment_once() {
    for length in [1, 1448, 1449, 14_480, 14_481, 65_536] {
        let outcome = calm(length);
        assert!(outcome.time > 0 && outcome.retransmissions == 0, "{length}: {outcome:?}");
        assert_eq!(outcome.segments, length.div_ceil(1448));
    }
}

#[test]
fn the_initial_window_leaves_at_once_and_the_rest_in_slow_start() {
    let one_way = Conditions::calm(1).delay;
    let time = |segments: u32| calm(segments * 1448).time;
    assert_eq!(time(10), one_way, "at once");
    assert!(time(11) <= 3 * one_way, "one round trip later");
    assert!(time(30) <= 3 * one_way, "ten and twenty");
    assert!(time(45) <= 5 * one_way, "and what is left");
}

#[test]
fn a_lost_segment_in_the_middle_costs_one_round_trip() {
    for lost in 0..7 {
        let (time, retransmissions) = run_losing(lost, 10);
        assert!(time <= 4 * 10_000 + 15_000, "segment {lost}: {time}");
        assert_eq!(retransmissions, 1);
    }
}

#[test]
fn a_lost_tail_comes_back_by_a_probe() {
    let (time, retransmissions) = run_losing(9, 10);
    assert!(time <= 2_000_000, "{time}");
    assert_eq!(retransmissions, 1, "one probe, and nothing in vain");
}

/// A transfer of which one segment is lost once, over 10 ms; ACKs take no time. When it was there, and how many
/// segments were retransmitted.
fn run_losing(lost: u32, segments: u32) -> (Micros, u32) {
    let mut worker = Worker::default();
    let mut sender = Sender::begin(&mut worker, segments, warm());
    let mut client = Client::new(segments * MSS, 1 << 20, 1_000_000, true);
    let (mut now, mut wire, mut done, mut retransmissions) = (BEGUN, Vec::new(), 0, 0);
    loop {
        for sent in sender.send_all(now) {
            retransmissions += u32::from(sent.retransmitted);
            if sent.retransmitted || sent.offset != lost * MSS {
                wire.push((now + 10_000, sent));
            }
        }
        let due = wire.first().map_or(u64::MAX, |(at, _)| *at);
        let armed = sender.state.timer != timer::NONE;
        let deadline = if armed { sender.state.deadline } else { u64::MAX };
        let wake = deadline.min(client.deadline().unwrap_or(u64::MAX));
        now = now.max(due.min(wake));
        let ack: Option<Ack> = if due <= wake {
            client.on_segment(now, &wire.remove(0).1, 0, false).expect("S1, S6")
        } else {
            client.on_time(now)
        };
        if client.is_done() && done == 0 {
            done = now - BEGUN;
        }
        let ended = match ack {
            Some(ack) => sender.ack(now, &ack),
            None => sender.step(now, &Step::Timer),
        };
        if ended == progress::DONE {
            return (done, retransmissions);
        }
    }
}

#[test]
fn a_window_carries_over_to_the_next_transfer_and_not_over_a_pause() {
    let first = calm(60_000);
    assert!(first.path.cwnd > 10, "{:?}", first.path);
    let later = calm_on(60_000, Path { last_sent: 0, ..first.path });
    assert!(later.time > Conditions::calm(1).delay, "after a pause it begins with ten again");
}

#[test]
fn losses_reduce_the_window_and_reordering_does_not() {
    let mut conditions = Conditions { loss: 5.0, ..Conditions::calm(60_000) };
    let mut seeds = Random::new(11);
    let mut smaller = 0;
    for _ in 0..100 {
        let outcome = run_one(&conditions, Random::new(seeds.draw()), Path::default());
        smaller += u32::from(outcome.path.cwnd < 20 && outcome.retransmissions > 0);
    }
    assert!(smaller > 50, "{smaller} of 100");
    conditions.loss = 0.0;
    conditions.reordering = 20.0;
    let mut retransmissions = 0;
    let mut path = Path::default();
    for _ in 0..100 {
        let outcome = run_one(&conditions, Random::new(seeds.draw()), path);
        let Path { reordering_seen, reo_wnd_mult, reo_wnd_persist, .. } = outcome.path;
        let fresh = Path { cwnd: 10, ssthresh: 255, ..Path::default() };
        path = Path { reordering_seen, reo_wnd_mult, reo_wnd_persist, ..fresh };
        retransmissions += outcome.retransmissions;
    }
    // The reordering window is small again after sixteen recoveries, and has to grow anew.
    assert!(retransmissions < 100 * 42 / 15, "{retransmissions} of 4200 sent again for nothing");
}
