use std::net::IpAddr;

use afpa_http::{FieldSlots, RequestLimits, request};
use proptest::prelude::*;

use super::*;

const CLIENT: Origin = Origin {
    client: Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7))),
    first: Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7))),
    trusted: false,
    secure: false,
    subject: None,
    is_early: false,
};

fn rewrite(input: &str, policy: &RequestPolicy, origin: Origin) -> Result<String, NotForwardable> {
    let mut slots = FieldSlots::new();
    let parsed = request::parse(input.as_bytes(), &mut slots, &RequestLimits::default());
    let parsed = parsed.expect("good bytes").expect("a whole head");
    let mut room = Vec::new();
    let path = parsed.target.path().unwrap_or(b"/");
    let path = target::spell(path, &mut room).expect("a path");
    let mut head = RequestHead::default();
    head.write(&parsed, path, policy, origin)?;
    Ok(String::from_utf8(head.bytes_for("server:81").to_vec()).expect("text"))
}

fn plain() -> RequestPolicy {
    RequestPolicy { via: false, x_forwarded: Mark::Remove, ..RequestPolicy::default() }
}

#[test]
fn a_request_is_written_anew_without_what_concerns_the_connection() {
    let input = "\r\nGET http://example.org/a/../b%7e?q=%20 HTTP/1.1\r\nHost: other\r\n\
        Connection: keep-alive, X-Private\r\nKeep-Alive: 5\r\nX-Private: 1\r\nCookie: a\r\n\
        TE: trailers\r\nTrailer: x\r\nProxy-Connection: close\r\nProxy: evil\r\nUpgrade: h2c\r\n\
        Proxy-Authorization: x\r\nContent_Length: 5\r\ncookie:  b \r\n\r\n";
    let output = rewrite(input, &plain(), CLIENT).expect("passed on");
    assert_eq!(
        output,
        "GET /b~?q=%20 HTTP/1.1\r\nHost: example.org\r\nCookie: a\r\ncookie: b\r\n\r\n"
    );
}

/// RFC 8470 section 5.1: the field is never removed, and a request that is passed on before the end of a handshake has
/// it once.
#[test]
fn a_request_in_early_data_is_marked_once() {
    let theirs = "early-data: 1\r\nConnection: early-data\r\n";
    let early = Origin { is_early: true, ..CLIENT };
    for (origin, fields, expected) in [
        (CLIENT, "", ""),
        (CLIENT, theirs, "early-data: 1\r\n"),
        (early, "", "Early-Data: 1\r\n"),
        (early, theirs, "Early-Data: 1\r\n"),
        (early, "Early-Data: 1\r\nEarly-Data: x\r\n", "Early-Data: 1\r\n"),
    ] {
        let input = format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        let expected = format!("GET / HTTP/1.1\r\nHost: x\r\n{expected}\r\n");
        assert_eq!(rewrite(&input, &plain(), origin).expect("passed on"), expected, "{fields}");
    }
}

#[test]
fn framing_comes_from_what_was_parsed() {
    for (method, fields, framing) in [
        ("POST", "content-length: 0005\r\n", "Content-Length: 5\r\n"),
        ("POST", "transfer-encoding:\tCHUNKED\r\n", "Transfer-Encoding: chunked\r\n"),
        ("POST", "", "Content-Length: 0\r\n"),
        ("GET", "Content-Length: 0\r\n", "Content-Length: 0\r\n"),
        ("GET", "", ""),
        ("GET", "Connection: content-length\r\nContent-Length: 5\r\n", "Content-Length: 5\r\n"),
        (
            "PUT",
            "Expect: 100-Continue\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nExpect: 100-continue\r\n",
        ),
    ] {
        let input = format!("{method} / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        let expected = format!("{method} / HTTP/1.1\r\nHost: x\r\n{framing}\r\n");
        assert_eq!(rewrite(&input, &plain(), CLIENT).expect("passed on"), expected);
    }
}

#[test]
fn trailer_fields_are_announced_where_they_are_passed_on_and_wanted_where_the_client_takes_them() {
    const TRAILER: &str = "Trailer: X-Sum\r\n";
    const WANTED: &str = "Connection: TE\r\nTE: trailers\r\n";
    for (fields, passed, wanted) in [
        ("Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", TRAILER, ""),
        ("Content-Length: 2\r\nTrailer: X-Sum\r\n", "", ""),
        ("Connection: trailer\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", "", ""),
        ("TE: gzip;q=0.5, Trailers\r\nConnection: close, te\r\n", "", WANTED),
        ("TE: trailers\r\n", "", ""),
        ("TE: gzip\r\nConnection: TE\r\n", "", ""),
    ] {
        let input = format!("POST / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        let output = rewrite(&input, &plain(), CLIENT).expect("passed on");
        assert_eq!(output.contains(TRAILER), !passed.is_empty(), "{output}");
        assert!(output.ends_with(&format!("{wanted}\r\n")), "{output}");
        assert_eq!(output.contains("TE: trailers"), !wanted.is_empty(), "{output}");
    }
    let old = "GET / HTTP/1.0\r\nHost: x\r\nTE: trailers\r\nConnection: TE\r\n\r\n";
    assert!(!rewrite(old, &plain(), CLIENT).expect("passed on").contains("TE"));
}

#[test]
fn the_way_of_a_request_is_told_by_policy() {
    let input = "GET / HTTP/1.0\r\nHost: x\r\nX-Forwarded-For: 10.9.9.9\r\nForwarded: for=evil\r\n\
        Via: 1.1 front\r\nX-Forwarded-Proto: https\r\nX_Forwarded_For: 1.1.1.1\r\n\r\n";
    let head = "GET / HTTP/1.1\r\nHost: x\r\nVia: 1.1 front\r\nVia: 1.0 afpa\r\n";
    let own =
        "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: x\r\nX-Forwarded-Proto: http\r\n\r\n";
    let policy = RequestPolicy::default();
    assert_eq!(rewrite(input, &policy, CLIENT).expect("passed on"), format!("{head}{own}"));

    let trusted = Origin { trusted: true, ..CLIENT };
    let chain = "X-Forwarded-For: 10.9.9.9, 192.0.2.7\r\nX-Forwarded-Host: x\r\n\
        X-Forwarded-Proto: https\r\n\r\n";
    assert_eq!(rewrite(input, &policy, trusted).expect("passed on"), format!("{head}{chain}"));

    let policy = RequestPolicy { forwarded: Mark::Replace, ..plain() };
    let v6 = Origin { client: Some("2001:db8::1".parse().expect("an address")), ..CLIENT };
    let output = rewrite(input, &policy, v6).expect("passed on");
    let forwarded = "Forwarded: for=\"[2001:db8::1]\";host=\"x\";proto=http\r\n\r\n";
    assert!(output.ends_with(forwarded), "{output}");
    assert!(!output.contains("evil") && !output.contains("10.9.9.9"), "{output}");
}

/// The fields of routers in front that reach the server, by their sender and the configuration.
#[test]
fn what_a_router_in_front_would_say_is_believed_of_a_trusted_one_only() {
    const NAMES: [&str; 16] = [
        "Client-Cert",
        "CloudFront-Forwarded-Proto",
        "X-SSL-Client-Verify",
        "SCRIPT_NAME",
        "X-Forwarded-Scheme",
        "X-Forwarded-Port",
        "X-Forwarded-Prefix",
        "X-Forwarded-Ssl",
        "X-Forwarded-Server",
        "X-Original-URL",
        "X-Rewrite-URL",
        "X-Real-IP",
        "X_Real_IP",
        "X_Forwarded_Proto",
        "X.Forwarded.Proto",
        "X_Forwarded_Port",
    ];
    let fields: String = NAMES.iter().map(|name| format!("{name}: said\r\n")).collect();
    let input = format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
    let trusted = Origin { trusted: true, ..CLIENT };
    for (mark, origin, passed) in [
        (Mark::Replace, CLIENT, 0),
        (Mark::Remove, CLIENT, 0),
        (Mark::Remove, trusted, 0),
        (Mark::Replace, trusted, 11),
        (Mark::Keep, CLIENT, 11),
        (Mark::Append, CLIENT, 11),
    ] {
        let policy = RequestPolicy { x_forwarded: mark, ..RequestPolicy::default() };
        let output = rewrite(&input, &policy, origin).expect("passed on");
        assert_eq!(output.matches("said").count(), passed, "{mark:?} {output}");
        // No router uses names with other signs than `-`.
        assert!(!output.contains("_") && !output.contains("X."), "{output}");
    }
    let method = "POST / HTTP/1.1\r\nHost: x\r\nX-HTTP-Method-Override: PUT\r\n\r\n";
    assert!(rewrite(method, &plain(), CLIENT).expect("passed on").contains("Override: PUT"));
}

#[test]
fn the_scheme_is_that_of_the_connection_unless_a_trusted_router_says_otherwise() {
    let policy = RequestPolicy { forwarded: Mark::Replace, ..RequestPolicy::default() };
    let (trusted, secure) = (Origin { trusted: true, ..CLIENT }, Origin { secure: true, ..CLIENT });
    for (target, origin, scheme) in [
        ("https://x/", CLIENT, "http"),
        ("https://x/", trusted, "https"),
        ("http://x/", trusted, "http"),
        ("http://x/", secure, "https"),
        ("/", secure, "https"),
        ("/", CLIENT, "http"),
    ] {
        let input = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        let output = rewrite(&input, &policy, origin).expect("passed on");
        assert!(output.contains(&format!("X-Forwarded-Proto: {scheme}\r\n")), "{output}");
        assert!(output.contains(&format!(";proto={scheme}\r\n")), "{output}");
    }
}

#[test]
fn the_server_gets_the_host_in_lower_case() {
    let output =
        rewrite("GET / HTTP/1.1\r\nHost: A.Example:80\r\n\r\n", &RequestPolicy::default(), CLIENT);
    let output = output.expect("passed on");
    assert!(output.contains("\r\nHost: a.example:80\r\n"), "{output}");
    assert!(output.contains("X-Forwarded-Host: a.example:80\r\n"), "{output}");
}

#[test]
fn the_host_is_kept_named_or_the_servers() {
    let named = HostPolicy::Name("inner".into());
    for (host, field, expected) in [
        (HostPolicy::Keep, "Host: a:80\r\n", "a:80"),
        (HostPolicy::Keep, "", "server:81"),
        (HostPolicy::Server, "Host: a\r\n", "server:81"),
        (named, "Host: a\r\n", "inner"),
    ] {
        let policy = RequestPolicy { host, ..plain() };
        let output = rewrite(&format!("GET / HTTP/1.0\r\n{field}\r\n"), &policy, CLIENT);
        assert_eq!(
            output.expect("passed on"),
            format!("GET / HTTP/1.1\r\nHost: {expected}\r\n\r\n")
        );
    }
    // The second server of a request that is repeated is called by its own name.
    let mut slots = FieldSlots::new();
    let input = b"GET / HTTP/1.0\r\n\r\n";
    let parsed = request::parse(input, &mut slots, &RequestLimits::default()).unwrap().unwrap();
    let mut head = RequestHead::default();
    head.write(&parsed, b"/", &plain(), CLIENT).expect("passed on");
    head.bytes_for("first.example");
    assert_eq!(head.bytes_for("b"), b"GET / HTTP/1.1\r\nHost: b\r\n\r\n");
}

#[test]
fn an_upgrade_is_asked_for_only_where_it_is_allowed_and_meant() {
    let asks = |fields: &str| {
        let input = format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        let output = rewrite(&input, &plain(), CLIENT).expect("passed on");
        output.contains("Connection: upgrade\r\nUpgrade: ")
    };
    assert!(asks("Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"));
    assert!(!asks("Upgrade: websocket\r\n"));
    assert!(!asks("Connection: upgrade\r\nUpgrade: h2c\r\n"));
    assert!(!asks("Connection: upgrade\r\nUpgrade: websocket, h2c\r\n"));
    assert!(!asks("Connection: upgrade\r\n"));
    assert!(!asks("Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n"));
}

#[test]
fn what_an_upgrade_needs_to_be_asked_for_by_http2() {
    const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let upgrade = |method: &str, protocols: &str, keys: &str| {
        let input = format!(
            "{method} / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: {protocols}\r\n{keys}\r\n"
        );
        let limits = RequestLimits::default();
        let mut slots = FieldSlots::new();
        let parsed = request::parse(input.as_bytes(), &mut slots, &limits);
        let upgrades = vec!["websocket".to_owned(), "chat".to_owned()];
        let policy = RequestPolicy { upgrades, ..plain() };
        let mut head = RequestHead::default();
        head.write(&parsed.expect("good").expect("whole"), b"/", &policy, CLIENT)
            .expect("passed on");
        head.upgrade()
    };
    assert_eq!(upgrade("GET", "WebSocket", KEY), Upgrade::Tunnel);
    assert_eq!(upgrade("GET", "chat", ""), Upgrade::Tunnel);
    for keys in ["", &KEY.repeat(2), "Sec-WebSocket-Key: x\r\n", "X-Key: x\r\n"] {
        assert_eq!(upgrade("GET", "websocket", keys), Upgrade::WithoutKey, "{keys}");
    }
    assert_eq!(upgrade("GET", "websocket, chat", KEY), Upgrade::Http1);
    assert_eq!(upgrade("OPTIONS", "websocket", KEY), Upgrade::Http1);
    assert_eq!(upgrade("GET", "h2c", KEY), Upgrade::None);
}

#[test]
fn some_requests_are_for_no_server() {
    use NotForwardable as E;
    let ours = "Via: 1.1 afpa, 1.1 x, 1.1 afpa\r\n";
    for (line, fields, why) in [
        ("CONNECT a:1 HTTP/1.1", "", E::Connect),
        ("TRACE / HTTP/1.1", "", E::Trace),
        ("OPTIONS * HTTP/1.1", "", E::AboutThisServer),
        ("OPTIONS / HTTP/1.1", "Max-Forwards: 0\r\n", E::LastStop),
        ("GET / HTTP/1.1", &*ours.repeat(4), E::Ring),
        ("GET / HTTP/1.1", &*"Connection: a\r\n".repeat(5), E::Connection),
    ] {
        let input = format!("{line}\r\nHost: x\r\n{fields}\r\n");
        assert_eq!(rewrite(&input, &plain(), CLIENT), Err(why), "{line}");
    }
    let fewer =
        rewrite("OPTIONS / HTTP/1.1\r\nHost: x\r\nMax-Forwards: 3\r\n\r\n", &plain(), CLIENT);
    assert!(fewer.expect("passed on").contains("Max-Forwards: 2\r\n"));
}

proptest! {
    /// Each accepted request is written as one request, with the same framing, and stays so when written anew.
    #[test]
    fn what_is_written_is_one_well_formed_request(
        method in "GET|POST|OPTIONS|DELETE|BREW",
        path in "/([a-z%.]|%2e|%0|%c3|//|\\?|\"|\\|){0,12}",
        fields in proptest::collection::vec(
            ("(Host|Connection|Content-Length|Transfer-Encoding|X-A|Cookie|TE|Upgrade|Via|Expect)",
             "(chunked|5|0|x|close|upgrade|x-a|100-continue|1.1 afpa|\t| |,|a, b){0,2}"), 0..6),
        old in any::<bool>(),
    ) {
        let version = if old { "1.0" } else { "1.1" };
        let mut input = format!("{method} {path} HTTP/{version}\r\nHost: h\r\n");
        for (name, value) in fields {
            input += &format!("{name}: {value}\r\n");
        }
        input += "\r\n";
        let limits = RequestLimits::default();
        let (mut slots, mut room) = (FieldSlots::new(), Vec::new());
        let Ok(Some(first)) = request::parse(input.as_bytes(), &mut slots, &limits) else {
            return Ok(());
        };
        let Ok(path) = target::spell(first.target.path().unwrap_or(b"/"), &mut room) else {
            return Ok(());
        };
        let mut head = RequestHead::default();
        if head.write(&first, path, &RequestPolicy::default(), CLIENT).is_err() {
            return Ok(());
        }
        let bytes = head.bytes_for("server").to_vec();
        let mut slots = FieldSlots::new();
        let second = request::parse(&bytes, &mut slots, &limits).expect("good").expect("whole");
        prop_assert_eq!(second.head_len, bytes.len());
        prop_assert_eq!(second.body, first.body);
        prop_assert_eq!(second.method, first.method);
        prop_assert_eq!(second.expect_continue, first.expect_continue);
        prop_assert!(second.keep_alive);
        prop_assert_eq!(second.fields().filter(|(name, _)| *name == "Host").count(), 1);
        let mut again = Vec::new();
        let same = target::spell(second.target.path().unwrap_or(b""), &mut again);
        prop_assert_eq!(same.expect("normal"), path);
    }
}

#[test]
fn the_subject_of_a_client_is_told_and_nobody_else_can_tell_one() {
    let policy = RequestPolicy { client_subject: Some("X-Subject".into()), ..Default::default() };
    let input =
        "GET / HTTP/1.1\r\nHost: h\r\nx-subject: CN=a\r\nX_Subject: CN=b\r\nX-Other: c\r\n\r\n";
    let without = rewrite(input, &policy, CLIENT).unwrap();
    assert!(!without.to_ascii_lowercase().contains("subject"), "{without}");
    assert!(without.contains("X-Other: c"));
    let known = Origin { subject: Some("CN=known"), ..CLIENT };
    let with = rewrite(input, &policy, known).unwrap();
    assert_eq!(with.to_ascii_lowercase().matches("subject").count(), 1, "{with}");
    assert!(with.contains("X-Subject: CN=known\r\n"), "{with}");
    let kept = rewrite(input, &RequestPolicy::default(), known).unwrap();
    assert!(kept.contains("CN=a") && !kept.contains("known"), "{kept}");
    // Neither by the name of a field of routers in front, which pass here.
    for name in ["X-Forwarded-Subject", "X-SSL-Client-S-DN", "X-Real-IP", "Forwarded"] {
        let client_subject = Some(name.into());
        let (forwarded, x_forwarded) = (Mark::Keep, Mark::Keep);
        let policy =
            RequestPolicy { client_subject, forwarded, x_forwarded, ..RequestPolicy::default() };
        let input = format!("GET / HTTP/1.1\r\nHost: h\r\n{name}: CN=a\r\n\r\n");
        let without = rewrite(&input, &policy, CLIENT).unwrap();
        assert!(!without.contains("CN=a"), "{without}");
    }
}

#[test]
fn the_address_of_a_client_is_told_under_the_name_that_servers_want() {
    let named = |name: &str| RequestPolicy {
        client_address: Some(name.into()),
        ..RequestPolicy::default()
    };
    let input = "GET / HTTP/1.1\r\nHost: h\r\nX-Real-IP: 6.6.6.6\r\nX_Real_IP: 6.6.6.7\r\n\
        x-client: 6.6.6.8\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n";
    let trusted = Origin { trusted: true, first: Some([192, 0, 2, 9].into()), ..CLIENT };
    for (name, origin, address) in [
        ("X-Real-IP", CLIENT, "192.0.2.7"),
        ("X-Real-IP", trusted, "192.0.2.9"),
        ("X-Client", CLIENT, "192.0.2.7"),
        ("X-Client", trusted, "192.0.2.9"),
    ] {
        for x_forwarded in [Mark::Replace, Mark::Keep, Mark::Append, Mark::Remove] {
            let policy = RequestPolicy { x_forwarded, ..named(name) };
            let told = rewrite(input, &policy, origin).expect("it is passed on");
            let own = told.lines().filter(|line| {
                let own = line.split(':').next().unwrap_or_default();
                own.replace('_', "-").eq_ignore_ascii_case(name)
            });
            let expected = format!("{name}: {address}");
            assert_eq!(own.collect::<Vec<_>>(), [expected], "{x_forwarded:?}: {told}");
        }
    }
    let unknown = Origin { client: None, first: None, ..CLIENT };
    let told = rewrite(input, &named("X-Client"), unknown).expect("it is passed on");
    assert!(!told.to_ascii_lowercase().contains("x-client"), "{told}");
}

/// J2 of docs/rules: a server may read one name for another.
#[test]
fn a_claimed_field_has_nobody_elses_value_under_any_name() {
    let input = "POST /remote-user HTTP/1.1\r\nHost: x\r\nRemote-User: a\r\nREMOTE_USER: b\r\n\
        Remote.user: c\r\nRemote-Users: d\r\nTrailer: Remote-User, X-Sum\r\n\
        Transfer-Encoding: chunked\r\n\r\n";
    let mut slots = FieldSlots::new();
    let parsed = request::parse(input.as_bytes(), &mut slots, &RequestLimits::default());
    let parsed = parsed.expect("good bytes").expect("a whole head");
    let mut head = RequestHead::default();
    head.write(&parsed, b"/remote-user", &plain(), CLIENT).expect("passed on");
    head.claim(["Remote-User", "X-Other"].into_iter(), &[("Remote-User", b"ann")]);
    let text = String::from_utf8(head.bytes().to_vec()).expect("text");
    assert_eq!(
        text,
        "POST /remote-user HTTP/1.1\r\nHost: x\r\nRemote-Users: d\r\nTrailer: Remote-User, X-Sum\r\n\
         Transfer-Encoding: chunked\r\nRemote-User: ann\r\n\r\n"
    );
}

#[test]
fn no_mark_of_a_client_trails_where_requests_have_marks() {
    use afpa_http::edits::FieldRules;
    use afpa_http::marks::{IdRule, Marks, RequestId};

    let trailing = |names: &str, is_marked: bool| {
        let input = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nTrailer: {names}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let mut slots = FieldSlots::new();
        let parsed = request::parse(input.as_bytes(), &mut slots, &RequestLimits::default());
        let parsed = parsed.expect("good bytes").expect("a whole head");
        let mut head = RequestHead::default();
        head.write(&parsed, b"/", &plain(), CLIENT).expect("passed on");
        let id = IdRule { field: "X-Id".to_owned(), in_answers: true };
        let rules = std::sync::Arc::new(FieldRules { id: Some(id), ..FieldRules::default() });
        let marks = Marks { id: RequestId::given(b"own"), trace: None };
        let marks = is_marked.then_some(&marks);
        head.apply(Edits { rules: &rules, mask: 0, origin: None, marks });
        format!("{:?}", head.may_trail())
    };
    assert_eq!(trailing("x-ID, X.Id, X-Sum", true), trailing("X-Sum", false));
    assert_ne!(trailing("x-ID, X-Sum", false), trailing("X-Sum", false));
}
