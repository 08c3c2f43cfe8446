//! Ways back: answers leave where the kernel's own segments do, and nothing leaves elsewhere untranslated.

use std::collections::BTreeMap;
use std::time::Duration;

use afpa_bpf::Reason;
use afpa_netlab::Bed;
use afpa_testkit::packet::Segment;
use afpa_testkit::tcp::RawClient;
use afpa_testkit::{
    eventually,
    response::{Asked, ReceiveError},
};
use afpa_tests::tcp::large;

use crate::support::{
    Legs, QUIET, SIDE, STRANGER, WIRED, attach, ip, lab, mac, nothing_was_dropped, second_pair,
    server_sends, socket, user_mode_is_right, wired,
};

/// The usual way: out and back by the first interface.
fn usual(lab: &afpa_tests::tcp::Lab) -> Legs {
    let (own, to) = (mac(lab.bed.client(), Bed::DEVICE), mac(lab.bed.server(), Bed::DEVICE));
    server_sends(lab, WIRED, Bed::DEVICE, own);
    let (out, back) = (socket(lab, Bed::DEVICE), socket(lab, Bed::DEVICE));
    Legs { out, from: own, to, back, own }
}

/// Routers that stand in for each other send frames from addresses of their own, but are spoken to at a common one.
#[test]
fn answers_go_to_the_router_that_the_kernel_sends_to() {
    let Some(lab) = lab() else { return };
    let legs = Legs { from: STRANGER, ..usual(&lab) };
    let mut wire = wired(legs);
    for _ in 0..3 {
        wire.ask_user();
        wire.ask_kernel();
    }
}

/// Direct server return: requests come in by one interface, responses leave by another.
#[test]
fn answers_leave_by_the_interface_that_the_kernel_sends_by() {
    let Some(lab) = lab() else { return };
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    attach(&lab, SIDE);
    let own = mac(lab.bed.client(), SIDE);
    let legs = Legs { back: socket(&lab, SIDE), own, ..usual(&lab) };
    server_sends(&lab, WIRED, SIDE, own);
    let mut wire = wired(legs);
    for _ in 0..3 {
        wire.ask_user();
        wire.ask_kernel();
    }
}

#[test]
fn nothing_is_answered_where_responses_leave_by_a_device_without_programs() {
    let Some(lab) = lab() else { return };
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    let own = mac(lab.bed.client(), SIDE);
    let legs = Legs { back: socket(&lab, SIDE), own, ..usual(&lab) };
    server_sends(&lab, WIRED, SIDE, own);
    let mut wire = wired(legs);
    for path in ["/kernel.html", "/user.html", "/kernel.html"] {
        let reply = wire.ask(&wire.get(path));
        assert!(!reply.is_from_kernel(), "{reply:?}");
        wire.acknowledge();
    }
    assert_eq!(lab.count(Reason::Answered), 0, "{}", lab.tally());
    assert!(lab.count(Reason::PassNoWay) > 0, "{}", lab.tally());
}

/// The route changes to an interface that has no programs. The client of such a connection gets no byte that is out of
/// its place; when the route is back, all is well.
#[test]
fn a_way_that_changes_to_a_device_without_programs_carries_nothing_untranslated() {
    let Some(lab) = lab() else { return };
    if !lab.is_guarded() {
        afpa_testkit::skip!("there is no guard: no cgroup2");
    }
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    let client_v4 = Bed::client_address(Bed::SERVER_V4.into(), 0);
    let mut client = lab.client();
    lab.converse(&mut client);
    let mut other = lab.client();
    assert_eq!(other.get("/user.html").body, b"from nginx"); // no offset: it goes any way
    ip(lab.bed.server(), &format!("route replace {client_v4}/32 via 10.78.0.2 dev {SIDE}"));
    assert!(other.get("/large.html").body == large());
    client.set_patience(QUIET).expect("a time-out");
    client.send("GET /large.html HTTP/1.1\r\nHost: server\r\n\r\n");
    let silence = client.try_receive(Asked::Body);
    assert!(matches!(silence, Err(ReceiveError::TimedOut(_))), "{silence:?}");
    lab.await_count(Reason::DropNoWay, 1);
    ip(lab.bed.server(), &format!("route del {client_v4}/32"));
    client.set_patience(Duration::from_secs(10)).expect("a time-out");
    assert!(client.receive().body == large());
    user_mode_is_right(&mut client);
    client.end();
    other.end();
}

/// The route encapsulates outgoing packets: the programs see the outer header only.
#[test]
fn a_route_that_encapsulates_carries_nothing_untranslated() {
    let Some(lab) = lab() else { return };
    let client_v6 = Bed::client_address(Bed::SERVER_V6.into(), 0);
    let mut client = lab.connect(Bed::SERVER_V6.into());
    lab.converse(&mut client);
    let router = "fd77::a4d:99";
    let mac = crate::support::text(mac(lab.bed.client(), Bed::DEVICE));
    ip(lab.bed.server(), &format!("neigh replace {router} lladdr {mac} dev eth0"));
    let route =
        format!("-6 route replace {client_v6}/128 encap seg6 mode encap segs {router} dev eth0");
    if !crate::support::try_ip(lab.bed.server(), &route) {
        afpa_testkit::skip!("this kernel has no encapsulating routes");
    }
    client.set_patience(QUIET).expect("a time-out");
    client.send("GET /large.html HTTP/1.1\r\nHost: server\r\n\r\n");
    let silence = client.try_receive(Asked::Body);
    assert!(matches!(silence, Err(ReceiveError::TimedOut(_))), "{silence:?}");
    eventually("it is counted", || {
        lab.count(Reason::EgressUnparsed) + lab.count(Reason::DropNoWay) > 0
    });
    ip(lab.bed.server(), &format!("-6 route del {client_v6}/128"));
    client.set_patience(Duration::from_secs(10)).expect("a time-out");
    assert!(client.receive().body == large());
    user_mode_is_right(&mut client);
    client.end();
}

/// The link fails over: both directions take another interface. One request passes, then the new way is known.
#[test]
fn a_connection_that_fails_over_is_answered_on_its_new_way() {
    let Some(lab) = lab() else { return };
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    attach(&lab, SIDE);
    let mut wire = wired(usual(&lab));
    wire.ask_kernel();
    let own = mac(lab.bed.client(), SIDE);
    server_sends(&lab, WIRED, SIDE, own);
    let to = mac(lab.bed.server(), SIDE);
    wire.relink(Legs { out: socket(&lab, SIDE), from: own, to, back: socket(&lab, SIDE), own });
    let reply = wire.ask(&wire.get("/kernel.html"));
    assert!(!reply.is_from_kernel(), "{reply:?}");
    wire.acknowledge();
    assert_eq!(lab.count(Reason::PassOtherWay), 1, "{}", lab.tally());
    wire.ask_kernel();
    wire.ask_user();
    wire.ask_kernel();
    nothing_was_dropped(&lab);
}

/// The same, while an answer is lost: only the kernel can say where it sends now, and is made to.
#[test]
fn a_lost_answer_comes_again_on_the_new_way() {
    let Some(lab) = lab() else { return };
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    attach(&lab, SIDE);
    let mut wire = wired(usual(&lab));
    wire.ask_kernel();
    let own = mac(lab.bed.client(), SIDE);
    let to = mac(lab.bed.server(), SIDE);
    let request = wire.get("/kernel.html");
    wire.push(&request);
    server_sends(&lab, WIRED, SIDE, own);
    wire.relink(Legs { out: socket(&lab, SIDE), from: own, to, back: socket(&lab, SIDE), own });
    for _ in 0..3 {
        wire.send(&request);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(wire.take_response().is_from_kernel());
    wire.acknowledge();
    wire.ask_user();
    wire.ask_kernel();
}

/// Only the way back changes: the client's segments say nothing of it, but that the answer is lost again and again.
#[test]
fn an_answer_that_is_lost_again_and_again_makes_the_kernel_show_its_way() {
    let Some(lab) = lab() else { return };
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    attach(&lab, SIDE);
    let usual = usual(&lab);
    let (from, to) = (usual.from, usual.to);
    let mut wire = wired(usual);
    wire.ask_kernel();
    let own = mac(lab.bed.client(), SIDE);
    server_sends(&lab, WIRED, SIDE, own);
    wire.relink(Legs { out: socket(&lab, Bed::DEVICE), from, to, back: socket(&lab, SIDE), own });
    let request = wire.get("/kernel.html");
    wire.push(&request);
    // Until the answer has left so often that its way is doubted; then the kernel shows it, and the next one arrives.
    eventually("the kernel is asked for the way", || {
        std::thread::sleep(Duration::from_millis(400));
        wire.send(&request);
        lab.count(Reason::WayAsked) >= 1
    });
    std::thread::sleep(Duration::from_millis(400));
    wire.send(&request);
    assert!(wire.take_response().is_from_kernel());
    assert!(lab.count(Reason::WayAsked) >= 1, "{}", lab.tally());
    wire.acknowledge();
    wire.ask_user();
    wire.ask_kernel();
}

/// A long answer is half sent when the link fails over.
#[test]
fn a_long_answer_goes_on_on_the_new_way() {
    let settings = afpa_bpf::Settings {
        answer_max: afpa_bpf::LONGEST_ANSWER as u32,
        ..afpa_bpf::Settings::default()
    };
    let plan = afpa_tests::tcp::Plan { settings, ..Default::default() };
    let Some(lab) = afpa_tests::tcp::Lab::with_sample(plan) else { return };
    let content: Vec<u8> = large().into_iter().take(60_000).collect();
    afpa_tests::tcp::Sample::new(&content).pin(lab.fast_path(), "/long.html");
    second_pair(&lab, "10.78.0.1/24", "10.78.0.2/24");
    attach(&lab, SIDE);
    let mut wire = wired(usual(&lab));
    wire.ask_kernel();
    wire.push(&wire.get("/long.html"));
    let first = wire.take();
    assert!(first.is_from_kernel());
    let own = mac(lab.bed.client(), SIDE);
    let to = mac(lab.bed.server(), SIDE);
    server_sends(&lab, WIRED, SIDE, own);
    wire.relink(Legs { out: socket(&lab, SIDE), from: own, to, back: socket(&lab, SIDE), own });
    wire.acknowledge();
    let at = first.text().find("\r\n\r\n").expect("a head") + 4;
    let whole = the_rest(&mut wire, &first, at + content.len());
    assert!(whole[at..] == content[..]);
    wire.ask_user();
}

/// Segments in any order until `length` bytes are there, acknowledged as they come.
fn the_rest(wire: &mut RawClient, first: &Segment, length: usize) -> Vec<u8> {
    let mut whole = first.payload.clone();
    let mut early = BTreeMap::new();
    while whole.len() < length {
        let segment = wire.await_segment("the rest", |segment| !segment.payload.is_empty());
        early.insert(segment.seq.wrapping_sub(first.seq) as usize, segment.payload);
        while let Some((at, payload)) = early.pop_first() {
            if at > whole.len() {
                early.insert(at, payload);
                break;
            }
            whole.extend(payload.get(whole.len() - at..).unwrap_or_default());
        }
        wire.ack = first.seq.wrapping_add(whole.len() as u32);
        wire.ts_recent = wire.ts_recent.max(segment.ts_value);
        wire.acknowledge();
    }
    whole
}
