//! Beginning anew on the tuple of a connection without a socket, during it and after it.

use std::time::Duration;

use super::closing::{hit, takes_fin};
use crate::support::socketless::{Bench, SOON};
use afpa_bpf::Reason;
use afpa_testkit::packet::{ACK, RST, SYN, Segment, SynOptions};
use afpa_testkit::tcp::RawClient;

fn syn(client: &RawClient, seq: u32) -> Segment {
    let syn = SynOptions { mss: Some(1460), sack: true, scale: Some(7) };
    Segment { flags: SYN, seq, ack: 0, syn, ts_echo: 0, ..client.next() }
}

/// RFC 5961, 4: a SYN inside an open connection gets an acknowledgement, from which a client that has begun anew sees
/// that the server has not.
#[test]
fn a_syn_inside_an_open_connection_changes_nothing() {
    let Some(bench) = Bench::new() else { return };
    for known in [true, false] {
        let mut client = bench.open();
        let isn = client.seq.wrapping_sub(1);
        hit(&mut client);
        std::thread::sleep(Duration::from_millis(800));
        if known {
            bench.introduce();
        }
        for seq in [isn, client.seq, client.seq.wrapping_add(100_000), 12_345] {
            client.send(&syn(&client, seq));
            let answers = client.collect(SOON);
            let harmless = |s: &Segment| (s.flags, s.seq, s.ack) == (ACK, client.ack, client.seq);
            assert!(answers.len() <= 1 && answers.iter().all(harmless), "{known} {answers:?}");
        }
        hit(&mut client);
        client.ask_user();
        client.reset();
    }
}

#[test]
fn a_client_that_lost_its_memory_begins_anew_on_the_same_tuple() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    hit(&mut client);
    bench.introduce();
    // It has rebooted, and happens to choose the same port.
    let isn = client.seq.wrapping_add(1_000_000);
    client.send(&syn(&client, isn));
    let answers = client.answers(SOON);
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0].flags, ACK, "{answers:?}");
    // The client's TCP answers an unknown acknowledgement with a reset (RFC 9293, 3.5.1), and repeats the SYN.
    client.send(&Segment { flags: RST, seq: answers[0].ack, ack: 0, ..client.next() });
    std::thread::sleep(SOON);
    bench.introduce();
    client.seq = isn;
    client.ack = 0;
    bench.connect(&mut client);
    bench.goes_on(&mut client);
}

#[test]
fn the_same_tuple_anew_after_every_kind_of_end() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    for turn in 0..6 {
        hit(&mut client);
        match turn % 3 {
            0 => client.reset(),
            1 => {
                client.finish();
                takes_fin(&mut client);
            }
            _ => {
                client.ask_user(); // the kernel's from here on
                client.reset();
            }
        }
        std::thread::sleep(SOON);
        bench.introduce();
        client.seq = client.seq.wrapping_add(1_000_000);
        client.ack = 0;
        bench.connect(&mut client);
    }
    bench.goes_on(&mut client);
}

/// Segments of a bypassed connection are not looked up: the SYN must end the bypass, too.
#[test]
fn the_same_tuple_anew_after_a_bypassed_connection() {
    let Some(bench) = Bench::new() else { return };
    let mut client = bench.open();
    for _ in 0..3 {
        // HTTP/1.0 without Host leaves the connection to user mode for ever.
        client.push(&client.data("GET /user.html HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
        client.take_response();
        client.acknowledge();
        client.reset();
        std::thread::sleep(Duration::from_millis(20));
        bench.introduce();
        client.seq = client.seq.wrapping_add(1_000_000);
        client.ack = 0;
        bench.connect(&mut client);
    }
    assert!(bench.count(Reason::SocketlessToKernel) == 3, "{:?}", bench.counts());
    bench.goes_on(&mut client);
}
