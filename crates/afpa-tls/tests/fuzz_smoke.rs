//! The fuzz targets of TLS without a fuzzer: over their committed seeds, and over a fixed sequence of mutations of them.
//! `fuzz/README.md` says how to run them for longer.

use afpa_testkit::smoke_some;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/tls.rs"]
mod targets;

/// Byte strings that decide how records and PEM are parsed.
const FRAGMENTS: &[&[u8]] = &[
    &[22, 3, 1, 0, 1],
    &[22, 3, 3, 64, 0],
    &[20, 3, 3, 0, 1, 1],
    &[21, 3, 3, 0, 2, 1, 0],
    &[23, 3, 3, 0, 17],
    &[23, 3, 3, 255, 255],
    &[1, 0, 1, 0, 3, 3],
    &[0, 0],
    &[255, 255],
    b"-----BEGIN CERTIFICATE-----\n",
    b"-----END CERTIFICATE-----\n",
    b"-----BEGIN PRIVATE KEY-----\n",
    b"AAAA\n",
    b"\n",
];

#[test]
fn tls_handshake() {
    smoke_some("tls_handshake", targets::handshake, FRAGMENTS, 4_000);
}

#[test]
fn tls_records() {
    // Each is a handshake.
    smoke_some("tls_records", targets::records, FRAGMENTS, 400);
}

#[test]
fn certificate() {
    smoke_some("certificate", targets::certificate, FRAGMENTS, 10_000);
}
