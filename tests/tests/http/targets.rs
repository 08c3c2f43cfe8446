//! From a request target to a file: forms, names, folders, redirects, media types.

use afpa_testkit::{Server, Tree};

/// A root with names of all kinds, and a server for it.
fn site() -> (Tree, Server) {
    let tree = Tree::new();
    tree.file("index.html", "<h1>home</h1>");
    tree.file("hello.txt", "hello");
    tree.file("empty.bin", "");
    tree.file("deep/er/index.html", "deeper");
    tree.file("with space.txt", "space");
    tree.file("grüße/日本.txt", "utf-8");
    tree.file("100%.txt", "per cent");
    tree.file("plus+and&semi;.txt", "marks");
    let server = Server::start(tree.path(), |_| ());
    (tree, server)
}

#[test]
fn a_folder_shows_its_index() {
    let (_tree, server) = site();
    let response = server.get("/");
    assert_eq!((response.status, response.text()), (200, "<h1>home</h1>"));
    assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(server.get("/deep/er/").text(), "deeper");
    assert_eq!(server.get("/?query=1").text(), "<h1>home</h1>");
}

#[test]
fn a_folder_without_its_slash_redirects_and_keeps_the_query() {
    let (tree, server) = site();
    tree.file("sp ace/index.html", "in");
    for (target, location) in [
        ("/deep/er", "/deep/er/"),
        ("/deep/er?a=b&c=%20d", "/deep/er/?a=b&c=%20d"),
        ("/deep/er?", "/deep/er/?"),
        ("/sp%20ace", "/sp%20ace/"),
        ("/deep/./x/../er", "/deep/er/"),
    ] {
        let response = server.get(target);
        assert_eq!(response.status, 301, "{target}: {response:?}");
        let given = response.field("location").expect("a location");
        assert_eq!(given.trim_start_matches("http://test"), location, "{target}");
    }
}

#[test]
fn a_redirect_never_leads_to_another_host() {
    let (tree, server) = site();
    tree.file("evil.example/index.html", "in");
    for target in ["//evil.example", "///evil.example", "/.//evil.example", "/x/..//evil.example"] {
        let response = server.get(target);
        let location = response.field("location").unwrap_or_default();
        assert!(!location.starts_with("//") && !location.contains("\\"), "{target}: {location}");
    }
}

#[test]
fn the_well_known_folder_is_no_secret() {
    let (tree, server) = site();
    tree.file(".well-known/acme-challenge/token", "RFC 8615");
    assert_eq!(server.get("/.well-known/acme-challenge/token").text(), "RFC 8615");
}

#[test]
fn a_listing_shows_names_as_text_when_it_is_asked_for() {
    let tree = Tree::new();
    tree.file("d/<script>alert(1)</script>", "");
    tree.file("d/a b&c.txt", "found");
    tree.file("d/.hidden", "");
    tree.dir("d/folder");
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--listing");
    });
    let page = server.get("/d/");
    assert_eq!(page.status, 200);
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    let html = page.text();
    assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"), "{html}");
    assert!(html.contains("folder/") && !html.contains(".hidden"), "{html}");
    let target = html.split("href=\"").filter_map(|rest| rest.split('"').next());
    let found = target.filter(|target| target.contains("c.txt")).collect::<Vec<_>>();
    let [link] = found.as_slice() else { panic!("one link: {html}") };
    let link = link.trim_start_matches("./").trim_start_matches("/d/");
    assert_eq!(server.get(&format!("/d/{}", link.replace("&amp;", "&"))).text(), "found");
    tree.file("d/new.txt", "");
    afpa_testkit::eventually("the new file is listed", || {
        server.get("/d/").text().contains("new.txt")
    });
}

#[test]
fn the_absolute_form_names_its_own_host() {
    let (_tree, server) = site();
    for host in ["h", "other"] {
        let request = format!("GET http://h/hello.txt HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(server.connect().exchange(request).text(), "hello");
    }
    let request = "GET http://h HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(server.connect().exchange(request).text(), "<h1>home</h1>");
}

#[test]
fn a_host_that_is_not_served_here_is_421() {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("site.hosts", "[\"known.example\"]");
        });
    });
    for (target, host, status) in [
        ("/hello.txt", "known.example", 200),
        ("/hello.txt", "KNOWN.example:8080", 200),
        ("/hello.txt", "unknown.example", 421),
        ("/hello.txt", "known.example.evil.example", 421),
        ("http://known.example/hello.txt", "unknown.example", 200),
        ("http://unknown.example/hello.txt", "known.example", 421),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let response = server.connect().exchange(request);
        assert_eq!(response.status, status, "{target} {host}: {response:?}");
    }
}

#[test]
fn names_are_decoded_once() {
    let (tree, server) = site();
    tree.file("a%20b.txt", "encoded twice");
    for (target, body) in [
        ("/hello%2Etxt", "hello"),
        ("/%68%65%6c%6C%6f.txt", "hello"),
        ("/with%20space.txt", "space"),
        ("/gr%C3%BC%C3%9Fe/%E6%97%A5%E6%9C%AC.txt", "utf-8"),
        ("/100%25.txt", "per cent"),
        ("/plus+and&semi;.txt", "marks"),
        ("/a%2520b.txt", "encoded twice"),
        ("//hello.txt", "hello"),
        ("/./deep/../hello.txt", "hello"),
        ("/deep//er///index.html", "deeper"),
        ("/hello.txt?x=%zz", "hello"),
    ] {
        let response = server.get(target);
        assert_eq!((response.status, response.text()), (200, body), "{target}");
    }
    assert_eq!(server.get("/a%20b.txt").status, 404);
}

#[test]
fn an_empty_file_is_a_response_of_length_zero() {
    let (_tree, server) = site();
    let mut client = server.connect();
    let response = client.get("/empty.bin");
    assert_eq!((response.status, response.field("content-length")), (200, Some("0")));
    client.assert_open("/hello.txt");
}

#[test]
fn media_types_carry_their_charset() {
    let tree = Tree::new();
    let types = [
        ("a.html", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.txt", "text/plain; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.png", "image/png"),
        ("a.jpg", "image/jpeg"),
        ("a.svg", "image/svg+xml"),
        ("a.woff2", "font/woff2"),
        ("a.wasm", "application/wasm"),
        ("a.pdf", "application/pdf"),
        ("A.HTML", "text/html; charset=utf-8"),
        ("unknown.qqq", "application/octet-stream"),
        ("none", "application/octet-stream"),
    ];
    for (name, _) in types {
        tree.file(name, "x");
    }
    tree.file("a.js", "x");
    let server = Server::start(tree.path(), |_| ());
    for (name, expected) in types {
        let response = server.get(&format!("/{name}"));
        assert_eq!(response.field("content-type"), Some(expected), "{name}");
    }
    let response = server.get("/a.js");
    let script = response.field("content-type").unwrap_or_default();
    assert!(script.contains("javascript") && script.ends_with("; charset=utf-8"), "{script}");
}
