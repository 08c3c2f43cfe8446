//! Real TCP through the injector.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use afpa_netlab::inject::{Counts, DropRule, Impairment, Rules};
use afpa_netlab::{Bed, BedOptions, Path, missing_privilege};

macro_rules! skip_unless_privileged {
    () => {
        if let Some(reason) = missing_privilege() {
            eprintln!("SKIP: {reason}");
            return;
        }
    };
}

fn bed(rules: Rules) -> Bed {
    Bed::create(&BedOptions { path: Path::Through(Box::new(rules)), ..BedOptions::default() })
        .unwrap()
}

/// Bytes that tell where they belong: any loss, swap or repetition shows.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32).flat_map(|word| word.wrapping_mul(0x9e37_79b1).to_le_bytes()).collect()
}

/// Sends `sent` from the server to a client that asks for it, and gives back what came through.
fn transfer(bed: &Bed, sent: Vec<u8>) -> (Vec<u8>, Duration) {
    let listener = bed.server().run(|| TcpListener::bind((Bed::SERVER_V4, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        connection.read_exact(&mut [0; 3]).unwrap();
        connection.write_all(&sent).unwrap();
    });
    let begin = Instant::now();
    let mut client = bed.client().run(|| connect(address)).unwrap();
    client.write_all(b"GET").unwrap();
    let mut received = Vec::new();
    client.read_to_end(&mut received).unwrap();
    server.join().unwrap();
    (received, begin.elapsed())
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn assert_near(count: u64, of: u64, probability: f64) {
    // Five standard deviations of a binomial distribution.
    let (expected, variance) =
        (of as f64 * probability, of as f64 * probability * (1.0 - probability));
    let tolerance = 5.0 * variance.sqrt();
    assert!((count as f64 - expected).abs() <= tolerance, "{count} of {of}, not {probability}");
}

#[test]
fn a_transfer_survives_five_percent_of_everything() {
    skip_unless_privileged!();
    let impairment =
        Impairment { loss: 0.05, duplicate: 0.05, reorder: 0.05, ..Impairment::default() };
    let bed = bed(Rules::both(impairment, 11));
    let sent = pattern(1_000_000);
    let (received, _) = transfer(&bed, sent.clone());
    assert!(received == sent, "{} of {} bytes, or wrong ones", received.len(), sent.len());

    let (to_server, to_client) = bed.injector().unwrap().counts();
    assert!(to_client.received > 2_800, "whole segments of 1,448 bytes: {to_client:?}");
    for counts in [to_server, to_client] {
        let Counts { received, lost, duplicated, held, .. } = counts;
        assert_near(lost, received, 0.05);
        assert_near(duplicated, received - lost, 0.05);
        assert_near(held, received - lost + duplicated, 0.05);
        assert_eq!((counts.oversize, counts.refused), (0, 0));
    }
    assert!(to_client.overtaken > 0, "{to_client:?}");
}

#[test]
fn delay_is_what_was_asked_for() {
    skip_unless_privileged!();
    let impairment = Impairment { delay: Duration::from_millis(20), ..Impairment::default() };
    let bed = bed(Rules::both(impairment, 1));
    let echo = bed.server().run(|| UdpSocket::bind((Bed::SERVER_V4, 0)).unwrap()).unwrap();
    let address = echo.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        loop {
            let (length, from) = echo.recv_from(&mut [0; 8]).unwrap();
            if length == 0 {
                break;
            }
            echo.send_to(&[0; 8][..length], from).unwrap();
        }
    });
    let any = (Bed::client_address(Bed::SERVER_V4.into(), 0), 0);
    let client = bed.client().run(|| UdpSocket::bind(any).unwrap()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let trip = || {
        let begin = Instant::now();
        client.send_to(b"ping", address).unwrap();
        client.recv_from(&mut [0; 8]).unwrap();
        begin.elapsed()
    };
    // Never less than asked for, and no more, although on a busy machine most take longer.
    let (least, most) = (Duration::from_millis(40), Duration::from_millis(48));
    let mut trips: Vec<Duration> = (0..10).map(|_| trip()).collect();
    while trips.iter().filter(|trip| **trip <= most).count() < 3 && trips.len() < 1000 {
        trips.push(trip());
    }
    client.send_to(b"", address).unwrap();
    server.join().unwrap();
    trips.sort();
    assert!(trips[0] >= least, "{trips:?}");
    assert!(trips[2] <= most, "{trips:?}");
}

#[test]
fn a_chosen_segment_is_lost_and_sent_again() {
    skip_unless_privileged!();
    let rule = DropRule::when(|segment| !segment.payload.is_empty()).nth(2);
    let to_client = Impairment { drop_rules: vec![rule], ..Impairment::default() };
    let bed = bed(Rules { to_client, ..Rules::default() });
    let sent = pattern(25_000);
    let (received, _) = transfer(&bed, sent.clone());
    assert!(received == sent);
    let (_, to_client) = bed.injector().unwrap().counts();
    assert_eq!(to_client.rule_dropped, 1);
}

#[test]
fn a_lost_tail_is_repaired_by_a_timer() {
    skip_unless_privileged!();
    let to_client =
        Impairment { drop_rules: vec![DropRule::tails().nth(1)], ..Impairment::default() };
    let bed = bed(Rules { to_client, ..Rules::default() });
    let (received, _) = transfer(&bed, b"one segment".to_vec());
    assert_eq!(received, b"one segment");
    assert_eq!(bed.injector().unwrap().counts().1.rule_dropped, 1);
}

#[test]
fn a_transfer_takes_what_the_rate_limit_says() {
    skip_unless_privileged!();
    let to_client = Impairment { rate: Some(20_000_000), queue: 50, ..Impairment::default() };
    let bed = bed(Rules { to_client, ..Rules::default() });
    let sent = pattern(250_000); // 1 MB: 0.4 s at 20 Mbit/s, headers not counted
    let (received, took) = transfer(&bed, sent.clone());
    assert!(received == sent);
    assert!(took >= Duration::from_millis(400), "{took:?}");
}

#[test]
fn rules_can_change_under_way() {
    skip_unless_privileged!();
    let bed = bed(Rules::default());
    let (received, _) = transfer(&bed, pattern(1000));
    assert_eq!(received.len(), 4000);
    let injector = bed.injector().unwrap();
    let to_client = Impairment { duplicate: 1.0, ..Impairment::default() };
    injector.set_rules(&Rules { to_client, ..Rules::default() });
    let settle = || std::thread::sleep(Duration::from_millis(100)); // until counts are published
    settle();
    let before = injector.counts().1;
    let (received, _) = transfer(&bed, pattern(25_000));
    assert_eq!(received.len(), 100_000);
    settle();
    let after = injector.counts().1;
    let (received, duplicated) =
        (after.received - before.received, after.duplicated - before.duplicated);
    assert!(received >= 69, "segments of 1,448 bytes: {after:?}");
    assert_eq!(duplicated, received);
}
