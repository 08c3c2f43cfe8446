//! An ordinary client: sockets, one thread, every byte of every response compared.

mod arrivals;
mod connection;
mod engine;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::engine::Engine;
use super::fetch_all;
use super::generator::{Generator, warm_up};
use crate::measure::{ClientSetup, Load, Measured};
use crate::workload::Workload;

/// Sockets and epoll on one thread.
#[derive(Debug)]
pub(super) struct Socket;

impl Generator for Socket {
    fn name(&self) -> &str {
        "socket"
    }

    fn about(&self) -> &str {
        "sockets and epoll on one thread: open and closed loop, with and without keep-alive; every \
         byte of every response is compared"
    }

    fn lacks(&self) -> Option<String> {
        None
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn can(&self, _: &Workload, load: &Load) -> Result<(), String> {
        match load.rate {
            Some(rate) if !(rate > 0.0 && rate <= 1e7) => Err(format!("a rate of {rate}")),
            _ => Ok(()),
        }
    }

    fn run(
        &self,
        client: &ClientSetup,
        workload: &Workload,
        load: &Load,
        sample: &mut dyn FnMut(),
    ) -> Result<Measured> {
        allow_files(load.connections)?;
        // A check of all files would warm a workload that is meant to be cold.
        if workload.is_mix() {
            fetch_all(client.to, workload, load.persistent)?;
        }
        let mut engine = Engine::new(client, workload, load)?;
        engine.start();
        warm_up(load, |time| {
            engine.run(time)?;
            Ok(engine.has_answers())
        })?;
        sample();
        engine.reset()?;
        engine.run(load.duration)?;
        sample();
        Ok(engine.finish())
    }
}

/// Raises the limit of open files, if it is too low for so many connections.
pub(super) fn allow_files(connections: u32) -> Result<()> {
    let wanted = u64::from(connections) + 64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let maximum_is = maximum.map_or("no limit".to_owned(), |maximum| maximum.to_string());
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).with_context(|| {
        format!("{connections} connections need as many open files; the hard limit is {maximum_is}")
    })
}
