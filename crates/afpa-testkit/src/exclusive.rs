//! Heavy tests, one at a time over all test binaries.

use std::fs::File;

use rustix::fs::{FlockOperation, flock};

/// Held while a heavy test runs; let go by dropping it.
#[derive(Debug)]
pub struct Exclusive(
    #[expect(dead_code, reason = "closing the descriptor gives the lock up")] File,
);

/// Waits until no other heavy test runs on this machine, by a lock file.
///
/// # Panics
/// When the lock file cannot be made.
pub fn exclusive() -> Exclusive {
    // One for each user: the kernel may refuse to open the files of another user in a shared folder.
    let user = rustix::process::geteuid().as_raw();
    let path = std::env::temp_dir().join(format!("afpa-heavy-tests-{user}.lock"));
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap_or_else(|error| panic!("lock file {}: {error}", path.display()));
    flock(&file, FlockOperation::LockExclusive).expect("flock of the lock file");
    Exclusive(file)
}
