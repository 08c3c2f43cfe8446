//! The fuzz targets of HTTP/3 without a fuzzer: over their committed seeds, and over a fixed sequence of mutations of
//! them. `fuzz/README.md` says how to run them for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/h3.rs"]
mod targets;

/// Frames and fields; random bytes alone would seldom make them.
const FRAGMENTS: &[&[u8]] = &[
    b"\x01\x08\0\0\xd1\xd7\xc1\x50\x01a",
    b"\x01\x09\0\0\xd4\xd7\xc1\x50\x01a\x54\x015",
    b"\0\x05hello",
    b"\0\0",
    b"\x01\x06\0\0\x21x\x01y",
    b"\x21\x02ab",
    b"\x40\x7f",
    b"\xc0\0\0\0\0\0\0\x05",
    b"\0\x04\0",
    b"\x04\x02\x06\x10",
    b"\x04\x02\x08\x02",
    b"\x07\x01\x04",
    b"\x0d\x01\x04",
    b"\x03\x01\0",
    b"\x80\x0f\x07\0\x04\0u=1",
    b"\x02",
    b"\x03",
    b"\x80",
    b"\x54\x015",
    b"\x22ab\x03def",
    b"|",
];

#[test]
fn h3_fields() {
    smoke("h3_fields", targets::h3_fields, FRAGMENTS);
}

#[test]
fn h3_request() {
    smoke("h3_request", targets::h3_request, FRAGMENTS);
}

#[test]
fn h3_control() {
    smoke("h3_control", targets::h3_control, FRAGMENTS);
}
