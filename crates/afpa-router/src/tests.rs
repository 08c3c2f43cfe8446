//! The router against the paper's examples, a naive reader of the same table, and a count of its work.

pub(crate) mod build;
mod cost;
mod naive;
mod paper;
