//! Signals, as they are waited for.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// TERM, INT, QUIT and HUP wait for [`next_signal`] from now on, in this thread and in those that it starts.
pub(crate) fn listen_to_signals() -> anyhow::Result<SignalFd> {
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
        mask.add(signal);
    }
    mask.thread_block()?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

/// A signal, or `None` when none came within `timeout`.
pub(crate) fn next_signal(signals: &SignalFd, timeout: Duration) -> anyhow::Result<Option<Signal>> {
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let signal = signals.read_signal()?;
    Ok(signal.and_then(|info| Signal::try_from(info.ssi_signo as i32).ok()))
}
