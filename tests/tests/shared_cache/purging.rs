//! Purges: exact, at once, and before everything that was asked for earlier.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use afpa_testkit::{Server, eventually_within};

use crate::origin::{Asked, Origin, Reply, message, ok};

const SOON: Duration = Duration::from_secs(20);
const FRESH: &str = "Cache-Control: max-age=600\r\n";

#[track_caller]
fn purge(proxy: &Server, arguments: &[&str]) -> String {
    let output = proxy.command(&[&["purge"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn numbered() -> Origin {
    Origin::start(|asked: &Asked| {
        let tag = if asked.target.contains("tagged") { "Surrogate-Key: red blue\r\n" } else { "" };
        ok(&format!("{FRESH}ETag: \"{}\"\r\n{tag}", asked.number), &asked.number.to_string())
    })
}

/// Which of these targets have to be asked for again.
fn gone(proxy: &Server, targets: &[&str]) -> Vec<String> {
    let again = targets.iter().filter(|target| proxy.get(target).text() != "1");
    again.map(|target| (*target).to_owned()).collect()
}

#[test]
fn a_purge_drops_what_it_names_and_nothing_else() {
    let all = ["/a", "/a?x", "/a/", "/ab", "/a/b?x", "/a%2Fb", "/tagged/1", "/tagged/2"];
    for (arguments, expected) in [
        (&["/a"][..], &["/a", "/a?x"][..]),
        (&["http://test/a?x"], &["/a?x"]),
        (&["/a%2fb"], &["/a%2Fb"]),
        (&["--below", "/a/"], &["/a/", "/a/b?x"]),
        (&["--below", "http://other/a/"], &[]),
        (&["--tag", "red"], &["/tagged/1", "/tagged/2"]),
        (&["--tag", "green"], &[]),
        (&["--host", "test"], &all),
    ] {
        let origin = numbered();
        let proxy = origin.proxy("");
        for target in all {
            assert_eq!(proxy.get(target).text(), "1");
        }
        let told = purge(&proxy, arguments);
        assert_eq!(gone(&proxy, &all), expected, "{arguments:?}: {told}");
    }
}

#[test]
fn a_soft_purge_has_the_server_asked() {
    let origin = Origin::start(|asked: &Asked| match asked.field("If-None-Match") {
        Some(_) => Reply::Bytes(format!("HTTP/1.1 304 X\r\n{FRESH}ETag: \"e\"\r\n\r\n").into()),
        None => ok(&format!("{FRESH}ETag: \"e\"\r\nCache-Tag: red\r\n"), "content"),
    });
    let proxy = origin.proxy("");
    proxy.get("/");
    assert_eq!(purge(&proxy, &["--soft", "--tag", "red"]), "1 answer has to be validated");
    assert_eq!(proxy.get("/").text(), "content");
    assert_eq!(proxy.get("/").text(), "content");
    let requests = origin.requests("/");
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].field("If-None-Match").as_deref(), Some("\"e\""));
}

#[test]
fn the_purge_method_is_for_those_who_may() {
    let origin = numbered();
    let get = |proxy: &Server, method: &str, fields: &str| {
        let request = format!("{method} /tagged HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
        let answer = proxy.connect().exchange(request);
        (answer.status, answer.text().to_owned())
    };
    let proxy = origin.proxy("purge_from = [\"127.0.0.0/8\"]");
    assert_eq!(get(&proxy, "GET", "").1, "1");
    assert_eq!(get(&proxy, "PURGE", ""), (200, "1\n".to_owned()));
    assert_eq!(get(&proxy, "GET", "").1, "2");
    assert_eq!(get(&proxy, "PURGE", "Surrogate-Key: green blue\r\n").1, "1\n");
    assert_eq!(get(&proxy, "GET", "").1, "3");

    let closed = origin.proxy("purge_from = [\"192.0.2.1\"]");
    assert_eq!(get(&closed, "PURGE", "").0, 403);
    let before = origin.count("/tagged");
    let passes = origin.proxy("");
    get(&passes, "PURGE", "");
    assert_eq!(origin.count("/tagged"), before + 1, "it is a method like others");
}

/// A server whose content has a version. An answer takes the version when the request comes, and leaves when
/// `go` lets it.
struct Versioned {
    origin: Origin,
    version: Arc<AtomicUsize>,
    holds: Arc<AtomicBool>,
    /// How many answers have taken it.
    taken: Arc<AtomicUsize>,
    go: mpsc::Sender<()>,
}

impl Versioned {
    fn start(fields: &'static str) -> Self {
        let (go, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let (version, holds) = (Arc::new(AtomicUsize::new(1)), Arc::new(AtomicBool::new(true)));
        let (now, held) = (Arc::clone(&version), Arc::clone(&holds));
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let origin = Origin::start(move |asked: &Asked| {
            let version = now.load(Ordering::SeqCst);
            counted.fetch_add(1, Ordering::SeqCst);
            if held.load(Ordering::SeqCst) {
                let _told = wait.lock().expect("no panic").recv_timeout(SOON);
            }
            let tag = format!("\"{version}\"");
            let fields = format!("{fields}ETag: {tag}\r\nCache-Tag: t\r\n");
            match asked.field("If-None-Match") {
                Some(known) if known == tag => {
                    Reply::Bytes(format!("HTTP/1.1 304 X\r\n{fields}\r\n").into_bytes())
                }
                _ => Reply::Bytes(message(200, &fields, &version.to_string())),
            }
        });
        Self { origin, version, holds, taken, go }
    }

    /// The content changes, and then it is purged.
    fn change(&self, proxy: &Server, arguments: &[&str]) {
        self.version.fetch_add(1, Ordering::SeqCst);
        purge(proxy, arguments);
    }

    fn release(&self) {
        self.holds.store(false, Ordering::SeqCst);
        self.go.send(()).expect("it waits");
    }
}

#[test]
fn a_purge_is_not_undone_by_an_answer_that_was_on_its_way() {
    for arguments in [&["/"][..], &["--tag", "t"], &["--soft", "--tag", "t"], &["--host", "test"]] {
        let server = Versioned::start(FRESH);
        let proxy = server.origin.proxy("wait = \"30s\"");
        let mut early = proxy.connect();
        early.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually_within(SOON, "it is asked for", || server.taken.load(Ordering::SeqCst) == 1);
        server.change(&proxy, arguments);
        // This request comes after the purge: it must not have the answer of the one before it.
        let mut late = proxy.connect();
        late.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually_within(SOON, "it is asked for again", || {
            server.taken.load(Ordering::SeqCst) == 2
        });
        server.release();
        server.go.send(()).expect("it waits");
        assert_eq!(late.receive().text(), "2", "{arguments:?}");
        assert_eq!(early.receive().text(), "1", "it came before the purge");
        assert_eq!(proxy.get("/").text(), "2", "{arguments:?}");
    }
}

#[test]
fn a_purge_is_not_undone_by_a_validation() {
    for arguments in [&["/"][..], &["--tag", "t"]] {
        let server = Versioned::start("Cache-Control: max-age=600\r\n");
        let proxy = server.origin.proxy("obey_clients = true");
        server.go.send(()).expect("it waits");
        assert_eq!(proxy.get("/").text(), "1");
        let mut early = proxy.connect();
        early.send("GET / HTTP/1.1\r\nHost: test\r\nCache-Control: no-cache\r\n\r\n");
        eventually_within(SOON, "it is validated", || server.taken.load(Ordering::SeqCst) == 2);
        server.change(&proxy, arguments);
        server.release();
        // The server says that the old one is current, which it was when it was asked.
        let answer = early.receive();
        assert!(["1", "2"].contains(&answer.text()), "{answer:?}");
        assert_eq!(proxy.get("/").text(), "2", "{arguments:?}");
    }
}
