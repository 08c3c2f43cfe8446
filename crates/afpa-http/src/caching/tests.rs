//! Caching by the letter of RFC 9111, case by case, and against properties.

use proptest::prelude::*;

use super::freshness::{Arrival, Heuristic, lifetime};
use super::reuse::{Reuse, Stored, Why, judge, may_replace_error};
use super::store::{NotStored, Requested, SetCookie, Terms};
use super::*;
use crate::HttpDate;

const NOW: u64 = 1_700_000_000;
const TARGETS: [&str; 1] = ["CDN-Cache-Control"];

fn facts(status: u16, fields: &[(&str, &str)]) -> ResponseFacts {
    let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    ResponseFacts::of(status, fields, &TARGETS)
}

fn cache_control(value: &str) -> ResponseControl {
    facts(200, &[("cache-control", value)]).control
}

fn stored(status: u16, fields: &[(&str, &str)]) -> Result<(), NotStored> {
    let facts = facts(status, fields);
    let terms =
        Terms { lifetime: lifetime(&facts, NOW, None), explicit_only: true, ..Terms::default() };
    store::judge(&facts, &Requested::default(), SetCookie::Pass, terms)
}

#[test]
fn directives_are_read_in_every_form() {
    for (value, max_age) in [
        ("max-age=3600", Some(3600)),
        ("MaX-aGe=3600", Some(3600)),
        ("max-age=003600", Some(3600)),
        ("max-age=\"3600\"", Some(3600)),
        ("max-age='3600'", Some(0)),
        ("max-age=-1", Some(0)),
        ("max-age=a1", Some(0)),
        ("max-age=3600.0", Some(0)),
        ("max-age", Some(0)),
        ("max-age=99999999999999999999999", Some(1 << 31)),
        ("max-age=9, max-age=3", Some(3)),
        ("x=\"max-age=1\"", None),
        ("x=\"a\\\", max-age=1\"", None),
        ("max-age =1", None),
        (", ,max-age=7,", Some(7)),
        ("ext, other=1 , max-age=8", Some(8)),
    ] {
        assert_eq!(cache_control(value).max_age, max_age, "{value}");
    }
    let all = cache_control(
        "public, no-store, must-revalidate, proxy-revalidate, must-understand, immutable, s-maxage=1, \
         stale-while-revalidate=2, stale-if-error=3",
    );
    assert!(all.public && all.no_store && all.must_revalidate && all.proxy_revalidate);
    assert!(all.must_understand && all.immutable);
    let times = (all.s_maxage, all.stale_while_revalidate, all.stale_if_error);
    assert_eq!(times, (Some(1), Some(2), Some(3)));
}

#[test]
fn no_cache_and_private_with_fields_concern_those_fields() {
    let control = cache_control("no-cache=\"a, b\", private=\"C\", max-age=1");
    assert!(control.has_fields && !control.no_cache && !control.private);
    for empty in ["no-cache=\"\"", "no-cache=\"(x)\"", "no-cache"] {
        assert!(cache_control(empty).no_cache, "{empty}");
    }
    let line = b"no-cache=\"a, b\", private=\"C\", x=\"d\"";
    for (name, named) in [("A", true), ("b", true), ("c", true), ("d", false), ("", false)] {
        assert_eq!(fields::is_named_by(line, name.as_bytes()), named, "{name}");
    }
}

#[test]
fn targeted_fields_go_before_cache_control() {
    for (target, expected) in [
        ("max-age=10", Some(Some(10))),
        ("max-age=10;x=1, other=(a b);c", Some(Some(10))),
        ("max-age=1, max-age=20", Some(Some(20))),
        ("no-store", Some(None)),
        ("max-age=10, &&&", None),
        ("max-age=\"10\"", None),
        ("max-age=10.5", None),
        ("max-age = 10", None),
        ("max-age=10,", None),
        ("", None),
        ("MAX-AGE=10", None),
    ] {
        let facts = facts(200, &[("CDN-Cache-Control", target), ("Cache-Control", "max-age=5")]);
        assert_eq!(facts.is_targeted, expected.is_some(), "{target}");
        assert_eq!(facts.control.max_age, expected.unwrap_or(Some(5)), "{target}");
    }
    let expires = HttpDate::new(NOW + 100).to_string();
    let past = facts(200, &[("CDN-Cache-Control", "no-cache"), ("Expires", &expires)]);
    assert_eq!(lifetime(&past, NOW, None), 0, "Expires does not count beside it");
}

#[test]
fn ages_and_dates_are_read_as_the_rfc_says() {
    for (age, seconds) in [
        ("7", 7),
        ("7, 0", 7),
        ("0, 7", 0),
        ("-7", 0),
        ("7.0", 0),
        ("abc", 0),
        ("2147483649", 1 << 31),
        ("99999999999999999999999999", 1 << 31),
    ] {
        assert_eq!(facts(200, &[("age", age)]).age, seconds, "{age}");
    }
    let two = facts(200, &[("age", "3"), ("age", "9")]);
    assert_eq!(two.age, 3, "the first line counts");
    let date = |value: &str| facts(200, &[("expires", value)]).expires;
    assert_eq!(date("sUN, 06 nOV 1994 08:49:37 gMT"), Expires::At(784_111_777));
    assert_eq!(date("Sunday, 06-Nov-94 08:49:37 GMT"), Expires::At(784_111_777));
    assert_eq!(date("Sun Nov  6 08:49:37 1994"), Expires::At(784_111_777));
    assert_eq!(date("Mon Nov  6 08:49:37 1994"), Expires::At(784_111_777));
    for bad in ["0", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 94 08:49:37 GMT", ""] {
        assert_eq!(date(bad), Expires::Past, "{bad}");
    }
}

#[test]
fn lifetimes_have_an_order() {
    let at = |offset: u64| HttpDate::new(NOW + offset).to_string();
    let life = |fields: &[(&str, &str)]| lifetime(&facts(200, fields), NOW, None);
    assert_eq!(life(&[("cache-control", "max-age=1, s-maxage=2"), ("expires", &at(3))]), 2);
    assert_eq!(life(&[("cache-control", "max-age=1"), ("expires", &at(3))]), 1);
    assert_eq!(life(&[("expires", &at(30)), ("date", &at(10))]), 20);
    assert_eq!(life(&[("expires", &at(30))]), 30);
    assert_eq!(life(&[("expires", &at(30)), ("expires", &at(30))]), 0);
    let modified = HttpDate::new(NOW - 1000).to_string();
    let old = facts(200, &[("last-modified", &modified)]);
    assert_eq!(lifetime(&old, NOW, None), 0);
    assert_eq!(lifetime(&old, NOW, Some(Heuristic::default())), 100);
    let teapot = facts(299, &[("last-modified", &modified)]);
    assert_eq!(lifetime(&teapot, NOW, Some(Heuristic::default())), 0);
}

#[test]
fn the_age_counts_what_the_way_took() {
    let facts = facts(200, &[("age", "5"), ("date", &HttpDate::new(NOW - 20).to_string())]);
    let arrival = Arrival::of(&facts, 98, NOW, 100);
    assert_eq!(arrival.age(100), 20, "the apparent age is larger");
    assert_eq!(arrival.age(130), 50);
    assert_eq!(arrival.age(90), 20, "a clock that is behind takes nothing away");
    let arrival = Arrival::of(&self::facts(200, &[("age", "5")]), 98, NOW, 100);
    assert_eq!(arrival.age(100), 7);
    let arrival = Arrival::of(&self::facts(200, &[]), 99, NOW, 100);
    assert_eq!(arrival.age(102), 3, "its age begins when it is asked for");
}

#[test]
fn only_what_is_allowed_is_stored() {
    let max_age = ("cache-control", "max-age=60");
    assert_eq!(stored(200, &[max_age]), Ok(()));
    assert_eq!(stored(599, &[max_age]), Ok(()));
    assert_eq!(stored(200, &[]), Err(NotStored::NotAllowed));
    assert_eq!(stored(200, &[("etag", "\"a\"")]), Err(NotStored::NotAllowed));
    assert_eq!(stored(200, &[("cache-control", "no-cache")]), Err(NotStored::Useless));
    assert_eq!(stored(200, &[("cache-control", "no-cache"), ("etag", "\"a\"")]), Ok(()));
    assert_eq!(stored(200, &[("cache-control", "max-age=60, no-store")]), Err(NotStored::NoStore));
    assert_eq!(stored(200, &[("cache-control", "max-age=60, private")]), Err(NotStored::Private));
    assert_eq!(stored(200, &[max_age, ("vary", "a, *")]), Err(NotStored::VaryStar));
    assert_eq!(stored(200, &[max_age, ("set-cookie", "a=b")]), Err(NotStored::SetCookie));
    let understand = ("cache-control", "max-age=60, no-store, must-understand");
    assert_eq!(stored(200, &[understand]), Ok(()));
    assert_eq!(stored(599, &[understand]), Err(NotStored::NotUnderstood));
    assert_eq!(stored(304, &[max_age]), Err(NotStored::Status));
    assert_eq!(stored(103, &[max_age]), Err(NotStored::Status));
    assert_eq!(stored(425, &[max_age]), Err(NotStored::Status), "it is about one request");
}

#[test]
fn authorised_responses_need_a_word_for_others() {
    let requested = Requested { authorised: true, ..Requested::default() };
    for (control, expected) in [
        ("max-age=60", Err(NotStored::Authorization)),
        ("max-age=60, public", Ok(())),
        ("max-age=60, must-revalidate", Ok(())),
        ("s-maxage=60", Ok(())),
    ] {
        let facts = facts(200, &[("cache-control", control)]);
        let terms = Terms { lifetime: 60, ..Terms::default() };
        let judged = store::judge(&facts, &requested, SetCookie::Pass, terms);
        assert_eq!(judged, expected, "{control}");
    }
}

fn response(control: &str, lifetime: u64, age: u64) -> Stored {
    let control = StoredControl::from(&cache_control(control));
    Stored { control, lifetime, age, purged: false, grace: 0 }
}

fn asks(value: &str) -> RequestControl {
    RequestControl::of([value.as_bytes()].into_iter(), std::iter::empty())
}

#[test]
fn requests_have_a_say() {
    let fresh = response("max-age=60", 60, 20);
    let stale = response("max-age=60", 60, 80);
    for (stored, asked, expected) in [
        (fresh, "", Reuse::Fresh),
        (fresh, "no-cache", Reuse::Validate(Why::Request)),
        (fresh, "max-age=10", Reuse::Validate(Why::Request)),
        (fresh, "max-age=20", Reuse::Fresh),
        (fresh, "max-age=0", Reuse::Validate(Why::Request)),
        (fresh, "min-fresh=40", Reuse::Fresh),
        (fresh, "min-fresh=41", Reuse::Validate(Why::Request)),
        (stale, "", Reuse::Validate(Why::Stale)),
        (stale, "max-stale", Reuse::Fresh),
        (stale, "max-stale=20", Reuse::Fresh),
        (stale, "max-stale=19", Reuse::Validate(Why::Stale)),
        (response("max-age=60, must-revalidate", 60, 80), "max-stale", Reuse::Validate(Why::Stale)),
        (response("max-age=60, immutable", 60, 20), "no-cache", Reuse::Fresh),
        (response("max-age=60, immutable", 60, 60), "no-cache", Reuse::Validate(Why::Request)),
        (response("max-age=60, no-cache", 60, 0), "", Reuse::Validate(Why::NoCache)),
    ] {
        assert_eq!(judge(&stored, &asks(asked)), expected, "{stored:?} {asked}");
    }
    let pragma = |lines: &[&'static [u8]]| {
        RequestControl::of(lines.iter().copied(), [&b"no-cache"[..]].into_iter()).no_cache
    };
    assert!(
        pragma(&[]) && !pragma(&[b"max-age=1"]),
        "Pragma counts where there is no Cache-Control"
    );
}

#[test]
fn stale_responses_have_their_windows() {
    let control = "max-age=60, stale-while-revalidate=30, stale-if-error=90";
    assert_eq!(judge(&response(control, 60, 89), &asks("")), Reuse::WhileRevalidating);
    assert_eq!(judge(&response(control, 60, 90), &asks("")), Reuse::Validate(Why::Stale));
    assert!(may_replace_error(&response(control, 60, 149), &asks("")));
    assert!(!may_replace_error(&response(control, 60, 150), &asks("")));
    let purged = Stored { purged: true, ..response("max-age=60", 60, 1) };
    assert_eq!(judge(&purged, &asks("")), Reuse::Validate(Why::Purged));
    assert_eq!(judge(&purged, &asks("max-stale")), Reuse::Validate(Why::Purged));
    for forbidden in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=1"] {
        let stored = Stored { grace: 1000, ..response(&format!("max-age=1, {forbidden}"), 1, 2) };
        assert!(!may_replace_error(&stored, &asks("")), "{forbidden}");
    }
    assert!(may_replace_error(&Stored { grace: 2, ..response("max-age=1", 1, 2) }, &asks("")));
}

#[test]
fn tags_are_found_in_their_fields() {
    assert_eq!(fields::tags(b"Surrogate-Key", b" a  b "), [b"a", b"b"]);
    assert_eq!(fields::tags(b"cache-tag", b"a b, c"), [&b"a b"[..], b"c"]);
    assert_eq!(fields::tags(b"Cache-Groups", b"\"a, b\", \"c\""), [&b"a, b"[..], b"c"]);
    assert!(fields::tags(b"Cache-Groups", b"\"a\", b").is_empty());
    assert!(fields::tags(b"X", b"a").is_empty());
}

#[test]
fn unsafe_methods_invalidate_what_is_of_the_same_origin() {
    use crate::Method;
    assert!(invalidates(Method::Post, 201) && invalidates(Method::Other("M-SEARCH"), 302));
    assert!(!invalidates(Method::Post, 500) && !invalidates(Method::Get, 200));
    let path = |reference: &'static str| same_origin_path(reference.as_bytes(), b"a.example:80");
    assert_eq!(path("/x?y#z"), Some(&b"/x?y"[..]));
    assert_eq!(path("http://A.example:80/x"), Some(&b"/x"[..]));
    assert_eq!(path("//a.example:80"), Some(&b"/"[..]));
    for other in ["http://b.example/x", "x", "ftp://a.example:80/", "//b.example/", ""] {
        assert_eq!(path(other), None, "{other}");
    }
}

#[test]
fn outcomes_are_written_as_structured_fields() {
    use super::cache_status::{Forward, Outcome, put};
    let text = |outcome: Outcome| {
        let mut out = Vec::new();
        put(&outcome, &mut out);
        String::from_utf8(out).expect("text")
    };
    assert_eq!(text(Outcome::Hit { ttl: -3 }), "afpa; hit; ttl=-3");
    let hit = |lifetime, age| {
        let control = StoredControl::default();
        Outcome::hit(&Stored { control, lifetime, age, purged: false, grace: 0 })
    };
    assert_eq!(text(hit(100, 58)), "afpa; hit; ttl=42");
    assert_eq!(text(hit(58, 100)), "afpa; hit; ttl=-42");
    assert_eq!(hit(0, u64::MAX), Outcome::Hit { ttl: i64::MIN });
    let why = Forward::Stale;
    let collapsed = Outcome::Forwarded { why, status: Some(304), stored: Ok(()), collapsed: true };
    assert_eq!(text(collapsed), "afpa; fwd=stale; fwd-status=304; collapsed; stored");
    let passed = Err(NotStored::Private);
    let passed = Outcome::Forwarded { why, status: None, stored: passed, collapsed: false };
    assert_eq!(text(passed), "afpa; fwd=stale; detail=private");
}

proptest! {
    #[test]
    fn nothing_panics(value in prop::collection::vec(any::<u8>(), 0..80)) {
        for name in ["cache-control", "cdn-cache-control", "age", "expires", "vary", "date"] {
            let fields = [(name.as_bytes(), &value[..])];
            let facts = ResponseFacts::of(200, fields.into_iter(), &TARGETS);
            let _ = lifetime(&facts, NOW, Some(Heuristic::default()));
        }
        let _ = RequestControl::of([&value[..]].into_iter(), [&value[..]].into_iter());
        let _ = (same_origin_path(&value, b"a"), fields::tags(b"cache-groups", &value));
    }

    /// A response that must not be used stale is never used stale, whatever else the response and the request say.
    #[test]
    fn what_forbids_staleness_wins(
        lifetime in 0u64..100,
        stale_for in 0u64..100,
        windows in prop::option::of(0u64..200),
        forbids in 0usize..3,
        asked in prop::sample::select(vec!["", "max-stale", "max-stale=50", "stale-if-error=1000"]),
    ) {
        let window = windows.unwrap_or(0);
        let word = ["must-revalidate", "proxy-revalidate", "no-cache"][forbids];
        let control = format!("{word}, stale-while-revalidate={window}, stale-if-error={window}");
        let stored =
            Stored { grace: 1000, ..response(&control, lifetime, lifetime + stale_for) };
        prop_assert!(matches!(judge(&stored, &asks(asked)), Reuse::Validate(_)));
        prop_assert!(!may_replace_error(&stored, &asks(asked)));
    }

    /// A fresh response answers exactly while its age is below its lifetime, and ages only upwards.
    #[test]
    fn freshness_ends_with_the_lifetime(
        lifetime in 0u64..1000, initial in 0u64..1000, at in 0u64..1000, later in 0u64..1000,
    ) {
        let arrival = Arrival::at_age(initial, at);
        let age = arrival.age(at + later);
        prop_assert_eq!(age, initial + later);
        let reuse = judge(&response("max-age=1", lifetime, age), &asks(""));
        prop_assert_eq!(reuse == Reuse::Fresh, age < lifetime);
    }

    /// More permission in a request never makes a response less usable.
    #[test]
    fn max_stale_only_adds(lifetime in 0u64..50, age in 0u64..100, most in 0u64..100) {
        let stored = response("max-age=1", lifetime, age);
        if judge(&stored, &asks("")) == Reuse::Fresh {
            let asked = asks(&format!("max-stale={most}"));
            prop_assert_eq!(judge(&stored, &asked), Reuse::Fresh);
        }
    }
}

#[test]
fn head_says_whether_what_is_stored_is_current() {
    use super::{HeadSays, Version, head_says};
    let of = |etag: Option<&'static str>, date: Option<&'static str>, length| Version {
        etag: etag.map(str::as_bytes),
        last_modified: date.map(str::as_bytes),
        length,
    };
    let (date, same) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT");
    let stored = of(Some("\"a\""), Some(date), Some(8));
    for (stored, head, says) in [
        (stored, stored, HeadSays::Same),
        (stored, of(Some("\"a\""), None, None), HeadSays::Same),
        (stored, of(None, Some(same), None), HeadSays::Same),
        (stored, of(None, None, Some(8)), HeadSays::Same),
        (stored, of(None, None, None), HeadSays::Nothing),
        (stored, of(Some("\"b\""), Some(date), Some(8)), HeadSays::Other),
        (stored, of(Some("W/\"a\""), None, None), HeadSays::Other),
        (stored, of(None, Some("x"), None), HeadSays::Other),
        (stored, of(Some("\"a\""), None, Some(9)), HeadSays::Other),
        (of(None, None, Some(8)), of(Some("\"a\""), None, Some(8)), HeadSays::Other),
    ] {
        assert_eq!(head_says(&stored, &head), says, "{stored:?} {head:?}");
    }
}
