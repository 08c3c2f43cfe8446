//! `afpa attach --connections known`: connections that the server never sees are the same to their clients.

use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;

use afpa_testkit::response::{Asked, ReceiveError};
use afpa_testkit::tree::patterned;
use afpa_testkit::{Client, eventually};
use afpa_tests::attach::{Attached, Kind, Lab, PORT};
use afpa_tests::browser;
use serde_json::Value;

use crate::answers::{all_answers, corpus, requests};

/// Counts of the programs, by the text of their reasons.
pub(crate) fn count(attached: &Attached, reason: &str) -> u64 {
    let statistics = attached.statistics().expect("it runs");
    let reasons = statistics["reasons"].as_object().expect("counts").clone();
    let found = reasons.into_iter().find(|(text, _)| text == reason);
    found.and_then(|(_, count)| Value::as_u64(&count)).unwrap_or_else(|| panic!("no {reason}"))
}

pub(crate) const SYN: &str = "without a socket: SYN answered with a cookie";
const ASSIGNED: &str = "without a socket: assigned to the kernel's TCP";

/// An attachment with `--connections known`; None: this kernel cannot, and SKIP was said.
pub(crate) fn attach(lab: &Lab) -> Option<Attached> {
    if let Some(why) = afpa_bpf::Socketless::refusal() {
        afpa_testkit::aloud::say("SKIP", &why.to_string());
        return None;
    }
    let attached = lab.attach(&["--connections", "known"]);
    attached.settle();
    Some(attached)
}

/// Each request on a connection of its own: as it is, with `Connection: close`, and of HTTP/1.0.
fn same_answers_with_and_without(kind: Kind) {
    let lab = lab!(kind);
    corpus(&lab);
    let kept = requests(&lab);
    let closing =
        |request: &String| request.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1);
    let old = |request: &String| request.replacen(" HTTP/1.1\r\n", " HTTP/1.0\r\n", 1);
    let forms = kept.iter().flat_map(|one| [one.clone(), closing(one), old(one)]);
    let all: Vec<String> = forms.collect();
    let without = all_answers(&lab, &all);
    let Some(attached) = attach(&lab) else { return };
    let before = attached.answered();
    for ((request, without), with) in all.iter().zip(&without).zip(all_answers(&lab, &all)) {
        assert_eq!(*without, with, "{request:?}\n{}", lab.log());
    }
    let answered = attached.answered() - before;
    let (opened, assigned) = (count(&attached, SYN), count(&attached, ASSIGNED));
    assert!(answered > 300, "{answered} of {}: {:#?}", all.len(), attached.statistics());
    assert!(opened > 300 && assigned > 50, "{opened}, {assigned}: {:#?}", attached.statistics());
}

#[test]
fn nginx_says_the_same_with_and_without_sockets() {
    same_answers_with_and_without(Kind::Nginx);
}

#[test]
fn apache_says_the_same_with_and_without_sockets() {
    same_answers_with_and_without(Kind::Apache);
}

/// 20 KB are more than the kernel sends on connections that stay, and less than the length for which it gives a
/// connection a socket.
#[test]
fn a_last_answer_may_be_longer_than_others() {
    let lab = lab!(Kind::Nginx);
    lab.file("/some.html", patterned(20_000));
    let ask = |lines: &str| {
        let mut client = lab.connect();
        client.send(format!("GET /some.html HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n{lines}\r\n"));
        let mut response = client.receive();
        response.fields.retain(|(name, _)| name != "Date");
        response
    };
    const LAST: &str = "Connection: close\r\n";
    let (own, own_last) = (ask(""), ask(LAST));
    let Some(attached) = attach(&lab) else { return };
    eventually("the kernel answers", || {
        let before = attached.answered();
        assert!(ask(LAST) == own_last);
        attached.answered() > before
    });
    let before = attached.answered();
    for _ in 0..20 {
        assert!(ask("") == own);
    }
    assert_eq!(attached.answered(), before, "{:?}", attached.statistics());
}

/// Programs that people use, on the client's side: they must not notice.
pub(crate) fn run(lab: &Lab, program: &str, arguments: &[&str]) -> Option<String> {
    let mut command = lab.bed().client().command("timeout");
    // Some begin with compiling themselves, and a machine may have other things to do.
    command.args(["300", program]).args(arguments).stdin(Stdio::null());
    let out = command.output().expect("timeout is there");
    if out.status.code() == Some(127) {
        afpa_testkit::aloud::say("SKIP", &format!("{program} is not installed"));
        return None;
    }
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program}: {}\n{said}\n{complaint}", out.status);
    Some(said)
}

/// A page as Chromium shows it, with a profile and a cache of its own; `None`, said aloud: it is not installed.
pub(crate) fn visit(lab: &Lab, url: &str) -> Option<String> {
    let home = browser::home();
    let arguments =
        browser::chromium(home.path(), &["--virtual-time-budget=5000", "--dump-dom", url]);
    run(lab, "chromium", &arguments.iter().map(|word| &**word).collect::<Vec<_>>())
}

/// One request a connection: for a pinned file, for one that is not pinned, and for a missing one.
const PYTHON: &str = r#"
import sys, urllib.request, urllib.error
base = sys.argv[1]
for turn in range(150):
    assert urllib.request.urlopen(base + "/small.html", timeout=5).read() == b"small", turn
    assert len(urllib.request.urlopen(base + "/large.txt", timeout=5).read()) == 200000, turn
    try:
        urllib.request.urlopen(base + "/missing.html", timeout=5)
        raise AssertionError("it is there")
    except urllib.error.HTTPError as error:
        assert error.code == 404
import http.client
kept = http.client.HTTPConnection(sys.argv[2], timeout=5)
for turn in range(300):
    kept.request("GET", "/small.html" if turn % 3 else "/large.txt")
    response = kept.getresponse()
    assert len(response.read()) == (5 if turn % 3 else 200000), turn
"#;

#[test]
fn clients_do_not_notice() {
    let lab = lab!();
    lab.file("small.html", "small");
    lab.file("large.txt", vec![b'l'; 200_000]);
    let Some(attached) = attach(&lab) else { return };
    let place = format!("10.77.0.1:{PORT}");
    let (base, url) = (format!("http://{place}"), format!("http://{place}/small.html"));
    let before = attached.answered();
    run(&lab, "python3", &["-c", PYTHON, &base, &place]);
    let by_python = attached.answered() - before;
    assert!(by_python > 100, "{by_python}: {:#?}", attached.statistics());
    if let Some(said) = run(&lab, "curl", &["-sS", &format!("{url}?[1-3]"), &url, &url]) {
        assert!(said.ends_with("smallsmall"), "{said}");
    }
    if let Some(said) = run(&lab, "wrk", &["-t1", "-c8", "-d1", "-H", "Connection: close", &url]) {
        assert!(!said.contains("Socket errors") && !said.contains("Non-2xx"), "{said}");
    }
    if let Some(said) = run(&lab, "ab", &["-q", "-n", "1000", "-c", "8", &url]) {
        assert!(said.contains("Failed requests:        0"), "{said}");
    }
    if let Some(said) = run(&lab, "h2load", &["--h1", "-n", "1000", "-c", "8", &url]) {
        assert!(said.contains("1000 succeeded, 0 failed, 0 errored"), "{said}");
    }
    let opened = count(&attached, SYN);
    assert!(opened > 500, "{opened}: {:#?}", attached.statistics());
}

/// Connection tracking would refuse assigned connections. So there are none, and the log says so.
#[test]
fn tracked_connections_keep_their_sockets() {
    let lab = lab!();
    lab.file("small.html", "small");
    let rules = "add table inet front;
         add chain inet front in { type filter hook input priority 0; };
         add rule inet front in ct state invalid drop";
    let nft = lab.bed().server().command("nft").arg(rules).output();
    if !nft.is_ok_and(|output| output.status.success()) {
        return afpa_testkit::aloud::say("SKIP", "no nft here, or a kernel without nf_tables");
    }
    let Some(attached) = attach(&lab) else { return };
    for _ in 0..20 {
        let mut client = lab.connect();
        let request = format!("GET /small.html HTTP/1.1\r\nHost: 10.77.0.1:{PORT}\r\n\r\n");
        assert_eq!(client.exchange(request).body, b"small");
    }
    assert_eq!(count(&attached, SYN), 0, "{:#?}", attached.statistics());
    eventually("it says why", || lab.log().contains("connections are tracked here"));
}

fn get(client: &mut Client, path: &str) -> Vec<u8> {
    client.exchange(format!("GET {path} HTTP/1.1\r\nHost: 10.77.0.1:{PORT}\r\n\r\n")).body
}

/// A connection without a socket, on which an answer has arrived.
#[track_caller]
fn open(lab: &Lab, attached: &Attached) -> Client {
    let mut opened = None;
    eventually("a connection without a socket", || {
        let before = count(attached, SYN);
        let mut client = lab.connect();
        assert_eq!(get(&mut client, "/small.html"), b"small");
        let is_new = count(attached, SYN) > before;
        opened = is_new.then_some(client);
        is_new
    });
    opened.expect("one")
}

/// When AFPA ends, it closes idle connections without a socket, so that their clients do not wait.
#[test]
fn the_end_closes_what_is_open() {
    let lab = lab!();
    lab.file("small.html", "small");
    let Some(attached) = attach(&lab) else { return };
    let mut client = open(&lab, &attached);
    let (done, said) = lab.detach(&["--wait", "5"]);
    assert!(done, "{said}");
    client.set_patience(Duration::from_secs(2)).expect("set");
    client.assert_closed();
}

/// They become the server's, one by one, with their next requests.
#[test]
fn a_pause_leaves_what_is_open_to_the_server() {
    let lab = lab!();
    lab.file("small.html", "small");
    let Some(attached) = attach(&lab) else { return };
    let mut clients = [open(&lab, &attached), open(&lab, &attached)];
    let (done, said) = lab.run_afpa(&["pause"]);
    assert!(done, "{said}");
    let (answered, assigned) = (attached.answered(), count(&attached, ASSIGNED));
    for client in &mut clients {
        for _ in 0..2 {
            assert_eq!(get(client, "/small.html"), b"small");
        }
    }
    assert_eq!(attached.answered(), answered);
    assert_eq!(count(&attached, ASSIGNED), assigned + 2);
    let (done, said) = lab.run_afpa(&["resume"]);
    assert!(done, "{said}");
    for client in &mut clients {
        assert_eq!(get(client, "/small.html"), b"small");
    }
    assert!(attached.answered() > answered, "they may be answered here again");
}

/// The programs of a killed attachment stay and assign each connection to the kernel's TCP; the next attachment takes
/// the programs over.
#[test]
fn what_a_killed_one_leaves_open_goes_on() {
    let lab = lab!();
    lab.file("small.html", "small");
    lab.file("large.txt", vec![b'l'; 200_000]);
    let Some(attached) = attach(&lab) else { return };
    let mut clients = [open(&lab, &attached), open(&lab, &attached), open(&lab, &attached)];
    attached.kill();
    assert_eq!(get(&mut clients[0], "/small.html"), b"small");
    assert_eq!(get(&mut clients[0], "/large.txt").len(), 200_000);
    let Some(next) = attach(&lab) else { return };
    for client in &mut clients {
        assert_eq!(get(client, "/large.txt").len(), 200_000);
        assert_eq!(get(client, "/small.html"), b"small");
    }
    drop(open(&lab, &next));
}

/// A server that ends cannot close connections without a socket, which it never knew. The next requests on them are reset,
/// like those of clients that have not heard of its end. No answer is wrong, and the next server's clients are well.
#[test]
fn a_server_that_is_started_anew_has_new_clients() {
    let lab = lab!();
    lab.file("small.html", "small");
    lab.file("large.txt", vec![b'l'; 200_000]);
    let Some(attached) = attach(&lab) else { return };
    let mut client = open(&lab, &attached);
    lab.signal_server(rustix::process::Signal::KILL);
    lab.restart_server();
    client.send(format!("GET /large.txt HTTP/1.1\r\nHost: 10.77.0.1:{PORT}\r\n\r\n"));
    match client.try_receive(Asked::Body) {
        Ok(response) => assert_eq!(response.body.len(), 200_000),
        Err(ReceiveError::Closed) => {}
        Err(ReceiveError::Io(error)) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        Err(other) => panic!("{other:?}"),
    }
    let mut late = open(&lab, &attached);
    assert_eq!(get(&mut late, "/large.txt").len(), 200_000);
}
