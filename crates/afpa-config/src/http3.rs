//! `[http3]`: whether HTTP/3 is spoken.

use std::path::PathBuf;

use crate::reader::Section;

/// Whether HTTP/3 is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http3 {
    /// On UDP at the addresses of listeners with TLS.
    pub enabled: bool,
    /// A file with the key of connection ids, tokens and resets; `None`: AFPA makes one.
    pub key: Option<PathBuf>,
}

impl Http3 {
    pub(crate) fn read(mut s: Section<'_, '_>) -> Self {
        Self { enabled: s.flag("enabled", false), key: s.optional_path("key") }
    }
}
