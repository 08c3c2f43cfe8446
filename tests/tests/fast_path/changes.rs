//! A changed file leaves the kernel before anyone sees the new version.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afpa_testkit::{Server, Tree, eventually, eventually_within};
use rustix::process::Signal;

use crate::lab::{Lab, answers, is_from_kernel, warm};

const LENGTH: usize = 200;
const CHANGES: usize = 150;

fn version(number: usize) -> String {
    format!("{number:0LENGTH$}")
}

/// The answers that one reader saw, in order: when it sent the request, when the answer was there, the version.
type Seen = Vec<(Instant, Instant, usize)>;

fn read_until(server: &Server, stop: &AtomicBool, newest: &AtomicUsize) -> Seen {
    let mut client = server.connect();
    let mut seen = Seen::new();
    while !stop.load(Ordering::Relaxed) {
        let sent = Instant::now();
        let response = client.get("/file.txt");
        let text = response.text();
        assert_eq!((response.status, text.len()), (200, LENGTH));
        let version = text.parse().expect("one version, whole");
        newest.store(version, Ordering::Relaxed);
        seen.push((sent, Instant::now(), version));
    }
    seen
}

/// The same length written in place, in one piece: no reader can see a part of it.
fn write(tree: &Tree, number: usize) {
    let mut file = File::options().write(true).open(tree.at("file.txt")).expect("open");
    file.write_all(version(number).as_bytes()).expect("write");
}

#[test]
fn no_answer_is_stale_once_a_newer_one_was_seen() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    tree.file("file.txt", version(0));
    let server = lab.server(&tree, |launch| {
        launch.arg("--workers").arg("2");
    });
    warm(&server, "/file.txt");
    let before = answers(&server);
    let stop = AtomicBool::new(false);
    let newest = [const { AtomicUsize::new(0) }; 2];
    let (closed, seen) = thread::scope(|scope| {
        let (server, stop) = (&server, &stop);
        let read = |newest| scope.spawn(move || read_until(server, stop, newest));
        let readers: Vec<_> = newest.iter().map(read).collect();
        let mut closed = vec![Instant::now()];
        for number in 1..=CHANGES {
            thread::sleep(Duration::from_millis(20));
            write(&tree, number);
            closed.push(Instant::now());
        }
        eventually("the last version arrives", || {
            newest.iter().all(|newest| newest.load(Ordering::Relaxed) == CHANGES)
        });
        stop.store(true, Ordering::Relaxed);
        let seen: Vec<Seen> = readers.into_iter().map(|r| r.join().expect("a reader")).collect();
        (closed, seen)
    });
    let from_kernel = answers(&server) - before;
    for reader in &seen {
        assert!(reader.is_sorted_by_key(|(_, _, number)| *number), "an old version came back");
        assert_eq!(reader.last().expect("answers").2, CHANGES, "the last version arrived");
    }
    // Over both readers: no request that begins after an answer with the new version gets the old one.
    let mut all: Vec<_> = seen.concat();
    assert!(
        from_kernel > all.len() as u64 / 10,
        "{from_kernel} of {}: the kernel answers",
        all.len()
    );
    all.sort_by_key(|(_, arrived, _)| *arrived);
    let mut newest: Vec<(Instant, usize)> = Vec::new();
    for (sent, arrived, number) in &all {
        let known = newest.partition_point(|(when, _)| when < sent);
        let known = newest[..known].last().map_or(0, |(_, number)| *number);
        assert!(*number >= known, "{number} after {known} had been seen");
        let best = newest.last().map_or(0, |(_, best)| *best).max(*number);
        newest.push((*arrived, best));
    }
    let mut delays: Vec<Duration> = (1..=CHANGES)
        .map(|number| {
            let since = closed[number];
            let stale = all.iter().filter(|(sent, _, seen)| *sent > since && *seen < number);
            stale.map(|(_, arrived, _)| *arrived - since).max().unwrap_or_default()
        })
        .collect();
    delays.sort();
    afpa_testkit::figure!(
        "close-after-write to the last stale answer, {CHANGES} changes, {} answers: p50 {:?}, p99 {:?}, \
         most {:?}",
        all.len(),
        delays[CHANGES / 2],
        delays[CHANGES * 99 / 100],
        delays[CHANGES - 1]
    );
}

#[test]
fn every_kind_of_change_is_seen() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    tree.file("index.html", "one");
    tree.file("a.txt", "one");
    let server = lab.server(&tree, |_| ());
    let mut client = server.connect();
    let mut becomes = |target: &str, status: u16, text: &str| {
        eventually(&format!("{target} becomes {status} {text:?}"), || {
            let response = client.get(target);
            response.status == status && (status != 200 || response.text() == text)
        });
        if status == 200 {
            eventually("the kernel has it", || is_from_kernel(&server, &mut client, target));
            assert_eq!(client.get(target).text(), text);
        }
    };
    becomes("/", 200, "one");
    becomes("/a.txt", 200, "one");
    tree.replace("index.html", "two, renamed");
    becomes("/", 200, "two, renamed");
    tree.file("a.txt", "written in place");
    becomes("/a.txt", 200, "written in place");
    tree.remove("a.txt");
    becomes("/a.txt", 404, "");
    tree.file("a.txt", "back");
    becomes("/a.txt", 200, "back");
    tree.set_mode("a.txt", 0o000);
    becomes("/a.txt", 403, "");
    tree.set_mode("a.txt", 0o644);
    becomes("/a.txt", 200, "back");
    tree.file("a.txt.gz", "a coding appears");
    eventually("the coding is known", || {
        let coded = server.connect().get_with("/a.txt", "Accept-Encoding: gzip\r\n");
        coded.field("Content-Encoding") == Some("gzip")
    });
    assert_eq!(server.get("/a.txt").text(), "back");
    assert!(server.command(&["purge", "/a.txt"]).status.success());
    becomes("/a.txt", 200, "back");
    // A media type that an order changes is in the next answer, and then in the kernel's.
    let order = ["call", "types/set", "extension=txt", "type=text/x-notes"];
    assert!(server.command(&order).status.success());
    assert_eq!(server.get("/a.txt").field("Content-Type"), Some("text/x-notes"));
    becomes("/a.txt", 200, "back");
    assert_eq!(client.get("/a.txt").field("Content-Type"), Some("text/x-notes"));
}

/// Through another name of the file, in a folder that nobody watches.
#[test]
fn a_change_without_a_notice_leaves_the_kernel_too() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    tree.file("file.txt", version(0));
    let server = lab.server(&tree, |_| ());
    warm(&server, "/file.txt");
    let beside = tree.outside("beside.txt", "").with_file_name("name.txt");
    std::fs::hard_link(tree.at("file.txt"), &beside).expect("a link");
    let mut file = File::options().write(true).open(&beside).expect("open");
    file.write_all(version(1).as_bytes()).expect("written");
    let mut client = server.connect();
    eventually_within(Duration::from_secs(60), "the new version", || {
        client.get("/file.txt").text() == version(1)
    });
}

#[test]
fn a_reload_takes_the_new_site_at_once() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    tree.file("index.html", "index");
    tree.file("other.html", "other");
    let server = lab.server(&tree, |launch| {
        launch.set(|settings| {
            settings.set("site.index", "[\"index.html\"]");
        });
    });
    let mut client = server.connect();
    let good = std::fs::read_to_string(server.configuration()).expect("the configuration");
    for round in 0..6 {
        let index = if round % 2 == 0 { "other" } else { "index" };
        warm(&server, "/");
        assert!(is_from_kernel(&server, &mut client, "/"));
        std::fs::write(
            server.configuration(),
            good.replace("index.html", &format!("{index}.html")),
        )
        .expect("write");
        server.signal(Signal::HUP);
        eventually("the new index is served", || client.get("/").text() == index);
        for _ in 0..50 {
            assert_eq!(client.get("/").text(), index, "the old site is not heard of again");
        }
    }
    warm(&server, "/");
}

#[test]
fn an_expanded_page_leaves_the_kernel_with_what_it_includes() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    tree.file("menu.html", "menu 1");
    tree.file("page.shtml", "[<!--#include virtual=\"/menu.html\" -->]");
    tree.file("now.shtml", "<!--#echo var=\"DATE_GMT\" -->");
    tree.file("aging.html", "aging");
    tree.file("never.html", "never");
    let server = lab.server(&tree, |launch| {
        launch.set(|settings| {
            settings.set("site.filter", "[{ extensions = [\"shtml\"], includes = true }]");
            let hints = "[{ prefix = \"/aging\", expiry = \"1h\" }, { prefix = \"/never\", keep = \"never\" }]";
            settings.set("site.hint", hints);
        });
    });
    let mut client = server.connect();
    for round in 1..5 {
        warm(&server, "/page.shtml");
        assert_eq!(client.get("/page.shtml").text(), format!("[menu {round}]"));
        tree.replace("menu.html", format!("menu {}", round + 1));
        let next = format!("[menu {}]", round + 1);
        eventually("the next menu", || client.get("/page.shtml").text() == next);
    }
    for user_mode_alone in ["/now.shtml", "/aging.html", "/never.html"] {
        for _ in 0..20 {
            let from_kernel = is_from_kernel(&server, &mut client, user_mode_alone);
            assert!(!from_kernel, "the kernel has {user_mode_alone}");
        }
    }
}
