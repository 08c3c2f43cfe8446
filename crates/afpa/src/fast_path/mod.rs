//! The fast path of `afpa serve`: small objects are answered in the kernel, in the softirq in which
//! the request arrived, on connections that the workers accepted.
//!
//! ```text
//! privileged:  Prepared::load ─ programs on the interfaces
//! user:        Prepared::start ─ FastPath ── adopt(sites) ── pause ── finish
//!                                  │            │ at a reload
//!                                  │            ├ Fit, Leads: which hosts lead to which sites
//!                                  │            ├ Scope: which objects host and path alone lead to
//!                                  │            └ Resident: these objects, pinned in the kernel
//!                                  ├ heart: beat, access log, sweep
//!                                  └ RtxThread: time-outs of answers
//! ```
//!
//! The cache decides what is current: it tells the [`Resident`] of every object that comes and, before
//! anything else happens to it, of every object that goes. The heart beats only while the workers do;
//! the kernel stops answering two seconds after the last beat, and at once when the process is gone.

mod fit;
mod heart;
mod keep;
mod log;
mod observe;
mod prepare;
mod resident;
mod running;
mod scope;
mod served;
mod tally;
mod weigh;

pub(crate) use observe::{Look, OfSite};
pub(crate) use prepare::{Outcome, Prepared, outlook, too_late};
pub(crate) use running::{FastPath, Parts};
pub(crate) use scope::Scope;

/// Why the fast path is not in use; what is missing and what would help.
#[derive(Debug, thiserror::Error)]
#[error("{reason} ({remedy})")]
pub(crate) struct Missing {
    reason: String,
    remedy: String,
}

impl Missing {
    fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }
}

impl From<afpa_bpf::Unavailable> for Missing {
    fn from(unavailable: afpa_bpf::Unavailable) -> Self {
        Self::new(unavailable.reason, unavailable.remedy)
    }
}
