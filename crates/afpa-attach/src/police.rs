//! The police in the kernel, which decides who may connect to the server, and the operator's orders for it.
//!
//! The server knows nothing of the police, and answers every request that the kernel lets through. So only connections
//! are refused here; rates of requests are the server's affair.

use std::sync::Arc;

use afpa_bpf::FastPath;
use afpa_police::{Police, PoliceKernel, PoliceSettings};
use serde_json::{Map, Value, json};

use crate::say::say;

/// Reads the prefixes and rates of the police; called again at each HUP.
pub type ReadPolice = Box<dyn Fn() -> anyhow::Result<PoliceSettings>>;

/// Begins the police, which is in the programs alone.
pub(crate) fn begin(
    fast_path: &Arc<FastPath>,
    settings: &PoliceSettings,
) -> anyhow::Result<Police> {
    // Nothing is counted here but in the kernel, so no clock is needed.
    let police = Police::new(Some(Arc::clone(&fast_path.police) as Arc<dyn PoliceKernel>), 0, 0);
    police.configure(settings)?;
    Ok(police)
}

/// Reads everything again. If something is wrong with it, nothing changes.
pub(crate) fn reload(police: &Police, read: &ReadPolice) {
    let done = read().and_then(|settings| Ok(police.configure(&settings)?));
    if let Err(error) = done {
        say(&format!("allowed and denied clients stay as they were: {error:#}"));
    }
}

/// Share and refused connections of each class, by its name.
pub(crate) fn classes(police: &Police) -> Map<String, Value> {
    let classes = police.classes().into_iter().map(|(name, share, refused)| {
        (name, json!({ "share_percent": share, "refused_connections": refused }))
    });
    classes.collect()
}
