//! Behind a balancer that wraps requests (IPIP, FOU, GUE) and has the server answer the client itself: requests come in by a
//! device without Ethernet headers, answers leave by the card. And connections whose packets move to another machine.

use std::net::IpAddr;
use std::time::Duration;

use afpa_bpf::{FastPath, Reason, Settings};
use afpa_netlab::{Bed, Namespace, connect};
use afpa_testkit::Client;
use afpa_testkit::aloud::say;
use afpa_testkit::response::Asked;
use afpa_tests::tcp::{Lab, Plan, Sample, attach, large};

use crate::support::{
    SIDE, another_server, attach_to_all, everything_is_right, ip, nothing_was_dropped, sysctl, to,
    try_ip,
};
use crate::tunnel::tunnel;

/// The address that the balancer announces; the server has it on `lo`.
const VIP: &str = "10.80.0.1";
const VIP_V6: &str = "fd80::1";
/// Bytes of an answer of many segments.
const LONG: usize = 40_000;

/// A way of wrapping, with the words after `ip` that make it. `C`, `S`: addresses of IPv4; `C6`, `S6`: of IPv6.
struct Wrapping {
    name: &'static str,
    /// On the client's side, which is the balancer, too. The device is `wrap0`.
    balancer: &'static str,
    server: &'static [&'static str],
    vip: &'static str,
}

const WRAPPINGS: [Wrapping; 5] = [
    Wrapping {
        name: "IPIP",
        balancer: "link add wrap0 type ipip local C remote S",
        server: &["link set tunl0 up"],
        vip: VIP,
    },
    Wrapping {
        name: "IPIP into a device for all, as Katran has it",
        balancer: "link add wrap0 type ipip local C remote S",
        server: &["link add ipip0 type ipip external", "link set ipip0 up"],
        vip: VIP,
    },
    Wrapping {
        name: "IPv6 in IPv6",
        balancer: "link add wrap0 type ip6tnl mode any local C6 remote S6 encaplimit none",
        server: &["link add wrap0 type ip6tnl mode any local S6 remote C6", "link set wrap0 up"],
        vip: VIP_V6,
    },
    Wrapping {
        name: "FOU",
        balancer: "link add wrap0 type ipip local C remote S encap fou encap-sport auto encap-dport 5555",
        server: &["fou add port 5555 ipproto 4", "link set tunl0 up"],
        vip: VIP,
    },
    Wrapping {
        name: "GUE",
        balancer: "link add wrap0 type ipip local C remote S encap gue encap-sport auto encap-dport 5556",
        server: &["fou add port 5556 gue", "link set tunl0 up"],
        vip: VIP,
    },
];

/// A lab whose server has the balancer's addresses, and an answer of many segments.
fn lab() -> Option<Lab> {
    let settings = Settings { answer_max: 65_536, ..Settings::default() };
    let lab = Lab::with_sample(Plan { settings, ..Plan::default() })?;
    Sample::new(long()).pin(lab.fast_path(), "/long.html");
    std::fs::write(lab.file("long.html"), long()).expect("written");
    ip(lab.bed.server(), &format!("addr add {VIP}/32 dev lo"));
    ip(lab.bed.server(), &format!("addr add {VIP_V6}/128 dev lo"));
    for side in [lab.bed.server(), lab.bed.client()] {
        for interface in ["default", "all", Bed::DEVICE] {
            sysctl(side, &format!("net.ipv4.conf.{interface}.rp_filter=0"));
        }
    }
    Some(lab)
}

fn long() -> Vec<u8> {
    large().into_iter().take(LONG).collect()
}

fn client_address(vip: &str) -> IpAddr {
    let server: IpAddr = if vip == VIP { Bed::SERVER_V4.into() } else { Bed::SERVER_V6.into() };
    Bed::client_address(server, 0)
}

/// The client's packets for the address go this way from now on.
fn send_by(lab: &Lab, vip: &str, way: &str) {
    let from = client_address(vip);
    ip(lab.bed.client(), &format!("route replace {vip} {way} src {from}"));
}

/// Kernel and user mode take turns, also with long answers and uploads, and every byte is right.
#[track_caller]
fn is_right(lab: &Lab, client: &mut Client) {
    lab.converse(client);
    let before = lab.count(Reason::TransferBegun);
    let reply = client.get("/long.html");
    assert!(reply.is_from_kernel() && reply.body == long(), "{}", lab.tally());
    assert_eq!(lab.count(Reason::TransferBegun), before + 1, "{}", lab.tally());
    everything_is_right(lab, client);
}

/// A process takes the wrapping off, and writes the packets to a tun device.
#[test]
fn requests_that_a_process_unwraps_are_answered_by_the_card() {
    let Some(lab) = lab() else { return };
    let Some(_carriers) = tunnel(&lab) else { return };
    send_by(&lab, VIP, "dev tun0");
    let mut client = to(&lab, VIP);
    is_right(&lab, &mut client);
    client.end();
    nothing_was_dropped(&lab);
}

/// The kernel takes it off: each packet passes the card's hook wrapped, and then the tunnel's as what it is.
#[test]
fn requests_that_the_kernel_unwraps_are_answered_by_the_card() {
    for wrapping in &WRAPPINGS {
        let Some(lab) = lab() else { return };
        if !wrap(&lab, wrapping) {
            say("SKIP", &format!("this kernel has no {}", wrapping.name));
            continue;
        }
        println!("{}", wrapping.name);
        attach_to_all(&lab);
        send_by(&lab, wrapping.vip, "dev wrap0");
        let mut client = to(&lab, wrapping.vip);
        // The firewall may see the first packet of this client with its request alone, where a processor is emulated.
        assert_eq!(client.get("/user.html").body, b"from nginx");
        is_right(&lab, &mut client);
        client.end();
        nothing_was_dropped(&lab);
    }
}

/// False: this kernel lacks something of it.
fn wrap(lab: &Lab, wrapping: &Wrapping) -> bool {
    let (client, server) = (lab.bed.client(), lab.bed.server());
    let words = |words: &str| {
        let named = words.split(' ').map(|word| match word {
            "C" => client_address(VIP).to_string(),
            "S" => Bed::SERVER_V4.to_string(),
            "C6" => client_address(VIP_V6).to_string(),
            "S6" => Bed::SERVER_V6.to_string(),
            other => other.to_owned(),
        });
        named.collect::<Vec<_>>().join(" ")
    };
    wrapping.server.iter().all(|line| try_ip(server, &words(line)))
        && try_ip(client, &words(wrapping.balancer))
        && try_ip(client, "link set wrap0 up")
}

/// The way in changes in the middle of a connection with an offset: from the card to the tunnel, and back.
#[test]
fn a_connection_that_moves_into_a_tunnel_and_out_of_it_is_translated() {
    let Some(lab) = lab() else { return };
    let Some(_carriers) = tunnel(&lab) else { return };
    let plain = format!("via {} dev {}", Bed::SERVER_V4, Bed::DEVICE);
    send_by(&lab, VIP, &plain);
    let mut client = to(&lab, VIP);
    lab.converse(&mut client);
    for way in ["dev tun0", &plain, "dev tun0"] {
        send_by(&lab, VIP, way);
        // Its response shows the way.
        assert_eq!(client.get("/kernel.html").body, b"from nginx, the pinned one", "{way}");
        is_right(&lab, &mut client);
    }
    client.end();
    nothing_was_dropped(&lab);
}

/// The routes of equal cost change, and a connection's packets come to another machine that serves the same address. That one
/// knows nothing of it, so it is reset: it gets no byte of the other machine's. A new connection is served.
#[test]
fn a_connection_whose_packets_move_to_another_machine_is_reset() {
    let Some(lab) = lab() else { return };
    let other = Namespace::create("other").expect("a namespace");
    connect((&other, Bed::DEVICE), (lab.bed.client(), SIDE)).expect("a pair of interfaces");
    ip(&other, &format!("addr add 10.78.0.1/24 dev {}", Bed::DEVICE));
    ip(&other, &format!("addr add {VIP}/32 dev lo"));
    ip(&other, "route add default via 10.78.0.2");
    ip(lab.bed.client(), &format!("addr add 10.78.0.2/24 dev {SIDE}"));
    sysctl(lab.bed.client(), &format!("net.ipv4.conf.{SIDE}.rp_filter=0"));
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("kernel.html", "from the other one"), ("user.html", "from nginx")];
    let _nginx = another_server(&other, folder.path(), &files);
    let second = other.run(|| {
        let second = FastPath::load(Settings::default()).expect("loaded");
        attach(&second, Bed::DEVICE).expect("attached");
        second
    });
    let second = second.expect("the other machine");
    Sample::new("from the kernel").pin(&second, "/kernel.html");
    let first_way = format!("via {} dev {}", Bed::SERVER_V4, Bed::DEVICE);
    let second_way = format!("via 10.78.0.1 dev {SIDE}");
    for path in ["/kernel.html", "/user.html"] {
        send_by(&lab, VIP, &first_way);
        let mut moved = to(&lab, VIP);
        lab.converse(&mut moved);
        second.clock.beat();
        send_by(&lab, VIP, &second_way);
        moved.set_patience(Duration::from_secs(5)).expect("a time-out");
        moved.send(format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n"));
        let reply = moved.try_receive(Asked::Body);
        assert!(reply.is_err(), "{reply:?}");
        second.clock.beat();
        let mut fresh = to(&lab, VIP);
        assert!(fresh.get("/kernel.html").is_from_kernel());
        assert_eq!(fresh.get("/user.html").body, b"from nginx");
        fresh.end();
    }
    let answered = second.stats.counters().expect("counters")[Reason::Answered];
    assert_eq!(answered, 2, "those of the fresh connections");
    nothing_was_dropped(&lab);
}
