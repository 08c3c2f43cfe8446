//! The papers' findings beside ours, each with the figures that speak for or against it.
//!
//! What the papers found is quoted from their text. What we find is computed from the turns; a
//! finding whose points were not measured is left out. Why it holds or not is a matter of judgement
//! and is written by people, in the report that is committed.

mod ours;

use crate::results::Results;
use crate::summary::Summary;

use ours::{
    best_user_mode, connections, howl, interrupt_over_thread, large_files, pair,
    prefork_is_slowest, proxy, zero_copy,
};

/// One of the papers' findings.
struct Finding {
    paper: &'static str,
    source: &'static str,
    ours: fn(&Results, &Summary) -> Option<(String, Holds)>,
}

/// Does it still hold?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Yes,
    No,
    Partly,
}

const FINDINGS: &[Finding] = &[
    Finding {
        paper: "Serving in the software interrupt is about three times as fast as the best \
                user-mode server on SPECweb96 (AFPA 10,269, Zeus 2,843 requests/s; 3.5 times IIS).",
        source: "USENIX 2001, 5.1",
        ours: |results, summary| best_user_mode(results, summary, "specweb96", 2.0),
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
        ours: |_, summary| {
            let with = "thread-pool";
            let without =
                "thread-pool:without=cached-headers:without=lazy-date:without=gather-write";
            pair(summary, with, without, "all three switched off")
        },
    },
    Finding {
        paper: "The size of a thread pool hardly matters, as long as it is more than one.",
        source: "JAWS, 3.2.3",
        ours: |_, summary| pair(summary, "thread-pool", "thread-pool:pool=6", "a pool of 6"),
    },
    Finding {
        paper: "At higher loads a thread for each request beats the thread pool.",
        source: "JAWS, 3.2.3",
        ours: |_, summary| pair(summary, "thread-per-request", "thread-pool", "the thread pool"),
    },
    Finding {
        paper: "A packet costs TCP 157 % more cycles over 2,048 connections than over 4, for their state \
                no longer fits the cache.",
        source: "FreeBSD, 5.2",
        ours: |_, summary| connections(summary),
    },
];

/// As a section of Markdown; empty when nothing was measured that a finding is about.
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
    let row = |finding: &Finding| {
        let (words, holds) = (finding.ours)(results, summary)?;
        let holds = match holds {
            Holds::Yes => "yes",
            Holds::No => "no",
            Holds::Partly => "in part",
        };
        Some(vec![finding.paper.into(), finding.source.into(), words, holds.into()])
    };
    FINDINGS.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::results;

    #[test]
    fn only_what_was_measured_is_found() {
        let mut results = results(&[("afpa-kernel", &[900.0; 3]), ("nginx", &[90.0; 3])]);
        assert!(rows(&results, &Summary::of(&results)).is_empty());
        for turn in &mut results.turns {
            turn.point.workload = "webstone-64".into();
        }
        let found = rows(&results, &Summary::of(&results));
        assert_eq!(found.len(), 1);
        assert!(
            found[0][2]
                .contains("afpa-kernel over nginx, the fastest of those that people run: 10.0x")
        );
        assert_eq!(found[0][3], "yes");
    }

    #[test]
    fn strategies_are_compared_where_jaws_did() {
        let figures: [(&str, &[f64]); 2] =
            [("thread-pool", &[100.0; 3]), ("thread-per-request", &[100.0; 3])];
        let mut results = results(&figures);
        for (server, rate) in [("thread-pool", 90.0), ("thread-per-request", 30.0)] {
            let mut turn = crate::summary::tests::turn(server, 1, rate);
            turn.point.workload = "jaws".into();
            turn.point.persistent = false;
            results.turns.push(turn);
        }
        let summary = Summary::of(&results);
        let found = pair(&summary, "thread-per-request", "thread-pool", "the thread pool").unwrap();
        assert_eq!(found.1, Holds::No);
        assert!(found.0.contains("30.0 /s against 90.0 /s, jaws, one request a"), "{}", found.0);
    }

    #[test]
    fn what_connections_cost_is_compared_with_the_usual_number() {
        let mut results = results(&[("nginx", &[100.0; 3]), ("afpa", &[100.0; 3])]);
        assert!(connections(&Summary::of(&results)).is_none());
        for (server, rate) in [("nginx", 50.0), ("afpa", 100.0)] {
            let mut turn = crate::summary::tests::turn(server, 1, rate);
            turn.point.connections = 1024;
            results.turns.push(turn);
        }
        let (words, holds) = connections(&Summary::of(&results)).unwrap();
        assert_eq!(holds, Holds::Partly);
        assert!(words.contains("nginx 2.00x, afpa 1.00x"), "{words}");
    }

    #[test]
    fn a_finding_that_does_not_hold_is_not_said_to() {
        let mut results = results(&[
            ("afpa-kernel", &[900.0; 3]),
            ("apache-prefork", &[90.0; 3]),
            ("nginx", &[80.0; 3]),
            ("h2o", &[890.0; 3]),
        ]);
        for turn in &mut results.turns {
            turn.point.workload = "webstone-64".into();
        }
        let summary = Summary::of(&results);
        let (words, holds) = prefork_is_slowest(&results, &summary).unwrap();
        assert_eq!(holds, Holds::No);
        assert!(words.contains("1 of 3"), "{words}");
        assert_eq!(
            best_user_mode(&results, &summary, "webstone-64", 3.0).unwrap().1,
            Holds::Partly
        );
    }
}
