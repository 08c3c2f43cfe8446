//! Requests that are answered in the interrupt context, requests that are not, and why.

mod events;
mod outcome;
mod passed;
mod sites;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use self::outcome::{outcome, world};
use crate::support::{ETAG, SERVER_V4, SITE, Sample};
use afpa_bpf::{Coding, Reason, Response, Settings, Variant};

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
    ] {
        let reply = outcome(
            &world,
            &fast_path,
            &format!("GET /coded HTTP/1.1\r\nHost: server\r\n{field}\r\n"),
        );
        assert_eq!(reply.expect(field).field("Content-Encoding"), Some(coding), "{field}");
    }
    for field in [
        "Accept-Encoding: gzip;q=0.5",
        "Accept-Encoding: *",
        "Accept-Encoding: ",
        "Accept-Encoding: br\r\nAccept-Encoding: gzip",
        "Accept-Encoding: GZIP",
    ] {
        let why = outcome(
            &world,
            &fast_path,
            &format!("GET /coded HTTP/1.1\r\nHost: server\r\n{field}\r\n\r\n"),
        );
        assert_eq!(why.expect_err(field), [Reason::PassVariant], "{field}");
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
