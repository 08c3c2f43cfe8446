//! Processes that end with the test that started them.

use std::process::{Child, ChildStdout, Command};
use std::time::Duration;

use crate::until::{eventually_within, with_patience};

/// The time in which a process ends that has nothing left to do.
const LONGEST: Duration = Duration::from_secs(120);

/// A process that is killed when dropped.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts it.
    ///
    /// # Panics
    /// When the program is missing.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}")))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Its standard output, if that is a pipe and nobody has taken it.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// Whether it has not ended by itself.
    ///
    /// # Panics
    /// When the system does not say.
    pub fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("asked").is_none()
    }

    /// SIGKILL, and its end.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("gone");
    }

    /// Waits until it has ended by itself, and tells whether it was content.
    ///
    /// # Panics
    /// When it does not end.
    #[track_caller]
    pub fn wait(mut self) -> bool {
        let mut status = None;
        eventually_within(with_patience(LONGEST), "the process ends", || {
            status = self.0.try_wait().expect("asked");
            status.is_some()
        });
        status.is_some_and(|status| status.success())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}
