//! The end of a connection without a socket: by the client, by time, by a reset, and with segments that cross it.

use std::time::{Duration, Instant};

use crate::support::socketless::{Bench, SOON, data, resets};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::eventually;
use afpa_testkit::packet::{ACK, FIN, RST, Segment};
use afpa_testkit::tcp::RawClient;

/// Answered by the programs, and acknowledged.
#[track_caller]
pub(super) fn hit(client: &mut RawClient) {
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(reply.is_from_kernel(), "{reply:?}");
    client.acknowledge();
}

/// The client's FIN, unsent.
fn fin(client: &RawClient) -> Segment {
    Segment { flags: FIN | ACK, ..client.next() }
}

/// The server's FIN, which acknowledges everything, and is acknowledged.
#[track_caller]
pub(super) fn takes_fin(client: &mut RawClient) -> Segment {
    let answers = client.answers(SOON);
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!((answers[0].flags, answers[0].ack), (FIN | ACK, client.seq), "{answers:?}");
    client.accept(&answers[0]);
    client.acknowledge();
    answers[0].clone()
}

/// Nothing is left, and nothing comes.
#[track_caller]
fn is_over(bench: &Bench, client: &RawClient) {
    let left = client.collect(SOON);
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(bench.sweep().socketless, 0, "{:?}", bench.counts());
    assert_eq!(bench.sockets_of(client.address()), "");
}

#[test]
fn a_client_closes() {
    let Some(bench) = Bench::new() else { return };
    for hits in [0, 1, 3] {
        let mut client = bench.open();
        (0..hits).for_each(|_| hit(&mut client));
        client.finish();
        takes_fin(&mut client);
        is_over(&bench, &client);
    }
    assert_eq!(bench.count(Reason::SocketlessClosed), 3);
}

#[test]
fn a_client_closes_without_options() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open_with(|habits| {
        (habits.timestamps, habits.sack, habits.scale) = (false, false, None);
    });
    hit(&mut client);
    client.finish();
    takes_fin(&mut client);
    is_over(&bench, &client);
}

#[test]
fn a_fin_that_comes_twice_is_answered_twice() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    hit(&mut client);
    let end = fin(&client);
    client.finish();
    let one = client.answers(SOON);
    client.send(&end);
    let other = client.answers(SOON);
    assert_eq!((one.len(), other.len()), (1, 1), "{one:?} {other:?}");
    let numbers = |s: &Segment| (s.flags, s.seq, s.ack);
    assert_eq!(numbers(&one[0]), numbers(&other[0]));
    client.accept(&one[0]);
    client.acknowledge();
    is_over(&bench, &client);
}

#[test]
fn a_lost_last_acknowledgement_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    hit(&mut client);
    client.finish();
    assert_eq!(client.answers(SOON).len(), 1);
    std::thread::sleep(Duration::from_millis(1100));
    bench.sweep();
    // The client has been in FIN_WAIT since then. A flow waits for eight seconds: they need not pass here.
    let answers = client.collect(SOON);
    assert!(resets(&answers) == 0 && data(answers).is_empty());
    client.ack = client.ack.wrapping_add(1);
    client.acknowledge();
    is_over(&bench, &client);
}

#[test]
fn half_close_behind_a_request_in_a_segment_of_its_own() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    let request = client.get("/kernel.html");
    client.push(&request);
    client.finish(); // before the answer came
    let answers = client.answers(SOON);
    assert!(answers.len() == 1 && answers[0].is_from_kernel(), "{answers:?}");
    assert_eq!(
        answers[0].ack,
        client.seq.wrapping_sub(1),
        "the FIN is not acknowledged before the answer is"
    );
    client.accept(&answers[0]);
    client.acknowledge();
    takes_fin(&mut client);
    is_over(&bench, &client);
}

#[test]
fn half_close_behind_a_request_whose_answer_is_lost() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    let request = client.get("/kernel.html");
    let end = Segment { seq: request.end(), ..fin(&client) };
    client.send(&request);
    client.send(&end);
    let lost = client.answers(SOON);
    assert!(lost.len() == 1 && lost[0].is_from_kernel(), "{lost:?}");
    // The client repeats all of it, in one segment, as stacks do.
    client.send(&Segment { flags: request.flags | FIN, ..request.clone() });
    let again = data(client.answers(SOON));
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!((again[0].seq, &again[0].payload), (lost[0].seq, &lost[0].payload));
    client.accept(&again[0]);
    client.seq = end.end();
    client.acknowledge();
    takes_fin(&mut client);
    is_over(&bench, &client);
}

#[test]
fn half_close_with_a_request_in_one_segment_is_served() {
    let Some(bench) = Bench::new() else { return };
    for (path, behind) in [("/kernel.html", false), ("/kernel.html", true), ("/user.html", true)] {
        let mut client = bench.open();
        if behind {
            hit(&mut client);
        }
        let request = client.get(path);
        client.push(&Segment { flags: request.flags | FIN, ..request });
        client.seq = client.seq.wrapping_add(1);
        let reply = client.take_response();
        assert!(reply.text().contains("from nginx"), "{reply:?}");
        client.acknowledge();
        if !client.fin_accepted {
            let end = client.await_segment("the server's FIN", |s| s.flags & FIN != 0);
            client.accept(&end);
        }
        client.acknowledge();
        client.collect(SOON); // a FIN that came again before that
        is_over(&bench, &client);
    }
}

#[test]
fn resets_count_by_their_exact_number() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    hit(&mut client);
    let begun = Instant::now();
    for off in [1, 77, 10_000, u32::MAX, u32::MAX - 500, 1 << 30] {
        let seq = client.seq.wrapping_add(off);
        client.send(&Segment { flags: RST, seq, ack: 0, ..client.next() });
        client.send(&Segment { flags: RST | ACK, seq, ..client.next() });
    }
    client.send(&Segment { flags: RST, checksum_holds: false, ..client.next() });
    let challenges = client.collect(SOON);
    let most = 1 + begun.elapsed().as_millis() as usize / 477; // units of its clock, of which each has more
    assert!(challenges.len() <= most, "{challenges:?}");
    assert!(challenges.iter().all(|s| s.flags == ACK), "{challenges:?}");
    hit(&mut client);
    assert_eq!(bench.count(Reason::SocketlessReset), 0);
    client.reset();
    std::thread::sleep(SOON);
    assert_eq!(bench.count(Reason::SocketlessReset), 1);
    is_over(&bench, &client);
}

#[test]
fn a_client_that_does_not_want_the_answer_resets_before_its_request() {
    let Some(bench) = Bench::new() else { return };
    let client = bench.open();
    let request = client.get("/kernel.html");
    client.send(&request);
    client.collect(SOON);
    client.send(&Segment { flags: RST | ACK, ..client.next() });
    std::thread::sleep(SOON);
    assert_eq!(bench.count(Reason::SocketlessReset), 1, "{:?}", bench.counts());
    is_over(&bench, &client);
}

/// A keep-alive probe is answered as the kernel answers it; `length` of its bytes are old.
#[track_caller]
fn probe(client: &RawClient, length: usize) {
    let payload = vec![0; length];
    client.send(&Segment { seq: client.seq.wrapping_sub(1), payload, ..client.next() });
    // On a busy machine the kernel's last bytes may come again.
    let answers: Vec<_> =
        client.collect(SOON).into_iter().filter(|segment| segment.payload.is_empty()).collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let answer = (answers[0].flags, answers[0].seq, answers[0].ack, answers[0].payload.len());
    assert_eq!(answer, (ACK, client.ack, client.seq, 0));
}

#[test]
fn keep_alive_probes_are_answered() {
    let Some(bench) = Bench::new() else { return };
    for timestamps in [true, false] {
        let mut client = bench.open_with(|habits| habits.timestamps = timestamps);
        (0..2).for_each(|length| probe(&client, length));
        hit(&mut client);
        (0..2).for_each(|length| probe(&client, length));
        client.ask_user();
        (0..2).for_each(|length| probe(&client, length));
        client.reset();
    }
}

#[test]
fn a_keep_alive_probe_acknowledges_no_request_whose_answer_is_outstanding() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    let request = client.get("/kernel.html");
    client.push(&request);
    let lost = client.answers(SOON);
    assert_eq!(lost.len(), 1);
    client.send(&Segment { seq: client.seq.wrapping_sub(1), ..client.next() });
    let answers = client.collect(SOON);
    assert!(answers.is_empty(), "{answers:?}");
    client.send(&Segment { ts_value: client.next().ts_value, ..request });
    let again = data(client.answers(SOON));
    assert_eq!(again[0].payload, lost[0].payload);
    client.accept(&again[0]);
    client.acknowledge();
    bench.goes_on(&mut client);
}

const IDLE: Duration = Duration::from_secs(1);

fn impatient() -> Settings {
    Settings { socketless_idle: IDLE, ..Settings::default() }
}

#[test]
fn an_idle_connection_is_closed() {
    let Some(bench) = Bench::with(impatient()) else { return };
    for hits in [0, 1] {
        let mut client = bench.open();
        (0..hits).for_each(|_| hit(&mut client));
        assert_eq!(bench.sweep().socketless, 1, "not yet");
        assert!(client.collect(IDLE + SOON).is_empty());
        bench.sweep();
        takes_fin(&mut client);
        // A half-closed connection stays for as long as the client needs.
        assert_eq!(bench.sweep().socketless, 1);
        client.finish();
        let last = client.answers(SOON);
        assert_eq!(last.len(), 1, "{last:?}");
        assert_eq!((last[0].flags, last[0].seq, last[0].ack), (ACK, client.ack, client.seq));
        is_over(&bench, &client);
    }
    assert_eq!(bench.count(Reason::SocketlessIdle), 2);
}

#[test]
fn a_request_that_crosses_the_end_of_an_idle_connection_is_reset() {
    let Some(bench) = Bench::with(impatient()) else { return };
    for path in ["/kernel.html", "/user.html"] {
        let mut client = bench.open();
        hit(&mut client);
        std::thread::sleep(IDLE + SOON);
        let request = client.get(path); // under way
        bench.sweep();
        let end = client.answers(SOON);
        assert!(end.len() == 1 && end[0].flags & FIN != 0, "{end:?}");
        client.push(&request);
        let answers = client.answers(SOON);
        assert_eq!((answers.len(), resets(&answers)), (1, 1), "{answers:?}");
        assert_eq!(answers[0].seq, client.ack.wrapping_add(1), "the client takes no other number");
        is_over(&bench, &client);
    }
}

#[test]
fn a_request_at_the_moment_of_the_sweep_is_answered_or_reset() {
    let Some(bench) = Bench::with(impatient()) else { return };
    for _ in 0..5 {
        let mut client = bench.open();
        hit(&mut client);
        std::thread::sleep(IDLE + Duration::from_millis(10));
        let request = client.get("/kernel.html");
        std::thread::scope(|scope| {
            scope.spawn(|| bench.sweep());
            client.push(&request);
        });
        let answers = client.collect(SOON);
        let answered = answers.iter().any(Segment::is_from_kernel);
        assert!(answered != (resets(&answers) != 0), "{answers:?}");
        client.reset();
    }
}

#[test]
fn all_connections_are_closed_at_the_end() {
    let Some(bench) = Bench::new() else { return };
    let mut clients = [bench.open(), bench.open(), bench.open()];
    hit(&mut clients[0]);
    let request = clients[1].get("/kernel.html");
    clients[1].push(&request); // its answer is under way
    assert_eq!(clients[1].answers(SOON).len(), 1);
    bench.fast_path.socketless.drain();
    assert_eq!(bench.close(), 1);
    for client in [0, 2] {
        let client = &mut clients[client];
        takes_fin(client);
        client.finish();
        assert_eq!(client.answers(SOON).len(), 1);
    }
}

/// An answer that was sent already reaches its client before the connection is closed.
#[test]
fn the_end_waits_for_an_answer() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    let request = client.get("/kernel.html");
    client.push(&request);
    let answer = client.answers(SOON).remove(0);
    assert!(answer.is_from_kernel());
    bench.fast_path.socketless.drain();
    for _ in 0..3 {
        assert_eq!(bench.close(), 1);
    }
    let fins = client.collect(SOON).iter().filter(|segment| segment.flags & FIN != 0).count();
    assert_eq!(fins, 0);
    client.accept(&answer);
    client.acknowledge();
    eventually("the client has it all", || bench.close() == 0);
    takes_fin(&mut client);
}

/// RFC 9293, 3.8.1: a segment that is not acknowledged is sent again.
#[test]
fn a_lost_fin_comes_again() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    hit(&mut client);
    bench.fast_path.socketless.drain();
    assert_eq!(bench.close(), 0);
    let lost = client.answers(SOON);
    std::thread::sleep(Duration::from_millis(1100)); // longer than the sweep lets it rest
    bench.sweep();
    let fin = takes_fin(&mut client);
    assert_eq!(lost.len(), 1);
    assert_eq!((lost[0].seq, lost[0].ack, lost[0].flags), (fin.seq, fin.ack, fin.flags));
    assert_eq!(bench.count(Reason::SocketlessIdle), 2);
    client.finish();
    assert_eq!(client.answers(SOON).len(), 1);
    is_over(&bench, &client);
}

#[test]
fn a_drained_fast_path_hands_all_connections_over() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    hit(&mut client);
    bench.fast_path.socketless.drain();
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(!reply.is_from_kernel(), "{:?}", bench.counts());
    client.acknowledge();
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1);
    client.ask_user();
}

// --- the end of a long answer ---

/// A connection on which a client has asked for an answer of several segments, and for the end.
fn long() -> Option<(Bench, RawClient)> {
    let bench = Bench::new()?;
    crate::support::Sample::new(vec![b'k'; 30_000]).pin_both(&bench.fast_path, "/long.html");
    let mut client = bench.open();
    client
        .push(&client.data("GET /long.html HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n"));
    Some((bench, client))
}

/// All of the answer, acknowledged segment by segment but for the last one, which carries our FIN.
#[track_caller]
fn take_but_the_last(client: &mut RawClient) -> Segment {
    loop {
        let segments = client.answers(SOON);
        assert!(!segments.is_empty(), "it stands still at {}", client.ack);
        for segment in segments {
            if segment.flags & FIN != 0 {
                assert!(!segment.payload.is_empty() && segment.seq == client.ack, "{segment:?}");
                return segment;
            }
            client.accept(&segment);
            client.acknowledge();
        }
    }
}

/// A socket would have to be made for it alone. Behind one that keeps the connection there may be more, which cost less there.
#[test]
fn a_last_answer_may_be_longer_than_others() {
    let Some(bench) = Bench::with(Settings { last_answer_max: 65_536, ..Settings::default() })
    else {
        return;
    };
    crate::support::Sample::new(vec![b'k'; 30_000]).pin_both(&bench.fast_path, "/some.html");
    let mut client = bench.open();
    client.push(&client.get("/some.html"));
    client.absorb(&"k".repeat(30_000));
    assert_eq!(bench.count(Reason::TransferBegun), 0, "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1, "{:?}", bench.counts());
    client.reset();
    let mut client = bench.open();
    client
        .push(&client.data("GET /some.html HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n"));
    let last = take_but_the_last(&mut client);
    client.accept(&last);
    assert_eq!(bench.count(Reason::TransferBegun), 1, "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1, "{:?}", bench.counts());
}

/// As a server's TCP does it: the client need not wait for a separate FIN, which might come behind a delayed
/// acknowledgement.
#[test]
fn the_last_segment_of_a_long_answer_carries_the_end() {
    let Some((bench, mut client)) = long() else { return };
    let last = take_but_the_last(&mut client);
    client.accept(&last);
    client.acknowledge();
    let answers = client.collect(SOON);
    assert!(answers.is_empty(), "{answers:?}");
    client.finish();
    let answers = client.answers(SOON);
    assert_eq!((answers.len(), answers[0].flags, answers[0].seq), (1, ACK, client.ack));
    is_over(&bench, &client);
}

#[test]
fn a_client_closes_with_the_acknowledgement_of_a_long_answer() {
    let Some((bench, mut client)) = long() else { return };
    let last = take_but_the_last(&mut client);
    client.accept(&last);
    client.finish();
    let answers = client.answers(SOON);
    assert_eq!((answers.len(), answers[0].flags, answers[0].seq), (1, ACK, client.ack));
    is_over(&bench, &client);
}

/// Its bytes have arrived, but not the end: as where something on the way has cut the segment.
#[test]
fn the_end_of_a_long_answer_comes_again() {
    let Some((bench, mut client)) = long() else { return };
    let last = take_but_the_last(&mut client);
    client.ack = client.ack.wrapping_add(last.payload.len() as u32);
    client.acknowledge();
    takes_fin(&mut client);
    client.finish();
    assert_eq!(client.answers(SOON).len(), 1);
    is_over(&bench, &client);
}
