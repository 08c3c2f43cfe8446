//! The threads that answer. They are none of HTTP's, so that a flood of questions costs HTTP the processor's time alone.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_server::limits::ConnectionLimits;
use arc_swap::ArcSwap;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{JoinHandle as Task, LocalSet, spawn_local};

use crate::counters::DnsCounters;
use crate::module::Dns;
use crate::socket::BoundZoneSockets;
use crate::store::ZoneStore;
use crate::{tcp, udp};

/// Limits of connections, which they share with those of HTTP.
#[derive(Debug)]
pub struct TcpLimits {
    /// The count of all.
    pub connections: Arc<ConnectionLimits>,
    /// Open connections in total.
    pub total: usize,
    /// Those of one client.
    pub per_client: usize,
    /// How long a connection may be silent.
    pub idle: Duration,
    /// How long an answer may take to be sent.
    pub write: Duration,
}

enum Command {
    Listen(SocketAddr, std::net::UdpSocket, std::net::TcpListener),
    Unlisten(SocketAddr),
}

/// Running threads. Dropping it ends them.
#[derive(Debug)]
pub struct DnsServer {
    threads: Vec<Thread>,
    counters: Vec<Arc<DnsCounters>>,
    addresses: Vec<SocketAddr>,
    limits: Arc<ArcSwap<TcpLimits>>,
}

#[derive(Debug)]
struct Thread {
    commands: Option<UnboundedSender<Command>>,
    handle: Option<JoinHandle<()>>,
}

impl DnsServer {
    /// Starts so many threads. Each one calls `begin` first, to give up rights.
    ///
    /// # Errors
    /// When a thread or its event loop cannot be made.
    pub fn start(
        threads: usize,
        store: &Arc<ZoneStore>,
        limits: TcpLimits,
        begin: impl Fn() + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let limits = Arc::new(ArcSwap::from_pointee(limits));
        let (threads_begun, counters, addresses) = (Vec::new(), Vec::new(), Vec::new());
        let mut server = Self { threads: threads_begun, counters, addresses, limits };
        for index in 0..threads.max(1) {
            let (commands, orders) = unbounded_channel();
            let (store, counters) = (Arc::clone(store), Arc::<DnsCounters>::default());
            server.counters.push(Arc::clone(&counters));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (begin, limits) = (begin.clone(), Arc::clone(&server.limits));
            let thread = std::thread::Builder::new().name(format!("afpa-dns-{index}"));
            let handle = thread.spawn(move || {
                begin();
                let module = move || Dns::new(Arc::clone(&store), Arc::clone(&counters));
                LocalSet::new().block_on(&runtime, follow(orders, limits, module));
            })?;
            server.threads.push(Thread { commands: Some(commands), handle: Some(handle) });
        }
        Ok(server)
    }

    /// Answers on an address.
    pub fn listen(&mut self, bound: BoundZoneSockets) {
        self.addresses.push(bound.address);
        for ((udp, tcp), thread) in bound.sockets.into_iter().zip(&self.threads) {
            thread.order(Command::Listen(bound.address, udp, tcp));
        }
    }

    /// Answers on an address no longer.
    pub fn unlisten(&mut self, address: SocketAddr) {
        self.addresses.retain(|other| *other != address);
        for thread in &self.threads {
            thread.order(Command::Unlisten(address));
        }
    }

    /// Takes connections within these limits from now on.
    pub fn limit(&self, limits: TcpLimits) {
        self.limits.store(Arc::new(limits));
    }

    /// The addresses that are answered on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The counts of each thread.
    pub fn counters(&self) -> Vec<Arc<DnsCounters>> {
        self.counters.clone()
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.commands = None);
        for thread in &mut self.threads {
            if let Some(handle) = thread.handle.take() {
                let _ = handle.join();
            }
        }
    }
}

impl Thread {
    fn order(&self, command: Command) {
        if let Some(commands) = &self.commands {
            // A thread that has ended needs none.
            let _ = commands.send(command);
        }
    }
}

async fn follow(
    mut orders: UnboundedReceiver<Command>,
    limits: Arc<ArcSwap<TcpLimits>>,
    module: impl Fn() -> Dns + Clone + 'static,
) {
    let mut listening: HashMap<SocketAddr, [Task<io::Result<()>>; 2]> = HashMap::new();
    while let Some(order) = orders.recv().await {
        match order {
            Command::Listen(address, udp, tcp) => {
                let datagrams = spawn_local(udp::serve(udp, module()));
                let connections =
                    spawn_local(tcp::accept(tcp, Arc::clone(&limits), module.clone()));
                listening.insert(address, [datagrams, connections]);
            }
            Command::Unlisten(address) => {
                for task in listening.remove(&address).into_iter().flatten() {
                    task.abort();
                }
            }
        }
    }
}
