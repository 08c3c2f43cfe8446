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
mod path;
mod scan;
mod text;
mod time;

use document::Expansion;

/// The documents that a page may include.
pub trait Files {
    /// The document at a normalised URL path. `most`: how many bytes of content are of any use.
    ///
    /// # Errors
    /// [`Unreadable`] if nobody gets it, or it is longer.
    fn read(&mut self, path: &[u8], most: usize) -> Result<Document, Unreadable>;

    /// Length and time of the document at a normalised URL path.
    ///
    /// # Errors
    /// [`Unreadable`] if nobody gets it.
    fn look(&mut self, path: &[u8]) -> Result<Facts, Unreadable>;
}

/// A document that is included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its bytes.
    pub content: Vec<u8>,
    /// The URL path of the file: that of the index file, if a directory was asked for.
    pub path: Vec<u8>,
    /// Whether it has elements of its own that are to be expanded.
    pub has_elements: bool,
}

/// The facts about a file that are known without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Length in bytes.
    pub size: u64,
    /// Seconds since 1970.
    pub modified: u64,
}

/// A document that cannot be included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// There is no such file below the document root, or it may not be read.
    #[error("there is no such file")]
    Missing,
    /// It is longer than it may be.
    #[error("the file is too long")]
    TooLong,
    /// It changed while it was being read: the whole page has to be made again.
    #[error("the file changed while it was being read")]
    Changed,
}

/// The page that is expanded.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The URL path of its file, normalised.
    pub path: &'a [u8],
    /// Its bytes.
    pub content: &'a [u8],
    /// When it was last modified, in seconds since 1970.
    pub modified: u64,
    /// The present, in seconds since 1970.
    pub now: u64,
}

/// How much work a page may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the expanded page.
    pub size: usize,
    /// Documents within one another.
    pub depth: usize,
    /// Documents that are included, all together.
    pub includes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { size: 1 << 20, depth: 16, includes: 1000 }
    }
}

/// A page whose elements were expanded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expanded {
    /// Its bytes.
    pub content: Vec<u8>,
    /// Whether it shows the present time, and would be another page a second later.
    pub shows_time: bool,
    /// The faults in it, for its author; only the first ones.
    pub faults: Vec<Fault>,
}

/// An element that did not do what its author wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The document with the element.
    pub path: Vec<u8>,
    /// The line of the element's end in it, from 1.
    pub line: usize,
    /// A description of the fault.
    pub cause: String,
}

/// Why a page cannot be expanded at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The expanded page would be too long, or too much work.
    #[error("the expanded page is too long, or too much work")]
    TooMuch,
    /// A file changed while it was read.
    #[error("a file changed while it was being read")]
    Changed,
}

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
