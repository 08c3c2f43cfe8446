//! Differences between links and stacks: families, options, checksums, merging, congestion marks.

use std::net::IpAddr;

use afpa_bpf::Reason;
use afpa_netlab::{Bed, Offloads, Path};
use afpa_testkit::packet::{ACK, CWR, ECE, PSH, Segment};
use afpa_testkit::tcp::Habits;
use afpa_tests::tcp::{Lab, Plan, large};

const V4: IpAddr = IpAddr::V4(Bed::SERVER_V4);
const V6: IpAddr = IpAddr::V6(Bed::SERVER_V6);

/// Everything that is said on one connection, for each family.
fn speak(plan: Plan) {
    let Some(lab) = Lab::with_sample(plan) else { return };
    let content = vec![b'p'; 500_000];
    let upload = format!(
        "PUT /upload/x HTTP/1.1\r\nHost: server\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    for (round, address) in [V4, V6].into_iter().enumerate() {
        let mut client = lab.connect(address);
        for _ in 0..5 {
            lab.converse(&mut client);
            assert_eq!(client.get("/large.html").body, large());
        }
        lab.converse(&mut client);
        client.send([upload.as_bytes(), &content].concat());
        assert!(matches!(client.receive().status, 201 | 204));
        assert!(client.get("/upload/x").body == content);
        client.end();
        assert_eq!(lab.count(Reason::Answered), 12 * (round as u64 + 1), "{}", lab.tally());
    }
    let counters = lab.counters();
    assert_eq!(counters[Reason::AnsweredRetransmission] + counters[Reason::TranslateFailed], 0);
    assert_eq!(counters[Reason::PassChecksum] + counters[Reason::Unsolicited], 0);
}

fn over(offloads: Offloads, sysctls: &[&'static str]) {
    let path = Path::Direct(offloads);
    speak(Plan { path, sysctls: sysctls.to_vec(), ..Plan::default() });
}

#[test]
fn timestamps_on() {
    over(Offloads::CARD, &["net.ipv4.tcp_timestamps=1"]);
}

#[test]
fn timestamps_off() {
    over(Offloads::CARD, &["net.ipv4.tcp_timestamps=0"]);
}

#[test]
fn timestamps_off_full_checksums() {
    over(Offloads::NONE, &["net.ipv4.tcp_timestamps=0"]);
}

#[test]
fn checksum_offload_on() {
    over(Offloads::CHECKSUM_ONLY, &[]);
}

#[test]
fn checksum_offload_off() {
    over(Offloads::NONE, &[]);
}

#[test]
fn segmentation_and_merging() {
    over(Offloads { checksum: true, segmentation: true, merging: true }, &[]);
}

#[test]
fn without_selective_acknowledgements_and_scaling() {
    over(Offloads::CARD, &["net.ipv4.tcp_sack=0", "net.ipv4.tcp_window_scaling=0"]);
}

#[test]
fn explicit_congestion_notification_negotiated() {
    over(Offloads::CARD, &["net.ipv4.tcp_ecn=1"]);
}

/// A request of several merged segments is no single request.
#[test]
fn large_requests_with_merging() {
    let offloads = Offloads { checksum: true, segmentation: true, merging: true };
    let plan = Plan { path: Path::Direct(offloads), ..Plan::default() };
    let Some(lab) = Lab::with_sample(plan) else { return };
    for address in [V4, V6] {
        let mut client = lab.connect(address);
        lab.converse(&mut client);
        for size in [900, 1500, 3000, 7000] {
            let cookie = "c".repeat(size);
            client.send(format!(
                "GET /kernel.html HTTP/1.1\r\nHost: server\r\nCookie: {cookie}\r\n\r\n"
            ));
            let reply = client.receive();
            assert!(
                reply.is_from_kernel() || reply.body == b"from nginx, the pinned one",
                "{size}"
            );
            assert!(size < 1500 || !reply.is_from_kernel(), "{size} bytes are several segments");
        }
        client.end();
    }
}

#[test]
fn congestion_marks_are_heard_and_echoed() {
    let plan = Plan {
        path: Path::Direct(Offloads::NONE),
        sysctls: vec!["net.ipv4.tcp_ecn=1"],
        ..Plan::default()
    };
    let Some(lab) = Lab::with_sample(plan) else { return };
    let mut wire = lab.wire();
    wire.habits = Habits { ecn: true, ..Habits::default() };
    wire.connect();
    wire.ask_kernel();
    // A request that the network marked: user mode's TCP must echo the mark until it receives CWR.
    let marked = Segment { ecn: 3, ..wire.get("/user.html") };
    wire.push(&marked);
    let response = wire.take();
    assert!(response.flags & ECE != 0, "the mark is echoed: {response:?}");
    while !response.text().ends_with("from nginx") {
        let rest = wire.take();
        if rest.text().ends_with("from nginx") {
            break;
        }
    }
    wire.acknowledge();
    // With CWR, which only the kernel's TCP understands: it must go up.
    let told = Segment { flags: ACK | PSH | CWR, ecn: 2, ..wire.get("/kernel.html") };
    wire.push(&told);
    assert!(wire.take_response().text().ends_with("from nginx, the pinned one"));
    wire.acknowledge();
    wire.ask_user();
}
