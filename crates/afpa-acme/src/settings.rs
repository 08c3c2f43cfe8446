//! Settings: the certificates to order, the authority, the kind of challenge.

use std::path::PathBuf;

use crate::demand::OnDemand;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// How it is shown that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeKind {
    /// By a response on port 80 (RFC 8555 section 8.3).
    Http01,
    /// By a certificate on port 443 (RFC 8737).
    TlsAlpn01,
    /// By a record in the DNS, which a program sets (RFC 8555 section 8.4). It alone gives certificates for wildcards.
    Dns01,
}

/// An account that the authority knows already from elsewhere (RFC 8555 section 7.3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalAccount {
    /// Which of its keys.
    pub key_id: String,
    /// The file with the key itself: bytes in base64url.
    pub key_file: PathBuf,
}

/// Certificates that are to be ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    /// URL of the authority's directory.
    pub directory: String,
    /// Certificate of the authority that has certified the directory's own host, if the system does not know it: PEM.
    pub directory_ca: Option<PathBuf>,
    /// Where the authority can reach the operator.
    pub email: Option<String>,
    /// The folder that keeps account and certificates.
    pub state: PathBuf,
    /// How names are shown to be ours.
    pub challenge: ChallengeKind,
    /// The program that sets records in the DNS: `PROGRAM present NAME VALUE`, and `PROGRAM cleanup NAME VALUE`.
    pub dns_program: Option<PathBuf>,
    /// The name below which the records of all names are put, when the zones of the process have them: other zones lead
    /// there by CNAME.
    pub challenge_alias: Option<String>,
    /// Which of its profiles the authority is to use, for example `shortlived`.
    pub profile: Option<String>,
    /// An account known from elsewhere.
    pub external_account: Option<ExternalAccount>,
    /// The names of each certificate, at least one. The first one names the file.
    pub certificates: Vec<Vec<String>>,
    /// Names whose certificates are ordered when a client asks for them.
    pub on_demand: OnDemand,
}

impl AcmeSettings {
    /// With Let's Encrypt, a response on port 80, and no certificate yet.
    pub fn new(state: PathBuf) -> Self {
        Self {
            directory: LETS_ENCRYPT.to_owned(),
            directory_ca: None,
            email: None,
            state,
            challenge: ChallengeKind::Http01,
            dns_program: None,
            challenge_alias: None,
            profile: None,
            external_account: None,
            certificates: Vec::new(),
            on_demand: OnDemand::default(),
        }
    }

    /// Whether any certificate comes by itself.
    pub fn orders(&self) -> bool {
        !self.certificates.is_empty() || !self.on_demand.names.is_empty()
    }
}
