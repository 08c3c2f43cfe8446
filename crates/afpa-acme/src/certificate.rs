//! The fields of a certificate that the manager needs.

use instant_acme::CertificateIdentifier;
use rustls_pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::prelude::X509Certificate;

use crate::due::Lifetime;

/// The names, lifetime and identifier of the first certificate of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The names that it covers, in lower case.
    pub names: Vec<String>,
    /// From when to when it is valid.
    pub lifetime: Lifetime,
    /// The identifier for renewal information (RFC 9773 section 4.1); `None` if the certificate names no issuer.
    pub(crate) identifier: Option<CertificateIdentifier<'static>>,
}

impl Facts {
    /// Reads the first certificate of a chain in PEM. Keys may stand between the certificates.
    ///
    /// # Errors
    /// With the fault, in words.
    pub fn read(pem: &[u8]) -> Result<Self, String> {
        let found = Pem::iter_from_buffer(pem)
            .filter_map(Result::ok)
            .find(|block| block.label == "CERTIFICATE")
            .ok_or("there is no certificate in it")?;
        let certificate = found.parse_x509().map_err(|error| error.to_string())?;
        let validity = certificate.validity();
        let seconds = |time: x509_parser::time::ASN1Time| time.timestamp().max(0) as u64;
        Ok(Self {
            names: names(&certificate),
            lifetime: Lifetime {
                not_before: seconds(validity.not_before),
                not_after: seconds(validity.not_after),
            },
            identifier: CertificateIdentifier::try_from(&CertificateDer::from(&*found.contents))
                .ok()
                .map(CertificateIdentifier::into_owned),
        })
    }

    /// Whether it covers just these names, in any order.
    pub fn is_for(&self, wanted: &[String]) -> bool {
        let covers = |name: &String| self.names.contains(&name.to_ascii_lowercase());
        wanted.iter().all(covers) && self.names.len() == wanted.len()
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(alternative)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = alternative.value.general_names.iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}
