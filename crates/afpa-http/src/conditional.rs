//! Conditional requests in their order of precedence (RFC 9110 section 13).

use crate::etag::Comparison;
use crate::{EntityTag, Known, KnownSet, Method, Request, date};

/// The validators of the selected representation (RFC 9110 section 8.8).
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// Its strong entity tag; of the chosen coding.
    pub etag: &'a EntityTag,
    /// Its Last-Modified, in whole seconds since the Unix epoch.
    pub last_modified: u64,
}

/// The result of evaluating the conditions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Perform the method.
    Proceed,
    /// Answer 304: the client has this representation.
    NotModified,
    /// Answer 412.
    Failed,
}

/// Evaluates the conditions of a request on an existing representation, in the order of RFC 9110
/// section 13.2.2; its step 5, If-Range, belongs to [`range::select`](crate::range::select).
///
/// Conditions on methods that select no representation are ignored (section 13.2.1). A date that
/// is no date, or stands on several lines, makes its field ignored; so does the field of entity
/// tags that takes precedence over it.
#[inline]
pub fn evaluate(request: &Request<'_, '_>, validators: &Validators<'_>) -> Precondition {
    if !request.has_any(KnownSet::CONDITIONAL) {
        return Precondition::Proceed;
    }
    match request.method {
        Method::Options | Method::Connect | Method::Trace => Precondition::Proceed,
        _ if !may_act(request, validators) => Precondition::Failed,
        _ if !is_known_to_client(request, validators) => Precondition::Proceed,
        Method::Get | Method::Head => Precondition::NotModified,
        _ => Precondition::Failed,
    }
}

/// Steps 1 and 2: If-Match, else If-Unmodified-Since.
fn may_act(request: &Request<'_, '_>, validators: &Validators<'_>) -> bool {
    if request.has(Known::IfMatch) {
        return validators.etag.is_named_by(request.values(Known::IfMatch), Comparison::Strong);
    }
    let date = request.only(Known::IfUnmodifiedSince).and_then(date::parse);
    date.is_none_or(|date| validators.last_modified <= date)
}

/// Steps 3 and 4: If-None-Match, else (GET and HEAD only) If-Modified-Since.
fn is_known_to_client(request: &Request<'_, '_>, validators: &Validators<'_>) -> bool {
    if request.has(Known::IfNoneMatch) {
        return validators.etag.is_named_by(request.values(Known::IfNoneMatch), Comparison::Weak);
    }
    let date = request.only(Known::IfModifiedSince).and_then(date::parse);
    request.method.is_get_or_head() && date.is_some_and(|date| validators.last_modified <= date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldSlots, HttpDate, RequestLimits, request};
    use proptest::prelude::*;

    const MODIFIED: u64 = 784_111_777;

    fn outcome(method: &str, fields: &[(&str, String)]) -> Precondition {
        let mut head = format!("{method} / HTTP/1.1\r\nHost: a\r\n");
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut slots = FieldSlots::new();
        let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        let request = request.unwrap().unwrap();
        let etag = EntityTag::new("now").unwrap();
        evaluate(&request, &Validators { etag: &etag, last_modified: MODIFIED })
    }

    fn date(offset: i64) -> String {
        HttpDate::new(MODIFIED.saturating_add_signed(offset)).to_string()
    }

    #[test]
    fn the_rfc_cases() {
        use Precondition::{Failed, NotModified, Proceed};
        let now = || "\"now\"".to_string();
        let old = || "\"old\"".to_string();
        for (method, fields, expected) in [
            ("GET", vec![], Proceed),
            ("GET", vec![("If-Match", now())], Proceed),
            ("GET", vec![("If-Match", old())], Failed),
            ("GET", vec![("If-Match", "W/\"now\"".into())], Failed),
            ("GET", vec![("If-Match", "*".into())], Proceed),
            ("GET", vec![("If-Match", old()), ("If-Match", now())], Proceed),
            ("GET", vec![("If-Match", now()), ("If-Unmodified-Since", date(-1))], Proceed),
            ("GET", vec![("If-Unmodified-Since", date(0))], Proceed),
            ("GET", vec![("If-Unmodified-Since", date(-1))], Failed),
            ("GET", vec![("If-Unmodified-Since", "soon".into())], Proceed),
            ("GET", vec![("If-None-Match", now())], NotModified),
            ("HEAD", vec![("If-None-Match", "W/\"now\"".into())], NotModified),
            ("PUT", vec![("If-None-Match", now())], Failed),
            ("PUT", vec![("If-None-Match", "*".into())], Failed),
            ("GET", vec![("If-None-Match", old()), ("If-Modified-Since", date(9))], Proceed),
            ("GET", vec![("If-Modified-Since", date(0))], NotModified),
            ("GET", vec![("If-Modified-Since", date(-1))], Proceed),
            ("POST", vec![("If-Modified-Since", date(0))], Proceed),
            ("GET", vec![("If-Modified-Since", date(0)), ("If-Modified-Since", date(0))], Proceed),
            ("GET", vec![("If-Match", old()), ("If-None-Match", now())], Failed),
            ("OPTIONS", vec![("If-Match", old())], Proceed),
        ] {
            assert_eq!(outcome(method, &fields), expected, "{method} {fields:?}");
        }
    }

    /// RFC 9110 section 13.2.2, word for word, over the choices the strategy made.
    fn by_the_book(method: &str, choice: &Choice) -> Precondition {
        let acts = if let Some(tag) = choice.if_match {
            tag.strongly()
        } else {
            choice.unmodified_since.is_none_or(|offset| offset >= 0)
        };
        if !acts {
            return Precondition::Failed;
        }
        let get = method == "GET" || method == "HEAD";
        if let Some(tag) = choice.if_none_match {
            return match (tag.weakly(), get) {
                (false, _) => Precondition::Proceed,
                (true, true) => Precondition::NotModified,
                (true, false) => Precondition::Failed,
            };
        }
        match choice.modified_since {
            Some(offset) if get && offset >= 0 => Precondition::NotModified,
            _ => Precondition::Proceed,
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Tag {
        Same,
        Weak,
        Other,
        Star,
    }

    impl Tag {
        fn strongly(self) -> bool {
            matches!(self, Tag::Same | Tag::Star)
        }
        fn weakly(self) -> bool {
            !matches!(self, Tag::Other)
        }
        fn text(self) -> String {
            match self {
                Tag::Same => "\"x\", \"now\"",
                Tag::Weak => "W/\"now\",\"y\"",
                Tag::Other => "\"x\", W/\"y\"",
                Tag::Star => "*",
            }
            .to_string()
        }
    }

    #[derive(Clone, Debug)]
    struct Choice {
        if_match: Option<Tag>,
        unmodified_since: Option<i64>,
        if_none_match: Option<Tag>,
        modified_since: Option<i64>,
    }

    fn choice() -> impl Strategy<Value = Choice> {
        let tag = || {
            proptest::option::of(proptest::sample::select(vec![
                Tag::Same,
                Tag::Weak,
                Tag::Other,
                Tag::Star,
            ]))
        };
        let offset = || proptest::option::of(-2i64..=2);
        (tag(), offset(), tag(), offset()).prop_map(|(a, b, c, d)| Choice {
            if_match: a,
            unmodified_since: b,
            if_none_match: c,
            modified_since: d,
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_book(
            method in proptest::sample::select(vec!["GET", "HEAD", "PUT", "POST"]),
            choice in choice(),
            reverse: bool,
        ) {
            let mut fields = Vec::new();
            fields.extend(choice.if_match.map(|tag| ("If-Match", tag.text())));
            fields.extend(choice.unmodified_since.map(|at| ("If-Unmodified-Since", date(at))));
            fields.extend(choice.if_none_match.map(|tag| ("If-None-Match", tag.text())));
            fields.extend(choice.modified_since.map(|at| ("If-Modified-Since", date(at))));
            if reverse {
                fields.reverse();
            }
            prop_assert_eq!(outcome(method, &fields), by_the_book(method, &choice));
        }
    }
}
