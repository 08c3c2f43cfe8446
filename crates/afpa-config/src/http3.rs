//! `[http3]`: whether HTTP/3 is spoken, and where.

use std::path::PathBuf;

use crate::reader::Section;
use crate::units::Listen;

/// Whether HTTP/3 is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http3 {
    /// On UDP at the addresses of listeners with TLS.
    pub enabled: bool,
    /// The configuration says so: an address that cannot be had is an error then.
    pub is_demanded: bool,
    /// A file with the key of connection ids, tokens and resets; `None`: AFPA makes one.
    pub key: Option<PathBuf>,
    /// Addresses with TLS where it is not spoken all the same.
    pub silent: Vec<Listen>,
}

impl Http3 {
    pub(crate) fn read(mut s: Section<'_, '_>) -> Self {
        Self {
            enabled: s.flag("enabled", true),
            is_demanded: false,
            key: s.optional_path("key"),
            silent: Vec::new(),
        }
    }

    /// Whether its sockets are bound at an address with TLS.
    pub fn is_bound_at(&self, listen: &Listen) -> bool {
        self.enabled && (self.is_demanded || !self.silent.contains(listen))
    }
}
