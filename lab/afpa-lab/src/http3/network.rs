//! Where servers and client are.

use std::net::{IpAddr, Ipv4Addr};

use afpa_netlab::Bed;
use anyhow::Result;

use crate::bed::BedPlan;
use crate::loopback::{Loopback, on_core};

/// Removed when it is dropped.
pub(super) enum Network {
    /// Two namespaces, joined by a veth pair, each side's packets on its own core.
    Cores(Box<Bed>, String),
    /// One namespace.
    Loopback(Loopback),
}

impl Network {
    /// # Errors
    ///
    /// Without root, or when a step fails.
    pub(super) fn cores(server: usize, client: usize) -> Result<Self> {
        let plan = BedPlan::named("steered", (server, client), None)?;
        let record = plan.record();
        let note = format!("bed steered: {}; offloads {}", record.about, record.offloads);
        Ok(Self::Cores(Box::new(plan.create()?), note))
    }

    /// # Errors
    ///
    /// When a step fails.
    pub(super) fn loopback() -> Result<Self> {
        Loopback::create().map(Self::Loopback)
    }

    /// For people.
    pub(super) fn note(&self) -> &str {
        match self {
            Self::Cores(_, note) => note,
            Self::Loopback(loopback) => &loopback.note,
        }
    }

    /// Where servers listen.
    pub(super) fn server(&self) -> IpAddr {
        match self {
            Self::Cores(..) => Bed::SERVER_V4.into(),
            Self::Loopback(_) => Ipv4Addr::LOCALHOST.into(),
        }
    }

    /// The client's interface and address.
    pub(super) fn client(&self) -> (&'static str, IpAddr) {
        match self {
            Self::Cores(..) => (Bed::DEVICE, Bed::client_address(self.server(), 0)),
            Self::Loopback(_) => ("lo", Ipv4Addr::LOCALHOST.into()),
        }
    }

    /// Runs the experiment on a thread where the servers are. Threads and processes that it starts are there, too.
    pub(super) fn run<T: Send>(&self, experiment: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        match self {
            Self::Cores(bed, _) => bed.server().run(experiment)?,
            Self::Loopback(loopback) => loopback.run(experiment),
        }
    }

    /// Runs `work` on a thread where the client is, on its core. The caller is where the servers are.
    pub(super) fn at_client<T: Send>(
        &self,
        core: usize,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        match self {
            Self::Cores(bed, _) => bed.client().run(|| on_core(core, work))?,
            Self::Loopback(_) => on_core(core, work),
        }
    }
}
