//! A network namespace that is removed when it is dropped.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, anyhow};
use nix::sched::{CloneFlags, setns};

use crate::congestion;
use crate::interface::Interface;
use crate::reaper::{self, Owner};
use crate::tool;

/// A network namespace of this process, with `lo` up.
///
/// Its name carries the owner's process id and start time, so that a later run can tell that the
/// owner is dead and remove what it left behind ([`reap`](crate::reap)). Dropping it kills the
/// processes that still live in it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// Makes a new namespace; `role` is a readable end of its name. The first call of a process
    /// also removes what dead owners left.
    ///
    /// # Errors
    ///
    /// Without `CAP_SYS_ADMIN` or iproute2.
    pub fn create(role: &str) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            reaper::reap()?;
        }
        let name = format!("{}-{number}-{role}", Owner::this_process()?.prefix());
        tool::ip(&format!("netns add {name}"))?;
        let namespace = Self { name };
        tool::ip(&format!("-n {} link set lo up", namespace.name))?;
        Ok(namespace)
    }

    /// The name that `ip netns` knows it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run inside, with the namespace's own `/sys`.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs `work` on a thread inside; sockets that it opens stay inside for good.
    ///
    /// # Errors
    ///
    /// When the namespace cannot be entered, or `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| self.enter().map(|()| work()));
            inside.join().map_err(|_| anyhow!("the work inside {} panicked", self.name))?
        })
    }

    /// Makes the kernel's TCP wait for two seconds before it retransmits, where it has a setting for that (from Linux 6.11
    /// on). A peer that is a process may wait for the processor on a busy machine; to such a peer, a segment that is
    /// retransmitted because of the delay looks like a new one.
    ///
    /// # Errors
    ///
    /// When `sysctl` fails.
    pub fn send_again_late(&self) -> Result<()> {
        if !Path::new("/proc/sys/net/ipv4/tcp_rto_min_us").exists() {
            return Ok(());
        }
        let longer = ["net.ipv4.tcp_early_retrans=0", "net.ipv4.tcp_rto_min_us=2000000"];
        tool::finish(self.command("sysctl").arg("-qw").args(longer)).map(drop)
    }

    /// Moves the calling thread inside, for good. Threads it spawns later are inside too.
    ///
    /// # Errors
    ///
    /// Without `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> Result<()> {
        let path = reaper::path(&self.name);
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        setns(file, CloneFlags::CLONE_NEWNET).with_context(|| format!("setns {}", self.name))
    }

    /// Makes `algorithm` the congestion control of every socket opened inside from now on.
    ///
    /// # Errors
    ///
    /// When the kernel does not have it.
    pub fn set_congestion(&self, algorithm: &str) -> Result<()> {
        congestion::choose(self.command("sysctl"), algorithm)
    }

    /// An interface inside, by name.
    pub fn interface<'n>(&'n self, name: &'n str) -> Interface<'n> {
        Interface::new(self, name)
    }

    /// Ids of the processes inside.
    ///
    /// # Errors
    ///
    /// When `ip netns` fails.
    pub fn processes(&self) -> Result<Vec<i32>> {
        reaper::processes(&self.name)
    }

    /// Kills all processes inside and waits, within reason, until they have ended.
    ///
    /// # Errors
    ///
    /// When `ip netns` fails.
    pub fn kill_processes(&self) -> Result<()> {
        reaper::kill_processes(&self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = reaper::remove(&self.name) {
            eprintln!("afpa-netlab: {error:#}");
        }
    }
}
