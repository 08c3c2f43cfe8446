//! The papers' findings beside ours, each with the figures that speak for or against it.
//!
//! The papers' findings are quoted from their text. Ours are computed from the turns, at the sizes,
//! connections and loads that the papers speak of, and the verdict follows from the figures by a rule; a finding that was
//! not measured there says so, and has no verdict. Why it holds or not is a matter of judgement and is written by people,
//! in the report that is committed.

mod connections;
mod growth;
mod inside;
mod jaws;
mod ours;
mod small;
mod table;
#[cfg(test)]
mod tests;

use crate::results::Results;
use crate::stats::{Ratio, Verdict};
use crate::summary::Summary;

pub(super) use ours::{own, production};
use table::FINDINGS;

/// One of the papers' findings.
struct Finding {
    paper: &'static str,
    source: &'static str,
    /// The measurement that decides.
    run: &'static str,
    rule: Rule,
}

/// How a finding is judged.
enum Rule {
    /// By the figures.
    Figures(fn(&Results, &Summary) -> Said),
    /// Nobody can measure it any more, or not on a machine like this; and why.
    NotToday(&'static str),
}

/// Our finding, in words; or the measurement that it lacks.
type Said = Result<(String, Holds), &'static str>;

/// Does it still hold?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Yes,
    No,
    Partly,
}

impl Holds {
    /// Whether all of them hold, some of them, or none.
    fn all_of(hold: &[bool]) -> Self {
        match (hold.contains(&true), hold.contains(&false)) {
            (true, false) => Self::Yes,
            (true, true) => Self::Partly,
            _ => Self::No,
        }
    }

    /// A gain that the papers give as a number: it holds between half of it and one and a half, in part when it is a gain
    /// of another size.
    fn gain(ratio: &Ratio, papers: f64) -> Self {
        let gained = ratio.spread.median - 1.0;
        match ratio.verdict {
            Verdict::More if (papers * HALF..=papers * (1.0 + HALF)).contains(&gained) => Self::Yes,
            Verdict::More => Self::Partly,
            _ => Self::No,
        }
    }
}

/// The papers say "about": so much of their number is enough.
const ABOUT: f64 = 0.9;
/// So far a gain may be from the papers', as a share of it.
const HALF: f64 = 0.5;

/// As a section of Markdown; empty when nothing was measured that any finding is about.
pub(super) fn markdown(results: &Results, summary: &Summary) -> String {
    let rows = rows(results, summary);
    if rows.is_empty() {
        return String::new();
    }
    let head = HEAD.join(" | ");
    let mut text =
        format!("\n{HEADING}\n\n{}\n\n| {head} |\n|---|---|---|---|---|---|\n", count(&rows));
    text.extend(rows.iter().map(|row| format!("| {} |\n", row.join(" | "))));
    text
}

/// As a section of the page.
pub(super) fn html(results: &Results, summary: &Summary) -> String {
    let rows = rows(results, summary);
    if rows.is_empty() {
        return String::new();
    }
    let table = super::html::sentences(&HEAD.map(str::to_owned), &rows);
    format!("<h2>The papers' findings and ours</h2>\n<p>{}</p>\n{table}", count(&rows))
}

const HEADING: &str = "## The papers' findings and ours";
const HEAD: [&str; 6] = ["", "the papers", "source", "measured by", "here", "verdict"];
/// The verdicts, and the state of a finding that has none yet.
const VERDICTS: [&str; 5] =
    ["holds", "holds in part", "does not hold", "not possible today", "not measured yet"];

/// How many rows have each verdict.
fn count(rows: &[Vec<String>]) -> String {
    let of = |verdict: &&str| rows.iter().filter(|row| row[5] == **verdict).count();
    let counts = VERDICTS.iter().map(|verdict| format!("{} {verdict}", of(verdict)));
    format!("Of {} findings: {}.", rows.len(), counts.collect::<Vec<_>>().join(", "))
}

fn rows(results: &Results, summary: &Summary) -> Vec<Vec<String>> {
    let said: Vec<Option<Said>> = FINDINGS
        .iter()
        .map(|one| match one.rule {
            Rule::Figures(rule) => Some(rule(results, summary)),
            Rule::NotToday(_) => None,
        })
        .collect();
    if !said.iter().flatten().any(Result::is_ok) {
        return Vec::new();
    }
    let numbered = (1..).zip(FINDINGS.iter().zip(said));
    numbered.map(|(number, (finding, said))| row(number, finding, said)).collect()
}

fn row(number: usize, finding: &Finding, said: Option<Said>) -> Vec<String> {
    let [holds, partly, no, not_today, open] = VERDICTS;
    let (words, verdict) = match (said, &finding.rule) {
        (Some(Ok((words, Holds::Yes))), _) => (words, holds),
        (Some(Ok((words, Holds::Partly))), _) => (words, partly),
        (Some(Ok((words, Holds::No))), _) => (words, no),
        (Some(Err(lacking)), _) => (format!("it takes {lacking}"), open),
        (None, Rule::NotToday(why)) => ((*why).to_owned(), not_today),
        (None, Rule::Figures(_)) => (String::new(), open),
    };
    let cells = [finding.paper, finding.source, finding.run, &words, verdict];
    std::iter::once(number.to_string()).chain(cells.map(str::to_owned)).collect()
}
