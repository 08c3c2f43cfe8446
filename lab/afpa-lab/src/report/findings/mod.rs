//! The papers' findings beside ours, each with the figures that speak for or against it.
//!
//! The papers' findings are quoted from their text. Ours are computed from the turns, at the sizes,
//! connections and loads that the papers speak of, and the verdict follows from the figures by a rule; a finding that was
//! not measured there says so, and has no verdict. Why it holds or not is a matter of judgement and is written by people,
//! in the report that is committed.

mod connections;
mod frames;
mod growth;
mod inside;
mod jaws;
mod ours;
mod small;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

use crate::results::Results;
use crate::summary::Summary;

pub(super) use ours::{own, production};
use table::FINDINGS;
use verdict::{Finding, Holds, Rule, Said};

/// All rows below their head, and how many have each verdict; `None` when nothing was measured that any finding is about.
pub(super) fn judged(results: &Results, summary: &Summary) -> Option<(String, Vec<Vec<String>>)> {
    let rows = rows(results, summary);
    (!rows.is_empty()).then(|| (count(&rows), rows))
}

pub(super) const HEADING: &str = "The papers' findings and ours";
pub(super) const HEAD: [&str; 6] = ["", "the papers", "source", "measured by", "here", "verdict"];
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
