//! How long the kernel gives an answer: to the second, under load, and not after user mode has ended.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use afpa_testkit::{Client, Response, eventually, eventually_within};
use rustix::process::Signal;

use super::{Kernel, get};
use crate::origin::{Asked, Reply, ok};

/// One answer: when it was asked for, when it was there, its version, its age.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) asked: Instant,
    pub(super) there: Instant,
    pub(super) version: usize,
    pub(super) age: u64,
}

/// Asks on connections of their own, one after the other on each, until `work` has returned.
pub(super) fn under_load(kernel: &Kernel, request: &str, work: impl FnOnce()) -> Vec<Seen> {
    const CLIENTS: usize = 4;
    let (ended, all) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let ask = |mut client: Client| {
        let mut seen = Vec::new();
        while !ended.load(Ordering::Relaxed) {
            let asked = Instant::now();
            let answer = client.exchange(request);
            let there = Instant::now();
            assert_eq!(answer.status, 200, "{answer:?}");
            let version = answer.text().parse().expect("a number");
            let age = answer.field("Age").map_or(0, |age| age.parse().expect("a number"));
            seen.push(Seen { asked, there, version, age });
        }
        all.lock().expect("no panic").extend(seen);
    };
    let clients: Vec<Client> = (0..CLIENTS).map(|_| kernel.proxy.connect()).collect();
    std::thread::scope(|scope| {
        let ask = &ask;
        for client in clients {
            scope.spawn(move || ask(client));
        }
        let _end = End(&ended);
        work();
    });
    all.into_inner().expect("no panic")
}

/// Ends the load, also when the work has failed.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn no_answer_is_given_a_second_past_its_end() {
    const LIFE: u64 = 2;
    let Some(kernel) = Kernel::before("", |asked: &Asked| {
        ok(&format!("Cache-Control: max-age={LIFE}\r\n"), &asked.number.to_string())
    }) else {
        return;
    };
    let request = get("/", "");
    let seen = under_load(&kernel, &request, || {
        eventually_within(
            Duration::from_secs(30),
            "three lives were answered by the kernel",
            || kernel.origin.count("/") > 4 && kernel.hits() > 1000,
        );
    });
    // When each version was there at the latest.
    let mut first: HashMap<usize, Instant> = HashMap::new();
    for one in &seen {
        let first = first.entry(one.version).or_insert(one.there);
        *first = one.there.min(*first);
    }
    for one in &seen {
        let since = one.asked.saturating_duration_since(first[&one.version]);
        assert!(since < Duration::from_secs(LIFE), "{one:?} after {since:?}");
        assert!(one.age < LIFE && one.age + 1 > since.as_secs(), "{one:?} after {since:?}");
    }
    assert!(seen.iter().any(|one| one.age == LIFE - 1), "the last second is used, too");
}

#[test]
fn an_age_that_gets_another_digit_is_pinned_anew() {
    let reply = |asked: &Asked| {
        let age = asked.target.trim_start_matches('/');
        ok(&format!("Cache-Control: max-age=600\r\nAge: {age}\r\n"), "1")
    };
    let Some(kernel) = Kernel::before("", reply) else { return };
    let request = get("/7", "");
    kernel.warm(&request);
    let mut client = kernel.proxy.connect();
    let (mut last, mut in_kernel) = (0, 0);
    eventually("the kernel has given both", || {
        let before = kernel.hits();
        let answer = client.exchange(&request);
        let age: u64 = answer.field("Age").expect("an Age").parse().expect("a number");
        assert!(age >= last, "{age} after {last}");
        last = age;
        in_kernel += u64::from(kernel.hits() > before && age >= 10);
        in_kernel >= 3
    });
    assert_eq!(kernel.origin.count("/7"), 1);
}

/// The age gets a digit more, and a second later the `ttl` has one less.
#[test]
fn what_is_left_of_a_lifetime_is_right_when_it_loses_a_digit() {
    const LIFE: u64 = 110;
    let reply = |_: &Asked| ok(&format!("Cache-Control: max-age={LIFE}\r\nAge: 7\r\n"), "1");
    let Some(kernel) = Kernel::before("status_field = true", reply) else { return };
    let request = get("/", "");
    kernel.warm(&request);
    let (mut client, mut user) = (kernel.proxy.connect(), kernel.user());
    let (mut last, mut in_kernel) = (0, 0);
    eventually("the kernel has given both", || {
        for client in [&mut client, &mut user] {
            let before = kernel.hits();
            let answer = client.exchange(&request);
            let (left, age) = ttl_and_age(&answer);
            assert!(left + age == LIFE && age >= last, "{left} and {age} after {last}");
            last = age;
            in_kernel += u64::from(kernel.hits() > before && left < 100);
        }
        in_kernel >= 3
    });
    assert_eq!(kernel.origin.count("/"), 1);
}

fn ttl_and_age(answer: &Response) -> (u64, u64) {
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).expect("a number");
    let told = answer.field("Cache-Status").and_then(|told| told.strip_prefix("afpa; hit; ttl="));
    (number(told), number(answer.field("Age")))
}

/// Each life ends in user mode, which says so, and begins anew in the kernel.
#[test]
fn a_validated_answer_says_its_new_lifetime() {
    const LIFE: u64 = 3;
    let reply = |asked: &Asked| match asked.field("If-None-Match") {
        None => ok(&format!("Cache-Control: max-age={LIFE}\r\nETag: \"e\"\r\n"), "1"),
        Some(_) => Reply::Bytes(
            format!("HTTP/1.1 304 X\r\nETag: \"e\"\r\nCache-Control: max-age={LIFE}\r\n\r\n")
                .into(),
        ),
    };
    let Some(kernel) = Kernel::before("status_field = true", reply) else { return };
    let request = get("/", "");
    let (mut validated, mut in_kernel) = (0, 0);
    eventually_within(Duration::from_secs(30), "the second life is the kernel's", || {
        let before = kernel.hits();
        let answer = kernel.proxy.connect().exchange(&request);
        match answer.field("Cache-Status") {
            Some("afpa; fwd=stale; fwd-status=304; stored") => validated += 1,
            Some("afpa; fwd=uri-miss; stored") => {}
            _ => {
                let (left, age) = ttl_and_age(&answer);
                assert!(left + age == LIFE && left > 0, "{left} and {age}");
                in_kernel += u64::from(validated > 0 && kernel.hits() > before);
            }
        }
        in_kernel > 0
    });
    assert!(validated > 0 && kernel.origin.count("/") > validated);
}

/// Stale answers are user mode's, also where they may still be used.
#[test]
fn stale_answers_are_given_by_user_mode_and_validated() {
    let reply = |asked: &Asked| match asked.number {
        1 => ok("Cache-Control: max-age=2, stale-while-revalidate=60\r\nETag: \"e\"\r\n", "1"),
        _ => ok("Cache-Control: max-age=600\r\nETag: \"e\"\r\n", "2"),
    };
    let Some(kernel) = Kernel::before("", reply) else { return };
    let request = get("/", "");
    kernel.warm(&request);
    eventually("the server is asked again", || {
        kernel.proxy.connect().exchange(&request);
        kernel.origin.count("/") == 2
    });
    eventually("the new answer is there", || {
        kernel.proxy.connect().exchange(&request).text() == "2"
    });
    kernel.warm(&request);
    assert_eq!(kernel.proxy.connect().exchange(&request).text(), "2");
    assert_eq!(kernel.origin.count("/"), 2);
}

/// A stopped process cannot take back the answers that it has pinned. (The sockets of a killed process are closed, and
/// nothing is answered on them.)
#[test]
fn a_stopped_process_answers_nothing_past_the_end_of_an_answer() {
    const LIFE: u64 = 2;
    let replied = Arc::new(Mutex::new(Instant::now()));
    let at = replied.clone();
    let Some(kernel) = Kernel::before("", move |asked: &Asked| {
        *at.lock().expect("no panic") = Instant::now();
        std::thread::sleep(Duration::from_millis(500)); // which belongs to its life
        ok(&format!("Cache-Control: max-age={LIFE}\r\n"), &asked.number.to_string())
    }) else {
        return;
    };
    let request = get("/", "");
    kernel.warm(&request);
    let mut client = kernel.proxy.connect();
    let asked = kernel.origin.count("/");
    kernel.proxy.signal(Signal::STOP);
    let stopped = Instant::now();
    client.set_patience(Duration::from_millis(300)).expect("a time-out");
    // The heartbeat ends the answering after two seconds at the latest.
    let mut last = None;
    while stopped.elapsed() < Duration::from_secs(LIFE + 2) {
        let sent = Instant::now();
        if client.try_send(&request).is_err() {
            break;
        }
        match client.try_receive(afpa_testkit::Asked::Body) {
            Ok(_) => last = Some(sent),
            Err(_) => break,
        }
    }
    let (count, replied) = (kernel.origin.count("/"), *replied.lock().expect("no panic"));
    kernel.proxy.signal(Signal::CONT);
    assert_eq!(count, asked);
    // Its life began when it was asked for, before the reply (RFC 9111 section 4.2.3).
    let Some(last) = last else {
        println!("SKIP: its life was over before the process stood still");
        return;
    };
    let age = last.saturating_duration_since(replied);
    println!("the last answer was {age:?} old");
    assert!(age < Duration::from_secs(LIFE), "{age:?}");
}
