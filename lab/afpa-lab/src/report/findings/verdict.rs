//! A finding, its rule, and what a rule can say.

use crate::results::Results;
use crate::stats::{Ratio, Verdict};
use crate::summary::Summary;

/// One of the papers' findings.
pub(super) struct Finding {
    pub(super) paper: &'static str,
    pub(super) source: &'static str,
    /// The measurement that decides.
    pub(super) run: &'static str,
    pub(super) rule: Rule,
}

/// How a finding is judged.
pub(super) enum Rule {
    /// By the figures.
    Figures(fn(&Results, &Summary) -> Said),
    /// Nobody can measure it any more, or not on a machine like this; and why.
    NotToday(&'static str),
}

/// Our finding, in words; or the measurement that it lacks.
pub(super) type Said = Result<(String, Holds), &'static str>;

/// Does it still hold?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    No,
    Partly,
}

impl Holds {
    /// Whether all of them hold, some of them, or none.
    pub(super) fn all_of(hold: &[bool]) -> Self {
        match (hold.contains(&true), hold.contains(&false)) {
            (true, false) => Self::Yes,
            (true, true) => Self::Partly,
            _ => Self::No,
        }
    }

    /// A gain that the papers give as a number: it holds between half of it and one and a half, in part when it is a gain
    /// of another size.
    pub(super) fn gain(ratio: &Ratio, papers: f64) -> Self {
        let gained = ratio.spread.median - 1.0;
        match ratio.verdict {
            Verdict::More if (papers * HALF..=papers * (1.0 + HALF)).contains(&gained) => Self::Yes,
            Verdict::More => Self::Partly,
            _ => Self::No,
        }
    }
}

/// The papers say "about": so much of their number is enough.
pub(super) const ABOUT: f64 = 0.9;
/// So far a gain may be from the papers', as a share of it.
pub(super) const HALF: f64 = 0.5;
