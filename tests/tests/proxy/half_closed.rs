//! Clients that send nothing more behind their last request: they are owed their answers (docs/rules/upstream.md, U5).

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afpa_testkit::tree::patterned;
use afpa_testkit::{Client, Server, Tree, eventually, skip};
use afpa_tests::proxy::{Raw, answer, configuration, read_content, read_head, server_row};

/// A proxy that waits in this way; `None` where the system forbids it.
fn proxy(io: &str, server: &Raw, settings: &str) -> Option<Server> {
    let proxy = Server::start("/", |launch| {
        let servers = [server.to()];
        launch.written(|listen| {
            let rest = configuration(listen, &servers, settings);
            format!("workers = 1\nengine.io = \"{io}\"\n{rest}")
        });
    });
    let refuses = proxy.summary("waiting").contains("refuses io_uring");
    (!refuses).then_some(proxy)
}

/// A server that takes its time, so that the client's end comes before the answer, and sends the content back.
fn slow_echo() -> Raw {
    Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let Some(content) = read_content(&mut stream, &head) else { return };
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            std::thread::sleep(Duration::from_millis(50));
            if !answer(&mut stream, 200, &format!("{path} {content}")) {
                return;
            }
        }
    })
}

/// Sends these bytes and the end, and returns all that comes.
fn all_for(proxy: &Server, bytes: &[u8]) -> String {
    let mut client = proxy.connect();
    client.send(bytes);
    client.finish_sending().expect("half closed");
    let all = client.read_to_close().expect("an orderly end");
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn a_client_that_has_sent_all_gets_all_answers() {
    let server = slow_echo();
    for io in ["readiness", "completion"] {
        let Some(proxy) = proxy(io, &server, "") else { skip!("the system refuses io_uring") };
        // The ring is for connections that were used before.
        for warm in [false, true] {
            for (request, ends) in [
                ("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n", &["/1 "][..]),
                ("GET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", &["/2 "]),
                ("GET /3 HTTP/1.0\r\n\r\n", &["/3 "]),
                ("POST /4 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", &["/4 abc"]),
                (
                    "POST /5 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                    &["3\r\nabc\r\n0\r\n\r\n"],
                ),
                (
                    "GET /6 HTTP/1.1\r\nHost: h\r\n\r\nGET /7 HTTP/1.1\r\nHost: h\r\n\r\n",
                    &["/6 ", "/7 "],
                ),
            ] {
                let mut bytes = request.as_bytes().to_vec();
                let mut expected = ends.len();
                if warm {
                    let first = b"GET /0 HTTP/1.1\r\nHost: h\r\n\r\n".repeat(3);
                    bytes = [first, bytes].concat();
                    expected += 3;
                }
                let all = all_for(&proxy, &bytes);
                let whole = all.matches(" 200 ").count();
                assert_eq!(whole, expected, "{io}, {warm}, {request:?}: {all:?}");
                for end in ends {
                    assert!(all.contains(end), "{io}, {warm}, {request:?}: {all:?}");
                }
            }
        }
    }
}

/// By the time of the answer the end has come, and been seen. The answer is longer than the socket takes at once.
#[test]
fn a_long_answer_comes_as_a_whole() {
    let content = patterned(3_000_000);
    let sent = content.clone();
    let server = Raw::start(move |mut stream| {
        while read_head(&mut stream).is_some() {
            std::thread::sleep(Duration::from_millis(50));
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", sent.len());
            if stream.write_all(&[head.as_bytes(), &sent].concat()).is_err() {
                return;
            }
        }
    });
    for io in ["readiness", "completion"] {
        let Some(proxy) = proxy(io, &server, "") else { skip!("the system refuses io_uring") };
        let mut client = Client::connect_narrow(proxy.address(), 4096).expect("connected");
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        client.finish_sending().expect("half closed");
        assert!(client.receive().body == content, "{io}");
        assert!(client.take_all().is_empty(), "{io}: an orderly end");
    }
}

#[test]
fn files_come_as_a_whole() {
    let tree = Tree::new();
    tree.file("small.txt", "small");
    tree.file("large.bin", patterned(3_000_000));
    for io in ["readiness", "completion"] {
        let server = Server::start(tree.path(), |launch| {
            launch.arg("--io").arg(io);
        });
        for _ in 0..2 {
            let mut client = server.connect();
            client.send("GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n".repeat(3));
            client.finish_sending().expect("half closed");
            let all = client.read_to_close().expect("an orderly end");
            let all = String::from_utf8_lossy(&all).into_owned();
            assert_eq!(all.matches("\r\n\r\nsmall").count(), 3, "{io}: {all:?}");
            let mut client = server.connect();
            client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
            client.finish_sending().expect("half closed");
            assert!(client.receive().body == patterned(3_000_000), "{io}");
            assert!(client.take_all().is_empty(), "{io}: an orderly end");
        }
    }
}

/// A request waits for its turn, and its client sends nothing more meanwhile.
#[test]
fn a_client_in_the_queue_is_answered_too() {
    let server = slow_echo();
    let one = format!("{{ to = \"{}\", max_connections = 1 }}", server.to());
    let proxy = Server::start("/", |launch| {
        launch.written(|listen| configuration(listen, &[one], ""));
    });
    let mut clients: Vec<Client> = (0..4).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send("GET /q HTTP/1.1\r\nHost: h\r\n\r\n");
        client.finish_sending().expect("half closed");
    }
    for client in &mut clients {
        assert_eq!(client.receive().text(), "/q ");
    }
}

/// A reset says that the client is gone; and where `half_closed` says so, an end does.
#[test]
fn a_client_that_is_gone_ends_its_request() {
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&asked);
    let server = Raw::start(move |mut stream| {
        while read_head(&mut stream).is_some() {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    });
    for (settings, resets) in
        [("", true), ("[server_group.connections]\nhalf_closed = \"cancel\"\n", false)]
    {
        for io in ["readiness", "completion"] {
            let Some(proxy) = proxy(io, &server, settings) else { skip!("no io_uring") };
            let before = asked.load(Ordering::Relaxed);
            let mut client = proxy.connect();
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            eventually("it is asked", || asked.load(Ordering::Relaxed) > before);
            match resets {
                true => client.abort().expect("reset"),
                false => client.finish_sending().expect("half closed"),
            }
            eventually("the request has ended", || {
                let row = server_row(&proxy, &server.to());
                row["in_flight"] == 0 && row["closed_by_us"] == 1
            });
        }
    }
}
