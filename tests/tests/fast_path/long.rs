//! Answers of several segments.

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use afpa_netlab::Bed;
use afpa_testkit::tree::patterned;
use afpa_testkit::{Client, Launch, Response, Tree, eventually, eventually_within};
use afpa_tests::codings::settle;

use crate::lab::{Lab, PORT, answers, is_from_kernel, stats, warm};

const SIZES: [usize; 9] = [1_300, 1_461, 2_896, 4_096, 8_192, 14_336, 20_001, 32_768, 65_536];

fn long(launch: &mut Launch) {
    launch.set(|settings| {
        settings.set("fast_path.answer_max", "\"68KiB\"");
    });
}

fn site() -> Tree {
    let tree = Tree::new();
    for size in SIZES {
        tree.file(format!("{size}.png"), patterned(size));
    }
    tree.file("text.css", "a { color: #012345 }\n".repeat(2000));
    tree
}

fn address() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Bed::SERVER_V4), PORT)
}

/// A client that takes little before the test reads from it.
fn narrow() -> Client {
    Client::connect_narrow(address(), 4096).expect("connected")
}

fn request(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n")
}

fn compared(mut response: Response) -> Response {
    assert!(response.field("Date").is_some(), "{response:?}");
    response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("Date"));
    response
}

#[test]
fn long_answers_are_the_same_with_and_without() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let with = lab.server(&tree, long);
    let without = lab.server_on(PORT + 1, &tree, |_| ());
    let mut kernel = with.connect();
    let mut user = without.connect();
    let mut targets: Vec<_> = SIZES.iter().map(|size| format!("/{size}.png")).collect();
    targets.push("/text.css".to_owned());
    settle(&with, &targets);
    settle(&without, &targets);
    for target in &targets {
        warm(&with, target);
    }
    for target in &targets {
        let etag = without.get(target).field("ETag").expect("a tag").to_owned();
        let lines = [
            String::new(),
            "Accept-Encoding: gzip, deflate, br, zstd\r\n".to_owned(),
            format!("If-None-Match: {etag}\r\n"),
            "If-None-Match: \"other\"\r\n".to_owned(),
        ];
        for (method, lines) in
            ["GET", "HEAD"].iter().flat_map(|m| lines.iter().map(move |l| (m, l)))
        {
            let before = answers(&with);
            let request = format!("{method} {target} HTTP/1.1\r\nHost: test\r\n{lines}\r\n");
            let [one, other] =
                [&mut kernel, &mut user].map(|client| compared(client.exchange(&request)));
            assert_eq!(one, other, "{request}");
            assert_eq!(answers(&with), before + 1, "{request} was answered by user mode");
        }
        // Parts of it are user mode's, and the connection comes back from there.
        let range = format!("GET {target} HTTP/1.1\r\nHost: test\r\nRange: bytes=1-999\r\n\r\n");
        assert_eq!(kernel.exchange(&range).status, 206);
    }
    eventually("every answer is at its end", || stats(&with)["fast_path"]["transfers"] == 0);
}

#[test]
fn more_requests_in_one_segment_are_answered_in_order() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, long);
    SIZES.iter().for_each(|size| warm(&server, &format!("/{size}.png")));
    let mut client = server.connect();
    for round in 0..10 {
        let sizes = [SIZES[8], SIZES[round % SIZES.len()], SIZES[0], SIZES[7]];
        // The second comes while the first is under way; the last two are pipelined.
        client.send(request(&format!("/{}.png", sizes[0])));
        client.send(request(&format!("/{}.png", sizes[1])));
        client.send([2, 3].map(|at| request(&format!("/{}.png", sizes[at]))).concat());
        for size in sizes {
            let response = client.receive();
            assert_eq!((response.status, response.body.len()), (200, size), "round {round}");
            assert!(response.body == patterned(size), "round {round}, {size}");
        }
    }
}

/// The version that was begun is brought to its end; the next answer is the new one.
#[test]
fn a_file_that_is_replaced_under_way() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    let versions = [b'a', b'b', b'c', b'd'].map(|letter| vec![letter; 65_000]);
    tree.file("file.png", &versions[0]);
    let server = lab.server(&tree, long);
    for pair in versions.windows(2) {
        warm(&server, "/file.png");
        let mut client = narrow();
        client.send(request("/file.png"));
        eventually("it is under way", || stats(&server)["fast_path"]["transfers"] == 1);
        tree.replace("file.png", &pair[1]);
        eventually("the new version is there", || server.get("/file.png").body == pair[1]);
        let held = stats(&server)["fast_path"]["retired_bytes"].as_u64().expect("a size");
        assert!(held >= 65_000, "{held}");
        let response = client.receive();
        assert!(response.body == pair[0], "{} bytes", response.body.len());
        client.send(request("/file.png"));
        assert!(client.receive().body == pair[1]);
    }
}

/// The fast path waits for clients that do not read, and they hold up nobody else.
#[test]
fn clients_that_do_not_read_for_a_while() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, long);
    warm(&server, "/65536.png");
    let mut sleepers: Vec<_> = (0..20).map(|_| narrow()).collect();
    sleepers.iter_mut().for_each(|client| client.send(request("/65536.png")));
    thread::sleep(Duration::from_millis(700));
    let mut other = server.connect();
    for _ in 0..20 {
        assert!(is_from_kernel(&server, &mut other, "/65536.png"));
    }
    for client in &mut sleepers {
        assert!(client.receive().body == patterned(65_536));
    }
    eventually("all of it is taken", || stats(&server)["fast_path"]["transfers"] == 0);
}

/// A client that goes leaves nothing behind.
#[test]
fn clients_that_go_under_way() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, long);
    warm(&server, "/65536.png");
    for number in 0..20 {
        let mut client = narrow();
        client.send(request("/65536.png"));
        match number % 2 {
            0 => client.abort().expect("reset"),
            _ => drop(client),
        }
    }
    eventually_within(Duration::from_secs(20), "nothing is under way", || {
        stats(&server)["fast_path"]["transfers"] == 0
    });
    assert!(server.get("/65536.png").body == patterned(65_536));
}

/// A half-closed connection is still owed its answer.
#[test]
fn clients_that_have_nothing_more_to_say() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, long);
    warm(&server, "/65536.png");
    for _ in 0..5 {
        let mut client = narrow();
        client.send(request("/65536.png"));
        client.finish_sending().expect("half closed");
        assert!(client.receive().body == patterned(65_536));
        client.assert_closed();
    }
}

/// Whenever the process ends, each response is right as far as it comes.
#[test]
fn an_end_of_the_process_under_way() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    for _ in 0..3 {
        let mut server = lab.server(&tree, long);
        warm(&server, "/65536.png");
        let mut clients: Vec<_> = (0..10).map(|_| narrow()).collect();
        clients.iter_mut().for_each(|client| client.send(request("/65536.png")));
        // The rest may be under way, or in the buffers of clients already: some kernels count such segments as small there.
        clients[0].tcp().peek(&mut [0]).expect("an answer begins");
        server.kill();
        let readers: Vec<_> = clients
            .into_iter()
            .map(|client| thread::spawn(move || as_far_as_it_comes(client)))
            .collect();
        for reader in readers {
            let got = reader.join().expect("a client reads");
            let head = end_of_head(&got);
            let body = &got[head..];
            assert!(head > 0 && patterned(65_536).starts_with(body), "{} bytes", body.len());
        }
    }
}

fn end_of_head(got: &[u8]) -> usize {
    got.windows(4).position(|end| end == b"\r\n\r\n").map_or(0, |at| at + 4)
}

/// An answer of 64 KiB, to its end or that of the connection. Nobody ends a connection that began without a socket, of a
/// client that was known.
fn as_far_as_it_comes(mut client: Client) -> Vec<u8> {
    let mut got = Vec::new();
    let mut buffer = [0; 8192];
    while got.len() < end_of_head(&got) + 65_536
        && let Ok(count @ 1..) = client.read_raw(&mut buffer)
    {
        got.extend_from_slice(&buffer[..count]);
    }
    got
}

/// Room goes to the objects that save the most time for each byte, in any order of arrival.
#[test]
fn room_goes_to_what_is_asked_for() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    (0..40).for_each(|number| _ = tree.file(format!("{number}.png"), patterned(20_000 + number)));
    let server = lab.server(&tree, |launch| {
        long(launch);
        launch.set(|settings| {
            settings.set("fast_path.memory", "\"512KiB\"");
        });
    });
    let mut client = server.connect();
    (0..40).for_each(|number| _ = client.get(&format!("/{number}.png")));
    let seen = &stats(&server)["fast_path"];
    let pinned = seen["objects"].as_u64().expect("a count");
    assert!(pinned < 20 && seen["objects_left"]["full"] == 40 - pinned, "{seen}");
    eventually_within(Duration::from_secs(40), "the kernel answers for the last one", || {
        (0..50).for_each(|_| _ = client.get("/39.png"));
        thread::sleep(Duration::from_millis(100));
        // On one that was not left to user mode after so many requests that were none of the kernel's.
        is_from_kernel(&server, &mut server.connect(), "/39.png")
    });
    let seen = &stats(&server)["fast_path"];
    let first = &seen["most_useful_objects"][0];
    assert!(first["path"] == "/39.png" && first["in_kernel"] == true, "{seen}");
    assert!(seen["objects_left"]["put_aside"].as_u64() >= Some(1), "{seen}");
}
