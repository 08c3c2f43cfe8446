//! The TLS settings of a client: one certificate, one group, no session that is resumed.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use quinn_proto::ClientConfig;
use quinn_proto::crypto::rustls::QuicClientConfig;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{RootCertStore, version};

/// Takes this certificate and no other, and offers one group.
pub(super) fn config(certificate: &[u8], post_quantum: bool) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.to_vec())).context("the server's certificate")?;
    let group = if post_quantum { kx_group::X25519MLKEM768 } else { kx_group::X25519 };
    let provider = CryptoProvider {
        cipher_suites: vec![cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![group],
        ..default_provider()
    };
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    tls.resumption = Resumption::disabled();
    Ok(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)))
}

/// The first certificate of a file in PEM.
pub(super) fn certificate_of(file: &Path) -> Result<Vec<u8>> {
    let found = CertificateDer::from_pem_file(file);
    let found = found.with_context(|| format!("no certificate in {}", file.display()))?;
    Ok(found.to_vec())
}
