//! Interfaces that change under open connections: their names, their namespaces, their sizes, the bonds they are in.

use std::time::Duration;

use afpa_bpf::{LONGEST_ANSWER, Reason, Settings};
use afpa_netlab::{Bed, Namespace, connect};
use afpa_testkit::response::{Asked, ReceiveError};
use afpa_testkit::{Client, eventually};
use afpa_tests::tcp::{Lab, Plan, Sample, large};

use crate::support::{
    QUIET, SIDE, another_server, attach as attach_to, attach_to_all, ip, lab, nothing_was_dropped,
    second_pair, to, try_ip, user_mode_is_right,
};

/// Beside each other in a bond, as they are called then.
const PORTS: [&str; 2] = ["port0", "port1"];

/// Both interfaces of a side go into a bond that has the first one's name and these addresses. False: no such device.
fn bond(side: &Namespace, addresses: &[String]) -> bool {
    if !try_ip(side, "link add bond9 type bond mode active-backup miimon 10") {
        return false;
    }
    for (interface, port) in [Bed::DEVICE, SIDE].into_iter().zip(PORTS) {
        ip(side, &format!("addr flush dev {interface}"));
        ip(side, &format!("link set {interface} down"));
        ip(side, &format!("link set {interface} name {port}"));
        ip(side, &format!("link set {port} master bond9"));
        ip(side, &format!("link set {port} up"));
    }
    ip(side, &format!("link set bond9 name {}", Bed::DEVICE));
    ip(side, &format!("link set {} up", Bed::DEVICE));
    for address in addresses {
        ip(side, &format!("addr replace {address} dev {} nodad", Bed::DEVICE));
    }
    true
}

/// Bonds on both sides. False: SKIP was said.
fn bond_both(lab: &Lab) -> bool {
    second_pair(lab, "10.78.0.1/24", "10.78.0.2/24");
    let (v4, v6) = (Bed::SERVER_V4.into(), Bed::SERVER_V6.into());
    let of_client = [v4, v6].map(|server| Bed::client_address(server, 0));
    let of_server = [v4, v6];
    let [one, other] = [(lab.bed.server(), of_server), (lab.bed.client(), of_client)]
        .map(|(side, [v4, v6])| bond(side, &[format!("{v4}/16"), format!("{v6}/64")]));
    if !one || !other {
        afpa_testkit::aloud::say("SKIP", "this kernel has no bond");
    }
    one && other
}

/// The port that frames leave by; the other one is idle.
fn active(lab: &Lab) -> String {
    let file = format!("/sys/class/net/{}/bonding/active_slave", Bed::DEVICE);
    let output = lab.bed.server().command("cat").arg(file).output().expect("it runs");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// The active port loses its link, and the other one takes over.
#[track_caller]
fn fail_over(lab: &Lab) {
    let before = active(lab);
    ip(lab.bed.client(), &format!("link set {before} down"));
    eventually("the other port takes over", || active(lab) != before);
    ip(lab.bed.client(), &format!("link set {before} up"));
}

#[test]
fn a_bond_that_fails_over_carries_a_connection_on() {
    let plan = Plan::default();
    let files: [(&str, &[u8]); 3] = [
        ("user.html", b"from nginx"),
        ("kernel.html", b"from nginx, the pinned one"),
        ("large.html", &large()),
    ];
    let Some(mut lab) = Lab::without_fast_path(plan, &files) else { return };
    if !bond_both(&lab) || !lab.start_fast_path() {
        return;
    }
    Sample::new("from the kernel").pin(lab.fast_path(), "/kernel.html");
    attach_to_all(&lab);
    for address in [Bed::SERVER_V4.into(), Bed::SERVER_V6.into()] {
        let mut client = lab.connect(address);
        for _ in 0..4 {
            lab.converse(&mut client);
            fail_over(&lab);
            user_mode_is_right(&mut client);
        }
        lab.converse(&mut client);
        client.end();
    }
    nothing_was_dropped(&lab);
}

/// The programs were on the card alone when the connections began.
#[test]
fn a_card_that_joins_a_bond_later_is_translated_once() {
    let Some(lab) = lab() else { return };
    let mut clients = [lab.client(), lab.connect(Bed::SERVER_V6.into())];
    clients.iter_mut().for_each(|client| lab.converse(client));
    if !bond_both(&lab) {
        return;
    }
    attach_to_all(&lab);
    for _ in 0..3 {
        clients.iter_mut().for_each(user_mode_is_right);
        fail_over(&lab);
    }
    let mut late = lab.client();
    lab.converse(&mut late);
    fail_over(&lab);
    user_mode_is_right(&mut late);
    lab.converse(&mut late);
    nothing_was_dropped(&lab);
    clients.into_iter().for_each(Client::end);
    late.end();
}

#[test]
fn an_interface_that_is_renamed_carries_a_connection_on() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    let mut client = lab.client();
    lab.converse(&mut client);
    for (from, to) in [(Bed::DEVICE, "wan0"), ("wan0", Bed::DEVICE)] {
        if !try_ip(server, &format!("link set {from} name {to}")) {
            ip(server, &format!("link set {from} down"));
            ip(server, &format!("link set {from} name {to}"));
            ip(server, &format!("link set {to} up"));
        }
        attach_to_all(&lab);
        user_mode_is_right(&mut client);
        lab.converse(&mut client);
    }
    client.end();
    nothing_was_dropped(&lab);
}

/// The card is given to another namespace, and comes back. Connected clients get no byte that is out of its place.
#[test]
fn an_interface_that_leaves_the_namespace_and_comes_back_carries_connections_on() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    let index = server.run(|| nix::net::if_::if_nametoindex(Bed::DEVICE)).expect("inside");
    let index = index.expect("an interface");
    let elsewhere = Namespace::create("elsewhere").expect("a namespace");
    let mut clients = [lab.client(), lab.client()];
    clients.iter_mut().for_each(|client| lab.converse(client));
    ip(server, &format!("link set {} netns {}", Bed::DEVICE, elsewhere.name()));
    let request = "GET /large.html HTTP/1.1\r\nHost: server\r\n\r\n";
    clients[0].send(request); // the interface is gone
    std::thread::sleep(QUIET);
    ip(&elsewhere, &format!("link set {} netns {}", Bed::DEVICE, server.name()));
    ip(server, &format!("addr replace {}/16 dev {}", Bed::SERVER_V4, Bed::DEVICE));
    ip(server, &format!("link set {} up", Bed::DEVICE));
    // A segment that comes now, before AFPA has looked at the interfaces, meets no programs.
    clients[1].send(request);
    std::thread::sleep(QUIET);
    server.run(|| lab.fast_path().interfaces.detach(index)).expect("inside");
    attach_to_all(&lab);
    for client in &mut clients {
        assert!(client.receive().body == large());
        user_mode_is_right(client);
    }
    let mut late = lab.client();
    lab.converse(&mut late);
    late.end();
    clients.into_iter().for_each(Client::end);
}

/// The card is given to a namespace with a server of its own at the same address and port: the programs do not answer for
/// that server.
#[test]
fn an_interface_in_another_namespace_is_another_server_s() {
    let Some(lab) = lab() else { return };
    let mut client = lab.client();
    lab.converse(&mut client);
    let elsewhere = Namespace::create("elsewhere").expect("a namespace");
    ip(lab.bed.server(), &format!("link set {} netns {}", Bed::DEVICE, elsewhere.name()));
    ip(&elsewhere, &format!("addr replace {}/16 dev {}", Bed::SERVER_V4, Bed::DEVICE));
    ip(&elsewhere, &format!("link set {} up", Bed::DEVICE));
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("kernel.html", "from the other one"), ("user.html", "likewise")];
    let _nginx = another_server(&elsewhere, folder.path(), &files);
    let before = lab.count(Reason::Answered);
    let mut other = lab.client();
    for (path, content) in [("/kernel.html", files[0].1), ("/user.html", files[1].1)] {
        for _ in 0..3 {
            assert_eq!(other.get(path).body, content.as_bytes());
        }
    }
    other.end();
    assert_eq!(lab.count(Reason::Answered), before, "{}", lab.tally());
}

/// The server's other namespace has programs of ours only because an interface was moved there. The guard still looks for
/// the namespace of the connections.
#[test]
fn connections_of_another_namespace_do_not_blind_the_guard() {
    let Some(lab) = lab() else { return };
    if !lab.is_guarded() {
        afpa_testkit::skip!("there is no guard: no cgroup2");
    }
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    let (server, elsewhere) = (lab.bed.server(), Namespace::create("elsewhere").expect("made"));
    connect((server, "moved0"), (lab.bed.client(), "moved1")).expect("a pair of interfaces");
    attach_to(&lab, "moved0");
    ip(server, &format!("link set moved0 netns {}", elsewhere.name()));
    ip(&elsewhere, "addr add 10.79.0.1/24 dev moved0");
    ip(&elsewhere, "link set moved0 up");
    ip(lab.bed.client(), "addr add 10.79.0.2/24 dev moved1");
    let mut client = lab.client();
    lab.converse(&mut client);
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("kernel.html", "from the other one")];
    let _nginx = another_server(&elsewhere, folder.path(), &files);
    let mut other = to(&lab, "10.79.0.1");
    assert_eq!(other.get("/kernel.html").body, b"from the other one");
    other.end();
    let client_v4 = Bed::client_address(Bed::SERVER_V4.into(), 0);
    ip(server, &format!("route replace {client_v4}/32 via 10.78.0.2 dev {SIDE}"));
    client.set_patience(QUIET).expect("a time-out");
    client.send("GET /large.html HTTP/1.1\r\nHost: server\r\n\r\n");
    let silence = client.try_receive(Asked::Body);
    assert!(matches!(silence, Err(ReceiveError::TimedOut(_))), "{silence:?}");
    lab.await_count(Reason::DropNoWay, 1);
    ip(server, &format!("route del {client_v4}/32"));
    client.set_patience(Duration::from_secs(10)).expect("a time-out");
    assert!(client.receive().body == large());
    client.end();
}

/// The interfaces take smaller packets than before, and nobody says so: longer packets are lost. The first answers find
/// that out as on any path (a short last segment arrives and says nothing of the others); the answers behind them fit.
#[test]
fn answers_fit_an_interface_whose_mtu_shrinks() {
    let settings = Settings { answer_max: LONGEST_ANSWER as u32, ..Settings::default() };
    let Some(lab) = Lab::with_sample(Plan { settings, ..Plan::default() }) else { return };
    let long: Vec<u8> = large().into_iter().take(40_000).collect();
    Sample::new(&long).pin(lab.fast_path(), "/long.html");
    Sample::new([b'o'; 1100]).pin(lab.fast_path(), "/one.html");
    std::fs::write(lab.file("one.html"), [b'o'; 1100]).expect("written");
    let again = || lab.count(Reason::TransferRetransmitted);
    for address in [Bed::SERVER_V4.into(), Bed::SERVER_V6.into()] {
        let mut client = lab.connect(address);
        lab.converse(&mut client);
        assert!(client.get("/long.html").body == long);
        for mtu in [1400, 1280] {
            for side in [lab.bed.server(), lab.bed.client()] {
                ip(side, &format!("link set {} mtu {mtu}", Bed::DEVICE));
            }
            attach_to_all(&lab);
            for _ in 0..2 {
                assert!(client.get("/long.html").body == long, "{address} {mtu}");
            }
            let before = again();
            for _ in 0..3 {
                let reply = client.get("/long.html");
                assert!(reply.is_from_kernel() && reply.body == long, "{address} {mtu}");
                assert!(client.get("/one.html").body == [b'o'; 1100]);
            }
            // Segments that do not fit would be lost each time; a processor that is away for a while costs a probe.
            assert!(again() < before + 10, "{}", lab.tally());
            user_mode_is_right(&mut client);
        }
        for side in [lab.bed.server(), lab.bed.client()] {
            ip(side, &format!("link set {} mtu 1500", Bed::DEVICE));
        }
        client.end();
    }
}
