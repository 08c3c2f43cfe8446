//! The request corpus against the parser and the body skipper, whole and in every split.

use afpa_http::body::BodySkipper;
use afpa_http::{BodyLength, FieldSlots, RequestLimits, request};

#[path = "../corpus/reader.rs"]
mod reader;

use reader::{Case, Verdict};

/// The limit of bodies the corpus is made for.
const BODY_LIMIT: u64 = 1 << 20;

#[test]
fn every_case_gets_its_verdict() {
    for case in reader::all() {
        assert_eq!(judge(&case), case.verdict, "{}", case.name);
    }
}

#[test]
fn no_split_changes_the_answer() {
    for case in reader::all() {
        let wire = [&case.head[..], &case.next].concat();
        let whole = answer(&wire);
        let mut found = None;
        for end in prefixes(wire.len()) {
            let now = answer(&wire[..end]);
            match &found {
                None if now != Answer::More => {
                    assert_eq!(now, whole, "{}: at {end} bytes", case.name);
                    found = Some(now);
                }
                None => {}
                Some(before) => assert_eq!(&now, before, "{}: at {end} bytes", case.name),
            }
        }
        assert_eq!(found.unwrap_or(Answer::More), whole, "{}", case.name);
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = reader::all().into_iter().map(|case| case.name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert!(names.len() == count && count > 200, "{count} cases");
}

/// Every prefix of a short input; of a long one its ends, the limits, and a sample between.
fn prefixes(length: usize) -> impl Iterator<Item = usize> {
    (0..=length).filter(move |end| {
        length < 600
            || *end < 64
            || end + 64 > length
            || (8150..8250).contains(end)
            || (32740..32780).contains(end)
            || end % 977 == 0
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    More,
    Refused(u16, String),
    Accepted { keep: bool, body: BodyLength, host: String, head_len: usize },
}

fn answer(wire: &[u8]) -> Answer {
    let mut slots = FieldSlots::new();
    match request::parse(wire, &mut slots, &RequestLimits::default()) {
        Ok(None) => Answer::More,
        Err(refusal) => Answer::Refused(refusal.status().code(), refusal.key().to_string()),
        Ok(Some(request)) => Answer::Accepted {
            keep: request.keep_alive,
            body: request.body,
            host: String::from_utf8_lossy(request.host.as_bytes()).into_owned(),
            head_len: request.head_len,
        },
    }
}

fn judge(case: &Case) -> Verdict {
    let wire = case.wire();
    let (keep, body, host, head_len) = match answer(&wire) {
        Answer::More => return Verdict::More,
        Answer::Refused(status, key) => return Verdict::Refuse(status, key),
        Answer::Accepted { keep, body, host, head_len } => (keep, body, host, head_len),
    };
    assert_eq!(head_len, case.head.len(), "{}: where the head ends", case.name);
    match BodySkipper::new(body, BODY_LIMIT).feed(&wire[head_len..]) {
        Err(error) => return Verdict::RefuseBody(error.status().code()),
        Ok(skipped) => {
            assert!(skipped.done, "{}: the body ends", case.name);
            assert_eq!(skipped.consumed, case.body.len(), "{}: where it ends", case.name);
        }
    }
    let body = match body {
        BodyLength::None => "none".to_string(),
        BodyLength::Chunked => "chunked".to_string(),
        BodyLength::Length(length) => length.to_string(),
    };
    Verdict::Accept { keep, body, host: if host.is_empty() { "-".to_string() } else { host } }
}
