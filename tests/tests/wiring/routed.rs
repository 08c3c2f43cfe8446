//! Routing and rewriting of addresses in front of the server.

use std::net::SocketAddr;

use afpa_netlab::{Bed, Namespace};
use afpa_testkit::Client;
use afpa_testkit::response::{Asked, ReceiveError};
use afpa_tests::tcp::{Lab, PORT, Plan, Sample, large};

use crate::support::{
    SIDE, attach_to_all, everything_is_right, filter, ip, lab, mac, nothing_was_dropped,
    second_pair, sysctl, tc, text, try_ip, user_mode_is_right, user_mode_serves,
};

/// The address or the port is rewritten behind the programs, for a server that never sees it: it is left to user mode.
#[test]
fn a_destination_that_is_rewritten_is_left_to_user_mode() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    ip(server, "addr add 10.77.0.9/16 dev eth0");
    let rules = format!(
        "add table ip front; add chain ip front in {{ type nat hook prerouting priority -100; }};
         add rule ip front in ip daddr 10.77.0.9 tcp dport {{ 80, {PORT} }} dnat to {}:{PORT}",
        Bed::SERVER_V4
    );
    if !filter(server, &rules) {
        return;
    }
    let connect = |port| {
        let address = SocketAddr::new("10.77.0.9".parse().expect("an address"), port);
        lab.bed.client().run(|| Client::to(address)).expect("the client's side")
    };
    let mut clients = [connect(80), connect(PORT)];
    for _ in 0..2 {
        clients.iter_mut().for_each(|client| user_mode_serves(&lab, client));
    }
    clients.into_iter().for_each(Client::end);
    let mut plain = lab.client();
    lab.converse(&mut plain);
    plain.end();
}

/// The same of the client's address.
#[test]
fn a_source_that_is_rewritten_is_left_to_user_mode() {
    let Some(lab) = lab() else { return };
    let rules = format!(
        "add table ip front; add chain ip front in {{ type nat hook input priority 100; }};
         add rule ip front in tcp dport {PORT} snat to 10.77.99.99"
    );
    if !filter(lab.bed.server(), &rules) {
        return;
    }
    let mut client = lab.client();
    user_mode_serves(&lab, &mut client);
    client.end();
}

/// Rewriting begins while connections are open, and takes hold of them in their middle.
#[test]
fn a_rule_that_begins_to_track_open_connections_changes_nothing() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    let mut client = lab.client();
    lab.converse(&mut client);
    let rules = "add table ip front;
         add chain ip front out { type nat hook postrouting priority 100; };
         add rule ip front out oif eth0 masquerade";
    if !filter(server, rules) {
        return;
    }
    for _ in 0..3 {
        user_mode_is_right(&mut client);
        lab.converse(&mut client);
    }
    client.end();
    let mut late = lab.client();
    lab.converse(&mut late);
    user_mode_is_right(&mut late);
    late.end();
    nothing_was_dropped(&lab);
}

/// Where the clients of several ways back live.
const BEHIND: &str = "fd90::1";

fn from_behind(lab: &Lab) -> Client {
    let (from, to) = (BEHIND.parse().expect("an address"), Bed::SERVER_V6.into());
    let connected = lab.bed.client().run(|| Client::connect_from(from, SocketAddr::new(to, PORT)));
    connected.expect("the client's side").expect("connected")
}

/// Several ways back of equal cost: each connection takes one of them, by its ports. Then one way is lost. With IPv6,
/// since IPv4 of newer kernels prefers the interface that has the server's address.
#[test]
fn several_ways_back_of_equal_cost_are_taken_as_the_kernel_takes_them() {
    let Some(lab) = lab() else { return };
    let (server, client) = (lab.bed.server(), lab.bed.client());
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    for (side, address) in [(server, "fd78::1/64"), (client, "fd78::2/64")] {
        ip(side, &format!("addr add {address} dev {SIDE} nodad"));
    }
    attach_to_all(&lab);
    sysctl(server, "net.ipv6.fib_multipath_hash_policy=1");
    ip(client, &format!("addr add {BEHIND}/128 dev lo"));
    let first = Bed::client_address(Bed::SERVER_V6.into(), 0);
    let ways = [format!("via {first} dev eth0"), format!("via fd78::2 dev {SIDE}")];
    let [one, other] = &ways;
    ip(server, &format!("route add {BEHIND}/128 nexthop {one} nexthop {other}"));
    // Neighbours are known: a way to one that is not is not taken, and the server's word to its own takes another way.
    let known = |side, address: &str, device: &str, of: &Namespace| {
        let address = format!("neigh replace {address} lladdr {}", text(mac(of, device)));
        ip(side, &format!("{address} dev {device}"));
    };
    known(client, &Bed::SERVER_V6.to_string(), Bed::DEVICE, server);
    known(server, &first.to_string(), Bed::DEVICE, client);
    known(server, "fd78::2", SIDE, client);
    let sent = || transmitted(server, SIDE);
    let before = sent();
    let mut clients: Vec<Client> = (0..12).map(|_| from_behind(&lab)).collect();
    for client in &mut clients {
        lab.converse(client);
        user_mode_is_right(client);
    }
    assert!(sent() > before + 200_000, "the second way is taken as well");
    // One way is lost, then the other one, in the middle of all these connections.
    for way in &ways {
        ip(server, &format!("-6 route flush {BEHIND}/128"));
        ip(server, &format!("route add {BEHIND}/128 {way}"));
        for client in &mut clients {
            everything_is_right(&lab, client);
        }
    }
    nothing_was_dropped(&lab);
    clients.into_iter().for_each(Client::end);
}

/// Bytes that left by an interface.
fn transmitted(side: &Namespace, interface: &str) -> u64 {
    let file = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    let output = side.command("cat").arg(file).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

/// The card is in a VRF, whose device has a queue of its own or not: then packets pass its hooks, too.
#[test]
fn a_vrf_is_translated_once() {
    for with_queue in [false, true] {
        let plan = Plan { sysctls: vec!["net.ipv4.tcp_l3mdev_accept=1"], ..Plan::default() };
        let files: [(&str, &[u8]); 3] = [
            ("user.html", b"from nginx"),
            ("kernel.html", b"from nginx, the pinned one"),
            ("large.html", &large()),
        ];
        let Some(mut lab) = Lab::without_fast_path(plan, &files) else { return };
        let server = lab.bed.server();
        if !try_ip(server, "link add vrf0 type vrf table 10") {
            afpa_testkit::skip!("this kernel has no VRF");
        }
        ip(server, "link set vrf0 up");
        ip(server, "link set eth0 master vrf0");
        ip(server, &format!("addr replace {}/64 dev eth0 nodad", Bed::SERVER_V6));
        if with_queue {
            tc(server, "qdisc add dev vrf0 root pfifo");
        }
        if !lab.start_fast_path() {
            return;
        }
        Sample::new("from the kernel").pin(lab.fast_path(), "/kernel.html");
        attach_to_all(&lab);
        for address in [Bed::SERVER_V4.into(), Bed::SERVER_V6.into()] {
            let mut client = lab.connect(address);
            everything_is_right(&lab, &mut client);
            client.end();
        }
        nothing_was_dropped(&lab);
    }
}

/// A connection is open when the card joins a VRF. The server does not listen there, so its kernel resets the connection
/// or hears nothing of it; no byte is wrong. When the card has left again, new ones are answered.
#[test]
fn a_card_that_joins_a_vrf_and_leaves_it_gives_no_wrong_byte() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    let mut client = lab.client();
    lab.converse(&mut client);
    if !try_ip(server, "link add vrf0 type vrf table 10") {
        afpa_testkit::skip!("this kernel has no VRF");
    }
    ip(server, "link set vrf0 up");
    ip(server, "link set eth0 master vrf0");
    attach_to_all(&lab);
    client.send("GET /large.html HTTP/1.1\r\nHost: server\r\n\r\n");
    std::thread::sleep(crate::support::QUIET);
    ip(server, "link set eth0 nomaster");
    match client.try_receive(Asked::Body) {
        Ok(response) => assert!(response.body == large()),
        Err(end) => assert!(matches!(end, ReceiveError::Closed), "{end:?}"),
    }
    let mut late = lab.client();
    lab.converse(&mut late);
    user_mode_is_right(&mut late);
    late.end();
    nothing_was_dropped(&lab);
}
