//! Self-check: one in many of the kernel's answers is compared with the answer that the server gives at that moment.
//!
//! The programs copy a sampled answer as it leaves, with its request ([`afpa_bpf::Samples`]). A thread asks
//! the server the same ([`ask`]), on a connection that the programs leave to user mode, and compares the two
//! byte by byte, `Date` and `Age` aside ([`compare`]). An object may change between the two answers. So a difference
//! counts only if the kernel still gives the same version after everything has had time to settle, and the
//! server still says something else ([`judge`]).
//!
//! Answers of several segments are not sampled.
#![forbid(unsafe_code)]

mod ask;
mod compare;
mod judge;
mod thread;

pub use compare::Difference;
pub use judge::{Question, Verdict, judge};
pub use thread::{Checked, SelfCheck, SelfCheckCounts, SelfCheckSettings};
