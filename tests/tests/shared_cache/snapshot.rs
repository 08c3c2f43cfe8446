//! From one process to the next: the answers that were used most, as old as they are, and nothing that was purged.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use afpa_testkit::{Server, eventually_within};
use rustix::process::Signal;

use crate::origin::{Asked, Origin, ok};

const SOON: Duration = Duration::from_secs(20);

/// A server that says which answer to a target it is.
fn numbered() -> Origin {
    Origin::start(|asked: &Asked| {
        let fields = match &*asked.target {
            "/short" => "Cache-Control: max-age=1\r\n",
            "/vary" => "Cache-Control: max-age=600\r\nVary: Accept-Language\r\n",
            "/red" => "Cache-Control: max-age=600\r\nSurrogate-Key: red\r\n",
            _ => "Cache-Control: max-age=600\r\nETag: \"e\"\r\n",
        };
        ok(fields, &asked.number.to_string())
    })
}

/// A proxy before it that leaves a snapshot, and where that is.
fn proxy(origin: &Origin) -> (Server, PathBuf) {
    let (to, mut file) = (origin.to(), PathBuf::new());
    let server = Server::start("/", |launch| {
        file = launch.home().join("snapshot").join("shared-cache");
        let snapshot = file.display();
        launch.written(|listen| {
            format!(
                "[shared_cache]\nlimit = \"16MiB\"\nsnapshot = \"{snapshot}\"\n\n\
                 [[site]]\nlisten = [\"{listen}\"]\nto = \"{to}\"\n"
            )
        });
    });
    (server, file)
}

/// Waits until the start of this number has said what it has taken over, and gives that line.
#[track_caller]
fn told(proxy: &Server, number: usize) -> String {
    let line = || {
        let log = proxy.log();
        let lines = log.lines().filter(|line| line.contains("taken over"));
        lines.map(str::to_owned).nth(number)
    };
    eventually_within(SOON, "it says what was taken over", || line().is_some());
    line().expect("it was there")
}

fn purge(proxy: &Server, arguments: &[&str]) {
    let output = proxy.command(&[&["purge"], arguments].concat());
    assert!(output.status.success(), "{output:?}");
}

/// Waits for the clock on the wall, which goes on while nothing is running.
fn wait_for_the_clock(seconds: u64) {
    let begun = SystemTime::now();
    let over = || begun.elapsed().is_ok_and(|time| time >= Duration::from_secs(seconds));
    eventually_within(SOON, "the clock goes on", over);
}

#[test]
fn what_was_kept_is_there_after_a_restart_and_as_old_as_it_is() {
    let origin = numbered();
    let (mut proxy, file) = proxy(&origin);
    assert!(told(&proxy, 0).contains("nothing taken over: there is none"), "{}", proxy.log());
    let vary = |proxy: &Server, language: &str| {
        let head =
            format!("GET /vary HTTP/1.1\r\nHost: test\r\nAccept-Language: {language}\r\n\r\n");
        proxy.connect().exchange(head).text().to_owned()
    };
    for target in ["/a", "/red", "/short", "/purged", "/soft"] {
        assert_eq!(proxy.get(target).text(), "1");
    }
    assert_eq!((vary(&proxy, "de"), vary(&proxy, "en")), ("1".into(), "2".into()));
    purge(&proxy, &["/purged"]);
    purge(&proxy, &["--soft", "/soft"]);
    // A reload keeps what is there by itself.
    proxy.signal(Signal::HUP);
    eventually_within(SOON, "it is read", || proxy.log().contains("reloaded"));

    proxy.end_and_restart(Signal::TERM, || wait_for_the_clock(2));
    assert!(told(&proxy, 1).contains(": 4 of "), "{}", proxy.log());
    let answer = proxy.get("/a");
    let age: u64 = answer.field("Age").expect("from the cache").parse().expect("a number");
    assert!(answer.text() == "1" && (2..60).contains(&age), "{answer:?}");
    assert_eq!(answer.field("ETag"), Some("\"e\""));
    assert_eq!((vary(&proxy, "de"), vary(&proxy, "en")), ("1".into(), "2".into()));
    for target in ["/short", "/purged", "/soft"] {
        assert_eq!(proxy.get(target).text(), "2", "{target}");
    }
    assert_eq!((origin.count("/a"), origin.count("/vary")), (1, 2));
    assert_eq!(fs::metadata(&file).expect("the mark").len(), 0);

    // Objects that were taken over can be purged by their tag, and are handed on to the next process again.
    purge(&proxy, &["--tag", "red"]);
    proxy.end_and_restart(Signal::QUIT, || ());
    assert!(told(&proxy, 2).contains(": 5 of "), "{}", proxy.log());
    assert_eq!((proxy.get("/red").text(), proxy.get("/a").text()), ("2", "1"));
}

#[test]
fn a_process_that_is_killed_leaves_nothing_that_was_purged() {
    let origin = numbered();
    let (mut proxy, _) = proxy(&origin);
    proxy.get("/a");
    proxy.end_and_restart(Signal::TERM, || ());
    assert!(told(&proxy, 1).contains("1 of 1 answers taken over"), "{}", proxy.log());
    purge(&proxy, &["/a"]);
    proxy.kill_and_restart();
    assert!(told(&proxy, 2).contains("was killed"), "{}", proxy.log());
    assert_eq!(proxy.get("/a").text(), "2");
}

#[test]
fn a_snapshot_that_has_changed_is_not_used_and_one_that_is_none_is_left_alone() {
    let origin = numbered();
    let (mut proxy, file) = proxy(&origin);
    proxy.get("/a");
    proxy.end_and_restart(Signal::TERM, || {
        let mut bytes = fs::read(&file).expect("a snapshot");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        // In its place: it stays the file of the user that serves.
        fs::write(&file, bytes).expect("written");
    });
    let line = told(&proxy, 1);
    assert!(line.contains("its bytes are not those that were written"), "{line}");
    assert_eq!(proxy.get("/a").text(), "2");
    proxy.end_and_restart(Signal::TERM, || fs::write(&file, "precious").expect("written"));
    let log = proxy.log();
    assert!(log.contains("something else than a snapshot"), "{log}");
    assert_eq!(proxy.get("/a").text(), "3");
    proxy.end_and_restart(Signal::TERM, || ());
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
}
