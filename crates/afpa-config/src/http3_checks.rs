//! Whether the key of HTTP/3 can be had.

use std::os::unix::fs::PermissionsExt as _;

use crate::finding::Finding;
use crate::http3::KeyError;
use crate::model::Config;
use crate::settings::Settings;

/// Whether the key can be read. Where a server `runs`, it has read the key with more rights.
pub(crate) fn feasibility(config: &Config, settings: &Settings, runs: bool) -> Option<Finding> {
    let at = settings.location("http3", "key");
    match config.http3.secret() {
        Ok(None) => None,
        Ok(Some(_)) => {
            let path = config.http3.key.as_deref()?;
            let mode = path.metadata().ok()?.permissions().mode();
            let cause = format!("every user of this machine can read {}", path.display());
            let remedy = format!("chmod o= {}", path.display());
            (mode & 0o007 != 0).then(|| Finding::warning(at, cause, remedy))
        }
        Err(KeyError { is_denied: true, .. }) if runs => None,
        Err(KeyError { cause, remedy, is_denied: true }) => {
            Some(Finding::warning(at, cause, remedy))
        }
        Err(KeyError { cause, remedy, .. }) => Some(Finding::error(at, cause, remedy)),
    }
}
