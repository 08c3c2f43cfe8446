//! Server-side includes, as Apache's mod_include has them: `<!--#include virtual="/menu.html" -->` and its kin.
//!
//! [`expand`] takes a page and gives the expanded page. It reads no file itself: included documents come from
//! [`Files`], so that the caller can note the files that the page depends on. No clock is read either, and work is
//! bounded by [`Limits`].
//!
//! | element | attributes |
//! |---|---|
//! | `config` | `errmsg`, `echomsg`, `timefmt`, `sizefmt` |
//! | `echo` | `encoding` (`none`, `url`, `entity`), `var` |
//! | `set` | `var`, `value` |
//! | `include` | `virtual`, `file` |
//! | `fsize`, `flastmod` | `virtual`, `file` |
//! | `if`, `elif` | `expr`: see [`expression`] |
//! | `else`, `endif` | |
//!
//! Left out are `exec` and `printenv`, and every variable of the request: a page is the same for everybody. The
//! elements are errors of the page, and the variables have no value, as in Apache where they are switched off. Times
//! are in UTC. Where Apache's manual leaves something open, its source decided (`tests/tests/files/includes_beside.rs`
//! asks both).
#![forbid(unsafe_code)]

mod directive;
mod document;
mod environment;
pub mod expression;
mod files;
mod page;
mod path;
mod scan;
mod text;
mod time;

pub use files::{Document, Facts, Files, Unreadable};
pub use page::{ExpandError, Expanded, Fault, Limits, Page};

use document::Expansion;

/// Expands the elements of a page, and of the documents that it includes.
///
/// # Errors
/// [`ExpandError`]. Faults of elements are none: in their place the page has the message of `config errmsg`.
pub fn expand(
    page: &Page<'_>,
    files: &mut dyn Files,
    limits: &Limits,
) -> Result<Expanded, ExpandError> {
    Expansion::new(page, files, limits).run(page)
}

#[cfg(test)]
mod tests;
