//! The options that a handshake agrees on: with these alone the kernel's TCP goes on when the connection is assigned.

use std::time::Duration;

use crate::support::socketless::{Bench, SOON, ss};
use crate::support::{SERVER_V4, SERVER_V6, World, inside};
use afpa_bpf::{Reason, Settings};
use afpa_testkit::packet::{ACK, SYN, Segment};
use afpa_testkit::tcp::RawClient;

/// Options that `ss` tells of the only connection, at one side: of `ts`, `sack` and `wscale`.
fn agreed(bench: &Bench, at_server: bool, port: u16) -> Vec<&'static str> {
    let bed = &bench.world.bed;
    let (side, end) = if at_server { (bed.server(), "dport") } else { (bed.client(), "sport") };
    let text = ss(side, &["-Htino", "state", "established", &format!("{end} = :{port}")]);
    let words: Vec<_> = text.split(' ').map(|word| word.split(':').next().unwrap_or("")).collect();
    ["ts", "sack", "wscale"].into_iter().filter(|option| words.contains(option)).collect()
}

/// One option is off on one side: both agree on the others, and 10 MB behind a hit arrive.
#[track_caller]
fn without(setting: &str, at_server: bool, option: &str) {
    let Some(bench) = Bench::new() else { return };
    let bed = &bench.world.bed;
    let side = if at_server { bed.server() } else { bed.client() };
    let off = format!("net.ipv4.{setting}=0");
    assert!(side.command("sysctl").args(["-qw", &off]).status().expect("sysctl").success());
    inside(bed.server(), || bench.fast_path.socketless.look_at_tcp()).expect("as before");
    for address in [SERVER_V4, SERVER_V6] {
        let mut client = bench.open_real(address);
        (0..2).for_each(|_| assert!(client.get("/kernel.html").is_from_kernel()));
        assert_eq!(client.get("/some.html").body, vec![b'k'; 30_000]);
        for _ in 0..4 {
            let body = client.get("/large.bin").body;
            assert!(body.len() == 3_000_000 && body.iter().all(|byte| *byte == b'z'));
        }
        let port = client.tcp().local_addr().expect("an address").port();
        let (server, client) = (agreed(&bench, true, port), agreed(&bench, false, port));
        assert_eq!(server, client, "{setting}");
        let mut expected = vec!["ts", "sack", "wscale"];
        expected.retain(|kept| *kept != option);
        assert_eq!(server, expected);
    }
    assert_eq!(bench.count(Reason::SocketlessToKernel), 2, "{:?}", bench.counts());
}

#[test]
fn timestamps_off_at_the_server() {
    without("tcp_timestamps", true, "ts");
}

#[test]
fn timestamps_off_at_the_client() {
    without("tcp_timestamps", false, "ts");
}

#[test]
fn sack_off_at_the_server() {
    without("tcp_sack", true, "sack");
}

#[test]
fn sack_off_at_the_client() {
    without("tcp_sack", false, "sack");
}

#[test]
fn scaling_off_at_the_server() {
    without("tcp_window_scaling", true, "wscale");
}

#[test]
fn scaling_off_at_the_client() {
    without("tcp_window_scaling", false, "wscale");
}

/// With every combination that a client can offer.
#[test]
fn a_client_may_offer_what_it_likes() {
    let Some(bench) = Bench::new() else { return };
    for bits in 0..8 {
        let mut client = bench.open_with(|habits| {
            habits.timestamps = bits & 1 != 0;
            habits.sack = bits & 2 != 0;
            habits.scale = (bits & 4 != 0).then_some(7);
            habits.window = 60_000;
        });
        bench.goes_on(&mut client);
        client.reset();
    }
}

/// A SYN with these bytes for options; the answer, if the programs gave it.
fn offer(bench: &Bench, client: &mut RawClient, options: &[u8]) -> Option<Segment> {
    assert_eq!(options.len() % 4, 0);
    let mut syn = Segment { flags: SYN, ack: 0, ts_value: 0, ts_echo: 0, ..client.next() };
    // The options take the place of as many bytes of payload: the header says how long it is.
    syn.payload = options.to_vec();
    let mut frame = client.frame(&syn);
    let tcp = frame.len() - options.len() - 20;
    frame[tcp + 12] = ((20 + options.len()) / 4 * 16) as u8;
    frame[tcp + 16..tcp + 18].fill(0);
    let mut pseudo = [frame[26..34].to_vec(), vec![0, 6], vec![0; 2]].concat();
    pseudo[10..].copy_from_slice(&((frame.len() - tcp) as u16).to_be_bytes());
    let sum = !afpa_testkit::packet::checksum::sum(&[&pseudo, &frame[tcp..]]);
    frame[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
    let before = bench.count(Reason::SocketlessSyn);
    client.send_frame(&frame);
    let answer = client.await_segment("SYN-ACK", |s| s.flags & SYN != 0);
    (bench.count(Reason::SocketlessSyn) > before).then_some(answer)
}

const TIMESTAMPS: [u8; 10] = [8, 10, 0, 0, 3, 232, 0, 0, 0, 0];

#[test]
fn options_in_any_order() {
    let Some(bench) = Bench::new() else { return };
    let orders: [Vec<u8>; 4] = [
        [&[2, 4, 5, 180, 4, 2][..], &TIMESTAMPS, &[1, 3, 3, 7]].concat(),
        [&TIMESTAMPS[..], &[3, 3, 7, 1, 1, 1, 4, 2, 2, 4, 5, 180, 0, 0]].concat(),
        [&[4, 2, 3, 3, 7, 1][..], &[2, 4, 5, 180], &TIMESTAMPS].concat(),
        [&[1, 1, 1, 1, 3, 3, 9][..], &[2, 4, 5, 180], &TIMESTAMPS, &[4, 2, 0]].concat(),
    ];
    for options in orders {
        let mut client = bench.raw();
        let answer = offer(&bench, &mut client, &options).expect("answered here");
        assert_eq!((answer.syn.mss, answer.syn.sack), (Some(1460), true));
        assert!(answer.syn.scale.is_some() && answer.ts_echo == 1000, "{answer:?}");
    }
    let mut client = bench.raw();
    let answer = offer(&bench, &mut client, &[]).expect("answered here");
    assert_eq!((answer.syn.sack, answer.syn.scale, answer.ts_value), (false, None, 0));
}

#[test]
fn options_that_a_cookie_has_no_room_for_are_the_kernels() {
    let Some(bench) = Bench::new() else { return };
    let lots: [&[u8]; 7] = [
        &[2, 4, 5, 180, 34, 2, 1, 1],   // Fast Open
        &[2, 4, 5, 180, 30, 4, 0, 129], // Multipath TCP
        &[2, 4, 5, 180, 253, 4, 1, 2],  // experiments
        &[2, 4, 5, 180, 3, 0, 1, 1],    // a length of 0
        &[2, 4, 5, 180, 3, 4, 7, 0],    // a wrong one
        &[2, 4, 5, 180, 1, 1, 8, 10],   // not whole
        &[2, 4, 2, 188],                // an MSS of 700
    ];
    for options in lots {
        let mut client = bench.raw();
        let answer = offer(&bench, &mut client, options);
        assert!(answer.is_none(), "{options:?}: {answer:?}");
    }
    assert!(bench.count(Reason::SocketlessUnfit) >= 7, "{:?}", bench.counts());
}

/// Segments are no longer than the client's announced MSS, in answers and after the assignment.
#[test]
fn no_segment_is_longer_than_the_client_wants() {
    let Some(bench) = Bench::new() else { return };
    ["tso", "gso"].iter().for_each(|feature| bench.world.ethtool(feature, "off"));
    for mss in [536, 600, 1300, 1380, 1440, 1460] {
        let mut client = bench.open_with(|habits| {
            habits.mss = mss;
            habits.window = 60_000;
        });
        let request = client.get("/some.html");
        client.push(&request);
        is_within(&mut client, mss, 30_000);
        let request = client.get("/large.bin");
        client.push(&request);
        is_within(&mut client, mss, 100_000);
        assert_eq!(bench.count(Reason::SocketlessOpened), bench.count(Reason::SocketlessToKernel));
        client.reset();
    }
}

/// So many bytes come, acknowledged one by one, in segments as long as they may be.
#[track_caller]
fn is_within(client: &mut RawClient, mss: u16, length: usize) {
    let (mut taken, mut longest) = (0, 0);
    while taken < length {
        let segment = client.await_segment("content", |s| !s.payload.is_empty());
        longest = longest.max(segment.payload.len() + if segment.ts_value != 0 { 12 } else { 0 });
        if segment.seq == client.ack {
            taken += segment.payload.len();
            client.accept(&segment);
            client.acknowledge();
        }
    }
    assert!(
        longest <= usize::from(mss) && longest > usize::from(mss) * 6 / 7,
        "{longest} of {mss}"
    );
}

/// RFC 7323, 3.2: a segment without the agreed timestamps is dropped, and the connection stays as it is.
#[test]
fn a_request_without_the_timestamps_that_were_agreed_on_is_dropped() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    let request = client.get("/user.html");
    client.send(&Segment { ts_value: 0, ts_echo: 0, ..request });
    let answers = client.collect(SOON);
    assert!(answers.is_empty(), "{answers:?}");
    client.ask_user();
    assert!(agreed(&bench, true, client.address().port()).contains(&"ts"));
}

/// Jumbo frames: a cookie would keep a sixth.
#[test]
fn a_large_mss_is_the_kernels() {
    let Some(bench) = Bench::new() else { return };
    for mss in [1700, 9000] {
        let mut client = bench.raw();
        client.habits.mss = mss;
        let before = bench.count(Reason::SocketlessSyn);
        client.connect();
        assert_eq!(bench.count(Reason::SocketlessSyn), before);
        client.ask_user();
    }
}

// --- the path as the kernel's TCP sees it ---

/// A number behind a name in `ss -ti`, of the server's socket.
fn told(bench: &Bench, port: u16, name: &str) -> f64 {
    let text =
        ss(bench.world.server(), &["-Htin", "state", "established", &format!("dport = :{port}")]);
    let word = text.split(' ').find_map(|word| word.strip_prefix(name));
    let number = word.unwrap_or_else(|| panic!("{name} in {text}"));
    number.split('/').next().expect("a number").parse().expect("a number")
}

fn bench_with_time_outs_of_tcp() -> Option<Bench> {
    Bench::over(World::with_time_outs_of_tcp()?, Settings::default())
}

#[test]
fn the_silence_of_a_client_is_no_round_trip() {
    let Some(bench) = bench_with_time_outs_of_tcp() else { return };
    for address in [SERVER_V4, SERVER_V6] {
        let mut client = bench.open_real(address);
        assert!(client.get("/kernel.html").is_from_kernel());
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(client.get("/user.html").body, b"from nginx");
        let port = client.tcp().local_addr().expect("an address").port();
        let (rto, rtt) = (told(&bench, port, "rto:"), told(&bench, port, "rtt:"));
        println!("{address}: rto {rto} rtt {rtt}");
        // If the silence counted as a round trip, it would be three seconds and more.
        assert!(rto < 1500.0 && rtt < 500.0, "rto {rto} rtt {rtt}");
    }
}

/// A duplicate acknowledgement echoes an old timestamp.
#[test]
fn a_late_echo_is_no_round_trip() {
    let Some(bench) = bench_with_time_outs_of_tcp() else { return };
    let mut client = bench.open();
    let answer = client.ask(&client.get("/kernel.html"));
    client.acknowledge();
    std::thread::sleep(Duration::from_secs(2));
    client.send(&Segment { flags: ACK, ts_echo: answer.ts_value, ..client.next() });
    std::thread::sleep(Duration::from_millis(10));
    client.ask_user();
    let port = client.address().port();
    let (rto, rtt) = (told(&bench, port, "rto:"), told(&bench, port, "rtt:"));
    println!("rto {rto} rtt {rtt}");
    // If the silence counted, it would be two seconds and more; less comes from the client, which may wait for a processor.
    assert!(rto < 1500.0 && rtt < 500.0, "rto {rto} rtt {rtt}");
}

/// Timestamps never run backwards at the client, and are of milliseconds (`RawClient::accept` looks at each).
#[test]
fn timestamps_go_on_across_the_assignment() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    let begin = client.ts_recent;
    for path in ["/kernel.html", "/kernel.html", "/user.html", "/kernel.html", "/user.html"] {
        std::thread::sleep(Duration::from_millis(20));
        client.ask(&client.get(path));
        client.acknowledge();
    }
    client.collect(SOON);
    let step = client.ts_recent.wrapping_sub(begin);
    assert!((90..2000).contains(&step), "{step}");
}

/// A cookie has no room for ECN: the programs answer a SYN that asks for it (RFC 3168, 6.1.1) without ECN, and so the
/// connection has none. A SYN that the kernel answers itself gets it.
#[test]
fn ecn_is_not_agreed_on() {
    let Some(bench) = Bench::new() else { return };
    let bed = &bench.world.bed;
    for side in [bed.server(), bed.client()] {
        let on = ["-qw", "net.ipv4.tcp_ecn=1"];
        assert!(side.command("sysctl").args(on).status().expect("sysctl").success());
    }
    let has_ecn = |client: &afpa_testkit::Client| {
        let port = client.tcp().local_addr().expect("an address").port();
        [(bed.server(), "dport"), (bed.client(), "sport")].map(|(side, end)| {
            let text = ss(side, &["-Htino", "state", "established", &format!("{end} = :{port}")]);
            text.split_whitespace().any(|word| word == "ecn")
        })
    };
    for address in [SERVER_V4, SERVER_V6] {
        let mut client = bench.open_real(address);
        assert!(client.get("/kernel.html").is_from_kernel());
        for _ in 0..2 {
            let body = client.get("/large.bin").body;
            assert!(body.len() == 3_000_000 && body.iter().all(|byte| *byte == b'z'));
        }
        assert_eq!(has_ecn(&client), [false, false], "{address}");
    }
    assert_eq!(bench.count(Reason::SocketlessToKernel), 2, "{:?}", bench.counts());
    bench.fast_path.socketless.drain();
    let mut client = bench.world.connect(SERVER_V4);
    assert_eq!(client.get("/user.html").text(), "from nginx");
    assert_eq!(has_ecn(&client), [true, true], "the kernel's own");
}
