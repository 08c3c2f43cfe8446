//! How it stands with the certificates, for the server.

use std::sync::{Arc, Mutex, PoisonError};

/// How it stands with a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The names that are wanted.
    pub names: Vec<String>,
    /// The last second of the certificate that is there; `None`: there is none yet.
    pub not_after: Option<u64>,
    /// The second at which the next one is ordered.
    pub next: u64,
    /// Failures in a row.
    pub failures: u32,
    /// Why the last order failed.
    pub error: Option<String>,
    /// Orders that succeeded in the life of this process.
    pub issued: u64,
}

/// The state of all certificates, as the manager last saw it.
#[derive(Clone, Debug, Default)]
pub struct Statuses(Arc<Mutex<Vec<Status>>>);

impl Statuses {
    /// In the order of the configuration.
    pub fn get(&self) -> Vec<Status> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// There is no manager any more.
    pub fn clear(&self) {
        self.set(Vec::new());
    }

    pub(super) fn set(&self, statuses: Vec<Status>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = statuses;
    }
}
