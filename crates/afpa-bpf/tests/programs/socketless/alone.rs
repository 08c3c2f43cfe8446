//! Trust that ends: a cookie whose record got lost counts alone (N13), and a way is believed for a while (N1).

use std::net::SocketAddr;
use std::time::Duration;

use afpa_bpf::{Admission, FlowKey, Reason};
use afpa_netlab::Namespace;
use afpa_testkit::eventually;
use afpa_testkit::packet::Segment;
use afpa_testkit::tcp::RawClient;

use super::admission::{self, ip, look};
use crate::support::socketless::{Bench, learn, resets, syn_ack};

/// More SYNs than a set has records.
const LATER: u32 = 6;
const PATIENCE: u32 = 10;
/// A bit of the MAC: a cookie with another one looks like a cookie of this tuple, and is none.
const GUESSED: u32 = 1 << 20;
/// Wrong cookies in a period.
const WRONG: u64 = 8;

/// The client's SYN is answered, and the record of that gives way to those of later SYNs of the tuple. `known` makes its
/// client known.
#[track_caller]
fn without_record(bench: &Bench, client: &mut RawClient, known: impl Fn()) {
    for _ in 0..PATIENCE {
        known();
        let before = bench.count(Reason::SocketlessSyn);
        let answer = syn_ack(client, |_| ());
        let first = client.seq;
        for _ in 0..LATER {
            client.seq = client.seq.wrapping_add(100_000);
            syn_ack(client, |_| ());
        }
        let answered = bench.count(Reason::SocketlessSyn) - before;
        client.seq = first;
        if answered == u64::from(1 + LATER) {
            return learn(client, &answer);
        }
        client.seq = first.wrapping_add(1_000_000);
    }
    panic!("its SYNs are the kernel's: {:?}", bench.counts());
}

/// Whether the first segment of a client opens its connection, or counts as a wrong cookie. Anything else fails.
#[track_caller]
fn opens(bench: &Bench, segment: &Segment, client: &RawClient) -> bool {
    let counts =
        || [Reason::SocketlessOpened, Reason::SocketlessWrongCookie].map(|of| bench.count(of));
    let before = counts();
    client.send(segment);
    eventually("it is decided", || counts() != before);
    let now = counts();
    assert_eq!(now[0] + now[1], before[0] + before[1] + 1, "{:?}", bench.counts());
    now[0] > before[0]
}

/// A client behind the gateway, which the kernel has never spoken to.
fn stranger(bench: &Bench, last: u8) -> RawClient {
    let mut client = bench.world.raw();
    client.disguise(SocketAddr::new([198, 51, 100, last].into(), client.address().port()));
    client
}

/// Both cookies are right. Meanwhile a rule of routing makes the way to one of the clients uncertain.
#[test]
fn a_cookie_counts_without_its_record_only_where_the_way_to_the_client_is_known() {
    let Some(bench) = admission::bench(Admission::Everyone) else { return };
    let gateway_seen = || drop(admission::connect(&bench, "198.51.100.1"));
    let [mut known, mut unknown] = [stranger(&bench, 20), stranger(&bench, 21)];
    without_record(&bench, &mut known, gateway_seen);
    without_record(&bench, &mut unknown, gateway_seen);
    assert!(opens(&bench, &known.next(), &known), "{:?}", bench.counts());
    let server: &Namespace = bench.world.server();
    ip(server, &["rule", "add", "from", "10.77.0.77", "lookup", "77"]);
    look(&bench);
    assert!(!opens(&bench, &unknown.next(), &unknown), "{:?}", bench.counts());
}

/// Nobody gets more than eight guesses in a period.
#[test]
fn eight_wrong_cookies_end_the_trust_in_cookies_without_records() {
    for _ in 0..PATIENCE {
        let Some(bench) = Bench::new() else { return };
        let [mut before, mut behind] = [bench.world.raw(), bench.world.raw()];
        without_record(&bench, &mut before, || bench.introduce());
        without_record(&bench, &mut behind, || bench.introduce());
        let begun = period();
        for _ in 1..WRONG {
            let wrong = Segment { ack: behind.ack ^ GUESSED, ..behind.next() };
            assert!(!opens(&bench, &wrong, &behind));
        }
        let seven = opens(&bench, &before.next(), &before);
        let wrong = Segment { ack: behind.ack ^ GUESSED, ..behind.next() };
        assert!(!opens(&bench, &wrong, &behind));
        let opened = bench.count(Reason::SocketlessOpened);
        behind.acknowledge();
        let (mut answers, opens) = (Vec::new(), || bench.count(Reason::SocketlessOpened) > opened);
        eventually("the kernel resets it", || {
            answers.extend(behind.collect(Duration::from_millis(5)));
            resets(&answers) > 0 || opens()
        });
        if period() == begun {
            assert!(seven, "seven are not eight: {:?}", bench.counts());
            assert_eq!(
                bench.count(Reason::SocketlessWrongCookie),
                WRONG,
                "it is not even compared"
            );
            assert!(!opens(), "{answers:?}");
            return;
        }
    }
    panic!("each time a period ended meanwhile");
}

/// The number of the period of cookies, 17 s each.
fn period() -> u64 {
    monotonic() >> 34
}

fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The kernel sends nothing on a connection without a socket, so its way may have changed.
#[test]
fn after_eight_seconds_another_syn_ack_has_to_show_the_way() {
    /// In units of the programs' clock, a little more than a millisecond.
    const EIGHT_SECONDS: u32 = 8192;
    let Some(bench) = Bench::new() else { return };
    bench.fast_path.clients.set_firewall_interval(Duration::ZERO); // which would be asked sooner
    let known_for = |time: u32| {
        let client = bench.open();
        let key = FlowKey::new(client.address(), admission::server());
        let mut flow = bench.fast_path.flows.flow(&key).expect("read").expect("a flow");
        flow.way_known = ((monotonic() >> 20) as u32).wrapping_sub(time);
        bench.fast_path.flows.put_flow(&key, &flow.to_bytes()).expect("room");
        client
    };
    let mut lately = known_for(EIGHT_SECONDS - 3000);
    let mut long_ago = known_for(EIGHT_SECONDS + 10);
    // By then no SYN-ACK is so recent that it shows the way.
    std::thread::sleep(Duration::from_millis(900));
    let is_answered = |client: &mut RawClient| {
        let reply = client.ask(&client.get("/kernel.html"));
        reply.text().ends_with("\r\n\r\nfrom the kernel")
    };
    assert!(is_answered(&mut lately), "{:?}", bench.counts());
    let before = bench.count(Reason::PassNoWay);
    assert!(!is_answered(&mut long_ago), "{:?}", bench.counts());
    assert_eq!(bench.count(Reason::PassNoWay), before + 1);
    let renewed = (0..PATIENCE).any(|_| {
        let mut client = known_for(EIGHT_SECONDS + 10);
        bench.introduce();
        is_answered(&mut client)
    });
    assert!(renewed, "{:?}", bench.counts());
}
