//! Marks instead of losses (ECN, RFC 3168): heard once a window, and the client is told once.

use afpa_send::{Ack, Begin, Flight, INITIAL_WINDOW, Micros, Path, Progress, Send};

const SEGMENT: u32 = 1448;
const BEGUN: Micros = 5_000_000;
const ROUND_TRIP: Micros = 10_000;

fn begin(segments: u32, path: Path) -> Flight {
    let length = segments * SEGMENT;
    Flight::begin(BEGUN, &Begin { length, segment: SEGMENT, window: 1 << 20, path }).expect("begun")
}

fn send_all(flight: &mut Flight, now: Micros) -> Vec<Send> {
    std::iter::from_fn(|| flight.poll_send(now)).collect()
}

fn acknowledge(flight: &mut Flight, now: Micros, segments: u32, marked: bool) -> Progress {
    let ack = Ack { ack: segments * SEGMENT, window: 1 << 20, marked, ..Ack::default() };
    let progress = flight.on_ack(now, &ack);
    flight.check_invariants();
    progress
}

#[test]
fn a_mark_reduces_the_window_once_until_the_client_was_told() {
    let mut flight = begin(40, Path::default());
    send_all(&mut flight, BEGUN);
    let now = BEGUN + ROUND_TRIP;
    acknowledge(&mut flight, now, 2, true);
    let window = flight.path().window;
    assert_eq!(window, (INITIAL_WINDOW + 2) * 7 / 10, "of what it had grown to, as after a loss");
    // The client repeats it in every acknowledgement until it is told.
    let mut told = 0;
    for acked in 3..=10 {
        acknowledge(&mut flight, now, acked, true);
        told += send_all(&mut flight, now).iter().filter(|send| send.reduced).count();
    }
    assert_eq!(told, 1);
    assert!(flight.path().window >= window, "one reduction: {:?}", flight.path());
    // The segment that told it has arrived, and still it says so: that is a new mark.
    let before = flight.path().window;
    acknowledge(&mut flight, now + ROUND_TRIP, 11, true);
    assert!(flight.path().window < before);
}

#[test]
fn a_mark_at_the_end_is_told_with_the_next_answer() {
    let mut flight = begin(4, Path::default());
    assert!(send_all(&mut flight, BEGUN).iter().all(|send| send.markable && !send.reduced));
    assert_eq!(acknowledge(&mut flight, BEGUN + ROUND_TRIP, 4, true), Progress::Done);
    let path = flight.path();
    assert!(path.reduced && path.window >= 5, "however little was on its way: {path:?}");
    let mut next = begin(4, path);
    let sends = send_all(&mut next, BEGUN);
    assert_eq!(
        sends.iter().map(|send| send.reduced).collect::<Vec<_>>(),
        [true, false, false, false]
    );
    assert!(!next.path().reduced);
    acknowledge(&mut next, BEGUN, 0, true);
    assert_eq!(next.path().window, path.window, "the request said it again, before it was told");
}

#[test]
fn what_is_sent_again_is_not_markable_and_tells_nothing() {
    let mut flight = begin(4, Path { reduced: true, ..Path::default() });
    send_all(&mut flight, BEGUN);
    let mut again = Vec::new();
    while again.len() < 4 {
        let now = flight.deadline().expect("something is missing");
        flight.on_time(now);
        again.extend(send_all(&mut flight, now).into_iter().filter(|send| send.again));
    }
    assert!(again.iter().all(|send| !send.markable && !send.reduced), "{again:?}");
}

#[test]
fn a_mark_during_a_recovery_is_told_and_reduces_nothing_more() {
    let mut flight = begin(40, Path::default());
    send_all(&mut flight, BEGUN);
    let now = BEGUN + ROUND_TRIP;
    let lacking = |to: u32| Ack {
        ack: 0,
        window: 1 << 20,
        sack: [(SEGMENT, to * SEGMENT), (0, 0), (0, 0), (0, 0)],
        ..Ack::default()
    };
    flight.on_ack(now, &lacking(5));
    let window = flight.path().window;
    flight.on_ack(now, &Ack { marked: true, ..lacking(10) });
    assert_eq!(flight.path().window, window);
    let sends = send_all(&mut flight, now);
    assert!(sends.iter().filter(|send| !send.again).any(|send| send.reduced), "{sends:?}");
}
