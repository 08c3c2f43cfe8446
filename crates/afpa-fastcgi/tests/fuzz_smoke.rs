//! The fuzz target of FastCGI without a fuzzer: over its committed seeds, and over a fixed sequence of mutations of them.
//! `fuzz/README.md` says how to run it for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/fastcgi.rs"]
mod targets;

/// The strings that the grammar turns on; random bytes alone would seldom make them.
const FRAGMENTS: &[&[u8]] = &[
    b"\x01\x06\x00\x01\x00\x04\x00\x00",
    b"\x01\x06\x00\x01\x00\x00\x00\x00",
    b"\x01\x07\x00\x01\x00\x02\x01\x00a\n_",
    b"\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    b"\x01\x0b\x00\x00\x00\x00\x02\x00__",
    b"Status: 404 Not Found\r\n",
    b"Location: /a\n",
    b"Content-Length: 3\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"A: b\r\n",
    b"\r\n\r\n",
    b"\n\n",
    b"\r\n",
    b"\0",
    b"\xff",
];

#[test]
fn fastcgi() {
    smoke("fastcgi", targets::fastcgi, FRAGMENTS);
}
