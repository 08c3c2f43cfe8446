//! The settings of a client, that is, of AFPA towards the servers behind it.

use std::fmt;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::certificate::{Certificate, read_chain, read_key};
use crate::profile::Profile;
use crate::server::{SettingsError, read_roots};

/// The settings of a client: the authorities that it trusts, its own certificate, and its offer.
#[derive(Clone, Debug, Default)]
pub struct ClientSettings {
    /// Versions and cipher suites.
    pub profile: Profile,
    /// The authorities that it trusts.
    pub verify: Verify,
    /// Its own certificate and key in PEM, for servers that ask for one.
    pub own: Option<(Vec<u8>, Vec<u8>)>,
    /// The protocols that it offers by ALPN.
    pub protocols: Vec<Vec<u8>>,
}

/// Which authorities a server's certificate may come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// The authorities that the system trusts.
    #[default]
    System,
    /// These, and no others.
    Authorities(Vec<CertificateDer<'static>>),
}

/// The settings and the sessions that the connections to a server group share.
#[derive(Clone)]
pub struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// Puts the settings together. `system` are the certificates that the system trusts.
    ///
    /// # Errors
    /// When a certificate or the key cannot be used.
    pub fn new(
        settings: &ClientSettings,
        system: &[CertificateDer<'static>],
    ) -> Result<Self, SettingsError> {
        let roots = match &settings.verify {
            Verify::Authorities(roots) => read_roots(roots)?,
            Verify::System => {
                // Some systems trust certificates that cannot be parsed any more.
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(system.iter().cloned());
                roots
            }
        };
        let wrong = |error: rustls::Error| SettingsError::from(error.to_string());
        let provider = Arc::new(settings.profile.provider(true));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(settings.profile.versions())
            .map_err(wrong)?
            .with_root_certificates(roots);
        let mut config = match &settings.own {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                // This names a fault better than the builder below.
                Certificate::read(chain, key, None)
                    .map_err(|e| SettingsError::from(e.to_string()))?;
                let parts = read_chain(chain).and_then(|chain| Ok((chain, read_key(key)?)));
                let (chain, key) = parts.map_err(|e| SettingsError::from(e.to_string()))?;
                builder.with_client_auth_cert(chain, key).map_err(wrong)?
            }
        };
        config.alpn_protocols.clone_from(&settings.protocols);
        Ok(Self(Arc::new(config)))
    }

    /// Those of a client that knows the other side by its key.
    pub(crate) fn of_shared_key(config: ClientConfig) -> Self {
        Self(Arc::new(config))
    }

    pub(crate) fn config(&self) -> &Arc<ClientConfig> {
        &self.0
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls")
    }
}

impl PartialEq for ClientTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ClientTls {}
