//! The signals that end a command.

use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// SIGINT and SIGTERM as something to wait for: destructors run before the program ends.
pub(super) struct Ending(SignalFd);

impl Ending {
    /// To be made before any thread is, so that none of them is ended by the signal.
    pub(super) fn watch() -> Result<Self> {
        let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        signals.thread_block()?;
        Ok(Self(SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?))
    }

    /// Waits for one of them, or until `over` says so.
    pub(super) fn wait(&self, mut over: impl FnMut() -> bool) -> Result<()> {
        while self.0.read_signal()?.is_none() && !over() {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}
