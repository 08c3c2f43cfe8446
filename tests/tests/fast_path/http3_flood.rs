//! Floods of first packets of HTTP/3 in other clients' names: the kernel answers them, and a client is served through its Retry.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use afpa_netlab::Bed;
use afpa_testkit::packet::PacketSocket;
use afpa_testkit::{Endpoint, Random, Server, Tree, eventually};
use afpa_tests::quic::QuicClient;
use afpa_tests::tls::Authority;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use serde_json::json;

use crate::lab::{Lab, PORT, stats};

const TLS: u16 = PORT + 443;
/// Connections that begin in the flood.
const CLIENTS: u64 = 20;
/// Datagrams of the whole flood, and of each burst: more than a window of the program's has to have for a flood.
const MOST: u64 = 200_000;
const BURST: u64 = 700;
/// The first lines of the configuration.
const MODE: &str = "[fast_path]\nmode = \"on\"\n";

/// A server with HTTP/3, and its client. `None`, said aloud: something is missing here.
fn both(authority: &Authority, tree: &Tree) -> Option<(Lab, Server, QuicClient)> {
    let address = SocketAddr::from((Bed::SERVER_V4, TLS));
    // It may have to be built, for which the network is needed.
    if let Err(why) = QuicClient::start(authority, address) {
        afpa_testkit::aloud::say("SKIP", &why);
        return None;
    }
    let lab = Lab::new()?;
    if let Some(why) = lab.on_the_server(afpa_bpf::quic::QuicPath::refusal) {
        afpa_testkit::aloud::say("SKIP", &why.to_string());
        return None;
    }
    let certificate = authority.issue("localhost", &["localhost"]).section();
    let root = tree.path().display();
    let server = Server::start(tree.path(), |launch| {
        launch.inside(lab.namespace(), Endpoint::Tcp((Bed::SERVER_V4, PORT).into()));
        launch.fast_path("");
        launch.written(|plain| {
            format!(
                "{MODE}{certificate}\n[http3]\nenabled = true\n[[site]]\nlisten = [\"{plain}\"]\n\
                 tls = [\"{address}\"]\nroot = \"{root}\"\n"
            )
        });
    });
    // One processor gets all that this thread and its children send.
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one).expect("pinned");
    let client = QuicClient::start(authority, address).expect("built before");
    Some((lab, server, client))
}

fn packets(server: &Server, reason: &str) -> u64 {
    stats(server)["http3_in_kernel"]["packets"][reason].as_u64().expect("a count")
}

/// A datagram in the name of a client that there is not.
fn forged(random: &mut Random, macs: &[u8; 12]) -> Vec<u8> {
    let kind = random.below(6);
    let (first, version) = match kind {
        0..=2 => (0xc0, 1_u32),
        3 => (0xc0, 0x0a1a_2a3a),
        4 => (0xe0, 1),
        _ => (0x40, 0),
    };
    let mut datagram = vec![first | random.next() as u8 & 3];
    if first & 0x80 == 0 {
        datagram.extend(random.bytes(60));
    } else {
        datagram.extend(version.to_be_bytes());
        datagram.push(8);
        datagram.extend(random.bytes(8));
        datagram.push(0);
        // A made-up token, some of them of our form.
        let mut token = random.bytes(if kind == 2 { 53 } else { 0 });
        token.iter_mut().zip([0, 1]).for_each(|(byte, ours)| *byte = ours);
        datagram.push(token.len() as u8);
        datagram.extend(token);
        datagram.resize(1200, 0x5a);
    }
    let length = 8 + datagram.len() as u16;
    let source = Ipv4Addr::new(10, 77, 128 | random.next() as u8, random.next() as u8);
    let mut ip = vec![0x45, 0];
    ip.extend((20 + length).to_be_bytes());
    ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip.extend([source.octets(), Bed::SERVER_V4.octets()].concat());
    let sum = !afpa_testkit::packet::checksum::sum(&[&ip]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let port = 1024 + random.below(60_000) as u16;
    let udp = [port, TLS, length, 0].map(u16::to_be_bytes).concat();
    [&macs[..], &[8, 0], &ip, &udp, &datagram].concat()
}

#[test]
fn clients_are_served_through_a_retry_while_first_packets_come_in_a_flood() {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("hello.txt", "hello");
    let Some((lab, server, mut client)) = both(&authority, &tree) else { return };
    let ask = |on: &str| json!({"do": "ask", "on": on, "path": "/hello.txt", "wait": 20_000});
    assert_eq!(client.one(&ask("calm"))["status"], 200);
    assert_eq!(packets(&server, "retry"), 0, "without a flood nobody pays a round trip");
    let before = server.process().resident().expect("its memory");
    let macs = lab.bed().macs().expect("both sides");
    let socket = PacketSocket::open(Bed::DEVICE).expect("open");
    let (over, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(Random::seed_or(443));
            let some: Vec<_> = (0..2_000).map(|_| forged(&mut random, &macs)).collect();
            let mut all = some.iter().cycle();
            while !over.load(Ordering::Acquire) && sent.load(Ordering::Relaxed) < MOST {
                for frame in all.by_ref().take(BURST as usize) {
                    if socket.send(frame).expect("sent") {
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                }
                std::thread::sleep(Duration::from_millis(25));
            }
        });
        eventually("the flood is seen", || packets(&server, "flood") > 0);
        for number in 0..CLIENTS {
            let got = client.one(&ask(&format!("client {number}")));
            assert_eq!(got["status"], 200, "{got}");
        }
        assert_eq!(client.one(&ask("calm"))["status"], 200, "it goes on");
        over.store(true, Ordering::Release);
    });
    let sent = sent.into_inner();
    let count = |reason: &str| packets(&server, reason);
    let kept = ["retry", "versions", "drop_unknown_id"].map(count);
    println!("{sent} sent, {kept:?} answered or dropped, {} with bad tokens", count("bad_token"));
    assert!(kept.iter().all(|count| *count > sent / 20), "{kept:?} of {sent}");
    assert!(count("bad_token") > sent / 20);
    assert!(count("pass_token") >= CLIENTS, "{} tokens held", count("pass_token"));
    // The workers have seen the beginning of the flood, and no more of it.
    assert!(count("pass_calm") < 3_000, "{}", count("pass_calm"));
    let connections = &stats(&server)["connections"];
    assert_eq!(connections["http3"], CLIENTS + 1);
    assert!(connections["open"].as_u64() <= Some(CLIENTS + 4), "{connections}");
    let more = server.process().resident().expect("its memory").saturating_sub(before);
    assert!(more < 40_000_000, "{more} bytes for {CLIENTS} connections");
}

/// Sends a burst that is a flood, each time it is called.
fn bursts(lab: &Lab) -> impl Fn() {
    let macs = lab.bed().macs().expect("both sides");
    let socket = PacketSocket::open(Bed::DEVICE).expect("open");
    let mut random = Random::new(Random::seed_or(444));
    let some: Vec<_> = (0..BURST).map(|_| forged(&mut random, &macs)).collect();
    move || {
        // Half of them are Initials.
        for frame in some.iter().chain(&some).chain(&some) {
            socket.send(frame).expect("sent");
        }
    }
}

#[test]
fn a_pause_ends_the_kernels_part() {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("hello.txt", "hello");
    let Some((lab, server, mut client)) = both(&authority, &tree) else { return };
    let burst = bursts(&lab);
    eventually("the flood is answered", || {
        burst();
        packets(&server, "retry") > 0
    });
    let order = |what: &str| {
        let program = afpa_testkit::server::program();
        let done = lab.on_the_server(|| std::process::Command::new(program).arg(what).output());
        let done = done.expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    order("pause");
    eventually("it is the workers' again", || {
        burst();
        packets(&server, "pass_no_heartbeat") > 0
    });
    let before = packets(&server, "retry");
    burst();
    assert_eq!(packets(&server, "retry"), before);
    let ask = json!({"do": "ask", "on": "a", "path": "/hello.txt", "wait": 20_000});
    assert_eq!(client.one(&ask)["status"], 200);
    order("resume");
    eventually("the kernel answers again", || {
        burst();
        packets(&server, "retry") > before
    });
}

#[test]
fn a_client_that_an_order_denies_begins_no_connection() {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("hello.txt", "hello");
    let Some((_lab, server, mut client)) = both(&authority, &tree) else { return };
    let ask = |on: &str| json!({"do": "ask", "on": on, "path": "/hello.txt", "wait": 2_000});
    assert_eq!(client.one(&ask("before"))["status"], 200);
    let output = server.command(&["deny", "add", "10.77.64.0/18"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_ne!(client.one(&ask("denied"))["error"], "");
    assert!(packets(&server, "drop_denied") > 0, "the kernel has dropped its first packets");
    assert_eq!(stats(&server)["connections"]["http3"], 1);
    let output = server.command(&["deny", "del", "10.77.64.0/18"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(client.one(&ask("after"))["status"], 200);
}

/// The kernel's part goes on with the next process, and a reload that gives up the fast path ends it, until another one takes it
/// again. Clients are served all the time.
#[test]
fn the_kernels_part_follows_reloads_and_goes_on_with_the_next_process() {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("hello.txt", "hello");
    let Some((lab, mut server, mut client)) = both(&authority, &tree) else { return };
    let burst = bursts(&lab);
    let mut number = 0;
    let mut ask = || {
        number += 1;
        let on = format!("client {number}");
        let order = json!({"do": "ask", "on": on, "path": "/hello.txt", "wait": 20_000});
        assert_eq!(client.one(&order)["status"], 200, "{on}");
    };
    let is_answered = |server: &Server| {
        let before = packets(server, "retry");
        eventually("the kernel answers", || {
            burst();
            packets(server, "retry") > before
        });
    };
    is_answered(&server);
    ask();
    let reload = |server: &Server, text: &str| {
        let times = || server.log().matches("reloaded").count();
        let before = times();
        std::fs::write(server.configuration(), text).expect("written");
        server.signal(Signal::HUP);
        eventually("it is reloaded", || times() > before);
    };
    let text = std::fs::read_to_string(server.configuration()).expect("read");
    reload(&server, &text);
    is_answered(&server);
    ask();
    reload(&server, &text.replace(MODE, &MODE.replace("on", "off")));
    let before = packets(&server, "retry");
    burst();
    ask();
    assert_eq!(packets(&server, "retry"), before, "the workers are alone with it");
    reload(&server, &text);
    is_answered(&server);
    ask();
    let first = u64::from(server.pid());
    let process = |server: &Server| {
        let output = server.command(&["stats", "--json"]);
        let stats = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
        stats.and_then(|stats| stats["pid"].as_u64())
    };
    server.signal(Signal::USR2);
    eventually("the next process takes orders", || {
        burst();
        process(&server).is_some_and(|now| now != first)
    });
    ask();
    is_answered(&server);
    assert!(server.wait(Duration::from_secs(90)).is_some_and(|status| status.success()));
    is_answered(&server);
    ask();
    let next = process(&server).expect("a number");
    let next = Pid::from_raw(next as i32).expect("a process id");
    kill_process(next, Signal::TERM).expect("it is there");
    eventually("it has ended", || process(&server).is_none());
}
