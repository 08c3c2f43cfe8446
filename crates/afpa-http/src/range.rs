//! Range requests (RFC 9110 section 14).

use std::ops::Range;

use crate::etag::{Comparison, SentTag};
use crate::{Known, Method, Request, Validators, date, syntax};

/// Which bytes of a representation to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranges {
    /// The whole representation, with 200: no range was asked for, or the request for it does not count.
    Whole,
    /// One range, with 206. Never empty.
    One(Range<u64>),
    /// Several, with 206 and `multipart/byteranges`. At least two, none empty, none overlapping.
    Many(Vec<Range<u64>>),
    /// No range, with 416.
    Unsatisfiable,
}

/// Selects the ranges of a representation of `length` bytes (RFC 9110 sections 13.1.5 and 14.2).
///
/// Evaluate the other conditions first. Only GET has ranges; a Range field that is malformed, in
/// another unit or on several lines is ignored, and so is one whose If-Range does not match.
/// Ranges that overlap or touch are coalesced, in ascending order; ranges that do not keep the
/// order of the request. When still more than `max_ranges` are left, the whole is sent; with a
/// `max_ranges` of 0 ranges are off. `now` (Unix seconds) is needed to judge a date in If-Range.
#[inline]
pub fn select(
    request: &Request<'_, '_>,
    validators: &Validators<'_>,
    length: u64,
    max_ranges: usize,
    now: u64,
) -> Ranges {
    if !request.has(Known::Range) || request.method != Method::Get || max_ranges == 0 {
        return Ranges::Whole;
    }
    let set = request.only(Known::Range).and_then(byte_ranges);
    match set {
        Some(set) if is_still_current(request, validators, now) => resolve(set, length, max_ranges),
        _ => Ranges::Whole,
    }
}

/// As [`select`], when it is known that the ranges count: there is no If-Range, or it has been evaluated.
pub fn select_current(request: &Request<'_, '_>, length: u64, max_ranges: usize) -> Ranges {
    if !request.has(Known::Range) || request.method != Method::Get || max_ranges == 0 {
        return Ranges::Whole;
    }
    let set = request.only(Known::Range).and_then(byte_ranges);
    set.map_or(Ranges::Whole, |set| resolve(set, length, max_ranges))
}

/// The value of Content-Range for a part (RFC 9110 section 14.4): `bytes first-last/length`.
pub fn content_range(range: &Range<u64>, length: u64) -> String {
    debug_assert!(range.start < range.end && range.end <= length);
    format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1))
}

/// The value of Content-Range of a 416: `bytes */length`.
pub fn content_range_unsatisfied(length: u64) -> String {
    format!("bytes */{length}")
}

/// If-Range: a strong tag that is ours, or exactly our date, when it is a strong validator: at
/// least one second in the past, so that no second change can hide behind it (RFC 9110 sections
/// 8.8.2.2 and 13.1.5). Without the field the ranges count.
fn is_still_current(request: &Request<'_, '_>, validators: &Validators<'_>, now: u64) -> bool {
    if !request.has(Known::IfRange) {
        return true;
    }
    let Some(value) = request.only(Known::IfRange) else { return false };
    if let Some(tag) = SentTag::parse(value) {
        return validators.etag.matches(&tag, Comparison::Strong);
    }
    date::parse(value) == Some(validators.last_modified) && validators.last_modified < now
}

/// One member of the set as it was sent; the numbers may lie behind the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spec {
    From(u64),
    FromTo(u64, u64),
    Last(u64),
}

/// The members of `bytes=...`, `None` when it is malformed or in another unit.
fn byte_ranges(value: &[u8]) -> Option<Vec<Spec>> {
    let (unit, set) = value.split_at_checked("bytes=".len())?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let specs: Vec<Spec> = syntax::list(set).map(spec).collect::<Option<_>>()?;
    (!specs.is_empty()).then_some(specs)
}

fn spec(member: &[u8]) -> Option<Spec> {
    let dash = member.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (member.get(..dash)?, member.get(dash + 1..)?);
    match (first, last) {
        (b"", last) => Some(Spec::Last(position(last)?)),
        (first, b"") => Some(Spec::From(position(first)?)),
        (first, last) => {
            let (first, last) = (position(first)?, position(last)?);
            (first <= last).then_some(Spec::FromTo(first, last))
        }
    }
}

/// `1*DIGIT`. A number that does not fit is behind the end of any file, which is all that matters here.
fn position(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        digits.iter().fold(0, |sum: u64, digit| {
            sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        }),
    )
}

impl Spec {
    /// The bytes it names, `None` when there are none (RFC 9110 section 14.1.2).
    fn within(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Spec::From(first) => first..length,
            Spec::FromTo(first, last) => first..last.saturating_add(1).min(length),
            Spec::Last(count) => length.saturating_sub(count)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

fn resolve(specs: Vec<Spec>, length: u64, max_ranges: usize) -> Ranges {
    // A suffix of an empty representation is satisfiable, but there is no part to send: the whole,
    // which is nothing, answers it.
    if length == 0 && specs.iter().any(|spec| matches!(spec, Spec::Last(count) if *count > 0)) {
        return Ranges::Whole;
    }
    let asked: Vec<_> = specs.into_iter().filter_map(|spec| spec.within(length)).collect();
    let mut ranges = coalesce(asked);
    match ranges.len() {
        0 => Ranges::Unsatisfiable,
        1 => ranges.pop().map_or(Ranges::Unsatisfiable, Ranges::One),
        count if count > max_ranges => Ranges::Whole,
        _ => Ranges::Many(ranges),
    }
}

/// Joins ranges that overlap or touch; leaves the order alone when there are none.
fn coalesce(asked: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut sorted = asked.clone();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    if joined.len() == asked.len() { asked } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntityTag, FieldSlots, HttpDate, RequestLimits, request};
    use proptest::prelude::*;

    const MODIFIED: u64 = 784_111_777;

    fn select_by(method: &str, fields: &[(&str, &str)], length: u64, now: u64) -> Ranges {
        let mut head = format!("{method} / HTTP/1.1\r\nHost: a\r\n");
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut slots = FieldSlots::new();
        let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        let etag = EntityTag::new("now").unwrap();
        let validators = Validators { etag: &etag, last_modified: MODIFIED };
        select(&request.unwrap().unwrap(), &validators, length, 4, now)
    }

    fn of(range: &str, length: u64) -> Ranges {
        select_by("GET", &[("Range", range)], length, MODIFIED + 1)
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn the_rfc_cases() {
        use Ranges::{Many, One, Unsatisfiable, Whole};
        for (range, length, expected) in [
            ("bytes=0-499", 10000, One(0..500)),
            ("bytes=9500-", 10000, One(9500..10000)),
            ("bytes=-500", 10000, One(9500..10000)),
            ("bytes=0-0,-1", 10000, Many(vec![0..1, 9999..10000])),
            ("bytes= 0-1 ,, 4-5", 10000, Many(vec![0..2, 4..6])),
            ("bytes=-1,0-0", 10000, Many(vec![9999..10000, 0..1])),
            ("BYTES=0-0", 10, One(0..1)),
            ("bytes=0-99999", 10, One(0..10)),
            ("bytes=-99999", 10, One(0..10)),
            ("bytes=0-18446744073709551616", 10, One(0..10)),
            ("bytes=0-18446744073709551615", 10, One(0..10)),
            ("bytes=18446744073709551616-", 10, Unsatisfiable),
            ("bytes=10-", 10, Unsatisfiable),
            ("bytes=-0", 10, Unsatisfiable),
            ("bytes=10-,-0", 10, Unsatisfiable),
            ("bytes=10-,2-3", 10, One(2..4)),
            ("bytes=5-6,0-5", 10, One(0..7)),
            ("bytes=5-6,0-4", 10, One(0..7)),
            ("bytes=8-9,2-3,3-4", 10, Many(vec![2..5, 8..10])),
            ("bytes=0-0,2-2,4-4,6-6,8-8", 10, Whole),
            ("bytes=0-0,1-1,2-2,3-3,4-4", 10, One(0..5)),
            ("bytes=0-0", 0, Unsatisfiable),
            ("bytes=-1", 0, Whole),
            ("bytes=2-1", 10, Whole),
            ("bytes=2-1,0-0", 10, Whole),
            ("bytes=", 10, Whole),
            ("bytes=-", 10, Whole),
            ("bytes=,", 10, Whole),
            ("bytes=a-b", 10, Whole),
            ("bytes=+1-2", 10, Whole),
            ("bytes=1-2-3", 10, Whole),
            ("bytes=1 -2", 10, Whole),
            ("bytes 1-2", 10, Whole),
            ("lines=1-2", 10, Whole),
        ] {
            assert_eq!(of(range, length), expected, "{range} of {length}");
        }
        assert_eq!(select_by("HEAD", &[("Range", "bytes=0-0")], 10, u64::MAX), Whole);
        let twice = [("Range", "bytes=0-0"), ("Range", "bytes=0-0")];
        assert_eq!(select_by("GET", &twice, 10, u64::MAX), Whole);
    }

    #[test]
    fn if_range_must_match_strongly() {
        let date = |seconds| HttpDate::new(seconds).to_string();
        for (if_range, now, counts) in [
            ("\"now\"".to_string(), MODIFIED, true),
            ("\"old\"".to_string(), MODIFIED, false),
            ("W/\"now\"".to_string(), MODIFIED, false),
            ("\"now\", \"now\"".to_string(), MODIFIED, false),
            ("*".to_string(), MODIFIED, false),
            (date(MODIFIED), MODIFIED + 1, true),
            (date(MODIFIED), MODIFIED, false),
            (date(MODIFIED + 1), MODIFIED + 9, false),
            (date(MODIFIED - 1), MODIFIED + 9, false),
            ("soon".to_string(), MODIFIED + 9, false),
        ] {
            let fields = [("If-Range", if_range.as_str()), ("Range", "bytes=0-0")];
            let expected = if counts { Ranges::One(0..1) } else { Ranges::Whole };
            assert_eq!(select_by("GET", &fields, 10, now), expected, "{if_range}");
        }
    }

    #[test]
    fn content_ranges_are_inclusive() {
        assert_eq!(content_range(&(0..1), 10), "bytes 0-0/10");
        assert_eq!(content_range_unsatisfied(10), "bytes */10");
    }

    proptest! {
        /// Marks the bytes asked for one by one, and compares them with the selected ones.
        #[test]
        fn exactly_the_bytes_asked_for(
            specs in proptest::collection::vec(
                (proptest::option::of(0u64..24), proptest::option::of(0u64..24)), 1..6),
            length in 0u64..20,
        ) {
            let valid = specs.iter().all(|spec| match spec {
                (Some(first), Some(last)) => first <= last,
                (None, None) => false,
                _ => true,
            });
            let named = |at: u64| specs.iter().any(|spec| match *spec {
                (Some(first), Some(last)) => (first..=last).contains(&at),
                (Some(first), None) => at >= first,
                (None, Some(count)) => at + count >= length,
                (None, None) => false,
            });
            let wanted: Vec<u64> = (0..length).filter(|at| named(*at)).collect();
            let text = |number: Option<u64>| number.map_or(String::new(), |n| n.to_string());
            let list: Vec<_> = specs.iter()
                .map(|(first, last)| format!("{}-{}", text(*first), text(*last)))
                .collect();
            let mut sent: Vec<u64> = match of(&format!("bytes={}", list.join(",")), length) {
                Ranges::Whole => {
                    let suffix_of_nothing = length == 0
                        && specs.iter().any(|s| s.0.is_none() && s.1 != Some(0));
                    prop_assert!(!valid || specs.len() > 4 || suffix_of_nothing);
                    return Ok(());
                }
                Ranges::Unsatisfiable => vec![],
                Ranges::One(range) => range.collect(),
                Ranges::Many(ranges) => {
                    prop_assert!((2..=4).contains(&ranges.len()));
                    ranges.into_iter().flatten().collect()
                }
            };
            prop_assert!(valid);
            sent.sort_unstable();
            prop_assert_eq!(sent, wanted);
        }
    }
}
