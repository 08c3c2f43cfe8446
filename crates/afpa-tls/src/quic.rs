//! TLS for QUIC (RFC 9001): the same certificates, groups, authorities of clients and keys of tickets, and the suites of
//! TLS 1.3 with the headers and packets of QUIC. Records are not QUIC's, so the machine is not needed.

use std::sync::Arc;

use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::crypto::{ServerConfig, Session};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite as suite;
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::certificate::subject;
use crate::greeting::ListenerTls;
use crate::machine::{EarlyData, Facts};
use crate::server::{ServerTls, SettingsError};

/// HTTP/3 in ALPN (RFC 9114 section 3.1).
pub const PROTOCOL: &[u8] = b"h3";

/// The settings of a listener for QUIC.
#[derive(Clone)]
pub struct QuicTls {
    tls: ServerTls,
    config: Arc<QuicServerConfig>,
}

impl QuicTls {
    /// The settings; `None`: the name that a client asks for decides about them, and its first packet is not read for that.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub fn of(listener: &ListenerTls) -> Result<Option<Self>, SettingsError> {
        let Some(tls) = listener.same_for_all() else { return Ok(None) };
        let provider = CryptoProvider {
            cipher_suites: vec![
                suite::TLS13_AES_128_GCM_SHA256,
                suite::TLS13_AES_256_GCM_SHA384,
                suite::TLS13_CHACHA20_POLY1305_SHA256,
            ],
            ..tls.provider()
        };
        let change = |settings: &mut crate::ServerSettings| {
            settings.profile = crate::Profile::Modern;
            settings.protocols = vec![PROTOCOL.to_vec()];
            settings.early_data = None;
        };
        let config = tls.again(change, provider)?;
        let config = QuicServerConfig::try_from(config)
            .map_err(|error| SettingsError::from(error.to_string()))?;
        Ok(Some(Self { tls: tls.clone(), config: Arc::new(config) }))
    }

    /// For the transport.
    pub fn crypto(&self) -> Arc<dyn ServerConfig> {
        Arc::<QuicServerConfig>::clone(&self.config)
    }

    /// The results of a handshake, whose suite the transport does not tell; `None`: the certificate of the client is not
    /// valid any more, as that of a session that was resumed may be.
    pub fn facts(&self, session: &dyn Session) -> Option<Facts> {
        let chain = session.peer_identity();
        let chain = chain.and_then(|chain| chain.downcast::<Vec<CertificateDer<'static>>>().ok());
        if let Some(chain) = &chain {
            self.tls.verify(chain, UnixTime::now()).ok()?;
        }
        let peer = chain.as_ref().and_then(|chain| chain.first());
        Some(Facts {
            version: "TLSv1.3",
            cipher: "unknown",
            resumed: false,
            protocol: Some(PROTOCOL.into()),
            peer: peer.and_then(|peer| subject(peer)).map(Into::into),
            authorities: self.tls.authorities(),
            early_data: EarlyData::None,
        })
    }
}

impl std::fmt::Debug for QuicTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QuicTls")
    }
}
