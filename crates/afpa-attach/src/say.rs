//! Lines for the operator.

use std::io::{IsTerminal, Write};

/// Prints a line for the operator. An error of standard output must not end the attachment.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let clear = if std::io::stdout().is_terminal() { "\r\x1b[K" } else { "" };
    let _gone = writeln!(out, "{clear}afpa attach: {line}").and_then(|()| out.flush());
}
