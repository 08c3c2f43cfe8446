//! Certificates with their keys, as they stand in PEM files (RFC 7468), and their faults.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::InconsistentKeys;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use x509_parser::prelude::*;

/// Why certificate and key cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CertificateError {
    /// The file has no certificate.
    #[error("there is no certificate in it")]
    NoCertificate,
    /// The file is damaged.
    #[error("its PEM is damaged: {0}")]
    Pem(String),
    /// A certificate that is none.
    #[error("certificate {0} in it cannot be read: {1}")]
    Malformed(usize, String),
    /// The file has no key.
    #[error("there is no private key in it")]
    NoKey,
    /// The key is encrypted.
    #[error("its private key is encrypted")]
    EncryptedKey,
    /// The key is of a kind that is not known.
    #[error("its private key cannot be used: {0}")]
    UnusableKey(String),
    /// The key belongs to another certificate.
    #[error("its private key does not fit the first certificate")]
    Mismatch,
    /// The key belongs to a later certificate of the file.
    #[error("its private key fits certificate {0}, not the first one")]
    Order(usize),
    /// The staple is no OCSP response, or one whose status is an error.
    #[error("it is no response of OCSP in DER that says `successful`")]
    Staple,
}

impl CertificateError {
    /// Whether the file of the key is at fault, not that of the certificates.
    pub fn is_of_key(&self) -> bool {
        matches!(self, Self::NoKey | Self::EncryptedKey | Self::UnusableKey(_) | Self::Mismatch)
    }

    /// Whether the file of the staple is at fault.
    pub fn is_of_staple(&self) -> bool {
        matches!(self, Self::Staple)
    }

    /// The advice that follows the error.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoCertificate => "name the file that begins with -----BEGIN CERTIFICATE-----",
            Self::Pem(_) | Self::Malformed(..) => "get the file from the authority again",
            Self::NoKey => "name the file that begins with -----BEGIN PRIVATE KEY-----",
            Self::EncryptedKey => {
                "nobody can type its password at each start: openssl pkey -in KEY -out PLAIN, then chmod 600 PLAIN"
            }
            Self::UnusableKey(_) => {
                "make one: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"
            }
            Self::Mismatch => "name the key that the certificate was requested with",
            Self::Order(_) => {
                "put the server's own certificate first, then those that lead to the authority"
            }
            Self::Staple => {
                "openssl ocsp -respout FILE writes one, if the authority has a responder"
            }
        }
    }
}

/// A flaw of a usable certificate that the operator should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// It has expired, so many seconds ago.
    Expired(i64),
    /// It expires within a week, in so many seconds.
    ExpiresSoon(i64),
    /// It is not valid yet.
    NotYetValid,
    /// A certificate of the chain has not issued the one before it.
    Order(usize),
    /// The issuer of the only certificate is missing.
    Incomplete(String),
    /// It names no host.
    NoNames,
}

/// How long before its end a certificate is worth a remark. Clients of ACME renew at a third of the lifetime.
const SOON: i64 = 7 * 24 * 3600;

/// A certificate with its chain and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    key: Arc<CertifiedKey>,
    names: Vec<Box<str>>,
    addresses: Vec<IpAddr>,
    not_before: i64,
    not_after: i64,
    chain_breaks: Option<usize>,
    missing_issuer: Option<String>,
}

impl Certificate {
    /// Reads a chain, the server's own certificate first, and a key in PKCS#8, PKCS#1 or SEC 1. `staple`: a response
    /// of OCSP in DER (RFC 6960), which is sent as it is.
    ///
    /// # Errors
    /// With the fault; the error tells in which file it is.
    pub fn read(
        chain: &[u8],
        key: &[u8],
        staple: Option<Vec<u8>>,
    ) -> Result<Self, CertificateError> {
        let chain = read_chain(chain)?;
        let key = read_key(key)?;
        let key = any_supported_type(&key)
            .map_err(|error| CertificateError::UnusableKey(error.to_string()))?;
        let mut certified = CertifiedKey::new(chain, key);
        if staple.as_deref().is_some_and(|staple| !is_success(staple)) {
            return Err(CertificateError::Staple);
        }
        certified.ocsp = staple;
        if certified.keys_match() == Err(InconsistentKeys::KeyMismatch.into()) {
            return Err(whose(certified));
        }
        Self::describe(certified)
    }

    fn describe(certified: CertifiedKey) -> Result<Self, CertificateError> {
        let parsed: Result<Vec<_>, _> =
            certified.cert.iter().enumerate().map(|(at, der)| parse(at, der)).collect();
        let parsed = parsed?;
        let own = parsed.first().ok_or(CertificateError::NoCertificate)?;
        let (mut names, mut addresses) = (Vec::new(), Vec::new());
        let alternatives = own.subject_alternative_name().ok().flatten();
        for name in alternatives.map(|found| &found.value.general_names[..]).unwrap_or_default() {
            match name {
                GeneralName::DNSName(name) => names.push(name.to_ascii_lowercase().into()),
                GeneralName::IPAddress(bytes) => addresses.extend(read_address(bytes)),
                _ => {}
            }
        }
        let breaks = |pair: &[X509Certificate<'_>]| matches!(pair, [issued, issuer] if issued.issuer() != issuer.subject());
        let self_issued = own.issuer() == own.subject();
        let (not_before, not_after) =
            (own.validity().not_before.timestamp(), own.validity().not_after.timestamp());
        let chain_breaks = parsed.windows(2).position(breaks).map(|at| at + 2);
        let missing_issuer =
            (parsed.len() == 1 && !self_issued).then(|| describe_name(own.issuer()));
        let key = Arc::new(certified);
        Ok(Self { names, addresses, not_before, not_after, chain_breaks, missing_issuer, key })
    }

    /// The flaws that the operator should look at. `now`: seconds since the Unix epoch.
    pub fn remarks(&self, now: i64) -> Vec<Remark> {
        let mut remarks = Vec::new();
        let left = self.not_after.saturating_sub(now);
        match left {
            ..0 => remarks.push(Remark::Expired(left.saturating_neg())),
            0..SOON => remarks.push(Remark::ExpiresSoon(left)),
            _ if now < self.not_before => remarks.push(Remark::NotYetValid),
            _ => {}
        }
        if let Some(at) = self.chain_breaks {
            remarks.push(Remark::Order(at));
        }
        remarks.extend(self.missing_issuer.clone().map(Remark::Incomplete));
        if self.names.is_empty() && self.addresses.is_empty() {
            remarks.push(Remark::NoNames);
        }
        remarks
    }

    /// Whether it is valid for a host: a name, or one with `*.` in front, or an address (RFC 9525, section 6).
    pub fn covers(&self, host: &str) -> bool {
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return self.addresses.contains(&address);
        }
        let host = host.to_ascii_lowercase();
        self.names.iter().any(|name| **name == *host || is_below(name, &host))
    }

    /// The names of hosts that it is valid for, in lower case; some begin with `*.`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// When it expires, in seconds since the Unix epoch.
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    pub(crate) fn certified(&self) -> &Arc<CertifiedKey> {
        &self.key
    }
}

/// Whether `name` is `*.suffix`, and `host` is one label and that suffix.
fn is_below(name: &str, host: &str) -> bool {
    let Some(suffix) = name.strip_prefix("*.") else { return false };
    host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == suffix)
}

/// Reads every certificate of a file.
///
/// # Errors
/// When it is damaged, or has none.
pub fn read_chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| CertificateError::Pem(error.to_string()))?;
    if chain.is_empty() { Err(CertificateError::NoCertificate) } else { Ok(chain) }
}

/// Reads the first key of a file.
///
/// # Errors
/// When it is damaged or encrypted, or there is none.
pub fn read_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, CertificateError> {
    let has = |text: &[u8]| pem.windows(text.len()).any(|window| window == text);
    // PKCS#8 says so in its label, PKCS#1 and SEC 1 in a header that has no meaning in PEM of today.
    if has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED") {
        return Err(CertificateError::EncryptedKey);
    }
    let mut keys = PrivateKeyDer::pem_slice_iter(pem);
    let key = keys.next().ok_or(CertificateError::NoKey)?;
    key.map_err(|error| CertificateError::Pem(error.to_string()))
}

/// The certificate of the chain that the key belongs to, if not the first.
fn whose(certified: CertifiedKey) -> CertificateError {
    for (at, certificate) in certified.cert.iter().enumerate().skip(1) {
        let other = CertifiedKey::new(vec![certificate.clone()], Arc::clone(&certified.key));
        if other.keys_match().is_ok() {
            return CertificateError::Order(at + 1);
        }
    }
    CertificateError::Mismatch
}

fn parse<'d>(
    at: usize,
    der: &'d CertificateDer<'_>,
) -> Result<X509Certificate<'d>, CertificateError> {
    match X509Certificate::from_der(der) {
        Ok((_, certificate)) => Ok(certificate),
        Err(error) => Err(CertificateError::Malformed(at + 1, error.to_string())),
    }
}

/// Whether these bytes are `OCSPResponse { responseStatus successful, … }` from their first to their last (RFC 6960
/// section 4.2.1). The signature is not checked here: clients check it.
fn is_success(staple: &[u8]) -> bool {
    let (tag, rest) = match staple {
        [tag, length, rest @ ..] if *length < 0x80 => (tag, (usize::from(*length), rest)),
        [tag, 0x81, length, rest @ ..] => (tag, (usize::from(*length), rest)),
        [tag, 0x82, high, low, rest @ ..] => {
            (tag, (usize::from(u16::from_be_bytes([*high, *low])), rest))
        }
        _ => return false,
    };
    let (length, content) = rest;
    *tag == 0x30 && content.len() == length && content.starts_with(&[0x0a, 1, 0, 0xa0])
}

fn read_address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// The subject of a certificate, as RFC 4514 writes it: the most specific name first.
pub(crate) fn subject(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(describe_name(certificate.subject()))
}

fn describe_name(name: &X509Name<'_>) -> String {
    let mut names: Vec<String> = name.iter_rdn().map(describe_part).collect();
    names.reverse();
    names.join(",")
}

fn describe_part(part: &RelativeDistinguishedName<'_>) -> String {
    let pairs = part.iter().map(|attribute| {
        let kind = attribute.attr_type();
        let kind = x509_parser::objects::oid2abbrev(kind, x509_parser::objects::oid_registry())
            .map_or_else(|_| kind.to_id_string(), str::to_owned);
        format!("{kind}={}", escape(attribute.as_str().unwrap_or("?")))
    });
    pairs.collect::<Vec<_>>().join("+")
}

/// As in RFC 4514, section 2.4; control characters and bytes beyond ASCII in hexadecimal, so that the text may stand
/// in a field of HTTP.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' | b'=' => {
                escaped.push('\\');
                escaped.push(char::from(byte));
            }
            b' '..=b'~' => escaped.push(char::from(byte)),
            byte => escaped.push_str(&format!("\\{byte:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
