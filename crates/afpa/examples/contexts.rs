//! AFPA's HTTP module on its engine under a chosen table of states: the papers' comparison of interrupt against thread, which
//! the lab makes (`afpa-interrupt` and `afpa-threads` in `lab/servers/README.md`). It is also the shortest server that can be
//! made of the parts.
//!
//!     cargo run --example contexts -- thread --listen 127.0.0.1:8081 DIR
//!
//! Both servers are this one program, and the same code up to the type of the table. Under `Diagram` an answer is sent where
//! it was derived, in the deferred-interrupt context; under `Threads` a helper thread sends it. The difference is that of
//! queueing a work item, and of scheduling the thread. It is not quite the papers' figure: their thread was one of
//! the kernel, and nothing waited for it. Here the connection does, so that its answers keep their order; and the helper has
//! a descriptor of its own, which is made and closed for each send.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::{Arena, CacheSettings};
use afpa_framework::{Diagram, Table, Threads};
use afpa_module_http::NoAccessLog;
use afpa_module_http::{DocRoot, DocRootSettings, Global, Http, HttpCounters};
use afpa_server::worker::WorkerContext;
use afpa_server::{Address, BoundListener, Engine, ListenerSettings, Settings};
use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Serve a directory with AFPA's engine under one of its tables of states, in the foreground.
#[derive(Debug, Parser)]
#[command(version)]
struct Contexts {
    /// Where answers are sent: in the deferred-interrupt context, or in a thread
    #[arg(value_enum)]
    send_in: SendIn,
    /// Address and port
    #[arg(long)]
    listen: SocketAddr,
    /// The directory
    root: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SendIn {
    Interrupt,
    Thread,
}

/// Serves until a signal ends the process.
fn main() -> Result<()> {
    let contexts = Contexts::parse();
    match contexts.send_in {
        SendIn::Interrupt => contexts.serve::<Diagram>(),
        SendIn::Thread => contexts.serve::<Threads>(),
    }
}

impl Contexts {
    fn serve<T: Table>(&self) -> Result<()> {
        raise_open_files();
        let arena = Arena::new(PINNED)?;
        let about = || format!("cannot serve {}", self.root.display());
        let root = DocumentRoot::open(&self.root, RootSettings::default()).with_context(about)?;
        let cache = CacheSettings::default();
        let site =
            DocRoot::open(root, DocRootSettings::default(), cache, Default::default(), arena)
                .with_context(about)?;
        let global = Global::alone(site);
        let module = move |context: WorkerContext| {
            let (counters, log) = (Arc::new(HttpCounters::default()), Box::new(NoAccessLog));
            let global = Arc::clone(&global);
            Http::<T>::new(global, counters, log, Default::default(), context.wake)
        };
        let settings =
            Settings { connections: MOST, connections_per_client: MOST, ..Settings::default() };
        let mut engine = Engine::start(&settings, LARGEST_HEAD, module)?;
        let backlog = settings.backlog;
        let listener = BoundListener::bind(&Address::Tcp(self.listen), 1, backlog)?;
        let Address::Tcp(address) = listener.address else { bail!("no address") };
        engine.listen(listener.with(ListenerSettings::default()))?;
        println!("http://{address}/");
        loop {
            std::thread::park();
        }
    }
}

/// Allows a descriptor for each connection, and one more for each answer that is being sent.
fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this fails, fewer connections fit, and accept will report that.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Bytes of pinned memory.
const PINNED: usize = 256 << 20;
const LARGEST_HEAD: usize = 32 * 1024;
/// Connections, as far as there are descriptors.
const MOST: usize = 1 << 20;
