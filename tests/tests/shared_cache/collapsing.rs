//! One request to the server for many that wait.

use std::io::Write as _;
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use afpa_testkit::eventually_within;

use crate::origin::{Asked, Origin, Reply, message, ok};

const SOON: Duration = Duration::from_secs(20);

/// A server that answers each time the test sends on the channel.
fn held(answer: Vec<u8>) -> (Origin, mpsc::Sender<()>) {
    let (go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let origin = Origin::start(move |_| {
        let _told = wait.lock().expect("no panic").recv_timeout(SOON);
        Reply::Bytes(answer.clone())
    });
    (origin, go)
}

/// Clients of one cold URL; more with `AFPA_COLD_CLIENTS`, if there are descriptors for them.
fn clients() -> usize {
    let given = std::env::var("AFPA_COLD_CLIENTS").ok().and_then(|count| count.parse().ok());
    given.unwrap_or(400)
}

#[test]
fn many_clients_of_a_cold_url_cause_one_request() {
    let clients = clients();
    let answer = message(200, "Cache-Control: max-age=60\r\n", &"x".repeat(20_000));
    let (origin, go) = held(answer);
    let proxy = Arc::new(origin.proxy("wait = \"30s\""));
    let mut clients: Vec<_> = (0..clients).map(|_| proxy.connect()).collect();
    let all = clients.len() as u64;
    for client in &mut clients {
        client.send("GET /cold HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    eventually_within(SOON, "all have been asked for", || {
        origin.count("/cold") == 1 && in_flight(&proxy) >= all
    });
    go.send(()).expect("it waits");
    for client in &mut clients {
        assert_eq!(client.receive().body.len(), 20_000);
    }
    assert_eq!(origin.count("/cold"), 1);
}

/// Requests that a thread or a server works on.
fn in_flight(proxy: &afpa_testkit::Server) -> u64 {
    let output = proxy.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("statistics");
    stats["sites"][0]["in_flight"].as_u64().expect("a count")
}

#[test]
fn followers_have_the_answer_while_it_arrives_and_lose_nothing_with_the_first_client() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let origin = Origin::start(move |_| {
        let wait = Arc::clone(&wait);
        Reply::With(Box::new(move |stream| {
            let head =
                "HTTP/1.1 200 X\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nhalf";
            let _written = stream.write_all(head.as_bytes());
            let _told = wait.lock().expect("no panic").recv_timeout(SOON);
            let _written = stream.write_all(b"half");
        }))
    });
    let proxy = origin.proxy("wait = \"30s\"");
    let mut first = proxy.connect();
    first.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually_within(SOON, "it is asked for", || origin.count("/") == 1);
    let mut second = proxy.connect();
    second.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut begun = Vec::new();
    while !begun.ends_with(b"half") {
        begun.extend(second.take(1));
    }
    drop(first);
    let mut third = proxy.connect();
    third.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut begun = Vec::new();
    while !begun.ends_with(b"half") {
        begun.extend(third.take(1));
    }
    go.send(()).expect("it waits");
    assert_eq!(second.take(4), b"half");
    assert_eq!(third.take(4), b"half");
    assert_eq!(proxy.get("/").text(), "halfhalf");
    assert_eq!(origin.count("/"), 1);
}

/// The length is not known, so requests that follow have no part of the answer yet that would have to be broken off.
#[test]
fn an_answer_that_grows_beyond_the_limit_is_whole_for_everybody() {
    const CHUNKS: usize = 50;
    let chunks = |count| format!("3e8\r\n{}\r\n", "x".repeat(1000)).repeat(count);
    let head = "HTTP/1.1 200 X\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let origin = Origin::start(move |asked: &Asked| {
        let (wait, is_first) = (Arc::clone(&wait), asked.number == 1);
        Reply::With(Box::new(move |stream| {
            let _written = stream.write_all(format!("{head}{}", chunks(1)).as_bytes());
            if is_first {
                let _told = wait.lock().expect("no panic").recv_timeout(SOON);
            }
            let rest = format!("{}0\r\n\r\n", chunks(CHUNKS - 1));
            let _written = stream.write_all(rest.as_bytes());
        }))
    });
    let proxy = origin.proxy("wait = \"30s\"\nmax_object = \"16KiB\"");
    let mut clients = [proxy.connect(), proxy.connect(), proxy.connect()];
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually_within(SOON, "the server was asked", || origin.count("/") >= 1);
    }
    // A request that has waited for too long by now has been sent to the server by itself.
    go.send(()).expect("it waits");
    for client in &mut clients {
        assert_eq!(client.receive().body.len(), CHUNKS * 1000);
    }
}

#[test]
fn what_cannot_be_kept_is_not_waited_for_twice() {
    const CLIENTS: usize = 8;
    let together = Arc::new(Barrier::new(CLIENTS));
    let meet = Arc::clone(&together);
    let origin = Origin::start(move |asked: &Asked| {
        // The first answer says that it cannot be kept; the requests after it must come at the same time.
        if asked.number > 1 {
            meet.wait();
        }
        ok("Cache-Control: private\r\n", "mine")
    });
    let proxy = origin.proxy("wait = \"30s\"");
    assert_eq!(proxy.get("/").text(), "mine");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.receive().text(), "mine");
    }
}

/// Each has asked in a name of its own, which the server answers with. The first answer tells that it is not for others when
/// all of them wait for it.
#[test]
fn clients_that_wait_for_what_turns_out_private_get_answers_of_their_own() {
    const CLIENTS: usize = 6;
    let kinds = [
        ("/private", "Cache-Control: private, max-age=60\r\n"),
        ("/no-store", "Cache-Control: no-store\r\n"),
        ("/no-cache", "Cache-Control: no-cache\r\n"),
        ("/set-cookie", "Cache-Control: private\r\nSet-Cookie: a=b\r\n"),
        ("/star", "Cache-Control: max-age=60\r\nVary: *\r\n"),
        ("/vary", "Cache-Control: max-age=60\r\nVary: X-Name\r\n"),
        ("/nothing", ""),
        ("/outdated", "Cache-Control: max-age=60\r\nAge: 100\r\n"),
    ];
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let origin = Origin::start(move |asked: &Asked| {
        if asked.number == 1 {
            let _told = wait.lock().expect("no panic").recv_timeout(SOON);
        }
        let fields = kinds.iter().find(|(target, _)| *target == asked.target);
        ok(fields.expect("one of them").1, &asked.field("X-Name").expect("a name"))
    });
    let proxy = origin.proxy("wait = \"30s\"");
    for (target, fields) in kinds {
        let mut clients: Vec<_> = (0..CLIENTS).map(|_| proxy.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\nX-Name: {number}\r\n\r\n"));
        }
        eventually_within(SOON, "all have been asked for", || {
            origin.count(target) == 1 && in_flight(&proxy) >= CLIENTS as u64
        });
        go.send(()).expect("it waits");
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.receive().text(), number.to_string(), "{target}: {fields:?}");
        }
        eventually_within(SOON, "they are done", || in_flight(&proxy) == 0);
    }
}

#[test]
fn a_wait_has_an_end() {
    let (origin, go) = held(message(200, "Cache-Control: max-age=60\r\n", "late"));
    let proxy = origin.proxy("wait = \"100ms\"");
    let mut clients: Vec<_> = (0..2).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    eventually_within(SOON, "the second one asks itself", || origin.count("/") == 2);
    go.send(()).expect("it waits");
    go.send(()).expect("it waits");
    for client in &mut clients {
        assert_eq!(client.receive().text(), "late");
    }
}

#[test]
fn a_slow_client_holds_nobody_up() {
    let content = "x".repeat(3 << 20);
    let answer = message(200, "Cache-Control: max-age=60\r\n", &content);
    let origin = Origin::start(move |_| Reply::Bytes(answer.clone()));
    let proxy = origin.proxy("");
    let mut slow = afpa_testkit::Client::connect_narrow(proxy.address(), 8192).expect("connected");
    slow.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually_within(SOON, "it is asked for", || origin.count("/") == 1);
    assert_eq!(proxy.get("/").body.len(), content.len());
    assert_eq!(origin.count("/"), 1);
    assert_eq!(slow.receive().body.len(), content.len());
}

/// A server whose answer to each request begins with the number of the request, and never ends. The channel says when its
/// client has gone.
fn endless(kind: &'static str) -> (Origin, mpsc::Receiver<()>) {
    let (gone, told) = mpsc::channel();
    let origin = Origin::start(move |asked: &Asked| {
        let (gone, number) = (gone.clone(), asked.number);
        Reply::With(Box::new(move |stream| {
            let head = format!(
                "HTTP/1.1 200 X\r\nContent-Type: {kind}\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\
                 Transfer-Encoding: chunked\r\n\r\n3\r\n<{number}>\r\n"
            );
            let _written = stream.write_all(head.as_bytes());
            while stream.write_all(b"1\r\n.\r\n").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _nobody = gone.send(());
        }))
    });
    (origin, told)
}

#[test]
fn nobody_waits_for_what_may_never_end_and_its_server_hears_when_its_client_goes() {
    for kind in ["text/event-stream; charset=utf-8", "Text/Event-Stream", "application/x-ndjson"] {
        let (origin, told) = endless(kind);
        let proxy = origin.proxy("wait = \"60s\"");
        let mut clients = [proxy.connect(), proxy.connect(), proxy.connect()];
        for (client, number) in clients.iter_mut().zip(1..) {
            client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
            let mut begun = Vec::new();
            while !begun.ends_with(format!("<{number}>").as_bytes()) {
                begun.extend(client.take(1));
            }
        }
        for client in clients {
            drop(client);
            told.recv_timeout(SOON).unwrap_or_else(|_| panic!("a server of {kind} goes on"));
        }
    }
}

#[test]
fn who_asks_for_events_does_not_wait_for_the_head_of_others() {
    let (origin, go) = held(message(200, "Content-Type: text/event-stream\r\n", ": late\n\n"));
    let proxy = origin.proxy("wait = \"60s\"");
    let mut clients: Vec<_> = (0..2).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: test\r\nAccept: text/html, text/event-stream\r\n\r\n");
    }
    eventually_within(SOON, "each asks itself", || origin.count("/") == 2);
    clients.iter().for_each(|_| go.send(()).expect("it waits"));
}
