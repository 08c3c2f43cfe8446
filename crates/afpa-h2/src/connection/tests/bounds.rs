//! Bounds on the cost of a client: windows, streams, field blocks, floods.

use super::*;
use crate::limits::Budget;

#[test]
fn windows_bound_what_we_send() {
    let mut talk = Talk::new();
    talk.frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 10]);
    talk.request(1);
    talk.request(3);
    talk.connection.send_head(1, false, |out| out.push(0x88));
    talk.connection.set_pending(1, Some(1000));
    assert_eq!(talk.connection.next_to_send(), Some((1, 10)));
    talk.connection.send_data(1, &[0; 10], false);
    assert_eq!((talk.connection.room(1), talk.connection.next_to_send()), (0, None));
    talk.frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 4]);
    assert_eq!(talk.connection.room(1), 0, "below nothing");
    talk.frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 16]);
    assert_eq!((talk.connection.room(1), talk.connection.room(3)), (10, 4));
    talk.frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]);
    for _ in 0..3 {
        talk.connection.send_data(3, &[0; MAX_PAYLOAD], false);
    }
    assert_eq!(talk.connection.room(3), 65_535 - 10 - 3 * MAX_PAYLOAD, "the connection's own");
    talk.connection.set_pending(1, Some(0));
    talk.connection.send_data(3, &[0; 16_373], false);
    assert_eq!(talk.connection.next_to_send(), Some((1, 0)), "an end needs no room");
}

#[test]
fn windows_bound_what_the_client_sends() {
    let limits = Limits { stream_window: 100, connection_window: 0, ..Limits::default() };
    let mut talk = Talk::with(limits);
    talk.upload(1);
    assert_eq!(talk.frame(kind::DATA, 0, 1, &[0; 60]), "data 1 60 false WINDOW 1 60 ");
    assert_eq!(talk.frame(kind::DATA, 0, 1, &[0; 101]), "gone 1 RST 1 3 ");
    for id in (3..).step_by(2).take(400) {
        talk.upload(id);
        let padded = [&[60][..], &[0; 90]].concat();
        let said = talk.frame(kind::DATA, flag::PADDED | flag::END_STREAM, id, &padded);
        assert!(said.contains(&format!("data {id} 30 true")), "{said}");
        talk.connection.send_head(id, true, |out| out.push(0x88));
        talk.answer();
    }
    // The owners do not read: no more than the connection's window arrives.
    let mut talk = Talk::with(Limits { stream_window: 1 << 20, ..limits });
    talk.upload(1);
    let mut frame = Vec::new();
    put(&mut frame, kind::DATA, 0, 1, &[0; MAX_PAYLOAD]);
    let mut taken = 0;
    while talk.connection.receive(&frame, &mut talk.head, 0).is_ok() {
        taken += 1;
    }
    assert_eq!((taken, talk.answer().as_str()), (3, "GOAWAY 1 3 "));
}

#[test]
fn the_streams_of_a_client_are_counted() {
    let mut talk = Talk::with(Limits { streams: 2, ..Limits::default() });
    talk.request(1);
    talk.request(3);
    assert_eq!(talk.request(5), "RST 5 7 ");
    talk.connection.reset(1, ErrorCode::Cancel);
    assert_eq!(talk.answer(), "RST 1 8 ");
    assert_eq!(talk.request(7), "request 7 true ");
}

#[test]
fn every_flood_ends_and_time_allows_more() {
    let budget = Budget { burst: 10, per_second: 1 };
    let limits = Limits { resets: budget, overhead: budget, ..Limits::default() };
    type Flood = fn(&mut Talk, u32) -> String;
    let floods: [(&str, Flood); 8] = [
        ("rapid reset", |talk, at| {
            talk.request(2 * at + 1);
            talk.frame(kind::RST_STREAM, 0, 2 * at + 1, &[0, 0, 0, 8])
        }),
        ("MadeYouReset", |talk, at| {
            talk.request(2 * at + 1);
            talk.frame(kind::WINDOW_UPDATE, 0, 2 * at + 1, &[0; 4])
        }),
        ("malformed requests", |talk, at| talk.frame(kind::HEADERS, 5, 2 * at + 1, b"\x82")),
        ("PING", |talk, _| talk.frame(kind::PING, 0, 0, &[0; 8])),
        ("SETTINGS", |talk, _| talk.frame(kind::SETTINGS, 0, 0, &[])),
        ("PRIORITY", |talk, _| talk.frame(kind::PRIORITY, 0, 1, &[0; 5])),
        ("empty DATA", |talk, at| {
            if at == 0 {
                talk.upload(1);
            }
            talk.frame(kind::DATA, 0, 1, &[])
        }),
        ("unknown frames", |talk, _| talk.frame(77, 0, 0, &[])),
    ];
    for (name, flood) in floods {
        let mut talk = Talk::with(limits);
        let ended = (0..40).position(|at| flood(&mut talk, at).contains("GOAWAY"));
        let ended = ended.unwrap_or_else(|| panic!("{name} goes on"));
        assert!((9..=26).contains(&ended), "{name} after {ended}");
        let mut talk = Talk::with(limits);
        for at in 0..40 {
            talk.now_ms += 1000;
            assert!(!flood(&mut talk, at).contains("GOAWAY"), "{name}, slowly");
        }
    }
}

/// All connections of a core have one head: its owner takes them also where the connection ends.
#[test]
fn malformed_heads_before_a_fatal_frame_can_be_taken_at_once() {
    let mut talk = Talk::new();
    let mut bytes = Vec::new();
    put(&mut bytes, kind::HEADERS, 5, 1, b"\x82");
    put(&mut bytes, kind::HEADERS, 5, 3, b"\x82");
    put(&mut bytes, kind::DATA, 0, 0, b"");
    let outcome = talk.connection.receive(&bytes, &mut talk.head, talk.now_ms);
    assert!(outcome.is_err(), "in the same call: {outcome:?}");
    let refused = talk.head.take_refused();
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|said| said.starts_with(b"GET - HTTP/1.1")), "{refused:?}");
    assert!(talk.head.take_refused().is_empty());
}

#[test]
fn updates_of_windows_are_paid_for_by_content() {
    let budget = Budget { burst: 10, per_second: 0 };
    let mut talk = Talk::with(Limits { overhead: budget, ..Limits::default() });
    talk.request(1);
    for _ in 0..1000 {
        talk.connection.send_data(1, &[0; 1000], false);
        talk.answer();
        for id in [0, 1] {
            assert_eq!(talk.frame(kind::WINDOW_UPDATE, 0, id, &[0, 0, 3, 232]), "");
        }
    }
    let flood =
        (0..100).position(|_| !talk.frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]).is_empty());
    assert!(flood.is_some_and(|at| at < 40), "{flood:?}");

    let mut talk = Talk::with(Limits { overhead: budget, ..Limits::default() });
    let small = (0..100).position(|_| talk.connection.charge_short(1, 0).is_err());
    assert_eq!((small, talk.answer().as_str()), (Some(9), "GOAWAY 0 11 "));
}

#[test]
fn a_field_block_is_bounded() {
    let limits = Limits { block: 1000, continuations: 3, ..Limits::default() };
    let mut talk = Talk::with(limits);
    assert_eq!(talk.frame(kind::HEADERS, 0, 1, &[0; 1001]), "GOAWAY 0 11 ");
    let mut talk = Talk::with(limits);
    talk.frame(kind::HEADERS, 0, 1, &[0; 500]);
    assert_eq!(talk.frame(kind::CONTINUATION, 0, 1, &[0; 501]), "GOAWAY 0 11 ");
    let mut talk = Talk::with(limits);
    talk.frame(kind::HEADERS, 0, 1, b"");
    let ended = (0..9).position(|_| !talk.frame(kind::CONTINUATION, 0, 1, b"").is_empty());
    assert_eq!(ended, Some(3));
}
