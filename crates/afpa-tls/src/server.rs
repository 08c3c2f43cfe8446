//! The settings of a server, and their form for the machine.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{KeyLog, RootCertStore, ServerConfig};
use thiserror::Error;

use crate::profile::Profile;
use crate::resolver::Certificates;
use crate::sessions::Sessions;
use crate::tickets::TicketKeys;

/// The settings of a listener.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    /// Versions and cipher suites.
    pub profile: Profile,
    /// Whether X25519MLKEM768 is offered.
    pub post_quantum: bool,
    /// The protocols offered by ALPN, the best first. A client that offers none gets none.
    pub protocols: Vec<Vec<u8>>,
    /// Tickets sent with each full handshake of TLS 1.3; 0: sessions of no version are resumed.
    pub tickets: usize,
    /// The authorities that issue certificates of clients; `None`: clients are not asked for any.
    pub clients: Option<ClientAuthorities>,
    /// The log of the connections' secrets, with which a recording can be decrypted; `None`: none is written.
    pub key_log: Option<SecretLog>,
    /// How early data (0-RTT) is accepted from clients that are not asked for a certificate; `None`: never.
    pub early_data: Option<AcceptEarlyData>,
}

/// How early data is accepted.
#[derive(Clone, Debug)]
pub struct AcceptEarlyData {
    /// Bytes of it in one connection.
    pub most: u32,
    /// Where the sessions of TLS 1.3 are.
    pub sessions: Arc<Sessions>,
}

/// The authorities that issue certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// Their certificates.
    pub roots: Vec<CertificateDer<'static>>,
    /// Whether a client without a certificate is turned away in the handshake.
    pub required: bool,
}

/// The identity of a set of authorities: a digest of all their certificates, so that it stays the same after a reload,
/// and for every site that demands them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthoritiesId(pub [u8; 32]);

impl ClientAuthorities {
    /// The identity of these authorities: equal for the same certificates in the same order.
    pub fn id(&self) -> AuthoritiesId {
        let mut all = Vec::new();
        for root in &self.roots {
            all.extend_from_slice(&(root.len() as u64).to_be_bytes());
            all.extend_from_slice(root);
        }
        let mut id = [0; 32];
        id.copy_from_slice(digest(&SHA256, &all).as_ref());
        AuthoritiesId(id)
    }
}

/// Why settings cannot be used.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SettingsError(String);

impl From<String> for SettingsError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// The settings that the connections of a listener share.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
    /// The authorities and the verifier of client certificates; `None`: clients are not asked for any.
    clients: Option<(AuthoritiesId, Arc<dyn ClientCertVerifier>)>,
    /// For the same settings over QUIC.
    parts: Arc<(ServerSettings, Arc<TicketKeys>)>,
}

impl ServerTls {
    /// Puts settings, certificates and ticket keys together. Certificates and keys may be replaced later.
    ///
    /// # Errors
    /// When an authority's certificate cannot be used.
    pub fn new(
        settings: &ServerSettings,
        certificates: &Arc<Certificates>,
        tickets: &Arc<TicketKeys>,
    ) -> Result<Self, SettingsError> {
        let provider = Arc::new(settings.profile.provider(settings.post_quantum));
        let clients = settings.clients.as_ref().map(|clients| {
            verifier(clients, Arc::clone(&provider)).map(|verifier| (clients.id(), verifier))
        });
        let clients = clients.transpose()?;
        let parts = Arc::new((settings.clone(), Arc::clone(tickets)));
        let certificates = Arc::clone(certificates);
        let config = build(settings, provider, &certificates, tickets, clients.as_ref())?;
        Ok(Self { config, certificates, clients, parts })
    }

    /// Those of a listener that knows the other side by its key. There are no certificates, tickets or sessions.
    pub(crate) fn of_shared_key(config: ServerConfig) -> Self {
        let (config, certificates, parts) = (Arc::new(config), Arc::default(), Arc::default());
        Self { config, certificates, clients: None, parts }
    }

    /// The same settings with others of its own choice, as QUIC needs them.
    pub(crate) fn again(
        &self,
        change: impl FnOnce(&mut ServerSettings),
        provider: rustls::crypto::CryptoProvider,
    ) -> Result<Arc<ServerConfig>, SettingsError> {
        let (mut settings, tickets) = (self.parts.0.clone(), &self.parts.1);
        change(&mut settings);
        build(&settings, Arc::new(provider), &self.certificates, tickets, self.clients.as_ref())
    }

    /// The provider of its cryptography.
    pub(crate) fn provider(&self) -> rustls::crypto::CryptoProvider {
        self.parts.0.profile.provider(self.parts.0.post_quantum)
    }

    pub(crate) fn config(&self) -> &Arc<ServerConfig> {
        &self.config
    }

    pub(crate) fn certificates(&self) -> &Arc<Certificates> {
        &self.certificates
    }

    /// Whether early data may be accepted.
    pub(crate) fn accepts_early_data(&self) -> bool {
        self.config.max_early_data_size > 0
    }

    /// The authorities whose certificates clients are asked for; `None`: clients are not asked for any.
    pub(crate) fn authorities(&self) -> Option<AuthoritiesId> {
        self.clients.as_ref().map(|(id, _)| *id)
    }

    /// Whether the certificate of a client is valid at this moment, as in a handshake.
    pub(crate) fn verify(
        &self,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let (Some((_, verifier)), Some((own, rest))) = (&self.clients, chain.split_first()) else {
            return Ok(());
        };
        verifier.verify_client_cert(own, rest, now).map(|_| ())
    }
}

fn build(
    settings: &ServerSettings,
    provider: Arc<rustls::crypto::CryptoProvider>,
    certificates: &Arc<Certificates>,
    tickets: &Arc<TicketKeys>,
    clients: Option<&(AuthoritiesId, Arc<dyn ClientCertVerifier>)>,
) -> Result<Arc<ServerConfig>, SettingsError> {
    let builder = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(settings.profile.versions())
        .map_err(|error| SettingsError(error.to_string()))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some((_, verifier)) => builder.with_client_cert_verifier(Arc::clone(verifier)),
    };
    let mut config = builder.with_cert_resolver(Arc::<Certificates>::clone(certificates));
    config.alpn_protocols.clone_from(&settings.protocols);
    // TLS 1.2 tickets cannot be counted; `tickets = 0` turns them off for both versions.
    // Tickets alone: a store of sessions would be a lock that all workers share.
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    let context = context(settings.clients.as_ref());
    match settings.early_data.as_ref().filter(|_| settings.clients.is_none()) {
        _ if settings.tickets == 0 => {}
        None => config.ticketer = tickets.for_context(&context),
        // Early data needs a store that gives out each session once; rustls demands one, too.
        Some(early_data) => {
            config.ticketer = tickets.beside_store(&context);
            config.session_storage = Arc::<Sessions>::clone(&early_data.sessions);
            config.max_early_data_size = early_data.most;
            // An answer that waited for the end of the handshake would come no sooner than without early data.
            config.send_half_rtt_data = true;
        }
    }
    config.send_tls13_tickets = settings.tickets;
    // The client's order says which cipher its processor is fast at.
    config.ignore_client_order = false;
    if let Some(log) = &settings.key_log {
        config.key_log = Arc::new(log.clone());
    }
    Ok(Arc::new(config))
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

impl PartialEq for ServerTls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.config, &other.config)
    }
}

impl Eq for ServerTls {}

fn verifier(
    clients: &ClientAuthorities,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, SettingsError> {
    let roots = Arc::new(read_roots(&clients.roots)?);
    let builder = WebPkiClientVerifier::builder_with_provider(roots, provider);
    let builder = if clients.required { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(|error| SettingsError(error.to_string()))
}

pub(crate) fn read_roots(
    certificates: &[CertificateDer<'static>],
) -> Result<RootCertStore, SettingsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).map_err(|error| SettingsError(error.to_string()))?;
    }
    Ok(roots)
}

/// A listener's demands on its clients' certificates, for [`TicketKeys::for_context`].
fn context(clients: Option<&ClientAuthorities>) -> Vec<u8> {
    let Some(clients) = clients else { return Vec::new() };
    [&[1, u8::from(clients.required)][..], &clients.id().0].concat()
}

/// Writes the secrets of connections in the format of NSS (`SSLKEYLOGFILE`), for programs that decrypt a recording.
#[derive(Clone)]
pub struct SecretLog(Arc<Mutex<Box<dyn Write + Send>>>);

impl SecretLog {
    /// Writes to `to`, a line a secret.
    pub fn new(to: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(to)))
    }
}

impl fmt::Debug for SecretLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretLog")
    }
}

impl KeyLog for SecretLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        let mut to = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A failure is ignored: the reader of the recording notices that a line is missing.
        let _ = to.write_all(line.as_bytes()).and_then(|()| to.flush());
    }
}
