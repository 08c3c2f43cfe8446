//! The fuzz targets of messages and questions without a fuzzer: over their committed seeds, and over a fixed sequence of mutations of
//! them. `fuzz/README.md` says how to run them for longer.

use afpa_testkit::smoke_some;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/fleet.rs"]
mod targets;

/// The strings that the grammar turns on; random bytes alone would seldom make them.
const WORDS: &[&[u8]] = &[
    b"{\"",
    b"\":",
    b"\",\"",
    b"null",
    b"true",
    b"[]",
    b"18446744073709551615",
    b"-1",
    b"\\u001b",
    b"\"order\":\"purge\"",
    b"\"order\":\"deny\"",
    b"\"arguments\":\"",
    b"\"id\":\"",
    b"\"missed\":[[\"b\",1]]",
    b"\"purges\":{\"log\":1,\"sequence\":2}",
    b"\"hot\":[{\"key\":1,\"owners\":2}]",
    b"\"leaves\":true",
    b"\"takes\":true",
    b"certificate a.test",
];

const LINES: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\n",
    b"Host: a.test\r\n",
    b"AFPA-Question: ",
    b"AFPA-Answer: ",
    b"\r\n\r\n",
    b"\n",
    b"0000000000000000",
    b"\0",
];

/// Each seals or signs something.
const MUTATIONS: usize = 3_000;

#[test]
fn messages() {
    smoke_some("fleet_messages", targets::fleet_messages, WORDS, MUTATIONS);
}

#[test]
fn questions() {
    smoke_some("fleet_questions", targets::fleet_questions, LINES, MUTATIONS);
}
