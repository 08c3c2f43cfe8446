//! Servers that fail in the middle of an answer, or say something else than before.

use std::io::Write as _;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use afpa_testkit::{Asked as Expect, Client, Server, eventually_within, figure};

use crate::origin::{Asked, Origin, Reply, message, ok};

const SOON: Duration = Duration::from_secs(10);
const FRESH: &str = "Cache-Control: max-age=60\r\n";

/// Whether an answer came as a whole.
fn whole(proxy: &Server, target: &str) -> Option<String> {
    let mut client = proxy.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    let answer = client.try_receive(Expect::Body).ok()?;
    (answer.status == 200).then(|| answer.text().to_owned())
}

#[test]
fn an_answer_that_breaks_off_is_neither_kept_nor_whole() {
    let origin = Origin::start(|asked: &Asked| {
        let head = format!("HTTP/1.1 200 X\r\n{FRESH}");
        let cut = match (asked.target.as_str(), asked.number) {
            ("/length", 1) => format!("{head}Content-Length: 100\r\n\r\nhalf"),
            ("/chunks", 1) => format!("{head}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
            ("/garbage", 1) => {
                format!("{head}Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n")
            }
            ("/head", 1) => "HTTP/1.1 200 X\r\nCache-Con".to_owned(),
            _ => return ok(FRESH, "all of it"),
        };
        Reply::Last(cut.into_bytes())
    });
    let proxy = origin.proxy("");
    for target in ["/length", "/chunks", "/garbage"] {
        assert_eq!(whole(&proxy, target), None, "{target}");
        assert_eq!(whole(&proxy, target).as_deref(), Some("all of it"), "{target}");
        assert_eq!(origin.count(target), 2, "{target}");
    }
    // Nothing of it had reached the client, so another attempt may have been made.
    let first = whole(&proxy, "/head");
    assert!(first.is_none_or(|text| text == "all of it"));
}

#[test]
fn followers_of_an_answer_that_breaks_off_are_told() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let origin = Origin::start(move |asked: &Asked| match asked.number {
        1 => {
            let wait = Arc::clone(&wait);
            Reply::With(Box::new(move |stream| {
                let head = format!("HTTP/1.1 200 X\r\n{FRESH}Content-Length: 100\r\n\r\nhalf");
                let _written = stream.write_all(head.as_bytes());
                let _told = wait.lock().expect("no panic").recv_timeout(SOON);
            }))
        }
        _ => ok(FRESH, "all of it"),
    });
    let proxy = origin.proxy("");
    let mut clients: Vec<_> = (0..3).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        let mut begun = Vec::new();
        while !begun.ends_with(b"half") {
            begun.extend(client.take(1));
        }
    }
    assert_eq!(origin.count("/"), 1);
    go.send(()).expect("it waits");
    for mut client in clients {
        let rest = client.try_receive(Expect::Body);
        assert!(rest.is_err(), "{rest:?}");
    }
    assert_eq!(whole(&proxy, "/").as_deref(), Some("all of it"));
}

#[test]
fn errors_are_not_kept_unless_they_say_so() {
    let origin = Origin::start(|asked: &Asked| {
        let fields = if asked.target == "/said" { FRESH } else { "" };
        match asked.number {
            1 => Reply::Bytes(message(500, fields, "bad")),
            _ => ok("", "good"),
        }
    });
    let proxy = origin.proxy("times = { any = \"1m\" }");
    assert_eq!([proxy.get("/").status, proxy.get("/").status], [500, 200]);
    assert_eq!([proxy.get("/said").status, proxy.get("/said").status], [500, 500]);
}

#[test]
fn an_answer_beyond_the_limit_is_passed_on_as_a_whole() {
    let content = "x".repeat(50_000);
    let long = content.clone();
    let origin = Origin::start(move |asked: &Asked| match asked.target.as_str() {
        "/known" => ok(FRESH, &long),
        _ => {
            let mut answer = format!("HTTP/1.1 200 X\r\n{FRESH}Transfer-Encoding: chunked\r\n\r\n");
            for piece in long.as_bytes().chunks(1000) {
                let piece = String::from_utf8_lossy(piece);
                answer.push_str(&format!("{:x}\r\n{piece}\r\n", piece.len()));
            }
            answer.push_str("0\r\n\r\n");
            Reply::Bytes(answer.into_bytes())
        }
    });
    let proxy = origin.proxy("max_object = \"16KiB\"");
    for target in ["/known", "/unknown"] {
        for number in 1..=2 {
            assert_eq!(whole(&proxy, target).as_deref(), Some(&content[..]), "{target}");
            assert_eq!(origin.count(target), number, "{target}");
        }
    }
}

#[test]
fn a_server_that_changes_its_vary_is_believed() {
    let origin = Origin::start(|asked: &Asked| {
        let vary = match asked.number {
            1 => "Vary: X-A\r\n",
            2 => "Vary: X-B\r\n",
            3 => "",
            _ => "Vary: *\r\n",
        };
        ok(&format!("{FRESH}{vary}"), &format!("answer {}", asked.number))
    });
    let proxy = origin.proxy("");
    let get = |fields: &str| {
        let answer = proxy.connect().get_with("/", fields);
        answer.text().to_owned()
    };
    assert_eq!(get("X-A: 1\r\n"), "answer 1");
    assert_eq!(get("X-A: 2\r\nX-B: 1\r\n"), "answer 2");
    assert_eq!(get("X-A: 3\r\nX-B: 1\r\n"), "answer 2");
    assert_eq!(get("X-A: 1\r\nX-B: 2\r\n"), "answer 3");
    assert_eq!(get("X-A: 9\r\nX-B: 9\r\n"), "answer 3", "it varies no more");
}

#[test]
fn a_304_that_nobody_asked_for_or_for_something_else_is_not_believed() {
    let origin = Origin::start(|asked: &Asked| match (asked.target.as_str(), asked.number) {
        ("/other", 2) => Reply::Bytes(b"HTTP/1.1 304 X\r\nETag: \"b\"\r\n\r\n".to_vec()),
        (_, 1) => ok("Cache-Control: no-cache\r\nETag: \"a\"\r\n", "first"),
        _ => ok("Cache-Control: no-cache\r\nETag: \"b\"\r\n", "second"),
    });
    let proxy = origin.proxy("");
    assert_eq!(proxy.get("/other").text(), "first");
    assert_eq!(proxy.get("/other").text(), "second", "another entity tag is another response");
    assert_eq!(origin.count("/other"), 3);
}

#[test]
fn a_failed_validation_ends_with_the_server_coming_back() {
    let origin = Origin::start(|asked: &Asked| match asked.number {
        1 => ok("Cache-Control: max-age=0\r\nETag: \"a\"\r\n", "first"),
        2 | 3 => Reply::With(Box::new(|_| {})),
        _ => ok("Cache-Control: max-age=60\r\nETag: \"b\"\r\n", "second"),
    });
    let proxy = origin.proxy("grace = \"1h\"");
    assert_eq!(proxy.get("/").text(), "first");
    assert_eq!(proxy.get("/").text(), "first", "the server is away");
    eventually_within(SOON, "it is back", || proxy.get("/").text() == "second");
}

#[test]
fn a_client_that_reads_nothing_holds_no_copy_of_what_is_kept() {
    const SIZE: usize = 3_900_000;
    const CLIENTS: usize = 12;
    let origin = Origin::start(|_| ok("Cache-Control: max-age=600\r\n", &"x".repeat(SIZE)));
    let proxy = origin.proxy("");
    proxy.get("/warm");
    let process = proxy.process();
    let before = process.resident().expect("memory");
    let slow: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client = Client::connect_narrow(proxy.address(), 8192).expect("connect");
            client.send(format!("GET /{number} HTTP/1.1\r\nHost: test\r\n\r\n"));
            client
        })
        .collect();
    eventually_within(SOON, "all answers are kept", || objects(&proxy) == CLIENTS as u64 + 1);
    // The answers themselves, and a half of them for all else.
    let most = (CLIENTS * SIZE + CLIENTS * SIZE / 2) as u64;
    let grown = || process.resident().expect("memory").saturating_sub(before);
    eventually_within(SOON, "copies are given back", || grown() < most);
    figure!("{CLIENTS} answers of {SIZE} bytes that nobody reads take {} bytes", grown());
    for mut client in slow {
        assert!(client.receive().text() == "x".repeat(SIZE), "whole, after all");
    }
}

/// Answers that are kept.
fn objects(proxy: &Server) -> u64 {
    let output = proxy.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("statistics");
    stats["shared_cache"]["objects"].as_u64().expect("a count")
}
