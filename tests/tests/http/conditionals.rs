//! Conditional requests (RFC 9110, 13) and ranges (RFC 9110, 14).

use afpa_testkit::{Asked, Client, Response, Server, Tree, curl::curl, skip, tree::patterned};
use afpa_tests::dates::http_date;

const MODIFIED: u64 = 1_600_000_000;

/// A file of `content` that was last changed long ago, and a server for it.
fn one_file(content: impl AsRef<[u8]>) -> (Tree, Server, String) {
    let tree = Tree::new();
    tree.file("f.bin", content);
    tree.set_modified("f.bin", MODIFIED);
    let server = Server::start(tree.path(), |_| ());
    let tag = server.get("/f.bin").field("etag").expect("an entity tag").to_owned();
    (tree, server, tag)
}

#[test]
fn preconditions_are_judged_in_their_order() {
    let (_tree, server, tag) = one_file("0123456789");
    let (at, before, after) =
        (http_date(MODIFIED), http_date(MODIFIED - 1), http_date(MODIFIED + 1));
    let cases = [
        (format!("If-None-Match: {tag}"), 304),
        (format!("If-None-Match: W/{tag}"), 304),
        (format!("If-None-Match: \"x\", {tag}"), 304),
        (format!("If-None-Match: \"x\"\r\nIf-None-Match: {tag}"), 304),
        ("If-None-Match: *".to_owned(), 304),
        ("If-None-Match: \"x\"".to_owned(), 200),
        (format!("If-Modified-Since: {at}"), 304),
        (format!("If-Modified-Since: {after}"), 304),
        (format!("If-Modified-Since: {before}"), 200),
        ("If-Modified-Since: yesterday".to_owned(), 200),
        (format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {at}"), 200),
        (format!("If-None-Match: {tag}\r\nIf-Modified-Since: {before}"), 304),
        (format!("If-Match: {tag}"), 200),
        (format!("If-Match: W/{tag}"), 412),
        ("If-Match: *".to_owned(), 200),
        ("If-Match: \"x\", \"y\"".to_owned(), 412),
        (format!("If-Match: \"x\", {tag}"), 200),
        (format!("If-Unmodified-Since: {at}"), 200),
        (format!("If-Unmodified-Since: {before}"), 412),
        (format!("If-Unmodified-Since: {after}"), 200),
        ("If-Unmodified-Since: tomorrow".to_owned(), 200),
        (format!("If-Match: {tag}\r\nIf-Unmodified-Since: {before}"), 200),
        (format!("If-Match: {tag}\r\nIf-None-Match: {tag}"), 304),
        (format!("If-Match: \"x\"\r\nIf-None-Match: {tag}"), 412),
        (format!("If-Unmodified-Since: {before}\r\nIf-Modified-Since: {at}"), 412),
    ];
    let mut client = server.connect();
    for (lines, status) in &cases {
        for method in ["GET", "HEAD"] {
            let request = format!("{method} /f.bin HTTP/1.1\r\nHost: h\r\n{lines}\r\n\r\n");
            let response = client.exchange(request);
            assert_eq!(response.status, *status, "{method} {lines}: {response:?}");
            assert_eq!(response.values("date").count(), 1);
            if *status == 304 {
                assert_eq!(response.field("etag"), Some(tag.as_str()), "{lines}: {response:?}");
            }
        }
    }
}

#[test]
fn a_date_that_is_in_the_past_of_no_clock_is_still_a_date() {
    let (_tree, server, _) = one_file("x");
    let mut client = server.connect();
    let since = |date: &str| format!("If-Modified-Since: {date}\r\n");
    // The two obsolete forms of RFC 9110, 5.6.7, both the second the file was changed.
    for date in ["Sunday, 13-Sep-20 12:26:40 GMT", "Sun Sep 13 12:26:40 2020"] {
        assert_eq!(client.get_with("/f.bin", &since(date)).status, 304, "{date}");
    }
    let old = since("Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(client.get_with("/f.bin", &old).status, 200);
}

#[test]
fn the_entity_tag_changes_with_the_file_and_only_with_it() {
    let (tree, server, tag) = one_file("first");
    assert_eq!(server.get("/f.bin").field("etag"), Some(tag.as_str()));
    tree.replace("f.bin", "other");
    afpa_testkit::eventually("the new version is served", || {
        let response = server.get("/f.bin");
        let new = response.field("etag") != Some(tag.as_str());
        assert_eq!(new, response.text() == "other", "{response:?}");
        new
    });
}

#[test]
fn conditions_on_what_is_not_there_do_not_matter() {
    let (_tree, server, _) = one_file("x");
    let mut client = server.connect();
    assert_eq!(client.get_with("/none", "If-None-Match: *\r\n").status, 404);
    assert_eq!(client.get_with("/none", "Range: bytes=0-1\r\n").status, 404);
}

#[test]
fn a_single_range_gives_these_bytes() {
    let (_tree, server, tag) = one_file("0123456789");
    let mut client = server.connect();
    for (range, body, span) in [
        ("bytes=0-0", "0", "0-0"),
        ("bytes=2-5", "2345", "2-5"),
        ("bytes=7-", "789", "7-9"),
        ("bytes=-3", "789", "7-9"),
        ("bytes=-99", "0123456789", "0-9"),
        ("bytes=5-99", "56789", "5-9"),
        ("bytes=0-", "0123456789", "0-9"),
        ("BYTES=1-1", "1", "1-1"),
        ("bytes=1-1,99-", "1", "1-1"),
    ] {
        let response = client.get_with("/f.bin", &format!("Range: {range}\r\n"));
        assert_eq!((response.status, response.text()), (206, body), "{range}: {response:?}");
        let expected = format!("bytes {span}/10");
        assert_eq!(response.field("content-range"), Some(expected.as_str()), "{range}");
        assert_eq!(response.field("etag"), Some(tag.as_str()), "{range}");
    }
}

#[test]
fn a_range_beyond_the_end_is_416() {
    let (tree, server, _) = one_file("0123456789");
    tree.file("empty.bin", "");
    let mut client = server.connect();
    for (target, range, length) in [
        ("/f.bin", "bytes=10-", 10),
        ("/f.bin", "bytes=99-100,200-", 10),
        ("/f.bin", "bytes=-0", 10),
        ("/empty.bin", "bytes=0-", 0),
        ("/f.bin", "bytes=18446744073709551614-18446744073709551615", 10),
    ] {
        let response = client.get_with(target, &format!("Range: {range}\r\n"));
        assert_eq!(response.status, 416, "{range}: {response:?}");
        let expected = format!("bytes */{length}");
        assert_eq!(response.field("content-range"), Some(expected.as_str()), "{range}");
    }
    client.assert_open("/f.bin");
}

#[test]
fn a_range_that_means_nothing_is_ignored() {
    let (_tree, server, _) = one_file("0123456789");
    let mut client = server.connect();
    for range in [
        "bytes=5-2",
        "bytes=a-b",
        "bytes=",
        "lines=1-2",
        "bytes 1-2",
        "bytes=1-2-3",
        "bytes=-",
        "bytes=--1",
        "bytes=1-2;3-4",
        "bytes=99999999999999999999999-",
    ] {
        let response = client.get_with("/f.bin", &format!("Range: {range}\r\n"));
        // A first position of 23 digits is well-formed, and beyond any file: 416 would be right too.
        let huge = range.contains("999") && response.status == 416;
        assert!(huge || response.status == 200, "{range}: {response:?}");
    }
    let head = client.head_with("/f.bin", "Range: bytes=0-1\r\n");
    assert_eq!(head.status, 200, "a range counts for GET alone (RFC 9110, 14.2)");
}

#[test]
fn several_ranges_come_in_parts() {
    let content = patterned(100_000);
    let (_tree, server, _) = one_file(&content);
    let mut client = server.connect();
    let response = client.get_with("/f.bin", "Range: bytes=0-9,50000-50099,-10\r\n");
    assert_eq!(response.status, 206);
    assert_eq!(response.field("content-range"), None, "each part has its own (RFC 9110, 15.3.7.2)");
    let parts = afpa_tests::reference::multipart::parts(&response).expect("multipart/byteranges");
    let spans: Vec<_> = parts.iter().map(|part| (part.first, part.last, part.complete)).collect();
    assert_eq!(spans, [(0, 9, 100_000), (50_000, 50_099, 100_000), (99_990, 99_999, 100_000)]);
    for part in parts {
        assert_eq!(part.bytes, content[part.first..=part.last]);
        assert_eq!(part.media_type.as_deref(), Some("application/octet-stream"));
    }
    client.assert_open("/f.bin");
}

#[test]
fn many_small_or_overlapping_ranges_cost_no_more_than_the_file() {
    let content = patterned(20_000);
    let (_tree, server, _) = one_file(&content);
    let mut client = server.connect();
    let attacks = [
        "0-,".repeat(1000),
        "0-19999,".repeat(200),
        (0..900).map(|n| format!("{}-{},", n * 2, n * 2)).collect(),
    ];
    for attack in attacks {
        let range = format!("Range: bytes={}\r\n", attack.trim_end_matches(','));
        let response = client.get_with("/f.bin", &range);
        assert!(matches!(response.status, 200 | 206 | 416), "{response:?}");
        let bound = content.len() + 16 * 1024;
        assert!(response.body.len() < bound, "{} bytes for {attack:.30}", response.body.len());
    }
}

#[test]
fn if_range_wants_the_exact_version() {
    let (_tree, server, tag) = one_file("0123456789");
    let mut client = server.connect();
    for (condition, status) in [
        (tag.clone(), 206),
        (format!("W/{tag}"), 200),
        ("\"x\"".to_owned(), 200),
        (http_date(MODIFIED), 206),
        (http_date(MODIFIED + 1), 200),
        (http_date(MODIFIED - 1), 200),
        ("garbage".to_owned(), 200),
    ] {
        let lines = format!("Range: bytes=1-2\r\nIf-Range: {condition}\r\n");
        let response = client.get_with("/f.bin", &lines);
        assert_eq!(response.status, status, "{condition}: {response:?}");
    }
    let lines = "Range: bytes=99-\r\nIf-Range: \"x\"\r\n";
    assert_eq!(client.get_with("/f.bin", lines).status, 200, "not 416 of another version");
    let lines = format!("Range: bytes=0-1\r\nIf-None-Match: {tag}\r\n");
    assert_eq!(client.get_with("/f.bin", &lines).status, 304, "conditions come before ranges");
}

#[test]
fn ranges_of_a_file_too_large_to_pin_are_exact() {
    let content = patterned(6_000_000);
    let (_tree, server, _) = one_file(&content);
    let mut client = server.connect();
    for (first, last) in [
        (0, 0),
        (65_535, 65_536),
        (4095, 4094 + 128 * 1024),
        (4095, 4095 + 128 * 1024),
        (1, 300_000),
        (1_000_000, 4_999_999),
        (5_999_990, 5_999_999),
    ] {
        let response = client.get_with("/f.bin", &format!("Range: bytes={first}-{last}\r\n"));
        assert_eq!(response.status, 206);
        assert!(response.body == content[first..=last], "{first}-{last}");
    }
    let parts = "Range: bytes=0-99999,2000000-2999999,-1\r\n";
    let response = client.get_with("/f.bin", parts);
    for part in afpa_tests::reference::multipart::parts(&response).expect("parts") {
        assert!(part.bytes == content[part.first..=part.last], "{}-{}", part.first, part.last);
    }
    client.assert_open("/f.bin");
}

/// Each answer is larger than the client's window and the server's socket together, so that its end has
/// to wait; and the next one follows at once.
#[test]
fn ranges_that_a_slow_client_lets_wait_are_exact() {
    let content = patterned(6_000_000);
    let (_tree, server, _) = one_file(&content);
    let mut client = Client::connect_narrow(server.address(), 4096).expect("connect");
    let ranges: Vec<_> =
        (0..40).map(|n| (n * 100_001, n * 100_001 + 70_000 + n * 50_000)).collect();
    for (first, last) in &ranges {
        let range = format!("Range: bytes={first}-{last}");
        client.send(format!("GET /f.bin HTTP/1.1\r\nHost: h\r\n{range}\r\n\r\n"));
    }
    for (first, last) in ranges {
        let response = client.receive();
        assert_eq!(response.status, 206);
        assert!(response.body == content[first..=last.min(content.len() - 1)], "{first}-{last}");
    }
    client.assert_open("/f.bin");
}

#[test]
fn curl_resumes_a_download() {
    let content = patterned(3_000_000);
    let (tree, server, _) = one_file(&content);
    let partial = tree.outside("download/f.bin", &content[..1_234_567]);
    let path = partial.to_str().expect("a path in UTF-8");
    let url = format!("{}/f.bin", server.url());
    let Some(answer) = curl(["--continue-at", "-", "--output", path, &url]) else {
        skip!("no curl")
    };
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    assert!(std::fs::read(partial).expect("the download") == content);
}

#[test]
fn a_304_leaves_the_connection_in_step() {
    let (_tree, server, tag) = one_file("0123456789");
    let mut client = server.connect();
    let request = |lines: &str| format!("GET /f.bin HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
    let conditional = request(&format!("If-None-Match: {tag}\r\n"));
    client.send((conditional + &request("")).repeat(20));
    for _ in 0..20 {
        let unmodified: Response = client.try_receive(Asked::Body).expect("a response");
        assert_eq!((unmodified.status, unmodified.body.len()), (304, 0));
        assert_eq!(client.receive().text(), "0123456789");
    }
}
