//! The text of an explanation: rows of a name and a fact.

use std::fmt::Write as _;

use afpa_config::{Loaded, Routes};

/// The text of the explanation so far.
pub(super) struct Told<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) routes: &'a Routes,
    pub(super) text: String,
}

impl Told<'_> {
    pub(super) fn row(&mut self, name: &str, fact: &str) {
        let _ = writeln!(self.text, "{name:<12} {fact}");
    }
}
