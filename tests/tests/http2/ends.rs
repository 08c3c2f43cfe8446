//! How connections end: draining, time-outs, a broken rule.

use std::time::{Duration, Instant};

use afpa_h2::frame::{kind, setting};
use afpa_testkit::{Server, eventually, skip, tree::patterned};
use afpa_tests::h2::{H2Client, request};
use rustix::process::Signal;

use crate::{LARGE, server, server_with, site};

#[test]
fn a_drain_finishes_what_was_asked_for() {
    let tree = site();
    let mut server = server(&tree);
    let mut client = H2Client::connect(&server);
    client.opens_windows = false;
    let mut idle = H2Client::connect(&server);
    assert_eq!(idle.get("/hello.txt").status, 200);
    let id = client.request(&request("GET", "/large.bin"), b"");
    client.until("the window is full", |client| client.so_far(id).body.len() >= 65_535);
    server.signal(Signal::QUIT);
    client.until("it is told", |client| client.goaway.is_some());
    assert_eq!(client.goaway, Some((0x7fff_ffff, 0)), "for no stream in particular");
    client.until("the PING has gone round", |client| client.goaway == Some((id, 0)));
    assert_eq!(idle.end(), Some((1, 0)));
    assert!(server.is_running(), "the download is not over");
    client.frame(kind::WINDOW_UPDATE, 0, 0, &0x3fff_0000_u32.to_be_bytes());
    client.frame(kind::WINDOW_UPDATE, 0, id, &0x3fff_0000_u32.to_be_bytes());
    assert!(client.response(id).body == patterned(LARGE));
    client.end();
    let status = server.wait(Duration::from_secs(10)).expect("it ends");
    assert!(status.success(), "{status:?}");
}

#[test]
fn an_idle_connection_is_told_and_closed() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.idle_time(Duration::from_secs(1));
    });
    let mut client = H2Client::connect(&server);
    let begun = Instant::now();
    assert_eq!(client.get("/hello.txt").status, 200);
    assert_eq!(client.end(), Some((1, 0)));
    assert!(begun.elapsed() >= Duration::from_millis(700), "{:?}", begun.elapsed());
}

#[test]
fn a_client_that_asks_for_nothing_is_idle_whatever_else_it_says() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.idle_time(Duration::from_secs(1));
    });
    let mut client = H2Client::connect(&server);
    assert_eq!(client.get("/hello.txt").status, 200);
    let mut ping = Vec::new();
    afpa_h2::frame::put(&mut ping, kind::PING, 0, 0, b"are you?");
    let mut tries = 0;
    eventually("the connection is closed", || {
        tries += 1;
        // A few in a second are no flood.
        tries % 16 == 0 && client.try_send(&ping).is_err()
    });
    client.is_silent = true;
    assert!(client.end().is_none_or(|(_, code)| code == 0), "{:?}", client.goaway);
}

#[test]
fn a_head_that_does_not_become_complete_ends_the_connection() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.head_time(Duration::from_secs(1));
    });
    // Neither a preface, nor a frame, nor a field block may stay unfinished.
    let mut silent = H2Client::begin(server.address());
    silent.send(&afpa_h2::PREFACE[..20]);
    let mut part = H2Client::connect(&server);
    part.send(&[0, 0, 10, 1, 4]);
    let mut block = H2Client::connect(&server);
    block.frame(kind::HEADERS, 0, 1, &[0x82]);
    for client in [&mut silent, &mut part, &mut block] {
        client.is_silent = true;
        let (_, code) = client.end().expect("GOAWAY");
        assert_eq!(code, 0);
    }
}

#[test]
fn a_stream_whose_window_stays_closed_is_reset_and_others_go_on() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.write_time(Duration::from_millis(400));
    });
    let settings = [(setting::INITIAL_WINDOW_SIZE, 0)];
    let mut client = H2Client::connect_with(server.address(), &settings);
    let id = client.request(&request("GET", "/large.bin"), b"");
    assert_eq!(client.whole(id).reset, Some(8));
    assert_eq!(client.get("/empty.txt").status, 200);
}

#[test]
fn a_stream_that_waits_for_others_has_time_as_long_as_they_move_on() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.write_time(Duration::from_secs(2));
    });
    let mut client = H2Client::connect(&server);
    client.opens_windows = false;
    let wide = 0x3fff_0000_u32.to_be_bytes();
    // The windows of both are wide open, and the connection's opens a little every 200 ms, for the urgent one alone.
    client.frame(kind::SETTINGS, 0, 0, &[&[0, 4], &wide[..]].concat());
    let mut urgent = request("GET", "/large.bin");
    urgent.push(("priority", "u=0"));
    let urgent = client.request(&urgent, b"");
    client.until("it fills the window", |client| client.so_far(urgent).body.len() == 65_535);
    let mut patient = request("GET", "/large.bin");
    patient.push(("priority", "u=7"));
    let patient = client.request(&patient, b"");
    let mut last = Instant::now();
    for round in 1..=10 {
        std::thread::sleep(Duration::from_millis(250));
        if last.elapsed() > Duration::from_secs(1) {
            skip!("this machine stood still for a second, so the client was too slow indeed");
        }
        last = Instant::now();
        client.frame(kind::WINDOW_UPDATE, 0, 0, &10_000_u32.to_be_bytes());
        let length = 65_535 + round * 10_000;
        client.until("it goes on", |client| client.so_far(urgent).body.len() == length);
    }
    assert_eq!(client.so_far(patient).reset, None);
    client.frame(kind::WINDOW_UPDATE, 0, 0, &wide);
    assert!(client.response(urgent).body == patterned(LARGE));
    assert!(client.response(patient).body == patterned(LARGE));
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let tree = site();
    let server = server_with(&tree, |settings| {
        settings.write_time(Duration::from_secs(2));
    });
    let mut client = H2Client::connect(&server);
    client.open_wide();
    client.ping();
    assert_eq!(connections(&server), 1);
    let ids: Vec<u32> =
        (0..20).map(|_| client.request(&request("GET", "/large.bin"), b"")).collect();
    client
        .until("content comes", |client| ids.iter().any(|id| !client.so_far(*id).body.is_empty()));
    // Nothing is read from here on.
    eventually("the connection is closed", || connections(&server) == 0);
}

/// How many sockets of the server are connected to a client.
fn connections(server: &Server) -> usize {
    let port = format!(":{:04X}", server.address().port());
    let table = std::fs::read_to_string("/proc/net/tcp").expect("the sockets of this namespace");
    let of_server = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next(), fields.nth(1));
        // An inode: a process has it open.
        let is_open = fields.nth(5).is_some_and(|inode| inode != "0");
        is_open && state == Some("01") && local.is_some_and(|local| local.ends_with(&port))
    };
    table.lines().filter(of_server).count()
}

#[test]
fn a_broken_rule_ends_the_connection_with_its_name() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    assert_eq!(client.get("/hello.txt").status, 200);
    client.frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]);
    assert_eq!(client.end(), Some((1, 1)));
    let mut client = H2Client::connect(&server);
    client.frame(kind::HEADERS, 5, 1, &[0xff; 5]);
    assert_eq!(client.end(), Some((1, 9)));
}

#[test]
fn a_stream_that_its_client_resets_leaves_nothing_behind() {
    let tree = site();
    let server = server(&tree);
    let mut client = H2Client::connect(&server);
    client.opens_windows = false;
    let process = server.process();
    let id = client.request(&request("GET", "/large.bin"), b"");
    client.until("the window is full", |client| client.so_far(id).body.len() >= 65_535);
    client.frame(kind::RST_STREAM, 0, id, &8_u32.to_be_bytes());
    client.frame(kind::WINDOW_UPDATE, 0, 0, &1_000_000_u32.to_be_bytes());
    client.opens_windows = true;
    assert_eq!(client.get("/medium.bin").body.len(), 100_000);
    assert!(process.descriptors().is_ok());
    assert_eq!(client.so_far(id).body.len(), 65_535, "nothing more has come");
}
