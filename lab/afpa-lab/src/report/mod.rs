//! The results in words and tables: for a terminal, as Markdown, and as a page.

mod findings;
mod html;
mod losses;
mod markdown;
mod tables;
mod times;
mod words;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::figures;
use crate::results::{Results, write_whole};
use crate::summary::Summary;

pub use words::{heading, last_lines};

/// People's notes about a run, in the folder of its results: they go into the report.
const NOTES: &str = "notes.md";

/// Writes everything that is made from `results.json`: the table, the figures, the page. A file
/// `notes.md` that somebody put there becomes part of them.
///
/// # Errors
///
/// When the folder cannot be written to.
pub fn write(results: &Results, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    let summary = Summary::of(results);
    let figures = figures::draw(results, &summary);
    let missing = figures::write(&figures, folder)?;
    let notes = fs::read_to_string(folder.join(NOTES)).unwrap_or_default();
    let text = markdown::page(results, &summary, &figures, &notes, missing.as_deref());
    write_whole(&folder.join("README.md"), text.as_bytes())?;
    let page = html::page(results, &summary, &figures, &notes);
    write_whole(&folder.join("index.html"), page.as_bytes())
}

/// The tables, for a terminal.
pub fn terminal(results: &Results) -> String {
    let summary = Summary::of(results);
    tables::all(results, &summary).iter().map(tables::Table::plain).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::{results, turn};

    #[test]
    fn the_last_lines_name_every_peer() {
        let again = format!("nginx{}", crate::results::AGAIN);
        let results = results(&[
            ("afpa-kernel", &[1000.0; 3]),
            ("nginx", &[100.0; 3]),
            (&again, &[100.0; 3]),
            ("h2o", &[999.0, 1001.0, 1000.0]),
        ]);
        let lines = last_lines(&results);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("afpa-kernel / nginx: 10.0x (10.0 to 10.0)"), "{lines:?}");
        assert!(lines[1].contains("no difference"), "{lines:?}");
    }

    #[test]
    fn a_folder_of_results_becomes_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = results(&[("afpa", &[10.0; 3]), ("nginx", &[5.0; 3])]);
        let mut mix = turn("afpa", 1, 7.0);
        mix.point.workload = "<jaws>".into();
        results.turns.push(mix);
        results.left_out.push("server <h2o>: not here".into());
        fs::write(folder.path().join("notes.md"), "First & last.\n\nWhy.\n").unwrap();
        write(&results, folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join("README.md")).unwrap();
        assert!(text.contains("| nginx |") && text.contains("2.00x"));
        let page = fs::read_to_string(folder.path().join("index.html")).unwrap();
        assert!(text.contains("First & last.") && page.contains("<p>First &amp; last.</p>"));
        assert!(page.contains("&lt;h2o&gt;") && !page.contains("<h2o>"));
    }
}
