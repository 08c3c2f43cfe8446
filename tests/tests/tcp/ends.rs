//! Ends of shared connections, and new connections on the same tuple after them.

use std::net::Shutdown;
use std::time::Duration;

use afpa_bpf::{FlowKey, Reason, Settings};
use afpa_netlab::{Bed, Offloads, Path};
use afpa_testkit::eventually;
use afpa_testkit::packet::{ACK, FIN, PSH, RST, SYN, Segment};
use afpa_testkit::tcp::RawClient;
use afpa_tests::tcp::{Lab, PORT, Plan, large};
use socket2::SockRef;

fn lab() -> Option<Lab> {
    Lab::with_sample(Plan { path: Path::Direct(Offloads::NONE), ..Plan::default() })
}

fn flow_exists(lab: &Lab, wire: &RawClient) -> bool {
    let key = FlowKey::new(wire.address(), (Bed::SERVER_V4, PORT).into());
    lab.fast_path().flows.flow(&key).expect("asked").is_some()
}

/// The client closes, the server does, and its socket goes.
#[track_caller]
fn close(lab: &Lab, wire: &mut RawClient) {
    wire.send(&Segment { flags: FIN | ACK, ..wire.next() });
    wire.seq = wire.seq.wrapping_add(1);
    let fin = wire.await_segment("the server's FIN", |segment| segment.flags & FIN != 0);
    assert_eq!((fin.seq, fin.ack), (wire.ack, wire.seq));
    wire.accept(&fin);
    wire.acknowledge();
    eventually("the server's socket to go", || lab.sockets("all") == 2); // its two listeners
}

/// A request to the server after which it closes.
#[track_caller]
fn ask_last(wire: &mut RawClient) {
    let last = "GET /user.html HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n";
    let reply = wire.ask(&wire.data(last)).text();
    assert!(reply.ends_with("from nginx"), "{reply}");
}

#[test]
fn half_close_by_the_client_still_gets_the_response() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    // A small file: of a large one nginx itself leaves the rest away.
    client.send("GET /user.html HTTP/1.1\r\nHost: server\r\n\r\n");
    client.tcp().shutdown(Shutdown::Write).expect("shut down");
    assert_eq!(client.receive().body, b"from nginx");
    assert!(client.take_all().is_empty());
    eventually("the server's socket to go", || lab.sockets("all") == 2); // its two listeners
}

#[test]
fn half_close_after_an_answer_of_the_kernel() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    let reply = wire.ask(&wire.get("/kernel.html")).text();
    assert!(reply.contains("afpa-kernel"), "{reply}");
    // The FIN is the first to acknowledge the answer.
    close(&lab, &mut wire);
}

#[test]
fn reset_by_the_client_in_the_middle_of_a_response() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    client.send("GET /large.html HTTP/1.1\r\nHost: server\r\n\r\n");
    client.take(1000);
    SockRef::from(client.tcp()).set_linger(Some(Duration::ZERO)).expect("linger");
    drop(client);
    eventually("the server's socket to go", || lab.sockets("established") == 0);
    let mut client = lab.client();
    lab.converse(&mut client);
    client.end();
}

#[test]
fn reset_by_the_client_is_in_the_numbers_of_the_server() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.ask_user();
    eventually("an established socket", || lab.sockets("established") == 1);
    wire.send(&Segment { flags: RST | ACK, ..wire.next() });
    eventually("the server's socket to go", || lab.sockets("established") == 0);
}

#[test]
fn reset_by_the_server_reaches_the_client_in_its_numbers() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    // More content than nginx reads before it closes: the unread rest makes the end a reset.
    let head = "POST /drop HTTP/1.1\r\nHost: server\r\nContent-Length: 100000\r\n\r\n";
    let request = wire.data([head.as_bytes(), &[b'x'; 1300]].concat());
    wire.push(&request);
    wire.push(&wire.data([b'x'; 1400]));
    let end = wire.await_segment("the end", |segment| segment.flags & (RST | FIN) != 0);
    assert_eq!(end.seq, wire.ack, "{end:?}");
    if end.flags & RST == 0 {
        wire.push(&wire.data([b'x'; 1400])); // to a socket that is closed
        let reset = wire.await_segment("a reset", |segment| segment.flags & RST != 0);
        assert!(reset.seq == wire.ack || reset.seq == wire.ack.wrapping_add(1), "{reset:?}");
    }
    eventually("the flow to go", || !flow_exists(&lab, &wire) || lab.sockets("all") == 2);
}

/// Both FINs cross: neither acknowledges the other.
#[test]
fn simultaneous_close() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    ask_last(&mut wire);
    // nginx's FIN comes with the response or right behind it. Ours has not seen it.
    let data_end = wire.ack.wrapping_sub(u32::from(wire.fin_accepted));
    wire.send(&Segment { flags: FIN | ACK, ack: data_end, ..wire.next() });
    wire.seq = wire.seq.wrapping_add(1);
    let seq = wire.seq;
    let acknowledged = wire.await_segment("our FIN acknowledged", |segment| segment.ack == seq);
    assert!(acknowledged.flags & RST == 0, "{acknowledged:?}");
    wire.ack = data_end.wrapping_add(1);
    wire.acknowledge();
    eventually("TIME-WAIT or nothing", || {
        lab.sockets("closing") + lab.sockets("fin-wait-1") + lab.sockets("last-ack") == 0
    });
}

/// The client closed first: the server forgets the connection, and the next one on the same ports
/// begins without an offset.
#[test]
fn same_ports_after_a_clean_close() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    for round in 0..3 {
        wire.ask_kernel();
        wire.ask_user();
        wire.ask_kernel();
        close(&lab, &mut wire);
        wire.seq = wire.seq.wrapping_add(7_000_000 * (round + 1));
        wire.connect();
    }
    wire.ask_kernel();
    assert_eq!(lab.count(Reason::FlowOpened), 4);
}

/// The server closed first: a new SYN takes the tuple over from TIME-WAIT.
#[test]
fn same_ports_out_of_time_wait() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    ask_last(&mut wire);
    if !wire.fin_accepted {
        let fin = wire.await_segment("the server's FIN", |segment| segment.flags & FIN != 0);
        wire.accept(&fin);
    }
    wire.send(&Segment { flags: FIN | ACK, ..wire.next() });
    wire.seq = wire.seq.wrapping_add(1);
    eventually("TIME-WAIT", || lab.sockets("time-wait") == 1);
    wire.seq = wire.seq.wrapping_add(5_000_000);
    wire.connect();
    wire.ask_kernel();
    wire.ask_user();
    wire.ask_kernel();
    assert_eq!(lab.count(Reason::FlowOpened), 2);
}

#[test]
fn connections_of_both_families_are_forgotten_with_their_sockets() {
    let Some(lab) = lab() else { return };
    let sweep = || lab.fast_path().sweep(Duration::ZERO).expect("swept");
    let sweep = || lab.bed.server().run(sweep).expect("inside");
    for server in [Bed::SERVER_V4.into(), Bed::SERVER_V6.into()] {
        let mut client = lab.connect(server);
        lab.converse(&mut client);
        assert_eq!(sweep().translated, 1);
        assert_eq!(sweep().translated, 1, "it has a socket");
        client.end();
        eventually("its end", || sweep().flows == 0);
    }
}

/// A reset and a new connection at once, without a pause that a sweep could use.
#[test]
fn same_ports_right_after_a_reset() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    for _ in 0..5 {
        wire.ask_kernel();
        wire.ask_user();
        wire.send(&Segment { flags: RST | ACK, ..wire.next() });
        wire.seq = wire.seq.wrapping_add(3_000_000);
        wire.connect();
    }
    wire.ask_kernel();
    assert_eq!(lab.count(Reason::FlowOpened), 6);
}

/// The client is gone without a word, its last answer lost. A new SYN on its ports is answered by a challenge ACK with the
/// old numbers; the client answers with a reset, which must end the old connection.
#[test]
fn half_open_connection_with_a_lost_answer_can_be_reset() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.send(&wire.get("/kernel.html"));
    wire.await_segment("an answer", afpa_testkit::packet::Segment::is_from_kernel);
    let syn = Segment { seq: wire.seq.wrapping_add(9_000_000), flags: 2, ..wire.next() };
    wire.send(&Segment { ack: 0, ..syn });
    let challenge = wire.await_segment("a challenge", |segment| segment.payload.is_empty());
    wire.send(&Segment { seq: challenge.ack, ack: 0, flags: RST, ..wire.next() });
    eventually("the old connection to end", || lab.sockets("established") == 0);
}

/// The same, when the server has got a request behind the one that was answered: its numbers are those behind both.
#[test]
fn half_open_connection_with_a_lost_answer_and_a_later_request_can_be_reset() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    let answered = wire.get("/kernel.html");
    wire.send(&answered);
    wire.await_segment("an answer", Segment::is_from_kernel);
    let later = wire.get("/user.html");
    let seq = answered.seq.wrapping_add(answered.payload.len() as u32);
    wire.send(&Segment { seq, ..later });
    wire.await_segment("a response", |segment| segment.payload.ends_with(b"from nginx"));
    let syn = Segment { seq: wire.seq.wrapping_add(9_000_000), ack: 0, flags: SYN, ..wire.next() };
    wire.send(&syn);
    let challenge = wire.await_segment("a challenge", |segment| segment.payload.is_empty());
    wire.send(&Segment { seq: challenge.ack, ack: 0, flags: RST, ..wire.next() });
    eventually("the old connection to end", || lab.sockets("established") == 0);
}

#[test]
fn full_flow_table_leaves_new_connections_to_user_mode() {
    let settings = Settings { flows: 3, ..Settings::default() };
    let Some(lab) = Lab::with_sample(Plan { settings, ..Plan::default() }) else { return };
    let mut first: Vec<_> = (0..3).map(|_| lab.client()).collect();
    first.iter_mut().for_each(|client| lab.converse(client));
    let mut late: Vec<_> = (0..5).map(|_| lab.client()).collect();
    for client in &mut late {
        for _ in 0..3 {
            assert_eq!(client.get("/kernel.html").body, b"from nginx, the pinned one");
            assert_eq!(client.get("/user.html").body, b"from nginx");
        }
    }
    assert_eq!(lab.count(Reason::PassFlowsFull), 5, "one attempt a connection");
    first.iter_mut().for_each(|client| lab.converse(client)); // their flows stay in the table
    late.into_iter().for_each(afpa_testkit::Client::end);
    first.into_iter().for_each(afpa_testkit::Client::end);
    eventually("room", || {
        let mut client = lab.client();
        client.get("/kernel.html").is_from_kernel()
    });
}

/// While the process hangs nobody answers, and connections with an offset are whole all the same.
#[test]
fn hanging_process_stops_answers_and_keeps_connections() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    lab.hang();
    for _ in 0..3 {
        assert_eq!(client.get("/kernel.html").body, b"from nginx, the pinned one");
        assert_eq!(client.get("/large.html").body, large());
    }
    let mut fresh = lab.client();
    assert_eq!(fresh.get("/kernel.html").body, b"from nginx, the pinned one");
    lab.resume();
    let mut next = lab.client();
    lab.converse(&mut next);
    assert_eq!(client.get("/user.html").body, b"from nginx");
    for client in [client, fresh, next] {
        client.end();
    }
}

/// Content behind a FIN is nobody's.
#[test]
fn request_with_a_fin_goes_up() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    let request = Segment { flags: ACK | PSH | FIN, ..wire.get("/user.html") };
    wire.push(&request);
    wire.seq = wire.seq.wrapping_add(1);
    let reply = wire.take_response().text();
    assert!(reply.ends_with("from nginx"), "{reply}");
    assert_eq!(lab.count(Reason::Answered), 1);
}
