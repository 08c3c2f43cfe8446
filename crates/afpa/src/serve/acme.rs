//! Certificates that come by themselves, in the life of a server.

use std::path::PathBuf;
use std::sync::Arc;

use afpa_acme::{
    AcmeSettings, Answer, Answers, ChallengeZones, Challenges, Demand, Manager, OnDemand,
    OtherMachines, Pace, Shared, StateFolder, Statuses,
};
use anyhow::Context as _;

use crate::privileges::Identity;

/// The manager of certificates, and the state that it shares with workers. Challenges that are open outlive a reload.
#[derive(Default)]
pub(super) struct AcmeState {
    shared: Shared,
    /// The answers to challenges of orders of the fleet.
    answers: Answers,
    running: Option<Running>,
}

struct Running {
    settings: AcmeSettings,
    folder: StateFolder,
    /// It orders for as long as it lives.
    manager: Manager,
}

/// The folder of certificates, ready for a configuration.
pub(super) struct PreparedAcme(Option<(AcmeSettings, StateFolder)>);

impl PreparedAcme {
    /// Makes the folder of certificates ready for the user that serves.
    ///
    /// # Errors
    /// When the folder cannot be used.
    pub(super) fn new(settings: &AcmeSettings, owner: Option<&Identity>) -> anyhow::Result<Self> {
        if !settings.orders() {
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
    /// Sees to the certificates of a configuration, from [`begin`](Self::begin) on; together with others, if there are any.
    ///
    /// # Errors
    /// When its thread cannot be started.
    pub(super) fn adopt(
        &mut self,
        prepared: PreparedAcme,
        others: Option<OtherMachines>,
    ) -> anyhow::Result<()> {
        self.shared.others.store(others.map(Arc::new));
        let Some((settings, folder)) = prepared.0 else {
            self.running = None;
            self.shared.statuses.clear();
            self.shared.demand.set(&OnDemand::default());
            return Ok(());
        };
        if self.running.as_ref().is_some_and(|running| running.settings == settings) {
            return Ok(());
        }
        // An order in progress ends first: two at a time would be two accounts, perhaps.
        self.running = None;
        let shared = self.shared.clone();
        let manager = Manager::start(settings.clone(), folder.clone(), shared, Pace::default())
            .context("the thread that orders certificates cannot be started")?;
        self.running = Some(Running { settings, folder, manager });
        Ok(())
    }

    /// Orders from now on. An authority asks at once, so the server must listen.
    pub(super) fn begin(&mut self) {
        if let Some(running) = &mut self.running {
            running.manager.begin();
        }
    }

    /// Records of DNS-01 are put there, unless a program sets them.
    pub(super) fn set_zones(&self, zones: Arc<dyn ChallengeZones>) {
        self.shared.challenges.set_zones(zones);
    }

    /// The open challenges, and those of orders of the fleet.
    pub(super) fn answers(&self) -> (Challenges, Answers) {
        (self.shared.challenges.clone(), self.answers.clone())
    }

    /// Answers to HTTP-01, for a configuration that orders certificates.
    pub(super) fn responses(
        &self,
        settings: &AcmeSettings,
    ) -> Option<afpa_module_http::Challenges> {
        let challenges = self.shared.challenges.clone();
        settings.orders().then(|| Arc::new(move |token: &str| challenges.response(token)) as _)
    }

    /// Answers to TLS-ALPN-01.
    pub(super) fn certificates(&self) -> afpa_tls::ChallengeCertificates {
        let challenges = self.shared.challenges.clone();
        Box::new(move |name| {
            let found = challenges.certificate(name)?;
            Some((found.certificate.clone(), found.key.clone()))
        })
    }

    /// The names that clients ask for.
    pub(super) fn demand(&self) -> Demand {
        self.shared.demand.clone()
    }

    /// Whether a client is to wait for its certificate, for a configuration that orders certificates on demand.
    pub(super) fn on_demand(
        &self,
        settings: &AcmeSettings,
    ) -> Option<afpa_tls::resolver::IsOrdered> {
        let demand = self.demand();
        let wanted = !settings.on_demand.names.is_empty();
        let clock = Pace::default().clock;
        let ask = move |name: &str, is_there: bool| match is_there {
            true => {
                demand.note(name);
                false
            }
            false => demand.ask(name, clock()) == Answer::Wait,
        };
        wanted.then(|| Box::new(ask) as _)
    }

    /// The files of the certificates that were ordered on demand.
    pub(super) fn on_demand_files(&self) -> Vec<PathBuf> {
        let Some(Running { folder, .. }) = &self.running else { return Vec::new() };
        let names = self.shared.demand.names().into_iter();
        names.map(|name| folder.certificate_file(&[name])).collect()
    }

    /// How it stands with the certificates.
    pub(super) fn statuses(&self) -> Statuses {
        self.shared.statuses.clone()
    }
}
