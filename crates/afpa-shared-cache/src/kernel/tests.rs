use afpa_http::Coding;
use afpa_http::caching::StoredControl;

use super::*;

fn policy(change: impl FnOnce(&mut CachePolicy)) -> CachePolicy {
    let mut policy = CachePolicy::default();
    change(&mut policy);
    policy
}

#[track_caller]
fn matter(policy: &CachePolicy, trusted: bool, expected: Option<&[&str]>) {
    let fields = fields_that_matter(policy, &exchange::Settings::default(), trusted);
    let fields = fields.as_ref().map(|fields| fields.iter().map(|name| &**name).collect());
    let expected = expected.map(|own| [own, &METHOD_FIELDS].concat());
    assert_eq!(fields, expected, "{policy:?}");
}

#[test]
fn a_field_that_user_mode_would_look_at_is_left_to_it() {
    let named = |name: &str| {
        let name = name.to_owned();
        policy(|policy| policy.bypass_fields = vec![name])
    };
    matter(&policy(|_| ()), false, Some(&[]));
    matter(&policy(|_| ()), true, None);
    matter(&policy(|policy| policy.obey_clients = true), false, Some(&["cache-control", "pragma"]));
    let codes = policy(|policy| policy.codings = Coding::ALL.into_iter().collect());
    matter(&codes, false, Some(&["cache-control"]));
    let listed = vec!["session*".to_owned()];
    matter(&policy(|policy| policy.bypass_cookies = listed.clone()), false, Some(&["cookie"]));
    matter(&policy(|policy| policy.cookies = listed), false, Some(&["cookie"]));
    matter(&named("X-Debug"), false, Some(&["x-debug"]));
}

#[test]
fn what_the_programs_cannot_be_told_keeps_answers_out_of_the_kernel() {
    let long = "x".repeat(NAME_MAX + 1);
    for name in ["x-*", "Accept-Encoding", "connection", &long] {
        let name = name.to_owned();
        matter(&policy(|policy| policy.bypass_fields = vec![name]), false, None);
    }
    matter(&policy(|policy| policy.in_kernel = false), false, None);
}

#[test]
fn a_copy_ends_when_what_is_left_of_its_lifetime_has_a_digit_less() {
    let until = |lifetime, age| {
        let control = StoredControl::default();
        let stored = Stored { control, lifetime, age, purged: false, grace: 0 };
        KernelTtl::of(&stored).and_then(|ttl| Some((ttl.digits, ttl.until_age()?)))
    };
    assert_eq!(until(100, 0), Some((3, 1)));
    assert_eq!(until(100, 1), Some((2, 91)));
    assert_eq!(until(100, 90), Some((2, 91)));
    assert_eq!(until(100, 91), Some((1, 100)));
    assert_eq!(until(100, 99), Some((1, 100)));
    assert_eq!(until(1, 0), Some((1, 1)));
    assert_eq!(until(100, 101), None);
    assert_eq!(until(u64::MAX, 0), Some((20, u64::MAX - 10_u64.pow(19) + 1)));
    for lifetime in [9, 10, 11, 99, 100, 101, 1000, 1001] {
        for age in 0..lifetime {
            let (digits, end) = until(lifetime, age).expect("fresh");
            let written = |age: u64| (lifetime - age).to_string().len();
            assert_eq!(written(age), digits as usize);
            assert!((age..end).all(|age| written(age) == digits as usize), "{lifetime} {age}");
            assert!(end == lifetime || written(end) != digits as usize, "{lifetime} {age}");
        }
    }
}

/// The programs know of the bytes between them, and that they are next to each other.
#[test]
fn what_changes_with_the_second_stands_together() {
    for (cache_status, expected) in [
        (None, "X: y\r\nAge: |7\r\n\r\n"),
        (
            Some(Outcome::Hit { ttl: 42 }),
            "X: y\r\nCache-Status: afpa; hit; ttl=|42\r\nAge: 7\r\n\r\n",
        ),
    ] {
        let connection = Connection::Implied;
        let rest = Rest { age: 7, cache_status, hsts: None, length: None, connection };
        let mut bytes = b"before".to_vec();
        let at = rest.put(b"X: y\r\n", &mut bytes);
        bytes.drain(..b"before".len());
        bytes.insert(at, b'|');
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
    }
}
