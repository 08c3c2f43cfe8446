//! Connections without a socket on hosts that are wired in every way: they are opened, answered and assigned at one hook,
//! or they are the kernel's from their SYN on. No client is reset.

use std::net::SocketAddr;

use afpa_bpf::{Reason, Settings, Socketless};
use afpa_netlab::Bed;
use afpa_testkit::{Asked, Client, ReceiveError, eventually};
use afpa_tests::tcp::{Lab, PORT, Plan};

use crate::support::{
    add_macvlan, add_virtual_lan, filter, ip, join_bridge, nothing_was_dropped, sysctl, to,
    user_mode_is_right,
};

/// How many connections are tried.
const TURNS: u64 = 12;

/// A lab whose server accepts connections without sockets. None: SKIP was said.
fn lab() -> Option<Lab> {
    lab_with("")
}

/// The same with these parameters of nginx's `listen`.
fn lab_with(listen: &'static str) -> Option<Lab> {
    if let Some(why) = Socketless::refusal() {
        afpa_testkit::aloud::say("SKIP", &why.to_string());
        return None;
    }
    let settings = Settings { socketless: true, ..Settings::default() };
    Lab::with_sample(Plan { settings, listen, ..Plan::default() })
}

/// Connections one after another, each with hits and with requests for user mode: every byte is right. A client is known for
/// less than a second, in which an emulator may not end one: so each follows upon another that ends at once, whose SYN
/// may be the kernel's. Returns how many connections had no socket, and how many of these the kernel's TCP took over.
#[track_caller]
fn connections(lab: &Lab, connect: impl Fn() -> Client) -> (u64, u64) {
    let count = || {
        let counters = lab.counters();
        (counters[Reason::SocketlessOpened], counters[Reason::SocketlessToKernel])
    };
    let (mut opened, mut assigned) = (0, 0);
    for _ in 0..TURNS {
        drop(connect());
        let before = count();
        let mut client = connect();
        for _ in 0..3 {
            let reply = client.get("/kernel.html");
            let right: &[u8] = match reply.is_from_kernel() {
                true => b"from the kernel",
                false => b"from nginx, the pinned one",
            };
            assert_eq!(reply.body, right, "{reply:?}\n{}", lab.tally());
        }
        user_mode_is_right(&mut client);
        client.end();
        let after = count();
        (opened, assigned) = (opened + after.0 - before.0, assigned + after.1 - before.1);
    }
    nothing_was_dropped(lab);
    (opened, assigned)
}

/// The same where at least half of them have no socket.
#[track_caller]
fn some_have_no_socket(lab: &Lab, connect: impl Fn() -> Client) {
    let (opened, assigned) = connections(lab, connect);
    assert!(opened >= TURNS / 2 && assigned == opened, "{opened}, {assigned}\n{}", lab.tally());
}

#[test]
fn a_card_alone() {
    let Some(lab) = lab() else { return };
    some_have_no_socket(&lab, || lab.client());
    some_have_no_socket(&lab, || lab.connect(Bed::SERVER_V6.into()));
}

/// The bridge has the MAC address of its port, as bridges have: frames look like the card's own.
#[test]
fn a_bridge_above_the_card() {
    let Some(lab) = lab() else { return };
    join_bridge(&lab);
    some_have_no_socket(&lab, || lab.client());
}

#[test]
fn a_macvlan_beside_the_card() {
    let Some(lab) = lab() else { return };
    if !add_macvlan(&lab) {
        afpa_testkit::skip!("this kernel has no macvlan");
    }
    some_have_no_socket(&lab, || to(&lab, "10.79.0.1"));
    some_have_no_socket(&lab, || lab.client());
}

#[test]
fn a_virtual_lan_above_the_card() {
    let Some(lab) = lab() else { return };
    if !add_virtual_lan(&lab) {
        afpa_testkit::skip!("this kernel has no VLAN devices");
    }
    some_have_no_socket(&lab, || to(&lab, "10.79.0.1"));
    some_have_no_socket(&lab, || lab.client());
}

/// Connection tracking may refuse a connection that does not begin with a SYN, and address translation takes an assigned
/// segment from its listener. On such a host all connections have sockets.
#[test]
fn connections_that_are_tracked_have_sockets() {
    let Some(lab) = lab() else { return };
    let rules = "add table inet front;
         add chain inet front in { type filter hook input priority 0; };
         add rule inet front in ct state invalid drop;
         add rule inet front in tcp flags & (syn | ack) == ack ct state new drop";
    if !filter(lab.bed.server(), rules) {
        return;
    }
    assert_eq!(connections(&lab, || lab.client()), (0, 0), "{}", lab.tally());
    assert!(lab.count(Reason::SocketlessTracked) >= TURNS, "{}", lab.tally());
    assert!(lab.count(Reason::Answered) > TURNS, "{}", lab.tally());
}

#[test]
fn connections_of_a_host_that_translates_addresses_have_sockets() {
    let Some(lab) = lab() else { return };
    let rules = "add table ip front;
         add chain ip front out { type nat hook postrouting priority 100; };
         add rule ip front out oif eth0 masquerade";
    if !filter(lab.bed.server(), rules) {
        return;
    }
    assert_eq!(connections(&lab, || lab.client()), (0, 0), "{}", lab.tally());
    assert!(lab.count(Reason::SocketlessTracked) >= TURNS, "{}", lab.tally());
}

/// The remedy that the documentation names: the served port is not tracked.
#[test]
fn a_port_that_is_not_tracked_beside_others_that_are() {
    let Some(lab) = lab() else { return };
    let rules = "add table inet front;
         add chain inet front in { type filter hook input priority 0; };
         add rule inet front in ct state invalid drop;
         add chain inet front out { type nat hook postrouting priority 100; };
         add rule inet front out meta oifname eth0 masquerade;
         add chain inet front early { type filter hook prerouting priority raw; };
         add rule inet front early tcp dport 8080 notrack;
         add chain inet front made { type filter hook output priority raw; };
         add rule inet front made tcp sport 8080 notrack";
    if !filter(lab.bed.server(), rules) {
        return;
    }
    sysctl(lab.bed.server(), "net.netfilter.nf_conntrack_tcp_loose=0");
    some_have_no_socket(&lab, || lab.client());
}

/// No rule tells AFPA that connections are tracked on their way in alone. The first of them that would be dropped are reset
/// within seconds, and from then on all connections have sockets.
#[test]
fn a_host_that_drops_what_begins_without_a_syn_is_found_out() {
    let Some(lab) = lab() else { return };
    let rules = "add table inet front;
         add chain inet front in { type filter hook input priority 0; };
         add rule inet front in tcp dport 8080 ct state new tcp flags & (syn) != syn drop;
         add chain inet front made { type filter hook output priority raw; };
         add rule inet front made tcp sport 8080 notrack";
    if !filter(lab.bed.server(), rules) {
        return;
    }
    let mut client = without_socket(&lab, || lab.client());
    ask_user_mode(&mut client);
    let end = client.try_receive(Asked::Body);
    assert!(is_reset(&end), "{end:?}\n{}", lab.tally());
    assert!(lab.count(Reason::SocketlessLost) > 0, "{}", lab.tally());
    let look = || lab.fast_path().socketless.look_at_tcp();
    let why = lab.bed.server().run(look).expect("the server's side").expect_err("it is noticed");
    assert!(why.to_string().contains("without a SYN"), "{why}");
    assert_eq!(connections(&lab, || lab.client()), (0, 0), "{}", lab.tally());
}

/// Rules that are made later: the second client tells that it is not the first one alone.
#[test]
fn rules_that_come_later_are_found_out_by_the_second_client() {
    let Some(lab) = lab() else { return };
    second_address(&lab);
    some_have_no_socket(&lab, || lab.client());
    let mut clients =
        [without_socket(&lab, || from_second(&lab)), without_socket(&lab, || lab.client())];
    let rules = "add table inet front;
         add chain inet front in { type filter hook input priority 0; };
         add rule inet front in tcp dport 8080 tcp flags & (syn) != syn drop";
    if !filter(lab.bed.server(), rules) {
        return;
    }
    let look = || lab.bed.server().run(|| lab.fast_path().socketless.look_at_tcp());
    for (client, alone) in clients.iter_mut().zip([true, false]) {
        ask_user_mode(client);
        let end = client.try_receive(Asked::Body);
        assert!(is_reset(&end), "{end:?}\n{}", lab.tally());
        assert_eq!(lab.count(Reason::SocketlessLostAlone), 1, "{}", lab.tally());
        assert_eq!(lab.count(Reason::SocketlessLost), u64::from(!alone), "{}", lab.tally());
        assert_eq!(look().expect("the server's side").is_ok(), alone);
    }
}

/// A ban drops what one client sends, in the middle of its connections as well.
#[test]
fn a_ban_of_one_client_is_not_taken_for_a_rule_against_all() {
    let Some(lab) = lab() else { return };
    second_address(&lab);
    some_have_no_socket(&lab, || lab.client());
    let mut clients = [0; 3].map(|_| without_socket(&lab, || from_second(&lab)));
    let rules = format!(
        "add table inet front;
         add chain inet front in {{ type filter hook input priority 0; }};
         add rule inet front in ip saddr {SECOND} drop"
    );
    if !filter(lab.bed.server(), &rules) {
        return;
    }
    let before = lab.count(Reason::SocketlessToKernel);
    clients.iter_mut().for_each(ask_user_mode);
    lab.await_count(Reason::SocketlessToKernel, before + 3);
    let ends = std::thread::scope(|scope| {
        let waiting =
            clients.map(|mut client| scope.spawn(move || client.try_receive(Asked::Body)));
        while !waiting.iter().all(|one| one.is_finished()) {
            some_have_no_socket(&lab, || lab.client());
        }
        waiting.map(|one| one.join().expect("a result"))
    });
    assert!(ends.iter().all(is_reset), "{ends:?}\n{}", lab.tally());
    assert_eq!(lab.count(Reason::SocketlessLostAlone), 3, "{}", lab.tally());
    assert_eq!(lab.count(Reason::SocketlessLost), 0, "{}", lab.tally());
    let look = || lab.fast_path().socketless.look_at_tcp();
    lab.bed.server().run(look).expect("the server's side").expect("as before");
    some_have_no_socket(&lab, || lab.client());
}

/// Such a connection costs less if it begins with a socket.
#[test]
fn where_nearly_all_connections_need_a_socket_they_begin_with_one() {
    let Some(lab) = lab() else { return };
    let opened = || lab.count(Reason::SocketlessOpened);
    let look = || lab.bed.server().run(|| lab.fast_path().socketless.look_at_tcp());
    let many = |enough: &dyn Fn(u64) -> bool, target: &str| {
        for turn in 0.. {
            if enough(turn) {
                break;
            }
            assert!(turn < 5000, "{}", lab.tally());
            let mut client = lab.client();
            assert_eq!(client.get(target).status, 200);
            client.end();
        }
        look().expect("the server's side").expect("they are possible here");
    };
    let enough = opened() + 200;
    many(&|_| opened() >= enough, "/kernel.html");
    let enough = opened() + 200;
    many(&|_| opened() >= enough, "/user.html");
    let before = opened();
    many(&|turn| turn == TURNS, "/user.html");
    assert_eq!(opened(), before, "{}", lab.tally());
}

/// Of another prefix than the bed's own client.
const SECOND: &str = "10.77.200.9";

fn second_address(lab: &Lab) {
    ip(lab.bed.client(), &format!("addr add {SECOND}/16 dev {}", Bed::DEVICE));
}

fn from_second(lab: &Lab) -> Client {
    let (from, to) = (SECOND.parse().expect("an address"), Bed::SERVER_V4.into());
    let connected = lab.bed.client().run(|| Client::connect_from(from, SocketAddr::new(to, PORT)));
    connected.expect("the client's side").expect("connected")
}

/// A connection that has no socket, and was answered.
#[track_caller]
fn without_socket(lab: &Lab, connect: impl Fn() -> Client) -> Client {
    let opened = || lab.count(Reason::SocketlessOpened);
    let mut client = connect();
    eventually("a connection has no socket", || {
        let before = opened();
        client = connect();
        let body = client.get("/kernel.html").body;
        opened() > before && body == b"from the kernel"
    });
    client
}

fn ask_user_mode(client: &mut Client) {
    client.send("GET /user.html HTTP/1.1\r\nHost: h\r\n\r\n");
}

fn is_reset<T>(end: &Result<T, ReceiveError>) -> bool {
    matches!(end, Err(ReceiveError::Io(_) | ReceiveError::Closed))
}

/// A strict check of sources, and listeners that wait for data or take data with the SYN, change nothing.
#[test]
fn hosts_and_listeners_with_other_settings() {
    for listen in ["deferred", "fastopen=16"] {
        let Some(lab) = lab_with(listen) else { return };
        for setting in ["all", Bed::DEVICE].map(|of| format!("net.ipv4.conf.{of}.rp_filter=1")) {
            sysctl(lab.bed.server(), &setting);
        }
        some_have_no_socket(&lab, || lab.client());
        some_have_no_socket(&lab, || lab.connect(Bed::SERVER_V6.into()));
    }
}
