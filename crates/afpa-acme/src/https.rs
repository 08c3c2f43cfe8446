//! HTTP/1.1 over TLS to the authority. The client that instant-acme brings speaks HTTP/2 as well, which would be a megabyte
//! of the program for some requests a month.

use std::io;
use std::path::Path;
use std::pin::Pin;

use bytes::Bytes;
use http::Request;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// Keeps connections to the authority for as long as it exists.
pub(crate) struct Https(Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>);

impl Https {
    /// With the authorities that certify the host: those of a file, or those that the system trusts.
    pub(crate) fn new(trusted: Option<&Path>) -> Result<Self, Error> {
        let builder = HttpsConnectorBuilder::new();
        let builder = match trusted {
            Some(path) => builder.with_tls_config(
                ClientConfig::builder()
                    .with_root_certificates(authorities(path).map_err(other)?)
                    .with_no_client_auth(),
            ),
            None => builder.with_native_roots().map_err(other)?,
        };
        let connector = builder.https_only().enable_http1().build();
        Ok(Self(Client::builder(TokioExecutor::new()).build(connector)))
    }
}

impl HttpClient for Https {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let answer = self.0.request(request);
        Box::pin(async move { Ok(BytesResponse::from(answer.await.map_err(other)?)) })
    }
}

fn authorities(path: &Path) -> io::Result<RootCertStore> {
    let fault = |why: String| io::Error::other(format!("{}: {why}", path.display()));
    let mut authorities = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_file_iter(path).map_err(|error| fault(error.to_string()))?
    {
        let certificate = certificate.map_err(|error| fault(error.to_string()))?;
        authorities.add(certificate).map_err(|error| fault(error.to_string()))?;
    }
    if authorities.is_empty() {
        return Err(fault("no certificate is in it".to_owned()));
    }
    Ok(authorities)
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Other(Box::new(error))
}
