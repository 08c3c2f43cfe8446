//! The concurrency strategies: how many threads of control serve the listener, and where they come
//! from.

use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::context::ServerContext;
use crate::io::{self, sync};
use crate::{Concurrency, Content, Handler};

/// Serves the connections of `listener`.
///
/// # Errors
/// When no thread of control can be started, or one of them fails.
pub(crate) fn run(listener: &TcpListener, shared: &ServerContext) -> Result<()> {
    match shared.architecture.concurrency {
        Concurrency::Single => single(listener, shared),
        Concurrency::Threads => threads(listener, shared),
        Concurrency::PerRequest => thread_per_request(listener, shared),
        Concurrency::Processes if is_worker() => worker(listener, shared),
        Concurrency::Processes => processes(listener, shared),
    }
}

/// Serves with the thread that calls.
fn single(listener: &TcpListener, shared: &ServerContext) -> Result<()> {
    let content = shared.open(1)?;
    io::serve(listener, shared.handler(&content), shared)
}

/// All of them block in accept, on the same listener; the kernel wakes one for each connection.
fn threads(listener: &TcpListener, shared: &ServerContext) -> Result<()> {
    let content = &shared.open(1)?;
    std::thread::scope(|scope| {
        let start = |number| {
            let name = format!("worker-{number}");
            let work = move || io::serve(listener, shared.handler(content), shared);
            Builder::new().name(name).spawn_scoped(scope, work).context("cannot start a thread")
        };
        let workers: Vec<_> = (0..shared.pool).map(start).collect::<Result<_>>()?;
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(anyhow!("a thread of the pool panicked")))
        })
    })
}

/// A thread is started for each connection, as JAWS does: there it had one request. Beyond the pool's
/// number a connection waits until a thread has ended.
fn thread_per_request(listener: &TcpListener, shared: &ServerContext) -> Result<()> {
    let content = &shared.open(1)?;
    let (crew, ended) = (&Mutex::new(Crew::default()), &Condvar::new());
    let lock = || crew.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if io::is_passing(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            let full = |crew: &mut Crew| crew.running >= shared.pool;
            let room = ended.wait_while(lock(), full);
            let mut room = room.unwrap_or_else(PoisonError::into_inner);
            room.running += 1;
            let spare = room.spare.pop();
            drop(room);
            let serve = move || {
                let (mut handler, mut room) =
                    spare.unwrap_or_else(|| (shared.handler(content), sync::Room::default()));
                // A connection that fails has failed its client: nobody else needs to know.
                drop(sync::converse(&stream, &mut handler, &mut room, shared.gather));
                drop(stream);
                let mut crew = lock();
                crew.spare.push((handler, room));
                if crew.running == shared.pool {
                    ended.notify_one();
                }
                crew.running -= 1;
            };
            Builder::new().stack_size(STACK).spawn_scoped(scope, serve)?;
        }
    })
}

/// The number of running threads, and the handlers of ended ones for the next ones: a handler has a view of
/// the cache, which is too expensive to make anew for one request.
#[derive(Default)]
struct Crew {
    running: u32,
    spare: Vec<(Handler, sync::Room)>,
}

/// Enough for a handler; the default of two megabytes is only address space, but some of it is
/// touched by every new thread.
const STACK: usize = 256 * 1024;

/// Starts the pool: this same command, with the listener as its standard input.
fn processes(listener: &TcpListener, shared: &ServerContext) -> Result<()> {
    let mut workers = Workers(Vec::new());
    for _ in 0..shared.pool {
        let listener: OwnedFd = listener.as_fd().try_clone_to_owned()?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let worker = Command::new(program)
            .args(std::env::args_os().skip(1))
            .env(WORKER, std::process::id().to_string())
            .stdin(Stdio::from(listener))
            .spawn()
            .context("cannot start a process")?;
        workers.0.push(worker);
    }
    // No process of the pool is expected to end before this one. If one does, the others end with this one.
    match workers.0.first_mut() {
        Some(first) => bail!("a process of the pool ended: {}", first.wait()?),
        None => bail!("a pool of no processes"),
    }
}

fn worker(listener: &TcpListener, shared: &ServerContext) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have ended before the death signal was set.
    let parent = std::env::var(WORKER).ok().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
    if getppid() != parent {
        bail!("the process that started this one is gone");
    }
    let content: Arc<Content> = shared.open(shared.pool as usize)?;
    io::serve(listener, shared.handler(&content), shared)
}

/// Set for the processes of the pool, to the id of the one that started them.
const WORKER: &str = "AFPA_ARCHITECTURES_PARENT";

/// Whether this process is one of a pool.
pub(crate) fn is_worker() -> bool {
    std::env::var_os(WORKER).is_some()
}

/// The listener that a process of a pool was started with.
pub(crate) fn inherited() -> Result<TcpListener> {
    Ok(TcpListener::from(std::io::stdin().as_fd().try_clone_to_owned()?))
}

/// Processes that end with their owner.
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            let _ = worker.kill().and_then(|()| worker.wait());
        }
    }
}
