//! The fast path of `afpa serve`: the kernel answers for small objects, in the softirq in which the request
//! arrives, on connections that the workers accepted. This crate decides which objects the kernel has, and
//! runs it from the start of the process to its end.
//!
//! ```text
//! privileged:  AttachedPrograms::load ─ programs on the interfaces
//! user:        AttachedPrograms::start ─ RunningFastPath ─ adopt(sites) ─ pause ─ finish
//!                 │                             │ again at each reload
//!                 ├ Heartbeat: beat, access     ├ Eligibility, HostTable: which hosts select which sites
//!                 │ log, sweep                  ├ KernelScope: objects that host and path alone lead to
//!                 └ Tender: time-outs           ├ AnswerScope, ServerAnswers: the same of servers' answers
//!                                               └ KernelCache: these objects, pinned in the kernel
//! ```
//!
//! Beside it, and there without it as well, the [`FloodShield`] keeps floods of first packets from the sockets of HTTP/3.
//!
//! The cache decides which objects are current: it reports every object that comes to the
//! [`KernelCache`](kernel_cache), and every object that goes, before anything else happens to it. The heartbeat stops
//! when a worker hangs; the kernel stops answering two seconds after the last beat, and at once when the process is
//! gone.

mod answer_scope;
mod eligibility;
mod event_log;
mod fast_path_core;
mod file_objects;
mod flood_shield;
mod heartbeat;
mod host_map;
mod host_table;
mod kernel_cache;
mod kernel_hosts;
mod load;
mod rebalance;
mod running;
mod scope;
mod server_answers;
mod settings;
mod site_numbers;
mod view;

pub use afpa_bpf::ANSWER_MAX;
pub use afpa_bpf::{Admission, PinDirOwner};
pub use eligibility::Eligibility;
pub use fast_path_core::AnswerSink;
pub use flood_shield::{FloodShield, ShieldView};
pub use load::{AttachedPrograms, Availability, expectation, has_work, too_late};
pub use running::RunningFastPath;
pub use scope::{KernelScope, MOST_WAYS, is_left_out};
pub use settings::{FastPathSettings, FastPathUse, KernelSite};
pub use site_numbers::AnswerCount;
pub use view::{FastPathNumbers, FastPathView, SiteInKernel};

/// Why there is no fast path, and a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{reason} ({remedy})")]
struct NoFastPath {
    reason: String,
    remedy: String,
}

impl NoFastPath {
    fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: remedy.into() }
    }
}

impl From<afpa_bpf::ClaimRefused> for NoFastPath {
    fn from(refused: afpa_bpf::ClaimRefused) -> Self {
        Self::new(refused.to_string(), refused.remedy())
    }
}

impl From<afpa_bpf::Unavailable> for NoFastPath {
    fn from(unavailable: afpa_bpf::Unavailable) -> Self {
        Self::new(unavailable.reason, unavailable.remedy)
    }
}
