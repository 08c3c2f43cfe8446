//! Rules against a plain search, buckets against a count of their tokens, and the orders of an operator.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use afpa_abi::{POLICE_TIME_BITS, POLICE_WAYS};
use afpa_testkit::Random;

use crate::*;

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn prefixes_are_read_as_written() {
    for text in
        ["10.0.0.0/8", "192.0.2.7", "0.0.0.0/0", "::/0", "2001:db8::/33", "::1", "fe80::/10"]
    {
        assert_eq!(prefix(text).to_string(), text);
    }
    assert_eq!(prefix("::ffff:10.0.0.0/104"), prefix("10.0.0.0/8"));
    assert_eq!(prefix("192.0.2.7/32").to_string(), "192.0.2.7");
}

#[test]
fn what_is_no_prefix_has_a_remedy() {
    for (text, says, remedy) in [
        ("10/8", "\"10/8\" is neither an address nor a prefix", "write for example 192.0.2.0/24"),
        ("example.org", "\"example.org\" is neither", "write for example"),
        ("10.0.0.0/33", "no number of bits from 0 to 32", "write for example 192.0.2.0/24"),
        ("10.0.0.0/", "no number of bits from 0 to 32", "write for example"),
        ("10.0.0.0/+8", "no number of bits from 0 to 32", "write for example"),
        ("::/129", "no number of bits from 0 to 128", "write for example 2001:db8::/32"),
        (
            "10.0.0.7/8",
            "\"10.0.0.7/8\" has bits behind its prefix",
            "write 10.0.0.0/8 for all of it, or 10.0.0.7 for the one address",
        ),
        ("2001:db8::1/32", "has bits behind", "write 2001:db8::/32 for all of it"),
    ] {
        let refused = text.parse::<Prefix>().expect_err(text);
        assert!(refused.to_string().contains(says), "{refused}");
        assert!(refused.remedy().starts_with(remedy), "{}", refused.remedy());
    }
}

#[test]
fn a_file_has_one_prefix_a_line() {
    let text = "# bots\n10.0.0.0/8 # all\n\n  2001:db8::/32\r\n";
    assert_eq!(read_lines(text), Ok(vec![prefix("10.0.0.0/8"), prefix("2001:db8::/32")]));
    let (line, why) = read_lines("10.0.0.0/8\n\n10.0.0.1, 10.0.0.2\n").unwrap_err();
    assert_eq!(line, 3);
    assert_eq!(why.to_string(), "\"10.0.0.1, 10.0.0.2\" is neither an address nor a prefix");
}

#[test]
fn the_longest_prefix_wins_and_allowed_wins_a_tie() {
    let rules = Rules::of(
        ["10.1.0.0/16", "10.2.0.0/16", "::1"].map(prefix),
        ["10.0.0.0/8", "10.2.0.0/16", "10.1.2.0/24", "::/0"].map(prefix),
    );
    for (client, rule) in [
        ("10.9.0.1", Some(Rule::Deny)),
        ("10.1.0.1", Some(Rule::Allow)),
        ("10.1.2.1", Some(Rule::Deny)),
        ("10.2.0.1", Some(Rule::Allow)),
        ("11.0.0.1", None),
        ("::ffff:10.9.0.1", Some(Rule::Deny)),
        ("::ffff:11.0.0.1", None),
        ("2001:db8::1", Some(Rule::Deny)),
        ("::1", Some(Rule::Allow)),
    ] {
        assert_eq!(rules.longest(ip(client)), rule, "{client}");
    }
}

/// Addresses that share many of their first bits, so that prefixes meet.
fn address(random: &mut Random) -> IpAddr {
    let low = random.next() & random.next();
    match random.one_in(2) {
        true => Ipv4Addr::from(0x0a00_0000 | low as u32 & 0x0103_0307).into(),
        false => {
            Ipv6Addr::from(0x2001_0db8_u128 << 96 | u128::from(low & 0x8001_0003_0000_0307)).into()
        }
    }
}

fn some_prefixes(random: &mut Random) -> Vec<Prefix> {
    let mut one = || {
        let address = address(random);
        Prefix::of(address, random.below(if address.is_ipv4() { 33 } else { 129 }) as u8)
    };
    (0..20).map(|_| one()).collect()
}

#[test]
fn rules_agree_with_a_search_through_all_of_them() {
    let seed = Random::seed_or(7);
    let mut random = Random::new(seed);
    for _ in 0..200 {
        let (allow, deny) = (some_prefixes(&mut random), some_prefixes(&mut random));
        let rules = Rules::of(allow.iter().copied(), deny.iter().copied());
        for _ in 0..100 {
            let client = address(&mut random);
            let longest = |list: &[Prefix]| {
                let fitting = list.iter().filter(|prefix| prefix.contains(client));
                fitting.map(|prefix| prefix.bits()).max()
            };
            let expected = match (longest(&allow), longest(&deny)) {
                (None, None) => None,
                (allowed, denied) if allowed >= denied => Some(Rule::Allow),
                _ => Some(Rule::Deny),
            };
            assert_eq!(rules.longest(client), expected, "seed {seed}: {client} of {rules:?}");
        }
    }
}

const SECOND: u64 = 1_000_000_000;

fn police(settings: PoliceSettings) -> Police {
    let police = Police::new(None, 0x1234_5678_9abc_def1, 1);
    police.configure(&settings).expect("there is no kernel to refuse it");
    police
}

fn client_requests(per_second: u32, burst: u32) -> PoliceSettings {
    let client_requests = Rate { per_second, burst };
    PoliceSettings { limits: Limits { client_requests, ..Limits::default() }, ..Default::default() }
}

#[test]
fn nothing_is_refused_where_nothing_is_configured() {
    for police in [Police::default(), police(PoliceSettings::default())] {
        for _ in 0..100_000 {
            assert_eq!(police.connection(ip("10.0.0.1"), None, SECOND), Ok(()));
            assert_eq!(police.request(ip("10.0.0.1"), SECOND), Ok(()));
        }
    }
}

#[test]
fn a_burst_then_the_rate() {
    let police = police(client_requests(10, 5));
    let start = 77 * SECOND;
    let granted = |from: u64, to: u64, client: &str| {
        let times = (from..to).step_by((SECOND / 1000) as usize);
        times.filter(|now| police.request(ip(client), start + now).is_ok()).count()
    };
    assert_eq!(granted(0, SECOND / 1000, "10.0.0.1"), 1);
    let in_two_seconds = granted(SECOND / 1000, 2 * SECOND, "10.0.0.1");
    assert!((23..=25).contains(&(in_two_seconds + 1)), "{in_two_seconds}");
    assert_eq!(granted(2 * SECOND, 2 * SECOND + 1, "10.0.0.2"), 1, "another client has its own");
    assert_eq!(
        granted(60 * SECOND, 60 * SECOND + 4 * SECOND / 1000, "10.0.0.1"),
        4,
        "it is full again"
    );
    let refused = police.counts().get(What::Request, Refusal::ClientRate);
    assert_eq!(refused, 1999 - in_two_seconds as u64);
}

#[test]
fn however_many_take_at_once_a_bucket_gives_no_more_than_it_has() {
    let police = police(client_requests(1, 1000));
    let granted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    if police.request(ip("10.0.0.1"), SECOND).is_ok() {
                        granted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(granted.into_inner(), 1000);
}

#[test]
fn a_client_is_its_prefix() {
    let police = police(client_requests(1, 1));
    let asks = |client: &str| police.request(ip(client), SECOND);
    assert_eq!(asks("2001:db8:0:1::1"), Ok(()));
    assert_eq!(asks("2001:db8:0:1:ffff::2"), Err(Refusal::ClientRate));
    assert_eq!(asks("2001:db8:0:2::1"), Ok(()));
    assert_eq!(asks("192.0.2.1"), Ok(()));
    assert_eq!(asks("::ffff:192.0.2.1"), Err(Refusal::ClientRate));
    assert_eq!(asks("192.0.2.2"), Ok(()));
}

#[test]
fn who_is_refused_for_its_own_rate_costs_others_nothing_and_who_is_allowed_neither() {
    let mut settings = client_requests(1, 2);
    settings.limits.requests = Rate { per_second: 1, burst: 5 };
    settings.allow = vec![prefix("10.9.0.0/16")];
    let police = police(settings);
    let asks = |client: &str| police.request(ip(client), SECOND);
    for _ in 0..100 {
        let _refused = asks("10.0.0.1");
        assert_eq!(asks("10.9.0.1"), Ok(()));
    }
    assert_eq!([asks("10.0.0.2"), asks("10.0.0.2"), asks("10.0.0.3")], [Ok(()); 3]);
    assert_eq!(asks("10.0.0.4"), Err(Refusal::TotalRate));
}

#[test]
fn sets_that_are_full_of_active_clients_forget_the_least_active() {
    let police = police(client_requests(1, 3));
    // Many more clients than buckets, then one that asks more often than they do.
    for client in 0..200_000_u32 {
        let client = IpAddr::from(Ipv4Addr::from(0x0b00_0000 | client));
        assert_eq!(police.request(client, SECOND), Ok(()));
    }
    let granted = (0..100).filter(|_| police.request(ip("10.0.0.1"), SECOND).is_ok()).count();
    assert_eq!(granted, 3);
}

/// Rates and times of all sizes: after any wait, a bucket has no more tokens than the rate gives, and no fewer.
#[test]
fn a_bucket_counts_as_arithmetic_does() {
    let seed = Random::seed_or(11);
    let mut random = Random::new(seed);
    for _ in 0..300 {
        let scale = random.below(20);
        let per_second = 1 + random.below(1 << scale) as u32;
        let burst = 1 + random.below(1000).min(per_second as usize * 3000) as u32;
        let police = police(client_requests(per_second, burst));
        let (mut now, mut tokens) = (random.next() >> 8, f64::from(burst));
        for _ in 0..200 {
            let wait = random.next() % (2 * SECOND / u64::from(per_second) + 1);
            now += wait;
            tokens = (tokens + wait as f64 / 1e9 * f64::from(per_second)).min(f64::from(burst));
            // An interval is a whole number of ticks of 16 ns, and so at most a 62nd too short.
            let inexact = 0.05 + 200.0 * 16e-9 * f64::from(per_second);
            match police.request(ip("10.0.0.1"), now) {
                Ok(()) => {
                    assert!(
                        tokens > 1.0 - inexact,
                        "seed {seed}: {tokens} at {per_second}/{burst}"
                    );
                    tokens = (tokens - 1.0).max(0.0);
                }
                Err(_) => {
                    assert!(tokens < 1.0 + inexact, "seed {seed}: {tokens} at {per_second}/{burst}")
                }
            }
        }
    }
}

#[test]
fn orders_act_at_once_and_stay_over_a_reload() {
    let settings = PoliceSettings {
        allow: vec![prefix("192.0.2.1")],
        deny: vec![prefix("198.51.100.0/24")],
        ..PoliceSettings::default()
    };
    let police = police(settings.clone());
    let comes = |client: &str| police.connection(ip(client), None, SECOND);
    assert_eq!(comes("192.0.2.7"), Ok(()));
    police.deny("192.0.2.0/24").expect("it is denied");
    assert_eq!(comes("192.0.2.7"), Err(Refusal::Denied));
    assert_eq!(comes("192.0.2.1"), Ok(()), "the allowed one within it");
    police.configure(&settings).expect("reloaded");
    assert_eq!(comes("192.0.2.7"), Err(Refusal::Denied));
    assert_eq!(
        police.list_denied(),
        format!("{:<39}  order\n{:<39}  configuration\n", "192.0.2.0/24", "198.51.100.0/24")
    );
    police.undeny("192.0.2.0/24").expect("it is denied no more");
    assert_eq!(comes("192.0.2.7"), Ok(()));
    for (refused, says) in [
        (police.undeny("192.0.2.0/24"), "192.0.2.0/24 is not denied"),
        (police.undeny("198.51.100.0/24"), "198.51.100.0/24 is denied by the configuration"),
        (police.deny("192.0.2.1"), "192.0.2.1 is on the allow list"),
        (police.deny("192.0.2.1/24"), "\"192.0.2.1/24\" has bits behind its prefix (write"),
    ] {
        let refused = refused.expect_err(says).to_string();
        assert!(refused.starts_with(says), "{refused}");
    }
}

/// A kernel that refuses on command.
struct Stubborn {
    words: Box<[AtomicU64]>,
    told: Mutex<Vec<(usize, [Pace; 2])>>,
    refuses: std::sync::atomic::AtomicBool,
}

impl PoliceKernel for Stubborn {
    fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    fn seed(&self) -> u64 {
        5
    }

    fn enforce(&self, what: &Enforced<'_>) -> std::io::Result<()> {
        if self.refuses.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(std::io::Error::other("no room"));
        }
        self.told.lock().unwrap().push((what.rules.len(), what.connections));
        Ok(())
    }
}

#[test]
fn an_order_that_the_kernel_refuses_changes_nothing() {
    let words = (0..words_of_table()).map(|_| AtomicU64::new(0)).collect();
    let kernel = Arc::new(Stubborn { words, told: Mutex::default(), refuses: false.into() });
    let police = Police::new(Some(Arc::clone(&kernel) as Arc<dyn PoliceKernel>), 0, 0);
    kernel.refuses.store(true, std::sync::atomic::Ordering::Relaxed);
    let refused = police.deny("192.0.2.1").expect_err("no room").to_string();
    assert_eq!(refused, "the kernel does not take it: no room");
    assert_eq!(police.connection(ip("192.0.2.1"), None, SECOND), Ok(()));
    assert!(police.denied().is_empty());
    kernel.refuses.store(false, std::sync::atomic::Ordering::Relaxed);
    police.deny("192.0.2.1").expect("room");
    assert_eq!(kernel.told.lock().unwrap().last().map(|told| told.0), Some(1));
    kernel.refuses.store(true, std::sync::atomic::Ordering::Relaxed);
    police.undeny("192.0.2.1").expect_err("it is still there");
    assert_eq!(police.denied().len(), 1, "so it can be taken back again");
    kernel.refuses.store(false, std::sync::atomic::Ordering::Relaxed);
    police.undeny("192.0.2.1").expect("taken back");
    assert_eq!(police.connection(ip("192.0.2.1"), None, SECOND), Ok(()));
}

/// A machine of a fleet that has just come gets all of its orders.
#[test]
fn many_orders_are_one_change() {
    let words = (0..words_of_table()).map(|_| AtomicU64::new(0)).collect();
    let kernel = Arc::new(Stubborn { words, told: Mutex::default(), refuses: false.into() });
    let police = Police::new(Some(Arc::clone(&kernel) as Arc<dyn PoliceKernel>), 0, 0);
    let allow = vec![prefix("192.0.2.1")];
    police.configure(&PoliceSettings { allow, ..Default::default() }).expect("told");
    let many: Vec<_> = (0..1000)
        .map(|number| (prefix(&format!("10.0.{}.{}", number / 250, number % 250)), true))
        .collect();
    let more = [(prefix("10.0.0.1"), false), (prefix("192.0.2.1"), true)];
    let left_out = police.order_all(&[&many[..], &more].concat()).expect("told");
    assert_eq!(left_out, 1, "it is allowed");
    let told = || kernel.told.lock().unwrap().iter().map(|told| told.0).collect::<Vec<_>>();
    assert_eq!(told(), [1, 1000]);
    let comes = |client: &str| police.connection(ip(client), None, SECOND);
    assert_eq!(comes("10.0.3.249"), Err(Refusal::Denied));
    assert_eq!((comes("10.0.0.1"), comes("192.0.2.1")), (Ok(()), Ok(())));
    assert!(police.has_ordered(prefix("10.0.3.249")) && !police.has_ordered(prefix("10.0.0.1")));
    assert_eq!(police.order_all(&many[2..]).expect("they are there"), 0);
    assert_eq!(told().len(), 2, "nothing has changed");
    kernel.refuses.store(true, std::sync::atomic::Ordering::Relaxed);
    police.order_all(&[(prefix("10.1.0.0/16"), true)]).expect_err("no room");
    assert_eq!((comes("10.1.0.1"), comes("10.0.3.249")), (Ok(()), Err(Refusal::Denied)));
}

/// The kernel counts at the SYN. Connections that waited a second together are not refused a second time.
#[test]
fn connections_that_the_kernel_has_counted_may_come_late() {
    let words = (0..words_of_table()).map(|_| AtomicU64::new(0)).collect();
    let kernel = Arc::new(Stubborn { words, told: Mutex::default(), refuses: false.into() });
    let police = Police::new(Some(Arc::clone(&kernel) as Arc<dyn PoliceKernel>), 0, 0);
    let client_connections = Rate { per_second: 10, burst: 5 };
    let limits = Limits { client_connections, ..Limits::default() };
    police.configure(&PoliceSettings { limits, ..Default::default() }).expect("told");
    let granted =
        (0..100).filter(|_| police.connection(ip("10.0.0.1"), None, SECOND).is_ok()).count();
    assert_eq!(granted, 15);
    let interval = (SECOND >> 4) / 10;
    let told = kernel.told.lock().unwrap().last().map(|told| told.1[0]);
    assert_eq!(told, Some(Pace { interval, tolerance: 5 * interval }));
}

/// Of connections by TCP the kernel takes the tokens; those by datagrams take of the same buckets.
#[test]
fn connections_that_the_kernel_does_not_count_take_of_its_buckets() {
    let words = (0..words_of_table()).map(|_| AtomicU64::new(0)).collect();
    let kernel = Arc::new(Stubborn { words, told: Mutex::default(), refuses: false.into() });
    let police = Police::new(Some(Arc::clone(&kernel) as Arc<dyn PoliceKernel>), 0, 0);
    let client_connections = Rate { per_second: 10, burst: 5 };
    let limits = Limits { client_connections, ..Limits::default() };
    police.configure(&PoliceSettings { limits, ..Default::default() }).expect("told");
    let by_datagrams = |client: &str| police.uncounted_connection(ip(client), None, SECOND).is_ok();
    let granted = (0..100).filter(|_| by_datagrams("10.0.0.1")).count();
    assert_eq!(granted, 5, "nothing is waited for, as TCP's connections are");
    let (set, tag) = police.locate(What::Connection, ip("10.0.0.1"));
    let words = &kernel.words[set * POLICE_WAYS..][..POLICE_WAYS];
    let is_its_own = |word: &AtomicU64| {
        word.load(std::sync::atomic::Ordering::Relaxed) >> POLICE_TIME_BITS == tag
    };
    assert!(words.iter().any(is_its_own), "the kernel finds the bucket empty");
    assert!(by_datagrams("10.0.0.2"));
    let alone = Police::default();
    alone.configure(&PoliceSettings { limits, ..Default::default() }).expect("no kernel");
    let granted = (0..100).filter(|_| {
        alone.uncounted_connection(ip("10.0.0.1"), None, SECOND).is_ok()
            || alone.connection(ip("10.0.0.1"), None, SECOND).is_ok()
    });
    assert_eq!(granted.count(), 5, "without a kernel all are counted alike");
}

/// A program that refuses by prefixes gets each configuration and order.
#[test]
fn a_program_that_refuses_by_prefixes_is_told() {
    struct Told(Mutex<Vec<Vec<(Prefix, Rule)>>>);
    impl crate::PrefixKernel for Told {
        fn refuse_by(&self, rules: &Rules) -> std::io::Result<()> {
            self.0.lock().unwrap().push(rules.iter().collect());
            Ok(())
        }
    }
    let told = Arc::new(Told(Mutex::default()));
    let police = Police::default();
    police.refuse_by(Arc::clone(&told) as Arc<dyn crate::PrefixKernel>);
    police
        .configure(&PoliceSettings { allow: vec![prefix("10.9.0.0/16")], ..Default::default() })
        .expect("told");
    police.deny("10.8.0.0/16").expect("denied");
    police.undeny("10.8.0.0/16").expect("not any more");
    let (allowed, denied) =
        ((prefix("10.9.0.0/16"), Rule::Allow), (prefix("10.8.0.0/16"), Rule::Deny));
    let told = told.0.lock().unwrap();
    assert_eq!(told[0], [allowed]);
    assert_eq!(told[1].len(), 2);
    assert!(told[1].contains(&denied));
    assert_eq!(told[2], [allowed]);
}

#[test]
fn a_client_pays_nothing_for_connections_in_its_name() {
    let mut settings = PoliceSettings {
        allow: vec![prefix("10.9.0.0/16")],
        deny: vec![prefix("10.8.0.0/16")],
        ..Default::default()
    };
    let lists = police(settings.clone());
    assert_eq!(lists.unproven(ip("10.0.0.1")), Ok(false), "nothing counts connections");
    assert_eq!(lists.unproven(ip("10.8.0.1")), Err(Refusal::Denied));
    assert_eq!(lists.counts().get(What::Connection, Refusal::Denied), 1);
    settings.limits.client_connections = Rate { per_second: 1, burst: 2 };
    let rates = police(settings);
    for _ in 0..100 {
        assert_eq!(rates.unproven(ip("10.0.0.1")), Ok(true), "its address has to be proven");
    }
    assert_eq!(rates.unproven(ip("10.9.0.1")), Ok(false), "it is never refused");
    let connects = || rates.connection(ip("10.0.0.1"), None, SECOND);
    assert_eq!([connects(), connects()], [Ok(()); 2]);
    assert_eq!(connects(), Err(Refusal::ClientRate));
}
