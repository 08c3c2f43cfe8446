//! Answers of servers: V1 to V4 of `docs/rules`.

use std::time::Duration;

use afpa_bpf::{
    AcceptedCodings, Coding, FastPath, Freshness, PinRules, Reason, Response, Ttl, Variant, boot_ns,
};
use afpa_testkit::eventually;
use afpa_testkit::packet::Segment;
use afpa_testkit::tcp::RawClient;

use crate::support::lab::settings;
use crate::support::{LAST_MODIFIED, LISTENER, Lent, SERVER_V4, SITE, World, counted};

pub(crate) const HOST: &str = "shop.example";
/// Its number.
pub(crate) const NUMBER: u32 = 0x8000_0001;
const SECOND: u64 = 1_000_000_000;
/// The bytes before a `ttl`.
const STATUS: &str = "Cache-Status: afpa; hit; ttl=";

/// An answer to pin: with this age now, in thousandths of a second.
pub(crate) struct Pinned<'a> {
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
    pub(crate) age: u64,
    pub(crate) fresh_for: u32,
    pub(crate) digits: u32,
    /// It says in Cache-Status how long it is fresh.
    pub(crate) ttl: Option<Ttl>,
    /// One byte of the head more or less: the Age stands at an odd place or an even one.
    pub(crate) filler: &'a str,
    pub(crate) codings: Option<AcceptedCodings>,
    /// Of an attached server: when it was asked.
    pub(crate) asked: u64,
}

impl Default for Pinned<'_> {
    fn default() -> Self {
        let (path, body, filler) = ("/answer", &b"from the kernel"[..], "");
        let (ttl, codings) = (None, None);
        Self { path, body, age: 0, fresh_for: 10, digits: 1, ttl, filler, codings, asked: 0 }
    }
}

impl Pinned<'_> {
    /// Pins it, and returns when it was born.
    pub(crate) fn pin(&self, fast_path: &FastPath) -> u64 {
        let born = boot_ns().wrapping_sub(self.age * (SECOND / 1000));
        let age = "#".repeat(self.digits as usize);
        let places = |ttl: Ttl| "#".repeat(ttl.digits as usize);
        let status = self.ttl.map(|ttl| format!("{STATUS}{}\r\n", places(ttl)));
        let status = status.unwrap_or_default();
        let fields = format!("Server: afpa-kernel\r\nX-Filler: {}\r\n{status}Age: ", self.filler);
        let head = format!("HTTP/1.1 200 OK\r\n{fields}{age}\r\n");
        let whole = format!("{head}Content-Length: {}\r\n\r\n", self.body.len());
        let not_modified = format!("HTTP/1.1 304 Not Modified\r\n{fields}{age}\r\n\r\n");
        let behind = if self.ttl.is_some() { STATUS } else { "Age: " };
        let offset = |head: &str| head.find(behind).expect("its place") + behind.len();
        let response = |head: &'static str, body| Response {
            head: head.as_bytes(),
            date_offset: offset(head),
            body,
        };
        let (whole, not_modified) = (whole.leak(), not_modified.leak());
        let variant = Variant {
            coding: Coding::Identity,
            closing: false,
            etag: b"\"v1\"",
            last_modified: Some(LAST_MODIFIED),
            freshness: Some(Freshness {
                born,
                fresh_for: self.fresh_for,
                digits: self.digits,
                ttl: self.ttl,
                asked: self.asked,
            }),
            whole: Some(Response { body: self.body, ..response(whole, b"") }),
            not_modified: Some(response(not_modified, b"")),
        };
        let rules = PinRules { codings: self.codings, ..PinRules::default() };
        fast_path
            .objects
            .pin_with(NUMBER, self.path.as_bytes(), &[variant], &rules)
            .expect("pinned");
        born
    }
}

/// nginx, which has other content, and the fast path; the host is mapped.
fn world() -> Option<(World, Lent)> {
    let (world, fast_path) = World::with_one_pinned(settings())?;
    assert!(fast_path.listeners.map_host_as(LISTENER, HOST, SITE, NUMBER).expect("mapped"));
    Some((world, fast_path))
}

fn request(client: &RawClient, text: &str) -> Segment {
    Segment { payload: text.as_bytes().to_vec(), ..client.get("/") }
}

fn get(host: &str, more: &str) -> String {
    format!("GET /answer HTTP/1.1\r\nHost: {host}\r\n{more}\r\n")
}

fn age_of(answer: &str) -> u64 {
    let line = answer.lines().find_map(|line| line.strip_prefix("Age: ")).expect("an Age");
    line.parse().expect("a number")
}

#[test]
fn ages_are_right_to_the_second_until_the_answer_is_not_fresh_any_more() {
    let Some((world, fast_path)) = world() else { return };
    let mut client = world.connected();
    for (filler, digits, age, fresh_for) in [
        ("", 1, 8_800, 10),
        ("x", 1, 8_800, 10),
        ("", 2, 98_900, 100),
        ("x", 5, 43_210_900, 43_212),
        ("", 8, 99_999_998_900, 100_000_000),
    ] {
        let pinned = Pinned { age, fresh_for, digits, filler, ..Pinned::default() };
        let born = pinned.pin(&fast_path);
        let (mut seen, mut last) = (Vec::new(), 0);
        let elapsed = || boot_ns().wrapping_sub(born) / SECOND;
        eventually("it is not fresh any more", || {
            fast_path.clock.beat();
            let before = elapsed();
            let answer = client.ask(&request(&client, &get(HOST, "")));
            let after = elapsed();
            if !answer.is_from_kernel() {
                assert!(after >= u64::from(fresh_for), "{after} of {fresh_for}: {answer:?}");
                return true;
            }
            assert!(answer.checksum_holds, "{answer:?}");
            let age = age_of(&answer.text());
            assert!((before..=after).contains(&age), "{age}: {before} to {after}");
            assert!(age < u64::from(fresh_for) && age >= last, "{age} after {last}");
            assert!(answer.text().ends_with("from the kernel"), "{answer:?}");
            last = age;
            seen.push(age);
            false
        });
        seen.dedup();
        assert!(
            seen.len() >= 2 && *seen.last().expect("one") == u64::from(fresh_for) - 1,
            "{seen:?}"
        );
        let again = client.ask(&request(&client, &get(HOST, "")));
        assert!(!again.is_from_kernel(), "it does not come back: {again:?}");
    }
    assert!(counted(&fast_path, Reason::PassExpired) >= 5);
}

/// The rest of the lifetime, and the age, both read from the head.
fn ttl_and_age(head: &str) -> (u64, u64) {
    let line = head.lines().find_map(|line| line.strip_prefix(STATUS)).expect("a ttl");
    (line.parse().expect("a number"), age_of(head))
}

#[test]
fn what_is_left_of_a_lifetime_is_right_to_the_second() {
    let Some((world, fast_path)) = world() else { return };
    let mut client = world.connected();
    for (filler, age, digits, lifetime, of_ttl, fresh_for) in [
        ("", 8_200, 1, 10, 1, 10),
        ("x", 8_200, 1, 10, 1, 10),
        // 101, 100; an answer that has 99 left is pinned anew.
        ("", 498_200, 3, 600, 3, 501),
        ("x", 43_210_200, 5, 2_147_483_648, 10, 43_212),
        ("", 99_999_998_200, 8, u32::MAX, 10, 100_000_000),
    ] {
        let ttl = Some(Ttl { lifetime, digits: of_ttl });
        let pinned = Pinned { age, fresh_for, digits, ttl, filler, ..Pinned::default() };
        pinned.pin(&fast_path);
        let mut seen = Vec::new();
        eventually("it is not given any more", || {
            fast_path.clock.beat();
            let answer = client.ask(&request(&client, &get(HOST, "")));
            if !answer.is_from_kernel() {
                return true;
            }
            assert!(answer.checksum_holds, "{answer:?}");
            let (left, age) = ttl_and_age(&answer.text());
            assert_eq!(left + age, u64::from(lifetime), "{answer:?}");
            assert!(age < u64::from(fresh_for), "{age}");
            assert!(answer.text().ends_with("from the kernel"), "{answer:?}");
            seen.push(age);
            false
        });
        seen.dedup();
        assert!(seen.len() >= 2 && seen.last() == Some(&u64::from(fresh_for - 1)), "{seen:?}");
    }
}

#[test]
fn a_place_that_is_not_that_of_ttl_and_age_is_refused() {
    let Some((_world, fast_path)) = world() else { return };
    let pin = |head: &'static str, ttl: Ttl| {
        let freshness = Freshness { born: 0, fresh_for: 1, digits: 1, ttl: Some(ttl), asked: 0 };
        let date_offset = head.find('#').expect("a place");
        let whole = Some(Response { head: head.as_bytes(), date_offset, body: b"" });
        let variant = Variant {
            coding: Coding::Identity,
            closing: false,
            etag: b"",
            last_modified: None,
            freshness: Some(freshness),
            whole,
            not_modified: None,
        };
        fast_path.objects.pin(NUMBER, b"/answer", &[variant]).map(|_| ())
    };
    let ttl = |digits| Ttl { lifetime: 9, digits };
    pin("HTTP/1.1 200 OK\r\nCache-Status: afpa; hit; ttl=#\r\nAge: #\r\n\r\n", ttl(1))
        .expect("right");
    for (head, digits) in [
        ("HTTP/1.1 200 OK\r\nCache-Status: afpa; hit; ttl=#\r\nAge: #\r\n\r\n", 2),
        ("HTTP/1.1 200 OK\r\nCache-Status: afpa; hit; ttl=#\r\nAge: #\r\n\r\n", 0),
        ("HTTP/1.1 200 OK\r\nCache-Status: afpa; hit; ttl=###########\r\nAge: #\r\n\r\n", 11),
        ("HTTP/1.1 200 OK\r\nCache-Status: afpa; hit; ttl=#\r\nAgo: #\r\n\r\n", 1),
        ("HTTP/1.1 200 OK\r\nAge: #\r\nA: 1234567890\r\n\r\n", 1),
        ("HTTP/1.1 200 OK\r\nCache-Status: afpa; hit; ttl=#\r\nAge: ", 1),
    ] {
        assert!(pin(head, ttl(digits)).is_err(), "{head:?} {digits}");
    }
}

#[test]
fn only_this_host_value_and_these_codings_get_it() {
    let Some((world, fast_path)) = world() else { return };
    world.file("answer", b"from nginx");
    Pinned::default().pin(&fast_path);
    let mut client = world.connect(SERVER_V4);
    let mut asks = |host: &str, more: &str| {
        fast_path.clock.beat();
        client.exchange(get(host, more)).field("Server") == Some("afpa-kernel")
    };
    assert!(asks(HOST, "") && asks("SHOP.example", "Accept-Encoding: gzip\r\n"));
    for other in ["shop.example:8080", "shop.example.", "www.shop.example", "server"] {
        assert!(!asks(other, ""), "{other}");
    }
    assert!(fast_path.objects.unpin(NUMBER, b"/answer").expect("unpinned"));
    assert!(!asks(HOST, ""), "it was taken back");
    let of = |members: &[&str]| AcceptedCodings::of(members.iter().map(|m| m.as_bytes()));
    let codings = of(&["br", "deflate", "gzip"]);
    Pinned { codings, ..Pinned::default() }.pin(&fast_path);
    for (value, same) in [
        ("gzip, deflate, br", true),
        ("br,gzip,deflate", true),
        ("gzip, br", false),
        ("gzip, deflate, br, zstd", false),
        ("gzip, deflate, br, identity", false),
        ("gzip, deflate, br, gzip", false),
        ("gzip, deflate, br;q=0.5", false),
        ("gzip, deflate, br, x", false),
    ] {
        assert_eq!(asks(HOST, &format!("Accept-Encoding: {value}\r\n")), same, "{value}");
    }
    assert!(!asks(HOST, ""));
    Pinned { codings: Some(AcceptedCodings::NONE), ..Pinned::default() }.pin(&fast_path);
    assert!(asks(HOST, "") && !asks(HOST, "Accept-Encoding: identity\r\n"));
    assert!(fast_path.objects.unpin_for(NUMBER, b"/answer", codings).expect("unpinned"));
    assert!(asks(HOST, "") && !asks(HOST, "Accept-Encoding: gzip, deflate, br\r\n"));
    assert_eq!(of(&["gzip", "gzip"]), None);
}

#[test]
fn an_answer_that_is_sent_again_has_the_age_that_it_had() {
    let Some((world, fast_path)) = world() else { return };
    for (turn, ttl) in [None, Some(Ttl { lifetime: 90, digits: 2 })].into_iter().enumerate() {
        Pinned { age: 41_950, fresh_for: 80, digits: 2, ttl, ..Pinned::default() }.pin(&fast_path);
        let mut client = world.connected();
        let asked = request(&client, &get(HOST, ""));
        fast_path.clock.beat();
        client.send(&asked);
        let first = client.await_segment("an answer", |_| true);
        assert!(first.is_from_kernel(), "{first:?}");
        assert_eq!(first.text().contains("ttl="), ttl.is_some(), "{first:?}");
        std::thread::sleep(Duration::from_millis(1100));
        fast_path.clock.beat();
        let again = client.ask(&Segment { ts_value: asked.ts_value + 1100, ..asked.clone() });
        assert_eq!((again.seq, &again.payload), (first.seq, &first.payload));
        assert!(again.checksum_holds, "{again:?}");
        assert_eq!(counted(&fast_path, Reason::AnsweredRetransmission), turn as u64 + 1);
    }
}

#[test]
fn long_answers_heads_and_not_modified_have_an_age_too() {
    let Some((world, fast_path)) = world() else { return };
    let body: Vec<u8> = (0..8192u32).map(|i| ((i * 31) >> 3) as u8).collect();
    let mut client = world.connect(SERVER_V4);
    for turn in 0..4 {
        let ttl = (turn >= 2).then_some(Ttl { lifetime: 1122, digits: 3 });
        let (age, fresh_for, digits) = (123_500, 900, 3);
        let pinned = Pinned { body: &body, age, fresh_for, digits, ttl, ..Pinned::default() };
        pinned.pin(&fast_path);
        fast_path.clock.beat();
        let whole = client.exchange(get(HOST, ""));
        assert_eq!((whole.status, &whole.body), (200, &body), "{turn}");
        let head = client.exchange(get(HOST, "").replacen("GET", "HEAD", 1));
        let known = client.exchange(get(HOST, "If-None-Match: \"v1\"\r\n"));
        assert_eq!((head.status, known.status), (200, 304));
        for answer in [whole, head, known] {
            assert_eq!(answer.field("Server"), Some("afpa-kernel"));
            let age: u64 = answer.field("Age").expect("an Age").parse().expect("a number");
            assert!((123..300).contains(&age), "{age}");
            let told = answer.field("Cache-Status").map(str::to_owned);
            assert_eq!(told, ttl.map(|_| format!("afpa; hit; ttl={}", 1122 - age)));
        }
    }
    assert_eq!(counted(&fast_path, Reason::AnsweredShared), 12);
    assert_eq!(counted(&fast_path, Reason::TransferDone), 4);
}
