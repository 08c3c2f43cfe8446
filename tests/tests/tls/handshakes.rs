//! Handshakes that are slow, broken, or too many.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use afpa_testkit::{Random, eventually};
use afpa_tests::tls::{Authority, Plan, TlsServer};

use crate::site;

fn with(sections: &str) -> (afpa_testkit::Tree, Authority, TlsServer) {
    let (tree, authority) = (site(), Authority::new());
    let plan = Plan { sections: sections.to_owned(), ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    (tree, authority, server)
}

fn failed(server: &TlsServer, reason: &str) -> u64 {
    server.number(&format!("/tls/failed/{reason}"))
}

/// Reads until the server ends the connection, in any way.
fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    let _ = stream.read_to_end(&mut got);
    got
}

#[test]
fn half_open_handshakes_end_in_time_and_block_nobody() {
    let (_tree, authority, server) = with("[timeouts]\nhead = \"500ms\"\n");
    let mut silent: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(server.tls).expect("connected")).collect();
    for stream in &mut silent {
        stream.write_all(&[22, 3, 1]).expect("sent");
    }
    authority.way(&server).connect().assert_open("/hello.txt");
    let begun = Instant::now();
    for stream in &mut silent {
        read_to_end(stream);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    // The connection that asked whether the address is open went away.
    eventually("they are counted", || failed(&server, "timed_out") == 20);
    assert_eq!(server.number("/tls/in_progress"), 0);
}

#[test]
fn a_handshake_of_one_byte_at_a_time_succeeds() {
    let (_tree, authority, server) = with("");
    let client = authority.client(|_| {});
    let name = afpa_tls::machine::ServerName::try_from("localhost").expect("a name");
    let mut machine = afpa_tls::ClientMachine::new(&client, name).expect("a machine");
    let mut stream = TcpStream::connect(server.tls).expect("connected");
    stream.set_nodelay(true).expect("set");
    let (mut plain, mut out) = (Vec::new(), Vec::new());
    machine.process(&mut [], &mut plain, &mut out).expect("begun");
    let mut room = [0; 4096];
    loop {
        for byte in out.drain(..) {
            stream.write_all(&[byte]).expect("sent");
        }
        if !machine.is_handshaking() {
            break;
        }
        let n = stream.read(&mut room).expect("answered");
        assert!(n > 0, "closed");
        machine.process(&mut room[..n], &mut plain, &mut out).expect("agreed");
    }
    machine.encrypt(b"GET /hello.txt HTTP/1.0\r\n\r\n", &mut out).expect("encrypted");
    stream.write_all(&out).expect("sent");
    while !plain.ends_with(b"hello") {
        let n = stream.read(&mut room).expect("answered");
        assert!(n > 0, "closed");
        machine.process(&mut room[..n], &mut plain, &mut Vec::new()).expect("decrypted");
    }
}

#[test]
fn plain_http_is_told_what_is_wrong() {
    let (_tree, _authority, server) = with("");
    let mut stream = TcpStream::connect(server.tls).expect("connected");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("sent");
    let got = String::from_utf8(read_to_end(&mut stream)).expect("text");
    assert!(got.starts_with("HTTP/1.1 400 ") && got.ends_with("begins https://\n"), "{got}");
    let (_, body) = got.split_once("\r\n\r\n").expect("a head");
    assert!(got.contains(&format!("Content-Length: {}\r\n", body.len())), "{got}");
    eventually("it is counted", || failed(&server, "not_tls") == 1);
}

#[test]
fn garbage_ends_only_its_own_connection() {
    let (_tree, authority, server) = with("");
    let mut random = Random::new(Random::seed_or(8446));
    let way = authority.way(&server);
    let mut calm = way.connect();
    calm.assert_open("/hello.txt");
    for round in 0..60 {
        let bytes: Vec<u8> = (0..random.below(3000) + 1).map(|_| random.below(256) as u8).collect();
        let begins: &[u8] = match round % 3 {
            0 => &[22, 3, 1, 0x0b, 0xb8],
            1 => &[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
            _ => &[21, 3, 3, 0, 2, 1, 0],
        };
        let bytes = [begins, &bytes].concat();
        let mut stream = TcpStream::connect(server.tls).expect("connected");
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        read_to_end(&mut stream);
    }
    calm.assert_open("/hello.txt");
    way.connect().assert_open("/hello.txt");
}

#[test]
fn handshakes_beyond_a_limit_are_closed_and_counted() {
    const MOST: u64 = 200; // of one client
    let (_tree, authority, server) = with("[timeouts]\nhead = \"1m\"\n");
    let mut held = Vec::new();
    eventually("as many as there may be are in progress", || {
        let there = server.number("/tls/in_progress");
        // One may be refused at first: the connection that checked the start of the server may still count.
        held.extend((there..MOST).map(|_| TcpStream::connect(server.tls).expect("connected")));
        there == MOST
    });
    let before = failed(&server, "limit");
    let mut further = TcpStream::connect(server.tls).expect("connected");
    assert!(read_to_end(&mut further).is_empty());
    eventually("it is counted", || failed(&server, "limit") > before);
    drop(held);
    eventually("there is room again", || server.number("/tls/in_progress") == 0);
    authority.way(&server).connect().assert_open("/hello.txt");
}

/// TLS 1.2 has renegotiation; rustls answers it with an alert, and the connection goes on or ends.
#[test]
fn renegotiation_is_refused() {
    let (_tree, authority, server) = with("");
    let said = server.openssl(&authority, &["-tls1_2"], "R\n");
    assert!(said.contains("RENEGOTIATING"), "{said}");
    assert!(said.contains("no renegotiation") || said.contains("alert"), "{said}");
    authority.way(&server).connect().assert_open("/hello.txt");
}
