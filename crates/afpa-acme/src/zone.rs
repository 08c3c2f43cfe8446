//! Records in the zones that this process serves itself, in place of a program that sets them elsewhere.

use std::fmt;
use std::sync::Arc;

use crate::error::AcmeError;

/// Zones that take a text at a name, and give it up again.
pub trait ChallengeZones: Send + Sync {
    /// Puts the text at the name, beside others.
    ///
    /// # Errors
    /// With the reason why no zone can have it.
    fn put(&self, name: &str, value: &str) -> Result<(), String>;

    /// Takes the text away.
    fn take(&self, name: &str, value: &str);
}

/// A record that is there until this is dropped.
pub(crate) struct RecordInZone {
    zones: Arc<dyn ChallengeZones>,
    name: String,
    value: String,
}

impl RecordInZone {
    pub(crate) fn set(
        zones: Arc<dyn ChallengeZones>,
        name: String,
        value: String,
    ) -> Result<Self, AcmeError> {
        match zones.put(&name, &value) {
            Ok(()) => Ok(Self { zones, name, value }),
            Err(why) => Err(AcmeError::Zone { name, why }),
        }
    }
}

impl Drop for RecordInZone {
    fn drop(&mut self) {
        self.zones.take(&self.name, &self.value);
    }
}

impl fmt::Debug for RecordInZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordInZone({})", self.name)
    }
}
