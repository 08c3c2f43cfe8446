//! Segments of unusual shapes: cut, wrapped, tagged, or larger than any packet can be.

use afpa_bpf::Reason;
use afpa_netlab::{Bed, Offloads, Path};
use afpa_testkit::packet::checksum;
use afpa_testkit::tcp::RawClient;
use afpa_tests::tcp::{Lab, PORT, Plan, Sample};

use crate::support::{QUIET, ip, lab, nothing_was_dropped, try_ip};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
const HOP_BY_HOP: u8 = 0;

/// A client by hand over IPv6, connected.
fn wired_v6(lab: &Lab) -> RawClient {
    let mut wire = lab.bed.raw_client((Bed::SERVER_V6, PORT).into()).expect("a raw client");
    wire.connect();
    wire
}

fn both(lab: &Lab) -> [RawClient; 2] {
    [lab.wired(), wired_v6(lab)]
}

/// The frame in two: the first has `at` bytes behind the IP header, a multiple of eight.
fn cut(frame: &[u8], at: usize) -> [Vec<u8>; 2] {
    if frame[12] == 0x86 { cut_v6(frame, at) } else { cut_v4(frame, at) }
}

fn cut_v4(frame: &[u8], at: usize) -> [Vec<u8>; 2] {
    let (headers, content) = frame.split_at(ETHERNET + IPV4);
    let part = |content: &[u8], fragment: u16| {
        let mut part = [headers, content].concat();
        let length = (IPV4 + content.len()) as u16;
        part[ETHERNET + 2..][..2].copy_from_slice(&length.to_be_bytes());
        part[ETHERNET + 6..][..2].copy_from_slice(&fragment.to_be_bytes());
        part[ETHERNET + 10..][..2].fill(0);
        let sum = !checksum::sum(&[&part[ETHERNET..ETHERNET + IPV4]]);
        part[ETHERNET + 10..][..2].copy_from_slice(&sum.to_be_bytes());
        part
    };
    [part(&content[..at], 0x2000), part(&content[at..], at as u16 / 8)]
}

fn cut_v6(frame: &[u8], at: usize) -> [Vec<u8>; 2] {
    let (first, second) = frame[ETHERNET + IPV6..].split_at(at);
    let part = |content: &[u8], offset: u16| {
        let [high, low] = offset.to_be_bytes();
        let header = [frame[ETHERNET + 6], 0, high, low, 0, 0, 7, 7];
        wrap(frame, FRAGMENT, &[&header[..], content].concat())
    };
    [part(first, 1), part(second, at as u16)]
}

/// The IPv6 packet with this next header and this content.
fn wrap(frame: &[u8], next: u8, content: &[u8]) -> Vec<u8> {
    let mut whole = [&frame[..ETHERNET + IPV6], content].concat();
    whole[ETHERNET + 4..][..2].copy_from_slice(&(content.len() as u16).to_be_bytes());
    whole[ETHERNET + 6] = next;
    whole
}

/// With an extension header of padding.
fn extended(frame: &[u8], next: u8) -> Vec<u8> {
    let header = [frame[ETHERNET + 6], 0, 1, 4, 0, 0, 0, 0];
    wrap(frame, next, &[&header[..], &frame[ETHERNET + IPV6..]].concat())
}

fn tagged(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0, 0xe0, 0], &frame[12..]].concat() // priority 7, network 0
}

/// A GET in frames of this shape; it counts as sent.
fn push(wire: &mut RawClient, path: &str, shape: impl Fn(&[u8]) -> Vec<Vec<u8>>) {
    let segment = wire.get(path);
    shape(&wire.frame(&segment)).iter().for_each(|frame| wire.send_frame(frame));
    wire.seq = segment.end();
}

#[track_caller]
fn is_of_nginx(wire: &mut RawClient, end: &str) {
    let reply = wire.take_response();
    assert!(!reply.is_from_kernel() && reply.text().ends_with(end), "{reply:?}");
    wire.acknowledge();
}

#[test]
fn a_request_in_fragments_is_translated() {
    let Some(lab) = lab() else { return };
    for mut wire in both(&lab) {
        wire.ask_kernel();
        wire.ask_user();
        wire.ask_kernel();
        for at in [32, 40, 64] {
            push(&mut wire, "/user.html", |frame| cut(frame, at).to_vec());
            is_of_nginx(&mut wire, "from nginx");
        }
        wire.ask_user();
    }
    nothing_was_dropped(&lab);
}

/// Its numbers lie in another fragment than its ports.
#[test]
fn a_fragment_without_the_numbers_never_goes_on() {
    let Some(lab) = lab() else { return };
    for mut wire in both(&lab) {
        wire.ask_kernel();
        let before = lab.count(Reason::DropUnparsed);
        let request = wire.get("/user.html");
        cut(&wire.frame(&request), 8).iter().for_each(|frame| wire.send_frame(frame));
        assert!(!wire.collect(QUIET).iter().any(|segment| wire.is_new(segment)));
        assert_eq!(lab.count(Reason::DropUnparsed), before + 1, "{}", lab.tally());
        wire.ask_user();
        wire.ask_kernel();
    }
}

/// Where no offset is, either: the server would get a request that nobody has counted.
#[test]
fn a_fragment_without_the_numbers_hides_no_request() {
    let Some(lab) = lab() else { return };
    for (number, mut wire) in both(&lab).into_iter().chain(both(&lab)).enumerate() {
        if number < 2 {
            wire.ask_user(); // the other two have sent nothing yet
        }
        let before = lab.count(Reason::DropUnparsed);
        let request = wire.get("/user.html");
        cut(&wire.frame(&request), 8).iter().for_each(|frame| wire.send_frame(frame));
        assert!(!wire.collect(QUIET).iter().any(|segment| wire.is_new(segment)));
        assert_eq!(lab.count(Reason::DropUnparsed), before + 1, "{}", lab.tally());
        wire.ask_kernel();
        wire.ask_user();
    }
}

/// The kernel holds the beginning. The client repeats the request whole, and then the rest of the first one arrives.
#[test]
fn a_first_request_in_fragments_leaves_the_connection_to_user_mode() {
    let Some(lab) = lab() else { return };
    for mut wire in both(&lab) {
        let request = wire.get("/kernel.html");
        let [beginning, rest] = cut(&wire.frame(&request), 40);
        wire.send_frame(&beginning);
        push(&mut wire, "/kernel.html", |frame| vec![frame.to_vec()]);
        is_of_nginx(&mut wire, "from nginx, the pinned one");
        wire.send_frame(&rest);
        let behind = wire.collect(QUIET);
        assert!(!behind.iter().any(|segment| wire.is_new(segment)), "{behind:?}");
        wire.ask_user();
    }
    nothing_was_dropped(&lab);
}

#[test]
fn a_request_behind_extension_headers_is_translated() {
    let Some(lab) = lab() else { return };
    let mut wire = wired_v6(&lab);
    wire.ask_kernel();
    for next in [DESTINATION_OPTIONS, HOP_BY_HOP] {
        push(&mut wire, "/user.html", |frame| vec![extended(frame, next)]);
        is_of_nginx(&mut wire, "from nginx");
    }
    push(&mut wire, "/user.html", |frame| {
        cut(&extended(frame, DESTINATION_OPTIONS), 8 + 40).to_vec()
    });
    is_of_nginx(&mut wire, "from nginx");
    wire.ask_user();
    nothing_was_dropped(&lab);
}

/// A priority tag names no network: the frame is delivered as if it had none.
#[test]
fn a_frame_with_a_priority_tag_is_translated() {
    let Some(lab) = lab() else { return };
    for mut wire in both(&lab) {
        wire.ask_kernel();
        push(&mut wire, "/user.html", |frame| vec![tagged(frame)]);
        is_of_nginx(&mut wire, "from nginx");
        push(&mut wire, "/kernel.html", |frame| vec![tagged(frame)]);
        is_of_nginx(&mut wire, "from nginx, the pinned one");
        wire.ask_user();
        wire.ask_kernel();
    }
    nothing_was_dropped(&lab);
}

const HUGE: usize = 24 << 20;

fn huge() -> Vec<u8> {
    (0..HUGE as u32 / 8).flat_map(|number| format!("{number:07}\n").into_bytes()).collect()
}

/// Segments of up to half a megabyte between the two kernels, in both families if the tools can set that.
fn with_huge_segments(lab: &Lab) -> bool {
    let set = |words: &str| {
        let sides = [lab.bed.server(), lab.bed.client()];
        sides.into_iter().all(|side| try_ip(side, &format!("link set eth0 {words}")))
    };
    let _v4_too = set("gso_ipv4_max_size 524280 gro_ipv4_max_size 524280");
    set("gso_max_size 524280 gro_max_size 524280")
}

fn lab_of_huge_segments() -> Option<Lab> {
    let offloads = Offloads { checksum: true, segmentation: true, merging: true };
    let plan = Plan {
        path: Path::Direct(offloads),
        sysctls: vec![
            "net.ipv4.tcp_wmem=4096 8388608 33554432",
            "net.ipv4.tcp_rmem=4096 8388608 33554432",
        ],
        ..Plan::default()
    };
    let files: [(&str, &[u8]); 3] = [
        ("user.html", b"from nginx"),
        ("kernel.html", b"from nginx, the pinned one"),
        ("huge.bin", &huge()),
    ];
    let lab = Lab::new(plan, &files)?;
    Sample::new("from the kernel").pin(lab.fast_path(), "/kernel.html");
    if !with_huge_segments(&lab) {
        afpa_testkit::aloud::say("SKIP", "no segments of more than 64 KB here");
        return None;
    }
    Some(lab)
}

#[test]
fn segments_larger_than_a_packet_are_translated_on_their_way_down() {
    let Some(lab) = lab_of_huge_segments() else { return };
    for address in [Bed::SERVER_V6.into(), Bed::SERVER_V4.into()] {
        let mut client = lab.connect(address);
        lab.converse(&mut client);
        for _ in 0..3 {
            assert!(client.get("/huge.bin").body == huge(), "{address}");
            lab.converse(&mut client);
        }
        client.end();
    }
    nothing_was_dropped(&lab);
}

#[test]
fn segments_larger_than_a_packet_are_translated_on_their_way_up() {
    let Some(lab) = lab_of_huge_segments() else { return };
    let content = huge();
    let head = format!(
        "PUT /upload/x HTTP/1.1\r\nHost: server\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    for address in [Bed::SERVER_V6.into(), Bed::SERVER_V4.into()] {
        let mut client = lab.connect(address);
        lab.converse(&mut client);
        for _ in 0..2 {
            client.send([head.as_bytes(), &content].concat());
            assert!(matches!(client.receive().status, 201 | 204), "{address}");
            assert!(std::fs::read(lab.file("upload/x")).expect("a file") == content, "{address}");
            assert_eq!(client.get("/user.html").body, b"from nginx");
        }
        client.end();
    }
    nothing_was_dropped(&lab);
}

/// The interface takes no more than a small packet, and routers may cut: the kernel cuts its own segments.
#[test]
fn a_response_that_the_server_itself_fragments_is_right() {
    let Some(lab) = lab() else { return };
    let server = lab.bed.server();
    crate::support::sysctl(server, "net.ipv4.ip_no_pmtu_disc=1");
    let mut client = lab.client();
    lab.converse(&mut client);
    ip(server, "link set eth0 mtu 1000");
    crate::support::user_mode_is_right(&mut client);
    client.end();
}
