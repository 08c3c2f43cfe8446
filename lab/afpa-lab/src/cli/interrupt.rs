//! SIGINT and SIGTERM end a run after the measurement at hand; a second one ends it at once.
//!
//! By handlers, not by a mask: servers and tools that are started would inherit a mask, and never
//! hear that they are to end.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

use super::say::say;

/// The exit status that shells expect of a program that a signal ended.
pub(super) const STATUS: u8 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal sets the flag that this function returns.
pub(super) fn watch() -> Result<&'static AtomicBool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    for kind in kinds {
        let entered = runtime.enter();
        let mut stream = signal(kind).context("cannot watch for signals")?;
        drop(entered);
        runtime.spawn(async move {
            while stream.recv().await.is_some() {
                interrupt();
            }
        });
    }
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    Ok(&INTERRUPTED)
}

fn interrupt() {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        // The bed goes with the next run, or with `afpa-lab clean`.
        std::process::exit(STATUS.into());
    }
    say!("afpa-lab: ending after this measurement; once more ends at once");
}
