use proptest::prelude::*;

use super::*;
use crate::policy::QueryRule;
use afpa_http::{FieldSlots, RequestLimits, request, target};

fn key_of(policy: &CachePolicy, trusted: bool, head: &str) -> Vec<u8> {
    let head = format!("GET {head}\r\n\r\n");
    let mut slots = FieldSlots::new();
    let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
    let request = request.expect("valid").expect("whole");
    let mut room = Vec::new();
    let path = target::spell(request.target.path().expect("path"), &mut room);
    let path = path.expect("normal");
    let origin = Origin { trusted, ..Origin::default() };
    let place = Place { scope: 1, url: path, path, origin, sent: None };
    let mut key = Vec::new();
    put_primary(policy, &exchange::Settings::default(), &request, place, &mut key);
    key
}

#[track_caller]
fn compare(policy: &CachePolicy, trusted: bool, one: &str, other: &str, same: bool) {
    let keys = [one, other].map(|head| key_of(policy, trusted, head));
    assert_eq!(keys[0] == keys[1], same, "{one:?} {other:?}");
}

#[test]
fn what_decides_about_the_answer_is_in_the_key() {
    let plain = CachePolicy::default();
    for (one, other, same) in [
        ("/a HTTP/1.1\r\nHost: x", "/a HTTP/1.1\r\nHost: X", true),
        ("/a HTTP/1.1\r\nHost: x", "http://x/a HTTP/1.1\r\nHost: y", true),
        ("http://x/a HTTP/1.1\r\nHost: x", "https://x/a HTTP/1.1\r\nHost: x", true),
        ("/a%3Bb HTTP/1.1\r\nHost: x", "/a;b HTTP/1.1\r\nHost: x", false),
        ("/a%3bb HTTP/1.1\r\nHost: x", "/a%3Bb HTTP/1.1\r\nHost: x", true),
        ("/a HTTP/1.1\r\nHost: x", "/a HTTP/1.1\r\nHost: x:81", false),
        ("/a HTTP/1.1\r\nHost: x", "/a? HTTP/1.1\r\nHost: x", false),
        ("/a?b HTTP/1.1\r\nHost: x", "/a%3Fb HTTP/1.1\r\nHost: x", false),
        ("/a?b=1&c=2 HTTP/1.1\r\nHost: x", "/a?c=2&b=1 HTTP/1.1\r\nHost: x", false),
        ("/a/../b HTTP/1.1\r\nHost: x", "/b HTTP/1.1\r\nHost: x", true),
        ("/%61 HTTP/1.1\r\nHost: x", "/a HTTP/1.1\r\nHost: x", true),
        ("/a HTTP/1.1\r\nHost: x\r\nX-Forwarded-Host: e", "/a HTTP/1.1\r\nHost: x", true),
    ] {
        compare(&plain, false, one, other, same);
    }
    let bare = "/a HTTP/1.1\r\nHost: x";
    for name in ["X-Forwarded-Host", "X-Forwarded-Port", "X-Rewrite-URL", "X-Scheme"] {
        let marked = format!("{bare}\r\n{name}: e");
        compare(&plain, true, &marked, bare, false);
        assert_ne!(key_of(&plain, true, &marked), key_of(&plain, false, &marked), "{name}");
        compare(&plain, false, &marked, bare, true);
    }
    compare(&plain, true, &format!("{bare}\r\nX-Real-IP: 1"), bare, true);
    let (one, other) = ("http://x/a HTTP/1.1\r\nHost: x", "https://x/a HTTP/1.1\r\nHost: x");
    compare(&plain, true, one, other, false);
}

#[test]
fn queries_and_cookies_follow_the_rules() {
    let without = QueryRule::Without(vec!["utm_*".into()]);
    let sorted = CachePolicy { query: without, sort_query: true, ..CachePolicy::default() };
    for (one, other, same) in [
        ("/?b=1&utm_x=2&a=3", "/?a=3&b=1", true),
        ("/?a=1&a=2", "/?a=2&a=1", false),
        ("/?a=1", "/?a=2", false),
    ] {
        let head = |path: &str| format!("{path} HTTP/1.1\r\nHost: x");
        compare(&sorted, false, &head(one), &head(other), same);
    }
    let cookies = CachePolicy { cookies: vec!["lang".into()], ..CachePolicy::default() };
    for (one, other, same) in [
        ("lang=de; id=1", "id=2; lang=de", true),
        ("lang=de", "lang=en", false),
        ("id=1", "id=2", true),
        ("lang=", "id=1", false),
        ("lang=x; lang=y", "lang=x=y", false),
    ] {
        let head = |cookie: &str| format!("/ HTTP/1.1\r\nHost: x\r\nCookie: {cookie}");
        compare(&cookies, false, &head(one), &head(other), same);
    }
}

#[test]
fn a_key_is_taken_apart_where_nothing_else_decides() {
    let plain = CachePolicy::default();
    let taken = |policy: &CachePolicy, believed: bool, head: &str| {
        let key = key_of(policy, believed, head);
        let taken = parts(&key)?;
        assert_eq!((taken.scope, &taken.url), (1, &taken.path));
        let query = taken.query.map(|query| String::from_utf8_lossy(query).into_owned());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some((text(&taken.host), text(&taken.path), query))
    };
    for (target, path, query) in
        [("/a", "/a", None), ("/a?", "/a", Some("")), ("/a%3Fb?c&d=/", "/a%3Fb", Some("c&d=/"))]
    {
        let found = taken(&plain, true, &format!("{target} HTTP/1.1\r\nHost: A.example:81"));
        let expected = ("a.example:81".into(), path.into(), query.map(str::to_owned));
        assert_eq!(found, Some(expected), "{target}");
    }
    let head = "/a HTTP/1.1\r\nHost: x\r\n";
    let marked = format!("{head}X-Forwarded-Host: e");
    assert!(taken(&plain, true, &marked).is_none() && taken(&plain, false, &marked).is_some());
    assert!(taken(&plain, true, "https://x/a HTTP/1.1\r\nHost: x").is_none());
    let cookies = CachePolicy { cookies: vec!["a".into(), "b".into()], ..plain };
    assert!(taken(&cookies, false, &format!("{head}Cookie: c=1")).is_some());
    assert!(taken(&cookies, false, &format!("{head}Cookie: b=1")).is_none());
    assert!(parts(b"").is_none() && parts(b"ua/\n\x04\0\0\0\x01\0").is_none());
}

#[test]
fn a_key_begins_with_the_label_of_its_url() {
    let plain = CachePolicy::default();
    for (target, label, url) in [
        ("/a%20b?c=/?d", &b"ux.example/a%20b?c=/?d\n"[..], "http://x.example:81/a%20b?c=/?d"),
        ("/%61?", b"ux.example/a?\n", "http://x.example:81/a?"),
    ] {
        let head = format!("{target} HTTP/1.1\r\nHost: X.example:81\r\nX-Forwarded-Host: e");
        let key = key_of(&plain, true, &head);
        assert_eq!(label_of(&key), label, "{target}");
        assert_eq!(super::url(&key).as_deref(), Some(url));
    }
}

#[test]
fn a_path_that_the_server_gets_is_in_the_key_where_it_is_another_one() {
    let head = b"GET /app/a HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut slots = FieldSlots::new();
    let request = request::parse(head, &mut slots, &RequestLimits::default());
    let request = request.expect("valid").expect("whole");
    let key_at = |path| {
        let place = Place { scope: 1, url: b"/app/a", path, origin: Origin::default(), sent: None };
        let (policy, exchange) = (CachePolicy::default(), exchange::Settings::default());
        let mut key = Vec::new();
        put_primary(&policy, &exchange, &request, place, &mut key);
        key
    };
    let (same, other) = (key_at(b"/app/a"), key_at(b"/a"));
    assert_eq!((label_of(&same), label_of(&other)), (&b"ux/app/a\n"[..], &b"ux/app/a\n"[..]));
    let paths = |key| parts(key).map(|parts| (parts.url, parts.path));
    assert_eq!(paths(&same), Some((b"/app/a".to_vec(), b"/app/a".to_vec())));
    assert_eq!(paths(&other), Some((b"/app/a".to_vec(), b"/a".to_vec())));
}

proptest! {
    /// All parts can be read from the key, so no two requests that differ in one have the same.
    #[test]
    fn a_key_tells_each_of_its_parts(
        host in "[A-Za-z0-9.-]{1,12}",
        port in "(:[0-9]{1,5})?",
        url in proptest::collection::vec("[ -~é?%]{1,6}", 0..3),
        path in proptest::option::of("/[a-z%;=]{0,9}"),
        query in proptest::option::of("[!-\"$-~]{0,9}"),
        marks in proptest::collection::vec(("X-Forwarded-(Host|Proto|Port)", "[!-~]{0,6}"), 0..3),
        cookies in proptest::collection::vec(("[ab]", "[!-+--:<-~]{0,6}"), 0..4),
        scope in any::<u32>(),
    ) {
        let url = format!("/{}", url.join("/"));
        let mut room = Vec::new();
        target::encode(url.as_bytes(), &mut room);
        let encoded = String::from_utf8(room).expect("ASCII");
        let question = query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        let marked: String =
            marks.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let baked = cookies.iter().map(|(name, value)| format!("Cookie: {name}={value}\r\n"));
        let baked: String = baked.collect();
        let head = format!("GET /x{question} HTTP/1.1\r\nHost: {host}{port}\r\n{marked}{baked}\r\n");
        let mut slots = FieldSlots::new();
        let request = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        prop_assume!(request.is_ok());
        let request = request.expect("valid").expect("whole");
        let policy = CachePolicy {
            cookies: vec!["a".into(), "b".into()],
            ..CachePolicy::default()
        };
        let at_server = path.as_deref().unwrap_or(&encoded).as_bytes();
        let origin = Origin { trusted: true, ..Origin::default() };
        let place = Place { scope, url: encoded.as_bytes(), path: at_server, origin, sent: None };
        let mut key = Vec::new();
        put_primary(&policy, &exchange::Settings::default(), &request, place, &mut key);
        let told = |name: &str| {
            let mut told = vec![b'\n'];
            for (_, value) in cookies.iter().filter(|(own, _)| own == name) {
                told.push(b';');
                told.extend_from_slice(value.as_bytes());
            }
            told
        };
        // The dot of the root is no part of the name, but servers see it.
        let name = match host.strip_suffix('.') {
            Some(rest) if !rest.is_empty() && !rest.ends_with('.') => rest,
            _ => &host,
        };
        let dot = host.get(name.len()..).unwrap_or_default();
        let mut believed = format!("{dot}{port}").into_bytes();
        for (name, value) in &marks {
            let name = name.to_ascii_lowercase();
            believed.extend_from_slice(format!("\n{name}:{value}").as_bytes());
        }
        let (name, cookies) = (name.to_ascii_lowercase(), [told("a"), told("b")].concat());
        let expected = Split {
            name: name.as_bytes(),
            path: encoded.as_bytes(),
            query: question.as_bytes(),
            scheme: 4,
            port: &believed,
            cookies: &cookies,
            path_at_server: if at_server == encoded.as_bytes() { b"" } else { at_server },
            scope,
        };
        prop_assert_eq!(split(&key), Some(expected));
    }
}

#[test]
fn labels_of_what_lies_below_begin_alike() {
    let label = url_label(b"A.example", b"/x%20y/%0A", Some(b"q"));
    assert_eq!(label, b"ua.example/x%20y/%0A?q\n");
    assert!(label.starts_with(b"ua.example/x%20y/"));
    assert_eq!(host_of(&label), b"a.example");
    assert_eq!(group_label(b"A", b"b c"), b"ga/b c\n");
}
