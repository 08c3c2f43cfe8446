//! Paths that become narrower: what a router says, and what a time-out lets suspect.

use afpa_send::{Ack, Begin, Flight, INITIAL_WINDOW, Micros, Path, Progress, Send};

const SEGMENT: u32 = 1448;
const BEGUN: Micros = 5_000_000;

fn begun(segments: u32) -> (Flight, Vec<Send>) {
    let begin = Begin {
        length: segments * SEGMENT,
        segment: SEGMENT,
        window: 1 << 20,
        path: Path::default(),
    };
    let mut flight = Flight::begin(BEGUN, &begin).expect("begun");
    let sends = send_all(&mut flight, BEGUN);
    (flight, sends)
}

fn send_all(flight: &mut Flight, now: Micros) -> Vec<Send> {
    std::iter::from_fn(|| flight.poll_send(now)).collect()
}

fn acknowledge(flight: &mut Flight, now: Micros, bytes: u32) -> Progress {
    let progress = flight.on_ack(now, &Ack { ack: bytes, window: 1 << 20, ..Ack::default() });
    flight.check_invariants();
    progress
}

#[test]
fn what_was_too_long_is_sent_again_at_once_and_tells_nothing_of_congestion() {
    let (mut flight, first) = begun(20);
    let window = flight.path().window;
    flight.on_narrowed(BEGUN + 300);
    flight.check_invariants();
    let again = send_all(&mut flight, BEGUN + 400);
    let offsets = |sends: &[Send]| sends.iter().map(|send| send.offset).collect::<Vec<_>>();
    assert_eq!(offsets(&again), offsets(&first));
    assert!(again.iter().all(|send| send.again));
    assert_eq!((flight.path().window, window), (INITIAL_WINDOW, INITIAL_WINDOW));
    assert!(!flight.is_narrow(), "the router has said how long they may be");
}

#[test]
fn what_has_arrived_does_not_come_again() {
    let (mut flight, _) = begun(20);
    acknowledge(&mut flight, BEGUN + 200, 3 * SEGMENT);
    send_all(&mut flight, BEGUN + 200);
    flight.on_narrowed(BEGUN + 300);
    let again = send_all(&mut flight, BEGUN + 300);
    assert_eq!(again.first().map(|send| send.offset), Some(3 * SEGMENT));
}

#[test]
fn after_a_time_out_pieces_are_short_for_the_rest_of_the_answer() {
    let (mut flight, _) = begun(6);
    assert!(!flight.has_arrived());
    let mut now = BEGUN;
    while !flight.is_narrow() {
        now = flight.deadline().expect("nothing has arrived");
        flight.on_time(now);
        send_all(&mut flight, now);
    }
    // The first segment arrives in two pieces.
    let mut acked = 1228;
    while acknowledge(&mut flight, now + 200, acked) != Progress::Done {
        assert!(flight.is_narrow() && flight.has_arrived());
        send_all(&mut flight, now + 200);
        acked = if acked % SEGMENT == 0 { acked + 1228 } else { acked.next_multiple_of(SEGMENT) };
    }
}
