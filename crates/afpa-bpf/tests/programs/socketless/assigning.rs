//! Assigned once: trap by trap, a request that the kernel's TCP gets is executed once, whole, and by one listener.

use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

use crate::life::Pins;
use crate::support::socketless::{
    Bench, SOON, data, listen, post, read, resets, respond, set_tcp_option,
};
use crate::support::{SENT_AGAIN, SERVER_V4, inside, serve_server};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::eventually;
use afpa_testkit::packet::{FIN, RST, SYN, Segment, SynOptions, checksum};
use afpa_testkit::tcp::RawClient;

fn bench() -> Option<Bench> {
    Bench::listening(16, |_| ())
}

/// The server gets these bytes, and answers; the client takes the answer.
#[track_caller]
fn is_served(bench: &Bench, client: &mut RawClient, request: &[u8]) -> std::net::TcpStream {
    let mut stream = bench.accept();
    assert!(read(&mut stream, request.len()) == request, "not as it was sent");
    respond(&mut stream, "ok");
    assert!(client.take_response().text().ends_with("ok"));
    client.acknowledge();
    stream
}

/// The client closes first, so the server keeps no TIME_WAIT.
#[track_caller]
fn client_closes(bench: &Bench, client: &mut RawClient, mut stream: std::net::TcpStream) {
    client.finish();
    assert_eq!(stream.read(&mut [0]).expect("the end"), 0);
    drop(stream);
    let fin = client.await_segment("the server's FIN", |s| s.flags & FIN != 0);
    client.ack = fin.end();
    client.acknowledge();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(bench.sockets_of(client.address()), "");
}

/// A connection that nginx had the first request of, and that its client has reset; and that request.
#[track_caller]
fn assigned_and_gone(bench: &Bench) -> (RawClient, Segment) {
    let mut client = bench.open();
    let request = client.get("/user.html");
    client.push(&request);
    assert!(client.take_response().text().ends_with("from nginx"));
    client.acknowledge();
    client.reset();
    (client, request)
}

/// A duplicate of the segment changes nothing, and no connection is accepted for it.
#[track_caller]
fn is_not_executed_again(bench: &Bench, client: &RawClient, segment: &Segment) {
    let opens = bench.tcp("TcpPassiveOpens");
    for _ in 0..3 {
        client.send(segment);
        let answers = client.collect(SOON);
        assert!(data(answers.clone()).is_empty(), "{answers:?}");
    }
    assert!(bench.try_accept(SOON).is_none(), "a second connection: {:?}", bench.counts());
    assert_eq!(bench.tcp("TcpPassiveOpens"), opens);
}

#[test]
fn a_replayed_first_request_is_executed_once() {
    let Some(bench) = bench() else { return };
    let mut client = bench.open();
    let request = client.data(post(b"one euro"));
    client.push(&request);
    let stream = is_served(&bench, &mut client, &request.payload);
    is_not_executed_again(&bench, &client, &request);
    client_closes(&bench, &mut client, stream);
    is_not_executed_again(&bench, &client, &request);
    assert!(bench.count(Reason::SocketlessReplayed) >= 1, "{:?}", bench.counts());
}

#[test]
fn a_replayed_request_behind_a_hit_is_executed_once() {
    let Some(bench) = bench() else { return };
    let mut client = bench.open();
    let hit = client.get("/kernel.html");
    assert!(client.ask(&hit).is_from_kernel());
    let request = client.data(post(b"one euro"));
    client.push(&request);
    let stream = is_served(&bench, &mut client, &request.payload);
    is_not_executed_again(&bench, &client, &request);
    is_not_executed_again(&bench, &client, &hit);
    client_closes(&bench, &mut client, stream);
    // The hit has the cookie's numbers, the other one would be the next of a connection that begins with it.
    for segment in [&request, &hit, &request] {
        is_not_executed_again(&bench, &client, segment);
    }
}

/// Its cookie is valid for the next process, too: so that process must remember assigned connections.
#[test]
fn a_request_of_the_process_before_is_not_executed_again() {
    let Some(pins) = Pins::new() else { return };
    let Some(bench) = Bench::with(pins.settings()) else { return };
    let (client, request) = assigned_and_gone(&bench);
    let _open = bench.open();
    // The number of kept flows counts, not that of the new settings.
    let settings = Settings { flows: 32, sizes_as_kept: true, ..pins.settings() };
    let bench = bench.next_process(settings).expect("it could be had before");
    assert_eq!(bench.fast_path.clients.without_socket(), 1, "the open one is counted");
    assert_eq!(bench.count(Reason::SocketlessReplayed), 0, "{:?}", bench.counts());
    is_not_executed_again(&bench, &client, &request);
    assert_eq!(bench.count(Reason::SocketlessReplayed), 3, "{:?}", bench.counts());
    // A request that was not executed before is executed.
    let mut client = bench.open();
    assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
}

#[test]
fn a_server_that_closes_at_once_executes_a_replayed_request_once() {
    let Some(bench) = bench() else { return };
    let mut client = bench.open();
    let request = client.data(post(b"one euro"));
    client.push(&request);
    drop(bench.accept()); // with bytes unread: a reset
    let reset = client.await_segment("a reset", |s| s.flags & RST != 0);
    assert_eq!(reset.seq, client.ack);
    is_not_executed_again(&bench, &client, &request);
}

#[test]
fn a_connection_for_which_there_was_no_room_is_assigned_once() {
    let Some(bench) = Bench::with(Settings { flows: 1, ..Settings::default() }) else { return };
    let mut client = bench.raw(); // the connection by which it is known has the place
    client.connect();
    assert_eq!(bench.count(Reason::SocketlessSyn), 1, "{:?}", bench.counts());
    let request = client.get("/user.html");
    client.push(&request);
    assert!(client.take_response().text().ends_with("from nginx"));
    client.acknowledge();
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1);
    client.reset();
    std::thread::sleep(SOON);
    let opens = bench.tcp("TcpPassiveOpens");
    client.send(&request);
    let answers = client.answers(SOON);
    assert!(data(answers.clone()).is_empty() && resets(&answers) == 1, "{answers:?}");
    assert_eq!(bench.tcp("TcpPassiveOpens"), opens);
}

/// Most of as many as the table of flows has room for are remembered; that is a quarter of the sets' room.
#[test]
fn those_before_the_last_ones_are_remembered_as_well() {
    let Some(bench) = Bench::with(Settings { flows: 16, ..Settings::default() }) else { return };
    let assigned: Vec<_> = (0..12).map(|_| assigned_and_gone(&bench)).collect();
    assert_eq!(bench.count(Reason::SocketlessToKernel), 12, "{:?}", bench.counts());
    std::thread::sleep(SOON);
    let opens = bench.tcp("TcpPassiveOpens");
    for (client, request) in &assigned {
        client.send(request);
        let answers = client.answers(SOON);
        assert!(data(answers.clone()).is_empty() && resets(&answers) == 1, "{answers:?}");
    }
    assert_eq!(bench.tcp("TcpPassiveOpens"), opens);
    assert_eq!(bench.count(Reason::SocketlessReplayed), 12, "{:?}", bench.counts());
}

/// Nothing of the response is read, and the flow goes with the connection.
#[test]
fn a_request_that_is_the_last_one_leaves_the_connection_to_user_mode() {
    let Some(bench) = bench() else { return };
    let mut client = bench.open();
    let request = client.data(b"GET /user.html HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    client.push(&request);
    let mut stream = is_served(&bench, &mut client, &request.payload);
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1, "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::ResponseEnd), 0, "{:?}", bench.counts());
    let further = client.get("/kernel.html");
    client.push(&further); // against its word
    assert!(read(&mut stream, further.payload.len()) == further.payload, "the server's to decide");
    assert_eq!(bench.count(Reason::PassUserFinal), 1, "{:?}", bench.counts());
    client_closes(&bench, &mut client, stream);
}

#[test]
fn a_full_accept_queue_loses_nothing() {
    let Some(bench) = Bench::listening(1, |_| ()) else { return };
    for behind_a_hit in [true, false] {
        let mut client = bench.open();
        if behind_a_hit {
            assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        }
        let fill = bench.fill_queue(2);
        let request = client.data(post(b"one euro"));
        for _ in 0..3 {
            client.send(&request);
            assert!(client.collect(SOON).is_empty(), "{:?}", bench.counts());
        }
        assert!(bench.sockets_of(client.address()).is_empty());
        let fillers = [bench.accept(), bench.accept()];
        client.push(&request);
        let stream = is_served(&bench, &mut client, &request.payload);
        is_not_executed_again(&bench, &client, &request);
        client_closes(&bench, &mut client, stream);
        is_not_executed_again(&bench, &client, &request);
        drop(fillers);
        fill.iter().for_each(RawClient::reset);
    }
}

#[test]
fn a_cookie_that_comes_back_to_a_full_queue_opens_the_connection() {
    let Some(bench) = Bench::listening(1, |_| ()) else { return };
    let mut client = bench.raw();
    client.send(&Segment {
        flags: SYN,
        ack: 0,
        syn: SynOptions { mss: Some(1460), sack: true, scale: Some(7) },
        ts_echo: 0,
        ..client.next()
    });
    let answer = client.await_segment("SYN-ACK", |s| s.flags & SYN != 0);
    let fill = bench.fill_queue(2);
    client.seq = client.seq.wrapping_add(1);
    client.ack = answer.end();
    client.ts_recent = answer.ts_value;
    client.acknowledge();
    assert!(client.collect(SOON).is_empty(), "{:?}", bench.counts());
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(reply.is_from_kernel(), "{reply:?}");
    drop(fill);
}

#[test]
fn a_request_of_two_segments_before_a_full_queue_is_not_reset() {
    let Some(bench) = Bench::listening(1, |_| ()) else { return };
    let mut client = bench.open();
    let fill = bench.fill_queue(2);
    let whole = post(b"one euro");
    let first = client.data(&whole[..40]);
    let second = Segment { seq: client.seq.wrapping_add(40), ..client.data(&whole[40..]) };
    for _ in 0..2 {
        client.send(&first);
        client.send(&second);
        let answers = client.collect(SOON);
        let begins_there = answers.iter().all(|s| s.ack == client.seq && s.payload.is_empty());
        assert!(begins_there && resets(&answers) == 0, "{answers:?} {:?}", bench.counts());
    }
    let fillers = [bench.accept(), bench.accept()];
    client.send(&first);
    client.send(&second);
    client.seq = client.seq.wrapping_add(whole.len() as u32);
    is_served(&bench, &mut client, &whole);
    drop((fill, fillers));
}

/// An old SYN of the connection, while its socket is to come.
#[test]
fn a_syn_that_comes_again_before_the_socket_is_made_changes_nothing() {
    let Some(bench) = Bench::listening(1, |_| ()) else { return };
    let mut client = bench.open();
    let syn = Segment { flags: SYN, seq: client.seq.wrapping_sub(1), ack: 0, ..client.next() };
    let request = client.data(post(b"one euro"));
    // Assigned, but lost on its way there: IP drops a packet that names its route (RFC 791, 3.1).
    let mut routed = client.frame(&request);
    routed.splice(34..34, [131, 7, 4, 10, 77, 0, 9, 0]);
    let length = (routed.len() - 14) as u16;
    routed[14] = 0x47;
    routed[16..18].copy_from_slice(&length.to_be_bytes());
    routed[24..26].fill(0);
    let sum = !checksum::sum(&[&routed[14..42]]);
    routed[24..26].copy_from_slice(&sum.to_be_bytes());
    client.send_frame(&routed);
    std::thread::sleep(SOON);
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1, "{:?}", bench.counts());
    client.send(&syn);
    let answers = client.collect(SOON);
    assert!(answers.is_empty(), "{answers:?}");
    client.push(&request);
    is_served(&bench, &mut client, &request.payload);
}

#[test]
fn several_listeners_of_a_port_share_what_is_assigned() {
    let reuse = |socket: &socket2::Socket| socket.set_reuse_port(true).expect("shared");
    let Some(mut bench) = Bench::listening(64, reuse) else { return };
    bench.listeners.push(listen(bench.world.server(), 64, reuse));
    inside(bench.world.server(), || serve_server(&bench.fast_path));
    let mut taken = [0, 0];
    for _ in 0..24 {
        let mut client = bench.open();
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        let request = client.data(post(b"one euro"));
        client.push(&request);
        eventually("one of them has it", || {
            let accepted =
                (0..2).find_map(|number| Some((number, bench.listeners[number].accept().ok()?)));
            let Some((number, (mut stream, _))) = accepted else { return false };
            stream.set_nonblocking(false).expect("blocking");
            assert!(read(&mut stream, request.payload.len()) == request.payload);
            taken[number] += 1;
            true
        });
    }
    assert!(taken[0] + taken[1] == 24 && taken[0] > 0 && taken[1] > 0, "{taken:?}");
}

#[test]
fn a_listener_that_defers_accepting_accepts_at_once() {
    let Some(bench) = Bench::listening(16, defer_accept) else { return };
    let mut client = bench.open();
    let request = client.data(post(b"one euro"));
    client.push(&request);
    is_served(&bench, &mut client, &request.payload);
}

/// The client acknowledges a response by its next request and by nothing else, as clients do that ask again at once. The
/// kernel answers that, and the server's TCP gets the acknowledgement.
#[test]
fn a_request_that_acknowledges_the_response_before_it_is_answered() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
    let address = client.address();
    let unacknowledged = || unacknowledged(&bench, address);
    assert_ne!(unacknowledged(), "0");
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(reply.is_from_kernel(), "{reply:?} {:?}", bench.counts());
    eventually("the server's TCP is told", || unacknowledged() == "0");
    client.acknowledge();
    assert!(data(client.collect(SENT_AGAIN)).is_empty(), "nothing is sent again");
    for _ in 0..2 {
        assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    }
    assert_eq!(bench.count(Reason::PassNoSocket), 0, "{:?}", bench.counts());
}

/// As the test above, before an answer that the client acknowledges on its way.
#[test]
fn a_long_answer_may_follow_a_response_that_only_its_request_acknowledges() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
    let address = client.address();
    assert_ne!(unacknowledged(&bench, address), "0");
    client.push(&client.get("/some.html"));
    client.absorb(&"k".repeat(30_000));
    assert_eq!(bench.count(Reason::TransferBegun), 1, "{:?}", bench.counts());
    eventually("the server's TCP is told", || unacknowledged(&bench, address) == "0");
    assert!(data(client.collect(SENT_AGAIN)).is_empty(), "nothing is sent again");
    assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
}

/// How many bytes the server's TCP believes to be on their way, as `ss` says it.
fn unacknowledged(bench: &Bench, client: SocketAddr) -> String {
    let sockets = bench.sockets_of(client);
    sockets.split_whitespace().nth(2).map(str::to_owned).unwrap_or(sockets)
}

#[test]
fn without_a_listener_the_client_is_reset_and_a_new_one_takes_over() {
    let Some(mut bench) = bench() else { return };
    let mut orphan = bench.open();
    let mut waiting = bench.open();
    assert!(waiting.ask(&waiting.get("/kernel.html")).is_from_kernel());
    bench.stop_listening();
    let request = orphan.data(post(b"one euro"));
    orphan.push(&request);
    let answers = orphan.answers(SOON);
    assert_eq!((answers.len(), resets(&answers)), (1, 1), "{answers:?}");
    waiting.acknowledge(); // alone it loses nothing
    assert!(waiting.collect(SOON).is_empty());
    bench.listeners.push(listen(bench.world.server(), 16, |_| ()));
    let request = waiting.data(post(b"one euro"));
    waiting.push(&request);
    is_served(&bench, &mut waiting, &request.payload);
}

/// An option that both sides agreed on is switched off while the connection is open: the kernel refuses it then.
#[test]
fn a_connection_that_the_kernel_refuses_is_reset() {
    let Some(bench) = Bench::new() else { return };
    for option in ["timestamps", "sack", "window_scaling"] {
        let mut client = bench.open();
        assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
        bench.world.sysctl(&format!("net.ipv4.tcp_{option}=0"));
        client.push(&client.get("/user.html"));
        let answers = client.answers(SOON);
        assert_eq!((answers.len(), resets(&answers)), (1, 1), "{option}: {answers:?}");
        assert_eq!(answers[0].seq, client.ack);
        assert_eq!(bench.sweep().socketless, 0);
        bench.world.sysctl(&format!("net.ipv4.tcp_{option}=1"));
    }
    assert_eq!(bench.count(Reason::SocketlessRefused), 3, "{:?}", bench.counts());
}

#[test]
fn content_of_several_hundred_kilobytes_arrives_whole() {
    let Some(bench) = bench() else { return };
    for behind_a_hit in [true, false] {
        let mut client = bench.open_real(SERVER_V4);
        if behind_a_hit {
            assert!(client.get("/kernel.html").is_from_kernel());
        }
        upload(&bench, &mut client);
    }
    assert_eq!(bench.count(Reason::SocketlessToKernel), 2, "{:?}", bench.counts());
}

/// 300 kB, and their answer.
#[track_caller]
fn upload(bench: &Bench, client: &mut afpa_testkit::Client) {
    let content: Vec<u8> = (0..300_000u32).map(|i| (i * 7 + (i >> 8)) as u8).collect();
    let request = post(&content);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = bench.accept();
            assert!(read(&mut stream, request.len()) == request, "not as it was sent");
            respond(&mut stream, "ok");
        });
        client.send(&request);
        assert_eq!(client.receive().body, b"ok");
    });
}

fn defer_accept(socket: &socket2::Socket) {
    const TCP_DEFER_ACCEPT: i32 = 9;
    let seconds = 5_i32;
    set_tcp_option(socket, TCP_DEFER_ACCEPT, &seconds);
}
