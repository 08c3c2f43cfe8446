//! Orders to the servers behind a running proxy: `afpa server drain` and `afpa server ready`.

use std::collections::BTreeSet;
use std::time::Duration;

use afpa_testkit::Server;
use afpa_tests::proxy::{Raw, proxy, server_row, state};

/// What a few requests are answered by.
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
    // Nobody is left for the next one, and nobody is to blame.
    assert_eq!(server.get("/").status, 503);
}
