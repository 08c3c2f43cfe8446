//! Opening: the SYNs that are answered, the worth of their cookies, and that they make no flows.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::socketless::{
    Bench, SOON, data, learn, listen, listen_by, resets, set_tcp_option, syn_ack,
};
use crate::support::{PORT, SERVER_V4, inside};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::Random;
use afpa_testkit::packet::{ACK, CWR, ECE, FIN, RST, SYN, Segment, SynOptions};
use afpa_testkit::tcp::RawClient;
use socket2::Protocol;

#[test]
fn syns_make_no_flows() {
    let Some(bench) = Bench::new() else { return };
    bench.introduce();
    let flows = bench.sweep().flows;
    let mut client = bench.world.raw();
    let isn = client.seq;
    for turn in 0..200 {
        client.seq = isn.wrapping_add(turn * 1000);
        client.send(&Segment {
            flags: SYN,
            ack: 0,
            syn: SynOptions { mss: Some(1460), ..SynOptions::default() },
            ..client.next()
        });
    }
    let answers = client.answers(SOON);
    assert_eq!(answers.len(), 200, "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::SocketlessSyn), 200);
    assert_eq!(bench.sweep().flows, flows);
    assert_eq!(bench.sockets_of(client.address()), "");
}

#[test]
fn a_syn_that_comes_again_gets_the_same_cookie() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.raw();
    let one = syn_ack(&mut client, |_| ());
    let other = syn_ack(&mut client, |_| ());
    assert_eq!(one.seq, other.seq);
    learn(&mut client, &one);
    client.acknowledge();
    bench.goes_on(&mut client);
}

/// A segment that does not prove that its sender got our SYN-ACK is reset by the kernel, as without the programs.
#[test]
fn a_forged_cookie_opens_nothing() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.raw();
    let answer = syn_ack(&mut client, |_| ());
    learn(&mut client, &answer);
    let flows = bench.sweep().flows;
    for bit in 0..32 {
        let ack = answer.end() ^ 1 << bit;
        let forged = if bit & 1 == 0 { client.get("/kernel.html") } else { client.next() };
        client.send(&Segment { ack, ..forged });
        let answers = client.collect(Duration::from_millis(5));
        assert!(data(answers.clone()).is_empty(), "bit {bit}: {answers:?}");
    }
    for off in [1, u32::MAX, 1000] {
        client.send(&Segment { seq: client.seq.wrapping_add(off), ..client.get("/kernel.html") });
        assert!(data(client.collect(Duration::from_millis(5))).is_empty());
    }
    client.send(&Segment { checksum_holds: false, ..client.get("/kernel.html") });
    client.send(&Segment { flags: FIN, ack: 0, ..client.next() });
    client.send(&Segment { flags: RST | ACK, ..client.next() });
    client.collect(SOON);
    assert_eq!(bench.sweep().flows, flows, "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::SocketlessOpened), 0);
    client.acknowledge();
    bench.goes_on(&mut client);
}

#[test]
fn another_client_s_cookie_opens_nothing() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.raw();
    let answer = syn_ack(&mut client, |_| ());
    learn(&mut client, &answer);
    let mut other = bench.world.raw(); // another port, the same numbers
    (other.seq, other.ack, other.ts_recent) = (client.seq, client.ack, client.ts_recent);
    other.send(&other.get("/kernel.html"));
    let answers = other.answers(SOON);
    assert_eq!((answers.len(), resets(&answers)), (1, 1), "{answers:?}");
}

/// A period is 17 s: a cookie is good in the one it was made in, and in the next.
#[test]
fn a_cookie_is_valid_in_its_period_and_the_next() {
    let Some(bench) = Bench::new() else { return };
    let period = 1u64 << 34; // nanoseconds
    let now = || {
        let now = monotonic();
        (now / period, now % period)
    };
    if now().1 < period - 3_000_000_000 {
        std::thread::sleep(Duration::from_nanos(
            period - 2_000_000_000 - now().1.min(period - 3_000_000_000),
        ));
    }
    let mut late: Vec<_> = (0..4).map(|_| bench.world.raw()).collect();
    let mut client = bench.raw();
    let (made, _) = now();
    let answer = syn_ack(&mut client, |_| ());
    let of_late: Vec<_> = late.iter_mut().map(|late| syn_ack(late, |_| ())).collect();
    assert_eq!(bench.count(Reason::SocketlessSyn), 5);
    assert_eq!(now().0, made, "the test was too slow");
    while now().0 == made {
        std::thread::sleep(Duration::from_millis(20));
    }
    learn(&mut client, &answer);
    client.acknowledge();
    bench.goes_on(&mut client);
    while now().0 <= made + 1 {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(20));
    for (late, answer) in late.iter_mut().zip(&of_late) {
        learn(late, answer);
        late.send(&late.get("/kernel.html"));
    }
    std::thread::sleep(SOON);
    let answers: Vec<_> = late.iter().map(|late| late.collect(SOON)).collect();
    assert!(
        answers.iter().all(|one| one.len() == 1 && resets(one) == 1),
        "{answers:?} {:?}",
        bench.counts()
    );
    assert_eq!(bench.count(Reason::SocketlessOpened), 1, "{:?}", bench.counts());
}

fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn the_first_request_opens_when_the_acknowledgement_was_lost() {
    let Some(bench) = Bench::new() else { return };
    for path in ["/kernel.html", "/user.html"] {
        let mut client = bench.raw();
        let answer = syn_ack(&mut client, |_| ());
        learn(&mut client, &answer);
        let reply = client.ask(&client.get(path));
        assert_eq!(reply.is_from_kernel(), path == "/kernel.html");
        client.acknowledge();
        bench.goes_on(&mut client);
    }
    // ... and a FIN does, and a keep-alive probe.
    let mut client = bench.raw();
    let answer = syn_ack(&mut client, |_| ());
    learn(&mut client, &answer);
    client.finish();
    let end = client.answers(SOON);
    assert_eq!((end.len(), end[0].flags), (1, FIN | ACK), "{end:?}");
}

/// The first SYN-ACK is late, so the client sends its SYN again, when it is no more one that is known: it is answered by the
/// same number, not by another one of the kernel's.
#[test]
fn a_repeated_syn_gets_the_same_answer() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.raw();
    let first = syn_ack(&mut client, |_| ());
    assert_eq!(bench.count(Reason::SocketlessSyn), 1, "{:?}", bench.counts());
    std::thread::sleep(Duration::from_millis(1100));
    let second = syn_ack(&mut client, |_| ());
    assert_eq!(bench.count(Reason::SocketlessSyn), 2, "{:?}", bench.counts());
    assert_eq!((first.ack, first.window, first.syn), (second.ack, second.window, second.syn));
    learn(&mut client, &first);
    client.acknowledge();
    bench.goes_on(&mut client);
    // Another SYN of an unknown client is the kernel's.
    std::thread::sleep(Duration::from_millis(1100));
    let mut other = bench.world.raw();
    syn_ack(&mut other, |_| ());
    assert_eq!(bench.count(Reason::SocketlessSyn), 2, "{:?}", bench.counts());
    other.reset();
}

/// ... and that ends in time, whatever came between them.
#[test]
fn a_repeated_syn_is_answered_for_four_seconds_after_the_first() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.raw();
    for answered in [1, 2, 2] {
        syn_ack(&mut client, |_| ());
        assert_eq!(bench.count(Reason::SocketlessSyn), answered, "{:?}", bench.counts());
        std::thread::sleep(Duration::from_millis(2300));
    }
    client.reset();
}

/// The client's acknowledgement and the first part of its request are lost: the second part is not the reason to end the
/// connection.
#[test]
fn what_overtakes_the_first_segment_waits_for_it() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.raw();
    let answer = syn_ack(&mut client, |_| ());
    learn(&mut client, &answer);
    let request = client.get("/user.html");
    let (first, second) = request.payload.split_at(9);
    let first = Segment { payload: first.to_vec(), ..request.clone() };
    let second = Segment { seq: request.seq + 9, payload: second.to_vec(), ..request.clone() };
    let fin = Segment { seq: request.end(), flags: FIN | ACK, ..client.next() };
    for early in [&second, &fin] {
        client.send(early);
        let answers = client.collect(SOON);
        assert!(answers.is_empty(), "{answers:?}");
    }
    assert_eq!(bench.count(Reason::SocketlessEarly), 2, "{:?}", bench.counts());
    client.send(&first);
    client.send(&second);
    let reply = client.await_segment("the response", |segment| !segment.payload.is_empty());
    assert!(!reply.is_from_kernel() && reply.ack == request.end(), "{reply:?}");
}

/// The clients learn at once that their connections are gone.
#[test]
fn segments_of_no_connection_are_reset() {
    let Some(bench) = Bench::new() else { return };
    drop(bench.open()); // cookies may come back
    let (mut reset, mut random) = (0, Random::new(Random::seed_or(1)));
    for _ in 0..24 {
        let mut stranger = bench.world.raw();
        stranger.ack = random.next() as u32;
        stranger.send(&stranger.get("/user.html"));
        reset += resets(&stranger.collect(SOON));
    }
    assert_eq!(reset, 24, "{:?}", bench.counts());
}

#[test]
fn a_full_table_hands_over_without_a_flow() {
    let Some(bench) = Bench::with(Settings { flows: 1, ..Settings::default() }) else { return };
    // The connection by which the client is known has the place.
    let mut clients: Vec<_> = (0..4).map(|_| bench.raw()).collect();
    for client in &mut clients {
        bench.introduce();
        client.connect();
    }
    assert_eq!(bench.count(Reason::SocketlessSyn), 4, "{:?}", bench.counts());
    for (client, path) in
        clients.iter_mut().zip(["/kernel.html", "/user.html", "/kernel.html", "/user.html"])
    {
        let reply = client.ask(&client.get(path));
        assert!(!reply.is_from_kernel());
        client.acknowledge();
        client.ask_user();
    }
    assert_eq!(bench.count(Reason::SocketlessToKernel), 4);
}

/// Left to the kernel: it answers the SYN, and serves the connection.
#[track_caller]
fn is_the_kernels(bench: &Bench, client: &mut RawClient, why: Reason) {
    let (syns, reason) = (bench.count(Reason::SocketlessSyn), bench.count(why));
    client.connect();
    assert_eq!(bench.count(Reason::SocketlessSyn), syns, "{:?}", bench.counts());
    assert_eq!(bench.count(why), reason + 1, "{:?}", bench.counts());
    client.ask_user();
    client.reset();
}

#[test]
fn syns_that_are_the_kernels() {
    let Some(mut bench) = Bench::new() else { return };
    let mut client = bench.raw();
    client.habits.ecn = true;
    // The kernel's answer to ECN depends on its setting: a cookie's never has it.
    let answer = syn_ack(&mut client, |syn| syn.flags = SYN | ECE | CWR);
    assert_eq!(answer.flags & ECE, 0);

    let mut stranger = bench.world.raw();
    stranger.habits.ecn = false;
    std::thread::sleep(Duration::from_millis(900));
    is_the_kernels(&bench, &mut stranger, Reason::SocketlessUnknownClient);

    let mut client = bench.raw();
    bench.fast_path.clients.set_paused(true);
    is_the_kernels(&bench, &mut client, Reason::PassPaused);
    bench.fast_path.clients.set_paused(false);

    let mut client = bench.raw();
    bench.stop_heart();
    bench.fast_path.clock.pause();
    is_the_kernels(&bench, &mut client, Reason::PassNoHeartbeat);
    bench.fast_path.clock.beat();

    let mut client = bench.raw();
    bench.fast_path.socketless.drain();
    let before = bench.count(Reason::SocketlessSyn);
    client.connect();
    client.ask_user();
    assert_eq!(bench.count(Reason::SocketlessSyn), before);
}

#[test]
fn a_host_without_cookies_has_none() {
    let Some(bench) = Bench::new() else { return };
    bench.world.sysctl("net.ipv4.tcp_syncookies=0");
    let refusal = inside(bench.world.server(), || bench.fast_path.socketless.look_at_tcp());
    assert!(refusal.expect_err("refused").to_string().contains("tcp_syncookies"));
    let mut client = bench.raw();
    client.connect();
    client.ask_user();
    assert_eq!(bench.count(Reason::SocketlessSyn), 0);
    bench.world.sysctl("net.ipv4.tcp_syncookies=2");
    inside(bench.world.server(), || bench.fast_path.socketless.look_at_tcp()).expect("as before");
    let mut client = bench.open();
    bench.goes_on(&mut client);
}

#[test]
fn a_listener_with_a_receive_buffer_of_its_own_is_left_alone() {
    let small = |socket: &socket2::Socket| socket.set_recv_buffer_size(4096).expect("set");
    let Some(bench) = Bench::listening(16, small) else { return };
    is_left_alone(&bench);
}

#[test]
fn a_multipath_listener_is_left_alone() {
    let Some(mut bench) = Bench::listening(16, |_| ()) else { return };
    let mptcp = Protocol::from(262);
    let there = || socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, Some(mptcp));
    if inside(bench.world.server(), there).is_err() {
        return println!("SKIP: no Multipath TCP here");
    }
    bench.introduce();
    bench.stop_listening();
    bench.listeners.push(listen_by(bench.world.server(), 16, Some(mptcp), |_| ()));
    is_left_alone(&bench);
}

#[test]
fn a_listener_that_wants_signed_segments_of_somebody_is_left_alone() {
    let Some(bench) = Bench::listening(16, want_signed_segments) else { return };
    is_left_alone(&bench);
}

/// A key for one peer (RFC 2385). Other peers need none.
fn want_signed_segments(socket: &socket2::Socket) {
    const TCP_MD5SIG: i32 = 14;
    const AF_INET6: u16 = 10;
    /// `struct tcp_md5sig`.
    #[repr(C, align(8))]
    struct Key {
        family: u16,
        port: u16,
        flow: u32,
        address: [u8; 16],
        unused: [u8; 104],
        flags: u8,
        prefix: u8,
        length: u16,
        interface: i32,
        key: [u8; 80],
    }
    let key = Key {
        family: AF_INET6,
        port: 0,
        flow: 0,
        address: std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).octets(),
        unused: [0; 104],
        flags: 0,
        prefix: 0,
        length: 6,
        interface: 0,
        key: std::array::from_fn(|at| *b"secret".get(at).unwrap_or(&0)),
    };
    set_tcp_option(socket, TCP_MD5SIG, &key);
}

#[track_caller]
fn is_left_alone(bench: &Bench) {
    for _ in 0..2 {
        let mut client = bench.world.raw();
        client.connect();
        client.push(&client.get("/kernel.html"));
        client.await_segment("an acknowledgement", |s| s.ack == client.seq);
    }
    assert_eq!(bench.count(Reason::SocketlessSyn), 0, "{:?}", bench.counts());
    assert!(bench.count(Reason::SocketlessUnfit) >= 1, "{:?}", bench.counts());
}

/// The listener of another process on the same port, which has no mark.
#[test]
fn a_listener_that_is_not_served_is_left_alone() {
    let Some(mut bench) = Bench::listening(16, |_| ()) else { return };
    bench.introduce();
    bench.stop_listening();
    bench.listeners.push(listen(bench.world.server(), 16, |_| ()));
    let mut client = bench.world.raw();
    client.connect();
    assert_eq!(bench.count(Reason::SocketlessSyn), 0);
    assert!(bench.count(Reason::SocketlessUnfit) >= 1, "{:?}", bench.counts());
}

/// Where SYNs overflow the kernel's queue, its SYN-ACKs are cookies as well, and one in a hundred looks like one of ours whose
/// connection began with another number.
#[test]
fn cookies_of_the_kernels_own_are_not_taken_for_ours() {
    let Some(bench) = Bench::new() else { return };
    let always = ["-qw", "net.ipv4.tcp_syncookies=2"];
    let set = bench.world.server().command("sysctl").args(always).status().expect("sysctl");
    assert!(set.success());
    bench.open().reset();
    bench.fast_path.socketless.drain(); // from now on all SYNs are the kernel's; our cookies are still valid
    let server = std::net::SocketAddr::new(SERVER_V4.parse().expect("an address"), PORT);
    inside(bench.world.bed.client(), || {
        for turn in 0..1500 {
            let mut stream = TcpStream::connect(server).expect("connected");
            stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
            let request = b"GET /user.html HTTP/1.1\r\nHost: server\r\n\r\n";
            stream.write_all(request).expect("asked");
            let read = stream.read(&mut [0; 1024]);
            assert!(read.is_ok_and(|read| read > 0), "{turn}: {:?}", bench.counts());
        }
    });
    assert_eq!(bench.count(Reason::SocketlessEarly), 0, "{:?}", bench.counts());
}
