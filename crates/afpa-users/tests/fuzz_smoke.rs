//! The fuzz target of names and passwords without a fuzzer: over its committed seeds, and over a fixed sequence of mutations of them.
//! `fuzz/README.md` says how to run it for longer.

use afpa_testkit::smoke;

#[allow(unreachable_pub)]
#[path = "../../../fuzz/src/users.rs"]
mod targets;

/// The strings that the grammar turns on; random bytes alone would seldom make them.
const FRAGMENTS: &[&[u8]] = &[
    b"Basic ",
    b"YW5uOnNlY3JldA==",
    b"\nann:",
    b":",
    b"#",
    b"\r\n",
    b"$2y$04$",
    b"$apr1$",
    b"$5$rounds=1000$",
    b"$6$",
    b"$argon2id$v=19$m=256,t=2,p=1$",
    b"{SHA}",
    b"{SSHA}",
    b"$",
    b"$PASSWORD",
    b"$PASSWORD$",
    b"\xff",
];

#[test]
fn users() {
    smoke("users", targets::users, FRAGMENTS);
}
