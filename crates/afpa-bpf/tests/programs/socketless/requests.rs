//! Requests in any pieces: they are answered here, or the kernel's TCP gets every byte of them.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::socketless::{Bench, SOON, data, ss};
use crate::support::{PORT, SERVER_V4, SERVER_V6, inside};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::packet::{FIN, Segment};
use afpa_testkit::{Client, Response};
use socket2::{Domain, Socket, Type};

const HIT: &str = "GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n";
const MISS: &str = "GET /user.html HTTP/1.1\r\nHost: server\r\n\r\n";

#[test]
fn a_request_in_two_segments_is_assigned_with_its_first() {
    let Some(bench) = Bench::new() else { return };
    for behind_a_hit in [true, false] {
        for cut in [1, 5, 20, HIT.len() - 1] {
            let mut client = bench.open();
            if behind_a_hit {
                assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
            }
            let before = bench.count(Reason::SocketlessToKernel);
            client.push(&client.data(&HIT[..cut]));
            assert!(data(client.collect(Duration::from_millis(10))).is_empty());
            assert_eq!(bench.count(Reason::SocketlessToKernel), before + 1, "at once");
            let reply = client.ask(&client.data(&HIT[cut..]));
            assert!(reply.text().ends_with("from nginx"), "{cut}: {reply:?}");
            client.acknowledge();
            bench.goes_on(&mut client);
            client.reset();
        }
    }
}

#[test]
fn two_segments_without_a_pause_and_in_the_wrong_order() {
    let Some(bench) = Bench::new() else { return };
    for order in [[0, 1], [1, 0]] {
        for behind_a_hit in [true, false] {
            let mut client = bench.open();
            if behind_a_hit {
                assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
                client.acknowledge();
            }
            let seq = client.seq.wrapping_add(20);
            let parts = [client.data(&HIT[..20]), Segment { seq, ..client.data(&HIT[20..]) }];
            order.iter().for_each(|part| client.send(&parts[*part]));
            std::thread::sleep(Duration::from_millis(20));
            client.send(&parts[1]); // the part that came too early was not kept
            client.seq = client.seq.wrapping_add(HIT.len() as u32);
            let reply = client.take_response();
            assert!(reply.text().ends_with("from nginx"), "{order:?}: {reply:?}");
            client.acknowledge();
            client.reset();
        }
    }
}

#[test]
fn several_requests_in_one_segment() {
    let Some(bench) = Bench::new() else { return };
    for texts in [vec![HIT, HIT], vec![HIT, MISS, HIT], vec![MISS, HIT], vec![MISS, MISS]] {
        let mut client = bench.open();
        client.push(&client.data(texts.concat()));
        for text in &texts {
            let reply = client.take_response();
            let body = if *text == HIT { "the pinned one, from nginx" } else { "from nginx" };
            assert!(reply.text().ends_with(&format!("\r\n\r\n{body}")), "{reply:?}");
            client.acknowledge();
        }
        bench.goes_on(&mut client);
        client.reset();
    }
}

/// A client that does not wait: it sends a request again by itself that came behind an unacknowledged answer.
#[test]
fn pipelined_requests_are_all_answered_in_order() {
    let Some(bench) = Bench::new() else { return };
    for texts in [[HIT, MISS], [HIT, HIT], [MISS, HIT]] {
        let mut client = bench.open_real(SERVER_V4);
        texts.iter().for_each(|text| client.send(text));
        for text in texts {
            let reply: Response = client.receive();
            let right = if text == MISS {
                reply.body == b"from nginx"
            } else {
                reply.body.starts_with(b"from the kernel")
                    || reply.body.starts_with(b"the pinned one")
            };
            assert!(right, "{texts:?}: {reply:?}");
        }
        client.assert_quiet();
        client.end();
    }
}

#[test]
fn a_client_with_a_small_window_gets_no_more_than_it_takes() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open_with(|habits| {
        habits.scale = None;
        habits.window = 100; // less than an answer
    });
    client.push(&client.get("/kernel.html"));
    let answers = data(client.answers(SOON));
    let most = answers.iter().map(|s| s.end().wrapping_sub(client.ack)).max().expect("some");
    assert!(most <= 100, "{answers:?}"); // the same bytes may come again
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1, "{:?}", bench.counts());
    client.reset();

    bench.introduce_real(SERVER_V4);
    let server = SocketAddr::new(SERVER_V4.parse().expect("an address"), PORT);
    let mut real = inside(bench.world.bed.client(), || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_recv_buffer_size(2048).expect("set");
        socket.connect(&server.into()).expect("connected");
        Client::of(socket.into())
    });
    for _ in 0..3 {
        assert_eq!(real.get("/kernel.html").status, 200);
    }
    assert!(real.get("/large.bin").body.len() == 3_000_000);
}

#[test]
fn a_client_without_checksum_offload() {
    let Some(bench) = Bench::new() else { return };
    bench.world.ethtool("tx", "off");
    for address in [SERVER_V4, SERVER_V6] {
        let mut client = bench.open_real(address);
        assert!(client.get("/kernel.html").is_from_kernel());
        assert_eq!(client.get("/user.html").body, b"from nginx");
        assert!(client.get("/large.bin").body.len() == 3_000_000);
        client.end();
        bench.open_real(address).end();
    }
    for side in [bench.world.server(), bench.world.bed.client()] {
        let wrong = crate::support::socketless::tcp_counters(side);
        let wrong = wrong.into_iter().find(|(name, _)| name == "TcpInCsumErrors");
        assert_eq!(wrong.expect("a counter").1, 0);
    }
}

#[test]
fn where_there_is_no_tcx() {
    let Some(bench) = Bench::with(Settings { without_tcx: true, ..Settings::default() }) else {
        return;
    };
    let mut client = bench.open_real(SERVER_V6);
    assert!(client.get("/kernel.html").is_from_kernel());
    assert_eq!(client.get("/user.html").body, b"from nginx");
    client.end();
}

/// The server closed first, so its kernel remembers the tuple: the next SYN is the kernel's to judge.
#[test]
fn a_tuple_that_the_kernel_remembers_is_the_kernels() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    client
        .push(&client.data("GET /user.html HTTP/1.1\r\nHost: server\r\nConnection: close\r\n\r\n"));
    client.take_response();
    client.acknowledge();
    if !client.fin_accepted {
        let fin = client.await_segment("the server's FIN", |s| s.flags & FIN != 0);
        client.accept(&fin);
    }
    client.finish();
    std::thread::sleep(SOON);
    let text = ss(bench.world.server(), &["-Htan", "state", "time-wait"]);
    assert!(text.contains(&format!(":{}", client.address().port())), "{text}");
    client.collect(Duration::from_millis(5));
    bench.introduce();
    let before = bench.count(Reason::SocketlessSyn);
    client.seq = client.seq.wrapping_add(1_000_000);
    client.ack = 0;
    client.connect();
    assert_eq!(bench.count(Reason::SocketlessSyn), before, "{:?}", bench.counts());
    client.ask_user();
}

/// `ss` shows the same of a connection that was assigned as of one that began in the kernel.
#[test]
fn a_connection_that_was_assigned_is_like_any_other() {
    let Some(bench) = Bench::new() else { return };
    let told = |client: &mut Client| {
        assert_eq!(client.get("/user.html").body, b"from nginx");
        let port = client.tcp().local_addr().expect("an address").port();
        let end = [format!("dport = :{port}"), format!("sport = :{port}")];
        let sides = [bench.world.server(), bench.world.bed.client()];
        let names = [
            "wscale:",
            "mss:",
            "pmtu:",
            "rcvmss:",
            "advmss:",
            "cwnd:",
            "rcv_space:",
            "rcv_ssthresh:",
            "ts",
            "sack",
            "rto:",
        ];
        let mut all = Vec::new();
        for (side, end) in sides.iter().zip(&end) {
            let text = ss(side, &["-Htino", "state", "established", end]);
            let words =
                text.split(' ').filter(|word| names.iter().any(|name| word.starts_with(name)));
            all.extend(words.map(str::to_owned));
        }
        all
    };
    let assigned = told(&mut bench.open_real(SERVER_V4));
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1);
    bench.fast_path.socketless.drain();
    let native = told(&mut bench.world.connect(SERVER_V4));
    println!("assigned: {assigned:?}\nnative:      {native:?}");
    let of_time = |word: &&String| !word.starts_with("rto:");
    assert!(
        assigned.iter().filter(of_time).eq(native.iter().filter(of_time)),
        "{assigned:?} {native:?}"
    );
}
