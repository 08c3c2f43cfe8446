//! Certificates that come by themselves, in the life of a server.

use std::path::PathBuf;
use std::sync::Arc;

use afpa_acme::{AcmeSettings, Manager, Pace, Shared, StateFolder, Statuses};
use anyhow::Context as _;

use crate::privileges::Identity;

/// What sees to certificates. Challenges that are open outlive a reload.
#[derive(Default)]
pub(super) struct AcmeState {
    shared: Shared,
    running: Option<(AcmeSettings, Manager)>,
}

/// What was made ready for a configuration.
pub(super) struct PreparedAcme(Option<(AcmeSettings, StateFolder)>);

impl PreparedAcme {
    /// Makes the folder of certificates ready for the user that serves.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub(super) fn new(settings: &AcmeSettings, owner: Option<&Identity>) -> anyhow::Result<Self> {
        if settings.certificates.is_empty() {
            return Ok(Self(None));
        }
        let owner = owner.map(|owner| (owner.uid.as_raw(), owner.gid.as_raw()));
        let folder = StateFolder::prepare(&settings.state, owner).context("[acme] state")?;
        Ok(Self(Some((settings.clone(), folder))))
    }

    /// The files of the certificates, whether there are any yet or not.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let Some((settings, folder)) = &self.0 else { return Vec::new() };
        settings.certificates.iter().map(|names| folder.certificate_file(names)).collect()
    }
}

impl AcmeState {
    /// Sees to the certificates of a configuration from now on.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub(super) fn adopt(&mut self, prepared: PreparedAcme) -> anyhow::Result<()> {
        let Some((settings, folder)) = prepared.0 else {
            self.running = None;
            self.shared.statuses.clear();
            return Ok(());
        };
        if self.running.as_ref().is_some_and(|(running, _)| *running == settings) {
            return Ok(());
        }
        // An order in progress ends first: two at a time would be two accounts, perhaps.
        self.running = None;
        let shared = self.shared.clone();
        let manager = Manager::start(settings.clone(), folder, shared, Pace::default())
            .context("the thread that orders certificates cannot be started")?;
        self.running = Some((settings, manager));
        Ok(())
    }

    /// Answers to HTTP-01, for a configuration that orders certificates.
    pub(super) fn responses(
        &self,
        settings: &AcmeSettings,
    ) -> Option<afpa_module_http::Challenges> {
        let challenges = self.shared.challenges.clone();
        let wanted = !settings.certificates.is_empty();
        wanted.then(|| Arc::new(move |token: &str| challenges.response(token)) as _)
    }

    /// Answers to TLS-ALPN-01.
    pub(super) fn certificates(&self) -> afpa_tls::ChallengeCertificates {
        let challenges = self.shared.challenges.clone();
        Box::new(move |name| {
            let found = challenges.certificate(name)?;
            Some((found.certificate.clone(), found.key.clone()))
        })
    }

    /// How it stands with the certificates.
    pub(super) fn statuses(&self) -> Statuses {
        self.shared.statuses.clone()
    }
}
