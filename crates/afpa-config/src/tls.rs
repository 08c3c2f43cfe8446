//! TLS: certificates, parameters that are offered, and demands of sites on clients.

use std::path::PathBuf;
use std::time::Duration;

use crate::choice::choice;
use crate::finding::Location;
use crate::items::Item;
use crate::reader::{Reader, Section};
use crate::rules;
use crate::settings::Instance;

choice! {
    /// Mozilla's profiles.
    TlsProfile {
        /// TLS 1.3 alone.
        Modern = "modern",
        /// TLS 1.2 as well.
        Intermediate = "intermediate",
    }
}

choice! {
    /// Whether clients show a certificate.
    ClientCertificates {
        /// Clients are not asked for a certificate.
        None = "none",
        /// A client may show a certificate, which must be valid.
        Optional = "optional",
        /// A client without a valid certificate gets no connection.
        Required = "required",
    }
}

/// `[tls]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// Versions and cipher suites.
    pub profile: TlsProfile,
    /// Whether X25519MLKEM768 is offered.
    pub post_quantum: bool,
    /// Tickets for each full handshake of TLS 1.3; 0: sessions are not resumed.
    pub tickets: usize,
    /// How long a session can be resumed at least.
    pub ticket_lifetime: Duration,
    /// A file of ticket keys that machines share; `None`: AFPA makes them.
    pub ticket_keys: Option<PathBuf>,
    /// Whether clients show a certificate.
    pub client_certificates: ClientCertificates,
    /// A file of the authorities that issue these.
    pub client_authorities: Option<PathBuf>,
    /// A file for the secrets of connections.
    pub key_log: Option<PathBuf>,
    /// Whether early data (0-RTT) is accepted.
    pub early_data: bool,
}

/// A `[[certificate]]`: the files of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain, the server's own certificate first.
    pub chain: PathBuf,
    /// The key.
    pub key: PathBuf,
    /// A response of OCSP.
    pub staple: Option<PathBuf>,
    /// Which `[[certificate]]`.
    pub instance: Instance,
    /// Where it begins.
    pub location: Location,
}

impl Tls {
    pub(crate) fn read(mut s: Section<'_, '_>) -> Self {
        let minute = Duration::from_secs(60);
        let hour = 60 * minute;
        Tls {
            profile: s.choice("profile", TlsProfile::Intermediate),
            post_quantum: s.flag("post_quantum", true),
            tickets: s.count("tickets", 2, 0..=8),
            ticket_lifetime: s.duration("ticket_lifetime", 12 * hour, minute..=7 * 24 * hour),
            ticket_keys: s.optional_path("ticket_keys"),
            client_certificates: s.choice("client_certificates", ClientCertificates::None),
            client_authorities: s.optional_path("client_authorities"),
            key_log: s.optional_path("key_log"),
            early_data: s.flag("early_data", false),
        }
    }
}

impl CertificateFiles {
    pub(crate) fn read<'i>(reader: &mut Reader<'i>, item: &Item<'i>) -> Self {
        let mut s = reader.at(item);
        CertificateFiles {
            chain: s.required_path("chain"),
            key: s.required_path("key"),
            staple: s.optional_path("staple"),
            instance: item.instance,
            location: item.location.clone(),
        }
    }
}

/// TLS to the servers of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTls {
    /// The authorities that their certificates come from; `None`: those that the system trusts.
    pub authorities: Option<PathBuf>,
    /// The name that the certificates must be for; `None`: that of each server.
    pub name: Option<String>,
    /// The certificate that AFPA shows them.
    pub own: Option<(PathBuf, PathBuf)>,
}

impl GroupTls {
    /// `[server_group.verify]`; it has a meaning only if the group uses TLS.
    pub(crate) fn read(mut s: Section<'_, '_>, used: bool) -> Option<Self> {
        let authorities = s.path_or("authorities", "path, or `system`", &["system"], "system");
        let name = s.text_or("name", "host name", "auto", rules::server_name);
        let (chain, key) = (s.optional_path("chain"), s.optional_path("key"));
        let authorities = (authorities != "system").then(|| PathBuf::from(authorities));
        used.then(|| GroupTls { authorities, name, own: chain.zip(key) })
    }
}

/// The value of a field Strict-Transport-Security (RFC 6797, section 6.1).
pub(crate) fn strict_transport(text: &str) -> Result<String, crate::units::Unfit> {
    let mut directives = text.split(';').map(str::trim);
    let has_age = directives.clone().any(|directive| {
        let age = directive.strip_prefix("max-age=");
        age.is_some_and(|age| age.parse::<u32>().is_ok())
    });
    let known = directives.all(|directive| {
        directive.starts_with("max-age=") || ["includeSubDomains", "preload"].contains(&directive)
    });
    match has_age && known {
        true => rules::any(text),
        false => Err(crate::units::Unfit::new(
            format!("\"{text}\" is no value of Strict-Transport-Security"),
            "write for example \"max-age=31536000; includeSubDomains\"",
        )),
    }
}
