//! Answers of servers: V1 to V4 of `bpf/LIFECYCLE.md`.

use std::time::Duration;

use afpa_bpf::{
    AcceptedCodings, Coding, FastPath, Freshness, PinRules, Reason, Response, Variant, boot_ns,
};
use afpa_testkit::eventually;
use afpa_testkit::packet::Segment;
use afpa_testkit::tcp::RawClient;

use crate::support::lab::{SOON, settings};
use crate::support::{LAST_MODIFIED, LISTENER, SERVER_V4, SITE, World, counted};

pub(crate) const HOST: &str = "shop.example";
/// Its number.
pub(crate) const NUMBER: u32 = 0x8000_0001;
const SECOND: u64 = 1_000_000_000;

/// An answer to pin: with this age now, in thousandths of a second.
pub(crate) struct Pinned<'a> {
    pub(crate) path: &'a str,
    pub(crate) body: &'a [u8],
    pub(crate) age: u64,
    pub(crate) fresh_for: u32,
    pub(crate) digits: u32,
    /// One byte of the head more or less: the Age stands at an odd place or an even one.
    pub(crate) filler: &'a str,
    pub(crate) codings: Option<AcceptedCodings>,
    /// Of an attached server: when it was asked.
    pub(crate) asked: u64,
}

impl Default for Pinned<'_> {
    fn default() -> Self {
        let (path, body, filler) = ("/answer", &b"from the kernel"[..], "");
        Self { path, body, age: 0, fresh_for: 10, digits: 1, filler, codings: None, asked: 0 }
    }
}

impl Pinned<'_> {
    /// Pins it, and returns when it was born.
    pub(crate) fn pin(&self, fast_path: &FastPath) -> u64 {
        let born = boot_ns().wrapping_sub(self.age * (SECOND / 1000));
        let age = "#".repeat(self.digits as usize);
        let fields = format!("Server: afpa-kernel\r\nX-Filler: {}\r\nAge: ", self.filler);
        let head = format!("HTTP/1.1 200 OK\r\n{fields}{age}\r\n");
        let whole = format!("{head}Content-Length: {}\r\n\r\n", self.body.len());
        let not_modified = format!("HTTP/1.1 304 Not Modified\r\n{fields}{age}\r\n\r\n");
        let offset = |head: &str| head.find("Age: ").expect("an Age") + 5;
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
                asked: self.asked,
            }),
            whole: Some(Response { body: self.body, ..response(whole, b"") }),
            not_modified: Some(response(not_modified, b"")),
        };
        let rules = PinRules { codings: self.codings, ..PinRules::default() };
        fast_path.pin_with(NUMBER, self.path.as_bytes(), &[variant], &rules).expect("pinned");
        born
    }
}

/// nginx, which has other content, and the fast path; the host is mapped.
fn world() -> Option<(World, FastPath)> {
    let (world, fast_path) = World::with_one_pinned(settings())?;
    assert!(fast_path.map_host_as(LISTENER, HOST, SITE, NUMBER).expect("mapped"));
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
            fast_path.beat();
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

#[test]
fn only_this_host_value_and_these_codings_get_it() {
    let Some((world, fast_path)) = world() else { return };
    world.file("answer", b"from nginx");
    Pinned::default().pin(&fast_path);
    let mut client = world.connect(SERVER_V4);
    let mut asks = |host: &str, more: &str| {
        fast_path.beat();
        client.exchange(get(host, more)).field("Server") == Some("afpa-kernel")
    };
    assert!(asks(HOST, "") && asks("SHOP.example", "Accept-Encoding: gzip\r\n"));
    for other in ["shop.example:8080", "shop.example.", "www.shop.example", "server"] {
        assert!(!asks(other, ""), "{other}");
    }
    assert!(fast_path.unpin(NUMBER, b"/answer").expect("unpinned"));
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
    assert!(fast_path.unpin_for(NUMBER, b"/answer", codings).expect("unpinned"));
    assert!(asks(HOST, "") && !asks(HOST, "Accept-Encoding: gzip, deflate, br\r\n"));
    assert_eq!(of(&["gzip", "gzip"]), None);
}

#[test]
fn an_answer_that_is_sent_again_has_the_age_that_it_had() {
    let Some((world, fast_path)) = world() else { return };
    Pinned { age: 41_950, fresh_for: 90, digits: 2, ..Pinned::default() }.pin(&fast_path);
    let mut client = world.connected();
    let asked = request(&client, &get(HOST, ""));
    client.send(&asked);
    let first = client.receive(SOON).expect("an answer");
    assert!(first.is_from_kernel(), "{first:?}");
    std::thread::sleep(Duration::from_millis(1100));
    fast_path.beat();
    let again = client.ask(&Segment { ts_value: asked.ts_value + 1100, ..asked.clone() });
    assert_eq!((again.seq, &again.payload), (first.seq, &first.payload));
    assert!(again.checksum_holds, "{again:?}");
    assert_eq!(counted(&fast_path, Reason::AnsweredRetransmission), 1);
}

#[test]
fn long_answers_heads_and_not_modified_have_an_age_too() {
    let Some((world, fast_path)) = world() else { return };
    let body: Vec<u8> = (0..8192u32).map(|i| ((i * 31) >> 3) as u8).collect();
    let pinned =
        Pinned { body: &body, age: 123_500, fresh_for: 900, digits: 3, ..Pinned::default() };
    pinned.pin(&fast_path);
    let mut client = world.connect(SERVER_V4);
    for turn in 0..3 {
        fast_path.beat();
        let whole = client.exchange(get(HOST, ""));
        assert_eq!((whole.status, &whole.body), (200, &body), "{turn}");
        let head = client.exchange(get(HOST, "").replacen("GET", "HEAD", 1));
        let known = client.exchange(get(HOST, "If-None-Match: \"v1\"\r\n"));
        assert_eq!((head.status, known.status), (200, 304));
        for answer in [whole, head, known] {
            assert_eq!(answer.field("Server"), Some("afpa-kernel"));
            let age: u64 = answer.field("Age").expect("an Age").parse().expect("a number");
            assert!((123..300).contains(&age), "{age}");
        }
    }
    assert_eq!(counted(&fast_path, Reason::AnsweredShared), 9);
    assert_eq!(counted(&fast_path, Reason::TransferDone), 3);
}
