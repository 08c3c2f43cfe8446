//! The programs' reports about requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use libbpf_rs::MapHandle;

use crate::programs::Programs;
use crate::region::{Region, Words};
use crate::unavailable::Unavailable;

/// The programs' reports about requests: those that they answered, samples of the answers, and those that went to
/// attached servers.
pub struct Reports {
    pub(super) region: Arc<Region>,
    pub(super) events: MapHandle,
    pub(super) checked: MapHandle,
    pub(super) samples: MapHandle,
    pub(super) misses: MapHandle,
    pub(super) marks: Words,
}

impl Reports {
    pub(crate) fn over(programs: &Programs, region: &Arc<Region>) -> Result<Self, Unavailable> {
        Ok(Self {
            region: Arc::clone(region),
            events: programs.map("events")?,
            checked: programs.map("checked")?,
            samples: programs.map("samples")?,
            misses: programs.map("misses")?,
            marks: programs.words("unsafe_marks", size_of::<u64>())?,
        })
    }

    /// Report one in this many answers from now on; 0: none.
    pub fn set_log_every(&self, answers: u32) {
        self.region.log_every().store(answers, Ordering::Relaxed);
    }
}
