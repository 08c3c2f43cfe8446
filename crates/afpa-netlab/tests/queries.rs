//! The generator of DNS queries against a small server.

use std::net::{IpAddr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_netlab::queries::{Names, Queries, QueryOptions, Question, Tally, address};
use afpa_netlab::{Bed, BedOptions, missing_privilege};

/// Each of the server's faults happens to one query in so many.
const SELDOM: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Silence,
    AnotherAddress,
    AnotherCode,
}

/// Answers with the address of each name, after `sound` queries with a fault now and then.
struct Server {
    at: SocketAddrV4,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(bed: &Bed, fault: Fault, sound: usize) -> Self {
        let socket = bed.server().run(|| UdpSocket::bind((Bed::SERVER_V4, 0)).unwrap()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let SocketAddr::V4(at) = socket.local_addr().unwrap() else { panic!("an IPv4 address") };
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        let thread = Some(std::thread::spawn(move || serve(&socket, fault, sound, &ends)));
        Self { at, over, thread }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(socket: &UdpSocket, fault: Fault, sound: usize, over: &AtomicBool) {
    let (mut bytes, mut count) = ([0; 512], 0);
    while !over.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        count += 1;
        let fault = if count > sound && count % SELDOM == 0 { fault } else { Fault::None };
        if fault == Fault::Silence {
            continue;
        }
        let digits = std::str::from_utf8(&bytes[14..22]).unwrap();
        let mut number = u32::from_str_radix(digits, 16).unwrap();
        number += u32::from(fault == Fault::AnotherAddress);
        let mut answer = bytes[..length].to_vec();
        answer[2] = 0x84;
        answer[3] = if fault == Fault::AnotherCode { 2 } else { 0 };
        answer[7] = 1;
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address(number).octets());
        socket.send_to(&answer, from).unwrap();
    }
}

/// The tally of some queries of these names; `None`: not on this machine.
fn asked(names: Names, fault: Fault) -> Option<Tally> {
    if let Some(reason) = missing_privilege() {
        eprintln!("SKIP: {reason}");
        return None;
    }
    let bed = Bed::create(&BedOptions::default()).unwrap();
    // All of those that are read by a socket are right.
    let server = Server::start(&bed, fault, 400);
    let IpAddr::V4(from) = Bed::client_address(Bed::SERVER_V4.into(), 0) else {
        panic!("an IPv4 address")
    };
    let options = QueryOptions {
        to: server.at,
        interface: Bed::DEVICE.into(),
        from,
        outstanding: 16,
        question: Question::new("plain.test", names),
        found: true,
    };
    let tally = bed.client().run(move || {
        let (answers, expected) = options.read_some().unwrap();
        assert!(answers.iter().all(|answer| answer.len() == expected.length));
        let mut queries = Queries::start(&options, expected).unwrap();
        let mut whole = Tally::default();
        for _ in 0..100 {
            let (tally, _, _) = queries.measure(Duration::from_millis(300), || Ok(())).unwrap();
            whole.answers += tally.answers;
            whole.bytes += tally.bytes;
            whole.asked_again += tally.asked_again;
            for (sum, count) in whole.errors.iter_mut().zip(tally.errors) {
                *sum += count;
            }
            if whole.answers > 2000 {
                break;
            }
        }
        assert_eq!(whole.bytes, whole.answers * expected.length as u64);
        whole
    });
    Some(tally.unwrap())
}

#[test]
fn answers_become_queries() {
    for names in [Names::InTurn { first: 7, count: 30 }, Names::Drawn(32_768), Names::Fresh] {
        let Some(tally) = asked(names, Fault::None) else { return };
        assert!(tally.answers > 2000, "{tally:?}");
        assert_eq!((tally.complaint(), tally.stale), (None, 0), "{names:?}");
    }
}

#[test]
fn what_is_not_answered_is_asked_again() {
    let Some(tally) = asked(Names::Drawn(1000), Fault::Silence) else { return };
    assert!(tally.answers > 2000 && tally.asked_again > 0, "{tally:?}");
    assert_eq!(tally.complaint(), None);
}

#[test]
fn wrong_answers_are_counted() {
    for (fault, place) in [(Fault::AnotherCode, 0), (Fault::AnotherAddress, 2)] {
        let Some(tally) = asked(Names::Drawn(1000), fault) else { return };
        assert!(tally.errors[place] > 0, "{tally:?}");
        assert_eq!(tally.errors.iter().sum::<u64>(), tally.errors[place]);
        assert!(tally.complaint().is_some());
    }
}
