//! The common part of three benches: `afpa-lab fast-path`, `afpa-lab proxy`, `afpa-lab compare`.
//!
//! A bench is a table of [`Case`]s. [`Bench`] measures each case for each of its servers once a round,
//! and the order of the servers rotates. Each measurement is a [`Sample`]; [`Samples`] does the
//! arithmetic: medians, spreads, and ratios taken round by round. [`Report`] becomes Markdown, and
//! [`crate::figures::Panels`] draws the bars.

mod case;
mod fetch;
mod report;
mod rounds;
mod sample;
mod samples;

pub use case::{Case, CaseBed, Method, TcLoad};
pub use fetch::{ask, fetch, fetch_head};
pub use report::{Align, Report, Table, count, each_once, new_folder, percent, short, times};
pub use rounds::{Bench, Settings};
#[cfg(test)]
pub(crate) use sample::tests::sample;
pub use sample::{Metric, Sample};
pub use samples::Samples;
