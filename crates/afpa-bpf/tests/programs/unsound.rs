//! Packets that Linux drops before its TCP would answer get no answer: wrong checksums, lengths, versions, addresses.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use afpa_bpf::{Flow, Hook, Reason, TCX_NEXT};
use afpa_testkit::packet::{ACK, FIN, RST, SYN, Segment, SynOptions, checksum};
use afpa_testkit::tcp::RawClient;

use crate::support::frame::Frame;
use crate::support::socketless::{Bench, SOON, data, learn, post, set_option, syn_ack};
use crate::support::{PORT, without_traffic};

const IP: usize = 14;
const TCP: usize = 34;

/// One way to spoil a frame of IPv4.
pub(crate) type Spoil = fn(&mut Vec<u8>);

/// The IPv4 header sums up again.
pub(crate) fn sum_ip(frame: &mut [u8]) {
    let end = IP + usize::from(frame[IP] & 15).max(5) * 4;
    frame[IP + 10..IP + 12].fill(0);
    let sum = !checksum::sum(&[&frame[IP..end]]);
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
}

/// ... and so does the segment.
fn sum_tcp(frame: &mut [u8]) {
    let length = ((frame.len() - TCP) as u16).to_be_bytes();
    frame[TCP + 16..TCP + 18].fill(0);
    let sum = !checksum::sum(&[&frame[IP + 12..IP + 20], &[0, 6], &length, &frame[TCP..]]);
    frame[TCP + 16..TCP + 18].copy_from_slice(&sum.to_be_bytes());
}

fn set_length(frame: &mut [u8], length: usize) {
    frame[IP + 2..IP + 4].copy_from_slice(&(length as u16).to_be_bytes());
    sum_ip(frame);
}

/// Four bytes of options that say nothing.
fn add_ip_options(frame: &mut Vec<u8>) {
    frame.splice(TCP..TCP, [1, 1, 1, 0]);
    frame[IP] = 0x46;
    let length = frame.len() - IP;
    set_length(frame, length);
}

fn come_from(frame: &mut [u8], source: [u8; 4]) {
    frame[IP + 12..IP + 16].copy_from_slice(&source);
    sum_ip(frame);
    sum_tcp(frame);
}

/// Faults for which every kind of segment is dropped.
const DROPPED: [(&str, Spoil); 11] = [
    ("a TCP checksum", |frame| frame[TCP + 16] ^= 0x12),
    ("a TCP checksum of 0", |frame| frame[TCP + 16..TCP + 18].fill(0)),
    ("a byte of the ports", |frame| frame[TCP + 14] ^= 1),
    ("an IPv4 checksum", |frame| frame[IP + 10] ^= 0x11),
    ("a TTL that the checksum is not of", |frame| frame[IP + 8] ^= 1),
    ("an IPv4 checksum, with options", |frame| {
        add_ip_options(frame);
        frame[IP + 11] ^= 1;
    }),
    ("a version", |frame| {
        frame[IP] = 0x55;
        sum_ip(frame);
    }),
    ("a header of 16 bytes", |frame| {
        frame[IP] = 0x44;
        sum_ip(frame);
    }),
    ("more bytes than there are", |frame| {
        let length = frame.len() - IP + 1;
        set_length(frame, length);
    }),
    ("less bytes than headers have", |frame| set_length(frame, 39)),
    ("a data offset of 16", |frame| {
        frame[TCP + 12] = 4 << 4;
        sum_tcp(frame);
    }),
];

/// SYNs that no client may send.
pub(crate) const NO_CLIENT: [(&str, Spoil); 8] = [
    ("of no network", |frame| come_from(frame, [0, 0, 0, 1])),
    ("of loopback", |frame| come_from(frame, [127, 0, 0, 1])),
    ("of many machines", |frame| come_from(frame, [224, 0, 0, 1])),
    ("of all machines", |frame| come_from(frame, [255; 4])),
    ("of the server itself", |frame| come_from(frame, [10, 77, 0, 1])),
    ("to another machine", |frame| {
        frame[IP + 19] = 99;
        sum_ip(frame);
        sum_tcp(frame);
    }),
    ("SYN with FIN", |frame| {
        frame[TCP + 13] = SYN | FIN;
        sum_tcp(frame);
    }),
    ("SYN with RST", |frame| {
        frame[TCP + 13] = SYN | RST;
        sum_tcp(frame);
    }),
];

/// The SYN of a client by hand.
pub(crate) fn syn(client: &RawClient) -> Vec<u8> {
    let syn = SynOptions { mss: Some(1460), sack: true, scale: Some(7) };
    client.frame(&Segment { flags: SYN, ack: 0, ts_echo: 0, syn, ..client.next() })
}

pub(crate) fn spoilt(mut frame: Vec<u8>, spoil: Spoil) -> Vec<u8> {
    spoil(&mut frame);
    frame
}

#[test]
fn a_syn_that_the_kernel_drops_is_not_answered() {
    let Some(bench) = Bench::new() else { return };
    for (what, spoil) in DROPPED.iter().chain(&NO_CLIENT) {
        let client = bench.raw();
        let before = bench.count(Reason::SocketlessSyn);
        client.send_frame(&spoilt(syn(&client), *spoil));
        client.send_frame(&syn(&client)); // when this is answered, the other one was decided
        let answers = || client.collect(Duration::from_millis(10));
        let sound = client.await_segment("SYN-ACK", |segment| segment.flags == SYN | ACK);
        assert!(sound.checksum_holds && answers().is_empty(), "{what}");
        assert_eq!(bench.count(Reason::SocketlessSyn), before + 1, "{what}: {:?}", bench.counts());
    }
}

#[test]
fn a_cookie_that_comes_back_in_an_unsound_segment_opens_nothing() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.raw();
    let answer = syn_ack(&mut client, |_| ());
    learn(&mut client, &answer);
    for (what, spoil) in DROPPED {
        client.send_frame(&spoilt(client.frame(&client.get("/kernel.html")), spoil));
        let answers = data(client.collect(Duration::from_millis(10)));
        assert!(answers.is_empty(), "{what}: {answers:?}");
        assert_eq!(bench.count(Reason::SocketlessOpened), 0, "{what}");
    }
    client.acknowledge();
    bench.goes_on(&mut client);
}

/// On connections with a socket and without one, for the first request, a later one, and one that comes again.
#[test]
fn a_request_that_the_kernel_drops_is_not_answered() {
    let Some(bench) = Bench::new() else { return };
    let mut with_socket = bench.unfit();
    with_socket.connect();
    for mut client in [with_socket, bench.open()] {
        for round in 0..2 {
            let request = client.get("/kernel.html");
            unanswered(&bench, &client, &request, round);
            let reply = client.ask(&request);
            assert!(reply.is_from_kernel(), "{round}: {:?}", bench.counts());
            unanswered(&bench, &client, &request, round);
            client.acknowledge();
        }
        bench.goes_on(&mut client);
    }
}

#[track_caller]
fn unanswered(bench: &Bench, client: &RawClient, request: &Segment, round: u32) {
    for (what, spoil) in DROPPED {
        client.send_frame(&spoilt(client.frame(request), spoil));
        let answers = data(client.collect(Duration::from_millis(10)));
        assert!(answers.is_empty(), "{round}: {what}: {answers:?} {:?}", bench.counts());
    }
}

/// The checksum of a segment that is longer than any head is checked as well, before the segment changes any state.
#[test]
fn a_long_segment_with_a_wrong_checksum_is_not_assigned() {
    let Some(bench) = Bench::new() else { return };
    bench.world.on_both_sides("ip", &["link", "set", afpa_netlab::Bed::DEVICE, "mtu", "9000"]);
    let mut client = bench.open();
    let content = vec![b'c'; 3001]; // longer packets by hand have no headers in their linear part
    let request = client.data(post(&content));
    client.send(&Segment { checksum_holds: false, ..request.clone() });
    assert!(client.collect(SOON).is_empty(), "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::SocketlessToKernel), 0, "{:?}", bench.counts());
    client.push(&request);
    client.await_segment("an acknowledgement", |segment| segment.ack == client.seq);
    assert_eq!(bench.count(Reason::SocketlessToKernel), 1, "{:?}", bench.counts());
}

/// Short frames are padded to Ethernet's least length: the padding is no part of the segment.
#[test]
fn a_frame_with_padding_is_answered() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.raw();
    let padded = |frame: Vec<u8>| [frame, vec![0xaa; 13]].concat();
    client.send_frame(&padded(syn(&client)));
    let answer = client.await_segment("SYN-ACK", |segment| segment.flags == SYN | ACK);
    assert_eq!(bench.count(Reason::SocketlessSyn), 1, "{:?}", bench.counts());
    learn(&mut client, &answer);
    let request = client.get("/kernel.html");
    client.send_frame(&padded(client.frame(&request)));
    let reply = client.await_segment("an answer", |segment| !segment.payload.is_empty());
    assert!(reply.is_from_kernel() && reply.checksum_holds, "{reply:?}");
}

/// In keys, an address of IPv4 is written as one of IPv6. On the wire the one is never the other.
#[test]
fn an_ipv4_address_in_an_ipv6_header_is_no_client_s() {
    without_traffic(|fast_path| {
        let frame = Frame::request("more").bytes();
        let key = Frame::request("").key();
        let mut flow = [0; size_of::<Flow>()];
        (flow[4], flow[12]) = (afpa_abi::owner::USER_FINAL, 100); // with an offset
        fast_path.flows.put_flow(&key, &flow).expect("entered");
        let mapped = |last: [u8; 4]| {
            let [a, b, c, d] = last;
            std::net::Ipv4Addr::new(a, b, c, d).to_ipv6_mapped()
        };
        let segment = Segment::parse(&frame).expect("a segment");
        let ends = |from: Ipv6Addr, to: Ipv6Addr| Segment {
            from: SocketAddr::new(from.into(), segment.from.port()),
            to: SocketAddr::new(to.into(), PORT),
            ..segment.clone()
        };
        let disguised = ends(mapped([10, 77, 0, 2]), mapped([10, 77, 0, 1])).frame(&[0; 12]);
        let run = |frame: &[u8]| {
            let before = fast_path.stats.counters().expect("counters");
            let run = fast_path.interfaces.dry_run(Hook::Ingress, frame, 1).expect("a test run");
            let counted = fast_path.stats.counters().expect("counters").since(&before);
            (run.verdict, run.packet == frame, counted.iter().any(|(_, count)| count > 0))
        };
        assert!(run(&frame).2, "it is the connection's");
        assert_eq!(run(&disguised), (TCX_NEXT, true, false));
    });
}

/// IP_MINTTL: the kernel's TCP takes nothing from afar, and the programs look at no TTL.
#[test]
fn a_listener_that_wants_near_peers_is_left_alone() {
    const IPPROTO_IP: i32 = 0;
    const IP_MINTTL: i32 = 21;
    let near = |socket: &socket2::Socket| set_option(socket, (IPPROTO_IP, IP_MINTTL), &64i32);
    let Some(bench) = Bench::listening(16, near) else { return };
    for _ in 0..2 {
        let mut client = bench.world.raw();
        client.connect();
        client.push(&client.get("/kernel.html"));
        client.await_segment("an acknowledgement", |s| s.ack == client.seq);
    }
    assert_eq!(bench.count(Reason::SocketlessSyn), 0, "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::Answered), 0, "{:?}", bench.counts());
}
