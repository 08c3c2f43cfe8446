//! Certificates and ticket keys, and the TLS settings made of them. They outlive a reload, so that sessions and
//! handshakes go on.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use afpa_acme::ChallengeKind;
use afpa_config::{CertificateFiles, Config, Listen, TlsFileError, TlsProfile};
use afpa_fleet::{Secret, Seeds};
use afpa_module_http::ClientDemand;
use afpa_proxy::pool::TlsToServers;
use afpa_tls::resolver::{self, IsOrdered};
use afpa_tls::server::SecretLog;
use afpa_tls::{
    AcceptEarlyData, Certificate, Certificates, ChallengeCertificates, ListenerTls, Profile,
    ServerSettings, ServerTls, Sessions, TicketKeys,
};
use anyhow::{Context as _, bail};
use arc_swap::ArcSwapOption;

use super::certificate_store::{CertificateStore, Versions, files_of};
use super::peers;
use super::tls_of_groups::TlsOfGroups;
use super::tls_of_sites::SitesTls;
use crate::keys::{KeyReader, Version};
use crate::privileges::Identity;

/// Sessions that are kept for clients that may send early data, in some 400 bytes each. A client whose session was pushed out
/// has a full handshake.
const EARLY_DATA_SESSIONS: usize = 20_000;
/// Bytes of early data in a connection: a request with long cookies fits, and a hundred of its segments could not be
/// replayed for more.
const MOST_EARLY_DATA: u32 = 16 * 1024;

/// The state that the listeners of all configurations share.
#[derive(Default)]
pub(super) struct TlsState {
    certificates: Arc<Certificates>,
    tickets: Arc<TicketKeys>,
    /// Sessions of clients that may send early data.
    sessions: Arc<Sessions>,
    /// The certificates in use, with the files that they were read from.
    running: Vec<(CertificateFiles, Certificate)>,
    /// The files as they were when they were last read, successfully or not.
    seen: Vec<Versions>,
    /// Certificates that come by themselves, and those that have come because a client has asked for them.
    managed: Vec<ManagedFile>,
    on_demand: Vec<ManagedFile>,
    ticket_file: Option<Version>,
    rotated: Option<Instant>,
    /// The seeds of the fleet, while there are some.
    seeds: Arc<ArcSwapOption<Seeds>>,
    /// The seeds whose ticket keys are in use, and the lifetime of tickets.
    taken: Option<(Arc<Seeds>, Duration)>,
    key_log: Option<(PathBuf, SecretLog)>,
    servers: TlsOfGroups,
    /// For questions of other machines of the fleet, and the secret whose key it has.
    peers: Option<(Secret, ListenerTls)>,
    store: CertificateStore,
}

/// The file of a certificate that comes by itself.
struct ManagedFile {
    path: PathBuf,
    /// As it was when it was last read.
    seen: Option<Version>,
    /// The certificate in use; `None`: there is none yet.
    certificate: Option<Certificate>,
}

/// The files of a configuration that were read, and can be taken into use without a failure.
pub(super) struct PreparedTls {
    /// For each address with TLS.
    pub(super) listeners: Vec<(Listen, ListenerTls)>,
    certificates: Vec<(CertificateFiles, Certificate)>,
    /// Their files as they were before they were read.
    seen: Vec<Versions>,
    /// Files of certificates that come by themselves. They may be missing.
    managed: Vec<PathBuf>,
    peers: Option<(Secret, ListenerTls)>,
    /// The part that is in use once this is adopted.
    adopted: AdoptedTls,
}

/// The TLS settings that serving depends on.
pub(super) struct AdoptedTls {
    /// How the servers of each group are reached, in the order of the groups.
    pub(super) groups: Vec<Option<TlsToServers>>,
    /// The demand of each site on its clients, in the order of the sites.
    pub(super) clients: Vec<Option<ClientDemand>>,
}

/// The protocols that are offered by ALPN, the best first.
fn protocols(config: &Config) -> Vec<Vec<u8>> {
    let mut protocols = Vec::new();
    if config.http2.tls {
        protocols.push(b"h2".to_vec());
    }
    protocols.push(b"http/1.1".to_vec());
    if config.acme.challenge == ChallengeKind::TlsAlpn01 {
        protocols.push(resolver::CHALLENGE.to_vec());
    }
    protocols
}

impl TlsState {
    /// With the certificates that were read already, and the answers to challenges of an authority.
    pub(super) fn new(store: CertificateStore, challenges: ChallengeCertificates) -> Self {
        let state = Self { store, ..Self::default() };
        state.certificates.answer_challenges(Some(challenges));
        state
    }

    /// The place for seeds of keys that machines share.
    pub(super) fn seeds(&self) -> Arc<ArcSwapOption<Seeds>> {
        Arc::clone(&self.seeds)
    }

    /// Has files that root alone may read be read for the user that this process is going to be. To be called while it
    /// has its privileges still.
    pub(super) fn start_reader(&mut self, config: &Config, identity: Option<&Identity>) {
        let files = files(config);
        let Some(identity) = identity.filter(|_| !files.is_empty()) else { return };
        match KeyReader::start(&files, identity) {
            Ok(reader) => self.store.read_with(reader),
            Err(error) => tracing::warn!(
                "keys that root alone may read are not read again before the next start: {error}"
            ),
        }
    }

    /// Reads the files that a configuration names. The files of certificates that come by themselves, `managed`, may
    /// be missing, and so may the `secret` of the fleet, if this user may not read it: then the one before stays.
    ///
    /// # Errors
    /// With the file that cannot be used. The certificates in use stay.
    pub(super) fn prepare(
        &mut self,
        config: &Config,
        managed: Vec<PathBuf>,
        secret: Option<&Secret>,
    ) -> anyhow::Result<PreparedTls> {
        let groups = self.servers.prepare(config, self.store.reader())?;
        let peers = self.prepare_peers(config, secret)?;
        let of_peers = config.peers_listen().zip(peers.as_ref().map(|(_, tls)| tls.clone()));
        if config.sites.iter().all(|site| site.tls.is_empty()) {
            let (certificates, seen, managed) = (Vec::new(), Vec::new(), Vec::new());
            let adopted = AdoptedTls { groups, clients: vec![None; config.sites.len()] };
            let listeners = of_peers.into_iter().collect();
            return Ok(PreparedTls { listeners, certificates, seen, managed, peers, adopted });
        }
        let running: HashMap<_, _> = self
            .running
            .iter()
            .map(|(files, certificate)| ((&files.chain, &files.key), certificate))
            .collect();
        let (mut seen, mut certificates) = (Vec::new(), Vec::new());
        for files in &config.certificates {
            let (versions, read) = self.store.read_version(files);
            let known = running.get(&(&files.chain, &files.key)).copied();
            certificates.push((files.clone(), kept_or(read, known)?));
            seen.push(versions);
        }
        self.take_ticket_keys(config)?;
        let settings = self.settings(config)?;
        let make = |settings: &ServerSettings| {
            let made = ServerTls::new(settings, &self.certificates, &self.tickets);
            made.context("[tls] cannot be used")
        };
        let sites = SitesTls::new(config, &settings, make)?;
        let mut listeners = sites.listeners(config);
        listeners.extend(of_peers);
        let adopted = AdoptedTls { groups, clients: sites.demands() };
        Ok(PreparedTls { listeners, certificates, seen, managed, peers, adopted })
    }

    /// For questions of other machines: they are never read without TLS.
    fn prepare_peers(
        &self,
        config: &Config,
        secret: Option<&Secret>,
    ) -> anyhow::Result<Option<(Secret, ListenerTls)>> {
        if config.peers_listen().is_none() {
            return Ok(None);
        }
        match (secret, &self.peers) {
            (Some(secret), Some((before, _))) if secret != before => make_peers(secret).map(Some),
            (Some(secret), None) => make_peers(secret).map(Some),
            (_, Some(before)) => Ok(Some(before.clone())),
            (None, None) => bail!(
                "[fleet] peers: this user cannot read `secret`: give it the right, or start as root"
            ),
        }
    }

    /// Takes the prepared state into use. Handshakes in progress go on with the state that they began with.
    pub(super) fn adopt(&mut self, prepared: PreparedTls) -> AdoptedTls {
        self.running = prepared.certificates;
        self.store.keep(self.running.iter().map(|(files, _)| files));
        self.seen = prepared.seen;
        self.managed = prepared.managed.into_iter().map(ManagedFile::new).collect();
        self.peers = prepared.peers;
        self.read_managed();
        self.replace();
        prepared.adopted
    }

    /// Reads files of certificates that have come. Whether there were any.
    fn read_managed(&mut self) -> bool {
        let files = self.managed.iter_mut().chain(&mut self.on_demand);
        files.map(ManagedFile::read).filter(|is_new| *is_new).count() > 0
    }

    /// Has clients wait for the certificates that are ordered for them; `None`: there are none.
    pub(super) fn wait_on_demand(&self, on_demand: Option<IsOrdered>) {
        self.certificates.wait_on_demand(on_demand);
    }

    /// Takes the certificates into use that were ordered on demand, and wakes the handshakes that wait for them.
    pub(super) fn take_on_demand(&mut self, files: Vec<PathBuf>) {
        let before = self.on_demand.len();
        let wanted: HashSet<_> = files.iter().collect();
        self.on_demand.retain(|file| wanted.contains(&file.path));
        let is_fewer = self.on_demand.len() < before;
        let known: HashSet<_> = self.on_demand.iter().map(|file| file.path.clone()).collect();
        let new = files.into_iter().filter(|path| !known.contains(path));
        self.on_demand.extend(new.map(ManagedFile::new));
        if self.read_managed() || is_fewer {
            self.replace();
        }
        self.certificates.settled();
    }

    /// Reads files that have changed, and makes new ticket keys when it is time.
    pub(super) fn tick(&mut self, config: &Config) {
        if self.running.is_empty() && self.managed.is_empty() && self.on_demand.is_empty() {
            return;
        }
        if self.read_managed() {
            self.replace();
            tracing::info!("a certificate that has come is in use");
        }
        let lifetime = config.tls.ticket_lifetime;
        if !self.take_seeds(config)
            && config.tls.ticket_keys.is_none()
            && self.rotated.is_some_and(|at| at.elapsed() >= lifetime)
        {
            self.rotate(lifetime);
        }
        if let Err(error) = self.reread_ticket_keys(config) {
            tracing::error!("the running ticket keys stay: {error:#}");
        }
        let seen = self.running.iter().map(|(files, _)| self.store.versions(files));
        let seen: Vec<Versions> = seen.collect();
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        let read: Result<Vec<_>, _> =
            self.running.iter().map(|(files, _)| Ok((files.clone(), self.read(files)?))).collect();
        match read {
            Ok(read) => {
                self.running = read;
                self.replace();
                tracing::info!("files of certificates have changed, and are in use");
            }
            Err::<_, TlsFileError>(error) => {
                tracing::error!("the running certificates stay: {error}");
            }
        }
    }

    /// The certificate of these files as they are now, read by the rights of this process or through the process that
    /// reads keys.
    pub(super) fn read(&self, files: &CertificateFiles) -> Result<Certificate, TlsFileError> {
        self.store.read(files)
    }

    fn replace(&self) {
        let running = self.running.iter().map(|(_, certificate)| certificate);
        let of_files = |files: &'_ [ManagedFile]| -> Vec<Certificate> {
            files.iter().filter_map(|file| file.certificate.clone()).collect()
        };
        let certificates: Vec<_> = running.cloned().chain(of_files(&self.managed)).collect();
        self.certificates.replace_with(&certificates, &of_files(&self.on_demand));
    }

    fn settings(&mut self, config: &Config) -> anyhow::Result<ServerSettings> {
        let tls = &config.tls;
        Ok(ServerSettings {
            profile: match tls.profile {
                TlsProfile::Modern => Profile::Modern,
                TlsProfile::Intermediate => Profile::Intermediate,
            },
            post_quantum: tls.post_quantum,
            protocols: protocols(config),
            tickets: tls.tickets,
            clients: None,
            key_log: tls.key_log.as_deref().map(|path| self.key_log(path)).transpose()?,
            early_data: tls.early_data.then(|| self.early_data(tls)),
        })
    }

    fn early_data(&self, tls: &afpa_config::Tls) -> AcceptEarlyData {
        self.sessions.limit(EARLY_DATA_SESSIONS, seconds(tls.ticket_lifetime));
        AcceptEarlyData { most: MOST_EARLY_DATA, sessions: Arc::clone(&self.sessions) }
    }

    fn key_log(&mut self, path: &Path) -> anyhow::Result<SecretLog> {
        if let Some((open, log)) = &self.key_log
            && open == path
        {
            return Ok(log.clone());
        }
        let file = fs::File::options().append(true).create(true).mode(0o600).open(path);
        let file =
            file.with_context(|| format!("cannot write [tls] key_log {}", path.display()))?;
        // It may have been there before, with other rights.
        let about = file.metadata().with_context(|| path.display().to_string())?;
        if about.is_file() && about.mode() & 0o077 != 0 {
            let path = path.display();
            bail!("others can read {path}, the [tls] key_log: chmod 600 {path}, or remove it");
        }
        tracing::warn!(
            path = %path.display(),
            "the secrets of connections are written down, by which they can be decrypted: leave \
             [tls] key_log out after use"
        );
        let log = SecretLog::new(Box::new(file));
        self.key_log = Some((path.to_owned(), log.clone()));
        Ok(log)
    }

    fn take_ticket_keys(&mut self, config: &Config) -> anyhow::Result<()> {
        if config.tls.tickets == 0 {
            return Ok(());
        }
        if config.tls.ticket_keys.is_some() {
            self.ticket_file = None;
            return self.reread_ticket_keys(config);
        }
        let was_file = self.ticket_file.take().is_some();
        if !self.take_seeds(config) && (self.tickets.is_empty() || was_file) {
            self.rotate(config.tls.ticket_lifetime);
        }
        Ok(())
    }

    /// Takes the ticket keys of the fleet, if there are some and no file has others. Whether those in use are settled.
    fn take_seeds(&mut self, config: &Config) -> bool {
        if config.tls.tickets == 0 || config.tls.ticket_keys.is_some() {
            self.taken = None;
            return false;
        }
        let lifetime = config.tls.ticket_lifetime;
        match self.seeds.load_full().map(|seeds| (seeds, lifetime)) {
            Some(found) if self.taken.as_ref() != Some(&found) => {
                self.tickets.take(found.0.keys("TLS tickets"), seconds(lifetime));
                self.taken = Some(found);
                true
            }
            Some(_) => true,
            // There is no fleet any more: others go on with its keys.
            None if self.taken.take().is_some() => {
                self.rotate(lifetime);
                true
            }
            None => false,
        }
    }

    fn rotate(&mut self, lifetime: Duration) {
        self.tickets.rotate(seconds(lifetime));
        self.rotated = Some(Instant::now());
    }

    /// Reads the shared ticket keys, if the file has changed.
    fn reread_ticket_keys(&mut self, config: &Config) -> anyhow::Result<()> {
        let Some(path) = &config.tls.ticket_keys else { return Ok(()) };
        let version = self.store.reader().version(path);
        if version.is_some() && version == self.ticket_file {
            return Ok(());
        }
        let shown = || format!("[tls] ticket_keys {}", path.display());
        if version.is_none() && self.ticket_file.is_some() {
            // Somebody is replacing it, or it is not for this user.
            return Ok(());
        }
        self.ticket_file = version;
        let text = self.store.reader().read(path).and_then(|text| {
            String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
        });
        let text = text.with_context(shown)?;
        self.tickets.share(&text, seconds(config.tls.ticket_lifetime)).with_context(shown)
    }
}

impl ManagedFile {
    fn new(path: PathBuf) -> Self {
        Self { path, seen: None, certificate: None }
    }

    /// Reads it, if it has changed. Whether there is something new in it.
    fn read(&mut self) -> bool {
        let version = Version::of(&self.path).ok();
        if version == self.seen {
            return false;
        }
        self.seen = version;
        // If the file is gone, its last certificate stays in use.
        let Ok(text) = fs::read(&self.path) else { return false };
        match Certificate::read(&text, &text, None) {
            Ok(read) => {
                self.certificate = Some(read);
                true
            }
            Err(error) => {
                tracing::error!("{}: {error}", self.path.display());
                false
            }
        }
    }
}

fn make_peers(secret: &Secret) -> anyhow::Result<(Secret, ListenerTls)> {
    let tls = peers::key(secret).and_then(|key| key.server()).context("[fleet] peers")?;
    Ok((secret.clone(), ListenerTls::new(tls)))
}

/// A certificate that nobody reads for us stays what it was at the start.
fn kept_or(
    read: Result<Certificate, TlsFileError>,
    running: Option<&Certificate>,
) -> anyhow::Result<Certificate> {
    match (read, running) {
        (Err(error), Some(certificate)) if error.is_denied => {
            tracing::warn!("the running certificate stays: {error}");
            Ok(certificate.clone())
        }
        (read, _) => Ok(read?),
    }
}

fn seconds(lifetime: Duration) -> u32 {
    u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX)
}

/// Files with a secret, and the files that belong to them, that are read again while AFPA runs.
fn files(config: &Config) -> Vec<PathBuf> {
    let of_groups = config.groups.iter().filter_map(|group| group.tls.as_ref()?.own.as_ref());
    let of_groups = of_groups.flat_map(|(chain, key)| [&**chain, &**key]);
    let of_certificates = config.certificates.iter().flat_map(files_of);
    let tickets = config.tls.ticket_keys.as_deref();
    of_certificates.chain(of_groups).chain(tickets).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests;
