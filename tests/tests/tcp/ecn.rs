//! Marks instead of losses (ECN, RFC 3168): negotiated by the kernel's TCP, honoured in the answers that it
//! never sees.

use std::time::Duration;

use afpa_bpf::{Reason, Settings};
use afpa_netlab::inject::Impairment;
use afpa_netlab::{Bed, Offloads, Path};
use afpa_testkit::packet::{ACK, CWR, ECE, PSH, Segment};
use afpa_testkit::tcp::{Habits, RawClient};
use afpa_tests::tcp::{Lab, Plan, Sample};

const SOON: Duration = Duration::from_millis(60);
/// ECN bits of an IP header: the network may mark the packet; it has done so.
const CAPABLE: u8 = 2;
const CONGESTED: u8 = 3;
const LONG: usize = 60_000;

fn content(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
}

fn lab(path: Path) -> Option<Lab> {
    let settings = Settings { answer_max: 65_536, pages: 64, transfers: 64, ..Settings::default() };
    let sysctls = vec!["net.ipv4.tcp_ecn=1"];
    let lab = Lab::with_sample(Plan { path, settings, sysctls, ..Plan::default() })?;
    Sample::new(content(5000)).pin(lab.fast_path(), "/some.html");
    Sample::new(content(LONG)).pin(lab.fast_path(), "/big.html");
    Some(lab)
}

fn connected(lab: &Lab) -> RawClient {
    let mut wire = lab.wire();
    wire.habits = Habits { ecn: true, ..Habits::default() };
    wire.connect();
    wire
}

/// So many segments of new content, accepted.
fn take_new(wire: &mut RawClient, count: usize) -> Vec<Segment> {
    let take = |_| {
        let next = wire.ack;
        let new = |s: &Segment| s.seq == next && !s.payload.is_empty();
        let segment = wire.await_segment("new content", new);
        wire.accept(&segment);
        segment
    };
    (0..count).map(take).collect()
}

/// The rest of a response of user mode, which ends so.
fn finish(wire: &mut RawClient, begin: &Segment, end: &str) {
    let mut text = begin.text();
    while !text.ends_with(end) {
        text += &wire.take().text();
    }
}

/// An acknowledgement of a client that received a marked segment.
fn echo(wire: &RawClient) -> Segment {
    Segment { flags: ACK | ECE, ..wire.next() }
}

#[test]
fn new_data_may_be_marked_and_what_is_sent_again_may_not() {
    let Some(lab) = lab(Path::Direct(Offloads::NONE)) else { return };
    let mut wire = connected(&lab);
    wire.push(&wire.get("/some.html"));
    let first = take_new(&mut wire, 4);
    // The client does not acknowledge: the tail is sent again, then everything.
    let again = loop {
        let again: Vec<_> =
            wire.collect(SOON * 10).into_iter().filter(|s| !s.payload.is_empty()).collect();
        if !again.is_empty() {
            break again;
        }
    };
    assert!(first.iter().all(|s| s.ecn == CAPABLE), "{first:?}");
    assert!(again.iter().all(|s| s.ecn == 0), "{again:?}");
    // A client without ECN gets no ECN-capable packets.
    let mut plain = lab.wired();
    plain.push(&plain.get("/some.html"));
    let unmarked = take_new(&mut plain, 4);
    assert!(unmarked.iter().all(|s| s.ecn == 0 && s.flags & (ECE | CWR) == 0), "{unmarked:?}");
}

#[test]
fn a_mark_is_heard_and_the_client_told_once() {
    let Some(lab) = lab(Path::Direct(Offloads::NONE)) else { return };
    let mut wire = connected(&lab);
    wire.push(&wire.get("/big.html"));
    let begin = wire.ack;
    take_new(&mut wire, 10);
    wire.send(&echo(&wire));
    let mut told = Vec::new();
    while wire.ack.wrapping_sub(begin) < LONG as u32 {
        let segment = take_new(&mut wire, 1).remove(0);
        told.push(segment.flags & CWR != 0);
        // A real client would set ECE in every acknowledgement until it receives CWR.
        wire.acknowledge();
    }
    // A probe may have left before the echo arrived.
    let once = told.iter().filter(|told| **told).count() == 1;
    assert!(once && told[..3].contains(&true), "at once, and once: {told:?}");
    assert_eq!(lab.count(Reason::TransferBegun), 1);
}

#[test]
fn a_mark_on_the_last_segments_is_told_by_the_next_answer() {
    let Some(lab) = lab(Path::Direct(Offloads::NONE)) else { return };
    let mut wire = connected(&lab);
    wire.push(&wire.get("/some.html"));
    take_new(&mut wire, 4);
    // The next request is the first segment with ECE; the client sets it until it receives CWR.
    wire.push(&Segment { flags: ACK | PSH | ECE, ..wire.get("/some.html") });
    let told: Vec<_> = take_new(&mut wire, 4).iter().map(|s| s.flags & CWR != 0).collect();
    assert_eq!(told, [true, false, false, false]);
    wire.push(&Segment { flags: ACK | PSH | ECE, ..wire.get("/kernel.html") });
    let answer = wire.take();
    assert!(answer.is_from_kernel() && answer.flags & CWR != 0 && answer.ecn == CAPABLE);
    wire.acknowledge();
    wire.push(&wire.get("/kernel.html"));
    let answer = wire.take();
    assert!(answer.is_from_kernel() && answer.flags & CWR == 0, "told already: {answer:?}");
    wire.acknowledge();
    wire.ask_user();
    wire.ask_kernel();
}

/// The kernel's TCP echoes a mark until it receives CWR; then both contexts go on.
#[test]
fn a_marked_request_is_echoed_by_user_mode_until_the_client_says_so() {
    let Some(lab) = lab(Path::Direct(Offloads::NONE)) else { return };
    let mut wire = connected(&lab);
    wire.ask_kernel();
    wire.push(&Segment { ecn: CONGESTED, ..wire.get("/kernel.html") });
    let response = wire.take();
    assert!(!response.is_from_kernel() && response.flags & ECE != 0, "{response:?}");
    finish(&mut wire, &response, "from nginx, the pinned one");
    wire.push(&Segment { flags: ACK | PSH | CWR, ecn: CAPABLE, ..wire.get("/kernel.html") });
    let response = wire.take();
    assert!(!response.is_from_kernel() && response.flags & ECE == 0, "{response:?}");
    finish(&mut wire, &response, "from nginx, the pinned one");
    wire.acknowledge();
    for _ in 0..3 {
        wire.ask_kernel();
        wire.ask_user();
    }
    assert_eq!(lab.count(Reason::PassPacket), 1);
    assert_eq!(lab.count(Reason::PassTcpFlags), 1);
    assert_eq!(lab.count(Reason::PassUserFinal), 0);
}

/// Accurate ECN counts with the same flags (RFC 9768): such connections are left to the kernel's TCP.
#[test]
fn a_client_without_marks_that_sends_such_flags_is_left_to_user_mode() {
    let Some(lab) = lab(Path::Direct(Offloads::NONE)) else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.push(&Segment { flags: ACK | PSH | ECE, ..wire.get("/kernel.html") });
    assert!(wire.take_response().text().ends_with("from nginx, the pinned one"));
    assert_eq!(lab.count(Reason::PassTcpFlags), 1);
}

/// Clients of the kernel, and a network that marks every fifth packet, or loses it.
#[test]
fn through_a_network_that_marks() {
    let Some(lab) = lab(Path::Through(Box::default())) else { return };
    let marking = Impairment { mark: 0.2, ..Impairment::default() };
    let mut clients =
        [Bed::SERVER_V4.into(), Bed::SERVER_V6.into()].map(|server| lab.connect(server));
    lab.impair(Impairment::default(), marking);
    for turn in 0..20 {
        for client in &mut clients {
            let (path, length) = [("/big.html", LONG), ("/some.html", 5000)][turn % 2];
            let reply = client.get(path);
            assert!(reply.is_from_kernel() && reply.body == content(length), "turn {turn}");
            assert_eq!(client.get("/user.html").body, b"from nginx");
            assert!(client.get("/kernel.html").is_from_kernel());
        }
    }
    let (_, to_client) = lab.bed.injector().expect("an injector").counts();
    assert!(to_client.marked > 100, "{to_client:?}");
    println!("{to_client:?}\n{}", lab.tally());
    clients.into_iter().for_each(afpa_testkit::Client::end);
}
