//! On `lo`, where a packet needs a route to arrive at all.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use afpa_bpf::{LONGEST_ANSWER, Settings};
use afpa_netlab::Bed;
use afpa_testkit::Client;
use afpa_tests::tcp::{Lab, PORT, Plan, Sample, large, put};

use crate::support::{attach, nothing_was_dropped, tc, try_ip, user_mode_is_right};

fn lab() -> Option<Lab> {
    let settings = Settings { answer_max: LONGEST_ANSWER as u32, ..Settings::default() };
    // Else a packet without a route borrows that of the client's socket, if it has a valid one.
    let sysctls = vec!["net.ipv4.ip_early_demux=0"];
    let lab = Lab::with_sample(Plan { settings, sysctls, ..Plan::default() })?;
    attach(&lab, "lo");
    Some(lab)
}

/// Every address by which a client on the same machine may reach the server.
fn addresses() -> [IpAddr; 4] {
    let loopback = ["127.0.0.1", "::1"].map(|address| address.parse().expect("an address"));
    [loopback[0], loopback[1], Bed::SERVER_V4.into(), Bed::SERVER_V6.into()]
}

/// Makes the packets that the server's side sends on `lo` get lost, while `on`.
fn lose(lab: &Lab, on: bool) {
    let server = lab.bed.server();
    for (family, number, name) in [("ip", 1, "ip"), ("ipv6", 2, "ip6")] {
        if on {
            let what = format!("u32 match {name} sport {PORT} 0xffff");
            let away = "action mirred egress redirect dev eth0";
            tc(
                server,
                &format!("filter add dev lo egress protocol {family} pref {number} {what} {away}"),
            );
        } else {
            tc(server, &format!("filter del dev lo egress pref {number}"));
        }
    }
}

#[test]
fn connections_of_this_machine_get_every_byte() {
    let Some(lab) = lab() else { return };
    let long: Vec<u8> = large().into_iter().take(50_000).collect();
    Sample::new(&long).pin(lab.fast_path(), "/long.html");
    for address in addresses() {
        let to = SocketAddr::new(address, PORT);
        let mut client = lab.bed.server().run(|| Client::to(to)).expect("the server's side");
        for _ in 0..3 {
            lab.converse(&mut client);
            user_mode_is_right(&mut client);
            assert!(
                client.get("/long.html").body == long || address == Bed::SERVER_V4,
                "{address}"
            );
        }
        client.end();
    }
}

/// A client that reads slowly; then the next segments are lost. Nothing comes from the client that could bring them back.
#[test]
fn a_segment_that_is_lost_on_loopback_comes_again() {
    let Some(lab) = lab() else { return };
    let long: Vec<u8> = large().into_iter().take(60_000).collect();
    Sample::new(&long).pin(lab.fast_path(), "/large.html"); // as nginx has it, but for its end
    tc(lab.bed.server(), "qdisc add dev lo clsact");
    for address in addresses() {
        let to = SocketAddr::new(address, PORT);
        let client = lab.bed.server().run(|| Client::connect_narrow(to, 4096));
        let mut client = client.expect("the server's side").expect("connected");
        client.set_patience(Duration::from_secs(8)).expect("a time-out");
        client.send("GET /large.html HTTP/1.1\r\nHost: server\r\n\r\n");
        std::thread::sleep(Duration::from_millis(50));
        lose(&lab, true);
        let first = client.take(4000);
        std::thread::sleep(Duration::from_millis(50));
        lose(&lab, false);
        let head = first.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        let rest = client.take(60_000 - (first.len() - head));
        assert!([&first[head..], &rest].concat() == large()[..60_000], "{address}");
        client.abort().expect("closed");
    }
}

/// The same of an answer of one segment, which waits for its time-out.
#[test]
fn an_answer_of_one_segment_that_is_lost_on_loopback_comes_again() {
    let Some(lab) = lab() else { return };
    tc(lab.bed.server(), "qdisc add dev lo clsact");
    for address in addresses() {
        let to = SocketAddr::new(address, PORT);
        let mut client = lab.bed.server().run(|| Client::to(to)).expect("the server's side");
        lab.converse(&mut client);
        lose(&lab, true);
        client.send("GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n");
        std::thread::sleep(Duration::from_millis(20));
        lose(&lab, false);
        assert!(client.receive().is_from_kernel(), "{address}");
        lab.converse(&mut client);
        client.end();
    }
}

/// Segments of 64 KB, the usual size there, and larger ones: both ways, in the middle of connections with an offset.
#[test]
fn segments_of_every_size_are_translated_on_loopback() {
    let Some(lab) = lab() else { return };
    let largest = |of_lo: &str| {
        let (sizes, server) = (["gso_max_size", "gro_max_size"], lab.bed.server());
        sizes.iter().all(|size| try_ip(server, &format!("link set lo {size} {of_lo}")))
    };
    for size in ["65536", "30000", "262144"] {
        if !largest(size) {
            afpa_testkit::aloud::say("SKIP", &format!("lo takes no segments of {size} bytes"));
            continue;
        }
        for address in addresses() {
            let to = SocketAddr::new(address, PORT);
            let mut client = lab.bed.server().run(|| Client::to(to)).expect("the server's side");
            for _ in 0..2 {
                lab.converse(&mut client);
                let content: Vec<u8> = large().repeat(10);
                client.send(put("x", &content));
                assert!(matches!(client.receive().status, 201 | 204), "{address}");
                assert!(client.get("/upload/x").body == content, "{address}");
            }
            client.end();
        }
    }
    nothing_was_dropped(&lab);
}
