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
    b"\x01k\x00\x00\xfa\x00\xff\x00\x00\x00\x00\x00\x3d\x0bhmac-sha256\x00\x00\x00\x00\x00\x00\x07\x01\x2c\x00\x20",
    b"\x00\x00\x00\x00\x00\x00",
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
    b" MX \\# 4 00010100",
    b" LOC 1 2 3.5 N 4 5 6 E -1.5m 2m",
    b" APL !1:192.0.2.0/24 2::/0",
    b" HIP 2 20 AAAA rvs.",
    b" CERT PGP 0 0 AAAA",
    b" CSYNC 1 3 A TYPE65535",
    b" WKS 192.0.2.1 tcp smtp 65535",
    b" AMTRELAY 1 1 3 r.",
    b" L64 1 1:2:3:4",
    b" EUI48 00-00-5e-00-53-2a",
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
