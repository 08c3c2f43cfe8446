//! Cases of RFC 9111 as a table: a first request and its answer, and whether a second request may have that
//! answer. They ask the same as the public suite at cache-tests.fyi, so that its verdict is known here without it:
//! the demands on every cache, and those on a good one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::origin::{Asked, Origin, Reply, message};

/// Whether the second request has the answer to the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// It must not: the server is asked.
    Asked,
    /// A good cache does not ask again.
    Kept,
}
use Then::{Asked as MustAsk, Kept};

/// Request fields, status, answer fields, request fields of the second request.
type Case = (&'static str, u16, &'static str, &'static str, Then);

/// Fields are separated by `;;`. `@+60` is a date so many seconds from now.
const CASES: &[Case] = &[
    // Freshness (section 4.2).
    ("", 200, "", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600", "", Kept),
    ("", 200, "Cache-Control: max-age=0", "", MustAsk),
    ("", 200, "Cache-Control: max-age=2147483648", "", Kept),
    ("", 200, "Cache-Control: max-age=99999999999", "", Kept),
    ("", 200, "Cache-Control: max-age=3600;;Age: 7200", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600;;Date: @-7200", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600;;Expires: @-5000", "", Kept),
    ("", 200, "Cache-Control: max-age=3600;;Expires: 0", "", Kept),
    ("", 200, "Cache-Control: max-age=0;;Expires: @+5000", "", MustAsk),
    ("", 200, "Cache-Control: foobar, max-age=3600", "", Kept),
    ("", 200, "Cache-Control: MaX-aGe=3600", "", Kept),
    ("", 200, "Cache-Control: max-age=-3600", "", MustAsk),
    ("", 200, "Cache-Control: s-maxage=3600", "", Kept),
    ("", 200, "Cache-Control: max-age=3600, s-maxage=0", "", MustAsk),
    ("", 200, "Cache-Control: s-maxage=0;;Cache-Control: max-age=3600", "", MustAsk),
    ("", 200, "Cache-Control: max-age=0, s-maxage=3600", "", Kept),
    ("", 200, "Cache-Control: max-age=0, s-maxage=3600;;Expires: @-10", "", Kept),
    ("", 200, "Cache-Control: extension=\"max-age=3600\", max-age=0", "", MustAsk),
    ("", 200, "Cache-Control: max-age=0, extension=\"max-age=3600\"", "", MustAsk),
    ("", 200, "Cache-Control: max-age=003600", "", Kept),
    ("", 200, "Cache-Control: max-age='3600'", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600.0", "", MustAsk),
    ("", 200, "Expires: @+3600", "", Kept),
    ("", 200, "Expires: @-3600", "", MustAsk),
    ("", 200, "Expires: @+0", "", MustAsk),
    ("", 200, "Expires: 0", "", MustAsk),
    ("", 200, "Expires: @+3600;;Expires: @+3600", "", MustAsk),
    ("", 200, "Expires: @+3600;;Date: foo", "", Kept),
    ("", 200, "Expires: @+100;;Date: @+200", "", MustAsk),
    ("", 200, "Expires: @+3600;;Age: 7200", "", MustAsk),
    ("", 200, "Expires: Thu, 18 Aug 2050 02:01:18 UTC", "", MustAsk),
    ("", 200, "Expires: Thu, 18 Aug 50 02:01:18 GMT", "", MustAsk),
    ("", 200, "Expires: Thu 18 Aug 2050 02:01:18 GMT", "", MustAsk),
    ("", 200, "Expires: Thu, 18-Aug-2050 02:01:18 GMT", "", MustAsk),
    ("", 200, "Expires: Thu, 18 Aug 2050 2:01:18 GMT", "", MustAsk),
    ("", 200, "Expires: Thu, 18 Aug 2050 02:01:18 GMT", "", Kept),
    ("", 200, "Expires: THU, 18 aUG 2050 02:01:18 gmt", "", Kept),
    ("", 200, "Expires: Thursday, 18-Aug-50 02:01:18 GMT", "", Kept),
    ("", 200, "Expires: Thu Aug 18 02:01:18 2050", "", Kept),
    // Age (section 5.1).
    ("", 200, "Cache-Control: max-age=3600;;Age: abc", "", Kept),
    ("", 200, "Cache-Control: max-age=3600;;Age: -7200", "", Kept),
    ("", 200, "Cache-Control: max-age=3600;;Age: 7200.0", "", Kept),
    ("", 200, "Cache-Control: max-age=3600;;Age: 2147483649", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600;;Age: 7200, 0", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600;;Age: 0, 7200", "", Kept),
    ("", 200, "Cache-Control: max-age=3600;;Age: 7200;;Age: 0", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600;;Age: 0;;Age: 7200", "", Kept),
    // Directives of responses (section 5.2.2).
    ("", 200, "Cache-Control: private, max-age=3600", "", MustAsk),
    ("", 200, "Cache-Control: nO-StOrE, max-age=3600;;Expires: @+3600", "", MustAsk),
    ("", 200, "Cache-Control: No-CaChE, max-age=3600;;Expires: @+3600", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600, must-revalidate", "", Kept),
    ("", 200, "Cache-Control: max-age=0, must-revalidate", "", MustAsk),
    ("", 200, "Cache-Control: max-age=3600, no-store, must-understand", "", Kept),
    ("", 599, "Cache-Control: max-age=3600, no-store, must-understand", "", MustAsk),
    ("", 200, "Pragma: no-cache;;Cache-Control: max-age=3600", "", Kept),
    // Status codes with freshness.
    ("", 203, "Cache-Control: max-age=3600", "", Kept),
    ("", 204, "Cache-Control: max-age=3600", "", Kept),
    ("", 299, "Cache-Control: max-age=3600", "", Kept),
    ("", 301, "Cache-Control: max-age=3600", "", Kept),
    ("", 302, "Cache-Control: max-age=3600", "", Kept),
    ("", 307, "Cache-Control: max-age=3600", "", Kept),
    ("", 404, "Cache-Control: max-age=3600", "", Kept),
    ("", 410, "Cache-Control: max-age=3600", "", Kept),
    ("", 500, "Cache-Control: max-age=3600", "", Kept),
    ("", 503, "Cache-Control: max-age=3600", "", Kept),
    ("", 599, "Cache-Control: max-age=3600", "", Kept),
    ("", 404, "Cache-Control: max-age=0", "", MustAsk),
    // Heuristic freshness (section 4.2.2).
    ("", 200, "Last-Modified: @-86400", "", Kept),
    ("", 201, "Last-Modified: @-86400", "", MustAsk),
    ("", 202, "Last-Modified: @-86400", "", MustAsk),
    ("", 203, "Last-Modified: @-86400", "", Kept),
    ("", 204, "Last-Modified: @-86400", "", Kept),
    ("", 403, "Last-Modified: @-86400", "", MustAsk),
    ("", 404, "Last-Modified: @-86400", "", Kept),
    ("", 405, "Last-Modified: @-86400", "", Kept),
    ("", 410, "Last-Modified: @-86400", "", Kept),
    ("", 414, "Last-Modified: @-86400", "", Kept),
    ("", 501, "Last-Modified: @-86400", "", Kept),
    ("", 502, "Last-Modified: @-86400", "", MustAsk),
    ("", 503, "Last-Modified: @-86400", "", MustAsk),
    ("", 599, "Last-Modified: @-86400", "", MustAsk),
    ("", 599, "Last-Modified: @-86400;;Cache-Control: public", "", Kept),
    // Vary (section 4.1).
    ("Foo: 1", 200, "Cache-Control: max-age=60;;Vary: Foo", "Foo: 1", Kept),
    ("Foo: 1", 200, "Cache-Control: max-age=60;;Vary: Foo", "Foo: 2", MustAsk),
    ("", 200, "Cache-Control: max-age=60;;Vary: Foo", "Foo: 1", MustAsk),
    ("Foo: 1", 200, "Cache-Control: max-age=60;;Vary: Foo", "", MustAsk),
    ("Foo: 1", 200, "Cache-Control: max-age=60;;Vary: Foo", "Foo: 1;;Other: 2", Kept),
    ("Foo: 1;;Bar: a", 200, "Cache-Control: max-age=60;;Vary: Foo, Bar", "Foo: 1;;Bar: a", Kept),
    ("Foo: 1;;Bar: a", 200, "Cache-Control: max-age=60;;Vary: Foo, Bar", "Foo: 2;;Bar: a", MustAsk),
    ("Foo: 1;;Bar: a", 200, "Cache-Control: max-age=60;;Vary: Foo, Bar", "Foo: 1", MustAsk),
    ("Foo: 1", 200, "Cache-Control: max-age=60;;Vary: Foo, Bar", "Foo: 1", Kept),
    ("Foo: 1, 2", 200, "Cache-Control: max-age=60;;Vary: Foo", "Foo: 1;;Foo: 2", MustAsk),
    ("Foo: 1,2", 200, "Cache-Control: max-age=60;;Vary: Foo", "Foo:  1 ,  2", MustAsk),
    ("", 200, "Cache-Control: max-age=60;;Vary: Foo", "Foo: ,", MustAsk),
    ("", 200, "Cache-Control: max-age=60;;Vary: Accept-Encoding", "Accept-Encoding: ", MustAsk),
    ("", 200, "Cache-Control: max-age=60;;Vary: Accept-Language", "Accept_Language: de", MustAsk),
    (
        "Accept-Language: en, de",
        200,
        "Cache-Control: max-age=60;;Vary: Accept-Language",
        "Accept-Language: EN,dE",
        Kept,
    ),
    (
        "Accept-Language: en, de",
        200,
        "Cache-Control: max-age=60;;Vary: Accept-Language",
        "Accept-Language: de, en",
        MustAsk,
    ),
    (
        "Accept-Language: de, x-evil;q=0.1",
        200,
        "Cache-Control: max-age=60;;Vary: Accept-Language;;Content-Language: de",
        "Accept-Language: de",
        MustAsk,
    ),
    ("Foo: 1", 200, "Cache-Control: max-age=60;;Vary: *", "Foo: 1", MustAsk),
    ("Foo: 1", 200, "Cache-Control: max-age=60;;Vary: Foo, *", "Foo: 1", MustAsk),
    ("Foo: 1", 200, "Cache-Control: max-age=60;;Vary: ;;Vary: , *", "Foo: 1", MustAsk),
    // Authorization (section 3.5).
    ("Authorization: a", 200, "Cache-Control: max-age=60", "", MustAsk),
    ("Authorization: a", 200, "Cache-Control: max-age=60, public", "", Kept),
    ("Authorization: a", 200, "Cache-Control: max-age=60, must-revalidate", "", Kept),
    ("Authorization: a", 200, "Cache-Control: s-maxage=60", "", Kept),
    // Targeted fields (RFC 9213).
    ("", 200, "CDN-Cache-Control: max-age=3600", "", Kept),
    ("", 200, "CDN-Cache-Control: max-age=0;;Cache-Control: max-age=60", "", MustAsk),
    ("", 200, "CDN-Cache-Control: max-age=0;;Expires: @+60", "", MustAsk),
    ("", 200, "CDN-Cache-Control: max-age=3600;;Cache-Control: max-age=0", "", Kept),
    ("", 200, "CDN-Cache-Control: max-age=3600;;Cache-Control: no-store", "", Kept),
    ("", 200, "CDN-Cache-Control: max-age=3600, &&&;;Cache-Control: no-store", "", MustAsk),
    ("", 200, "CDN-Cache-Control: max-age=\"3600\";;Cache-Control: no-store", "", MustAsk),
    ("", 200, "CDN-Cache-Control: private;;Cache-Control: max-age=60", "", MustAsk),
    ("", 200, "CDN-Cache-Control: no-cache;;Cache-Control: max-age=60", "", MustAsk),
    ("", 200, "CDN-Cache-Control: no-store;;Cache-Control: max-age=60", "", MustAsk),
    ("", 200, "CDN-Cache-Control: max-age=3600;;Age: 7200", "", MustAsk),
    // Cookies, with `set_cookie = "store"`.
    ("", 200, "Cache-Control: max-age=60;;Set-Cookie: a=b", "", Kept),
    ("Cookie: a=b", 200, "Cache-Control: max-age=60", "", Kept),
];

/// Field lines of a list, with dates for their offsets.
fn lines(fields: &str, now: u64) -> String {
    let lines = fields.split(";;").filter(|field| !field.is_empty());
    let lines = lines.map(|field| match field.split_once('@') {
        Some((name, offset)) => {
            let offset: i64 = offset.parse().expect("an offset");
            format!("{name}{}\r\n", afpa_tests::dates::http_date(now.saturating_add_signed(offset)))
        }
        None => format!("{field}\r\n"),
    });
    lines.collect()
}

#[test]
fn the_cases_of_the_rfc() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("after 1970").as_secs();
    let answers: HashMap<String, (u16, String)> = CASES
        .iter()
        .enumerate()
        .map(|(number, (_, status, fields, ..))| {
            (format!("/case{number}"), (*status, lines(fields, now)))
        })
        .collect();
    let answers = Arc::new(answers);
    let origin = Origin::start(move |asked: &Asked| {
        let (status, fields) = &answers[&asked.target];
        let date = if fields.contains("Date: ") { String::new() } else { lines("Date: @+0", now) };
        let content = format!("answer {}", asked.number);
        match status {
            204 => Reply::Bytes(format!("HTTP/1.1 204 X\r\n{fields}{date}\r\n").into_bytes()),
            status => Reply::Bytes(message(*status, &format!("{fields}{date}"), &content)),
        }
    });
    let proxy = origin.proxy("mode = \"heuristic\"\nset_cookie = \"store\"");
    let mut client = proxy.connect();
    let mut wrong = Vec::new();
    for (number, (first, status, _, second, then)) in CASES.iter().enumerate() {
        let target = format!("/case{number}");
        assert_eq!(client.get_with(&target, &lines(first, now)).status, *status, "{target}");
        assert_eq!(client.get_with(&target, &lines(second, now)).status, *status, "{target}");
        let got = if origin.count(&target) == 1 { Kept } else { MustAsk };
        if got != *then {
            wrong.push(format!("{got:?} instead of {then:?}: {:?}", CASES[number]));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}
