//! A sender gets no answer before it has proven that it is the other end of an established connection.

use std::net::SocketAddr;
use std::time::Duration;

use afpa_bpf::Reason;
use afpa_netlab::{Bed, Offloads, Path};
use afpa_testkit::packet::{RST, Segment};
use afpa_testkit::tcp::RawClient;
use afpa_tests::tcp::{Lab, Plan};

const QUIET: Duration = Duration::from_millis(150);
/// Added to numbers; none makes a forged segment end with bytes that are expected.
const OFFSETS: [u32; 6] = [1, 100, 65_536, 1 << 31, u32::MAX - 999, u32::MAX - 100_000];

fn lab() -> Option<Lab> {
    Lab::with_sample(Plan { path: Path::Direct(Offloads::NONE), ..Plan::default() })
}

/// Sends `segments`. `wire` must see at most as many segments in reply, and no content.
fn assert_no_gain(wire: &mut RawClient, segments: &[Segment]) {
    segments.iter().for_each(|segment| wire.send(segment));
    let replies = wire.collect(QUIET);
    assert!(replies.len() <= segments.len(), "{} for {}", replies.len(), segments.len());
    let content: Vec<&Segment> = replies.iter().filter(|reply| wire.is_new(reply)).collect();
    assert!(content.is_empty(), "{content:?}");
}

#[test]
fn third_address_gets_resets_alone() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    // The same ports and numbers, another address.
    let mut stranger = lab.wire();
    let address = Bed::client_address(Bed::SERVER_V4.into(), 3000);
    assert_eq!(address, wire.address().ip());
    stranger.disguise(SocketAddr::new(address, wire.address().port() ^ 1));
    let segments = vec![wire.get("/kernel.html"); 20];
    segments.iter().for_each(|segment| stranger.send(segment));
    let replies = stranger.collect(QUIET);
    assert!(replies.iter().all(|reply| reply.flags & RST != 0), "{replies:?}");
    assert!(replies.len() <= 20);
    assert_eq!(lab.count(Reason::Answered), 1);
    wire.ask_kernel();
}

#[test]
fn wrong_numbers_on_a_fresh_connection() {
    let Some(lab) = lab() else { return };
    for offset in OFFSETS {
        for field in [0, 1, 2] {
            let mut wire = lab.wired();
            let mut forged = wire.get("/kernel.html");
            if field != 1 {
                forged.seq = forged.seq.wrapping_add(offset);
            }
            if field != 0 {
                forged.ack = forged.ack.wrapping_add(offset);
            }
            assert_no_gain(&mut wire, std::slice::from_ref(&forged));
        }
    }
    assert_eq!(lab.count(Reason::Answered) + lab.count(Reason::FlowOpened), 0);
}

#[test]
fn wrong_numbers_on_a_connection_with_an_offset() {
    let Some(lab) = lab() else { return };
    for offset in OFFSETS {
        let mut wire = lab.wired();
        wire.ask_kernel();
        wire.ask_user();
        wire.ask_kernel();
        let answered = lab.count(Reason::Answered);
        let honest = wire.get("/kernel.html");
        let wrong_seq = Segment { seq: honest.seq.wrapping_add(offset), ..honest.clone() };
        assert_no_gain(&mut wire, std::slice::from_ref(&wrong_seq));
        assert_eq!(lab.count(Reason::Answered), answered, "seq + {offset}");
    }
}

/// A forger guesses the sequence number of the last request, but not the acknowledgement.
#[test]
fn wrong_acknowledgement_on_a_repeated_request() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    let request = wire.get("/kernel.html");
    let reply = wire.ask(&request).text();
    assert!(reply.contains("afpa-kernel"));
    wire.acknowledge();
    wire.ask_user();
    for offset in [1_u32, u32::MAX - 100_000, 100_000, 1 << 31] {
        let forged = Segment { ack: request.ack.wrapping_add(offset), ..request.clone() };
        assert_no_gain(&mut wire, &[forged.clone(), forged]);
    }
    assert_eq!(lab.count(Reason::AnsweredRetransmission), 0);
}

#[test]
fn before_the_handshake_is_complete() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wire();
    let segments = vec![wire.get("/kernel.html"); 10];
    assert_no_gain(&mut wire, &segments);
    assert_eq!(lab.count(Reason::Answered), 0);
}

#[test]
fn after_the_connection_has_ended() {
    let Some(lab) = lab() else { return };
    let mut wire = lab.wired();
    wire.ask_kernel();
    wire.send(&Segment { flags: RST | 16, ..wire.next() });
    afpa_testkit::eventually("the socket's end", || lab.sockets("established") == 0);
    let next = wire.get("/kernel.html");
    let segments = vec![next; 10];
    for segment in &segments {
        wire.send(segment);
    }
    let replies = wire.collect(QUIET);
    assert!(replies.len() <= segments.len());
    assert!(replies.iter().all(|reply| !reply.is_from_kernel()), "{replies:?}");
    assert_eq!(lab.count(Reason::Answered), 1);
}
