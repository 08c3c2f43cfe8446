//! Bypass without a look-up: the entry of a connection must be true, or cost nothing but a hit.
//! `bypass.h`; B1 to B3 of `docs/rules`.

use crate::support;
use std::time::Duration;

use crate::support::frame::Frame;
use crate::support::{LISTENER, Lent, SERVER_V4, SITE, World, counted, kernel_answers};
use afpa_bpf::{FastPath, Flow, Hook, Reason, Settings, TCX_NEXT};
use afpa_testkit::packet::{ACK, FIN, RST, SYN, Segment};
use afpa_testkit::tcp::RawClient;

const SOON: Duration = Duration::from_millis(150);
const LONG: u32 = 1 << 20;

/// A server that has pinned one object, with a fast path that is not listening yet.
fn world() -> Option<(World, Lent)> {
    World::with_one_pinned(Settings {
        bypass_after: 2,
        bypass_time: Duration::ZERO,
        ..Settings::default()
    })
}

#[track_caller]
fn user_answers(client: &mut RawClient, times: usize) {
    for _ in 0..times {
        let reply = client.ask(&client.get("/kernel.html"));
        assert!(reply.text().ends_with("the pinned one, from nginx"), "{reply:?}");
    }
}

/// Uses the same ports again, after a reset instead of an end that both programs see.
fn again(client: &mut RawClient) {
    client.send(&Segment { flags: RST | ACK, ..client.next() });
    drop(client.collect(SOON));
    client.seq = client.seq.wrapping_add(1_000_000);
    client.connect();
}

#[test]
fn what_was_open_before_is_read_seldom_and_never_answered() {
    let Some((world, fast_path)) = world() else { return };
    let all = "[::]:8080".parse().expect("an address");
    fast_path.listeners.unlisten(all).expect("unlistened");
    let mut client = world.connected();
    user_answers(&mut client, 1);
    fast_path.listeners.listen(all, LISTENER, SITE).expect("listening");
    fast_path.clock.beat();
    let before = fast_path.stats.counters().expect("counters");
    user_answers(&mut client, 40);
    let passed = fast_path.stats.counters().expect("counters").since(&before);
    assert_eq!(passed[Reason::PassOldConnection], 40);
    let read = passed[Reason::BlockScanned] + passed[Reason::BlockCompared];
    // Once on each processor, and once more where the second ended.
    let processors = std::thread::available_parallelism().map_or(64, usize::from) as u64;
    assert!(read <= 2 * processors && read < 40, "{read} of 40 requests were read");
    assert_eq!(passed[Reason::FlowOpened], 0);
    // Another connection on the same ports is another matter, at once.
    again(&mut client);
    kernel_answers(&fast_path, &mut client);
}

#[test]
fn bypassed_ones_and_then_others_on_the_same_ports() {
    let Some((world, fast_path)) = world() else { return };
    fast_path.clock.beat();
    let mut client = world.connected();
    for _ in 0..4 {
        for path in ["/user.html", "/user.html"] {
            client.ask(&client.get(path));
        }
        user_answers(&mut client, 20);
        again(&mut client);
    }
    kernel_answers(&fast_path, &mut client);
    assert_eq!(counted(&fast_path, Reason::FlowBypassed), 4);
    assert_eq!(counted(&fast_path, Reason::PassBypassed), 80);
}

/// The first answer on a connection whose acknowledgements went by a moment ago: they are translated now.
#[test]
fn long_responses_and_answers_in_turn() {
    let Some((world, fast_path)) = world() else { return };
    fast_path.flows.set_bypass_after(0);
    for _ in 0..5 {
        fast_path.clock.beat();
        let mut client = world.connect(SERVER_V4);
        for _ in 0..3 {
            assert_eq!(client.get("/large.bin").body.len(), 3_000_000);
            assert!(client.get("/kernel.html").is_from_kernel());
        }
    }
    assert_eq!(counted(&fast_path, Reason::ResponseUnsure), 0);
}

/// On one processor, which remembers.
fn with_fast_path(test: impl FnOnce(&FastPath) + Send) {
    support::without_traffic(|fast_path| {
        let mut here = rustix::thread::CpuSet::new();
        here.set(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(None, &here).expect("on one processor");
        test(fast_path);
    });
}

/// The test gets a function that makes a client's segment of a payload.
fn with_both_families(test: impl Fn(&FastPath, &dyn Fn(&str) -> Frame) + Sync) {
    with_fast_path(|fast_path| {
        for ipv6 in [false, true] {
            test(fast_path, &|payload| Frame { ipv6, ..Frame::request(payload) });
        }
    });
}

fn run(fast_path: &FastPath, hook: Hook, frame: &Frame) {
    let run = fast_path.interfaces.dry_run(hook, &frame.bytes(), 1).expect("a test run");
    assert_eq!((run.verdict, run.packet), (TCX_NEXT, frame.bytes()), "{hook:?}");
}

fn flow_of(words: &[(usize, u32)], owner: u8) -> [u8; size_of::<Flow>()] {
    let mut bytes = [0; size_of::<Flow>()];
    bytes[4] = owner;
    for (at, value) in words {
        bytes[*at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// A connection without an offset that awaits a response, read up to its head's end.
fn awaiting() -> [u8; size_of::<Flow>()] {
    let words = [(20, 1000), (24, 70_000), (28, 70_000), (36, 70_000 + LONG)];
    flow_of(&words, afpa_abi::owner::USER)
}

/// After the end of a long response, its retransmissions are looked at: they may carry a later timestamp.
#[test]
fn the_middle_of_a_response_goes_by_until_its_end() {
    with_both_families(|fast_path, request| {
        let piece = Frame { from_server: true, ack: 1000, ..request("0123456789") };
        let key = piece.key();
        let received =
            || fast_path.flows.flow(&key).expect("asked").expect("there").kernel_received;
        fast_path.flows.put_flow(&key, &awaiting()).expect("entered");
        for start in 0..20 {
            let segment = Frame { seq: 70_000 + 10 * start, ..piece.clone() };
            run(fast_path, Hook::Egress, &segment);
        }
        assert_eq!(received(), 0);
        run(fast_path, Hook::Egress, &Frame { seq: 70_000 + LONG - 10, ..piece.clone() });
        assert_eq!(received(), 1000);
        run(fast_path, Hook::Egress, &Frame { seq: 70_010, ack: 1050, ..piece });
        assert_eq!(received(), 1050);
    });
}

/// Only bare acknowledgements: a request is read, wherever the response stands.
#[test]
fn requests_in_the_middle_of_a_response_are_counted() {
    with_both_families(|fast_path, request| {
        let piece = Frame { from_server: true, ack: 1000, ..request("0123456789") };
        let key = piece.key();
        let mut flow = awaiting();
        flow[112] = 0; // responses_pending
        fast_path.flows.put_flow(&key, &flow).expect("entered");
        run(fast_path, Hook::Egress, &Frame { seq: 70_000, ..piece.clone() });
        run(fast_path, Hook::Egress, &Frame { seq: 70_010, ..piece.clone() });
        let up = request("GET /other.html HTTP/1.1\r\nHost: server\r\n\r\n");
        let up = Frame { seq: 1000, ack: 70_020, ..up };
        let bare = Frame { payload: Vec::new(), flags: ACK, ..up.clone() };
        let passed = counted(fast_path, Reason::PassNoPayload);
        run(fast_path, Hook::Ingress, &bare);
        assert_eq!(counted(fast_path, Reason::PassNoPayload), passed + 1);
        assert_eq!(fast_path.flows.flow(&key).expect("asked").expect("there").responses_pending, 0);
        run(fast_path, Hook::Ingress, &up);
        assert_eq!(fast_path.flows.flow(&key).expect("asked").expect("there").responses_pending, 1);
    });
}

/// An end removes the entry of a connection that went by, on whichever hook it is seen.
#[test]
fn ends_are_seen_and_a_new_connection_is_looked_at() {
    with_fast_path(|fast_path| {
        let up = Frame::request("GET / HTTP/1.1\r\nHost: server\r\n\r\n");
        let down = Frame { from_server: true, ..Frame::request("HTTP/1.1 200 OK\r\n\r\n") };
        let left = flow_of(&[], afpa_abi::owner::BYPASSED);
        let key = up.key();
        for (hook, frame) in [(Hook::Ingress, &up), (Hook::Egress, &down)] {
            for flags in [FIN | ACK, RST | ACK] {
                fast_path.flows.put_flow(&key, &left).expect("entered");
                (0..3).for_each(|_| run(fast_path, Hook::Ingress, &up));
                (0..3).for_each(|_| run(fast_path, Hook::Egress, &down));
                run(fast_path, hook, &Frame { flags, payload: Vec::new(), ..frame.clone() });
                // A stranger may have sent the client's FIN or RST; only the server's ends the connection.
                let gone = fast_path.flows.flow(&key).expect("asked").is_none();
                assert_eq!(gone, hook == Hook::Egress, "{hook:?} {flags:#x}");
            }
        }
        fast_path.flows.put_flow(&key, &left).expect("entered");
        (0..3).for_each(|_| run(fast_path, Hook::Ingress, &up));
        run(fast_path, Hook::Egress, &Frame { flags: SYN | ACK, payload: Vec::new(), ..down });
        assert_eq!(fast_path.flows.flow(&key).expect("asked"), None);
        let before = counted(fast_path, Reason::PassBypassed);
        run(fast_path, Hook::Ingress, &up);
        assert_eq!(counted(fast_path, Reason::PassBypassed), before, "nothing is remembered");
    });
}
