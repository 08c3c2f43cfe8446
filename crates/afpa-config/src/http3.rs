//! `[http3]`: whether HTTP/3 is spoken, and how clients learn of it.

use afpa_http::edits::{Change, FieldRule};

use crate::model::SiteSettings;
use crate::reader::Section;
use crate::units::Listen;

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

    /// Tells the clients of a site by a field of its answers (RFC 9114 section 3.1.1), before the site's own rules, which
    /// may change or remove it. It names a port of its own, and the host stays.
    pub(crate) fn announce(self, site: &mut SiteSettings) {
        let port = site.tls.iter().find_map(|listen| match listen {
            Listen::Tcp(address) if address.port() != 0 => Some(address.port()),
            Listen::Tcp(_) | Listen::Unix(_) => None,
        });
        let Some(port) = port.filter(|_| self.enabled) else { return };
        let set = vec![("Alt-Svc".to_owned(), format!("h3=\":{port}\"; ma=86400"))];
        let answer = Change { set, ..Change::default() };
        site.alternative = Some(FieldRule { answer, ..FieldRule::default() });
    }
}
