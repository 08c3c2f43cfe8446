//! What is answered in the interrupt context, what is not, and why.

mod support;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use afpa_bpf::{Coding, FastPath, Reason, Response, Settings, SiteCount, Variant, kind};
use support::{ETAG, LISTENER, SERVER_V4, SERVER_V6, SITE, Sample, World, inside};

fn world(settings: Settings) -> Option<(World, FastPath)> {
    let mut world = World::new()?;
    world.file("kernel.html", b"from nginx");
    world.nginx("");
    world.await_server();
    let fast_path = world.fast_path(settings)?;
    Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
    Some((world, fast_path))
}

/// Send one request on its own connection: does the kernel answer, and if not, why?
fn outcome(
    world: &World,
    fast_path: &FastPath,
    request: &str,
) -> Result<support::client::Reply, Vec<Reason>> {
    fast_path.beat();
    let before = fast_path.counters().expect("counters");
    let mut client = world.connect(SERVER_V4);
    client.send(request.as_bytes());
    std::thread::sleep(Duration::from_millis(10));
    let counters = fast_path.counters().expect("counters").since(&before);
    if counters.answered() == 1 {
        return Ok(client.read(request.starts_with("HEAD")));
    }
    let silent = [Reason::PassTranslated, Reason::PassNoPayload];
    let passes = |reason: &Reason| reason.text().starts_with("passed") && !silent.contains(reason);
    Err(counters
        .iter()
        .filter(|(reason, count)| *count > 0 && passes(reason))
        .map(|(reason, _)| reason)
        .collect())
}

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
fn an_address_that_is_not_served_is_passed_and_counted_so() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let [all, other] = ["[::]:8080", "10.99.0.77:8080"].map(|a| a.parse().expect("an address"));
    fast_path.unlisten(all).expect("unlistened");
    fast_path.listen(other, LISTENER, SITE).expect("listening");
    let request = "GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n";
    let why = outcome(&world, &fast_path, request).expect_err("the server answers");
    assert_eq!(why, [Reason::PassNotListening]);
}

/// A connection remembers its listener; what is said of it later counts all the same.
#[test]
fn an_address_that_is_served_otherwise_while_a_connection_is_open() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let all = "[::]:8080".parse().expect("an address");
    let mut client = world.connect(SERVER_V4);
    assert!(client.get("/kernel.html").is_from_kernel());
    fast_path.listen(all, LISTENER, SITE + 1).expect("listening");
    assert!(!client.get("/kernel.html").is_from_kernel(), "on the other site nothing is pinned");
    fast_path.listen(all, LISTENER + 1, SITE).expect("listening");
    assert!(fast_path.map_host(LISTENER + 1, "server", SITE + 1).expect("mapped"));
    assert!(!client.get("/kernel.html").is_from_kernel(), "the host is the other site's");
    assert!(fast_path.unmap_host(LISTENER + 1, "server").expect("unmapped"));
    assert!(client.get("/kernel.html").is_from_kernel());
    fast_path.unlisten(all).expect("unlistened");
    let before = fast_path.counters().expect("counters");
    assert!(!client.get("/kernel.html").is_from_kernel());
    let passed = fast_path.counters().expect("counters").since(&before);
    assert_eq!(passed[Reason::PassNotListening], 1);
}

#[test]
fn date_is_right_to_the_second() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let mut client = world.connect(SERVER_V4);
    for _ in 0..30 {
        fast_path.beat();
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
fn silence_without_a_heartbeat() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let mut client = world.connect(SERVER_V4);
    fast_path.beat();
    assert!(client.get("/kernel.html").is_from_kernel());
    fast_path.pause();
    assert!(!client.get("/kernel.html").is_from_kernel(), "paused");
    fast_path.beat();
    assert!(client.get("/kernel.html").is_from_kernel(), "beats again");
    std::thread::sleep(Duration::from_millis(2100));
    let reply = client.get("/kernel.html");
    assert_eq!(
        (reply.is_from_kernel(), reply.body.as_slice()),
        (false, &b"from nginx"[..]),
        "two seconds later"
    );
    let before = fast_path.counters().expect("counters");
    assert!(!world.connect(SERVER_V4).get("/kernel.html").is_from_kernel());
    let counters = fast_path.counters().expect("counters").since(&before);
    assert_eq!((counters.answered(), counters[Reason::PassNoHeartbeat]), (0, 1), "a new one, too");
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
        etag: b"",
        last_modified: None,
        whole: Some(Response { head: head.as_bytes(), date_offset: 23, body: b"x" }),
        not_modified: None,
    });
    fast_path.pin(SITE, b"/coded", &variants).expect("pinned");
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
fn hosts_select_sites() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let other = SITE + 1;
    let head = format!(
        "HTTP/1.1 200 OK\r\nDate: {}\r\nServer: afpa-kernel\r\nContent-Length: 5\r\n\r\n",
        "x".repeat(29)
    );
    let whole = Some(Response { head: head.as_bytes(), date_offset: 23, body: b"other" });
    let variant = Variant {
        coding: Coding::Identity,
        etag: b"",
        last_modified: None,
        whole,
        not_modified: None,
    };
    fast_path.pin(other, b"/kernel.html", &[variant]).expect("pinned");
    assert!(fast_path.map_host(LISTENER, "Other.Example", other).expect("mapped"));
    assert!(fast_path.map_host(LISTENER, "[fd99::1]:8080", other).expect("mapped"));
    for (host, body) in [
        ("server", &b"from the kernel"[..]),
        ("server:8080", b"from the kernel"),
        ("10.99.0.1", b"from the kernel"),
        ("other.example", b"other"),
        ("OTHER.EXAMPLE", b"other"),
        // The port does not make it one of the other hosts.
        ("other.example:1", b"other"),
        ("Other.example:65535", b"other"),
        ("other.examples:1", b"from the kernel"),
        ("[fd99::1]:8080", b"other"),
    ] {
        let reply = outcome(
            &world,
            &fast_path,
            &format!("GET /kernel.html HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        );
        assert_eq!(reply.expect(host).body, body, "{host}");
    }
    let braces =
        outcome(&world, &fast_path, "GET /kernel.html HTTP/1.1\r\nHost: {fd99::1}:8080\r\n\r\n");
    assert_eq!(braces.expect_err("no host"), [Reason::PassHeader]);
    let mut client = world.connect(SERVER_V6);
    assert!(client.get("/kernel.html").is_from_kernel());
}

/// The same host may be another site on another set of listeners, and addresses of one set share theirs.
#[test]
fn listener_sets_tell_sites_of_one_host_apart() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let (other, set) = (SITE + 1, LISTENER + 1);
    Sample::new(b"the other site").pin_on(&fast_path, other, "/kernel.html");
    for address in ["[fd99::1]:8080", "10.99.0.77:8080"] {
        fast_path.listen(address.parse().expect("an address"), set, 0).expect("listening");
    }
    assert!(fast_path.map_host(LISTENER, "one.example", SITE).expect("mapped"));
    assert!(fast_path.map_host(set, "one.example", other).expect("mapped"));
    let request = "GET /kernel.html HTTP/1.1\r\nHost: one.example\r\n\r\n";
    for _ in 0..2 {
        for (address, body) in
            [(SERVER_V4, &b"from the kernel"[..]), (SERVER_V6, b"the other site")]
        {
            let mut client = world.connect(address);
            client.send(request.as_bytes());
            assert_eq!(client.read(false).body, body, "{address}");
        }
    }
    assert!(fast_path.unmap_host(set, "ONE.example").expect("unmapped"));
    assert!(!fast_path.unmap_host(set, "one.example").expect("not there"));
    let mut client = world.connect(SERVER_V6);
    client.send(request.as_bytes());
    assert!(!client.read(false).is_from_kernel(), "this set has no site for everybody");
    assert!(fast_path.map_host(LISTENER, "one.example", 0).expect("mapped"));
    let why = outcome(&world, &fast_path, request).expect_err("left to user mode by name");
    assert_eq!(why, [Reason::PassSite]);
}

/// Requests whose meaning is left to user mode, with the reason that is counted.
const PASSED: &[(&str, Reason)] = &[
    ("POST /kernel.html HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", Reason::PassMethod),
    ("get /kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassMethod),
    ("\r\nGET /kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassMethod),
    ("GET  /kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html  HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html HTTP/1.0\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html HTTP/1.1\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET http://a/kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html\tHTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassRequestLine),
    ("GET /kernel.html?x HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassNotPinned),
    ("GET //kernel.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassNotPinned),
    ("GET /KERNEL.html HTTP/1.1\r\nHost: a\r\n\r\n", Reason::PassNotPinned),
    ("GET /kernel.html HTTP/1.1\r\nX: y\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost : a\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\n Host: a\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n: empty\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX: a\tb\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX: caf\u{e9}\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nX@: b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", Reason::PassHeader),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        Reason::PassHeader,
    ),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n", Reason::PassHeader),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\n\r\nGET /kernel.html HTTP/1.1\r\nHost: a\r\n\r\n",
        Reason::PassHeader,
    ),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n\r\nx", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\n\r", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n", Reason::PassField),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-Range: \"x\"\r\n\r\n", Reason::PassField),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-Match: \"x\"\r\n\r\n", Reason::PassField),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\nAuthorization: Basic eDp5\r\n\r\n",
        Reason::PassField,
    ),
    ("GET /kernel.html HTTP/1.1\r\nHost: \r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a:99999\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a:\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: :80\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a/b\r\n\r\n", Reason::PassHeader),
    ("GET /kernel.html HTTP/1.1\r\nHost: a@b\r\n\r\n", Reason::PassHeader),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\", \"y\"\r\n\r\n",
        Reason::PassCondition,
    ),
    ("GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n", Reason::PassCondition),
    (
        "GET /kernel.html HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: Sun, 06 Nov 2022 08:49:37 GMT\r\n\r\n",
        Reason::PassCondition,
    ),
];

#[test]
fn doubtful_requests_go_to_user_mode() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    for (request, reason) in PASSED {
        let outcome = outcome(&world, &fast_path, request);
        assert_eq!(outcome.as_ref().err(), Some(&vec![*reason]), "{request:?}: {outcome:?}");
    }
}

#[test]
fn events_name_what_was_answered() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let events = fast_path.events().expect("a ring buffer");
    let mut client = world.connect(SERVER_V4);
    let whole = client.get("/kernel.html");
    client.ask("HEAD /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n");
    client.ask(&format!(
        "GET /kernel.html HTTP/1.1\r\nHost: server\r\nIf-None-Match: {ETAG}\r\n\r\n"
    ));
    let seen = events.drain().expect("events");
    assert_eq!(
        seen.iter().map(|event| event.kind).collect::<Vec<_>>(),
        [kind::WHOLE, kind::HEAD, kind::NOT_MODIFIED]
    );
    assert_eq!(seen[0].length as usize, whole.head.len() + whole.body.len());
    assert!(
        seen.iter().all(|event| (event.listener, event.site, event.weight) == (LISTENER, SITE, 1))
    );
    assert_eq!(seen[0].flow.client_port, client.stream.local_addr().expect("an address").port());
    assert!(seen[1].head == 1 && seen[0].version == seen[1].version);
    let count = fast_path.site_count(SITE).expect("counts");
    assert_eq!((count.whole, count.not_modified), (2, 1));
    assert_eq!(fast_path.site_count(SITE + 1).expect("counts"), SiteCount::default());
}

/// What an event does not say of a request stands in its header block, for as long as that is remembered.
#[test]
fn events_lead_to_header_blocks() {
    let settings = Settings { header_blocks: 1, ..Settings::default() };
    let Some((world, fast_path)) = world(settings) else { return };
    let events = fast_path.events().expect("a ring buffer");
    let mut client = world.connect(SERVER_V4);
    let blocks = ["Host: a\r\nReferer: /1\r\n\r\n", "Host: b\r\nUser-Agent: u\r\n\r\n"];
    for (block, other) in [(blocks[0], blocks[1]), (blocks[1], blocks[0])] {
        for turn in ["read line by line", "compared"] {
            client.ask(&format!("GET /kernel.html HTTP/1.1\r\n{block}"));
            let seen = events.drain().expect("events");
            let [event] = seen[..] else { panic!("{turn}: {seen:?}") };
            let found = fast_path.header_block(&event).expect(turn);
            assert_eq!(String::from_utf8_lossy(&found), block, "{turn}");
        }
        client.ask(&format!("GET /kernel.html HTTP/1.1\r\n{block}"));
        // There is room for one.
        client.ask(&format!("HEAD /kernel.html HTTP/1.1\r\n{other}"));
        let seen = events.drain().expect("events");
        assert_eq!(fast_path.header_block(&seen[0]), None, "another one has its place");
    }
}

#[test]
fn unpinned_and_replaced_objects() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let mut client = world.connect(SERVER_V4);
    assert_eq!(client.get("/kernel.html").body, b"from the kernel");
    Sample::new(b"another version").pin(&fast_path, "/kernel.html");
    assert_eq!(client.get("/kernel.html").body, b"another version");
    assert!(fast_path.unpin(SITE, b"/kernel.html").expect("unpinned"));
    assert_eq!(client.get("/kernel.html").body, b"from nginx");
    assert!(!fast_path.unpin(SITE, b"/kernel.html").expect("nothing to do"));
    assert_eq!(
        fast_path.pinned_objects(),
        (0, 2),
        "older versions stay for clients that lost their answer"
    );
}

#[test]
fn full_table_leaves_new_connections_to_user_mode() {
    let Some((world, fast_path)) = world(Settings { flows: 4, ..Settings::default() }) else {
        return;
    };
    let mut clients: Vec<_> = (0..8).map(|_| world.connect(SERVER_V4)).collect();
    for round in 0..3 {
        fast_path.beat();
        let kernel = clients
            .iter_mut()
            .filter_map(|client| client.get("/kernel.html").is_from_kernel().then_some(()))
            .count();
        assert_eq!(kernel, 4, "round {round}");
    }
    drop(clients);
    std::thread::sleep(Duration::from_millis(1500));
    let swept = inside(&world.server, || fast_path.sweep(Duration::from_secs(60))).expect("swept");
    println!("{swept:?}");
    assert_eq!((swept.flows, swept.removed), (4, 4));
    fast_path.beat();
    assert!(world.connect(SERVER_V4).get("/kernel.html").is_from_kernel(), "there is room again");
}

/// An unmodified server closes connections on which it sees nothing for a while.
#[test]
fn idle_timer_of_the_server_sees_a_request_now_and_then() {
    let settings = Settings { refresh: Duration::from_millis(300), ..Settings::default() };
    let Some((world, fast_path)) = world(settings) else { return };
    let mut client = world.connect(SERVER_V4);
    for _ in 0..3 {
        fast_path.beat();
        assert!(client.get("/kernel.html").is_from_kernel());
        std::thread::sleep(Duration::from_millis(350));
        assert_eq!(client.get("/kernel.html").body, b"from nginx");
        assert!(client.get("/kernel.html").is_from_kernel());
    }
    assert_eq!(fast_path.counters().expect("counters")[Reason::PassRefresh], 3);
}
