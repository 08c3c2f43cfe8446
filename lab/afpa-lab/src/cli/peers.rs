//! The common part of `afpa-lab compare` and `afpa-lab proxy`.

use afpa_lab::bench::new_folder;
use afpa_lab::environment::Environment;
use afpa_lab::peers::Setup;
use afpa_lab::work::Work;
use anyhow::Result;
use clap::Args;
use clap::error::{Error, ErrorKind};
use rustix::thread::sched_getaffinity;

use super::bench::BenchOptions;
use super::papers::programs;
use super::say::say;

/// The cores of both sides.
#[derive(Debug, Args)]
pub(super) struct Cores {
    /// Core of the servers that are measured
    #[arg(long, value_name = "N", default_value_t = 0)]
    server_core: usize,
    /// Core of the client, and of servers behind proxies
    #[arg(long, value_name = "N", default_value_t = 1)]
    client_core: usize,
}

/// Runs an experiment with a folder to work in and one for its results; says where the latter is. It measured
/// everything.
pub(super) fn with_setup(
    name: &str,
    cores: &Cores,
    options: &BenchOptions,
    experiment: impl FnOnce(&Setup<'_>) -> Result<()>,
) -> Result<bool> {
    cores.check();
    let work = Work::create()?;
    let folder = new_folder(name, options.out.as_deref(), &Environment::look())?;
    experiment(&Setup {
        server_core: cores.server_core,
        client_core: cores.client_core,
        programs: programs(options.afpa.as_deref()),
        work: work.path(),
        root: work.path().join("root"),
        folder: &folder,
    })?;
    say!("written: {}/ (results.json, results.md, results.svg, configurations)", folder.display());
    Ok(true)
}

impl Cores {
    /// Ends the program when there are no such cores: that is wrong usage.
    fn check(&self) {
        let usable = sched_getaffinity(None);
        for core in [self.server_core, self.client_core] {
            if !usable.as_ref().is_ok_and(|usable| core < 1024 && usable.is_set(core)) {
                refuse(&format!("core {core} is not available here"));
            }
        }
        if self.server_core == self.client_core {
            refuse("server and client need a core each");
        }
    }
}

fn refuse(reason: &str) -> ! {
    let error: Error = Error::raw(ErrorKind::ValueValidation, format!("{reason}\n"));
    error.exit()
}
