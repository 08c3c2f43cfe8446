//! The police of this process, which decides who is let in, with the kernel's part where there is one.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use afpa_config::Config;
use afpa_framework::clock::{began, since_boot};
use afpa_police::{Police, PoliceKernel};

/// Police that refuse nobody yet.
pub(super) fn begin(kernel: Option<Arc<dyn PoliceKernel>>) -> Police {
    let began = u64::try_from(began().as_nanos()).unwrap_or_default();
    Police::new(kernel, RandomState::new().hash_one(since_boot()), began)
}

/// From now on they decide by this configuration.
pub(super) fn configure(police: &Police, config: &Config) {
    if let Err(error) = police.configure(&config.police.all_settings()) {
        tracing::warn!(%error, "the kernel does not take [police]: AFPA itself refuses clients when they are accepted");
    }
}
