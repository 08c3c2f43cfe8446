//! Windows, segment sizes, and the probes that keep an idle or a stalled connection alive.

use std::time::Duration;

use afpa_bpf::Reason;
use afpa_netlab::{Offloads, Path};
use afpa_testkit::packet::{ACK, Segment};
use afpa_testkit::tcp::{Habits, RawClient};
use afpa_tests::tcp::{Lab, Plan};

fn lab(listen: &'static str) -> Option<Lab> {
    Lab::with_sample(Plan { path: Path::Direct(Offloads::NONE), listen, ..Plan::default() })
}

fn connected(lab: &Lab, habits: Habits) -> RawClient {
    let mut wire = lab.wire();
    wire.habits = habits;
    wire.connect();
    wire
}

/// Length of the answer to `GET /kernel.html`.
fn answer_length(lab: &Lab) -> u16 {
    let mut wire = lab.wired();
    let length = wire.ask(&wire.get("/kernel.html")).text().len();
    wire.acknowledge();
    length as u16
}

#[test]
fn answer_that_just_fits_the_window() {
    let Some(lab) = lab("") else { return };
    let length = answer_length(&lab);
    let habits = Habits { scale: None, ..Habits::default() };
    let mut wire = connected(&lab, Habits { window: length, ..habits });
    assert!(wire.ask(&wire.get("/kernel.html")).text().ends_with("from the kernel"));
    wire.acknowledge();

    let mut wire = connected(&lab, Habits { window: length - 1, ..habits });
    wire.push(&wire.get("/kernel.html"));
    trickle(&mut wire, length - 1);
    assert_eq!(lab.count(Reason::PassWindow), 1);
}

#[test]
fn tiny_scaled_windows_are_kept_by_kernel_and_user_mode() {
    let Some(lab) = lab("") else { return };
    // 12 x 16 bytes: room for an answer of the kernel, but not for a response of nginx.
    let habits = Habits { scale: Some(4), window: 12, ..Habits::default() };
    let mut wire = connected(&lab, habits);
    wire.ask_kernel();
    for _ in 0..3 {
        wire.push(&wire.get("/user.html"));
        trickle(&mut wire, 12 * 16);
    }
    assert_eq!(lab.count(Reason::Answered), 1);
}

/// Take a response of nginx in pieces, none of which goes beyond the window.
fn trickle(wire: &mut RawClient, window: u16) {
    let mut text = String::new();
    while !text.contains("from nginx") {
        let begin = wire.ack;
        let segment = wire.await_segment("content", |segment| !segment.payload.is_empty());
        let reach = segment.end().wrapping_sub(begin) as i32;
        assert!(reach <= i32::from(window), "{reach} of {window}: {segment:?}");
        if segment.seq == begin {
            wire.accept(&segment);
            text.push_str(&segment.text());
            wire.acknowledge();
        }
    }
}

#[test]
fn small_segment_size_of_the_client() {
    let Some(lab) = lab("") else { return };
    let length = answer_length(&lab);
    // The kernel's MSS counts the 12 bytes of timestamps, its payload does not.
    for (mss, answered) in [(length + 12, true), (length + 11, false)] {
        let mut wire = connected(&lab, Habits { mss, ..Habits::default() });
        let reply = wire.ask(&wire.get("/kernel.html")).text();
        assert_eq!(reply.contains("afpa-kernel"), answered, "MSS {mss}, answer {length}: {reply}");
        wire.acknowledge();
    }
}

#[test]
fn zero_window_is_probed_in_the_numbers_of_the_client() {
    let Some(lab) = lab("") else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.ask_kernel();
    let closed = Segment { window: 0, ..wire.get("/user.html") };
    wire.push(&closed);
    let (seq, ack) = (wire.ack.wrapping_sub(1), wire.seq);
    for _ in 0..3 {
        let probe = wire.await_segment("a probe", |segment| segment.seq == seq);
        assert_eq!((probe.payload.len(), probe.ack, probe.flags), (0, ack, ACK), "{probe:?}");
        wire.send(&Segment { window: 0, ..wire.next() });
    }
    wire.acknowledge(); // the window opens
    assert!(wire.take_response().text().ends_with("from nginx"));
    wire.acknowledge();
    wire.ask_kernel();
}

#[test]
fn request_for_the_kernel_with_a_closed_window_goes_up() {
    let Some(lab) = lab("") else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.push(&Segment { window: 0, ..wire.get("/kernel.html") });
    lab.await_count(Reason::PassWindow, 1);
    wire.acknowledge();
    assert!(wire.take_response().text().ends_with("from nginx, the pinned one"));
    assert_eq!(lab.count(Reason::Answered), 1);
}

#[test]
fn probes_of_the_client_are_answered() {
    let Some(lab) = lab("") else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.ask_user();
    wire.ask_kernel();
    for length in [0, 1] {
        // RFC 1122, 4.2.3.6: some stacks send one old byte along.
        let mut probe = Segment { seq: wire.seq.wrapping_sub(1), ..wire.next() };
        probe.payload.resize(length, b'\n');
        wire.send(&probe);
        let answer = wire.await_segment("an acknowledgement", |_| true);
        assert_eq!((answer.seq, answer.ack, answer.flags), (wire.ack, wire.seq, ACK));
    }
    wire.ask_kernel();
}

/// The server probes an idle connection, and gives up when three probes are not answered.
#[test]
fn probes_of_the_server_are_answered() {
    let Some(lab) = lab("so_keepalive=1s:1s:3") else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.ask_user();
    wire.ask_kernel();
    for round in 0..6 {
        let expected = (wire.ack.wrapping_sub(1), wire.seq, 0);
        let probe = wire.await_segment("a probe", |_| true);
        let seen = (probe.seq, probe.ack, probe.payload.len());
        assert_eq!((seen, probe.flags), (expected, ACK), "round {round}: {probe:?}");
        wire.acknowledge();
    }
    wire.ask_user();
    wire.ask_kernel();
}

/// The same between two kernels.
#[test]
fn idle_connection_outlives_the_probes_of_the_server() {
    let Some(lab) = lab("so_keepalive=1s:1s:2") else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    std::thread::sleep(Duration::from_secs(5)); // the time that makes the case: five probes
    lab.converse(&mut client);
    client.end();
}

#[test]
fn window_of_the_server_is_its_own_in_answers() {
    let Some(lab) = lab("") else { return };
    let mut wire = lab.wired();
    wire.ask_user();
    wire.ask_user();
    let own = wire.server_window;
    for _ in 0..2 {
        wire.ask_kernel();
        assert_eq!(wire.server_window, own, "as the server's TCP said last");
    }
}
