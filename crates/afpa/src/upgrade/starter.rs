//! The process that starts the next one.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::geteuid;

use super::wire::{self, Order};
use super::{CHANNEL, SOCKET};
use crate::keys::settled;

/// Variables that are about the process that was started first.
const NOT_INHERITED: [&str; 5] =
    ["LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "LISTEN_FDS_FIRST_FD", "WATCHDOG_PID"];

/// Waits on standard input, a socket, for orders of AFPA, until AFPA has ended. The arguments are the path of the
/// program, and its arguments with the name of the program.
///
/// # Errors
/// When standard input is no socket of AFPA.
pub fn wait_for_order() -> anyhow::Result<()> {
    // Signals of the terminal, or for all processes of a service, are for AFPA.
    SigSet::all().thread_block().context("cannot block signals")?;
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().context("only afpa starts this process")?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let arguments = arguments.collect();
    let mut starter =
        Process { socket, path: path.into(), arguments, taken: Vec::new(), child: None };
    while starter.follow()? {}
    Ok(())
}

struct Process {
    socket: UnixStream,
    path: PathBuf,
    arguments: Vec<OsString>,
    /// Descriptors for the next process.
    taken: Vec<OwnedFd>,
    child: Option<Child>,
}

impl Process {
    /// Waits for an order, or for the end of the process that was started. False: AFPA has ended.
    fn follow(&mut self) -> anyhow::Result<bool> {
        const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let timeout = self.child.as_ref().map(|_| &LOOK);
        let ready = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], timeout)?;
        if let Some(child) = &mut self.child
            && let Some(status) = child.try_wait()?
        {
            self.child = None;
            self.tell(&format!("ended with {status}"))?;
        }
        if ready == 0 {
            return Ok(true);
        }
        match wire::receive(&self.socket)? {
            None => return Ok(false),
            Some(Order::Take(more)) => self.taken.extend(more),
            // Only one at a time: a process that is taken over could have any number started.
            Some(Order::Start) if self.child.is_some() => {
                self.taken.clear();
                self.tell("cannot start: the one before is there still")?;
            }
            Some(Order::Start) => match self.start() {
                Ok(child) => {
                    self.tell(&format!("pid {}", child.id()))?;
                    self.child = Some(child);
                }
                Err(error) => self.tell(&format!("cannot start: {error}"))?,
            },
            Some(Order::End) => {
                if let Some(mut child) = self.child.take() {
                    child.kill()?;
                    child.wait()?;
                }
                self.taken.clear();
            }
        }
        Ok(true)
    }

    fn start(&mut self) -> io::Result<Child> {
        let taken = in_a_row(std::mem::take(&mut self.taken))?;
        let first = taken.first().map_or(3, |first| first.as_raw_fd());
        let names = std::iter::once(CHANNEL).chain(taken.iter().skip(1).map(|_| SOCKET));
        let [name, arguments @ ..] = &self.arguments[..] else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut command = Command::new(whole(&self.path)?);
        command.arg0(name).args(arguments).stdin(Stdio::null());
        for name in NOT_INHERITED {
            command.env_remove(name);
        }
        command.env("LISTEN_FDS", taken.len().to_string());
        command.env("LISTEN_FDNAMES", names.collect::<Vec<_>>().join(":"));
        if first != 3 {
            command.env("LISTEN_FDS_FIRST_FD", first.to_string());
        }
        command.spawn()
    }

    fn tell(&mut self, news: &str) -> io::Result<()> {
        self.socket.write_all(news.replace('\n', " ").as_bytes())?;
        self.socket.write_all(b"\n")
    }
}

/// The program. Root must not start one that others can replace: the process that asks has become another user, and
/// that one may be in somebody's hand.
fn whole(path: &Path) -> io::Result<PathBuf> {
    let path = if geteuid().is_root() { settled(path)? } else { path.to_owned() };
    fs::metadata(&path).map(|_| path)
}

/// Gives descriptors numbers that follow one another, as `LISTEN_FDS` wants them. They have such numbers already, unless this
/// process has inherited descriptors in between; it may have more of these above.
fn in_a_row(mut taken: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    let follow = |pair: &[OwnedFd]| match pair {
        [one, next] => one.as_raw_fd() + 1 == next.as_raw_fd(),
        _ => true,
    };
    while !taken.windows(2).all(follow) {
        let highest = taken.iter().map(|one| one.as_raw_fd()).max().unwrap_or_default();
        let moved = taken.iter().map(|one| {
            let moved = fcntl_dupfd_cloexec(one, highest + 1)?;
            rustix::io::fcntl_setfd(&moved, rustix::io::FdFlags::empty())?;
            Ok(moved)
        });
        taken = moved.collect::<io::Result<_>>()?;
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_follow_one_another_whatever_else_was_inherited() {
        let file = std::fs::File::open("/dev/null").unwrap();
        // Far above those of other tests.
        let at = |number| fcntl_dupfd_cloexec(&file, number).unwrap();
        let taken = vec![at(500), at(502), at(505)];
        let _others = [at(501), at(507), at(510)];
        let row = in_a_row(taken).unwrap();
        let numbers: Vec<_> = row.iter().map(|one| one.as_raw_fd()).collect();
        assert_eq!(numbers, [511, 512, 513]);
    }
}
