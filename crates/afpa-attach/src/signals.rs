//! Signals, as they are waited for.

use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::say::say;

/// Signals without a meaning here, which would end the process, or stop it.
const IGNORED: [Signal; 9] = [
    Signal::SIGUSR1,
    Signal::SIGALRM,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    Signal::SIGIO,
    Signal::SIGPWR,
    Signal::SIGSTKFLT,
    Signal::SIGXFSZ,
    Signal::SIGTTOU,
];

/// TERM, INT, QUIT, HUP and USR2 wait for [`next_signal`] from now on, in this thread and in those that it starts.
pub(crate) fn listen_to_signals() -> anyhow::Result<SignalFd> {
    let mut mask = SigSet::empty();
    for signal in
        [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGUSR2]
    {
        mask.add(signal);
    }
    mask.thread_block()?;
    IGNORED.into_iter().collect::<SigSet>().thread_block()?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?)
}

/// The next signal to obey; `None` when none came within `timeout`.
pub(crate) fn next_signal(signals: &SignalFd, timeout: Duration) -> anyhow::Result<Option<Signal>> {
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let signal = signals.read_signal()?;
    let signal = signal.and_then(|info| Signal::try_from(info.ssi_signo as i32).ok());
    if signal == Some(Signal::SIGUSR2) {
        say(
            "! SIGUSR2: this version does not change its program while it runs: end it with TERM, and start the new one",
        );
        return Ok(None);
    }
    Ok(signal)
}
