//! `perf stat`, told when to begin and when to end.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::perf::Perf;
use super::{Category, Counted};

/// Counts on one core, between [`Counting::begin`] and [`Counting::pause`].
pub struct Counting {
    perf: Perf,
}

impl Counting {
    /// Starts perf, which counts nothing yet; `folder` is for its two pipes.
    ///
    /// # Errors
    ///
    /// Without perf, or when the pipes cannot be made.
    pub fn prepare(core: usize, folder: &Path) -> Result<Self> {
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-D", "-1", "-C", &core.to_string()]);
        for category in Category::ALL {
            command.args(["-e", "raw_syscalls:sys_enter"]);
            if category != Category::Other {
                let ids: Vec<_> = category.calls().iter().map(|id| format!("id=={id}")).collect();
                command.args(["--filter", &ids.join("||")]);
            }
        }
        command.args(["-e", "context-switches", "-e", "instructions"]);
        Ok(Self { perf: Perf::start(command, folder)? })
    }

    /// Counts from now on.
    ///
    /// # Errors
    ///
    /// When perf has ended or does not obey.
    pub fn begin(&mut self) -> Result<()> {
        self.perf.tell("enable")
    }

    /// Counts no more.
    ///
    /// # Errors
    ///
    /// When perf has ended or does not obey.
    pub fn pause(&mut self) -> Result<()> {
        self.perf.tell("disable")
    }

    /// Ends perf and gives back what it counted.
    ///
    /// # Errors
    ///
    /// When perf fails, or prints what it never printed.
    pub fn end(mut self) -> Result<Counted> {
        Counted::parse(&self.perf.end()?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn perf_counts_between_begin_and_pause() {
        if let Some(reason) = crate::whitebox::missing() {
            eprintln!("SKIP: {reason}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut counting = Counting::prepare(0, folder.path()).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        counting.begin().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        counting.pause().unwrap();
        let longest = begun.elapsed().as_secs_f64() + 0.1;
        std::thread::sleep(Duration::from_millis(300));
        let counted = counting.end().unwrap();
        assert!((0.09..longest).contains(&counted.seconds), "{counted:?}, {longest}");
    }
}
