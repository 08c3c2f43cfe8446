//! Which site a request is answered for: by the address it came to, and by its host.

use afpa_bpf::{Coding, Reason, Response, Settings, Variant};

use super::outcome::{outcome, world};
use crate::support::{LISTENER, SERVER_V4, SERVER_V6, SITE, Sample};

#[test]
fn an_address_that_is_not_served_is_passed_and_counted_so() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let [all, other] = ["[::]:8080", "10.77.0.77:8080"].map(|a| a.parse().expect("an address"));
    fast_path.listeners.unlisten(all).expect("unlistened");
    fast_path.listeners.listen(other, LISTENER, SITE).expect("listening");
    let request = "GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n";
    let why = outcome(&world, &fast_path, request).expect_err("the server answers");
    assert_eq!(why, [Reason::PassNotListening]);
}

/// A connection remembers its listener; a later change of the listener counts all the same.
#[test]
fn an_address_that_is_served_otherwise_while_a_connection_is_open() {
    let Some((world, fast_path)) = world(Settings::default()) else { return };
    let all = "[::]:8080".parse().expect("an address");
    let mut client = world.connect(SERVER_V4);
    assert!(client.get("/kernel.html").is_from_kernel());
    fast_path.listeners.listen(all, LISTENER, SITE + 1).expect("listening");
    assert!(!client.get("/kernel.html").is_from_kernel(), "on the other site nothing is pinned");
    fast_path.listeners.listen(all, LISTENER + 1, SITE).expect("listening");
    assert!(fast_path.listeners.map_host(LISTENER + 1, "test", SITE + 1).expect("mapped"));
    assert!(!client.get("/kernel.html").is_from_kernel(), "the host is the other site's");
    assert!(fast_path.listeners.unmap_host(LISTENER + 1, "test").expect("unmapped"));
    assert!(client.get("/kernel.html").is_from_kernel());
    fast_path.listeners.unlisten(all).expect("unlistened");
    let before = fast_path.stats.counters().expect("counters");
    assert!(!client.get("/kernel.html").is_from_kernel());
    let passed = fast_path.stats.counters().expect("counters").since(&before);
    assert_eq!(passed[Reason::PassNotListening], 1);
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
        closing: false,
        etag: b"",
        last_modified: None,
        freshness: None,
        whole,
        not_modified: None,
    };
    fast_path.objects.pin(other, b"/kernel.html", &[variant]).expect("pinned");
    assert!(fast_path.listeners.map_host(LISTENER, "Other.Example", other).expect("mapped"));
    assert!(fast_path.listeners.map_host(LISTENER, "[fd77::a4d:1]:8080", other).expect("mapped"));
    for (host, body) in [
        ("server", &b"from the kernel"[..]),
        ("server:8080", b"from the kernel"),
        ("10.77.0.1", b"from the kernel"),
        ("other.example", b"other"),
        ("OTHER.EXAMPLE", b"other"),
        // The port does not make it one of the other hosts.
        ("other.example:1", b"other"),
        ("Other.example:65535", b"other"),
        ("other.examples:1", b"from the kernel"),
        ("[fd77::a4d:1]:8080", b"other"),
    ] {
        let reply = outcome(
            &world,
            &fast_path,
            &format!("GET /kernel.html HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        );
        assert_eq!(reply.expect(host).body, body, "{host}");
    }
    let braces = outcome(
        &world,
        &fast_path,
        "GET /kernel.html HTTP/1.1\r\nHost: {fd77::a4d:1}:8080\r\n\r\n",
    );
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
    for address in ["[fd77::a4d:1]:8080", "10.77.0.77:8080"] {
        fast_path
            .listeners
            .listen(address.parse().expect("an address"), set, 0)
            .expect("listening");
    }
    assert!(fast_path.listeners.map_host(LISTENER, "one.example", SITE).expect("mapped"));
    assert!(fast_path.listeners.map_host(set, "one.example", other).expect("mapped"));
    let request = "GET /kernel.html HTTP/1.1\r\nHost: one.example\r\n\r\n";
    for _ in 0..2 {
        for (address, body) in
            [(SERVER_V4, &b"from the kernel"[..]), (SERVER_V6, b"the other site")]
        {
            let mut client = world.connect(address);
            client.send(request.as_bytes());
            assert_eq!(client.receive().body, body, "{address}");
        }
    }
    assert!(fast_path.listeners.unmap_host(set, "ONE.example").expect("unmapped"));
    assert!(!fast_path.listeners.unmap_host(set, "one.example").expect("not there"));
    let mut client = world.connect(SERVER_V6);
    client.send(request.as_bytes());
    assert!(!client.receive().is_from_kernel(), "this set has no site for everybody");
    assert!(fast_path.listeners.map_host(LISTENER, "one.example", 0).expect("mapped"));
    let why = outcome(&world, &fast_path, request).expect_err("left to user mode by name");
    assert_eq!(why, [Reason::PassSite]);
}
