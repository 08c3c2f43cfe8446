//! Requests that are refused, and the responses to them.

use crate::{refused, refused_for_good, site};

#[test]
fn what_is_not_there_or_not_to_be_seen_is_refused() {
    let (_tree, server) = site();
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
    for target in [
        "/none",
        "/deep/none",
        "/hello.txt/",
        "/hello.txt/x",
        "/.hidden",
        "/.git/config",
        "/.git/",
        "/deep/../.hidden",
        "/%2ehidden",
        "/hello%2Ftxt",
        "/deep%2fer/",
    ] {
        refused(&server, &get(target), 404);
    }
    refused(&server, &get("/bare/"), 403);
    refused(&server, &get("/none").replace("GET", "HEAD"), 404);
}

#[test]
fn too_long_a_target_is_414_and_too_long_a_head_431() {
    let (_tree, server) = site();
    let get =
        |target: &str, lines: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
    let long = |count| format!("/{}", "a".repeat(count));
    refused(&server, &get(&long(8000), ""), 404);
    refused_for_good(&server, &get(&long(9000), ""), 414);
    refused_for_good(&server, &long(70_000).replacen('/', "GET /", 1), 414);
    let field = |size: usize| format!("X-Long: {}\r\n", "v".repeat(size));
    refused_for_good(&server, &get("/hello.txt", &field(40_000)), 431);
    refused_for_good(&server, &get("/hello.txt", &field(900).repeat(40)), 431);
    refused_for_good(&server, &get("/hello.txt", &"A: b\r\n".repeat(150)), 431);
    assert_eq!(server.connect().get_with("/hello.txt", &field(20_000)).status, 200);
    assert_eq!(server.connect().get_with("/hello.txt", &"A: b\r\n".repeat(90)).status, 200);
}

#[test]
fn what_is_not_http_1_is_refused_and_the_connection_closed() {
    let (_tree, server) = site();
    for (request, status) in [
        ("GET\r\n\r\n", 400),
        ("GET /hello.txt\r\n\r\n", 400),
        ("GET  /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: h\r\nNo colon\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\nHost: h\n\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400),
        ("GET /hello.txt HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        ("GET /hello.txt HTTP/1.2\r\nHost: h\r\n\r\n", 505),
        ("GET /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: br\r\n\r\n", 400),
        ("GET /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: br, chunked\r\n\r\n", 501),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\r\n\r\n", 400),
    ] {
        refused_for_good(&server, request, status);
    }
}

#[test]
fn targets_that_no_file_can_have_are_400() {
    let (_tree, server) = site();
    for target in [
        "/..",
        "/../hello.txt",
        "/%2e%2e/hello.txt",
        "/deep/../../hello.txt",
        "/%",
        "/%zz",
        "/%4",
        "/a%00b",
        "/a%0d%0aX:y",
        "hello.txt",
        "*",
    ] {
        refused(&server, &format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"), 400);
    }
}
