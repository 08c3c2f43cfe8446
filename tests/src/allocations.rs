//! The allocations of a running server, counted by a library that is loaded into it (`tests/allocations.c`).

use std::fs;
use std::path::PathBuf;

use afpa_testkit::Launch;
use tempfile::TempDir;

use crate::library;

/// The library, and the file with the count.
#[derive(Debug)]
pub struct Allocations {
    folder: TempDir,
}

impl Allocations {
    /// Ready to be loaded.
    ///
    /// # Errors
    /// Why this machine cannot build it: the test then says SKIP.
    pub fn new() -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        library::build("allocations", folder.path())?;
        let new = Self { folder };
        fs::write(new.file(), [0; 8]).map_err(|error| error.to_string()).map(|()| new)
    }

    /// Has a server load it.
    pub fn load(&self, launch: &mut Launch) {
        launch.env("LD_PRELOAD", self.folder.path().join("allocations.so"));
        launch.env("AFPA_ALLOCATIONS", self.file());
    }

    /// Allocations of the server since its start.
    ///
    /// # Panics
    /// When the file is gone.
    pub fn count(&self) -> u64 {
        let bytes = fs::read(self.file()).expect("the count is there");
        u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("count")
    }
}
