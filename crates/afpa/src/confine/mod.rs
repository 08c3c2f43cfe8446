//! The confinement of threads: few rights are left to somebody who takes one over. This is defence in depth, below the
//! rights that the process drops.
//!
//! | threads | system calls | files |
//! |---|---|---|
//! | all, with the programs that they run | none that reach into other processes or administer the host | as the user may |
//! | workers, the administration's, and the one that sends spans | sockets, descriptors and maps that are there; no program, no thread, no ring, no signal | none |
//! | helpers | files, and threads of their kind; no program, no socket, no ring, no signal | to read, below the document roots |
//! | those that check passwords | as helpers | none |
//!
//! System calls and files are restricted for each thread in Linux. Its own threads inherit the restrictions, and
//! nobody can take them off. So a worker is confined on its own thread, when everything that it needs has been made,
//! and helpers descend from a thread that is made for a configuration. A reload, whose roots may be others, makes new
//! helpers.

mod calls;
mod files;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use afpa_config::Confine;
use afpa_server::HelperStart;
use rand::rngs::StdRng;
use seccompiler::BpfProgram;

use calls::Refusal;

/// How the threads of this process are confined.
#[derive(Clone)]
pub(crate) struct Confinement(Arc<State>);

struct State {
    /// `None`: not at all.
    calls: Option<Calls>,
    has_landlock: bool,
    lacks: Vec<String>,
}

struct Calls {
    without_clone3: BpfProgram,
    workers: BpfProgram,
    helpers: BpfProgram,
}

impl Confinement {
    /// Confines the calling thread, and all threads that it makes from now on, as the whole process; prepares the
    /// filters and domains that workers and helpers enter. Must be called on the first thread, when it has dropped its
    /// privileges and made no other.
    pub(crate) fn begin(wanted: Confine) -> Self {
        open_randomness();
        let refusal = match wanted {
            Confine::Off => None,
            Confine::Log => Some(Refusal::IsLogged),
            Confine::On => Some(Refusal::Fails),
        };
        let mut lacks = Vec::new();
        let has_landlock = wanted == Confine::On && try_landlock(&mut lacks);
        let calls = refusal.and_then(|refusal| {
            begin_calls(refusal, has_landlock)
                .inspect_err(|error| lacks.push(format!("no filters of system calls ({error})")))
                .ok()
        });
        Self(Arc::new(State { calls, has_landlock, lacks }))
    }

    /// [`begin`](Self::begin) for `afpa attach`, a process without workers that runs no program and serves no client.
    ///
    /// # Errors
    /// When the kernel has no filters of system calls; everything else goes on without.
    pub(crate) fn begin_alone() -> seccompiler::Result<()> {
        seccompiler::apply_filter(&calls::of_process_alone(Refusal::Fails)?)
    }

    /// For the summary of the start.
    pub(crate) fn line(&self) -> String {
        let State { calls, has_landlock, lacks } = &*self.0;
        let threads = match (calls, has_landlock) {
            (Some(_), true) => "workers and helpers, by seccomp and Landlock",
            (Some(_), false) => "workers and helpers, by seccomp",
            (None, true) => "workers and helpers, by Landlock",
            (None, false) => "no thread",
        };
        match lacks.as_slice() {
            [] => threads.to_owned(),
            lacks => format!("{threads}: {}", lacks.join("; ")),
        }
    }

    /// Confines the calling thread, a worker, for good.
    pub(crate) fn confine_worker(&self) {
        if self.0.has_landlock {
            tell("a worker", files::nothing().and_then(|nothing| nothing.restrict_self()));
        }
        if let Some(calls) = &self.0.calls {
            tell("a worker", seccompiler::apply_filter(&calls.workers));
        }
    }

    /// The start of helpers that load files below these directories. A thread that has begun so can read nothing else,
    /// nor can the threads that it makes.
    pub(crate) fn helpers_below<'a>(
        &self,
        roots: impl IntoIterator<Item = BorrowedFd<'a>>,
    ) -> HelperStart {
        let state = Arc::clone(&self.0);
        let below = state.has_landlock.then(|| files::below(roots)).transpose();
        let below = below.inspect_err(|error| warn("helpers", error)).ok().flatten();
        HelperStart::new(move || {
            if let Some(below) = &below {
                let entered = below.try_clone().map_err(|error| error.to_string());
                let entered = entered
                    .and_then(|below| below.restrict_self().map_err(|error| error.to_string()));
                tell("helpers", entered);
            }
            if let Some(calls) = &state.calls {
                tell("helpers", seccompiler::apply_filter(&calls.without_clone3));
                tell("helpers", seccompiler::apply_filter(&calls.helpers));
            }
        })
    }
}

/// A program with the C library in it cannot ask that whether it has getrandom(2). It then reads /dev/urandom, which the
/// first use of the process opens for all threads, and no worker could.
fn open_randomness() {
    let _first: StdRng = rand::make_rng();
}

fn begin_calls(refusal: Refusal, may_look: bool) -> seccompiler::Result<Calls> {
    let calls = Calls {
        without_clone3: calls::without_clone3(refusal)?,
        workers: calls::of_workers(refusal, may_look || refusal == Refusal::IsLogged)?,
        helpers: calls::of_helpers(refusal)?,
    };
    seccompiler::apply_filter(&calls::of_process(refusal)?)?;
    Ok(calls)
}

/// Whether the kernel has it, which only a thread that enters a domain learns.
fn try_landlock(lacks: &mut Vec<String>) -> bool {
    let entered = std::thread::spawn(|| {
        let entered = files::nothing().and_then(|nothing| nothing.restrict_self());
        entered.map(|entered| files::lacks(&entered)).map_err(|error| error.to_string())
    });
    let error = |error: String| Some(format!("no Landlock ({error})"));
    let lack = match entered.join() {
        Ok(Ok(lack)) => lack,
        Ok(Err(why)) => error(why),
        Err(_) => error(io::Error::from(io::ErrorKind::Other).to_string()),
    };
    let is_there = lack.is_none();
    lacks.extend(lack);
    is_there
}

fn tell<T, E: std::fmt::Display>(threads: &str, outcome: Result<T, E>) {
    if let Err(error) = outcome {
        warn(threads, &error);
    }
}

fn warn(threads: &str, error: &impl std::fmt::Display) {
    tracing::error!(%error, "{threads} cannot be confined, and keep rights that they do not need");
}
