//! The responses and certificates that the authority is to find while a challenge is open.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use crate::zone::ChallengeZones;

/// The certificate by which TLS-ALPN-01 is answered (RFC 8737 section 3).
#[derive(Debug, PartialEq, Eq)]
pub struct AlpnCertificate {
    /// DER.
    pub certificate: Vec<u8>,
    /// Its key: PKCS#8, DER.
    pub key: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Open {
    responses: HashMap<String, Arc<str>>,
    certificates: HashMap<String, Arc<AlpnCertificate>>,
}

/// The open challenges, which workers look up without a lock. There are none most of the time.
#[derive(Clone, Default)]
pub struct Challenges(Arc<ArcSwap<Open>>, Arc<OnceLock<Arc<dyn ChallengeZones>>>);

impl std::fmt::Debug for Challenges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Challenges").field(&self.0).finish_non_exhaustive()
    }
}

impl Challenges {
    /// The path below which responses to HTTP-01 stand (RFC 8555 section 8.3), before the token.
    pub const PATH: &str = "/.well-known/acme-challenge/";

    /// The protocol by which TLS-ALPN-01 is asked for (RFC 8737 section 4).
    pub const ALPN: &[u8] = b"acme-tls/1";

    /// Records of DNS-01 are put into these zones from now on, unless a program sets them.
    pub fn set_zones(&self, zones: Arc<dyn ChallengeZones>) {
        // A process has the same ones for its life.
        let _ = self.1.set(zones);
    }

    pub(crate) fn zones(&self) -> Option<Arc<dyn ChallengeZones>> {
        self.1.get().cloned()
    }

    /// The content of the response for a token; `None`: no challenge with that token is open.
    pub fn response(&self, token: &str) -> Option<Arc<str>> {
        self.0.load().responses.get(token).cloned()
    }

    /// The certificate to show to a client that asks for [`ALPN`](Self::ALPN) and for this name, in lower case.
    pub fn certificate(&self, name: &str) -> Option<Arc<AlpnCertificate>> {
        self.0.load().certificates.get(name).cloned()
    }

    /// Shows a response until the result is dropped.
    pub(crate) fn show_response(&self, token: &str, content: &str) -> Shown {
        let (key, content) = (token.to_owned(), Arc::from(content));
        self.0.rcu(|open| {
            let mut open = Open::clone(open);
            open.responses.insert(key.clone(), Arc::clone(&content));
            open
        });
        Shown { challenges: self.clone(), key, is_response: true }
    }

    /// Shows a certificate until the result is dropped.
    pub(crate) fn show_certificate(&self, name: &str, certificate: AlpnCertificate) -> Shown {
        let (key, certificate) = (name.to_ascii_lowercase(), Arc::new(certificate));
        self.0.rcu(|open| {
            let mut open = Open::clone(open);
            open.certificates.insert(key.clone(), Arc::clone(&certificate));
            open
        });
        Shown { challenges: self.clone(), key, is_response: false }
    }
}

/// An open challenge. It is closed when this is dropped, also by an order that was given up.
#[derive(Debug)]
pub(crate) struct Shown {
    challenges: Challenges,
    key: String,
    is_response: bool,
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.challenges.0.rcu(|open| {
            let mut open = Open::clone(open);
            match self.is_response {
                true => drop(open.responses.remove(&self.key)),
                false => drop(open.certificates.remove(&self.key)),
            }
            open
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_open_as_long_as_it_is_held() {
        let challenges = Challenges::default();
        let shown = challenges.show_response("token", "token.thumbprint");
        let other = challenges.show_response("other", "other.thumbprint");
        assert_eq!(challenges.response("token").as_deref(), Some("token.thumbprint"));
        assert_eq!(challenges.response("tok"), None);
        drop(shown);
        assert_eq!(challenges.response("token"), None);
        assert!(challenges.response("other").is_some());
        drop(other);
        assert_eq!(challenges.response("other"), None);
    }

    #[test]
    fn a_certificate_is_found_by_its_name_in_lower_case() {
        let challenges = Challenges::default();
        let made = || AlpnCertificate { certificate: vec![1], key: vec![2] };
        let shown = challenges.show_certificate("WWW.Example.org", made());
        assert_eq!(challenges.certificate("www.example.org").as_deref(), Some(&made()));
        assert_eq!(challenges.response("www.example.org"), None);
        drop(shown);
        assert_eq!(challenges.certificate("www.example.org"), None);
    }
}
