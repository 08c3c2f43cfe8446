//! After a purge, an unsafe method or another answer nothing older comes from the kernel.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use afpa_testkit::eventually;

use super::lifetimes::{Seen, under_load};
use super::{Kernel, get};
use crate::lab::stats;
use crate::origin::{Asked, ok};

const FRESH: &str = "Cache-Control: max-age=600\r\nSurrogate-Key: red\r\n";

/// Before the server, which says when it was asked for each version.
fn numbered() -> Option<(Kernel, Arc<Mutex<Vec<Instant>>>)> {
    let asked_at: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = Arc::clone(&asked_at);
    let reply = move |asked: &Asked| {
        if asked.method != "GET" {
            return ok("", "");
        }
        let mut noted = noted.lock().expect("no panic");
        noted.push(Instant::now());
        ok(FRESH, &(noted.len() - 1).to_string())
    };
    Some((Kernel::before("", reply)?, asked_at))
}

/// When something was done that makes answers wrong: it began, and was done.
type Change = (Instant, Instant);

/// Nothing that was asked for after a change was done is of a version from before it began.
#[track_caller]
fn check(seen: &[Seen], changes: &[Change], asked_at: &[Instant]) {
    for one in seen {
        for (began, done) in changes {
            let is_old = asked_at[one.version] < *began;
            assert!(one.asked <= *done || !is_old, "{one:?} after {began:?} to {done:?}");
        }
    }
}

#[test]
fn no_answer_is_older_than_the_reply_to_a_purge() {
    let Some((kernel, asked_at)) = numbered() else { return };
    let request = get("/p", "");
    kernel.warm(&request);
    let mut purges = Vec::new();
    let is_asked = |after: usize| {
        eventually("the server is asked", || asked_at.lock().expect("no panic").len() > after);
    };
    let seen = under_load(&kernel, &request, || {
        for arguments in [
            &["/p"][..],
            &["--soft", "/p"],
            &["--tag", "red"],
            &["--soft", "--tag", "red"],
            &["--below", "/"],
            &["--host", "test"],
            &["http://test/p"],
        ] {
            is_asked(purges.len());
            let hits = kernel.hits();
            eventually("the kernel answers", || kernel.hits() > hits + 100);
            let began = Instant::now();
            let output = kernel.proxy.command(&[&["purge"], arguments].concat());
            purges.push((began, Instant::now()));
            assert!(output.status.success(), "{output:?}");
        }
        is_asked(purges.len());
    });
    check(&seen, &purges, &asked_at.lock().expect("no panic"));
}

#[test]
fn a_purge_of_many_is_exact_and_leaves_the_others_where_they_are() {
    /// More than are taken back one by one before the reply.
    const MANY: usize = 600;
    let Some((kernel, asked_at)) = numbered() else { return };
    let mut client = kernel.proxy.connect();
    let targets = (0..MANY).map(|number| format!("/many/{number}")).chain(["/p".to_owned()]);
    // Four uses are wanted.
    let requests: Vec<String> = targets.map(|target| get(&target, "")).collect();
    for request in requests.iter().flat_map(|request| std::iter::repeat_n(request, 5)) {
        client.exchange(request);
    }
    let other = get("/other", "Host: other\r\n").replacen("Host: test\r\n", "", 1);
    kernel.warm(&other);
    let pinned = || stats(&kernel.proxy)["fast_path"]["objects"].as_u64().expect("a count");
    eventually("they are in the kernel", || pinned() > MANY as u64);
    let mut purges = Vec::new();
    let seen = under_load(&kernel, &get("/p", ""), || {
        let hits = kernel.hits();
        eventually("the kernel answers", || kernel.hits() > hits + 100);
        let asked = asked_at.lock().expect("no panic").len();
        let began = Instant::now();
        let output = kernel.proxy.command(&["purge", "--host", "test"]);
        purges.push((began, Instant::now()));
        assert!(output.status.success(), "{output:?}");
        // These have been in the kernel, too.
        for request in requests.iter().step_by(50) {
            let version: usize = client.exchange(request).text().parse().expect("a number");
            assert!(version >= asked, "{request}: {version} was there before {asked}");
        }
    });
    check(&seen, &purges, &asked_at.lock().expect("no panic"));
    let asked = kernel.origin.count("/other");
    kernel.warm(&other);
    assert_eq!(kernel.origin.count("/other"), asked, "it was not meant");
}

#[test]
fn nothing_older_follows_an_unsafe_method() {
    let Some((kernel, asked_at)) = numbered() else { return };
    let request = get("/p", "");
    let mut changes = Vec::new();
    let seen = under_load(&kernel, &request, || {
        for method in ["POST", "PUT", "DELETE"] {
            let hits = kernel.hits();
            eventually("the kernel answers", || kernel.hits() > hits + 100);
            let began = Instant::now();
            let head = format!("{method} /p HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
            assert_eq!(kernel.proxy.connect().exchange(head).status, 200);
            changes.push((began, Instant::now()));
        }
    });
    check(&seen, &changes, &asked_at.lock().expect("no panic"));
}

#[test]
fn another_reload_or_vary_leaves_nothing_behind() {
    let reply = |asked: &Asked| {
        let vary = match asked.number {
            1 => "Vary: Accept-Encoding\r\n",
            _ => "Vary: Accept-Encoding, Cookie\r\n",
        };
        ok(&format!("Cache-Control: max-age=600\r\n{vary}"), &asked.number.to_string())
    };
    let Some(kernel) = Kernel::before("", reply) else { return };
    let plain = get("/v", "");
    kernel.warm(&plain);
    // Another variant says that cookies matter: the one in the kernel is not what user mode would give.
    let other = get("/v", "Accept-Encoding: gzip\r\n");
    assert_eq!(kernel.proxy.connect().exchange(&other).text(), "2");
    assert!(!kernel.answers(&plain));
    assert_eq!(kernel.proxy.connect().exchange(&plain).text(), "3");
    kernel.reload("wait = \"1s\"");
    assert_eq!(kernel.proxy.connect().exchange(get("/w", "")).text(), "1");
}
