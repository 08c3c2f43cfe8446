//! What was sent again for nothing: it costs no window, and teaches patience.

use afpa_send::{Ack, Begin, Flight, Path};

const UNIT: u32 = 1448;
const BEGUN: u64 = 5_000_000;

fn warm() -> Path {
    let mut path = Path { used: BEGUN, ..Path::default() };
    path.rtt.measured(20_000);
    path
}

/// An answer of so many segments, all that may leave sent at once.
fn flying(segments: u32, path: Path) -> Flight {
    let begin = Begin { length: segments * UNIT, segment: UNIT, window: 1 << 20, path };
    let mut flight = Flight::begin(BEGUN, &begin).unwrap();
    send_all(&mut flight, BEGUN);
    flight
}

fn send_all(flight: &mut Flight, now: u64) -> u32 {
    std::iter::from_fn(|| flight.poll_send(now)).map(|send| u32::from(send.again)).sum()
}

/// Segments below `to` have arrived, and those of the block.
fn ack(to: u32, block: (u32, u32), echo: Option<u32>) -> Ack {
    let sack = [(block.0 * UNIT, block.1 * UNIT), (0, 0), (0, 0), (0, 0)];
    Ack { ack: to * UNIT, window: 1 << 20, sack, echo, ..Ack::default() }
}

/// Ten segments of which the first is overtaken by four others, and sent again.
fn reduced() -> Flight {
    let mut flight = flying(10, warm());
    flight.on_ack(BEGUN + 20_000, &ack(0, (1, 5), None));
    assert_eq!(send_all(&mut flight, BEGUN + 20_000), 1);
    assert!(flight.path().window < 10);
    flight
}

#[test]
fn a_reduction_is_taken_back_when_all_that_was_sent_again_was_there() {
    let mut flight = reduced();
    flight.on_ack(BEGUN + 21_000, &ack(5, (0, 0), None));
    assert!(flight.path().window < 10, "nothing tells yet which of the two arrived");
    flight.on_ack(BEGUN + 41_000, &ack(5, (0, 1), None));
    assert!(flight.path().window >= 10, "{:?}", flight.path());
    assert_eq!((flight.path().patience, flight.path().persist), (2, 16));
}

#[test]
fn the_next_answer_takes_it_back_too() {
    let mut flight = reduced();
    flight.on_ack(BEGUN + 21_000, &ack(10, (0, 0), None));
    assert!(flight.is_done() && flight.path().window < 10);
    let mut next = flying(10, flight.path());
    next.on_ack(BEGUN + 22_000, &Ack { earlier: true, ..ack(0, (0, 0), None) });
    assert!(next.path().window >= 10, "{:?}", next.path());
}

#[test]
fn an_old_timestamp_takes_it_back_at_once() {
    let mut flight = reduced();
    flight.on_ack(BEGUN + 21_000, &ack(5, (0, 0), Some((BEGUN / 1000) as u32)));
    assert!(flight.path().window >= 10, "{:?}", flight.path());
}

/// Whoever lacks what is before it echoes what he got before that (RFC 7323, 4.3): an old timestamp tells nothing then.
#[test]
fn a_probe_that_arrives_behind_a_gap_tells_what_was_lost() {
    let mut flight = flying(4, warm());
    let probed = flight.deadline().unwrap();
    flight.on_time(probed);
    assert_eq!(send_all(&mut flight, probed), 1, "the last one again");
    let heard = probed + 20_000;
    flight.on_ack(heard, &ack(0, (3, 4), Some((BEGUN / 1000) as u32 - 1)));
    assert_eq!(send_all(&mut flight, heard), 3, "at once, not after a time-out");
    assert!(!flight.path().reordering && flight.path().window < 10, "{:?}", flight.path());
}

#[test]
fn what_the_network_doubles_tells_nothing() {
    let mut flight = flying(10, warm());
    flight.on_ack(BEGUN + 20_000, &ack(3, (0, 0), None));
    let before = flight.path();
    flight.on_ack(BEGUN + 20_100, &ack(3, (1, 2), None));
    flight.on_ack(BEGUN + 20_200, &Ack { earlier: true, ..ack(3, (0, 0), None) });
    assert_eq!(flight.path(), before);
}

#[test]
fn patience_grows_once_a_round_trip_and_falls_after_sixteen_recoveries() {
    let mut path = warm();
    // What was overtaken is late for good after as many quarters of the round trip as there is patience.
    let late = BEGUN + 50_000;
    for _ in 0..3 {
        let mut flight = flying(10, path);
        flight.on_ack(BEGUN + 20_000, &ack(0, (2, 7), None));
        flight.on_time(late);
        assert!(send_all(&mut flight, late) > 0);
        flight.on_ack(late + 1_000, &ack(7, (0, 1), None));
        flight.on_ack(late + 1_100, &ack(7, (0, 1), None));
        path = Path { window: 10, ..flight.path() };
    }
    assert_eq!((path.patience, path.persist), (4, 16), "one more for each answer");
    for recovery in 1..=16 {
        assert_eq!(path.patience, 4, "before recovery {recovery}");
        let mut flight = flying(10, path);
        flight.on_ack(BEGUN + 20_000, &ack(0, (1, 5), None));
        flight.on_time(late);
        assert_eq!(send_all(&mut flight, late), 1);
        flight.on_ack(late + 20_000, &ack(10, (0, 0), None));
        path = Path { window: 10, ..flight.path() };
    }
    assert_eq!(path.patience, 1);
}
