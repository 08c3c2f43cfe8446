//! The proxy's fuzz targets without a fuzzer: over their committed seeds, and over a fixed sequence of
//! mutations of them. `fuzz/README.md` says how to run them for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/proxy.rs"]
mod targets;

/// The tokens of the grammars; random bytes alone would seldom contain them.
const FRAGMENTS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b":",
    b",",
    b";",
    b"\"",
    b"-",
    b"0",
    b"%2F",
    b"\r\n--B-B--",
    b"\r\n0\r\n\r\n",
    b"chunked",
    b"close",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"\x7f",
    b"\xff",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: content-length, x\r\n",
    b"Upgrade: websocket\r\n",
    b"99999999999999999999",
];

#[test]
fn ending() {
    smoke("ending", targets::ending, FRAGMENTS);
}

#[test]
fn response() {
    smoke("response", targets::response, FRAGMENTS);
}

#[test]
fn forward() {
    smoke("forward", targets::forward, FRAGMENTS);
}
