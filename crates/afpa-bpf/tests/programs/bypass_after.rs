//! Connections for which the fast path has nothing are left to user mode, and come to no harm there.
//! LIFECYCLE.md, "When a connection is bypassed".

use std::time::Duration;

use crate::support::{
    Lent, SENT_AGAIN, SERVER_V4, SITE, Sample, World, closes_cleanly, counted, kernel_answers,
};
use afpa_bpf::{FastPath, Reason, Settings};
use afpa_testkit::packet::{ACK, FIN, RST, Segment};
use afpa_testkit::tcp::RawClient;

const SOON: Duration = Duration::from_millis(150);

fn world(bypass_after: u32) -> Option<(World, Lent)> {
    World::with_one_pinned(Settings {
        bypass_after,
        bypass_time: Duration::ZERO,
        ..Settings::default()
    })
}

#[track_caller]
fn user_answers(client: &mut RawClient, times: usize) {
    for _ in 0..times {
        let reply = client.ask(&client.get("/user.html"));
        assert!(reply.text().ends_with("\r\n\r\nfrom nginx"), "{reply:?}");
    }
}

/// User mode answers a request that the kernel could answer.
#[track_caller]
fn is_bypassed(client: &mut RawClient) {
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(reply.text().ends_with("the pinned one, from nginx"), "{reply:?}");
}

#[test]
fn after_so_many_passes_and_not_before() {
    let Some((world, fast_path)) = world(4) else { return };
    let mut client = world.connected();
    user_answers(&mut client, 3);
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 0);
    user_answers(&mut client, 1);
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 1);
    for _ in 0..3 {
        is_bypassed(&mut client);
        user_answers(&mut client, 1);
    }
    assert_eq!(counted(&fast_path, Reason::PassNotPinned), 4, "then nothing is derived any more");
    assert_eq!(counted(&fast_path, Reason::PassBypassed), 6);
    assert_eq!(counted(&fast_path, Reason::Answered), 0);
    let mut other = world.connected();
    kernel_answers(&fast_path, &mut other);
}

#[test]
fn an_answer_begins_the_count_anew() {
    let Some((world, fast_path)) = world(4) else { return };
    let mut client = world.connected();
    for _ in 0..5 {
        user_answers(&mut client, 3);
        kernel_answers(&fast_path, &mut client);
    }
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 0);
    user_answers(&mut client, 4);
    is_bypassed(&mut client);
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 1);
}

#[test]
fn never_when_the_setting_says_so() {
    let Some((world, fast_path)) = world(0) else { return };
    let mut client = world.connected();
    user_answers(&mut client, 100);
    kernel_answers(&fast_path, &mut client);
    fast_path.flows.set_bypass_after(5);
    user_answers(&mut client, 5);
    is_bypassed(&mut client);
}

/// A request that was only shown to the server's idle timer says nothing of the client.
#[test]
fn not_by_passes_that_say_nothing_of_the_client() {
    let refresh = Duration::from_millis(1);
    let settings =
        Settings { bypass_after: 2, bypass_time: Duration::ZERO, refresh, ..Settings::default() };
    let Some((world, fast_path)) = World::with_one_pinned(settings) else { return };
    let mut client = world.connected();
    kernel_answers(&fast_path, &mut client);
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(20));
        let reply = client.ask(&client.get("/kernel.html"));
        assert!(!reply.is_from_kernel(), "{reply:?}");
    }
    assert_eq!(counted(&fast_path, Reason::PassRefresh), 5);
    fast_path.flows.set_refresh(Duration::ZERO);
    kernel_answers(&fast_path, &mut client);
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 0);
}

/// While the working set is being filled, misses tell nothing of the client.
#[test]
fn not_while_objects_are_being_pinned() {
    let Some((world, fast_path)) = world(4) else { return };
    let mut client = world.connected();
    for number in 0..10 {
        user_answers(&mut client, 3);
        Sample::new(b"another").pin(&fast_path, &format!("/{number}.html"));
    }
    kernel_answers(&fast_path, &mut client);
    Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html"); // another version is no other path
    user_answers(&mut client, 2);
    Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
    user_answers(&mut client, 2);
    is_bypassed(&mut client);
}

/// Busy clients of an object that changes miss it very often in a very short time.
#[test]
fn not_between_two_versions_of_an_object() {
    let bypass_time = Duration::from_secs(4);
    let settings = Settings { bypass_after: 4, bypass_time, ..Settings::default() };
    let Some((world, fast_path)) = World::with_one_pinned(settings) else { return };
    let mut client = world.connected();
    kernel_answers(&fast_path, &mut client);
    fast_path.objects.unpin(SITE, b"/kernel.html").expect("unpinned");
    for _ in 0..6 {
        is_bypassed(&mut client); // not yet: only the object is missing
    }
    Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
    kernel_answers(&fast_path, &mut client);
    user_answers(&mut client, 3);
    std::thread::sleep(bypass_time + Duration::from_millis(50));
    kernel_answers(&fast_path, &mut client);
    user_answers(&mut client, 3);
    std::thread::sleep(bypass_time + Duration::from_millis(50));
    user_answers(&mut client, 1);
    is_bypassed(&mut client);
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 1);
}

/// Behind the request that makes it rest, others are on their way already.
#[test]
fn pipelined_requests_at_the_border() {
    let Some((world, fast_path)) = world(3) else { return };
    for has_offset in [false, true] {
        let mut client = world.connected();
        if has_offset {
            kernel_answers(&fast_path, &mut client);
        }
        user_answers(&mut client, 2);
        for path in ["/user.html", "/kernel.html", "/user.html"] {
            let request = client.get(path);
            client.send(&request);
            client.seq = request.seq.wrapping_add(request.payload.len() as u32);
        }
        for expected in ["from nginx", "the pinned one, from nginx", "from nginx"] {
            let text = client.take_response().text();
            let body = text.split("\r\n\r\n").nth(1);
            assert_eq!(body, Some(expected), "with an offset: {has_offset}");
        }
        client.acknowledge();
        is_bypassed(&mut client);
    }
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 2);
}

/// A connection that was answered in the kernel before, and rests.
fn bypassed_with_an_offset(world: &World, fast_path: &FastPath) -> RawClient {
    let mut client = world.connected();
    kernel_answers(fast_path, &mut client);
    user_answers(&mut client, 2);
    is_bypassed(&mut client);
    client
}

#[test]
fn ones_with_an_offset_are_translated_when_segments_are_sent_again() {
    let Some((world, fast_path)) = world(2) else { return };
    world.ethtool("tx", "off"); // checksums as they are on a wire
    let mut client = bypassed_with_an_offset(&world, &fast_path);
    user_answers(&mut client, 20);
    // A request of which the acknowledgement was lost.
    let request = client.get("/user.html");
    let reply = client.ask(&request);
    client.send(&client.next());
    client.send(&Segment { ts_value: client.next().ts_value, ..request.clone() }); // as sent now
    let duplicates = client.answers(SOON);
    assert!(!duplicates.is_empty());
    for segment in duplicates {
        assert!(segment.payload.is_empty() && segment.checksum_holds, "{segment:?}");
        assert_eq!((segment.seq, segment.ack), (client.ack, client.seq));
    }
    // A response of which the acknowledgement was lost: the server sends it again.
    client.send(&client.get("/user.html"));
    client.seq = client.seq.wrapping_add(request.payload.len() as u32);
    let again: Vec<_> = client.collect(SENT_AGAIN);
    let again: Vec<_> = again.into_iter().filter(|s| !s.payload.is_empty()).collect();
    for segment in &again {
        let at = segment.seq.wrapping_sub(client.ack) as usize;
        assert!(at < reply.payload.len() && segment.checksum_holds, "{segment:?}");
        assert_eq!(segment.ack, client.seq);
    }
    let first: Vec<_> = again.iter().filter(|s| s.seq == client.ack).collect();
    let longest = first.iter().max_by_key(|s| s.payload.len()).expect("the response");
    assert!(first.len() >= 2, "{again:?}");
    assert!(first.iter().all(|s| longest.payload.starts_with(&s.payload)), "{again:?}");
    client.accept(longest);
    client.send(&client.next());
    if !longest.text().ends_with("from nginx") {
        client.absorb("from nginx");
    }
    user_answers(&mut client, 2);
    assert_eq!(counted(&fast_path, Reason::Answered), 1);
}

#[test]
fn ones_with_an_offset_close_cleanly() {
    let Some((world, fast_path)) = world(2) else { return };
    let client = bypassed_with_an_offset(&world, &fast_path);
    closes_cleanly(&world, &fast_path, client);
}

#[test]
fn what_follows_on_the_same_ports_begins_anew() {
    let Some((world, fast_path)) = world(2) else { return };
    for has_offset in [false, true] {
        let mut client = world.connected();
        if has_offset {
            kernel_answers(&fast_path, &mut client);
        }
        user_answers(&mut client, 2);
        is_bypassed(&mut client);
        client.send(&Segment { flags: RST | ACK, ..client.next() });
        drop(client.collect(SOON)); // perhaps the last response again, which was not acknowledged
        client.seq = client.seq.wrapping_add(1_000_000);
        client.connect();
        kernel_answers(&fast_path, &mut client);
    }
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 2);
}

/// Without an offset the entry of a connection that ends is not needed.
#[test]
fn entries_go_with_the_servers_fin() {
    let Some((world, fast_path)) = world(2) else { return };
    let mut client = world.connected();
    user_answers(&mut client, 2);
    is_bypassed(&mut client);
    assert_eq!(counted(&fast_path, Reason::FlowClosed), 0);
    client.send(&Segment { flags: FIN | ACK, ..client.next() });
    client.await_segment("the server's FIN", |segment| segment.flags & FIN != 0);
    assert_eq!(counted(&fast_path, Reason::FlowClosed), 1);
}

/// Acknowledgements alone, and the middle of responses, are not looked at before the first answer:
/// all that the answer needs must be there nevertheless.
#[test]
fn the_first_answer_after_what_was_not_looked_at() {
    let Some((world, fast_path)) = world(64) else { return };
    let mut client = world.connected();
    user_answers(&mut client, 1);
    client.send(&client.next());
    client.send(&Segment { seq: client.seq.wrapping_sub(1), ..client.next() }); // a keep-alive probe
    let probed = client.await_segment("an acknowledgement", |_| true);
    assert_eq!((probed.seq, probed.ack, probed.flags), (client.ack, client.seq, ACK));
    assert!(counted(&fast_path, Reason::PassNoPayload) >= 2);
    kernel_answers(&fast_path, &mut client);
    user_answers(&mut client, 1);
    kernel_answers(&fast_path, &mut client);
    client.send(&client.next());
    let stray = client.collect(SENT_AGAIN);
    assert!(stray.is_empty(), "the server has all acknowledgements: {stray:?}");

    fast_path.clock.beat(); // that connection shall be noticed at its first request
    let mut client = world.connect(SERVER_V4);
    for _ in 0..3 {
        assert_eq!(client.get("/large.bin").body.len(), 3_000_000);
        fast_path.clock.beat();
    }
    for _ in 0..3 {
        assert!(client.get("/kernel.html").is_from_kernel());
        assert_eq!(client.get("/large.bin").body.len(), 3_000_000);
        fast_path.clock.beat();
    }
}
