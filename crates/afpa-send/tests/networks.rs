//! The engine against networks of all kinds, in virtual time. Every step holds the invariants of
//! LIFECYCLE.md; here it is shown besides that every answer arrives, and what it costs.

mod support;

use afpa_send::{INITIAL_WINDOW, Path};
use support::{Conditions, Random, run};

fn wild(random: &mut Random) -> Conditions {
    Conditions {
        length: random.between(1, 65_536) as u32,
        segment: random.pick(&[536, 1220, 1440, 1448, 1460, 9000]),
        delay: random.pick(&[20, 200, 2_000, 20_000, 100_000, 200_000]),
        loss: random.pick(&[0.0, 0.0, 1.0, 5.0, 20.0]),
        duplication: random.pick(&[0.0, 0.0, 5.0]),
        reordering: random.pick(&[0.0, 0.0, 5.0, 30.0]),
        rate: random.pick(&[0, 0, 125, 1250]),
        queue: random.pick(&[3_000, 30_000, 300_000]),
        buffer: random.pick(&[700, 4_096, 16_384, 65_535, 1 << 20]),
        speed: random.pick(&[3, 50, 1_000_000]),
        timestamps: random.chance(80.0),
        burst: random.pick(&[1, 4, 16]),
    }
}

fn networks() -> u64 {
    std::env::var("AFPA_NETWORKS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000)
}

#[test]
fn every_answer_arrives_through_every_network() {
    let mut given_up = 0;
    for seed in 0..networks() {
        let mut random = Random::new(seed);
        let conditions = wild(&mut random);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(&conditions, &mut random, Path::default())
        }));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed}: {conditions:?}"));
        if outcome.given_up {
            // A minute without a byte, after six time-outs in a row: only where one packet in five is
            // lost, each way.
            assert_eq!(conditions.loss, 20.0, "seed {seed}: {conditions:?} {outcome:?}");
            given_up += 1;
        }
    }
    assert!(given_up * 200 <= networks(), "{given_up} given up");
}

#[test]
fn a_calm_network_sees_each_segment_once() {
    for length in [1, 1448, 1449, 14_480, 14_481, 65_536] {
        let outcome = run(&Conditions::calm(length), &mut Random::new(1), Path::default());
        assert!(outcome.complete && outcome.again == 0, "{length}: {outcome:?}");
        assert_eq!(outcome.segments, length.div_ceil(1448));
    }
}

#[test]
fn the_initial_window_leaves_at_once_and_the_rest_in_slow_start() {
    let one_way = Conditions::calm(1).delay;
    let time = |segments: u32| {
        run(&Conditions::calm(segments * 1448), &mut Random::new(1), Path::default()).time
    };
    assert_eq!(time(u32::from(INITIAL_WINDOW)), one_way, "at once");
    assert!(time(11) <= 3 * one_way, "one round trip later");
    assert!(time(30) <= 3 * one_way, "ten and twenty");
    assert!(time(45) <= 5 * one_way, "and what is left");
}

#[test]
fn a_lost_segment_in_the_middle_costs_one_round_trip() {
    for lost in 0..7 {
        let outcome = run_losing(lost, 10);
        assert!(outcome.time <= 4 * 10_000 + 15_000, "segment {lost}: {outcome:?}");
        assert_eq!(outcome.again, 1);
    }
}

#[test]
fn a_lost_tail_comes_back_by_a_probe() {
    let outcome = run_losing(9, 10);
    assert!(outcome.time <= 2_000_000, "{outcome:?}");
    assert_eq!(outcome.again, 1, "one probe, and nothing in vain");
}

/// An answer of `segments` whose segment `lost` is lost once; losses cannot be chosen in `Conditions`, so
/// this drives the engine by hand, over 10 ms each way.
fn run_losing(lost: u32, segments: u32) -> support::Outcome {
    use afpa_send::{Begin, Flight, Progress};
    let length = segments * 1448;
    let begin = Begin { length, segment: 1448, window: 1 << 20, path: warm() };
    let mut flight = Flight::begin(5_000_000, &begin).unwrap();
    let mut client = support::Client::new(length, 1 << 20, 1_000_000, true);
    let mut outcome = support::Outcome::default();
    let (mut now, mut wire) = (5_000_000u64, Vec::new());
    loop {
        while let Some(send) = flight.poll_send(now) {
            outcome.again += u32::from(send.again);
            if send.again || send.offset != lost * 1448 {
                wire.push((now + 10_000, send));
            }
        }
        let due = wire.first().map(|(at, _)| *at).unwrap_or(u64::MAX);
        let wake = flight.deadline().unwrap_or(u64::MAX).min(client.deadline().unwrap_or(u64::MAX));
        now = now.max(due.min(wake));
        let ack = if due <= wake {
            client.on_segment(now, &wire.remove(0).1, 0)
        } else {
            client.on_time(now)
        };
        if client.is_done() && outcome.time == 0 {
            outcome.time = now - 5_000_000;
        }
        // Acknowledgements take no time here: the way back is in the way there.
        let progress = match ack {
            Some(ack) => flight.on_ack(now, &ack),
            None => flight.on_time(now),
        };
        flight.check_invariants();
        if progress == Progress::Done {
            return outcome;
        }
    }
}

fn warm() -> Path {
    let mut path = Path::default();
    path.rtt.measured(20_000);
    path.used = 5_000_000;
    path
}

#[test]
fn a_window_carries_over_to_the_next_answer_and_not_over_a_pause() {
    let mut random = Random::new(3);
    let first = run(&Conditions::calm(60_000), &mut random, Path::default());
    assert!(first.path.window > INITIAL_WINDOW, "{:?}", first.path);
    let mut path = first.path;
    path.used = 0;
    let later = run(&Conditions::calm(60_000), &mut random, path);
    assert!(later.time > Conditions::calm(1).delay, "after a pause it begins with ten again");
}

#[test]
fn losses_reduce_the_window_and_reordering_does_not() {
    let mut conditions = Conditions::calm(60_000);
    conditions.loss = 5.0;
    let mut random = Random::new(11);
    let mut smaller = 0;
    for _ in 0..100 {
        let outcome = run(&conditions, &mut random, Path::default());
        smaller += u32::from(outcome.path.window < INITIAL_WINDOW * 2 && outcome.again > 0);
    }
    assert!(smaller > 50, "{smaller} of 100");
    conditions.loss = 0.0;
    conditions.reordering = 20.0;
    let mut again = 0;
    let mut path = Path::default();
    for _ in 0..100 {
        let outcome = run(&conditions, &mut random, path);
        let Path { reordering, patience, persist, .. } = outcome.path;
        path = Path { reordering, patience, persist, ..path };
        again += outcome.again;
    }
    // Patience is lost after sixteen recoveries, and has to be learned again.
    assert!(again < 100 * 42 / 15, "{again} segments of 4200 sent again for nothing");
}
