//! Two processors have segments of one connection in hand at the same moment, as when a card moves it from one to the other.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::inside;
use crate::support::socketless::{Bench, SOON, data, learn, resets, syn_ack};
use afpa_bpf::Reason;
use afpa_netlab::{Bed, pin};
use afpa_testkit::packet::{ACK, FIN, PacketSocket, Segment};
use afpa_testkit::tcp::RawClient;

const TURNS: u64 = 20;

/// None: there is one processor, and SKIP was said.
fn bench() -> Option<Bench> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        afpa_testkit::aloud::say("SKIP", "there is one processor");
        return None;
    }
    Bench::new()
}

/// Sends both frames, each by a processor of its own, which is where the server's side works on it.
fn send_at_once(bench: &Bench, frames: [Vec<u8>; 2]) {
    let ready = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for (core, frame) in frames.iter().enumerate() {
            let ready = &ready;
            scope.spawn(move || {
                let socket = inside(bench.world.bed.client(), || PacketSocket::open(Bed::DEVICE))
                    .expect("opened");
                pin(core).expect("on one processor");
                ready.fetch_add(1, Ordering::SeqCst);
                while ready.load(Ordering::SeqCst) < 2 {
                    std::hint::spin_loop();
                }
                assert!(socket.send(frame).expect("sent"), "the device has room");
            });
        }
    });
}

/// The client gets one answer and takes it. Its bytes may come more than once, in any pieces.
#[track_caller]
fn takes_one_answer(bench: &Bench, client: &mut RawClient, text: &str) {
    let answers = client.answers(SOON);
    assert_eq!(resets(&answers), 0, "{answers:?} {:?}", bench.counts());
    let mut bytes: Vec<Option<u8>> = Vec::new();
    let parts = data(answers);
    for part in &parts {
        let same = parts.iter().find(|other| other.seq == part.seq).expect("at least itself");
        assert_eq!(same.ack, part.ack, "{parts:?}");
        let at = part.seq.wrapping_sub(client.ack) as usize;
        bytes.resize(bytes.len().max(at + part.payload.len()), None);
        for (known, byte) in bytes[at..].iter_mut().zip(&part.payload) {
            assert_eq!(*known.get_or_insert(*byte), *byte, "the same again: {parts:?}");
        }
    }
    let payload: Vec<u8> = bytes.iter().map(|byte| byte.expect("no hole")).collect();
    let last = parts.last().expect("an answer").clone();
    let answer = Segment { seq: client.ack, payload, ..last };
    client.accept(&answer);
    let whole = answer.text();
    assert_eq!(whole.matches("HTTP/1.1 200 OK").count(), 1, "{whole:?} {:?}", bench.counts());
    assert!(whole.ends_with(text), "{whole:?}");
    client.acknowledge();
}

#[test]
fn a_request_that_comes_twice_is_answered_once_or_again() {
    let Some(bench) = bench() else { return };
    let mut client = bench.open();
    for _ in 0..TURNS {
        bench.fast_path.clock.beat();
        let request = client.get("/kernel.html");
        let frame = client.frame(&request);
        send_at_once(&bench, [frame.clone(), frame]);
        client.seq = request.end();
        takes_one_answer(&bench, &mut client, "from the kernel");
    }
    bench.goes_on(&mut client);
}

/// The first request on a connection of the kernel's: one processor enters the flow, and the other one finds it.
#[test]
fn a_first_request_that_comes_twice_is_answered_once_or_again() {
    let Some(bench) = bench() else { return };
    for turn in 0..TURNS {
        bench.fast_path.clock.beat();
        let mut client = bench.unfit();
        client.connect();
        let (path, text) = match turn % 4 {
            3 => ("/user.html", "from nginx"),
            _ => ("/kernel.html", "from the kernel"),
        };
        let request = client.get(path);
        let frame = client.frame(&request);
        send_at_once(&bench, [frame.clone(), frame]);
        client.seq = request.end();
        takes_one_answer(&bench, &mut client, text);
        client.ask_user();
        client.reset();
    }
}

#[test]
fn a_connection_is_assigned_once() {
    let Some(bench) = bench() else { return };
    for _ in 0..TURNS {
        let mut client = bench.open();
        let request = client.get("/user.html");
        let frame = client.frame(&request);
        send_at_once(&bench, [frame.clone(), frame]);
        client.seq = request.end();
        takes_one_answer(&bench, &mut client, "from nginx");
        client.ask_user();
        client.reset();
    }
    assert_eq!(bench.count(Reason::SocketlessToKernel), TURNS, "{:?}", bench.counts());
}

/// The acknowledgement of our SYN-ACK, and the first request.
#[test]
fn a_connection_is_opened_once() {
    let Some(bench) = bench() else { return };
    for turn in 0..TURNS {
        let mut client = bench.raw();
        let answer = syn_ack(&mut client, |_| ());
        learn(&mut client, &answer);
        let request = client.get(if turn % 2 == 0 { "/kernel.html" } else { "/user.html" });
        let bare = Segment { flags: ACK, ..client.next() };
        let other = if turn % 3 == 0 { request.clone() } else { bare };
        send_at_once(&bench, [client.frame(&other), client.frame(&request)]);
        client.seq = request.end();
        takes_one_answer(
            &bench,
            &mut client,
            if turn % 2 == 0 { "from the kernel" } else { "from nginx" },
        );
        client.ask_user();
        client.reset();
    }
}

/// The last request, and the end behind it: the answer comes first, and the FIN is acknowledged when it comes again.
#[test]
fn a_request_and_the_end_behind_it() {
    let Some(bench) = bench() else { return };
    for _ in 0..TURNS {
        let mut client = bench.open();
        let request = client.get("/kernel.html");
        let fin = Segment { seq: request.end(), flags: FIN | ACK, ..client.next() };
        send_at_once(&bench, [client.frame(&request), client.frame(&fin)]);
        client.seq = request.end();
        takes_one_answer(&bench, &mut client, "from the kernel");
        client.send(&Segment { flags: FIN | ACK, ..client.next() });
        let end = client.answers(SOON);
        assert!(end.iter().any(|segment| segment.flags & FIN != 0), "{end:?} {:?}", bench.counts());
        assert_eq!(resets(&end), 0, "{end:?}");
        client.reset();
    }
}
