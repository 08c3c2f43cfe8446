//! Files that survive a run that is cut short.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Writes a file beside its place and moves it there, so that a reader never sees a part of it.
///
/// # Errors
///
/// When the folder cannot be written to.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, bytes).with_context(|| format!("{}", unfinished.display()))?;
    fs::rename(&unfinished, path).with_context(|| format!("{}", path.display()))
}

/// The turns of an unfinished run, one JSON object a line.
pub struct Journal<T> {
    file: File,
    /// The entries of the file when it was opened.
    pub found: Vec<T>,
}

impl<T: Serialize + for<'de> Deserialize<'de>> Journal<T> {
    /// Opens or makes the file; a last line that was cut short is dropped.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written, or a whole line is no entry.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
            .with_context(|| format!("{}", path.display()))?;
        let text = fs::read_to_string(path)?;
        let found = entries(&text)?;
        file.set_len(whole_lines(&text).len() as u64)?;
        file.flush()?;
        Ok(Self { file, found })
    }

    /// The entries of a file; nothing when there is none.
    ///
    /// # Errors
    ///
    /// When a whole line is no entry.
    pub fn read(path: &Path) -> Result<Vec<T>> {
        entries(&fs::read_to_string(path).unwrap_or_default())
    }

    /// Adds an entry.
    ///
    /// # Errors
    ///
    /// When the disk is full.
    pub fn add(&mut self, entry: &T) -> Result<()> {
        let line = serde_json::to_string(entry)? + "\n";
        Ok(self.file.write_all(line.as_bytes())?)
    }
}

/// Without a last line that was cut short.
fn whole_lines(text: &str) -> &str {
    &text[..text.rfind('\n').map_or(0, |end| end + 1)]
}

fn entries<T: for<'de> Deserialize<'de>>(text: &str) -> Result<Vec<T>> {
    let lines = whole_lines(text).lines();
    lines.map(|line| serde_json::from_str(line).context("a line of the journal")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Cost;
    use super::*;

    #[test]
    fn a_journal_goes_on_after_a_line_that_was_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("turns.jsonl");
        let mut journal: Journal<Cost> = Journal::open(&path).unwrap();
        let cost = Cost { user: 1.0, system: 2.0, interrupts: 0.5 };
        journal.add(&cost).unwrap();
        drop(journal);
        let mut cut = OpenOptions::new().append(true).open(&path).unwrap();
        cut.write_all(b"{\"user\":1").unwrap();
        let mut journal: Journal<Cost> = Journal::open(&path).unwrap();
        assert_eq!(journal.found, [cost]);
        journal.add(&cost).unwrap();
        let again: Journal<Cost> = Journal::open(&path).unwrap();
        assert_eq!(again.found, [cost, cost]);
        fs::write(&path, "nonsense\n").unwrap();
        assert!(Journal::<Cost>::open(&path).is_err());
    }
}
