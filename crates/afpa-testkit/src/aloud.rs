//! Lines that must reach the person who runs the tests, also when the test passes.

use std::io::Write;

/// Ends the calling test, saying aloud that it did not run and why.
///
/// ```no_run
/// fn shows_something_of_ipv6() {
///     if !afpa_testkit::client::has_ipv6_loopback() {
///         afpa_testkit::skip!("no ::1 on this machine");
///     }
/// }
/// ```
#[macro_export]
macro_rules! skip {
    ($($why:tt)*) => {{
        $crate::aloud::say("SKIP", &format!($($why)*));
        return;
    }};
}

/// Prints a figure a test has measured, also when the test passes.
#[macro_export]
macro_rules! figure {
    ($($what:tt)*) => { $crate::aloud::say("FIGURE", &format!($($what)*)) };
}

/// Writes one line with the running test's name to standard error, past libtest's capture, which
/// would swallow the lines of a test that passes.
pub fn say(kind: &str, what: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    // A closed standard error is no reason for a test to fail.
    let _ = writeln!(std::io::stderr().lock(), "{kind} {test}: {what}");
}
