//! Blind segments (P2): a sender that knows addresses and ports but no numbers changes nothing of a connection.

use std::time::Duration;

use afpa_bpf::{FastPath, Hook, Reason, Settings, TCX_NEXT};
use afpa_testkit::packet::{ACK, FIN, RST, Segment};
use afpa_testkit::tcp::RawClient;

use crate::support::frame::Frame;
use crate::support::lab::{Lab, begin, check, join};
use crate::support::socketless::Bench;
use crate::support::{World, counted, kernel_answers, without_traffic};

const QUIET: Duration = Duration::from_millis(100);
const FAR: u32 = 1 << 28;

fn shifted(segment: Segment, seq: u32, ack: u32) -> Segment {
    Segment { seq: segment.seq.wrapping_add(seq), ack: segment.ack.wrapping_add(ack), ..segment }
}

/// Segments that a stranger may send, each with its description.
fn blind(client: &RawClient) -> Vec<(&'static str, Segment)> {
    let data = || client.data("stranger");
    let bare = |flags| Segment { flags, ..client.next() };
    let newest =
        |segment: Segment| Segment { ts_value: segment.ts_value.wrapping_add(1 << 30), ..segment };
    vec![
        ("a reset within the window", shifted(bare(RST | ACK), 1000, 0)),
        ("a reset before the window", shifted(bare(RST | ACK), 0u32.wrapping_sub(1000), 0)),
        ("a FIN ahead of the window", shifted(bare(FIN | ACK), FAR, 0)),
        ("a FIN that acknowledges what was not sent", shifted(bare(FIN | ACK), 0, FAR)),
        ("data ahead of the window", shifted(data(), FAR, 0)),
        ("data that acknowledges what was not sent", shifted(data(), 100, FAR)),
        ("a newer timestamp ahead of the window", newest(shifted(data(), FAR, 0))),
        (
            "a newer timestamp before the window",
            newest(shifted(bare(ACK), 0u32.wrapping_sub(FAR), 0)),
        ),
    ]
}

fn changes_nothing(fast_path: &FastPath, client: &mut RawClient) {
    for (what, segment) in blind(client) {
        client.send(&segment);
        std::thread::sleep(Duration::from_millis(5));
        fast_path.clock.beat();
        let reply = client.ask(&client.get("/kernel.html"));
        assert!(reply.is_from_kernel(), "after {what}: {reply:?}");
        client.acknowledge();
    }
}

#[test]
fn blind_segments_change_nothing_of_a_connection_with_an_offset() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    kernel_answers(&fast_path, &mut client);
    client.acknowledge();
    let count = blind(&client).len() as u64;
    changes_nothing(&fast_path, &mut client);
    let seen = counted(&fast_path, Reason::PassOutside) + counted(&fast_path, Reason::StaleSegment);
    assert_eq!(seen, count, "{:?}", fast_path.stats.counters());
}

#[test]
fn blind_segments_change_nothing_of_a_connection_without_an_offset() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    for which in 0..blind(&world.connected()).len() {
        let mut client = world.connected();
        let reply = client.ask(&client.get("/user.html"));
        assert!(reply.text().ends_with("from nginx"), "{reply:?}");
        client.acknowledge();
        let (what, segment) = blind(&client).swap_remove(which);
        client.send(&segment);
        std::thread::sleep(Duration::from_millis(5));
        fast_path.clock.beat();
        let reply = client.ask(&client.get("/kernel.html"));
        assert!(reply.is_from_kernel(), "after {what}: {reply:?}");
    }
}

/// The programs alone answer or drop these: before the first request, behind it, and while an answer is on its way.
#[test]
fn blind_segments_change_nothing_of_a_connection_without_a_socket() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    changes_nothing(&bench.fast_path, &mut client);
    for (what, segment) in blind(&client) {
        let request = client.get("/kernel.html");
        client.send(&request);
        let answer = client.await_segment("the answer", |segment| !segment.payload.is_empty());
        client.send(&segment);
        client.collect(Duration::from_millis(5));
        let again = client.ask(&request);
        assert_eq!((again.seq, &again.payload), (answer.seq, &answer.payload), "after {what}");
        client.acknowledge();
    }
    let ends = [
        Reason::SocketlessReset,
        Reason::SocketlessClosed,
        Reason::SocketlessEnded,
        Reason::SocketlessToKernel,
    ];
    assert_eq!(ends.map(|reason| bench.count(reason)), [0; 4], "{:?}", bench.counts());
    bench.goes_on(&mut client);
}

/// The answer is lost. A stranger says that it has arrived, and the client asks again.
#[test]
fn a_blind_acknowledgement_of_an_answer_is_not_believed() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    fast_path.clock.beat();
    let request = client.get("/kernel.html");
    client.send(&request);
    let answer = client.await_segment("the answer", |segment| !segment.payload.is_empty());
    let acknowledges =
        Segment { seq: request.seq.wrapping_add(FAR), ack: answer.end(), ..client.next() };
    client.send(&acknowledges);
    std::thread::sleep(Duration::from_millis(5));
    let again = client.ask(&client.get("/kernel.html"));
    assert_eq!(again.payload, answer.payload, "the same bytes again");
    client.acknowledge();
    kernel_answers(&fast_path, &mut client);
}

/// The next number, but a timestamp from before the last answer: an old duplicate, or a forgery.
#[test]
fn a_request_with_an_older_timestamp_is_not_answered() {
    let Some((world, fast_path)) = World::with_one_pinned(Settings::default()) else { return };
    let mut client = world.connected();
    kernel_answers(&fast_path, &mut client);
    client.acknowledge();
    let request = client.get("/kernel.html");
    client.send(&Segment { ts_value: request.ts_value.wrapping_sub(10_000), ..request });
    let answers = client.collect(QUIET);
    assert!(answers.iter().all(|answer| answer.payload.is_empty()), "{answers:?}");
    assert_eq!(counted(&fast_path, Reason::StaleSegment), 1);
    kernel_answers(&fast_path, &mut client);
}

/// During an answer of several segments, too.
#[test]
fn blind_segments_change_nothing_of_a_transfer() {
    let settings = Settings { answer_max: 65_536, ..Settings::default() };
    let Some(lab) = Lab::new(settings) else { return };
    let mut client = lab.connected();
    let (request, mut segments) = begin(&mut client, "/big.html");
    let all = segments.last().expect("an initial window").end();
    let next = request.seq.wrapping_add(request.payload.len() as u32);
    let invalid = lab.count(Reason::TransferInvalid);
    let told = Segment { seq: next, ack: all, ..client.next() };
    for forged in [
        Segment { seq: next.wrapping_add(1 << 22), ..told.clone() },
        Segment { seq: next.wrapping_sub(1 << 22), ..told.clone() },
        Segment { ts_value: told.ts_value.wrapping_sub(10_000), ..told.clone() },
    ] {
        client.send(&forged);
    }
    assert!(client.collect(QUIET).is_empty(), "nothing was acknowledged");
    assert_eq!(lab.count(Reason::TransferInvalid), invalid + 2);
    assert_eq!(lab.count(Reason::StaleSegment), 1);
    let mut whole = join(&mut client, &segments);
    while whole.len() < 60_000 {
        client.acknowledge();
        segments = vec![client.take()];
        whole.extend(segments.iter().flat_map(|segment| segment.payload.clone()));
    }
    client.acknowledge();
    let rest = client.collect(QUIET);
    whole.extend(rest.iter().flat_map(|segment| {
        client.accept(segment);
        segment.payload.clone()
    }));
    client.acknowledge();
    check(&whole, 60_000);
    lab.goes_on(&mut client);
}

/// Nothing is read of a segment whose connection is not proven (P1).
#[test]
fn a_strangers_head_is_not_read() {
    without_traffic(|fast_path| {
        let before = fast_path.stats.counters().expect("counters");
        for payload in ["GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n", "GET /kernel.html HT"]
        {
            let frame = Frame::request(payload).bytes();
            let run = fast_path.interfaces.dry_run(Hook::Ingress, &frame, 3).expect("a test run");
            assert_eq!((run.verdict, run.packet), (TCX_NEXT, frame));
        }
        let counted = fast_path.stats.counters().expect("counters").since(&before);
        let reasons: Vec<_> = counted.iter().filter(|(_, count)| *count > 0).collect();
        assert_eq!(reasons, [(Reason::PassNoSocket, 6)]);
    });
}
