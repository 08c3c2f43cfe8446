//! The fuzz targets of DNS without a fuzzer: over their committed seeds, and over a fixed sequence of mutations of them.
//! `fuzz/README.md` says how to run them for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/dns.rs"]
mod targets;

/// The strings that messages turn on; random bytes alone would seldom make them.
const MESSAGE: &[&[u8]] = &[
    b"\x07example\x00",
    b"\x01w\x07example\x00\x00\x01\x00\x01",
    b"\x01d",
    b"\x01x",
    b"\x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x00",
    b"\x00\x0a\x00\x08",
    b"\xc0\x0c",
    b"\x00\xff",
    b"\x00\xfb",
];

/// Those that zone files turn on.
const FILE: &[&[u8]] = &[
    b"@ SOA ns h 1 1 1 1 1\n@ NS ns\n",
    b"$TTL 1h\n",
    b"$ORIGIN a\n",
    b"$INCLUDE b\n",
    b" CNAME ",
    b" DNAME ",
    b" TXT \"",
    b" MX 1 ",
    b" HTTPS 1 . alpn=h2",
    b" CAA 0 issue \"x\"",
    b" TYPE65280 \\# 2 abcd",
    b"( ",
    b" )",
    b";",
    b"\\",
    b"*.",
    b"\n",
];

#[test]
fn dns_message() {
    smoke("dns_message", targets::dns_message, MESSAGE);
}

#[test]
fn zone_file() {
    smoke("zone_file", targets::zone_file, FILE);
}
