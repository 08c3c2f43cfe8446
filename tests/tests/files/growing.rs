//! Files that grow while they are sent: the announced bytes have not changed, and all of them come.

use std::fs::{self, File};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_testkit::{Client, Server, Tree, tree::patterned};
use afpa_tests::h2::{H2Client, request};
use afpa_tests::tls::{Authority, TlsServer};

use crate::serve;

/// More than the sockets between two processes hold.
const LARGE: usize = 12_000_000;

/// Bytes that are written behind a log.
const MOST: usize = 3_000_000;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("log.bin", patterned(LARGE));
    tree
}

fn log_of(tree: &Tree) -> File {
    File::options().append(true).open(tree.at("log.bin")).expect("open")
}

/// Writes behind what is there, several times, each in a tick of its own.
fn grow(log: &mut File) {
    for _ in 0..3 {
        log.write_all(b"another line\n").expect("written");
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// A client that has asked, read the head and the first bytes, and stopped.
fn stalled(client: &mut Client, lines: &str) -> Vec<u8> {
    client.send(format!("GET /log.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{lines}\r\n"));
    client.take(50_000)
}

fn content(mut got: Vec<u8>, rest: Vec<u8>) -> Vec<u8> {
    got.extend(rest);
    let end = got.windows(4).position(|window| window == b"\r\n\r\n").expect("end of the head");
    got.split_off(end + 4)
}

fn narrow(server: &Server) -> Client {
    Client::connect_narrow(server.address(), 4096).expect("connect")
}

#[test]
fn a_file_that_grows_is_sent_as_it_was_announced() {
    let tree = site();
    let (server, mut log) = (serve(&tree), log_of(&tree));
    let large = patterned(LARGE);
    for (lines, expected) in [("", &large[..]), ("Range: bytes=1000-\r\n", &large[1000..])] {
        // The log was written before: its first bytes are the same.
        let mut client = narrow(&server);
        let got = stalled(&mut client, lines);
        grow(&mut log);
        let more = client.take(2_000_000);
        grow(&mut log);
        let rest = client.read_to_close().expect("the end");
        let body = content(got, [more, rest].concat());
        assert!(body.len() >= expected.len(), "{} of {} bytes", body.len(), expected.len());
        assert!(body[..expected.len()] == *expected, "{lines:?}");
    }
}

#[test]
fn a_file_that_grows_is_sent_whole_by_tls_and_by_http2() {
    let (tree, authority) = (site(), Authority::new());
    let mut log = log_of(&tree);
    let server = TlsServer::start(&authority, tree.path());
    let way = authority.way(&server);
    let mut client = way.connect();
    let got = stalled(&mut client, "");
    grow(&mut log);
    let body = content(got, client.take_all());
    assert!(body.get(..LARGE) == Some(&patterned(LARGE)[..]), "{} bytes", body.len());

    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("http2.cleartext", true);
        });
    });
    let mut client = H2Client::connect(&server);
    client.opens_windows = false;
    let id = client.request(&request("GET", "/log.bin"), b"");
    client.until("the window is full", |client| client.so_far(id).body.len() >= 65_535);
    grow(&mut log);
    client.opens_windows = true;
    client.open_wide();
    let response = client.response(id);
    let announced = response.field("content-length").map(str::to_owned);
    assert_eq!(announced, Some(response.body.len().to_string()));
    assert!(response.body.get(..LARGE) == Some(&patterned(LARGE)[..]));
}

#[test]
fn a_file_that_is_written_anew_while_it_is_sent_ends_early() {
    let large = patterned(LARGE);
    for (what, length) in [("shorter", LARGE / 2), ("as long", LARGE), ("longer", LARGE + 5000)] {
        let tree = site();
        let server = serve(&tree);
        let mut client = narrow(&server);
        let got = stalled(&mut client, "");
        fs::write(tree.at("log.bin"), vec![b'n'; length]).expect("written");
        let body = content(got, client.read_to_close().unwrap_or_default());
        assert!(body.len() < LARGE, "{what}: all came");
        // The queue of the socket may refer to the pages of the file, so that bytes of both versions come.
        let is_one = |byte: (&u8, &u8)| byte.0 == byte.1 || *byte.0 == b'n';
        assert!(body.iter().zip(&large).all(is_one), "{what}: neither of the versions");
    }
}

/// Small ones are read into memory, large ones are sent from the file.
#[test]
fn a_log_that_is_written_all_the_time_is_served() {
    for first in [1000, 600_000] {
        let tree = Tree::new();
        let line = b"a line of a log that is written without a pause\n";
        let content = line.repeat(first / line.len());
        tree.file("log.txt", &content);
        let server = serve(&tree);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let log = File::options().append(true).open(tree.at("log.txt"));
                let mut log = log.expect("open");
                for _ in 0..MOST / line.len() {
                    log.write_all(line).expect("written");
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            let mut client = server.connect();
            let mut longest = 0;
            // On a busy machine the writer may begin late.
            let patience = Instant::now() + Duration::from_secs(30);
            for round in 0.. {
                let has_grown = longest > content.len();
                if round >= 10 && (has_grown || Instant::now() > patience) {
                    break;
                }
                let response = client.get("/log.txt");
                // The last line may be half there: a write becomes visible page by page.
                let is_line = |got: &[u8]| line.starts_with(got);
                if response.status != 200 || !response.body.chunks(line.len()).all(is_line) {
                    ended.store(true, Ordering::Relaxed);
                    panic!("round {round}: {} and {} bytes", response.status, response.body.len());
                }
                longest = longest.max(response.body.len());
            }
            ended.store(true, Ordering::Relaxed);
            assert!(longest > content.len(), "it has grown");
        });
    }
}
