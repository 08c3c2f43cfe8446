//! Hosts with something between the card and the server's socket: a handshake made for the server, another server that
//! takes its connections, a bridge whose frames the packet filter sees. Each connection is right, or it is user mode's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use afpa_bpf::{Reason, Settings, Socketless};
use afpa_netlab::Bed;
use afpa_testkit::aloud::say;
use afpa_testkit::{Client, eventually};
use afpa_tests::tcp::{Lab, PORT, Plan};
use socket2::{Domain, Socket, Type};

use crate::support::{
    attach, filter, ip, join_bridge, lab, nothing_was_dropped, sysctl, try_sysctl,
    user_mode_is_right, user_mode_serves,
};

/// A lab whose connections have sockets, and one whose connections begin without. None: SKIP was said.
fn labs() -> impl Iterator<Item = Lab> {
    let without = Socketless::refusal();
    if let Some(why) = &without {
        say("SKIP", &why.to_string());
    }
    let settings = [false, true].into_iter().filter(move |wanted| !wanted || without.is_none());
    settings.filter_map(|socketless| {
        let settings = Settings { socketless, ..Settings::default() };
        Lab::with_sample(Plan { settings, ..Plan::default() })
    })
}

/// A SYN proxy shakes hands with the client before the server hears of it, and moves the numbers of the whole connection:
/// the numbers at the card are not those of the socket.
#[test]
fn connections_behind_a_proxy_of_syns_are_user_mode_s() {
    for lab in labs() {
        let server = lab.bed.server();
        let rules = format!(
            "add table ip front;
             add chain ip front early {{ type filter hook prerouting priority -300; }};
             add rule ip front early tcp dport {PORT} tcp flags & (fin | syn | rst | ack) == syn notrack;
             add chain ip front in {{ type filter hook input priority 0; }};
             add rule ip front in tcp dport {PORT} ct state invalid,untracked synproxy mss 1460 wscale 7 timestamp sack-perm;
             add rule ip front in ct state invalid drop"
        );
        if !filter(server, &rules) {
            return;
        }
        sysctl(server, "net.netfilter.nf_conntrack_tcp_loose=0");
        for _ in 0..6 {
            let mut client = lab.client();
            user_mode_serves(&lab, &mut client);
            client.end();
        }
        // One after the other at once, within the time for which a SYN-ACK shows the way.
        for _ in 0..30 {
            assert_eq!(lab.client().get("/user.html").body, b"from nginx");
        }
        nothing_was_dropped(&lab);
        assert_eq!(lab.count(Reason::SocketlessSyn), 0, "{}", lab.tally());
    }
}

/// The answer of a transparent proxy to every request.
const FROM_PROXY: &[u8] = b"from the proxy";
const PROXY: u16 = 9090;

/// Something that answers every request on connections to any address.
fn transparent_proxy(lab: &Lab) {
    let listen = || -> std::io::Result<TcpListener> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_ip_transparent_v4(true)?;
        socket.bind(&SocketAddr::from(([0, 0, 0, 0], PROXY)).into())?;
        socket.listen(64)?;
        Ok(socket.into())
    };
    let listener = lab.bed.server().run(listen).expect("the server's side").expect("it listens");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer_all(stream));
        }
    });
}

fn answer_all(mut stream: TcpStream) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count) = stream.read(&mut buffer) {
        request.extend_from_slice(&buffer[..count]);
        if count == 0 {
            break;
        }
        if request.ends_with(b"\r\n\r\n") {
            request.clear();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", FROM_PROXY.len());
            let _ = stream.write_all(&[head.as_bytes(), FROM_PROXY].concat());
        }
    }
}

/// A host begins to give the server's connections to a transparent proxy, which answers from the server's address. From
/// then on no client gets the server's own answer there.
#[test]
fn connections_that_a_transparent_proxy_takes_are_the_proxy_s() {
    for lab in labs() {
        let mut open = lab.client();
        lab.converse(&mut open);
        user_mode_is_right(&mut lab.client());
        transparent_proxy(&lab);
        let rules = format!(
            "add table ip front; add chain ip front in {{ type filter hook prerouting priority mangle; }};
             add rule ip front in tcp dport {PORT} tcp flags & (syn | ack) == syn tproxy to :{PROXY} accept"
        );
        if !filter(lab.bed.server(), &rules) {
            return;
        }
        // Until the way was shown too long ago, a client may be answered as before.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(2) {
            let mut client = lab.client();
            client.set_patience(Duration::from_secs(1)).expect("a time-out");
            let _ = client.get("/user.html");
        }
        let before = lab.counters();
        for _ in 0..12 {
            let mut client = lab.client();
            for path in ["/kernel.html", "/user.html"].repeat(2) {
                let reply = client.get(path);
                assert_eq!(reply.body, FROM_PROXY, "{path}: {reply:?}\n{}", lab.tally());
            }
            client.end();
        }
        let since = lab.counters().since(&before);
        assert_eq!(since[Reason::Answered] + since[Reason::SocketlessSyn], 0, "{}", lab.tally());
        nothing_was_dropped(&lab);
        lab.converse(&mut open);
        open.end();
    }
}

/// Frames of a bridge pass the packet filter before the programs, as Docker has it. Connections that it tracks are user
/// mode's; others are answered, and a ban is heard.
#[test]
fn a_bridge_whose_frames_are_filtered_is_right() {
    if let Some(lab) = lab() {
        let server = lab.bed.server();
        join_bridge(&lab);
        if !try_sysctl(server, "net.bridge.bridge-nf-call-iptables=1") {
            say("SKIP", "this kernel has no filter for bridges");
            return;
        }
        let rules = "add table ip front;
             add chain ip front early { type filter hook prerouting priority 0; };
             add rule ip front early ct state invalid drop;
             add chain ip front in { type filter hook input priority 0; };
             add rule ip front in ct state invalid drop;
             add chain ip front out { type nat hook postrouting priority 100; };
             add rule ip front out ip daddr 10.99.0.0/16 masquerade";
        if !filter(server, rules) {
            return;
        }
        lab.fast_path().clients.set_firewall_interval(Duration::from_secs(1));
        for _ in 0..3 {
            let mut client = lab.client();
            user_mode_serves(&lab, &mut client);
            client.end();
        }
        assert!(lab.count(Reason::PassTracked) > 3, "{}", lab.tally());
        assert!(filter(server, NOT_TRACKED));
        for _ in 0..3 {
            let mut client = lab.client();
            lab.converse(&mut client);
            user_mode_is_right(&mut client);
            client.end();
        }
        nothing_was_dropped(&lab);
        let mut client = lab.client();
        lab.converse(&mut client);
        assert!(filter(server, "insert rule ip front early tcp dport 8080 drop"));
        ban_is_heard(&lab, &mut client);
    }
}

/// The remedy that the documentation names, for both sides of a connection over `lo`.
const NOT_TRACKED: &str = "add table ip untracked;
     add chain ip untracked in { type filter hook prerouting priority raw; };
     add rule ip untracked in tcp dport 8080 notrack;
     add chain ip untracked out { type filter hook output priority raw; };
     add rule ip untracked out tcp sport 8080 notrack;
     add rule ip untracked out tcp dport 8080 notrack";

/// Packets over `lo` are tracked where they leave, before the programs see them, and again where they arrive, behind the
/// programs. A host that drops packets of an invalid state sees only valid connections.
#[test]
fn connections_over_loopback_that_are_tracked_are_right() {
    if let Some(lab) = lab() {
        let server = lab.bed.server();
        attach(&lab, "lo");
        let rules = "add table ip front;
             add chain ip front in { type filter hook input priority 0; };
             add rule ip front in ct state invalid drop;
             add chain ip front out { type filter hook output priority 0; };
             add rule ip front out ct state invalid drop";
        if !filter(server, rules) {
            return;
        }
        let connect = || {
            let to = SocketAddr::from(([127, 0, 0, 1], PORT));
            server.run(|| Client::to(to)).expect("the server's side")
        };
        for _ in 0..3 {
            let mut client = connect();
            user_mode_serves(&lab, &mut client);
            client.end();
        }
        assert!(lab.count(Reason::PassTracked) > 3, "{}", lab.tally());
        assert!(filter(server, NOT_TRACKED));
        let mut client = connect();
        lab.converse(&mut client);
        user_mode_is_right(&mut client);
        lab.converse(&mut client);
        client.end();
        nothing_was_dropped(&lab);
    }
}

/// Within two seconds nothing is answered any more.
#[track_caller]
fn ban_is_heard(lab: &Lab, client: &mut Client) {
    client.set_patience(Duration::from_millis(300)).expect("a time-out");
    let begun = Instant::now();
    let request = "GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n";
    loop {
        client.send(request);
        if client.try_receive(afpa_testkit::response::Asked::Body).is_err() {
            break;
        }
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(2500), "{took:?}\n{}", lab.tally());
    }
}

/// The card is taken from one bridge to another and back, again and again, while clients ask.
#[test]
fn a_card_that_moves_between_bridges_under_load_gives_no_wrong_byte() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    join_bridge(&lab);
    let card = crate::support::text(crate::support::mac(server, Bed::DEVICE));
    ip(server, &format!("link add br1 address {card} type bridge"));
    ip(server, "link set br1 up");
    attach(&lab, "br1");
    let done = AtomicBool::new(false);
    let asked = [const { AtomicU32::new(0) }; 3];
    std::thread::scope(|scope| {
        let (lab, done) = (&lab, &done);
        let ask = move |asked: &AtomicU32| {
            let mut client = lab.client();
            while !done.load(Ordering::Relaxed) {
                user_mode_is_right(&mut client);
                let reply = client.get("/kernel.html");
                let right: &[u8] = match reply.is_from_kernel() {
                    true => b"from the kernel",
                    false => b"from nginx, the pinned one",
                };
                assert_eq!(reply.body, right, "{reply:?}\n{}", lab.tally());
                asked.fetch_add(1, Ordering::Relaxed);
            }
        };
        let clients: Vec<_> = asked.iter().map(|asked| scope.spawn(move || ask(asked))).collect();
        for (from, to) in [("br0", "br1"), ("br1", "br0")].repeat(4) {
            std::thread::sleep(Duration::from_millis(150));
            ip(server, &format!("link set eth0 master {to}"));
            ip(server, &format!("addr add 10.77.0.1/16 dev {to}"));
            ip(server, &format!("addr del 10.77.0.1/16 dev {from}"));
        }
        eventually("all of them are served", || {
            clients.iter().any(|client| client.is_finished()) // a panic is found below
                || asked.iter().all(|asked| asked.load(Ordering::Relaxed) > 2)
        });
        done.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().expect("no panic");
        }
    });
    nothing_was_dropped(&lab);
    assert!(lab.count(Reason::Answered) > 2, "{}", lab.tally());
}
