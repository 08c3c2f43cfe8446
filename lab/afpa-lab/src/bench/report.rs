//! The report of a bench: Markdown for people, JSON for programs, and the figure.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::environment::Environment;
use crate::json;
use crate::results::write_whole;
use crate::stats::Spread;

/// A report that grows from its title down.
#[derive(Debug, Clone)]
pub struct Report {
    text: String,
}

/// A table of a report.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Names and words.
    Left,
    /// Figures.
    Right,
}

impl Report {
    /// Begins a report with what its figures depend on.
    pub fn new(title: &str, environment: &Environment, versions: &[String]) -> Self {
        let Environment { time, commit, .. } = environment;
        let commit = commit.as_deref().unwrap_or("unknown");
        let mut report = Self { text: format!("# {title}\n") };
        report.text(&format!(
            "{time}, commit {commit}: {}. {}.",
            environment.line(),
            versions.join(", ")
        ));
        report
    }

    /// A heading of a section.
    pub fn heading(&mut self, heading: &str) {
        self.text(&format!("## {heading}"));
    }

    /// A paragraph.
    pub fn text(&mut self, text: &str) {
        self.text.push_str(&format!("\n{text}\n"));
    }

    /// Reasons to doubt the figures above; nothing when there are none.
    pub fn notes(&mut self, notes: &[String]) {
        if !notes.is_empty() {
            self.text(&format!("> {}.", notes.join("; ")));
        }
    }

    /// A table.
    pub fn table(&mut self, table: &Table) {
        self.text(&table.markdown());
    }

    /// Commands, each after its name.
    pub fn commands<'c>(
        &mut self,
        about: &str,
        commands: impl IntoIterator<Item = (&'c String, &'c String)>,
    ) {
        let lines = commands.into_iter().map(|(name, command)| format!("# {name}\n{command}\n"));
        self.heading("Commands");
        self.text(&format!("{about}\n\n```\n{}```", lines.collect::<String>()));
    }

    /// The whole report.
    pub fn markdown(&self) -> &str {
        &self.text
    }

    /// Writes `results.json`, `results.md` and `results.svg` to a folder.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written to.
    pub fn write(
        &self,
        folder: &Path,
        results: &impl Serialize,
        figure: Option<&str>,
    ) -> Result<()> {
        write_whole(&folder.join("results.json"), json::lines(results)?.as_bytes())?;
        write_whole(&folder.join("results.md"), self.text.as_bytes())?;
        figure.map_or(Ok(()), |svg| write_whole(&folder.join("results.svg"), svg.as_bytes()))
    }
}

impl Table {
    /// A table without rows. A column of names stands left, one of figures right.
    pub fn new<'c>(columns: impl IntoIterator<Item = (&'c str, Align)>) -> Self {
        let columns = columns.into_iter().map(|(name, align)| (name.to_owned(), align));
        Self { columns: columns.collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn markdown(&self) -> String {
        let names = self.columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let rules = self.columns.iter().map(|(_, align)| match align {
            Align::Left => "---|",
            Align::Right => "---:|",
        });
        let mut lines = vec![line(&names), format!("|{}", rules.collect::<String>())];
        lines.extend(self.rows.iter().map(|row| line(row)));
        lines.join("\n")
    }
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// The folder that was asked for, or a new one: `build/<bench>/<time>`.
///
/// # Errors
///
/// When it cannot be made.
pub fn new_folder(
    bench: &str,
    wanted: Option<&Path>,
    environment: &Environment,
) -> Result<PathBuf> {
    let folder = wanted.map(Path::to_owned).unwrap_or_else(|| {
        let time = environment.time.chars().take(19).filter(|letter| *letter != ':');
        let time = time.map(|letter| if letter == ' ' { '-' } else { letter });
        Path::new("build").join(bench).join(time.collect::<String>())
    });
    fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    Ok(folder)
}

/// A rate with its spread: `94.1 k (93.0 k to 95.2 k)`.
pub fn count(spread: Spread) -> String {
    format!("{} ({} to {})", short(spread.median), short(spread.min), short(spread.max))
}

/// A rate in thousands or millions.
pub fn short(value: f64) -> String {
    if value >= 999_500.0 {
        format!("{:.2} M", value / 1e6)
    } else {
        format!("{:.1} k", value / 1e3)
    }
}

/// A ratio with its spread: `1.50x (1.40 to 1.60)`.
pub fn times(spread: Spread) -> String {
    format!("{:.2}x ({:.2} to {:.2})", spread.median, spread.min, spread.max)
}

/// A share with its spread; 0.05 is `+5.0 %`.
pub fn percent(spread: Spread) -> String {
    let Spread { median, min, max } = spread;
    format!("{:+.1} % ({:+.1} to {:+.1})", median * 100.0, min * 100.0, max * 100.0)
}

/// Each line once, in the order of first appearance.
pub fn each_once(lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in lines {
        if !line.is_empty() && !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_with_their_spread() {
        let spread = Spread { min: 93_000.0, median: 999_600.0, max: 1.5e6 };
        assert_eq!(count(spread), "1.00 M (93.0 k to 1.50 M)");
        let spread = Spread { min: 0.0, median: 0.04, max: 0.1 };
        assert_eq!(percent(spread), "+4.0 % (+0.0 to +10.0)");
        assert_eq!(times(spread), "0.04x (0.00 to 0.10)");
    }

    #[test]
    fn a_report_has_its_environment_tables_and_notes() {
        let environment = Environment { time: "now".into(), ..Environment::default() };
        let mut report = Report::new("A bench", &environment, &["nginx 1".into()]);
        let mut table = Table::new([("server", Align::Left), ("rate", Align::Right)]);
        table.row(["afpa", "1 k"]);
        report.table(&table);
        report.notes(&[]);
        report.notes(&["one".into(), "two".into()]);
        let text = report.markdown();
        assert!(text.starts_with("# A bench\n\nnow, commit unknown: "), "{text}");
        assert!(text.contains("| server | rate |\n|---|---:|\n| afpa | 1 k |\n"), "{text}");
        assert!(text.ends_with("\n> one; two.\n"), "{text}");
    }

    #[test]
    fn a_report_is_written_with_its_figure() {
        let folder = tempfile::tempdir().unwrap();
        let report = Report::new("A bench", &Environment::default(), &[]);
        report.write(folder.path(), &[1, 2], Some("<svg/>")).unwrap();
        for name in ["results.json", "results.md", "results.svg"] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
        let environment =
            Environment { time: "2026-01-02 03:04:05 +0000".into(), ..Environment::default() };
        let asked = new_folder("x", Some(&folder.path().join("new")), &environment).unwrap();
        assert!(asked.is_dir());
    }
}
