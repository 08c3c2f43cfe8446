//! The papers' findings beside ours, each with the figures that speak for or against it.
//!
//! The papers' findings are quoted from their text. Ours are computed from the turns, at the sizes,
//! connections and loads that the papers speak of; a finding that was not measured there says so.
//! Why it holds or not is a matter of judgement and is written by people, in the report that is
//! committed.

mod growth;
mod jaws;
mod ours;
#[cfg(test)]
mod tests;

use crate::results::Results;
use crate::summary::Summary;

use growth::{connections, large_files, zero_copy};
use jaws::{crossover, optimisations, pool_sizes};
use ours::{best_user_mode, howl, interrupt_over_thread, prefork_is_slowest, proxy};

/// One of the papers' findings.
struct Finding {
    paper: &'static str,
    source: &'static str,
    ours: fn(&Results, &Summary) -> Said,
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

/// The papers say "about": so much of their number is enough.
const ABOUT: f64 = 0.9;

const FINDINGS: &[Finding] = &[
    Finding {
        paper: "Serving in the software interrupt is about three times as fast as the best \
                user-mode server on SPECweb96 (AFPA 10,269, Zeus 2,843 requests/s; 3.5 times IIS).",
        source: "USENIX 2001, 5.1",
        ours: |results, summary| best_user_mode(results, summary, "specweb96", 3.0),
    },
    Finding {
        paper: "For 64-byte files it is more than three times as fast (IIS 3.27 times slower).",
        source: "USENIX 2001, 5.2",
        ours: |results, summary| best_user_mode(results, summary, "webstone-64", 3.0),
    },
    Finding {
        paper: "For 128 KB and more, the fastest user-mode server is as good as the kernel.",
        source: "USENIX 2001, 5.2",
        ours: large_files,
    },
    Finding {
        paper: "The software interrupt is 12 % faster than kernel threads with the same code \
                (here: than the same program in user mode), for 64-byte files.",
        source: "USENIX 2001, 5.2",
        ours: interrupt_over_thread,
    },
    Finding {
        paper: "Howl, the ceiling of user mode (accept, read, write, close), is only 32 % faster \
                than Zeus for 64-byte files.",
        source: "USENIX 2001, 5.3",
        ours: howl,
    },
    Finding {
        paper: "Pre-forked processes (Apache) are the slowest architecture.",
        source: "USENIX 2001, 5.1; JAWS, 2.3",
        ours: prefork_is_slowest,
    },
    Finding {
        paper: "Not copying is worth 25 % at 4 KB and 111 % at 32 KB.",
        source: "USENIX 2001, zero copy TCP send",
        ours: zero_copy,
    },
    Finding {
        paper: "The proxy passes on 3,128 requests of 102 bytes a second on one processor, a quarter of \
                what the cache answers (12,522 of 64 bytes), each on a connection of its own.",
        source: "AFPA 2001, table 1",
        ours: |_, summary| proxy(summary),
    },
    Finding {
        paper: "Cached heads, lazy date and gather-write together gain 65 %.",
        source: "JAWS, 3.2.2",
        ours: |_, summary| optimisations(summary),
    },
    Finding {
        paper: "The size of a thread pool hardly matters, as long as it is more than one.",
        source: "JAWS, 3.2.3",
        ours: |_, summary| pool_sizes(summary),
    },
    Finding {
        paper: "Of 1 to 42 clients, at higher loads a thread for each request beats the thread pool.",
        source: "JAWS, 3.2.3",
        ours: |_, summary| crossover(summary),
    },
    Finding {
        paper: "A packet costs TCP 157 % more cycles over 2,048 connections than over 4, for their state \
                no longer fits the cache.",
        source: "FreeBSD, 5.2",
        ours: |_, summary| connections(summary),
    },
];

/// As a section of Markdown; empty when nothing was measured that any finding is about.
pub(super) fn markdown(results: &Results, summary: &Summary) -> String {
    let rows = rows(results, summary);
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "\n## The papers' findings and ours\n\n| the papers | source | here | holds |\n\
                    |---|---|---|---|\n"
        .to_owned();
    text.extend(rows.iter().map(|row| format!("| {} |\n", row.join(" | "))));
    text
}

/// As a section of the page.
pub(super) fn html(results: &Results, summary: &Summary) -> String {
    let rows = rows(results, summary);
    if rows.is_empty() {
        return String::new();
    }
    let head = ["the papers", "source", "here", "holds"].map(str::to_owned);
    let table = super::html::sentences(&head, &rows);
    format!("<h2>The papers' findings and ours</h2>\n{table}")
}

fn rows(results: &Results, summary: &Summary) -> Vec<Vec<String>> {
    let said: Vec<Said> = FINDINGS.iter().map(|one| (one.ours)(results, summary)).collect();
    if said.iter().all(Result::is_err) {
        return Vec::new();
    }
    FINDINGS.iter().zip(said).map(|(finding, said)| row(finding, said)).collect()
}

fn row(finding: &Finding, said: Said) -> Vec<String> {
    let (words, holds) = match said {
        Ok((words, Holds::Yes)) => (words, "yes"),
        Ok((words, Holds::No)) => (words, "no"),
        Ok((words, Holds::Partly)) => (words, "in part"),
        Err(lacking) => (format!("it takes {lacking}"), "not measured"),
    };
    vec![finding.paper.into(), finding.source.into(), words, holds.into()]
}
