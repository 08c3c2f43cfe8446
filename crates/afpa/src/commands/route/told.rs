//! The text of an explanation, and the look at the router that it explains.

use std::fmt::Write as _;
use std::net::IpAddr;

use afpa_config::{Loaded, Routes};
use afpa_router::Question;

/// The text of the explanation so far: rows of a name and a fact.
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

/// The fields of a request and the address of its client, if they are given.
pub(super) type Sender<'q> = (&'q [(String, String)], Option<IpAddr>);

/// One look at the router.
pub(super) struct Look<'q> {
    pub(super) question: Question<'q, Sender<'q>>,
    /// The method as it was written.
    pub(super) method: &'q str,
    /// The path as servers get it.
    pub(super) spelled: &'q [u8],
    /// The target is that of the URL, and not of a rewrite.
    pub(super) is_first: bool,
    /// A row says already that the kernel never answers: not everybody may use the path, or requests for it are counted.
    pub(super) guarded: bool,
}
