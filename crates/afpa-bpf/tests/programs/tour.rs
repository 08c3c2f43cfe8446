//! One load of the programs, and packets that reach each of them and each kind of verdict: a test for kernels on which
//! every load takes long, as in an emulation (`scripts/test-kernels`).

use std::time::{Duration, Instant};

use crate::support::lab::{Lab, SOON, begin, check, data, join, settings};
use crate::support::{Sample, inside};
use afpa_bpf::{Counters, Hook, Reason, Settings, TCX_NEXT};
use afpa_testkit::packet::{ACK, RST, Segment, checksum};
use afpa_testkit::tcp::RawClient;

const PATIENCE: Duration = Duration::from_secs(5);

/// Programs on links, or on filters where the kernel has no links.
#[test]
fn every_program_and_every_verdict() {
    tour(settings());
}

/// As on kernels without tcx.
#[test]
fn every_program_and_every_verdict_as_filters() {
    tour(Settings { without_tcx: true, ..settings() });
}

fn tour(settings: Settings) {
    let Some(lab) = Lab::new(settings) else { return };
    for program in lab.fast_path.program_statistics().expect("programs can be asked") {
        println!("{program:?}");
    }
    assert_eq!(lab.fast_path.lacks(), [""; 0], "all of it is there");

    both_contexts(&lab);
    asked_again(&lab);
    lost_and_told_so_by_nobody(&lab);
    several_segments(&lab);
    several_segments_and_a_loss(&lab);
    a_reset_under_way(&lab);
    expect_counted(
        &lab.fast_path.stats.counters().expect("counters"),
        &[
            Reason::Answered,
            Reason::AnsweredNotModified,
            Reason::AnsweredRetransmission,
            Reason::EgressTranslated,
            Reason::FlowOpened,
            Reason::FlowClosed,
            Reason::PassNotPinned,
            Reason::PmtuReduced,
            Reason::ResponseEnd,
            Reason::RtxArmed,
            Reason::RtxRetransmitted,
            Reason::TransferBegun,
            Reason::TransferDone,
            Reason::TransferEnded,
            Reason::TransferOnAck,
            Reason::TransferOnTimer,
            Reason::TransferRetransmitted,
        ],
    );
}

#[track_caller]
fn expect_counted(counters: &Counters, reasons: &[Reason]) {
    let missing: Vec<_> = reasons.iter().filter(|reason| counters[**reason] == 0).collect();
    assert!(missing.is_empty(), "never met: {missing:?} in {counters:?}");
}

fn connected(lab: &Lab) -> RawClient {
    let client = lab.connected();
    lab.fast_path.clock.beat();
    client.collect(Duration::from_millis(1));
    client
}

/// Hit, miss, HEAD, 304: redirected, passed, translated in both directions.
fn both_contexts(lab: &Lab) {
    let mut client = connected(lab);
    for _ in 0..3 {
        lab.goes_on(&mut client);
        let head = client.data("HEAD /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n");
        client.push(&head);
        let head = client.take();
        assert!(head.is_from_kernel() && head.text().ends_with("\r\n\r\n"), "{}", head.text());
        let same = "GET /kernel.html HTTP/1.1\r\nHost: server\r\nIf-None-Match: *\r\n\r\n";
        let same = same.replace('*', crate::support::ETAG);
        client.push(&client.data(same));
        let same = client.take();
        assert!(same.text().starts_with("HTTP/1.1 304 "), "{}", same.text());
    }
    client.finish();
}

/// The answer to a request that comes twice is the same, and its segment may get a router's complaint.
fn asked_again(lab: &Lab) {
    let mut client = connected(lab);
    let request = client.get("/kernel.html");
    client.send(&request);
    let first = client.receive(PATIENCE).expect("an answer");
    let frame = too_long_for_a_path(&client, first.seq);
    let tell = |frame: &[u8]| {
        let told = inside(lab.world.server(), || {
            lab.fast_path.interfaces.dry_run(Hook::Ingress, frame, 1)
        });
        assert_eq!(told.expect("it runs").verdict, TCX_NEXT);
    };
    for damaged in [24, 36] {
        let mut unsound = frame.clone(); // the checksum of IPv4, and that of ICMP
        unsound[damaged] ^= 1;
        tell(&unsound);
    }
    assert_eq!(lab.count(Reason::PmtuReduced), 0, "the kernel drops these");
    tell(&frame);
    let again = client.ask(&request);
    assert_eq!((again.seq, again.ack, &again.payload), (first.seq, first.ack, &first.payload));
    lab.goes_on(&mut client);
    client.reset();
    let swept = || inside(lab.world.server(), || lab.fast_path.sweep(Duration::ZERO));
    let deadline = Instant::now() + PATIENCE;
    while lab.count(Reason::FlowClosed) == 0 && Instant::now() < deadline {
        swept().expect("swept");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// "Fragmentation needed" (RFC 1191) about a segment of the server's.
fn too_long_for_a_path(client: &RawClient, seq: u32) -> Vec<u8> {
    let (std::net::IpAddr::V4(address), port) = (client.address().ip(), client.address().port())
    else {
        panic!("a client of IPv4")
    };
    let server: std::net::Ipv4Addr = crate::support::SERVER_V4.parse().expect("an address");
    let ipv4 = |protocol, from: std::net::Ipv4Addr, to: std::net::Ipv4Addr| {
        let header = [0x45, 0, 0, 56, 0, 0, 0, 0, 64, protocol, 0, 0];
        with_sum([&header[..], &from.octets(), &to.octets()].concat(), 10)
    };
    let mtu = 1200u16.to_be_bytes();
    let icmp = vec![3, 4, 0, 0, 0, 0, mtu[0], mtu[1]];
    let ports = [crate::support::PORT.to_be_bytes(), port.to_be_bytes()].concat();
    let ethernet = [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 8, 0]; // for `lo`
    let inner = [&ipv4(6, server, address)[..], &ports, &seq.to_be_bytes()].concat();
    let outer = ipv4(1, std::net::Ipv4Addr::new(10, 77, 0, 254), server);
    [&ethernet[..], &outer, &with_sum([icmp, inner].concat(), 2)].concat()
}

/// Its checksum holds, which stands at this place.
fn with_sum(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    let sum = !checksum::sum(&[&bytes]);
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Its rtx timer brings a lost answer back.
fn lost_and_told_so_by_nobody(lab: &Lab) {
    let mut client = connected(lab);
    let request = client.get("/kernel.html");
    client.send(&request);
    client.seq = request.seq.wrapping_add(request.payload.len() as u32);
    let lost = client.receive(PATIENCE).expect("an answer that is thrown away");
    let deadline = Instant::now() + PATIENCE;
    let again = loop {
        assert!(Instant::now() < deadline, "nothing came back");
        lab.service_timers(Duration::from_millis(20));
        let received = client.collect(Duration::from_millis(1));
        if let Some(again) = received.into_iter().find(Segment::is_from_kernel) {
            break again;
        }
    };
    assert_eq!((again.seq, &again.payload), (lost.seq, &lost.payload));
    client.accept(&again);
    client.send(&client.next());
    lab.goes_on(&mut client);
    client.finish();
}

fn several_segments(lab: &Lab) {
    let mut client = connected(lab);
    let (_, segments) = begin(&mut client, "/some.html");
    take_all(lab, &mut client, &segments);
    client.send(&client.next());
    lab.goes_on(&mut client);
    client.finish();
}

/// Nothing is acknowledged until time has brought the first segment again.
fn several_segments_and_a_loss(lab: &Lab) {
    let mut client = connected(lab);
    let (_, segments) = begin(&mut client, "/some.html");
    let deadline = Instant::now() + PATIENCE;
    while lab.count(Reason::TransferRetransmitted) == 0 {
        assert!(Instant::now() < deadline, "nothing came back");
        lab.service_timers(Duration::from_millis(20));
    }
    client.collect(SOON);
    take_all(lab, &mut client, &segments);
    client.send(&client.next());
    lab.goes_on(&mut client);
    client.finish();
}

/// Takes these segments, and those after their acknowledgement, until the answer is whole.
fn take_all(lab: &Lab, client: &mut RawClient, first: &[Segment]) {
    const LENGTH: usize = 5000;
    let mut whole = join(client, first);
    let deadline = Instant::now() + PATIENCE;
    let is_whole = |bytes: &[u8]| {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        end.is_some_and(|end| bytes.len() >= end + 4 + LENGTH)
    };
    while !is_whole(&whole) && Instant::now() < deadline {
        lab.fast_path.clock.beat();
        client.send(&client.next());
        let next = client.ack;
        let more: Vec<_> =
            data(client.collect(SOON)).into_iter().filter(|s| s.seq == next).take(1).collect();
        whole.extend(join(client, &more));
    }
    check(&whole, LENGTH);
}

fn a_reset_under_way(lab: &Lab) {
    Sample::new(crate::support::lab::body(60_000)).pin(&lab.fast_path, "/big.html");
    let mut client = connected(lab);
    begin(&mut client, "/big.html");
    assert_eq!(lab.fast_path.flows.transfers().expect("counted"), 1);
    client.send(&Segment { flags: RST | ACK, ..client.next() });
    let deadline = Instant::now() + PATIENCE;
    while lab.fast_path.flows.transfers().expect("counted") > 0 {
        assert!(Instant::now() < deadline, "a reset ends the transfer");
        std::thread::sleep(Duration::from_millis(10));
    }
}
