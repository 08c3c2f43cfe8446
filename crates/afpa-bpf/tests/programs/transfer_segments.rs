//! Answers of several segments, segment by segment: the effects of acknowledgements and time on them.

use crate::support;
use std::net::SocketAddr;
use std::time::Duration;

use crate::support::lab::{Lab, SOON, UNIT, begin, body, check, data, join, repeats, settings};
use crate::support::{PORT, SENT_AGAIN, SERVER_V4, SERVER_V6, Sample, inside};
use afpa_bpf::Reason;
use afpa_testkit::packet::{ACK, PSH, Segment};

#[test]
fn an_initial_window_leaves_at_once_and_the_rest_with_acknowledgements() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/big.html");
    assert_eq!(segments.len(), 10, "RFC 6928");
    assert!(segments.iter().all(|s| s.payload.len() == UNIT && s.flags == ACK));
    let mut whole = join(&mut client, &segments);
    let mut turns = 0;
    while whole.len() < 60_000 {
        client.send(&client.next());
        let more = data(client.answers(SOON));
        assert!(!more.is_empty() && more.len() <= 10, "{} segments at once", more.len());
        whole.extend(join(&mut client, &more));
        turns += 1;
    }
    assert!((3..=5).contains(&turns), "slow start, no more than ten at once: {turns}");
    check(&whole, 60_000);
    assert_eq!(
        lab.fast_path.flows.transfers().expect("counted"),
        1,
        "the last are not acknowledged"
    );
    client.send(&client.next());
    lab.goes_on(&mut client);
    assert_eq!((lab.count(Reason::TransferBegun), lab.count(Reason::TransferDone)), (1, 1));
    assert_eq!(lab.count(Reason::TransferRetransmitted), 0);
}

#[test]
fn a_next_request_acknowledges_all_and_is_answered_at_once() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    for _ in 0..5 {
        let (_, segments) = begin(&mut client, "/some.html");
        assert_eq!(segments.len(), 4);
        assert_eq!(segments[3].flags, ACK | PSH);
        let whole = join(&mut client, &segments);
        check(&whole, 5000);
    }
    lab.goes_on(&mut client);
    assert_eq!(lab.count(Reason::TransferDone), 5);
    assert_eq!(lab.count(Reason::AbsorbedAck), 0);
}

#[test]
fn a_hole_is_filled() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/big.html");
    let lost = [0usize, 4];
    client.send(&Segment {
        sack: vec![
            (segments[5].seq, segments[9].seq.wrapping_add(UNIT as u32)),
            (segments[1].seq, segments[4].seq),
        ],
        ..client.next()
    });
    lab.service_timers(SOON);
    let again = data(client.collect(SOON));
    for hole in lost {
        let filled = again.iter().find(|s| s.seq == segments[hole].seq).expect("filled");
        assert_eq!(filled.payload, segments[hole].payload, "the Date included");
        assert!(filled.checksum_holds);
    }
    let sacked: Vec<_> =
        again.iter().filter(|s| segments[1..4].iter().any(|t| t.seq == s.seq)).collect();
    assert!(sacked.is_empty(), "what has arrived is not sent again");
    assert!(lab.count(Reason::TransferRetransmitted) >= 2);
}

#[test]
fn a_lost_tail_comes_back_by_time_alone() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/some.html");
    let mut whole = join(&mut client, &segments[..2]);
    client.send(&client.next());
    lab.service_timers(Duration::from_millis(600));
    let mut again = data(client.collect(SOON));
    again.sort_by_key(|segment| segment.seq.wrapping_sub(segments[0].seq));
    assert!(repeats(&again, &segments), "{again:?}");
    for segment in again {
        // The time-out sends in pieces the segment that the probe before it sent whole.
        let known = whole.len() - segment.seq.wrapping_sub(segments[0].seq) as usize;
        whole.extend(segment.payload.iter().skip(known));
    }
    check(&whole, 5000);
    assert!(lab.count(Reason::TransferOnTimer) >= 1);
    client.ack = segments[3].seq.wrapping_add(segments[3].payload.len() as u32);
    client.send(&client.next());
    lab.goes_on(&mut client);
}

#[test]
fn nothing_leaves_while_nothing_is_due() {
    let Some(lab) = Lab::new(settings()) else { return };
    lab.service_timers(SOON);
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/some.html");
    join(&mut client, &segments);
    client.send(&client.next());
    std::thread::sleep(Duration::from_millis(5));
    lab.service_timers(Duration::from_millis(300));
    assert!(data(client.collect(SOON)).is_empty());
    assert_eq!(lab.count(Reason::TransferOnTimer), 0);
}

#[test]
fn a_repeated_request_changes_nothing_and_brings_back_what_is_due() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (request, segments) = begin(&mut client, "/some.html");
    let mut got: Vec<Segment> = Vec::new(); // timers are not serviced
    for _ in 0..4 {
        client.send(&Segment { ts_value: client.next().ts_value, ..request.clone() });
        got.extend(data(client.collect(SOON)));
        std::thread::sleep(Duration::from_millis(250));
    }
    assert!(got.len() >= 2 && repeats(&got, &segments), "{} segments", got.len());
    let whole = join(&mut client, &segments);
    check(&whole, 5000);
    lab.goes_on(&mut client);
}

#[test]
fn a_request_before_the_answer_has_arrived_waits_for_its_turn() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/some.html");
    let early = client.get("/user.html"); // acknowledges nothing
    client.send(&early);
    assert!(repeats(&data(client.collect(SOON)), &segments), "at most a probe");
    let whole = join(&mut client, &segments);
    check(&whole, 5000);
    client.send(&client.next());
    let late = client.get("/user.html"); // the same bytes again, as TCP would
    assert_eq!((late.seq, &late.payload), (early.seq, &early.payload));
    assert!(client.ask(&late).text().ends_with("from nginx"));
    lab.goes_on(&mut client);
}

#[test]
fn a_request_that_acknowledges_what_has_not_left_changes_nothing() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/big.html");
    let (start, first) = (client.ack, &segments[0].payload);
    let head = first.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    client.ack = start.wrapping_add((head + 60_000) as u32);
    client.send(&client.get("/kernel.html"));
    assert!(data(client.collect(SOON)).is_empty());
    assert_eq!(lab.count(Reason::TransferInvalid), 1);
    client.ack = start;
    let mut whole = join(&mut client, &segments);
    while whole.len() < head + 60_000 {
        client.send(&client.next());
        let more = data(client.answers(SOON));
        assert!(!more.is_empty(), "the answer goes on");
        whole.extend(join(&mut client, &more));
    }
    check(&whole, 60_000);
    client.send(&client.next());
    lab.goes_on(&mut client);
}

#[test]
fn a_closed_window_is_asked_about_and_goes_on_when_it_opens() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/big.html");
    let mut whole = join(&mut client, &segments);
    client.send(&Segment { window: 0, ..client.next() });
    assert!(data(client.collect(SOON)).is_empty());
    lab.service_timers(Duration::from_millis(700));
    let probes = client.answers(SOON);
    assert!(!probes.is_empty(), "the window is asked about");
    assert!(
        probes.iter().all(|s| s.payload.is_empty() && s.seq == client.ack.wrapping_sub(1)),
        "{probes:?}"
    );
    while whole.len() < 60_000 {
        client.send(&client.next());
        let more = data(client.collect(SOON));
        whole.extend(join(&mut client, &more));
    }
    check(&whole, 60_000);
    client.send(&client.next());
    lab.goes_on(&mut client);
}

#[test]
fn a_window_that_shrinks_within_the_date_is_asked_with_whole_pieces() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    let (_, segments) = begin(&mut client, "/some.html");
    // It took forty bytes, which end within the Date, and has no room for more than a few.
    let start = client.ack;
    client.ack = start.wrapping_add(40);
    client.send(&Segment { window: 0, ..client.next() });
    lab.service_timers(Duration::from_millis(500));
    client.collect(SOON);
    client.send(&client.next());
    lab.service_timers(Duration::from_millis(700));
    let again = data(client.collect(SOON));
    assert!(again.iter().all(|s| s.checksum_holds));
    let first = again.iter().find(|s| s.seq == start).expect("the first one, whole");
    assert!(segments[0].payload.starts_with(&first.payload) && first.payload.len() > 1000);
}

#[test]
fn what_a_request_acknowledges_of_user_mode_is_told_to_the_kernel() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.connected();
    assert!(client.ask(&client.get("/kernel.html")).is_from_kernel());
    assert!(client.ask(&client.get("/user.html")).text().ends_with("from nginx"));
    let (_, segments) = begin(&mut client, "/some.html"); // the first to acknowledge nginx's response
    assert_eq!(segments.len(), 4, "{segments:?}");
    let whole = join(&mut client, &segments);
    check(&whole, 5000);
    client.send(&client.next());
    assert!(client.collect(SENT_AGAIN).is_empty(), "nobody sends anything again");
    assert_eq!(lab.count(Reason::EgressStale), 0);
    lab.goes_on(&mut client);
}

#[test]
fn clients_without_timestamps_get_fuller_segments() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut client = lab.world.raw();
    client.habits.timestamps = false;
    client.connect();
    lab.fast_path.clock.beat();
    let (_, segments) = begin(&mut client, "/some.html");
    assert_eq!(segments[0].payload.len(), 1460);
    let whole = join(&mut client, &segments);
    check(&whole, 5000);
    client.send(&client.next());
    lab.goes_on(&mut client);
}

/// Sums are remembered by place, length and version: clients whose segments are of two lengths take turns.
#[test]
fn remembered_sums_are_those_of_the_segments_that_leave() {
    let Some(lab) = Lab::new(settings()) else { return };
    let mut clients = [lab.connected(), lab.world.raw()];
    clients[1].habits.timestamps = false;
    clients[1].connect();
    for turn in 0..4 {
        if turn == 2 {
            Sample::new(body(5001)).pin(&lab.fast_path, "/some.html");
        }
        lab.fast_path.clock.beat();
        for client in &mut clients {
            let (_, segments) = begin(client, "/some.html");
            let whole = join(client, &segments); // every sum is looked at
            check(&whole, if turn < 2 { 5000 } else { 5001 });
        }
    }
}

/// Here the device computes the checksums, and segments are joined on their way.
#[test]
fn clients_of_the_kernel_read_the_same_bytes_on_every_kind_of_interface() {
    let Some(lab) = Lab::new(settings()) else { return };
    inside(lab.world.server(), || lab.fast_path.interfaces.attach(1)).expect("attached to lo");
    let local = |address: &str| {
        let address = SocketAddr::new(address.parse().expect("an address"), PORT);
        inside(lab.world.server(), || support::connect(address))
    };
    let distant = [SERVER_V4, SERVER_V6].map(|address| lab.world.connect(address));
    let mut clients: Vec<_> = distant.into_iter().collect();
    clients.extend(["127.0.0.1", SERVER_V6].map(local));
    for turn in 0..20 {
        lab.fast_path.clock.beat();
        for (number, client) in clients.iter_mut().enumerate() {
            let (path, length) = [("/big.html", 60_000), ("/some.html", 5000)][turn % 2];
            let reply = client.get(path);
            assert!(reply.is_from_kernel(), "client {number}, turn {turn}");
            assert!(reply.body == body(length), "client {number}, turn {turn}");
            lab.service_timers(Duration::from_millis(1));
        }
    }
    assert_eq!(lab.count(Reason::TransferBegun), 80);
    assert_eq!(lab.count(Reason::TransferLost) + lab.count(Reason::TransferGivenUp), 0);
    // By loopback no route leads to an interface's IPv4 address, so nothing could be sent again.
    assert_eq!(local(SERVER_V4).get("/big.html").body, b"big, but from nginx");
    assert_eq!(lab.count(Reason::PassLoopback), 1);
}
