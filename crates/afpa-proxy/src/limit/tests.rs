//! Limits in virtual time.

use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000;

fn client(n: u32) -> Option<IpAddr> {
    Some(IpAddr::from(n.to_be_bytes()))
}

fn limited(change: impl FnOnce(&mut LimitSettings)) -> Arc<Gate> {
    let mut settings = LimitSettings::default();
    change(&mut settings);
    Gate::new(settings)
}

#[test]
fn without_limits_everyone_passes_and_nothing_is_remembered() {
    let gate = limited(|_| ());
    for n in 0..10_000 {
        assert!(gate.admit(0, client(n)).unwrap()._held.is_none());
    }
    assert_eq!(gate.lock().clients.len(), 0);
}

#[test]
fn a_rate_lets_a_burst_pass_and_then_its_share_of_each_second() {
    let gate = limited(|limits| (limits.requests_per_second, limits.burst) = (10, 5));
    let passed =
        |from, to| (from..to).filter(|now| gate.admit(now * MS, client(1)).is_ok()).count();
    assert_eq!(passed(0, 1), 1);
    assert_eq!((0..100).filter(|_| gate.admit(MS, client(1)).is_ok()).count(), 4);
    assert_eq!(passed(1, 1001), 10);
    let refused = gate.admit(1001 * MS, client(2)).unwrap_err();
    assert_eq!((refused.limit, refused.status().code()), (Limit::SiteRate, 503));
    assert_eq!(refused.retry_after_s(), 1);
    assert_eq!(
        (0..9).filter(|_| gate.admit(9000 * MS, None).is_ok()).count(),
        5,
        "never more at once"
    );
}

#[test]
fn a_client_has_its_own_rate() {
    let gate = limited(|limits| (limits.client_requests_per_second, limits.client_burst) = (1, 2));
    for n in 0..100 {
        assert!(gate.admit(0, client(n)).is_ok() && gate.admit(0, client(n)).is_ok());
        let refused = gate.admit(0, client(n)).unwrap_err();
        assert_eq!((refused.limit, refused.status().code()), (Limit::ClientRate, 429));
    }
    assert_eq!(gate.refused(), [0, 0, 100, 0, 0, 0]);
    assert!(gate.admit(0, None).is_ok(), "no address, no client");
}

#[test]
fn a_client_over_its_own_rate_does_not_use_up_the_sites() {
    let gate = limited(|limits| {
        (limits.client_requests_per_second, limits.client_burst) = (1, 1);
        (limits.requests_per_second, limits.burst) = (10, 10);
    });
    for _ in 0..1000 {
        drop(gate.admit(0, client(1)));
    }
    let others = (2..100).filter(|n| gate.admit(0, client(*n)).is_ok()).count();
    assert_eq!(others, 9);
    assert!(gate.admit(100 * MS, client(99)).is_ok(), "and a refusal by the site not the client's");
}

#[test]
fn requests_at_a_time_are_counted_and_given_back() {
    let gate = limited(|limits| (limits.in_flight, limits.client_in_flight) = (3, 2));
    let mut held = vec![gate.admit(0, client(1)).unwrap(), gate.admit(0, client(1)).unwrap()];
    assert_eq!(gate.admit(0, client(1)).unwrap_err().limit, Limit::ClientInFlight);
    held.push(gate.admit(0, client(2)).unwrap());
    assert_eq!(gate.admit(0, client(3)).unwrap_err().limit, Limit::SiteInFlight);
    held.remove(0);
    assert!(gate.admit(0, client(1)).is_ok());
    drop(held);
    assert_eq!(gate.lock().in_flight, 0);
}

#[test]
fn connections_at_a_time_are_counted_and_given_back() {
    let gate = limited(|limits| (limits.connections, limits.client_connections) = (3, 2));
    let enter = |n| gate.enter(0, client(n));
    let mut held = vec![enter(1).unwrap(), enter(1).unwrap()];
    let refused = enter(1).unwrap_err();
    assert_eq!((refused.limit, refused.status().code()), (Limit::ClientConnections, 429));
    held.push(gate.enter(0, None).unwrap());
    let refused = enter(2).unwrap_err();
    assert_eq!((refused.limit, refused.status().code()), (Limit::SiteConnections, 503));
    assert!(refused.ends_connection());
    assert_eq!(enter(1).unwrap_err().limit, Limit::ClientConnections, "its own goes first");
    held.remove(0);
    held.push(enter(1).unwrap());
    assert!(held.iter().all(|place| place.as_ref().is_some_and(|place| place.is_at(&gate))));
    assert!(gate.admit(0, client(9)).unwrap()._held.is_none(), "requests have no limit");
    drop(held);
    assert_eq!(gate.lock().connections, 0);
    assert_eq!(gate.lock().clients.get(Key::from(client(1).unwrap()), 0).unwrap().connections, 0);
    assert!(limited(|limits| limits.in_flight = 1).enter(0, client(1)).unwrap().is_none());
}

#[test]
fn addresses_of_one_network_are_one_client() {
    let gate = limited(|limits| limits.client_in_flight = 1);
    let at = |text: &str| Some(text.parse().unwrap());
    let _held = gate.admit(0, at("2001:db8::1")).unwrap();
    assert!(gate.admit(0, at("2001:db8::2")).is_err());
    assert!(gate.admit(0, at("2001:db8:0:1::1")).is_ok());
    let _held = gate.admit(0, at("192.0.2.1")).unwrap();
    assert!(gate.admit(0, at("::ffff:192.0.2.1")).is_err());
}

#[test]
fn the_table_is_bounded_and_keeps_those_in_flight() {
    let gate = limited(|limits| {
        (limits.client_in_flight, limits.clients) = (1, 8);
        limits.client_requests_per_second = 1000;
    });
    let held: Vec<_> = (0..8).map(|n| gate.admit(0, client(n)).unwrap()).collect();
    for n in 100..200 {
        assert!(gate.admit(0, client(n)).is_ok(), "passes without being remembered");
    }
    assert_eq!(gate.lock().clients.len(), 8);
    assert!(gate.admit(0, client(3)).is_err(), "still known");
    drop(held);
    for n in 200..300 {
        drop(gate.admit(1000 * MS, client(n)).unwrap());
    }
    assert_eq!(gate.lock().clients.len(), 8);
}

#[test]
fn requests_that_come_one_by_one_do_not_come_at_once() {
    let gate = limited(|limits| {
        (limits.client_requests_per_second, limits.client_burst) = (100_000, 50);
    });
    for n in 0..100_000 {
        assert!(gate.admit(n * 10, client(1)).is_ok(), "at {n}0 us");
    }
}

/// A bucket that is filled and emptied, in nanoseconds of its rate.
struct Filled {
    interval: u64,
    most: u64,
    level: u64,
    at_us: u64,
}

impl Filled {
    fn takes(&mut self, now_us: u64) -> bool {
        self.level = self.most.min(self.level + (now_us - self.at_us) * 1000);
        self.at_us = now_us;
        let takes = self.level >= self.interval;
        if takes {
            self.level -= self.interval;
        }
        takes
    }
}

proptest! {
    /// Neither more nor less passes than a bucket has, however small the pauses are; and no window of
    /// any length has more than the burst and the rate times that length.
    #[test]
    fn a_rate_is_a_rate(
        pauses in prop::collection::vec(prop_oneof![0_u64..20, 0_u64..5_000, 0_u64..50_000], 1..400),
        rate in prop_oneof![1_u32..500, 1_000_u32..1_000_000],
        burst in 1_u32..50,
    ) {
        let gate = limited(|limits| (limits.requests_per_second, limits.burst) = (rate, burst));
        let interval = 1_000_000_000 / u64::from(rate);
        let full = interval * u64::from(burst);
        let mut bucket = Filled { interval, most: full, level: full, at_us: 0 };
        let (mut now, mut passed) = (0, Vec::new());
        for pause in pauses {
            now += pause;
            let admitted = gate.admit(now, None);
            prop_assert_eq!(admitted.is_ok(), bucket.takes(now), "at {} us", now);
            if admitted.is_ok() {
                passed.push(now);
            }
        }
        for (first, from) in passed.iter().enumerate() {
            for (last, to) in passed.iter().enumerate().skip(first) {
                let most = u64::from(burst) + (to - from) * 1000 / interval;
                prop_assert!((last - first + 1) as u64 <= most);
            }
        }
    }
}
