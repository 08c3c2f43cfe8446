//! Reloads under traffic: every request is answered, those in flight as they began, and a bad file
//! changes nothing.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use afpa_testkit::{Client, Server, eventually, eventually_within};
use afpa_tests::proxy::{Raw, Sample, Traffic, answer, configuration, proxy, read_head};
use rustix::process::Signal;

/// Writes a new configuration and has it read.
fn reload(server: &Server, text: &str) {
    // In one step: a signal that came before may have it read just now.
    let new = server.home().join("new.toml");
    fs::write(&new, text).expect("written");
    fs::rename(new, server.configuration()).expect("renamed");
    server.signal(Signal::HUP);
}

fn group_of(server: &Server, to: &Raw) -> String {
    configuration(server.endpoint(), &[to.to()], "")
}

/// Waits until workers have the new configuration, each at its own moment: so many connections come
/// to all of them.
#[track_caller]
fn wait_for(server: &Server, name: &str) {
    eventually_within(LONG / 2, name, || (0..20).all(|_| server.get("/").text() == name));
}

/// The names of the servers that answered the requests between two times; every request was answered.
#[track_caller]
fn answered(samples: &[Sample], from: Instant, to: Instant) -> Vec<&str> {
    let mut names = Vec::new();
    for sample in samples {
        let Ok((200, name)) = &sample.answer else { panic!("lost: {sample:?}") };
        if sample.at >= from && sample.at + sample.took <= to && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

#[test]
fn no_request_is_lost_over_many_reloads() {
    let (first, second) = (Raw::named("first"), Raw::named("second"));
    let proxy = proxy(&[first.to()], "");
    let traffic = Traffic::start(&proxy, 4, Duration::from_millis(1));
    traffic.pass(50);
    let mut times = Vec::new();
    for (to, name) in [(&second, "second"), (&first, "first")].repeat(4) {
        reload(&proxy, &group_of(&proxy, to));
        wait_for(&proxy, name);
        let from = Instant::now();
        traffic.pass(30);
        times.push((name, from, Instant::now()));
    }
    // Signals on the heels of each other; the last one wins.
    for to in [&second, &first, &second, &first, &second] {
        reload(&proxy, &group_of(&proxy, to));
    }
    wait_for(&proxy, "second");
    let samples = traffic.end();
    for (name, from, to) in times {
        assert_eq!(answered(&samples, from, to), [name]);
    }
}

#[test]
fn bad_files_change_nothing_while_traffic_runs() {
    let (first, second) = (Raw::named("first"), Raw::named("second"));
    let mut proxy = proxy(&[first.to()], "");
    let good = group_of(&proxy, &second);
    let traffic = Traffic::start(&proxy, 4, Duration::from_millis(1));
    let start = Instant::now();
    let bad = [
        good.replace("[[site]]", "[[site"),
        good.replace("to = \"app\"", "to = \"nobody\""),
        good.replace(&format!("\"{}\"", second.to()), ""),
        good.replace(&second.to(), "127.0.0.1:99999"),
        format!("{good}rooot = \"/\"\n"),
        format!("{good}root = \"/there/is/no/such/folder\"\n"),
    ];
    for (number, text) in bad.iter().enumerate() {
        assert_ne!(*text, good);
        reload(&proxy, text);
        eventually_within(LONG / 2, "the failure is told", || {
            proxy.log().matches("the running configuration stays").count() > number
        });
        assert!(proxy.is_running());
        traffic.pass(30);
    }
    let end = Instant::now();
    reload(&proxy, &good);
    wait_for(&proxy, "second");
    let samples = traffic.end();
    assert_eq!(answered(&samples, start, end), ["first"]);
}

/// A server that holds half of each exchange back until it may go on, but for requests for `/`.
struct Halves {
    server: Raw,
    begun: Arc<AtomicUsize>,
    go: Arc<AtomicBool>,
}

/// Longer than anything else here takes.
const LONG: Duration = Duration::from_secs(30);

/// Bytes of each half.
const HALF: usize = 100_000;

impl Halves {
    fn start() -> Self {
        let (begun, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, may) = (Arc::clone(&begun), Arc::clone(&go));
        let server = Raw::start(move |mut stream: TcpStream| {
            while let Some(head) = read_head(&mut stream) {
                if head.starts_with("GET / ") {
                    answer(&mut stream, 200, "halves");
                    continue;
                }
                let first = if head.starts_with("POST ") { receive(&mut stream) } else { old() };
                let length = 2 * HALF;
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                stream.write_all(head.as_bytes()).expect("taken");
                stream.write_all(&first).expect("taken");
                count.fetch_add(1, Ordering::SeqCst);
                eventually_within(LONG, "it may go on", || may.load(Ordering::SeqCst));
                let second = if first[0] == b'o' { old() } else { receive(&mut stream) };
                stream.write_all(&second).expect("taken");
            }
        });
        Self { server, begun, go }
    }
}

fn old() -> Vec<u8> {
    vec![b'o'; HALF]
}

fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut content = vec![0; HALF];
    stream.read_exact(&mut content).expect("half of the content");
    content
}

#[track_caller]
fn begin(server: &Server, halves: &Halves, request: &[u8]) -> Client {
    let before = halves.begun.load(Ordering::SeqCst);
    let mut client = server.connect();
    client.send(request);
    eventually("it has begun", || halves.begun.load(Ordering::SeqCst) > before);
    client
}

#[test]
fn what_is_half_done_is_finished_by_the_server_it_began_with() {
    let (halves, next) = (Halves::start(), Raw::named("next"));
    let proxy = proxy(&[halves.server.to()], "");
    let mut down = begin(&proxy, &halves, b"GET /down HTTP/1.1\r\nHost: site\r\n\r\n");
    let head = format!("POST /up HTTP/1.1\r\nHost: site\r\nContent-Length: {}\r\n\r\n", 2 * HALF);
    let mut up = begin(&proxy, &halves, &[head.as_bytes(), &[b'u'; HALF]].concat());

    reload(&proxy, &group_of(&proxy, &next));
    wait_for(&proxy, "next");
    reload(&proxy, "[[site]\n");
    eventually_within(LONG / 2, "the failure is told", || {
        proxy.log().contains("the running configuration stays")
    });

    halves.go.store(true, Ordering::SeqCst);
    assert_eq!(down.receive().body, [old(), old()].concat());
    up.send([b'u'; HALF]);
    let answered = up.receive();
    assert_eq!(answered.body, [b'u'; 2 * HALF]);
    // A response that began before the end of its request says `Connection: close`, and ends its connection.
    assert!(answered.says_close());
    up.assert_closed();
    // The next request of the same connection is of the new configuration.
    eventually("it goes to the next server", || down.get("/").text() == "next");
}

#[test]
fn a_tunnel_outlives_the_configuration_that_it_began_with() {
    let echo = Raw::start(|mut stream: TcpStream| {
        let Some(head) = read_head(&mut stream) else { return };
        if !head.to_ascii_lowercase().contains("\r\nupgrade: websocket\r\n") {
            answer(&mut stream, 200, "echo");
            return;
        }
        let switched = b"HTTP/1.1 101 -\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
        stream.write_all(switched).expect("taken");
        let mut byte = [0];
        while matches!(stream.read(&mut byte), Ok(1)) && stream.write_all(&byte).is_ok() {}
    });
    let next = Raw::named("next");
    let proxy = proxy(&[echo.to()], "");
    let mut client = proxy.connect();
    client.send(
        "GET / HTTP/1.1\r\nHost: site\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(read_byte(&mut client));
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    for sent in 0..10 {
        client.send([sent]);
        assert_eq!(read_byte(&mut client), sent);
        if sent == 4 {
            reload(&proxy, &group_of(&proxy, &next));
            wait_for(&proxy, "next");
        }
    }
}

#[track_caller]
fn read_byte(client: &mut Client) -> u8 {
    let mut byte = [0];
    assert_eq!(client.read_raw(&mut byte).expect("a byte"), 1, "the connection ended");
    byte[0]
}
