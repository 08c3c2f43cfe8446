//! Lines for the operator.

use std::io::IsTerminal;

/// Prints a line for the operator. An error of standard output must not end the attachment.
pub(crate) fn say(line: &str) {
    let clear = if std::io::stdout().is_terminal() { "\r\x1b[K" } else { "" };
    afpa_say::status(&format!("{clear}afpa attach: {line}\n"));
}
