//! The open files behind an object.

use afpa_cache::Coverage;
use afpa_cache::root::OpenFile;
use afpa_http::Coding;

use crate::header::HttpHeader;

/// The open files behind an object.
pub(super) struct Sources {
    /// Path of the file as a URL has it: below the document root, or below the home of a user.
    pub(super) path: Vec<u8>,
    /// The file.
    pub(super) file: OpenFile,
    /// Its siblings in other codings.
    pub(super) stored: Vec<(Coding, OpenFile)>,
    /// Whether a watch reports every change of these files.
    pub(super) coverage: Coverage,
}

impl Sources {
    /// Whether an object was made from the same versions of these files.
    pub(super) fn are_those_of(&self, header: &HttpHeader) -> bool {
        let same = |coding, file: &OpenFile| {
            header.variant(coding).is_some_and(|variant| variant.stamp == file.stamp)
        };
        let stored = |coding| self.stored.iter().any(|(known, _)| *known == coding);
        // A page with includes is not compared: it is expanded again.
        let expanded = header.variant(Coding::Identity).is_none_or(|own| own.digest.is_some());
        !expanded
            && same(Coding::Identity, &self.file)
            && self.stored.iter().all(|(coding, file)| same(*coding, file))
            && header.stored().all(stored)
    }
}
