//! The same requests, and a server behind the proxy: it gets those that can be read in one way only.

use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afpa_testkit::Server;
use afpa_tests::proxy::{Raw, read_content, read_head};

use crate::smuggling::{Case, Fate, cases, corpus_cases, judge, wire};

/// A server that answers as the files of the other tests do, and the heads that it gets.
fn origin() -> (Raw, Arc<Mutex<Vec<String>>>) {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&heads);
    let raw = Raw::start(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            noted.lock().expect("no panic").push(head.clone());
            if read_content(&mut stream, &head).is_none() {
                return;
            }
            let target = head.split(' ').nth(1).unwrap_or_default();
            let content = ["marker", "hidden"].iter().find(|name| target.contains(*name));
            let content = content.unwrap_or(&"index");
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
            let content = if head.starts_with("HEAD ") { "" } else { content };
            if stream.write_all(format!("{answer}{content}").as_bytes()).is_err() {
                return;
            }
        }
    });
    (raw, heads)
}

fn before(origin: &Raw) -> Server {
    let to = origin.to();
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "[limits]\nconnections = 5000\nconnections_per_client = 5000\n\
                 [[server_group]]\nname = \"it\"\nservers = [\"{to}\"]\n[server_group.errors]\npercent = 0\n\
                 [server_group.request]\ncontent = \"1MiB\"\n\
                 [[site]]\nlisten = [\"{listen}\"]\nto = \"it\"\n"
            )
        });
    })
}

/// The head has one Host field and one framing at most, and is none that a case has hidden in another message.
#[track_caller]
fn assert_plain(head: &str) {
    let lower = head.to_ascii_lowercase();
    let count = |name: &str| lower.matches(name).count();
    assert!(!head.split(' ').nth(1).unwrap_or_default().contains("hidden"), "smuggled: {head:?}");
    assert_eq!(count("\r\nhost:"), 1, "{head:?}");
    let framings = count("\r\ncontent-length:") + count("\r\ntransfer-encoding:");
    assert!(framings <= 1, "{head:?}");
    let bytes = head.replace("\r\n", "");
    assert!(!bytes.contains(['\r', '\n', '\0']), "{head:?}");
}

#[test]
fn what_two_readers_could_read_differently_reaches_no_server() {
    let (origin, heads) = origin();
    let server = before(&origin);
    let all: Vec<Case> = cases().into_iter().chain(corpus_cases()).collect();
    for case in &all {
        let mut client = server.connect();
        let _ = client.try_send(wire(case));
        judge(case, &mut client, "in one piece");
        if case.bytes.len() <= 160 && case.fate != Fate::Incomplete {
            let mut client = server.connect();
            let _ = client.send_in_pieces(&wire(case), 1, Duration::ZERO);
            judge(case, &mut client, "byte by byte");
        }
        heads.lock().expect("no panic").drain(..).for_each(|head| assert_plain(&head));
    }
}
