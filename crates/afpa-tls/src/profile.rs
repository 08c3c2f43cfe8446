//! Mozilla's profiles: which versions, cipher suites and groups are offered.
//!
//! The lists are those of *Server Side TLS* 5.7, without the suites with Diffie-Hellman over integers, which rustls does
//! not have and no client needs that knows TLS 1.2.

use rustls::crypto::aws_lc_rs::{cipher_suite as suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

use crate::sealing;

/// A profile by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// TLS 1.3 alone.
    Modern,
    /// TLS 1.3, and TLS 1.2 with forward secrecy and authenticated encryption.
    #[default]
    Intermediate,
    /// TLS 1.2 alone.
    #[cfg(test)]
    Older,
}

/// The cipher suites of all profiles, by their names.
pub const CIPHERS: [&str; 9] = [
    "TLS13_AES_128_GCM_SHA256",
    "TLS13_AES_256_GCM_SHA384",
    "TLS13_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];

const OLDER: [SupportedCipherSuite; 6] = [
    suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

impl Profile {
    pub(crate) fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        match self {
            Self::Modern => &BOTH[..1],
            Self::Intermediate => &BOTH,
            #[cfg(test)]
            Self::Older => &BOTH[1..],
        }
    }

    /// Cipher suites, and groups: X25519MLKEM768 first if `post_quantum` (draft-ietf-tls-ecdhe-mlkem).
    pub(crate) fn provider(self, post_quantum: bool) -> CryptoProvider {
        let mut cipher_suites = sealing::suites();
        if self != Self::Modern {
            cipher_suites.extend(OLDER);
        }
        let mut groups: Vec<&'static dyn SupportedKxGroup> =
            vec![kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1];
        if post_quantum {
            groups.insert(0, kx_group::X25519MLKEM768);
        }
        CryptoProvider { cipher_suites, kx_groups: groups, ..default_provider() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_suites() {
        let suites = Profile::Intermediate.provider(true).cipher_suites;
        let names: Vec<_> = suites.iter().map(|suite| suite.suite().as_str().unwrap()).collect();
        assert_eq!(names, CIPHERS);
    }

    #[test]
    fn the_modern_profile_has_only_suites_of_version_13() {
        let provider = Profile::Modern.provider(false);
        assert!(provider.cipher_suites.iter().all(|suite| suite.tls13().is_some()));
        assert_eq!(provider.kx_groups.len(), 3);
        assert_eq!(Profile::Modern.provider(true).kx_groups.len(), 4);
    }
}
