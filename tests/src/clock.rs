//! A clock of a server that is not that of the others, by a library that is loaded into it (`tests/clock.c`).

use afpa_testkit::Launch;
use tempfile::TempDir;

use crate::library;

/// The library.
#[derive(Debug)]
pub struct Clock(TempDir);

impl Clock {
    /// Ready to be loaded.
    ///
    /// # Errors
    /// Why this machine cannot build it: the test then says SKIP.
    pub fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let others = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), others).map_err(|error| error.to_string())?;
        library::build("clock", folder.path())?;
        Ok(Self(folder))
    }

    /// Has a server load it: its clock is so many seconds ahead, or behind.
    pub fn set(&self, launch: &mut Launch, ahead: i64) {
        launch.env("LD_PRELOAD", self.0.path().join("clock.so"));
        launch.env("AFPA_CLOCK_AHEAD", ahead.to_string());
    }
}
