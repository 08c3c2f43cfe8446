//! Whether an answer may be kept that no file stands behind, and for how long. RFC 9111 is decided where the shared cache has
//! it decided, in [`afpa_http::caching`]; `permit` refuses more (docs/decisions/kept-answers.md).

use std::time::Duration;

use afpa_http::caching::freshness::{self, Arrival};
use afpa_http::caching::store::{self, Requested, SetCookie, Terms};
use afpa_http::caching::{ResponseFacts, control};

use crate::answer::Answer;
use crate::permit::{Permit, Refused, is_for_everybody};

/// The freshness of an answer that may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// How long it is fresh, in seconds.
    pub lifetime: u64,
    /// How much of that was over when it was asked for.
    pub age: u64,
}

/// A shorter lifetime is not worth the questions.
const LEAST: u64 = 3;

/// The freshness that `answer` has itself for shared caches, as the answer to a GET without credentials that was asked
/// at `asked_unix`, in seconds of the clock on the wall.
///
/// The age is counted from the question on, so that it includes the `response_delay` of RFC 9111, 4.2.3, however long
/// the answer took. The age before the question is known from its Date alone.
///
/// # Errors
/// With the first reason why it may not be kept.
pub fn allowed(answer: &Answer, asked_unix: u64) -> Result<Allowed, Refused> {
    is_for_everybody(answer)?;
    let targets: [&str; 0] = [];
    let facts = ResponseFacts::of(answer.status(), answer.fields(), &targets);
    let age = u64::from(Arrival::of(&facts, 0, asked_unix, 0).initial_age);
    let lifetime = freshness::lifetime(&facts, asked_unix, None);
    let terms = Terms { lifetime, age, explicit_only: true, ..Terms::default() };
    if store::judge(&facts, &Requested::default(), SetCookie::Pass, terms).is_err()
        || !facts.has_lifetime()
    {
        return Err(Refused::Lifetime);
    }
    match lifetime.checked_sub(age) {
        Some(rest) if rest >= LEAST => Ok(Allowed { lifetime, age }),
        _ => Err(Refused::Expires),
    }
}

/// Whether the server says that the answer is for every client, with any cookies. A bare `max-age` was often meant for
/// the browser that gets it: where a session's cookie decides, and Vary does not say so, no decoy would show it.
pub fn is_public(answer: &Answer) -> bool {
    let mut directives = answer.values("cache-control").flat_map(control::directives);
    directives.any(|(name, _)| {
        name.eq_ignore_ascii_case(b"public") || name.eq_ignore_ascii_case(b"s-maxage")
    })
}

/// [`permit`](crate::permit::permit) for an answer that no file stands behind. The time since its Date counts when it
/// is kept.
///
/// # Errors
/// Likewise.
pub fn permit(answer: &Answer) -> Result<Permit, Refused> {
    let varies = is_for_everybody(answer)?;
    let date = answer.date().ok_or(Refused::Date)?;
    let allowed = allowed(answer, date)?;
    Ok(Permit { varies, lifetime: Some(Duration::from_secs(allowed.lifetime)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Asked;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: u64 = 784_111_777;

    fn verdict(fields: &str, asked: u64) -> Result<Allowed, Refused> {
        let text = format!(
            "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n{fields}\r\n"
        );
        allowed(&Answer::read(text.as_bytes(), Asked::Get).unwrap().unwrap(), asked)
    }

    #[test]
    fn only_what_says_so_itself_is_kept_and_only_for_so_long() {
        let table = [
            ("Cache-Control: s-maxage=60\r\n", 60),
            ("Cache-Control: max-age=60\r\n", 60),
            ("Cache-Control: max-age=0, s-maxage=7\r\n", 7),
            ("Cache-Control: public, max-age=60, stale-if-error=90\r\n", 60),
            ("Cache-Control: max-age=60, max-age=9\r\n", 9),
            ("Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\n", 60),
            ("Expires: 0\r\nCache-Control: max-age=5\r\nVary: Accept-Encoding\r\n", 5),
            ("Cache-Control: must-revalidate, max-age=5\r\nETag: \"a\"\r\n", 5),
        ];
        for (fields, lifetime) in table {
            let found = verdict(fields, NOW);
            assert_eq!(found, Ok(Allowed { lifetime, age: 0 }), "{fields:?}");
        }
        const CONTROL: Refused = Refused::Forbidden("Cache-Control");
        let table = [
            ("", Refused::Lifetime),
            ("Cache-Control: public\r\n", Refused::Lifetime),
            ("Last-Modified: Sun, 06 Nov 1984 08:49:37 GMT\r\n", Refused::Lifetime),
            ("Cache-Control: immutable\r\nETag: \"a\"\r\n", Refused::Lifetime),
            ("Cache-Control: private, max-age=60\r\n", CONTROL),
            ("Cache-Control: private=\"x\", max-age=60\r\n", CONTROL),
            ("Cache-Control: max-age=60\r\nCache-Control: No-Store\r\n", CONTROL),
            ("Cache-Control: no-cache, s-maxage=60\r\n", CONTROL),
            ("Cache-Control: no-cache=\"set-cookie\", s-maxage=60\r\n", CONTROL),
            ("Cache-Control: must-understand, no-store, max-age=60\r\n", CONTROL),
            ("Cache-Control: max-age=60\r\nSet-Cookie: a=b\r\n", Refused::Field("Set-Cookie")),
            ("Cache-Control: max-age=60\r\nAge: 3\r\n", Refused::Field("Age")),
            ("Cache-Control: max-age=60\r\nVia: 1.1 x\r\n", Refused::Field("Via")),
            ("Cache-Control: max-age=60\r\nVary: Cookie\r\n", Refused::Vary),
            ("Cache-Control: max-age=60\r\nVary: *\r\n", Refused::Vary),
            ("Cache-Control: max-age=60\r\nPragma: no-cache\r\n", Refused::Forbidden("Pragma")),
        ];
        for (fields, reason) in table {
            assert_eq!(verdict(fields, NOW), Err(reason), "{fields:?}");
        }
        for stale in ["max-age=0", "max-age=soon", "s-maxage=0, max-age=60", "max-age=2"] {
            let found = verdict(&format!("Cache-Control: {stale}\r\n"), NOW);
            assert!(matches!(found, Err(Refused::Expires | Refused::Lifetime)), "{stale}");
        }
    }

    #[test]
    fn cookies_count_unless_the_answer_is_for_everybody() {
        let table = [
            ("Cache-Control: max-age=60\r\n", false),
            ("Expires: Sun, 06 Nov 1994 08:50:37 GMT\r\n", false),
            ("Cache-Control: max-age=60, must-revalidate, immutable\r\n", false),
            ("Cache-Control: max-age=60\r\nX-Cache-Control: public\r\n", false),
            ("Cache-Control: max-age=60, x-public, publicity=1\r\n", false),
            ("Cache-Control: max-age=60, x=\"public\"\r\n", false),
            ("Cache-Control: Public, max-age=60\r\n", true),
            ("Cache-Control: max-age=60\r\nCache-Control: public\r\n", true),
            ("Cache-Control: max-age=0, S-MaxAge=60\r\n", true),
        ];
        for (fields, expected) in table {
            let text = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 0\r\n\r\n");
            let answer = Answer::read(text.as_bytes(), Asked::Get).unwrap().unwrap();
            assert_eq!(is_public(&answer), expected, "{fields:?}");
        }
    }

    #[test]
    fn time_since_the_date_counts() {
        let fields = "Cache-Control: max-age=60\r\n";
        assert_eq!(verdict(fields, NOW + 12), Ok(Allowed { lifetime: 60, age: 12 }));
        assert_eq!(verdict(fields, NOW - 9), Ok(Allowed { lifetime: 60, age: 0 }), "made later");
        // An application's own answer, which a proxy hands on with its old Date.
        assert_eq!(verdict(fields, NOW + 58), Err(Refused::Expires));
        assert!(verdict(fields, NOW + 100).is_err());
    }
}
