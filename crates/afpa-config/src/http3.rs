//! `[http3]`: whether HTTP/3 is spoken, and where.

use std::io;
use std::path::PathBuf;

use afpa_tls::quic::Secret;
use thiserror::Error;

use crate::reader::Section;
use crate::units::Listen;

/// Why the file of the key cannot be used.
#[derive(Debug, Error)]
#[error("{cause}: {remedy}")]
pub struct KeyError {
    pub(crate) cause: String,
    pub(crate) remedy: String,
    /// A start as root may read it.
    pub(crate) is_denied: bool,
}

impl KeyError {
    /// Whether this user may not read it, and a start as root may.
    pub fn is_denied(&self) -> bool {
        self.is_denied
    }
}

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

    /// The key in its file; `None`: AFPA makes one, or HTTP/3 is not spoken.
    ///
    /// # Errors
    /// When the file cannot be read, or has no key.
    pub fn secret(&self) -> Result<Option<Secret>, KeyError> {
        let Some(path) = self.key.as_deref().filter(|_| self.enabled) else { return Ok(None) };
        let said = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| KeyError {
            cause: format!("cannot read the key of HTTP/3 in {said}: {error}"),
            remedy: "correct the path, or make a key by `openssl rand -hex 32`".to_owned(),
            is_denied: error.kind() == io::ErrorKind::PermissionDenied,
        })?;
        let none = || KeyError {
            cause: format!("{said} has no key of 64 hexadecimal digits in its first line"),
            remedy: "make one by `openssl rand -hex 32`".to_owned(),
            is_denied: false,
        };
        Secret::parse(&text).map(Some).ok_or_else(none)
    }

    /// Whether its sockets are bound at an address with TLS.
    pub fn is_bound_at(&self, listen: &Listen) -> bool {
        self.enabled && (self.is_demanded || !self.silent.contains(listen))
    }
}
