//! Shares: each class gets its own, whatever the others do.

use std::net::{IpAddr, SocketAddr};

use afpa_testkit::Random;

use crate::*;

const SECOND: u64 = 1_000_000_000;

fn class(name: &str, share: u8, prefixes: &[&str]) -> Class {
    let prefixes = prefixes.iter().map(|prefix| prefix.parse().unwrap()).collect();
    Class { name: name.to_owned(), share, prefixes, listeners: Vec::new() }
}

fn settings(rate: Rate, classes: Vec<Class>) -> PoliceSettings {
    let limits = Limits { connections: rate, ..Limits::default() };
    PoliceSettings { limits, classes, ..PoliceSettings::default() }
}

fn police(settings: &PoliceSettings) -> Police {
    let police = Police::new(None, 77, 0);
    police.configure(settings).expect("there is no kernel to refuse it");
    police
}

/// Clients of three classes, by the number of the class.
const CLIENTS: [&str; 3] = ["192.0.2.1", "10.1.0.1", "10.2.0.1"];

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// How many of each class get in, when each of them comes `per_second[class]` times a second, from `from` to `to`.
fn admitted(police: &Police, per_second: [u64; 3], from: u64, to: u64) -> [u64; 3] {
    let mut due = per_second.map(|rate| if rate == 0 { u64::MAX } else { from });
    let mut admitted = [0; 3];
    loop {
        let class = (0..3).min_by_key(|class| due[*class]).unwrap();
        let now = due[class];
        if now >= to {
            return admitted;
        }
        due[class] += SECOND / per_second[class];
        admitted[class] += u64::from(police.connection(ip(CLIENTS[class]), None, now).is_ok());
    }
}

#[test]
fn the_longest_prefix_says_the_class_then_the_listener() {
    let front: SocketAddr = "[::]:8443".parse().unwrap();
    let mut back = class("back", 30, &["10.1.0.0/16", "2001:db8::/32"]);
    back.listeners.push(front);
    let classes = Classes::new(&[back, class("lab", 20, &["10.1.9.0/24"])]);
    let other = Some("0.0.0.0:80".parse().unwrap());
    for (client, listener, number) in [
        ("10.1.0.1", other, 1),
        ("::ffff:10.1.0.1", None, 1),
        ("10.1.9.1", Some(front), 2),
        ("192.0.2.1", Some(front), 1),
        ("192.0.2.1", other, 0),
        ("192.0.2.1", None, 0),
        ("2001:db8::1", other, 1),
    ] {
        assert_eq!(classes.of(ip(client), listener), number, "{client} {listener:?}");
    }
    let named: Vec<_> = classes.iter().collect();
    assert_eq!(named, [("others", 50), ("back", 30), ("lab", 20)]);
}

#[test]
fn a_class_gets_its_share_however_often_others_come() {
    let classes =
        vec![class("paying", 60, &["10.1.0.0/16"]), class("partners", 10, &["10.2.0.0/16"])];
    let police = police(&settings(Rate { per_second: 100, burst: 10 }, classes));
    // Nine connections in ten come from others, which take all that the shares leave.
    admitted(&police, [10_000, 0, 0], 0, 10 * SECOND);
    let got = admitted(&police, [10_000, 1000, 1000], 10 * SECOND, 20 * SECOND);
    for (class, least) in [(0, 300), (1, 600), (2, 100)] {
        assert!(got[class] >= least - 1, "{got:?}");
    }
    let all: u64 = got.iter().sum();
    assert!(all <= 1000 * 62 / 61 + 2 * 10 + 3, "no more than the rate and both bursts: {got:?}");
    let refused: Vec<_> =
        police.classes().into_iter().map(|(name, _, count)| (name, count)).collect();
    assert!(refused.iter().all(|(_, count)| *count > 5000), "{refused:?}");
}

#[test]
fn what_a_class_leaves_is_for_the_others() {
    let classes = vec![class("paying", 60, &["10.1.0.0/16"])];
    let police = police(&settings(Rate { per_second: 100, burst: 10 }, classes));
    let [others, ..] = admitted(&police, [5000, 0, 0], 0, 10 * SECOND);
    assert!((1000..=1040).contains(&others), "{others}");
    let [_, paying, _] = admitted(&police, [0, 5000, 0], 10 * SECOND, 20 * SECOND);
    assert!((990..=1040).contains(&paying), "{paying}");
}

#[test]
fn shares_of_everything_leave_others_only_what_is_over() {
    let classes = vec![class("paying", 100, &["10.1.0.0/16"])];
    let police = police(&settings(Rate { per_second: 100, burst: 10 }, classes));
    admitted(&police, [5000, 5000, 0], 0, 2 * SECOND);
    let [others, paying, _] = admitted(&police, [5000, 5000, 0], 2 * SECOND, 12 * SECOND);
    assert!(others <= 2 && paying >= 999, "{others} {paying}");
    let [others, ..] = admitted(&police, [5000, 0, 0], 13 * SECOND, 23 * SECOND);
    assert!(others >= 990, "{others}");
}

#[test]
fn who_is_allowed_needs_no_share_and_a_changed_class_is_counted_anew() {
    let mut settings =
        settings(Rate { per_second: 1, burst: 4 }, vec![class("a", 50, &["10.1.0.0/16"])]);
    settings.allow = vec!["10.1.0.0/24".parse().unwrap()];
    let police = police(&settings);
    for _ in 0..100 {
        assert_eq!(police.connection(ip("10.1.0.1"), None, SECOND), Ok(()));
        let _refused = police.connection(ip("10.1.1.1"), None, SECOND);
    }
    let [.., (name, share, refused)] = &police.classes()[..] else { panic!("two classes") };
    assert_eq!((name.as_str(), *share, *refused), ("a", 50, 100 - 4));
    police.configure(&settings).expect("the same");
    assert_eq!(police.classes()[1].2, 96);
    settings.classes[0].name = "b".to_owned();
    police.configure(&settings).expect("another");
    assert_eq!(police.classes()[1], ("b".to_owned(), 50, 0));
}

/// Any rates, shares and demands: each class gets the least of its demand and its share, and all together the rate.
#[test]
fn every_class_gets_its_share_of_any_rate() {
    let seed = Random::seed_or(19);
    let mut random = Random::new(seed);
    for _ in 0..30 {
        let per_second = 20 + random.below(400) as u32;
        let rate = Rate { per_second, burst: 1 + random.below(200) as u32 };
        let first = 1 + random.below(99) as u8;
        let second = 1 + random.below(100 - usize::from(first)) as u8;
        let classes =
            vec![class("a", first, &["10.1.0.0/16"]), class("b", second, &["10.2.0.0/16"])];
        let police = police(&settings(rate, classes));
        let demand = [0, 1, 2].map(|_| 1 + random.below(3 * per_second as usize) as u64);
        admitted(&police, demand, 0, 5 * SECOND);
        let got = admitted(&police, demand, 5 * SECOND, 15 * SECOND);
        let shares = [100 - first - second, first, second].map(u64::from);
        for class in 0..3 {
            let share = shares[class] * u64::from(per_second) / 100;
            let least = (10 * demand[class].min(share)).saturating_sub(11);
            assert!(
                got[class] >= least,
                "seed {seed}: {got:?} of {demand:?} by {shares:?} of {rate:?}"
            );
        }
        let all: u64 = got.iter().sum();
        let most = 10 * u64::from(per_second) * 62 / 61 + 2 * u64::from(rate.burst) + 8;
        assert!(all <= most, "seed {seed}: {got:?} are {all} of {most}");
    }
}
