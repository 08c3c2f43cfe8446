//! The documents that a page may include, and the facts about them.

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
