//! Standard output, for all commands.

use anyhow::Context as _;

/// Prints a text that ends with its line.
///
/// # Errors
/// As [`write`].
pub fn print(text: &str) -> anyhow::Result<()> {
    write(text.as_bytes())
}

/// Writes bytes.
///
/// # Errors
/// When standard output takes none.
pub(super) fn write(bytes: &[u8]) -> anyhow::Result<()> {
    afpa_say::result(bytes).context("cannot write to standard output")
}
