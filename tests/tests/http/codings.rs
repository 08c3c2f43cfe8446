//! Content codings: stored siblings, compression of files that are asked for again, negotiation.

use std::collections::BTreeSet;

use afpa_testkit::{Response, Server, Tree, curl::curl, skip};
use afpa_tests::codings::{decode, encode, settle};

const SUFFIXES: [(&str, &str); 3] = [("br", "br"), ("zstd", "zst"), ("gzip", "gz")];

fn text() -> String {
    (0..800).map(|n| format!("line {n} of a text that compresses well\n")).collect()
}

fn accept(codings: &str) -> String {
    format!("Accept-Encoding: {codings}\r\n")
}

/// The coding of a response, whose body must decode to `whole`.
#[track_caller]
fn coding_of(response: &Response, whole: &str) -> String {
    let coding = response.field("content-encoding");
    assert_eq!(response.status, 200, "{response:?}");
    assert!(decode(coding, &response.body) == whole.as_bytes(), "decodes to the file: {coding:?}");
    coding.unwrap_or("identity").to_owned()
}

/// A text file with the siblings of `codings`, each with content of its own that tells it apart.
fn with_siblings(codings: &[&str]) -> (Tree, Server) {
    let tree = Tree::new();
    tree.file("page.html", text());
    for (coding, suffix) in SUFFIXES.iter().filter(|(coding, _)| codings.contains(coding)) {
        tree.file(format!("page.html.{suffix}"), encode(coding, text().as_bytes()));
    }
    let server = Server::start(tree.path(), |_| ());
    (tree, server)
}

#[test]
fn stored_siblings_are_sent_as_they_are() {
    let (tree, server) = with_siblings(&["br", "zstd", "gzip"]);
    let mut client = server.connect();
    for (coding, suffix) in SUFFIXES {
        let response = client.get_with("/page.html", &accept(coding));
        assert_eq!(response.field("content-encoding"), Some(coding));
        let stored = std::fs::read(tree.at(format!("page.html.{suffix}"))).expect("the sibling");
        assert!(response.body == stored, "{coding}: the stored bytes");
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"));
        assert!(response.lists("vary", "accept-encoding"), "{response:?}");
        let head = client.head_with("/page.html", &accept(coding));
        let length = stored.len().to_string();
        assert_eq!(head.field("content-length"), Some(length.as_str()));
        assert_eq!(head.field("etag"), response.field("etag"));
    }
}

#[test]
fn quality_values_decide_and_zero_excludes() {
    let (_tree, server) = with_siblings(&["br", "zstd", "gzip"]);
    let mut client = server.connect();
    for (codings, expected) in [
        ("", "identity"),
        ("identity", "identity"),
        ("gzip", "gzip"),
        ("GZIP", "gzip"),
        ("x-gzip", "gzip"),
        ("gzip;q=0.5, br;q=0.4", "gzip"),
        ("gzip;q=0.1,zstd;q=0.2 , br;q=0.3", "br"),
        ("gzip;q=1.0, br;q=0", "gzip"),
        ("br;q=0, zstd;q=0, gzip;q=0", "identity"),
        ("*", "br"),
        ("*;q=0", "identity"),
        ("*;q=0, gzip", "gzip"),
        ("br;q=0, *", "zstd"),
        ("compress, deflate", "identity"),
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate, zstd", "zstd"),
        ("identity;q=0, gzip;q=0.001", "gzip"),
        ("gzip;q=0.000", "identity"),
    ] {
        let response = client.get_with("/page.html", &accept(codings));
        assert_eq!(coding_of(&response, &text()), expected, "Accept-Encoding: {codings}");
    }
    let response = client.get("/page.html");
    assert_eq!(coding_of(&response, &text()), "identity", "no Accept-Encoding at all");
    assert!(response.lists("vary", "accept-encoding"), "the plain one varies too");
}

#[test]
fn garbled_accept_encoding_never_breaks_a_response() {
    let (_tree, server) = with_siblings(&["gzip"]);
    let mut client = server.connect();
    for codings in [
        "gzip;q=x",
        "gzip;q=2",
        ";;;,,,",
        "gzip;q",
        "gzip;level=9",
        ", ,gzip",
        "q=1",
        "gzip;q=0.12345",
        "gzip ; q=0.5",
    ] {
        let response = client.get_with("/page.html", &accept(codings));
        let coding = coding_of(&response, &text());
        assert!(["gzip", "identity"].contains(&coding.as_str()), "{codings}: {coding}");
    }
}

#[test]
fn every_coding_has_an_entity_tag_of_its_own() {
    let (_tree, server) = with_siblings(&["br", "zstd", "gzip"]);
    let mut client = server.connect();
    let mut tags = BTreeSet::new();
    for coding in ["identity", "br", "zstd", "gzip"] {
        let response = client.get_with("/page.html", &accept(coding));
        let tag = response.field("etag").expect("an entity tag").to_owned();
        assert!(tag.starts_with('"'), "strong: {tag}");
        let again = accept(coding) + &format!("If-None-Match: {tag}\r\n");
        let unmodified = client.get_with("/page.html", &again);
        assert_eq!(unmodified.status, 304, "{coding}");
        assert!(unmodified.lists("vary", "accept-encoding"), "{unmodified:?}");
        assert!(tags.insert(tag), "{coding} shares a tag");
    }
    // The tag of one coding does not stand for another: these are other bytes.
    let gzip = client.get_with("/page.html", &accept("gzip"));
    let other = format!("If-Match: {}\r\n", gzip.field("etag").expect("a tag")) + &accept("br");
    assert_eq!(client.get_with("/page.html", &other).status, 412);
}

#[test]
fn a_range_is_one_of_the_coded_bytes() {
    let (tree, server) = with_siblings(&["gzip"]);
    let stored = std::fs::read(tree.at("page.html.gz")).expect("the sibling");
    let lines = accept("gzip") + "Range: bytes=5-14\r\n";
    let response = server.connect().get_with("/page.html", &lines);
    assert_eq!(response.status, 206);
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert_eq!(response.body, stored[5..15]);
    let expected = format!("bytes 5-14/{}", stored.len());
    assert_eq!(response.field("content-range"), Some(expected.as_str()));
}

#[test]
fn text_without_siblings_is_compressed_when_it_is_asked_for_again() {
    let (_tree, server) = with_siblings(&[]);
    let mut client = server.connect();
    let uncoded = client.get_with("/page.html", &accept("gzip, br, zstd"));
    assert_eq!(coding_of(&uncoded, &text()), "identity", "nobody waits for an encoder");
    assert!(uncoded.lists("vary", "accept-encoding"), "{uncoded:?}");
    settle(&server, &["/page.html"]);
    let plain = client.get("/page.html");
    assert_eq!(plain.field("etag"), uncoded.field("etag"), "the same bytes keep their tag");
    assert_eq!(plain.field("last-modified"), uncoded.field("last-modified"));
    let mut smaller = 0;
    for coding in ["gzip", "br", "zstd"] {
        let first = client.get_with("/page.html", &accept(coding));
        let got = coding_of(&first, &text());
        assert!(got == coding || got == "identity", "{got} was not asked for");
        assert!(first.lists("vary", "accept-encoding"), "{first:?}");
        if got == coding {
            smaller += usize::from(first.body.len() < text().len() / 2);
            let second = client.get_with("/page.html", &accept(coding));
            assert!(second.body == first.body, "done once: the same bytes again");
            assert_eq!(second.field("etag"), first.field("etag"));
        }
    }
    assert_eq!(smaller, 3, "every coding of it is offered");
}

#[test]
fn what_does_not_compress_is_left_alone() {
    let tree = Tree::new();
    let noise = afpa_testkit::tree::patterned(30_000);
    tree.file("picture.jpg", &noise);
    tree.file("tiny.txt", "hi");
    let server = Server::start(tree.path(), |_| ());
    for (target, body) in [("/picture.jpg", noise.as_slice()), ("/tiny.txt", b"hi")] {
        settle(&server, &[target]);
        let response = server.connect().get_with(target, &accept("gzip, br, zstd"));
        assert_eq!(response.field("content-encoding"), None, "{target}");
        assert_eq!(response.field("vary"), None, "{target}");
        assert!(response.body == body, "{target}");
    }
}

#[test]
fn a_sibling_asked_for_by_name_is_a_file_like_any_other() {
    let (tree, server) = with_siblings(&["gzip"]);
    let response = server.connect().get_with("/page.html.gz", &accept("gzip"));
    assert_eq!(response.status, 200);
    assert_eq!(response.field("content-encoding"), None, "it is not encoded: it is the content");
    assert!(response.body == std::fs::read(tree.at("page.html.gz")).expect("the sibling"));
}

#[test]
fn a_sibling_older_than_its_file_is_not_used() {
    let tree = Tree::new();
    tree.file("page.html.gz", encode("gzip", b"the version before"));
    tree.set_modified("page.html.gz", 1_500_000_000);
    tree.file("page.html", text());
    tree.set_modified("page.html", 1_600_000_000);
    let server = Server::start(tree.path(), |_| ());
    let response = server.connect().get_with("/page.html", &accept("gzip"));
    coding_of(&response, &text());
}

#[test]
fn curl_decodes_what_it_asked_for() {
    let (_tree, server) = with_siblings(&["gzip"]);
    let url = format!("{}/page.html", server.url());
    let Some(answer) = curl(["--compressed", &url]) else { skip!("no curl") };
    assert_eq!(answer.exit, 0, "{}", answer.errors);
    assert!(answer.output == text().as_bytes());
}
