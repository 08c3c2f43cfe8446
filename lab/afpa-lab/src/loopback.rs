//! The bed *loopback*: servers and client in one namespace with nothing but a loopback of its own.
//!
//! The kernel does part of each side's packet work on the other side's core. Congestion control matters even here:
//! BBR, the default of some machines, paces, and pacing costs most those who send in large pieces. Without the right to
//! make a namespace it is the machine's own loopback, as it is.

use std::fs;

use afpa_netlab::{Namespace, missing_privilege};
use anyhow::{Result, anyhow};

use crate::bed::CONGESTION;

/// Removed when it is dropped.
pub(crate) struct Loopback {
    namespace: Option<Namespace>,
    /// A description, for people.
    pub(crate) note: String,
}

impl Loopback {
    /// Sets it up.
    ///
    /// # Errors
    ///
    /// When this process may make a namespace, and a step fails.
    pub(crate) fn create() -> Result<Self> {
        if let Some(reason) = missing_privilege() {
            let note = format!(
                "the machine's own loopback, congestion control {} ({reason}: no namespace; compare such figures only \
                 with their like)",
                congestion()
            );
            return Ok(Self { namespace: None, note });
        }
        let namespace = Namespace::create("loopback")?;
        namespace.set_congestion(CONGESTION)?;
        let note = format!("own namespace, congestion control {}", namespace.run(congestion)?);
        Ok(Self { namespace: Some(namespace), note })
    }

    /// Runs the experiment on a thread inside. Threads and processes that it starts are inside, too.
    pub(crate) fn run<T: Send>(&self, experiment: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        match &self.namespace {
            Some(namespace) => namespace.run(experiment)?,
            None => experiment(),
        }
    }
}

/// Runs `work` on a thread that has a core of its own, in the caller's namespace.
pub(crate) fn on_core<T: Send>(core: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            afpa_netlab::pin(core)?;
            work()
        });
        thread.join().map_err(|_| anyhow!("the work on core {core} panicked"))?
    })
}

fn congestion() -> String {
    let chosen = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    chosen.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned())
}
