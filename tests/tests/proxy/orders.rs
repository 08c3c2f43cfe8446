//! Orders to the servers behind a running proxy: `afpa server drain` and `afpa server ready`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use afpa_testkit::{Server, eventually_within};
use afpa_tests::proxy::{Raw, answer, proxy, read_head, server_row, state};

/// The names of the servers that answer a few requests.
fn answering(server: &Server) -> BTreeSet<Vec<u8>> {
    let mut client = server.connect();
    (0..6).map(|_| client.get("/").body).collect()
}

fn order(server: &Server, words: &[&str]) -> (bool, String) {
    let output = server.command(&[&["server"], words].concat());
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).expect("text"))
}

fn both(names: [&str; 2]) -> BTreeSet<Vec<u8>> {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

#[test]
fn a_server_gets_no_requests_from_the_order_to_drain_until_it_is_ready() {
    let (one, other) = (Raw::named("one"), Raw::named("other"));
    let server = proxy(&[one.to(), other.to()], "");
    assert_eq!(answering(&server), both(["one", "other"]));

    let (done, said) = order(&server, &["drain", &one.to()]);
    assert!(done && said == format!("{} of app drains\n", one.to()), "{said}");
    assert_eq!(answering(&server), both(["other", "other"]));
    assert_eq!(state(&server, &one.to()), "draining");
    assert_eq!(state(&server, &other.to()), "up");

    let (done, said) = order(&server, &["ready", &one.to(), "--group", "app"]);
    assert!(done && said == format!("{} of app is ready\n", one.to()), "{said}");
    assert_eq!(answering(&server), both(["one", "other"]));

    for words in [&["drain", "10.9.9.9:1"][..], &["drain", &one.to(), "--group", "none"]] {
        let (done, said) = order(&server, words);
        assert!(!done && said.contains("404: no server is called"), "{said}");
    }
    assert_eq!(answering(&server), both(["one", "other"]), "nobody was meant");
}

#[test]
fn connections_to_a_draining_server_are_closed_and_it_is_still_looked_after() {
    const SOON: Duration = Duration::from_secs(8);
    let (open, checks) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, checked) = (Arc::clone(&open), Arc::clone(&checks));
    let app = Raw::start(move |mut stream| {
        count.fetch_add(1, Ordering::SeqCst);
        while let Some(head) = read_head(&mut stream) {
            if head.starts_with("GET /health ") {
                checked.fetch_add(1, Ordering::SeqCst);
            }
            answer(&mut stream, 200, "app");
        }
        count.fetch_sub(1, Ordering::SeqCst);
    });
    let settings = "affinity = \"cookie\"\n[server_group.connections]\nidle_timeout = \"1h\"\n\
                    [server_group.check]\npath = \"/health\"\nevery = \"100ms\"\n";
    let server = proxy(&[app.to()], settings);
    let mut client = server.connect();
    let response = client.get("/");
    let cookie = response.field("Set-Cookie").and_then(|cookie| cookie.split(';').next());
    let cookie = format!("Cookie: {}\r\n", cookie.expect("a cookie"));
    assert!(open.load(Ordering::SeqCst) > 0, "a connection is kept");

    assert!(order(&server, &["drain", &app.to()]).0);
    let before = checks.load(Ordering::SeqCst);
    eventually_within(SOON, "idle connections are closed", || open.load(Ordering::SeqCst) == 0);
    // The server still answers a client that the cookie binds to it, and no idle connection to it is kept.
    let (connections, bound) = (app.connections(), client.get_with("/", &cookie));
    assert_eq!((bound.status, bound.text()), (200, "app"));
    eventually_within(SOON, "it was one of its own", || {
        app.connections() > connections && open.load(Ordering::SeqCst) == 0
    });
    eventually_within(SOON, "it is checked", || checks.load(Ordering::SeqCst) > before + 2);
    assert_eq!(state(&server, &app.to()), "draining");
}

#[test]
fn a_request_that_a_draining_server_has_is_answered() {
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow";
    let slow = Raw::answering(response, Duration::from_millis(700));
    let server = proxy(&[slow.to()], "");
    let answered = std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.get("/"));
        while server_row(&server, &slow.to())["in_flight"] != 1 {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(order(&server, &["drain", &slow.to()]).0);
        asked.join().expect("an answer")
    });
    assert_eq!((answered.status, answered.body), (200, b"slow".to_vec()));
    // No server is left for the next request, and none is to blame: 503.
    assert_eq!(server.get("/").status, 503);
}
