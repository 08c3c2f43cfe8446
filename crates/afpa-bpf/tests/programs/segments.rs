//! TCP's promises for bytes that the kernel's TCP never saw: loss, repetition, reordering, forgery.

use std::time::Duration;

use crate::support::{SENT_AGAIN, SITE, Sample, World, closes_cleanly, counted};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::packet::{ACK, FIN, PSH, RST, Segment};

const SOON: Duration = Duration::from_millis(150);

/// Payloads only, in order of arrival.
fn payloads(segments: &[Segment]) -> Vec<String> {
    segments.iter().filter(|s| !s.payload.is_empty()).map(Segment::text).collect()
}

#[test]
fn lost_answer_is_given_again_with_the_same_bytes() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    let request = client.get("/kernel.html");
    client.send(&request);
    let first = client.await_segment("an answer", |_| true);
    assert!(first.is_from_kernel() && first.checksum_holds, "{first:?}");
    // The Date moves on, the object is replaced: the repeated answer must not change.
    std::thread::sleep(Duration::from_millis(1100));
    fast_path.clock.beat();
    Sample::new(b"another version, of another length").pin(&fast_path, "/kernel.html");
    let again = client.ask(&Segment { ts_value: request.ts_value + 1100, ..request.clone() });
    assert_eq!((again.seq, again.ack, &again.payload), (first.seq, first.ack, &first.payload));
    assert!(again.checksum_holds && again.ts_echo == request.ts_value + 1100);
    assert_eq!(counted(&fast_path, Reason::AnsweredRetransmission), 1);
    assert!(client.ask(&client.get("/kernel.html")).text().ends_with("of another length"));
    assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
}

#[test]
fn version_that_is_gone_ends_the_connection() {
    let settings = Settings { objects: 1, retire_after: Duration::ZERO, ..Settings::default() };
    let Some((world, fast_path)) = World::with_one_pinned(settings) else { return };
    let client = world.connected();
    let request = client.get("/kernel.html");
    client.send(&request);
    assert!(client.await_segment("an answer", |_| true).is_from_kernel());
    assert!(fast_path.objects.unpin(SITE, b"/kernel.html").expect("unpinned"));
    Sample::new(b"new").pin(&fast_path, "/kernel.html"); // takes the only slot
    client.send(&request);
    assert_eq!(counted(&fast_path, Reason::ResetLostVersion), 1);
    client.send(&request);
    let end = client.collect(SOON);
    assert!(payloads(&end).is_empty() && end.iter().any(|s| s.flags & RST != 0), "{end:?}");
}

/// Room for others comes only from answers that no client can ask for again.
#[test]
fn a_retired_answer_stays_until_its_client_has_it() {
    let Some((world, fast_path)) =
        World::with_one_pinned(Settings { objects: 1, ..Settings::default() })
    else {
        return;
    };
    let mut client = world.connected();
    fast_path.clock.beat();
    let request = client.get("/kernel.html");
    let answer = client.ask(&request);
    assert!(answer.is_from_kernel());
    assert!(fast_path.objects.unpin(SITE, b"/kernel.html").expect("unpinned"));
    std::thread::sleep(Duration::from_millis(1100));
    fast_path.objects.reclaim().expect("looked at");
    assert_eq!(fast_path.objects.free_slots(), 0, "it may have been lost");
    client.send(&request);
    let again = client.await_segment("an answer", |_| true);
    assert_eq!(again.payload, answer.payload);
    client.send(&client.next());
    std::thread::sleep(SOON);
    fast_path.objects.reclaim().expect("looked at");
    assert_eq!(fast_path.objects.free_slots(), 1);
}

/// The room of an answer that is not needed is free for others without being asked for, and is not counted as kept.
#[test]
fn a_retired_answer_that_no_client_needs_turns_nobody_away() {
    let settings = Settings { objects: 1, retired_bytes: 0, ..Settings::default() };
    let Some((world, fast_path)) = World::with_one_pinned(settings) else { return };
    let mut client = world.connected();
    fast_path.clock.beat();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    client.send(&client.next());
    std::thread::sleep(Duration::from_millis(1100));
    assert!(fast_path.objects.unpin(SITE, b"/kernel.html").expect("unpinned"));
    std::thread::sleep(Duration::from_millis(1100));
    Sample::new(b"another").pin(&fast_path, "/another.html"); // has the only slot
    assert!(fast_path.objects.unpin(SITE, b"/another.html").expect("unpinned"));
    assert!(fast_path.objects.usage().retired_bytes > 0);
    std::thread::sleep(Duration::from_millis(1100));
    fast_path.sweep(Duration::from_secs(60)).expect("swept");
    assert_eq!(fast_path.objects.usage().retired_bytes, 0);
}

#[test]
fn duplicates_get_no_second_meaning() {
    let Some((world, _fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    let request = client.get("/kernel.html");
    let answer = client.ask(&request);
    let passed = client.get("/user.html");
    assert!(client.ask(&passed).text().ends_with("from nginx"));
    client.send(&client.next());
    for old in [&request, &passed] {
        client.send(old);
        for segment in client.collect(SOON) {
            let repeats = segment.seq == answer.seq && segment.payload == answer.payload;
            assert!(segment.payload.is_empty() || repeats, "{segment:?}");
            assert!(segment.payload.is_empty() || segment.ack == answer.ack);
            if segment.payload.is_empty() {
                assert_eq!(
                    (segment.seq, segment.ack),
                    (client.ack, client.seq),
                    "a plain duplicate ACK, in wire numbers"
                );
            }
        }
    }
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
}

#[test]
fn reordered_requests_keep_their_order() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    let first = client.get("/kernel.html");
    let second = Segment {
        seq: first.seq.wrapping_add(first.payload.len() as u32),
        ..client.get("/user.html")
    };
    client.send(&second);
    client.send(&first);
    client.seq = second.seq.wrapping_add(second.payload.len() as u32);
    let both = client.absorb("\r\n\r\nfrom nginx");
    assert!(!both.contains("afpa-kernel"), "bytes behind a gap had gone up: {both}");
    assert_eq!(both.matches("HTTP/1.1 ").count(), 2, "{both}");
    assert!(both.ends_with("from nginx"), "{both}");
    assert_eq!(counted(&fast_path, Reason::Answered), 1);
}

#[test]
fn pipelined_request_waits_for_its_turn() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    for (first, second) in [("/kernel.html", "/user.html"), ("/user.html", "/kernel.html")] {
        let one = client.get(first);
        let two =
            Segment { seq: one.seq.wrapping_add(one.payload.len() as u32), ..client.get(second) };
        client.send(&one);
        client.send(&two);
        client.seq = two.seq.wrapping_add(two.payload.len() as u32);
        let text: String = (0..2).map(|_| client.take_response().text()).collect();
        client.acknowledge();
        assert_eq!(text.matches("HTTP/1.1 ").count(), 2, "{text}");
        assert_eq!(text.starts_with("HTTP/1.1 200 OK\r\nDate"), first == "/kernel.html", "{text}");
    }
    assert_eq!(counted(&fast_path, Reason::Answered), 1, "only the first was free to answer");
}

#[test]
fn lost_answer_before_a_user_mode_response() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    let one = client.get("/kernel.html");
    let two =
        Segment { seq: one.seq.wrapping_add(one.payload.len() as u32), ..client.get("/user.html") };
    client.send(&one);
    client.send(&two);
    let segments: Vec<_> =
        client.collect(SOON).into_iter().filter(|s| !s.payload.is_empty()).collect();
    let lost = &segments[0];
    assert!(
        lost.is_from_kernel() && payloads(&segments[1..]).concat().contains("from nginx"),
        "{segments:?}"
    );
    // The answer was lost, the segments behind it arrived: the client reports that by SACK, and repeats the request.
    let ends = segments.iter().map(|s| s.seq.wrapping_add(s.payload.len() as u32));
    let end = ends.max_by_key(|end| end.wrapping_sub(lost.seq)).expect("segments");
    let sack = vec![(segments[1].seq, end)];
    client.seq = two.seq.wrapping_add(two.payload.len() as u32);
    client.send(&Segment { sack: sack.clone(), ..client.next() });
    client.send(&Segment { sack, ts_value: client.next().ts_value, ..one.clone() });
    let again: Vec<_> = client.answers(SOON).into_iter().filter(Segment::is_from_kernel).collect();
    assert_eq!(again.first().map(|s| (s.seq, &s.payload)), Some((lost.seq, &lost.payload)));
    assert_eq!(counted(&fast_path, Reason::AnsweredRetransmission), 1);
    client.ack = end;
    client.send(&client.next());
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
}

#[test]
fn acknowledgement_carried_by_a_request_reaches_the_kernel() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    for _ in 0..3 {
        assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
        assert!(
            client.ask(&client.get("/kernel.html")).is_from_kernel(),
            "the request was the only acknowledgement"
        );
    }
    // Had the kernel not learned of it, it would send its response again.
    let stray = client.collect(SENT_AGAIN);
    assert!(stray.is_empty(), "{stray:?}");
    assert_eq!(counted(&fast_path, Reason::EgressStale), 0);
}

#[test]
fn forged_segments_are_never_answered() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let stranger = world.raw();
    stranger.send(&stranger.get("/kernel.html"));
    for (seq, ack) in [(1, 0), (u32::MAX, 0), (0, 1), (0, u32::MAX), (100_000, 7)] {
        let client = world.connected();
        let request = client.get("/kernel.html");
        client.send(&Segment {
            seq: request.seq.wrapping_add(seq),
            ack: request.ack.wrapping_add(ack),
            ..request
        });
    }
    let client = world.connected();
    client.send(&Segment { flags: ACK | PSH | FIN, ..client.get("/kernel.html") });
    std::thread::sleep(SOON);
    assert_eq!(counted(&fast_path, Reason::Answered) + counted(&fast_path, Reason::FlowOpened), 0);
    let mut client = world.connected();
    fast_path.clock.beat();
    client.send(&Segment { checksum_holds: false, ..client.get("/kernel.html") });
    std::thread::sleep(SOON);
    assert_eq!(
        (counted(&fast_path, Reason::PassChecksum), counted(&fast_path, Reason::Answered)),
        (1, 0)
    );
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel(), "the same, unharmed");
}

#[test]
fn windows_are_respected() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    client.send(&Segment { window: 1, ..client.get("/kernel.html") }); // 128 bytes: too small
    assert_eq!(counted(&fast_path, Reason::PassWindow), 1);
    assert_eq!(counted(&fast_path, Reason::Answered), 1);
    client.seq = client.seq.wrapping_add(client.get("/kernel.html").payload.len() as u32);
    client.send(&client.next()); // it opens again
    client.absorb("the pinned one, from nginx");
}

#[test]
fn keep_alive_probe_is_acknowledged() {
    let Some((world, _fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    client.send(&Segment { seq: client.seq.wrapping_sub(1), ..client.next() });
    let answer = client.await_segment("an acknowledgement", |_| true);
    assert_eq!((answer.seq, answer.ack, answer.flags), (client.ack, client.seq, ACK));
}

#[test]
fn connections_with_an_offset_close_cleanly() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    closes_cleanly(&world, &fast_path, client);
}

/// The acknowledgement of a FIN must not be taken for that of an unanswered request (flow.h, F4).
#[test]
fn half_close_after_a_lost_answer() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    let request = client.get("/kernel.html");
    client.send(&request);
    let lost = client.await_segment("an answer", |_| true);
    client.seq = client.seq.wrapping_add(request.payload.len() as u32);
    client.send(&Segment { flags: FIN | ACK, ..client.next() });
    client.await_segment("the server's FIN", |segment| {
        assert_eq!(segment.ack, request.seq, "the request is not acknowledged: {segment:?}");
        segment.flags & FIN != 0
    });
    client.send(&request);
    let again = client.await_segment("the answer again", Segment::is_from_kernel);
    assert_eq!((again.seq, &again.payload), (lost.seq, &lost.payload));
    assert_eq!(counted(&fast_path, Reason::AnsweredRetransmission), 1);
}

/// A client that closes its window gets nothing until it opens it, and then from the side that got its request.
#[test]
fn zero_window() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    let request = client.get("/user.html");
    client.send(&Segment { window: 0, ..request.clone() });
    client.seq = client.seq.wrapping_add(request.payload.len() as u32);
    assert!(payloads(&client.collect(SOON)).is_empty(), "no window, no bytes");
    client.send(&client.next());
    client.absorb("from nginx");
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    assert_eq!(counted(&fast_path, Reason::Answered), 2);
}

#[test]
fn reset_and_port_reuse_start_anew() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    client.send(&Segment { flags: RST | ACK, ..client.next() });
    assert!(client.collect(SOON).is_empty());
    client.seq = client.seq.wrapping_add(1_000_000);
    client.connect(); // nothing is translated
    assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    assert_eq!(counted(&fast_path, Reason::FlowOpened), 2);
}

#[test]
fn request_split_at_every_byte() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let text = "GET /user.html HTTP/1.1\r\nHost: server\r\n\r\n";
    for cut in 1..text.len() {
        fast_path.clock.beat();
        let mut client = world.connected();
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        let (head, tail) = text.split_at(cut);
        client.send(&client.data(head));
        client.seq = client.seq.wrapping_add(cut as u32);
        let reply = client.ask(&client.data(tail));
        assert!(reply.text().ends_with("from nginx"), "cut at {cut}: {}", reply.text());
        let back = client.ask(&client.get("/kernel.html"));
        assert!(back.is_from_kernel(), "cut at {cut}: the connection comes back");
    }
    assert_eq!(counted(&fast_path, Reason::Answered), 2 * (text.len() as u64 - 1));
}
