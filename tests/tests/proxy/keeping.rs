//! The upkeep of server groups while the program runs: active checks, the slow start of servers that
//! come back, and names whose addresses change.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use afpa_testkit::eventually_within;
use afpa_testkit::server::free_address;
use afpa_tests::proxy::{Names, Raw, Sample, Traffic, answer, proxy, read_head, server_row, state};

const SOON: Duration = Duration::from_secs(10);

/// A server that answers as long as it is asked for pages, and whose checks fail when they should.
struct Checked {
    server: Raw,
    /// Checks that were answered.
    checks: Arc<AtomicUsize>,
    /// How many of the next ones fail.
    bad: Arc<AtomicUsize>,
}

impl Checked {
    fn start(name: &'static str) -> Self {
        let (checks, bad) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, fail) = (Arc::clone(&checks), Arc::clone(&bad));
        let server = Raw::start(move |mut stream: TcpStream| {
            while let Some(head) = read_head(&mut stream) {
                if !head.starts_with("GET /health ") {
                    answer(&mut stream, 200, name);
                    continue;
                }
                assert!(head.contains("\r\nHost: check.example\r\n"), "{head}");
                let take = |left: usize| left.checked_sub(1);
                let fails = fail.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
                count.fetch_add(1, Ordering::SeqCst);
                answer(&mut stream, if fails { 503 } else { 204 }, "");
            }
        });
        Self { server, checks, bad }
    }

    fn fail(&self, times: usize) {
        self.bad.store(times, Ordering::SeqCst);
    }

    fn checks(&self) -> usize {
        self.checks.load(Ordering::SeqCst)
    }

    fn wait_for_checks(&self, count: usize) {
        let from = self.checks();
        eventually_within(SOON, "it is checked", || self.checks() >= from + count);
    }
}

/// Checks of `/health`, with more settings of the group's health.
fn checked(fall: u32, rise: u32, health: &str) -> String {
    format!(
        "[server_group.health]\nprobe_every = \"100ms\"\n{health}\n[server_group.check]\n\
         path = \"/health\"\nhost = \"check.example\"\nevery = \"100ms\"\nexpect = \"204\"\n\
         fall = {fall}\nrise = {rise}\n"
    )
}

/// Every request had an answer.
#[track_caller]
fn all_answered(samples: &[Sample]) {
    let lost = samples.iter().find(|sample| !matches!(&sample.answer, Ok((200, _))));
    assert!(lost.is_none(), "{lost:?}");
}

/// Answers of `name` among those to requests asked between two times, of all there are.
fn share(samples: &[Sample], name: &str, from: Instant, to: Instant) -> (usize, usize) {
    let within: Vec<_> = samples.iter().filter(|s| s.at >= from && s.at < to).collect();
    let named = |s: &&&Sample| s.answer.as_ref().is_ok_and(|(_, body)| body == name);
    (within.iter().filter(named).count(), within.len())
}

#[test]
fn checks_mark_a_server_that_still_answers_and_bring_it_back() {
    let (sick, well) = (Checked::start("sick"), Checked::start("well"));
    let proxy = proxy(&[sick.server.to(), well.server.to()], &checked(3, 2, ""));
    let traffic = Traffic::start(&proxy, 2, Duration::from_millis(2));
    // Fewer bad answers than three in a row are forgiven.
    for _ in 0..2 {
        sick.fail(2);
        sick.wait_for_checks(4);
    }
    assert_eq!(server_row(&proxy, &sick.server.to())["downs"], 0);
    sick.fail(usize::MAX);
    let is = |what: &str| state(&proxy, &sick.server.to()) == what;
    eventually_within(SOON, "it is unavailable", || is("check failed"));
    let gone = Instant::now();
    traffic.pass(100);
    sick.wait_for_checks(2);
    assert!(is("check failed"), "and stays so");
    let healing = Instant::now();
    let before = sick.checks();
    sick.fail(0);
    eventually_within(SOON, "it is available", || is("up"));
    assert!(sick.checks() >= before + 2, "two good answers are wanted");
    traffic.pass(50);
    let samples = traffic.end();
    all_answered(&samples);
    assert_eq!(share(&samples, "sick", gone, healing).0, 0);
    assert!(share(&samples, "sick", healing, Instant::now()).0 > 0);
    assert_eq!(server_row(&proxy, &well.server.to())["downs"], 0);
}

#[test]
fn the_share_of_a_server_that_came_back_grows() {
    const GROWS: Duration = Duration::from_secs(2);
    let (back, other) = (Checked::start("back"), Checked::start("other"));
    let settings = checked(1, 1, "slow_start = \"2s\"");
    let proxy = proxy(&[back.server.to(), other.server.to()], &settings);
    back.fail(usize::MAX);
    let is = |what: &str| state(&proxy, &back.server.to()) == what;
    eventually_within(SOON, "it is unavailable", || is("check failed"));
    let traffic = Traffic::start(&proxy, 2, Duration::from_millis(2));
    traffic.pass(20);
    let healed = Instant::now();
    back.fail(0);
    std::thread::sleep(GROWS + GROWS / 2);
    traffic.pass(50);
    let samples = traffic.end();
    all_answered(&samples);
    let named = |s: &&Sample| s.answer.as_ref().is_ok_and(|(_, body)| body == "back");
    let first = samples.iter().find(named).expect("it is back").at;
    assert!(first - healed < GROWS / 2, "at the next check: {:?}", first - healed);
    // Per cent of the requests in each fourth of the time, and when all of it is over.
    let parts: Vec<_> = (0..5)
        .map(|part| {
            let from = first + GROWS / 4 * part;
            let (own, all) = share(&samples, "back", from, from + GROWS / 4);
            assert!(all >= 20, "too little traffic: {all}");
            own * 100 / all
        })
        .collect();
    // Its weight against the other's whole one is 1/8, 3/8, 5/8 and 7/8 in the middle of them.
    assert!(parts[0] < 25 && parts[4] > 42, "{parts:?}");
    assert!(parts[0] + 5 < parts[2] && parts[2] < parts[4], "{parts:?}");
}

fn v4(address: SocketAddr) -> Ipv4Addr {
    match address.ip() {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => panic!("not IPv4"),
    }
}

#[test]
fn traffic_follows_a_name_to_its_new_address() {
    let (first_at, second_at) = (free_address(), free_address());
    let second_at = SocketAddr::new(second_at.ip(), first_at.port());
    let _first = Raw::named_at(first_at, "first");
    let _second = Raw::named_at(second_at, "second");
    let names = Names::start(&[v4(first_at)]);
    let server = format!("app.afpa.example:{}", first_at.port());
    let settings =
        format!("[resolver]\nname_servers = [\"{}\"]\ntimeout = \"200ms\"\n", names.to());
    let proxy = proxy(&[server], &settings);
    let wait_for = |text: &str| {
        eventually_within(SOON, text, || proxy.get("/").text() == text);
    };
    wait_for("first"); // its name may be looked up in vain at first, if the name server is late
    let traffic = Traffic::start(&proxy, 3, Duration::from_millis(2));
    let asked = names.asked();
    eventually_within(SOON, "its time to live ends", || names.asked() > asked);
    assert_eq!(proxy.get("/").text(), "first");

    names.change(&[v4(second_at)]);
    wait_for("second");
    let moved = Instant::now();
    traffic.pass(100);
    // Without an answer the old address stays.
    names.be_silent();
    let asked = names.asked();
    eventually_within(SOON, "it asks again", || names.asked() >= asked + 4);
    let told = Instant::now();
    traffic.pass(50);
    names.change(&[v4(first_at), v4(second_at)]);
    wait_for("first");
    wait_for("second");
    traffic.pass(50);
    let samples = traffic.end();
    all_answered(&samples);
    let (first, all) = share(&samples, "first", moved, told);
    assert!(first == 0 && all > 100, "{first} of {all}");
}
