//! A page before and after its expansion.

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
