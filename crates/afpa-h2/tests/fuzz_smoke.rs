//! The fuzz targets of HTTP/2 without a fuzzer: over their committed seeds, and over a fixed sequence of mutations of
//! them. `fuzz/README.md` says how to run them for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/h2.rs"]
mod targets;

/// Headers of frames, and fields; random bytes alone would seldom make them.
const FRAGMENTS: &[&[u8]] = &[
    b"\0\0\0\x04\0\0\0\0\0",
    b"\0\0\x06\x01\x05\0\0\0\x01\x82\x86\x84\x41\x01h",
    b"\0\0\x06\x01\x05\0\0\0\x03\x82\x86\x84\x41\x01h",
    b"\0\0\x06\x01\x04\0\0\0\x05\x82\x86\x84\x41\x01h",
    b"\0\0\x03\x01\0\0\0\0\x01\x82\x86\x84",
    b"\0\0\x01\x09\x04\0\0\0\x01\x82",
    b"\0\0\x01\x09\0\0\0\0\x01\x82",
    b"\0\0\x05\0\0\0\0\0\x01hello",
    b"\0\0\x05\0\x01\0\0\0\x01hello",
    b"\0\0\x05\0\x09\0\0\0\x03\x02he\0\0",
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08",
    b"\0\0\x04\x08\0\0\0\0\x01\0\0\0\x05",
    b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\xff\xff",
    b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\x01",
    b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\0\0\x01\x01\x04\0\0\0\x01\x88",
    b"\0\0\x01\x01\x05\0\0\0\x03\x89",
    b"\0\0\x05\x01\x04\0\0\0\x05\x88\x0f\x0d\x015",
    b"\0\0\x06\x04\0\0\0\0\0\0\x08\0\0\0\0",
    b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x07",
    b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0",
    b"\x40\x01a\x01b",
    b"\x00\x04te\r\n\x01b",
    b"\x5c\x01\x35",
    b"\x20",
    b"\xbe",
    b"|",
    b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"0\r\n",
];

#[test]
fn h2_frames() {
    smoke("h2_frames", targets::h2_frames, FRAGMENTS);
}

#[test]
fn h2_client() {
    smoke("h2_client", targets::h2_client, FRAGMENTS);
}

#[test]
fn hpack() {
    smoke("hpack", targets::hpack, FRAGMENTS);
}

#[test]
fn h2_response() {
    smoke("h2_response", targets::h2_response, FRAGMENTS);
}
