//! The output of a run: a folder for later, and lines for a terminal.

use anyhow::Result;
use serde::Serialize;

use super::summary::Summary;
use super::{Setup, figure, table};
use crate::bench::{Bench, Report, Sample, Settings};
use crate::environment::Environment;

/// An experiment's description of its figures.
pub(crate) struct Description {
    /// Of the page and of the figure.
    pub(crate) title: String,
    /// How it was measured: a paragraph each.
    pub(crate) about: Vec<String>,
    /// Versions, as the programs print them.
    pub(crate) versions: Vec<String>,
    /// The result in a line for each case, where the experiment has such lines.
    pub(crate) verdicts: Vec<String>,
    /// Panels of the figure beside each other.
    pub(crate) columns: usize,
}

/// results.json.
#[derive(Serialize)]
struct Results<'r> {
    settings: &'r Settings,
    about: &'r [String],
    environment: &'r Environment,
    versions: &'r [String],
    commands: &'r std::collections::BTreeMap<String, String>,
    repeated: &'r [String],
    verdicts: &'r [String],
    #[serde(flatten)]
    summary: &'r Summary,
    samples: &'r [Sample],
}

/// Writes results.json, results.md and results.svg; the tables for a terminal.
///
/// # Errors
///
/// When they cannot be written.
pub(crate) fn write(
    setup: &Setup<'_>,
    bench: &Bench,
    summary: &Summary,
    told: &Description,
) -> Result<String> {
    let environment = Environment::look();
    let mut report = Report::new(&told.title, &environment, &told.versions);
    told.about.iter().for_each(|paragraph| report.text(paragraph));
    report.text("![figure](results.svg)");
    let verdicts: Vec<String> = told.verdicts.iter().map(|line| format!("- {line}")).collect();
    if !verdicts.is_empty() {
        report.text(&verdicts.join("\n"));
    }
    table::markdown(summary, &mut report);
    report.commands("", &bench.commands);
    let results = Results {
        settings: &bench.settings,
        about: &told.about,
        environment: &environment,
        versions: &told.versions,
        commands: &bench.commands,
        repeated: &bench.repeated,
        verdicts: &told.verdicts,
        summary,
        samples: &bench.samples.0,
    };
    let drawn =
        figure::draw(&told.title, summary, bench.settings.rounds, &environment, told.columns);
    report.write(setup.folder, &results, drawn.as_deref())?;
    let mut lines = vec![table::text(summary)];
    if !told.verdicts.is_empty() {
        lines.push(String::new());
        lines.extend(told.verdicts.iter().cloned());
    }
    Ok(lines.join("\n"))
}
