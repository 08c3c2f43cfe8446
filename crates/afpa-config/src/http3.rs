//! `[http3]`: whether HTTP/3 is spoken.

use crate::reader::Section;

/// Whether HTTP/3 is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http3 {
    /// On UDP at the addresses of listeners with TLS.
    pub enabled: bool,
}

impl Http3 {
    pub(crate) fn read(mut s: Section<'_, '_>) -> Self {
        Self { enabled: s.flag("enabled", false) }
    }
}
