//! The router's fuzz targets without a fuzzer: over their committed seeds, and over a fixed sequence of
//! mutations of them. `fuzz/README.md` says how to run them for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/routing.rs"]
mod targets;

/// The strings that the grammars turn on; random bytes alone would seldom make them.
const FRAGMENTS: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\0",
    b"/",
    b".",
    b"..",
    b"%2e",
    b"%2F",
    b" ",
    b"*",
    b";",
    b"=",
    b".html",
    b".gif",
    b"/two/",
    b"/old/",
    b"/beta",
    b"beta=yes",
    b"a.org",
    b"POST",
    b"PROXY ",
    b"TCP4 ",
    b"UNKNOWN",
    b"1.2.3.4 ",
    b"65536",
    b"\r\n\r\n\0\r\nQUIT\n",
    b"\x21\x11\0\x0c",
    b"\x20",
    b"\xff\xff",
    b"\xff",
];

#[test]
fn route() {
    smoke("route", targets::route, FRAGMENTS);
}

#[test]
fn preface() {
    smoke("preface", targets::preface, FRAGMENTS);
}
