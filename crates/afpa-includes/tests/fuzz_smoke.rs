//! The fuzz target of server-side includes without a fuzzer: over its committed seeds, and over a fixed sequence of
//! mutations of them. `fuzz/README.md` says how to run it for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/includes.rs"]
mod targets;

/// The strings that the grammar turns on; random bytes alone would seldom make them.
const FRAGMENTS: &[&[u8]] = &[
    b"<!--#",
    b"-->",
    b"\x0c",
    b"=\"",
    b"\"",
    b"'",
    b"`",
    b"\\",
    b"$",
    b"${",
    b"}",
    b"%{v:",
    b"v('a')",
    b"<!--#if expr=\"true\" -->",
    b"<!--#if expr=\"v('a') = 'b'\" -->",
    b"<!--#elif expr=\"false\" -->",
    b"<!--#else -->",
    b"<!--#endif -->",
    b"<!--#set var=\"a\" value=\"$a$a\" -->",
    b"<!--#echo var=\"a\" -->",
    b"<!--#include file=\"0.shtml\" -->",
    b"<!--#include virtual=\"../dir/1.shtml\" -->",
    b"<!--#config timefmt=\"%c\" -->",
    b"<!--#fsize file=\"0.shtml\" -->",
    b"<!--#flastmod file=\"1.shtml\" -->",
    b"encoding=\"url\" ",
    b"(",
    b"!",
    b"&&",
    b"||",
    b"..",
    b"/",
    b"%2e",
    b"\0",
    b"\xff",
];

#[test]
fn includes() {
    smoke("includes", targets::includes, FRAGMENTS);
}
