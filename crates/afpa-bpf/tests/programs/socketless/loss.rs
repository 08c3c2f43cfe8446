//! Loss: answers that do not arrive, requests that come again in other pieces, and versions that are gone by then.

use std::time::{Duration, Instant};

use crate::support::socketless::{Bench, SOON, data, resets};
use crate::support::{SITE, inside};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::packet::{ACK, Segment};
use afpa_testkit::tcp::RawClient;

/// A request whose answer is lost.
#[track_caller]
fn lose(client: &mut RawClient, path: &str) -> (Segment, Segment) {
    let request = client.get(path);
    client.push(&request);
    let mut answers = data(client.answers(SOON));
    assert_eq!(answers.len(), 1, "{answers:?}");
    (request, answers.remove(0))
}

#[track_caller]
fn is_again(one: &Segment, lost: &Segment) {
    assert_eq!((one.seq, one.ack, &one.payload), (lost.seq, lost.ack, &lost.payload));
    assert!(one.checksum_holds && one.ts_value.wrapping_sub(lost.ts_value) < 1 << 31);
}

/// The same segment, with the timestamp of now.
fn now(client: &RawClient, segment: &Segment) -> Segment {
    Segment { ts_value: client.next().ts_value, ..segment.clone() }
}

fn service_timers(bench: &Bench, time: Duration) {
    bench.world.service_timers(&bench.fast_path, time);
}

#[test]
fn a_client_that_asks_again_gets_the_same_bytes() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    for _ in 0..3 {
        let (request, lost) = lose(&mut client, "/kernel.html");
        for _ in 0..2 {
            client.send(&now(&client, &request));
            let again = data(client.answers(SOON));
            assert_eq!(again.len(), 1);
            is_again(&again[0], &lost);
        }
        client.accept(&lost);
        client.acknowledge();
    }
    bench.goes_on(&mut client);
}

#[test]
fn a_lost_answer_comes_back_by_time_alone() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    for turn in 1..=2 {
        let (_, lost) = lose(&mut client, "/kernel.html");
        service_timers(&bench, Duration::from_millis(400));
        let again = data(client.answers(SOON));
        assert!(!again.is_empty(), "{:?}", bench.counts());
        is_again(&again[0], &lost);
        client.accept(&again[0]);
        client.acknowledge();
        service_timers(&bench, Duration::from_millis(400));
        assert!(client.collect(SOON).is_empty(), "it has arrived");
        assert!(bench.count(Reason::RtxRetransmitted) >= turn);
    }
    bench.goes_on(&mut client);
}

/// After some losses the way back is doubted. There is no socket whose segments could show another one.
#[test]
fn an_answer_that_is_lost_again_and_again_is_sent_again_and_again() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    let (request, lost) = lose(&mut client, "/kernel.html");
    service_timers(&bench, Duration::from_millis(1500));
    let again = data(client.collect(SOON));
    assert!(again.len() >= 2, "{:?}", bench.counts());
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(50)); // else ours and the client's would cross
        client.send(&now(&client, &request));
        let answers = client.answers(SOON);
        assert_eq!((answers.len(), resets(&answers)), (1, 0), "{answers:?} {:?}", bench.counts());
        is_again(&answers[0], &lost);
    }
    client.accept(&lost);
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(!reply.is_from_kernel(), "the kernel knows the way");
    client.acknowledge();
    client.ask_user();
}

/// As if another router had taken over.
fn send_by_another_way(client: &RawClient, segment: &Segment) {
    let mut frame = client.frame(segment);
    frame[11] ^= 0x55;
    client.send_frame(&frame);
}

#[test]
fn answers_go_on_when_the_client_comes_by_another_way() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open_with(|habits| habits.window = 60_000);
    let (request, lost) = lose(&mut client, "/kernel.html");
    send_by_another_way(&client, &now(&client, &request));
    let answers = client.answers(SOON);
    assert_eq!((answers.len(), resets(&answers)), (1, 0), "{answers:?} {:?}", bench.counts());
    is_again(&answers[0], &lost);
    client.reset();

    let mut client = bench.open_with(|habits| habits.window = 60_000);
    client.push(&client.get("/some.html"));
    let (mut whole, begin) = (Vec::new(), Instant::now());
    while whole.len() < 30_000 {
        assert!(begin.elapsed() < Duration::from_secs(10), "{} {:?}", whole.len(), bench.counts());
        let segments = client.collect(Duration::from_millis(20));
        assert_eq!(resets(&segments), 0, "{segments:?}");
        for segment in data(segments).into_iter().filter(|s| !s.payload.is_empty()) {
            if segment.seq == client.ack {
                client.accept(&segment);
                whole.extend(segment.payload);
            }
            send_by_another_way(&client, &client.next());
        }
        service_timers(&bench, Duration::from_millis(5));
    }
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(!reply.is_from_kernel(), "the kernel knows the way");
    client.acknowledge();
    client.ask_user();
}

/// Stacks merge and split the segments that they retransmit.
#[test]
fn a_request_that_comes_again_in_other_pieces_gets_the_same_bytes() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    let (request, lost) = lose(&mut client, "/kernel.html");
    for cut in [1, 5, 20, request.payload.len() - 1] {
        for (from, to) in [(0, cut), (cut, request.payload.len())] {
            let seq = request.seq.wrapping_add(from as u32);
            let payload = request.payload[from..to].to_vec();
            client.send(&Segment { seq, payload, ..now(&client, &request) });
        }
        let again = data(client.answers(SOON));
        assert!(!again.is_empty() && again.len() <= 2, "{again:?}");
        again.iter().for_each(|one| is_again(one, &lost));
    }
    // With another request behind it, in the same segment.
    let next = client.get("/user.html");
    let payload = [&request.payload[..], &next.payload].concat();
    client.send(&Segment { payload, ..now(&client, &request) });
    let again = data(client.answers(SOON));
    assert_eq!(again.len(), 1, "{again:?}");
    is_again(&again[0], &lost);
    client.accept(&again[0]);
    client.acknowledge();
    bench.goes_on(&mut client);
}

/// A request behind an answer that is not acknowledged has to wait: no other segment may acknowledge the first request.
#[test]
fn a_request_behind_a_lost_answer_waits() {
    let Some(bench) = Bench::new() else { return };
    for path in ["/kernel.html", "/user.html"] {
        let mut client = bench.open();
        let (request, lost) = lose(&mut client, "/kernel.html");
        let next = client.get(path);
        for _ in 0..2 {
            client.send(&now(&client, &next));
            let answers = client.collect(SOON);
            assert!(data(answers.clone()).is_empty() && resets(&answers) == 0, "{answers:?}");
            assert!(answers.iter().all(|s| s.ack == request.seq), "{answers:?}");
        }
        client.send(&now(&client, &request));
        let again = data(client.collect(SOON));
        is_again(&again[0], &lost);
        client.accept(&again[0]);
        let reply = client.ask(&client.get(path));
        assert_eq!(reply.is_from_kernel(), path == "/kernel.html");
        client.acknowledge();
        bench.goes_on(&mut client);
    }
}

#[test]
fn old_duplicates_are_acknowledged_and_nothing_more() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open_with(|habits| habits.timestamps = false);
    let old = client.get("/kernel.html");
    for _ in 0..3 {
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        client.acknowledge();
    }
    for _ in 0..3 {
        client.send(&old);
        let answers = client.collect(SOON);
        let numbers = |s: &Segment| (s.flags, s.seq, s.ack) == (ACK, client.ack, client.seq);
        assert!(answers.len() <= 1 && answers.iter().all(numbers), "{answers:?}");
    }
    bench.goes_on(&mut client);
}

#[test]
fn a_version_that_is_gone_ends_the_connection() {
    let Some(bench) = Bench::with(Settings { retired_bytes: 0, ..Settings::default() }) else {
        return;
    };
    let mut client = bench.open();
    let (request, _) = lose(&mut client, "/kernel.html");
    assert!(bench.fast_path.objects.unpin(SITE, b"/kernel.html").expect("unpinned"));
    std::thread::sleep(Duration::from_millis(1100));
    bench.fast_path.objects.reclaim().expect("reclaimed"); // no byte is kept longer than a second
    client.send(&now(&client, &request));
    let answers = client.answers(SOON);
    assert_eq!((answers.len(), resets(&answers)), (1, 1), "{answers:?}");
    assert_eq!(answers[0].seq, client.ack, "the client takes no other number");
    assert_eq!(bench.sweep().socketless, 0);
}

// --- answers of several segments ---

/// All that comes, where every so many segments are lost at first.
#[track_caller]
fn take_with_losses(bench: &Bench, client: &mut RawClient, every: usize) -> Vec<u8> {
    let (mut whole, mut seen, begin) = (Vec::new(), 0, Instant::now());
    while whole.len() < 30_000 || !whole.ends_with(b"k") {
        assert!(begin.elapsed() < Duration::from_secs(10), "{} {:?}", whole.len(), bench.counts());
        inside(bench.world.server(), || bench.fast_path.rtx.service_timers()).expect("serviced");
        let mut holes = Vec::new();
        for segment in data(client.collect(Duration::from_millis(5))) {
            seen += 1;
            if seen % every == 0 {
                continue;
            }
            if segment.seq == client.ack {
                client.accept(&segment);
                whole.extend(segment.payload);
                client.acknowledge();
            } else if segment.seq.wrapping_sub(client.ack) < 1 << 31 {
                holes.push((segment.seq, segment.end()));
                client.send(&client.sack(&holes[holes.len().saturating_sub(1)..]));
            }
        }
        let at = whole.windows(4).position(|four| four == b"\r\n\r\n");
        if at.is_some_and(|at| whole.len() == at + 4 + 30_000) {
            break;
        }
    }
    whole
}

#[test]
fn a_long_answer_with_losses_arrives_and_the_connection_goes_on() {
    let Some(bench) = Bench::new() else { return };
    for every in [1000, 7, 3] {
        let mut client = bench.open_with(|habits| habits.window = 60_000);
        let request = client.get("/some.html");
        client.push(&request);
        let whole = take_with_losses(&bench, &mut client, every);
        assert!(whole[whole.len() - 30_000..].iter().all(|byte| *byte == b'k'));
        client.acknowledge();
        client.habits.window = 1000;
        bench.goes_on(&mut client);
        client.reset();
    }
    assert_eq!(bench.fast_path.flows.transfers().expect("counted"), 0);
}

#[test]
fn a_reset_ends_a_long_answer() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open_with(|habits| habits.window = 60_000);
    let request = client.get("/some.html");
    client.push(&request);
    assert!(data(client.answers(SOON)).len() > 1);
    client.reset();
    std::thread::sleep(SOON);
    assert_eq!(bench.fast_path.flows.transfers().expect("counted"), 0);
    assert_eq!(bench.sweep().socketless, 0, "{:?}", bench.counts());
    service_timers(&bench, Duration::from_millis(300));
    assert!(data(client.collect(SOON)).is_empty());
}

#[test]
fn a_client_that_closes_during_a_long_answer_gets_the_rest_first() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open_with(|habits| habits.window = 60_000);
    let request = client.get("/some.html");
    client.push(&request);
    let end = Segment { flags: ACK | afpa_testkit::packet::FIN, ..client.next() };
    client.send(&end);
    let whole = take_with_losses(&bench, &mut client, 1000);
    assert!(whole.len() > 30_000);
    client.send(&Segment { ack: client.ack, ..now(&client, &end) });
    client.seq = client.seq.wrapping_add(1);
    let answers = client.collect(SOON);
    let fin = answers.iter().find(|s| s.flags & afpa_testkit::packet::FIN != 0);
    let fin = fin.unwrap_or_else(|| panic!("{answers:?} {:?}", bench.counts()));
    assert_eq!((fin.seq, fin.ack), (client.ack, client.seq));
    client.accept(fin);
    client.acknowledge();
    std::thread::sleep(SOON);
    assert_eq!(bench.sweep().socketless, 0);
}

#[test]
fn a_version_that_is_gone_ends_a_long_answer_at_the_client() {
    let Some(bench) = Bench::with(Settings { retired_bytes: 0, ..Settings::default() }) else {
        return;
    };
    let mut client = bench.open_with(|habits| habits.window = 60_000);
    let request = client.get("/some.html");
    client.push(&request);
    assert!(data(client.answers(SOON)).len() > 1);
    assert!(bench.fast_path.objects.unpin(SITE, b"/some.html").expect("unpinned"));
    std::thread::sleep(Duration::from_millis(1100));
    bench.fast_path.objects.reclaim().expect("reclaimed");
    client.send(&client.next());
    let answers = client.collect(SOON);
    assert!(resets(&answers) >= 1 && data(answers.clone()).is_empty(), "{answers:?}");
    std::thread::sleep(SOON);
    assert_eq!(bench.sweep().socketless, 0, "{:?}", bench.counts());
    assert_eq!(bench.fast_path.flows.transfers().expect("counted"), 0);
}
