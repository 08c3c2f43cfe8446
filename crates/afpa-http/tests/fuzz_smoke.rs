//! The fuzz targets without a fuzzer: over their committed seeds, and over a fixed sequence of
//! mutations of them. `fuzz/README.md` says how to run them for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/lib.rs"]
mod targets;

/// Strings that the grammars turn on; random bytes alone would seldom make one.
const FRAGMENTS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"q=0",
    b"\"",
    b"*",
    b"-",
    b"0",
    b"f",
    b"/",
    b"..",
    b"%2e",
    b"%2F",
    b"%",
    b"bytes=",
    b"W/",
    b"chunked",
    b"Host: b\r\n",
    b"\x7f",
    b"\xff",
    b"HTTP/1.1",
    b"00-",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"99999999999999999999",
    b"Cache-Control: ",
    b"CDN-Cache-Control: ",
    b"max-age=",
    b"no-cache=\"",
    b"Vary: ",
    b"bytes 0-4/10\n01234\n",
    b"bytes 3-7/10\n",
    b"AFPAsnap\x02\0\0\0",
    b"\x01\0\0\0\0\0\0\0",
    b"\0\0\0\0\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
];

#[test]
fn request() {
    smoke("request", targets::request, FRAGMENTS);
}

#[test]
fn target() {
    smoke("target", targets::target, FRAGMENTS);
}

#[test]
fn chunked() {
    smoke("chunked", targets::chunked, FRAGMENTS);
}

#[test]
fn caching() {
    smoke("caching", targets::caching, FRAGMENTS);
}

#[test]
fn parts() {
    smoke("parts", targets::parts, FRAGMENTS);
}

#[test]
fn snapshot() {
    smoke("snapshot", targets::snapshot, FRAGMENTS);
}

#[test]
fn trace() {
    smoke("trace", targets::trace, FRAGMENTS);
}

#[test]
fn selection() {
    smoke("selection", targets::selection, FRAGMENTS);
}

#[test]
fn coding() {
    smoke("coding", targets::coding, FRAGMENTS);
}
