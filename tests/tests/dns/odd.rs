//! Queries that are not plain: one answer each, by datagrams and on connections, and none for what might go on for ever.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use afpa_tests::dns::{A, Odd, Query};

use super::bed::{Bed, ZONE};
use super::message::{Answer, Question};

const PATIENCE: Duration = Duration::from_secs(5);

/// The code of the answer. A plain query behind it shows that there is none.
fn by_udp(server: SocketAddr, odd: &Odd) -> Option<String> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.connect(server).expect("connected");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    socket.send(&odd.query).expect("sent");
    let plain = Question::new("www.example.org", A).bytes();
    socket.send(&plain).expect("sent");
    let mut room = [0; 4096];
    let length = socket.recv(&mut room).expect("an answer to one of them");
    let first = room[..length].to_vec();
    (first[..2] != plain[..2]).then(|| code(&first))
}

fn by_tcp(server: SocketAddr, odd: &Odd) -> Option<String> {
    let mut stream = TcpStream::connect(server).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let length = u16::try_from(odd.query.len()).expect("short").to_be_bytes();
    stream.write_all(&[&length, odd.query.as_slice()].concat()).expect("written");
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message).expect("a message");
    Some(code(&message))
}

/// The code with the part of it that is in the OPT record, the last one.
fn code(message: &[u8]) -> String {
    let extended = message.len().checked_sub(6).and_then(|at| message.get(at));
    match (message[3] & 15, message[11], extended) {
        (0, 1, Some(1)) => "BADVERS".to_owned(),
        _ => Answer::read(message).rcode,
    }
}

#[test]
fn odd_queries_get_one_answer() {
    let bed = Bed::new(&[("example.org", ZONE)], "", "[dns]\nrate = 0\n");
    let all = Odd::all(&Query::new("www.example.org", A));
    assert!(all.len() >= 47);
    for odd in all {
        let expected = odd.rcode.map(str::to_owned);
        assert_eq!(by_udp(bed.dns, &odd), expected, "{}", odd.what);
        let is_transfer = matches!(odd.what, "AXFR" | "IXFR");
        let expected = if is_transfer { Some("REFUSED".to_owned()) } else { expected };
        assert_eq!(by_tcp(bed.dns, &odd), expected, "{} by TCP", odd.what);
    }
}

#[test]
fn a_connection_that_announces_more_than_a_question_ends() {
    let bed = Bed::new(&[("example.org", ZONE)], "", "");
    let mut stream = TcpStream::connect(bed.dns).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let plain = Question::new("www.example.org", A).bytes();
    let length = u16::try_from(plain.len()).expect("short").to_be_bytes();
    stream.write_all(&[&length[..], &plain, &[0xff, 0xff, 0]].concat()).expect("written");
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("the end, in time");
    assert_eq!(said.get(2..4), plain.get(..2), "the question before it has its answer");
}
