//! Servers in namespaces of their own, behind virtual pairs, and behind devices that replace such pairs.

use afpa_bpf::{FastPath, Reason, Settings};
use afpa_netlab::{Bed, Namespace, connect};
use afpa_tests::tcp::{Lab, Sample, attach as attach_and_listen};

use crate::support::{
    SIDE, another_server, attach, attach_to_all, everything_is_right, ip, lab, mac,
    nothing_was_dropped, sysctl, text, to, try_ip, user_mode_is_right,
};

/// A pair of interfaces between two namespaces, each with an address (ADDRESS/PREFIX).
fn pair(one: (&Namespace, &str, &str), other: (&Namespace, &str, &str)) {
    connect((one.0, one.1), (other.0, other.1)).expect("a pair of interfaces");
    for (namespace, interface, address) in [one, other] {
        ip(namespace, &format!("addr add {address} dev {interface}"));
    }
}

/// The programs are on the host's side of a container's pair, and the server is inside: it is another one than the
/// host's own on the same port, which goes on being answered.
#[test]
fn a_container_s_server_is_nobody_s_to_the_programs_of_the_host() {
    let Some(lab) = lab() else { return };
    let (host, client) = (lab.bed.server(), lab.bed.client());
    let container = Namespace::create("container").expect("a namespace");
    pair((host, "cont0", "10.81.0.1/24"), (&container, "eth0", "10.81.0.2/24"));
    sysctl(host, "net.ipv4.ip_forward=1");
    ip(&container, "route add default via 10.81.0.1");
    ip(client, &format!("route add 10.81.0.0/24 via {}", Bed::SERVER_V4));
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("kernel.html", "from the container"), ("user.html", "from there as well")];
    let _nginx = another_server(&container, folder.path(), &files);
    attach_to_all(&lab);
    let mut own = lab.client();
    lab.converse(&mut own);
    let mut inside = to(&lab, "10.81.0.2");
    let answered = lab.count(Reason::Answered);
    for (path, content) in [("/kernel.html", files[0].1), ("/user.html", files[1].1)].repeat(5) {
        assert_eq!(inside.get(path).body, content.as_bytes());
    }
    assert_eq!(lab.count(Reason::Answered), answered, "{}", lab.tally());
    lab.converse(&mut own);
    user_mode_is_right(&mut own);
    nothing_was_dropped(&lab);
    inside.end();
    own.end();
}

/// A fast path inside the container, and one on its host for a server there: each one's segments pass the hooks of both.
#[test]
fn a_fast_path_in_a_container_and_one_on_its_host_do_not_meet() {
    let Some(lab) = lab() else { return };
    let (container, client) = (lab.bed.server(), lab.bed.client());
    let host = Namespace::create("host").expect("a namespace");
    pair((client, "up0", "10.80.0.2/24"), (&host, "out0", "10.80.0.1/24"));
    pair((&host, "in0", "10.81.0.1/24"), (container, SIDE, "10.81.0.2/24"));
    sysctl(&host, "net.ipv4.ip_forward=1");
    ip(container, "route add 10.80.0.0/24 via 10.81.0.1");
    ip(client, "route add 10.81.0.0/24 via 10.80.0.1");
    attach(&lab, SIDE);
    let folder = tempfile::tempdir().expect("a folder");
    let _nginx = another_server(&host, folder.path(), &[("user.html", "from the host's nginx")]);
    let on_host = host.run(|| {
        let fast_path = FastPath::load(Settings::default()).expect("loaded, as before");
        for interface in ["out0", "in0"] {
            attach_and_listen(&fast_path, interface).expect("attached");
        }
        fast_path
    });
    let on_host = on_host.expect("the host");
    Sample::new("from the host's kernel").pin(&on_host, "/kernel.html");
    let (mut inside, mut outside) = (to(&lab, "10.81.0.2"), to(&lab, "10.80.0.1"));
    for _ in 0..3 {
        on_host.clock.beat();
        lab.converse(&mut inside);
        user_mode_is_right(&mut inside);
        let reply = outside.get("/kernel.html");
        assert!(reply.is_from_kernel() && reply.body == b"from the host's kernel", "{reply:?}");
        assert_eq!(outside.get("/user.html").body, b"from the host's nginx");
    }
    nothing_was_dropped(&lab);
    let counters = on_host.stats.counters().expect("counters");
    assert_eq!(counters[Reason::TranslateFailed] + counters[Reason::DropUnparsed], 0);
    inside.end();
    outside.end();
}

/// Server and client at the ends of one netkit pair.
#[test]
fn a_netkit_pair_is_right() {
    let Some(lab) = lab() else { return };
    let (server, client) = (lab.bed.server(), lab.bed.client());
    if !try_ip(server, "link add kit0 type netkit") {
        afpa_testkit::skip!("this kernel has no netkit");
    }
    // The other end has a name of the kernel's choice.
    ip(server, &format!("link set nk0 netns {}", client.name()));
    for (side, interface, address) in [(server, "kit0", "10.83.0.1"), (client, "nk0", "10.83.0.2")]
    {
        ip(side, &format!("addr add {address}/24 dev {interface}"));
        ip(side, &format!("link set {interface} up"));
    }
    attach_to_all(&lab);
    let mut clients = [to(&lab, "10.83.0.1"), lab.client()];
    for _ in 0..2 {
        for client in &mut clients {
            everything_is_right(&lab, client);
        }
    }
    lab.converse(&mut clients[1]);
    nothing_was_dropped(&lab);
    clients.into_iter().for_each(afpa_testkit::Client::end);
}

/// An ipvlan with an address of its own, which has the MAC address of the card that it lies on.
fn ipvlan(mode: &str) {
    let Some(lab) = lab() else { return };
    let (server, client) = (lab.bed.server(), lab.bed.client());
    if !try_ip(server, &format!("link add iv0 link eth0 type ipvlan mode {mode}")) {
        afpa_testkit::skip!("this kernel has no ipvlan");
    }
    let mut early = lab.client();
    lab.converse(&mut early);
    ip(server, "addr add 10.79.0.1/24 dev iv0");
    ip(server, "link set iv0 up");
    ip(client, "addr add 10.79.0.2/24 dev eth0");
    neighbours(&lab);
    attach_to_all(&lab);
    let mut clients = [early, to(&lab, "10.79.0.1"), lab.client()];
    for _ in 0..2 {
        for client in &mut clients {
            everything_is_right(&lab, client);
        }
    }
    nothing_was_dropped(&lab);
    clients.into_iter().for_each(afpa_testkit::Client::end);
}

/// Each side finds the other's address of the ipvlan at the card's MAC address, by a fixed neighbour entry.
fn neighbours(lab: &Lab) {
    let (server, client) = (lab.bed.server(), lab.bed.client());
    let [there, here] = [server, client].map(|side| text(mac(side, Bed::DEVICE)));
    ip(client, &format!("neigh replace 10.79.0.1 lladdr {there} dev eth0"));
    for device in ["iv0", "eth0"] {
        ip(server, &format!("neigh replace 10.79.0.2 lladdr {here} dev {device}"));
    }
}

#[test]
fn an_ipvlan_beside_its_lower_device_is_translated_once() {
    ipvlan("l2");
}

#[test]
fn an_ipvlan_that_routes_is_translated_once() {
    ipvlan("l3");
}

#[test]
fn an_ipvlan_that_routes_and_filters_is_translated_once() {
    ipvlan("l3s");
}
