//! Devices on top of others: each segment passes several hooks, and is translated at one of them.

use std::net::SocketAddr;
use std::time::Duration;

use afpa_bpf::Reason;
use afpa_netlab::Bed;
use afpa_testkit::packet::{MacPair, Segment};
use afpa_tests::tcp::{Lab, PORT};

use crate::support::{
    add_macvlan, add_virtual_lan, attach, ip, join_bridge, lab, nothing_was_dropped, tc, to,
    try_ip, user_mode_is_right,
};

/// As keepalived's `use_vmac` has it: a macvlan with an address of its own, beside the card that it lies on.
#[test]
fn a_macvlan_beside_its_lower_device_is_translated_once() {
    let Some(lab) = lab() else { return };
    if !add_macvlan(&lab) {
        afpa_testkit::skip!("this kernel has no macvlan");
    }
    both_addresses_are_right(&lab);
}

/// Kernel and user mode in turn, at the device's address and at the card's.
#[track_caller]
fn both_addresses_are_right(lab: &Lab) {
    for address in ["10.79.0.1", "10.77.0.1"] {
        let mut client = to(lab, address);
        for _ in 0..3 {
            lab.converse(&mut client);
            user_mode_is_right(&mut client);
        }
        client.end();
    }
    nothing_was_dropped(lab);
}

/// The frames of a tagged network pass the card's hooks with their tag, and the device's without.
#[test]
fn a_virtual_lan_above_the_card_is_translated_once() {
    let Some(lab) = lab() else { return };
    if !add_virtual_lan(&lab) {
        afpa_testkit::skip!("this kernel has no VLAN devices");
    }
    both_addresses_are_right(&lab);
}

/// The same, where another program behind ours ends the chain and wipes the traffic class.
#[test]
fn a_macvlan_whose_other_filters_accept_everything_is_translated_once() {
    let Some(lab) = lab() else { return };
    if !add_macvlan(&lab) {
        afpa_testkit::skip!("this kernel has no macvlan");
    }
    let server = lab.bed.server();
    tc(server, "qdisc add dev mv0 clsact");
    for hook in ["ingress", "egress"] {
        tc(server, &format!("filter add dev mv0 {hook} protocol ip u32 match u32 0 0 flowid 1:7"));
    }
    let mut client = to(&lab, "10.79.0.1");
    for _ in 0..3 {
        lab.converse(&mut client);
        user_mode_is_right(&mut client);
    }
    client.end();
}

/// Connections that are open when somebody puts the card into a bridge go on.
#[test]
fn a_card_that_joins_a_bridge_later_is_translated_once() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    let mut clients = [lab.client(), lab.client()];
    clients.iter_mut().for_each(|client| lab.converse(client));
    join_bridge(&lab);
    for client in &mut clients {
        user_mode_is_right(client);
        user_mode_is_right(client);
    }
    let mut late = lab.client();
    lab.converse(&mut late);
    user_mode_is_right(&mut late);
    lab.converse(&mut late);
    // The bridge goes, and the card is alone again.
    ip(server, "addr add 10.77.0.1/16 dev eth0");
    ip(server, "link set eth0 nomaster");
    ip(server, "link del br0");
    user_mode_is_right(&mut late);
    clients.iter_mut().for_each(user_mode_is_right);
    nothing_was_dropped(&lab);
    clients.into_iter().for_each(afpa_testkit::Client::end);
    late.end();
}

/// Incoming segments are sent round by an intermediate device, as for shaping. The programs are on that device, too.
#[test]
fn an_intermediate_device_sends_segments_round_and_they_are_translated_once() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    if !try_ip(server, "link add ifb0 type ifb") {
        afpa_testkit::skip!("this kernel has no ifb");
    }
    ip(server, "link set ifb0 up");
    attach(&lab, "ifb0");
    tc(server, "qdisc add dev eth0 clsact");
    let all = "protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0";
    tc(server, &format!("filter add dev eth0 ingress {all}"));
    let mut client = lab.client();
    for _ in 0..3 {
        lab.converse(&mut client);
        user_mode_is_right(&mut client);
    }
    client.end();
    nothing_was_dropped(&lab);
}

/// A copy of every frame comes in by a mirror port, addressed to another card: the programs may not take it for ours.
#[test]
fn frames_for_another_card_are_nobody_s() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    ip(server, "link set eth0 promisc on");
    let mut wire = lab.wired();
    wire.ask_kernel();
    let before = lab.counters();
    let request = wire.get("/kernel.html");
    let mut frame = wire.frame(&request);
    frame[..6].copy_from_slice(&crate::support::STRANGER);
    for kind in [crate::support::STRANGER, [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
        frame[..6].copy_from_slice(&kind);
        wire.send_frame(&frame);
    }
    assert!(wire.collect(crate::support::QUIET).is_empty());
    assert_eq!(lab.counters().since(&before)[Reason::Answered], 0, "{}", lab.tally());
    wire.ask_user();
    wire.ask_kernel();
}

/// Requests to addresses of many machines, forged with the numbers of a connection, and of none, get no answer.
#[test]
fn requests_to_multicast_and_broadcast_addresses_are_never_answered() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    let mut wire_v6 = lab.bed.raw_client((Bed::SERVER_V6, PORT).into()).expect("a raw client");
    wire_v6.connect();
    wire_v6.ask_kernel();
    let before = lab.counters();
    let own = lab.bed.macs().expect("addresses");
    for (wire, many) in [
        (&wire, ["224.0.0.1", "255.255.255.255", "10.77.255.255", "0.0.0.0"].as_slice()),
        (&wire_v6, ["ff02::1", "ff0e::1"].as_slice()),
    ] {
        for to in many {
            for mac in [[0xff; 6], [1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1], own_mac(&own)] {
                let request = wire.get("/kernel.html");
                let to = SocketAddr::new(to.parse().expect("an address"), PORT);
                let forged = Segment { from: wire.address(), to, ..request };
                let mut macs = own;
                macs[..6].copy_from_slice(&mac);
                wire.send_frame(&forged.frame(&macs));
                assert!(wire.receive(Duration::from_millis(20)).is_none(), "{to}");
            }
        }
    }
    let after = lab.counters().since(&before);
    assert_eq!(after[Reason::Answered] + after[Reason::FlowOpened], 0, "{}", lab.tally());
    for mut wire in [wire, wire_v6] {
        wire.ask_user();
        wire.ask_kernel();
    }
}

fn own_mac(macs: &MacPair) -> [u8; 6] {
    *macs.first_chunk().expect("two addresses")
}
