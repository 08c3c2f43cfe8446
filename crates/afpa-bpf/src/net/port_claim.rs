//! The right to answer on a port: one fast path has it, in each network namespace.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use crate::found::{FoundFastPath, Process};
use crate::net::port_lock::{Attempt, PortLock};
use crate::pin_dir::PinDir;

/// The ports that this process may answer on, for as long as it holds this.
#[derive(Debug, Default)]
pub struct PortClaim {
    locks: BTreeMap<u16, Option<PortLock>>,
}

/// Why a port cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ClaimRefused {
    /// Another process answers on it.
    #[error("port {port} has a fast path already, of {}", describe(.holder))]
    Held {
        /// The port.
        port: u16,
        /// The process that has it, if it can be found.
        holder: Option<Process>,
    },
    /// Programs that an ended process left behind are still needed, and cannot be taken over.
    #[error(
        "{connections} connections of an earlier fast path on port {port} need translation still"
    )]
    Needed {
        /// The port.
        port: u16,
        /// The number of connections that still need them.
        connections: usize,
    },
    /// The kernel refuses.
    #[error("it cannot be found out whether port {port} has a fast path: {error}")]
    Unknown {
        /// The port.
        port: u16,
        /// The kernel's error.
        error: io::Error,
    },
}

impl ClaimRefused {
    /// A remedy for the operator.
    pub fn remedy(&self) -> String {
        match self {
            Self::Held { port, holder: Some(process) } if process.is_attach() => {
                format!("end it with `afpa detach --port {port}`")
            }
            Self::Held { holder: Some(process), .. } => {
                format!("end it with `kill {}`", process.id)
            }
            Self::Held { holder: None, .. } => "end that process".to_owned(),
            Self::Needed { port, .. } => {
                format!("wait with `afpa detach --port {port}`, or break them with --force")
            }
            Self::Unknown { .. } => "try it again".to_owned(),
        }
    }
}

fn describe(holder: &Option<Process>) -> String {
    holder.as_ref().map_or_else(|| "another process".to_owned(), Process::to_string)
}

/// The kernel takes a moment to notice that a process was killed.
const DEATH: Duration = Duration::from_secs(1);

impl PortClaim {
    /// Takes a port, and removes the programs that earlier processes left on it.
    ///
    /// # Errors
    /// As [`lock`](Self::lock) and [`clear`](Self::clear).
    pub fn take(&mut self, port: u16) -> Result<(), ClaimRefused> {
        if self.locks.contains_key(&port) {
            return Ok(());
        }
        self.lock(port)?;
        Self::clear(port, None)
    }

    /// Takes a port, which no other process has from then on.
    ///
    /// # Errors
    /// When another process has it.
    pub fn lock(&mut self, port: u16) -> Result<(), ClaimRefused> {
        let unknown = |error| ClaimRefused::Unknown { port, error };
        let lock = match PortLock::attempt(port).map_err(unknown)? {
            Attempt::Taken(lock) => Some(lock),
            Attempt::Held(holder) => {
                let found = || living(port).ok().flatten()?.process();
                return Err(ClaimRefused::Held { port, holder: holder.or_else(found) });
            }
            // Then the kernel's own list alone says whether there is one.
            Attempt::Squatted => None,
        };
        let deadline = Instant::now() + DEATH;
        while let Some(other) = living(port).map_err(unknown)? {
            if Instant::now() >= deadline {
                return Err(ClaimRefused::Held { port, holder: other.process() });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.locks.insert(port, lock);
        Ok(())
    }

    /// Removes the programs that earlier processes left on a port, unless they are kept in `own`, from which this
    /// process takes them over.
    ///
    /// # Errors
    /// When connections still need these programs.
    pub fn clear(port: u16, own: Option<&PinDir>) -> Result<(), ClaimRefused> {
        let unknown = |error| ClaimRefused::Unknown { port, error };
        for left in on(port).map_err(unknown)? {
            if own.is_some_and(|own| left.is_kept_in(own.folder())) {
                continue;
            }
            match left.needed_by().map_err(unknown)? {
                0 => left.remove().map_err(unknown)?,
                connections => return Err(ClaimRefused::Needed { port, connections }),
            }
        }
        Ok(())
    }
}

fn living(port: u16) -> io::Result<Option<FoundFastPath>> {
    Ok(on(port)?.into_iter().find(FoundFastPath::is_alive))
}

/// All fast paths on a port. None, where this process lacks the right to look: then the lock alone decides.
fn on(port: u16) -> io::Result<Vec<FoundFastPath>> {
    match FoundFastPath::all() {
        Ok(mut all) => {
            all.retain(|found| found.serves(port));
            Ok(all)
        }
        Err(error) if is_unavailable(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// No right to look, or nothing to look at, which kernels without tcx call an invalid argument.
fn is_unavailable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_first_and_how_to_end_it() {
        let held = |command: &str| ClaimRefused::Held {
            port: 80,
            holder: Some(Process { id: 7, command: command.to_owned() }),
        };
        let attach = held("afpa attach --listen 0.0.0.0:80");
        assert_eq!(
            attach.to_string(),
            "port 80 has a fast path already, of process 7 (afpa attach --listen 0.0.0.0:80)"
        );
        assert_eq!(attach.remedy(), "end it with `afpa detach --port 80`");
        assert_eq!(held("afpa serve site").remedy(), "end it with `kill 7`");
        let nobody = ClaimRefused::Held { port: 80, holder: None };
        assert_eq!(nobody.to_string(), "port 80 has a fast path already, of another process");
        let needed = ClaimRefused::Needed { port: 80, connections: 3 };
        assert!(needed.remedy().contains("--force"), "{}", needed.remedy());
    }
}
