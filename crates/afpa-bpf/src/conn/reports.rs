//! The programs' reports about requests.

use std::sync::Arc;

use libbpf_rs::MapHandle;

use crate::region::{Region, Words};

/// The programs' reports about requests: those that they answered, samples of the answers, and those that went to
/// attached servers.
pub struct Reports {
    pub(crate) region: Arc<Region>,
    pub(crate) events: MapHandle,
    pub(crate) checked: MapHandle,
    pub(crate) samples: MapHandle,
    pub(crate) misses: MapHandle,
    pub(crate) marks: Words,
}
