use super::lines::name_of;
use super::*;
use crate::marks::RequestId;
use crate::{FieldSlots, RequestLimits, request};

fn texts(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn edited(rules: &FieldRules, head: &str, status: u16, path: &str) -> String {
    let rules = &Arc::new(rules.clone());
    let edits = Edits { rules, mask: rules.mask(path.as_bytes()), origin: None, marks: None };
    let mut out = format!("before\r\n{head}").into_bytes();
    edits.apply(&mut out, b"before\r\n".len(), status, None);
    let text = String::from_utf8(out).unwrap();
    text.strip_prefix("before\r\n").unwrap().to_owned()
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nServer: afpa\r\nX-A: 1\r\nContent-Type: text/html; charset=utf-8\r\nx-a: 2\r\n\r\n";

#[test]
fn lines_are_removed_set_and_added_in_the_order_of_the_rules() {
    let first = Change {
        remove: texts(&["SERVER", "absent"]),
        set: pairs(&[("X-A", "3"), ("X-B", "4")]),
        add: pairs(&[("X-B", "5")]),
    };
    let second = Change { set: pairs(&[("x-b", "6")]), ..Change::default() };
    let rule = |answer| FieldRule { answer, ..FieldRule::default() };
    let rules = FieldRules { rules: vec![rule(first.clone())], ..FieldRules::default() };
    let begin = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX-A: 3\r\n";
    assert_eq!(edited(&rules, HEAD, 200, "/"), format!("{begin}X-B: 4\r\nX-B: 5\r\n\r\n"));
    let rules = FieldRules { rules: vec![rule(first), rule(second)], ..FieldRules::default() };
    assert_eq!(edited(&rules, HEAD, 200, "/"), format!("{begin}x-b: 6\r\n\r\n"));
}

#[test]
fn what_is_only_put_behind_a_head_is_told_without_it() {
    let change = |remove: &[&str], set: &[(&str, &str)], add: &[(&str, &str)]| Change {
        remove: texts(remove),
        set: pairs(set),
        add: pairs(add),
    };
    let rule = |answer| FieldRule { answer, ..FieldRule::default() };
    let of_errors = |answer| FieldRule { statuses: vec![(400, 599)], ..rule(answer) };
    let of_text = |answer| FieldRule { types: texts(&["text/html"]), ..rule(answer) };
    let alternative = || change(&[], &[("Alt-Svc", "h3")], &[]);
    let id = || Some(IdRule { field: "X-A".into(), in_answers: false });
    for (rules, id, is_told) in [
        (vec![], None, true),
        (vec![rule(alternative())], None, true),
        (vec![rule(change(&["X-C"], &[("X-D", "1")], &[("X-D", "2"), ("x-a", "3")]))], None, true),
        (vec![of_errors(change(&[], &[], &[("X-E", "1")])), rule(alternative())], None, true),
        (vec![rule(change(&["x-A"], &[], &[]))], None, false),
        (vec![rule(change(&[], &[("server", "none")], &[]))], None, false),
        (vec![rule(alternative()), rule(change(&["ALT-SVC"], &[], &[]))], None, false),
        (vec![of_text(change(&[], &[], &[("X-E", "1")]))], None, false),
        (vec![rule(change(&[], &[], &[("X-E", "1")]))], id(), false),
    ] {
        let rules = FieldRules { rules, id, ..FieldRules::default() };
        let shared = &Arc::new(rules.clone());
        let edits = Edits { rules: shared, mask: u64::MAX, origin: None, marks: None };
        let has = |name: &[u8]| {
            HEAD.lines().any(|line| name_of(line.as_bytes()).eq_ignore_ascii_case(name))
        };
        let added = edits.added(200, &has).map(|fields| {
            let lines = fields.map(|(name, value)| format!("{name}: {}\r\n", value.escape_ascii()));
            format!("{}{}\r\n", HEAD.strip_suffix("\r\n").unwrap(), lines.collect::<String>())
        });
        let expected = is_told.then(|| edited(&rules, HEAD, 200, "/"));
        assert_eq!(added, expected, "{rules:?}");
    }
}

#[test]
fn conditions_are_path_status_and_type() {
    let rule = |prefix: &str, statuses: &[(u16, u16)], types: &[&str]| FieldRules {
        rules: vec![FieldRule {
            prefix: prefix.into(),
            statuses: statuses.to_vec(),
            types: texts(types),
            answer: Change { add: pairs(&[("X", "y")]), ..Change::default() },
            ..FieldRule::default()
        }],
        ..FieldRules::default()
    };
    for (rules, status, path, met) in [
        (rule("", &[], &[]), 404, "/", true),
        (rule("/a/", &[], &[]), 200, "/a/b", true),
        (rule("/a/", &[], &[]), 200, "/b/a/", false),
        (rule("", &[(400, 499), (503, 503)], &[]), 404, "/", true),
        (rule("", &[(400, 499), (503, 503)], &[]), 502, "/", false),
        (rule("", &[(200, 299)], &[]), 304, "/", true),
        (rule("", &[(304, 304)], &[]), 200, "/", false),
        (rule("", &[(206, 206)], &[]), 304, "/", false),
        (rule("", &[], &["text/html"]), 200, "/", true),
        (rule("", &[], &["text/*"]), 200, "/", true),
        (rule("", &[], &["text/htm"]), 200, "/", false),
        (rule("", &[], &["image/*"]), 200, "/", false),
    ] {
        let text = edited(&rules, HEAD, status, path);
        assert_eq!(text.contains("X: y\r\n"), met, "{rules:?} {status} {path}");
    }
    let bare = "HTTP/1.1 204 No Content\r\n\r\n";
    assert_eq!(edited(&rule("", &[], &["text/html"]), bare, 204, "/"), bare);
}

#[test]
fn the_type_of_several_parts_stays() {
    let answer = Change { set: pairs(&[("Content-Type", "a/b")]), ..Change::default() };
    let rule = FieldRule { answer, ..FieldRule::default() };
    let rules = FieldRules { rules: vec![rule], ..FieldRules::default() };
    assert_eq!(edited(&rules, HEAD, 206, "/"), HEAD);
    assert!(edited(&rules, HEAD, 200, "/").ends_with("x-a: 2\r\nContent-Type: a/b\r\n\r\n"));
}

#[test]
fn nothing_is_allocated_while_there_is_room() {
    let answer = Change { remove: texts(&["Server"]), ..Change::default() };
    let rules = FieldRules {
        rules: vec![FieldRule { answer, ..FieldRule::default() }],
        ..FieldRules::default()
    };
    let rules = Arc::new(rules);
    let edits = Edits { rules: &rules, mask: 1, origin: Some(b"https://a"), marks: None };
    let mut out = Vec::with_capacity(256);
    out.extend_from_slice(HEAD.as_bytes());
    let before = out.as_ptr();
    edits.apply(&mut out, 0, 200, None);
    assert_eq!(out.as_ptr(), before);
    assert!(out.ends_with(b"Access-Control-Allow-Origin: https://a\r\n\r\n"));
}

#[test]
fn an_id_stands_alone_on_requests_and_answers() {
    let marked = |in_answers| {
        let id = IdRule { field: "X-Id".to_owned(), in_answers };
        Arc::new(FieldRules { id: Some(id), ..FieldRules::default() })
    };
    let marks = Marks { id: RequestId::given(b"own"), trace: None };
    let (rules, quiet) = (marked(true), marked(false));
    assert!(rules.differs_by_request() && rules.changes_answers() && !rules.is_empty());
    assert!(!quiet.differs_by_request() && !quiet.changes_answers() && !quiet.is_empty());
    assert!(rules.is_mark(b"x_ID") && !rules.is_mark(b"X-Ids"));
    let edits = |rules| Edits { rules, mask: 0, origin: None, marks: Some(&marks) };
    let mut request = b"GET / HTTP/1.1\r\nHost: a\r\nx-id: his\r\nX_Id: hers\r\n\r\n".to_vec();
    edits(&quiet).apply_to_request(&mut request);
    assert_eq!(request, b"GET / HTTP/1.1\r\nHost: a\r\nX-Id: own\r\n\r\n");
    let served = b"HTTP/1.1 200 OK\r\nX-ID: server\r\nA: b\r\n\r\n";
    let mut answer = served.to_vec();
    edits(&rules).apply(&mut answer, 0, 200, None);
    assert_eq!(answer, b"HTTP/1.1 200 OK\r\nA: b\r\nX-Id: own\r\n\r\n");
    let mut answer = served.to_vec();
    edits(&quiet).keep().as_edits().apply(&mut answer, 0, 200, None);
    assert_eq!(answer, b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
}

#[test]
fn origins_are_whole_or_below_a_host() {
    let origins =
        texts(&["https://app.example", "https://*.example.org", "http://*.dev.test:8080"]);
    let cors = Cors { origins, ..Cors::default() };
    for origin in [
        "https://app.example",
        "https://APP.example",
        "https://a.example.org",
        "https://a.b.example.org",
        "http://x.dev.test:8080",
    ] {
        assert!(cors.lets_in(origin.as_bytes()), "{origin}");
    }
    for origin in [
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil",
        "https://example.org",
        "https://.example.org",
        "https://evilexample.org",
        "https://evil/.example.org",
        "https://evil:1.example.org",
        "http://a.example.org",
        "http://x.dev.test",
        "null",
        "",
    ] {
        assert!(!cors.lets_in(origin.as_bytes()), "{origin}");
    }
}

#[test]
fn a_preflight_is_an_options_request_that_asks_for_a_method() {
    let cors = Cors {
        origins: texts(&["https://a"]),
        methods: "GET, PUT".to_owned(),
        max_age: "60".to_owned(),
        ..Cors::default()
    };
    let fields = |head: &str| {
        let mut slots = FieldSlots::default();
        let parsed = request::parse(head.as_bytes(), &mut slots, &RequestLimits::default());
        let parsed = parsed.unwrap().unwrap();
        let fields = cors.preflight(&parsed)?;
        Some(
            fields
                .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
                .collect::<Vec<_>>(),
        )
    };
    let asked = "Access-Control-Request-Method: PUT\r\n";
    let head = |method: &str, lines: &str| format!("{method} / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    assert_eq!(fields(&head("GET", &format!("Origin: https://a\r\n{asked}"))), None);
    assert_eq!(fields(&head("OPTIONS", "Origin: https://a\r\n")), None);
    assert_eq!(fields(&head("OPTIONS", asked)), None);
    assert_eq!(fields(&head("OPTIONS", &format!("Origin: https://b\r\n{asked}"))), Some(vec![]));
    let lines = format!("Origin: https://a\r\n{asked}Access-Control-Request-Headers: x-a\r\n");
    let expected = [
        "Access-Control-Allow-Methods: GET, PUT",
        "Access-Control-Allow-Headers: x-a",
        "Access-Control-Max-Age: 60",
    ];
    assert_eq!(fields(&head("OPTIONS", &lines)), Some(texts(&expected)));
}
