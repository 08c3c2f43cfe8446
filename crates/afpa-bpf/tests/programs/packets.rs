//! Packet in, packet out: the programs run on frames made by hand, in a namespace without traffic.

use crate::support;
use crate::support::frame::Frame;
use crate::support::{PORT, Sample};
use afpa_bpf::{FastPath, Flow, FlowKey, Hook, Reason, TCX_NEXT, TCX_REDIRECT};
use afpa_testkit::packet::{ACK, ECE, FIN, PSH, RST, SYN, URG};

const REQUEST: &str = "GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n";

/// With one pinned object.
fn with_fast_path(test: impl FnOnce(&FastPath) + Send) {
    support::without_traffic(|fast_path| {
        Sample::new(b"from the kernel").pin(fast_path, "/kernel.html");
        test(fast_path);
    });
}

/// The frame goes on as it is; which reasons were counted?
fn untouched(fast_path: &FastPath, hook: Hook, frame: &[u8]) -> Vec<Reason> {
    let before = fast_path.stats.counters().expect("counters");
    let run = fast_path.interfaces.dry_run(hook, frame, 1).expect("a test run");
    assert_eq!((run.verdict, run.packet.as_slice()), (TCX_NEXT, frame));
    let counters = fast_path.stats.counters().expect("counters").since(&before);
    counters.iter().filter(|(_, count)| *count > 0).map(|(reason, _)| reason).collect()
}

#[test]
fn what_is_not_ours_is_neither_touched_nor_counted() {
    with_fast_path(|fast_path| {
        let request = Frame::request(REQUEST);
        let mut udp = request.bytes();
        udp[23] = 17;
        let mut fragment = request.bytes();
        fragment[20] = 0x20;
        let mut arp = request.bytes();
        arp[12..14].copy_from_slice(&[8, 6]);
        let mut vlan = request.bytes();
        vlan.splice(12..12, [0x81, 0, 0, 1]);
        let other_port = Frame { server_port: PORT + 1, ..request.clone() }.bytes();
        let empty = Frame { payload: Vec::new(), flags: ACK, ..request.clone() }.bytes();
        let syn = Frame { flags: SYN, ..request.clone() }.bytes();
        for frame in [udp, fragment, arp, vlan, other_port, empty, syn] {
            for hook in [Hook::Ingress, Hook::Egress] {
                assert_eq!(untouched(fast_path, hook, &frame), [], "{hook:?} {frame:02x?}");
            }
        }
    });
}

#[test]
fn every_truncation_is_survived() {
    with_fast_path(|fast_path| {
        let ipv6 = Frame { ipv6: true, ..Frame::request(REQUEST) };
        // Below a whole IP header the kernel itself refuses to run a program.
        for (whole, least) in [(Frame::request(REQUEST).bytes(), 34), (ipv6.bytes(), 54)] {
            for length in least..whole.len() {
                for hook in [Hook::Ingress, Hook::Egress] {
                    untouched(fast_path, hook, &whole[..length]);
                }
            }
        }
    });
}

#[test]
fn reasons_of_requests_without_a_connection() {
    with_fast_path(|fast_path| {
        let request = Frame::request(REQUEST);
        // Nothing is read of them: a stranger sent them (P1).
        let strange = [Reason::PassNoSocket];
        assert_eq!(untouched(fast_path, Hook::Ingress, &request.bytes()), strange);
        let ipv6 = Frame { ipv6: true, ..request.clone() };
        assert_eq!(untouched(fast_path, Hook::Ingress, &ipv6.bytes()), strange);
        for (flags, reason) in [
            (ACK | PSH | FIN, Reason::PassTcpFlags),
            (ACK | PSH | URG, Reason::PassTcpFlags),
            (ACK | PSH | ECE, Reason::PassTcpFlags),
            (PSH, Reason::PassTcpFlags),
        ] {
            let frame = Frame { flags, ..request.clone() };
            assert_eq!(untouched(fast_path, Hook::Ingress, &frame.bytes()), [reason], "{flags:#x}");
        }
        let options = Frame { sack: vec![(1, 2)], ..request.clone() };
        assert_eq!(untouched(fast_path, Hook::Ingress, &options.bytes()), strange);
        fast_path.clock.pause();
        let silent = [Reason::PassNoHeartbeat];
        assert_eq!(untouched(fast_path, Hook::Ingress, &request.bytes()), silent);
    });
}

/// Owners that leave a connection to user mode for ever.
const LEFT: [u8; 2] = [afpa_abi::owner::USER_FINAL, afpa_abi::owner::BYPASSED];

/// A connection with a sequence offset: 100 bytes taken, 1000 given, user mode owns it.
fn with_offset(owner: u8) -> (FlowKey, [u8; size_of::<Flow>()]) {
    let mut bytes = [0; size_of::<Flow>()];
    bytes[4] = owner;
    bytes[8..10].fill(0xff); // window
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    put(12, 100); // rx_offset
    put(16, 1000); // tx_offset
    put(20, 50_100); // client_next
    put(24, 70_000); // kernel_next
    put(28, 60_000); // stale_below
    put(32, 60_000); // acked_to_kernel
    put(40, 50_000); // kernel_received
    put(60, 40_000); // request_seq
    put(72, 1000); // answer_size
    put(84, 61_000); // snd_una
    (Frame::request("").key(), bytes)
}

#[test]
fn ingress_translation() {
    with_fast_path(|fast_path| LEFT.iter().for_each(|owner| translates_up(fast_path, *owner)));
}

fn translates_up(fast_path: &FastPath, owner: u8) {
    let (key, flow) = with_offset(owner);
    fast_path.flows.put_flow(&key, &flow).expect("entered");
    let wire = Frame {
        seq: 50_100,
        ack: 66_000,
        payload: b"more".to_vec(),
        sack: vec![(67_000, 68_000), (60_100, 60_200)],
        ..Frame::request("")
    };
    let run = fast_path.interfaces.dry_run(Hook::Ingress, &wire.bytes(), 1).expect("a test run");
    assert_eq!(run.verdict, TCX_NEXT);
    let kernel = Frame {
        seq: 50_000,
        ack: 65_000,
        sack: vec![(66_000, 67_000), (60_000, 60_000)], // the second is of older offsets
        ..wire.clone()
    };
    assert_eq!(run.packet, kernel.bytes(), "numbers, SACK blocks and checksum");
    // An acknowledgement inside an answer of ours says to the kernel: all of yours before it.
    let partial = Frame { ack: 60_500, sack: Vec::new(), ..wire };
    let run = fast_path.interfaces.dry_run(Hook::Ingress, &partial.bytes(), 1).expect("a test run");
    assert_eq!(run.packet, Frame { seq: 50_000, ack: 60_000, ..partial.clone() }.bytes());
    // An older one is as old for the kernel as it is.
    let old = Frame { ack: 30_000, ..partial.clone() };
    let run = fast_path.interfaces.dry_run(Hook::Ingress, &old.bytes(), 1).expect("a test run");
    assert_eq!(run.packet, Frame { seq: 50_000, ack: 29_000, ..old }.bytes());
    // The end is translated, too, and the entry stays for segments behind it.
    for flags in [FIN | ACK, RST | ACK] {
        let end = Frame { ack: 66_000, flags, payload: Vec::new(), ..partial.clone() };
        let run = fast_path.interfaces.dry_run(Hook::Ingress, &end.bytes(), 1).expect("a test run");
        assert_eq!(run.packet, Frame { seq: 50_000, ack: 65_000, ..end }.bytes());
        assert!(fast_path.flows.flow(&key).expect("asked").is_some());
    }
}

#[test]
fn egress_translation() {
    with_fast_path(|fast_path| LEFT.iter().for_each(|owner| translates_down(fast_path, *owner)));
}

fn translates_down(fast_path: &FastPath, owner: u8) {
    let (_, flow) = with_offset(owner);
    for ipv6 in [false, true] {
        let mut kernel = Frame {
            from_server: true,
            seq: 70_000,
            ack: 50_000,
            ipv6,
            sack: vec![(50_200, 50_300)],
            ..Frame::request("data")
        };
        fast_path.flows.put_flow(&kernel.key(), &flow).expect("entered");
        let wire =
            Frame { seq: 71_000, ack: 50_100, sack: vec![(50_300, 50_400)], ..kernel.clone() };
        let run =
            fast_path.interfaces.dry_run(Hook::Egress, &kernel.bytes(), 1).expect("a test run");
        assert_eq!((run.verdict, run.packet), (TCX_NEXT, wire.bytes()));
        kernel.seq = 59_990; // the client has it, under older offsets
        let run =
            fast_path.interfaces.dry_run(Hook::Egress, &kernel.bytes(), 1).expect("a test run");
        assert_eq!(run.verdict, afpa_bpf::TCX_DROP);
    }
}

/// Without an offset, the segments of a connection left to user mode pass as they are, and so does its end.
#[test]
fn connections_without_offset_that_are_left_to_user_mode() {
    with_fast_path(|fast_path| {
        let reasons = [(Reason::PassUserFinal, false), (Reason::PassBypassed, true)];
        for (owner, (reason, ipv6)) in LEFT.into_iter().zip(reasons) {
            let request = Frame { ipv6, ..Frame::request(REQUEST) };
            let response = Frame::request("HTTP/1.1 200 OK\r\n\r\n");
            let response = Frame { ipv6, from_server: true, ..response };
            let mut flow = [0; size_of::<Flow>()];
            flow[4] = owner;
            let key = request.key();
            for (hook, frame, counted) in
                [(Hook::Ingress, &request, vec![reason]), (Hook::Egress, &response, vec![])]
            {
                fast_path.flows.put_flow(&key, &flow).expect("entered");
                assert_eq!(untouched(fast_path, hook, &frame.bytes()), counted, "{hook:?}");
                let before = fast_path.flows.flow(&key).expect("asked").expect("there");
                assert_eq!((before.owner, before.kernel_next, before.client_next), (owner, 0, 0));
                for flags in [FIN | ACK, RST | ACK] {
                    fast_path.flows.put_flow(&key, &flow).expect("entered");
                    let end = Frame { flags, payload: Vec::new(), ..frame.clone() };
                    let seen = untouched(fast_path, hook, &end.bytes());
                    // A stranger may have sent the client's FIN or RST; only the server's ends the connection.
                    let closed = hook == Hook::Egress;
                    assert_eq!(seen.contains(&Reason::FlowClosed), closed, "{hook:?} {flags:#x}");
                    assert_eq!(fast_path.flows.flow(&key).expect("asked").is_none(), closed);
                }
            }
        }
    });
}

/// A connection without an offset that awaits a response, read up to its head's end.
fn awaiting(content: u32) -> [u8; size_of::<Flow>()] {
    let mut bytes = [0; size_of::<Flow>()];
    bytes[4] = afpa_abi::owner::USER;
    for (at, value) in [(20, 1000), (24, 70_000), (28, 70_000), (36, 70_000 + content)] {
        bytes[at..at + 4].copy_from_slice(&u32::to_ne_bytes(value));
    }
    bytes
}

/// The middle of a response moves nothing; its last segment tells all that was not noted before.
#[test]
fn the_last_segment_of_a_response_tells_all() {
    with_fast_path(|fast_path| {
        let piece = Frame { from_server: true, ack: 1000, ..Frame::request("0123456789") };
        let key = piece.key();
        fast_path.flows.put_flow(&key, &awaiting(100)).expect("entered");
        let next = || fast_path.flows.flow(&key).expect("asked").expect("there").kernel_next;
        for start in (0..90).step_by(10) {
            untouched(
                fast_path,
                Hook::Egress,
                &Frame { seq: 70_000 + start, ..piece.clone() }.bytes(),
            );
            assert_eq!(next(), 70_000);
        }
        untouched(fast_path, Hook::Egress, &Frame { seq: 70_090, ..piece.clone() }.bytes());
        let flow = fast_path.flows.flow(&key).expect("asked").expect("there");
        assert_eq!((flow.kernel_next, flow.kernel_received), (70_100, 1000));
        // Sent again, with a later acknowledgement: that is noted.
        untouched(fast_path, Hook::Egress, &Frame { seq: 70_000, ack: 1050, ..piece }.bytes());
        let flow = fast_path.flows.flow(&key).expect("asked").expect("there");
        assert_eq!((flow.owner, flow.kernel_received), (afpa_abi::owner::USER, 1050));
    });
}

/// Heads are read in two looks at most: a line may be cut by the first one anywhere.
#[test]
fn responses_end_where_they_say_wherever_the_first_look_ends() {
    with_fast_path(|fast_path| {
        let mut flow = awaiting(0);
        flow[112] = 1; // responses_pending
        let (user, kept) = (afpa_abi::owner::USER, afpa_abi::owner::USER_FINAL);
        for (fields, content, owner) in [
            ("Content-Length: 12345678\r\nConnection: keep-alive", "", user),
            ("Transfer-Encoding: chunked\r\nConnection: keep-alive", "0\r\n\r\n", user),
            ("Content-Length: 0\r\nConnection: close", "", kept),
            ("Content-Length: 0\r\nContent-Length: 0", "", kept),
            ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "0\r\n\r\n", kept),
        ] {
            for padding in 400..520 {
                let padding = "p".repeat(padding);
                let head = format!("HTTP/1.1 200 OK\r\nX: {padding}\r\n{fields}\r\nY: y\r\n\r\n");
                let text = head.clone() + content;
                let frame = Frame { from_server: true, seq: 70_000, ..Frame::request(&text) };
                fast_path.flows.put_flow(&frame.key(), &flow).expect("entered");
                untouched(fast_path, Hook::Egress, &frame.bytes());
                let flow = fast_path.flows.flow(&frame.key()).expect("asked").expect("there");
                assert_eq!(flow.owner, owner, "{head}");
                if owner == user {
                    let announced = if content.is_empty() { 12_345_678 } else { 0 };
                    let end = 70_000 + text.len() as u32 + announced;
                    assert_eq!((flow.responses_pending, flow.response_start), (0, end), "{head}");
                }
            }
        }
    });
}

/// The state of an old answer must not match again when the sequence numbers wrap around.
#[test]
fn translation_of_more_bytes_than_half_the_sequence_space() {
    with_fast_path(|fast_path| {
        const STEP: u32 = 1 << 28;
        let (key, mut flow) = with_offset(afpa_abi::owner::USER_FINAL);
        for (at, value) in [(64, 100u32), (68, 60_000), (72, 1000)] {
            flow[at..at + 4].copy_from_slice(&value.to_ne_bytes()); // an answer that the client has
        }
        fast_path.flows.put_flow(&key, &flow).expect("entered");
        for turn in 0..40u32 {
            let start = 70_000u32.wrapping_add(STEP.wrapping_mul(turn));
            let kernel =
                Frame { from_server: true, seq: start, ack: 50_000, ..Frame::request("data") };
            let down = Frame { seq: start.wrapping_add(1000), ack: 50_100, ..kernel.clone() };
            let run =
                fast_path.interfaces.dry_run(Hook::Egress, &kernel.bytes(), 1).expect("a test run");
            assert_eq!((run.verdict, run.packet), (TCX_NEXT, down.bytes()), "turn {turn}");
            let ack = down.seq.wrapping_add(4);
            let wire =
                Frame { seq: 50_100, ack, flags: ACK, payload: vec![], ..Frame::request("") };
            let up = Frame { seq: 50_000, ack: ack.wrapping_sub(1000), ..wire.clone() };
            let run =
                fast_path.interfaces.dry_run(Hook::Ingress, &wire.bytes(), 1).expect("a test run");
            assert_eq!((run.verdict, run.packet), (TCX_NEXT, up.bytes()), "turn {turn}");
        }
    });
}

/// No frame without a connection is ever answered, however it is mangled.
#[test]
fn mangled_frames_are_never_answered() {
    with_fast_path(|fast_path| {
        let mut dice: u64 = 0x1234_5678_9abc_def1;
        let mut roll = || {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            (dice >> 16) as usize
        };
        for round in 0..20_000 {
            let mut frame = Frame { ipv6: round % 2 == 1, ..Frame::request(REQUEST) }.bytes();
            for _ in 0..1 + roll() % 4 {
                let at = roll() % frame.len();
                frame[at] = roll() as u8;
            }
            let run = fast_path.interfaces.dry_run(Hook::Ingress, &frame, 1).expect("a test run");
            assert_ne!(run.verdict, TCX_REDIRECT, "{frame:02x?}");
            assert_eq!(run.packet, frame, "round {round}");
        }
        assert_eq!(fast_path.stats.counters().expect("counters")[Reason::Answered], 0);
    });
}

#[test]
fn time_of_a_warm_pass() {
    with_fast_path(|fast_path| {
        let request = Frame::request(REQUEST);
        let (key, flow) = with_offset(afpa_abi::owner::USER_FINAL);
        println!("ns per run, warm:");
        let time = |name: &str, hook: Hook, frame: &Frame| {
            let run =
                fast_path.interfaces.dry_run(hook, &frame.bytes(), 200_000).expect("a test run");
            println!("{:>6}  {name}", run.time.as_nanos());
        };
        time("port not served", Hook::Ingress, &Frame { server_port: PORT + 1, ..request.clone() });
        time(
            "acknowledgement, unknown connection",
            Hook::Ingress,
            &Frame { payload: Vec::new(), ..request.clone() },
        );
        time("small request, derived, no socket", Hook::Ingress, &request);
        let large = format!(
            "GET /kernel.html HTTP/1.1\r\nHost: server\r\nCookie: {}\r\n\r\n",
            "0123456789abcdef".repeat(61)
        );
        time("1 KB request, derived, no socket", Hook::Ingress, &Frame::request(&large));
        time("unknown connection", Hook::Egress, &Frame { from_server: true, ..request.clone() });
        let mut awaiting = [0; size_of::<Flow>()];
        awaiting[4] = afpa_abi::owner::USER;
        awaiting[36..40].copy_from_slice(&70_000u32.to_ne_bytes()); // response_start
        awaiting[112] = 1; // responses_pending
        fast_path.flows.put_flow(&key, &awaiting).expect("entered");
        let head = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 02:50:00 GMT\r\nContent-Type: text/html\r\n\
                    Content-Length: 100000\r\nLast-Modified: Sat, 21 Nov 2026 02:29:24 GMT\r\nConnection: keep-alive\r\n\
                    ETag: \"6b010204-a\"\r\nAccept-Ranges: bytes\r\n\r\n";
        let response = Frame { from_server: true, seq: 70_000, ..Frame::request(head) };
        let before = fast_path.stats.counters().expect("counters");
        fast_path.interfaces.dry_run(Hook::Egress, &response.bytes(), 1).expect("a test run");
        let ended =
            fast_path.stats.counters().expect("counters").since(&before)[Reason::ResponseEnd];
        assert_eq!(ended, 1);
        let mut total = std::time::Duration::ZERO;
        for _ in 0..5000 {
            fast_path.flows.put_flow(&key, &awaiting).expect("entered");
            total += fast_path
                .interfaces
                .dry_run(Hook::Egress, &response.bytes(), 1)
                .expect("a test run")
                .time;
        }
        println!(
            "{:>6}  response head, its end derived (single runs, cooler)",
            total.as_nanos() / 5000
        );
        fast_path.flows.put_flow(&key, &flow).expect("entered");
        time(
            "translated",
            Hook::Egress,
            &Frame { from_server: true, seq: 70_000, ack: 50_000, ..request.clone() },
        );
        let mut left = [0; size_of::<Flow>()];
        left[4] = afpa_abi::owner::BYPASSED;
        fast_path.flows.put_flow(&key, &left).expect("entered");
        time("bypassed, request", Hook::Ingress, &request);
        time("bypassed, response", Hook::Egress, &Frame { from_server: true, ..request });
    });
}
