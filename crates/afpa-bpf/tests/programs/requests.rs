//! Requests that are answered in the interrupt context, requests that are not, and why.

mod events;
mod outcome;
mod passed;
mod sites;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use self::outcome::{outcome, world};
use crate::support::{ETAG, SERVER_V4, SITE, Sample};
use afpa_bpf::{Coding, PinRules, Reason, Response, Settings, Variant, WEIGHTS_AS_OURS};

#[test]
fn get_head_and_conditions() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let ask = |request: &str| {
        outcome(&world, &fast_path, request).unwrap_or_else(|why| panic!("{request:?}: {why:?}"))
    };

    let reply = ask("GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n");
    assert_eq!((reply.status, reply.body.as_slice()), (200, &b"from the kernel"[..]));
    let head = ask("HEAD /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n");
    assert_eq!((head.status, head.field("Content-Length"), head.body.len()), (200, Some("15"), 0));
    for tag in [ETAG.to_owned(), format!("W/{ETAG}")] {
        let reply = ask(&format!(
            "GET /kernel.html HTTP/1.1\r\nHost: server\r\nIf-None-Match: {tag}\r\n\r\n"
        ));
        assert_eq!((reply.status, reply.field("ETag")), (304, Some(ETAG)));
    }
    let reply =
        ask("GET /kernel.html HTTP/1.1\r\nHost: server\r\nIf-None-Match: \"other\"\r\n\r\n");
    assert_eq!(reply.status, 200);
    let same = "GET /kernel.html HTTP/1.1\r\nHost: server\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
    assert_eq!(ask(same).status, 304);
    let both = "GET /kernel.html HTTP/1.1\r\nHost: server\r\nIf-None-Match: \"x\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";
    assert_eq!(ask(both).status, 200, "If-None-Match wins, RFC 9110 13.2.2");
}

/// As before h2o: the tag that it gave is the kernel's, the same with `W/` its own.
#[test]
fn weak_tags_are_left_to_a_server_that_compares_strongly() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let whole = format!("HTTP/1.1 200 OK\r\nDate: {}\r\nContent-Length: 1\r\n\r\n", "x".repeat(29));
    let not_modified = format!("HTTP/1.1 304 Not Modified\r\nDate: {}\r\n\r\n", "x".repeat(29));
    let variant = Variant {
        coding: Coding::Identity,
        closing: false,
        etag: b"\"v1\"",
        last_modified: None,
        freshness: None,
        whole: Some(Response { head: whole.as_bytes(), date_offset: 23, body: b"x" }),
        not_modified: Some(Response { head: not_modified.as_bytes(), date_offset: 33, body: b"" }),
    };
    for tag_weakly in [false, true] {
        let rules = PinRules { tag_weakly, ..PinRules::default() };
        fast_path.objects.pin_with(SITE, b"/strong", &[variant], &rules).expect("pinned");
        for (tag, weak, status) in [
            ("\"v1\"", false, 304),
            ("W/\"v1\"", true, 304),
            ("\"v2\"", false, 200),
            ("W/\"v2\"", true, 200),
            ("\"/v1\"", false, 200),
        ] {
            let request =
                format!("GET /strong HTTP/1.1\r\nHost: server\r\nIf-None-Match:{tag}\r\n\r\n");
            let found = outcome(&world, &fast_path, &request).map(|reply| reply.status);
            let expected =
                if weak && !tag_weakly { Err(vec![Reason::PassCondition]) } else { Ok(status) };
            assert_eq!(found.map_err(|why| why.to_vec()), expected, "{tag_weakly} {tag}");
        }
    }
}

#[test]
fn date_is_right_to_the_second() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let mut client = world.connect(SERVER_V4);
    for _ in 0..30 {
        fast_path.clock.beat();
        let before = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let reply = client.get("/kernel.html");
        let after = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let date = httpdate::parse_http_date(reply.field("Date").expect("a Date"))
            .expect("an IMF-fixdate");
        let date = date.duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        // The coarse clock may be one timer tick behind.
        assert!(
            date == before || date == after || date + 1 == before,
            "{before} <= {date} <= {after}"
        );
        std::thread::sleep(Duration::from_millis(70));
    }
}

#[test]
fn codings_follow_accept_encoding() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let head = |coding: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nDate: {}\r\nServer: afpa-kernel\r\nContent-Encoding: {coding}\r\nContent-Length: 1\r\n\r\n",
            "x".repeat(29)
        )
    };
    let heads = [
        (Coding::Identity, head("identity")),
        (Coding::Gzip, head("gzip")),
        (Coding::Brotli, head("br")),
    ];
    let variants = heads.each_ref().map(|(coding, head)| Variant {
        coding: *coding,
        closing: false,
        etag: b"",
        last_modified: None,
        freshness: None,
        whole: Some(Response { head: head.as_bytes(), date_offset: 23, body: b"x" }),
        not_modified: None,
    });
    fast_path.objects.pin(SITE, b"/coded", &variants).expect("pinned");
    for (field, coding) in [
        ("", "identity"),
        ("Accept-Encoding: gzip\r\n", "gzip"),
        ("accept-encoding: gzip, deflate, br, zstd\r\n", "br"),
        ("Accept-Encoding: br,gzip\r\n", "br"),
        ("Accept-Encoding: zstd\r\n", "identity"),
        ("Accept-Encoding: deflate\r\n", "identity"),
        ("Accept-Encoding: identity\r\n", "identity"),
        ("Accept-Encoding: gzip;q=0.5\r\n", "gzip"),
        ("Accept-Encoding: GZIP\r\n", "gzip"),
        ("Accept-Encoding: *\r\n", "br"),
        ("Accept-Encoding: *, br;q=0.9, zstd\r\n", "gzip"),
        ("Accept-Encoding: compress, xz, br;q=0.1\r\n", "br"),
        ("Accept-Encoding: \r\n", "identity"),
    ] {
        let reply = outcome(
            &world,
            &fast_path,
            &format!("GET /coded HTTP/1.1\r\nHost: server\r\n{field}\r\n"),
        );
        assert_eq!(reply.expect(field).field("Content-Encoding"), Some(coding), "{field}");
    }
    let field = "Accept-Encoding: br\r\nAccept-Encoding: gzip";
    let request = format!("GET /coded HTTP/1.1\r\nHost: server\r\n{field}\r\n\r\n");
    let why = outcome(&world, &fast_path, &request);
    assert_eq!(why.expect_err(field), [Reason::PassVariant]);
    // A server that may weigh in another way: the rule is not given.
    let fields = PinRules::default().fields & !WEIGHTS_AS_OURS;
    let rules = PinRules { fields, ..PinRules::default() };
    fast_path.objects.pin_with(SITE, b"/coded", &variants, &rules).expect("pinned");
    for field in [
        "Accept-Encoding: gzip;q=0.5",
        "Accept-Encoding: *",
        "Accept-Encoding: ",
        "Accept-Encoding: GZIP",
        "Accept-Encoding: compress, br",
    ] {
        let request = format!("GET /coded HTTP/1.1\r\nHost: server\r\n{field}\r\n\r\n");
        let why = outcome(&world, &fast_path, &request);
        assert_eq!(why.expect_err(field), [Reason::PassVariant], "{field}");
    }
}

/// The end of an odd request that goes up is certain, so the kernel answers the next one (H6), on a new connection, too.
#[test]
fn odd_requests_leave_the_connection_to_the_kernel() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let plain = "Host: a\r\n";
    let head = |line: &str, fields: &str| format!("{line}\r\n{plain}{fields}\r\n");
    let get = "GET /kernel.html?user HTTP/1.1";
    let odd = [
        head(get, "Connection: TE\r\n"),
        head(get, "Connection:\r\n"),
        head(get, "Connection: keep-alive, TE\r\nTE: trailers\r\n"),
        head(get, "Content-Length: 0\r\n"),
        head(
            get,
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        ),
        head("GET /kernel.html HTTP/1.0", "Connection: Keep-Alive\r\n"),
        head("GET http://a/kernel.html HTTP/1.1", ""),
        head("\r\nGET /kernel.html HTTP/1.1", ""),
    ];
    for request in odd {
        for earlier in [false, true] {
            fast_path.clock.beat();
            let mut client = world.connect(SERVER_V4);
            if earlier {
                assert!(client.get("/kernel.html").is_from_kernel(), "{request}");
            }
            client.send(&request);
            let reply = client.receive();
            assert_eq!(reply.body, b"from nginx", "{request}");
            assert!(client.get("/kernel.html").is_from_kernel(), "{request:?}, {earlier}");
        }
    }
    for fields in ["Connection: x\r\n", "Transfer-Encoding: chunked\r\n\r\n0\r\n"] {
        let mut client = world.connect(SERVER_V4);
        client.send(head(get, fields));
        assert_eq!(client.receive().body, b"from nginx", "{fields}");
        assert!(!client.get("/kernel.html").is_from_kernel(), "{fields}");
    }
}

#[test]
fn unpinned_and_replaced_objects() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let mut client = world.connect(SERVER_V4);
    assert_eq!(client.get("/kernel.html").body, b"from the kernel");
    Sample::new(b"another version").pin(&fast_path, "/kernel.html");
    assert_eq!(client.get("/kernel.html").body, b"another version");
    assert!(fast_path.objects.unpin(SITE, b"/kernel.html").expect("unpinned"));
    assert_eq!(client.get("/kernel.html").body, b"from nginx");
    assert!(!fast_path.objects.unpin(SITE, b"/kernel.html").expect("nothing to do"));
    assert_eq!(
        fast_path.objects.pinned_objects(),
        (0, 2),
        "older versions stay for clients that lost their answer"
    );
}
