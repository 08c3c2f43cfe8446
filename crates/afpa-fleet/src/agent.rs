//! The thread of the fleet: it alone speaks with the servers.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use crate::configuring::{Asked, Outcome};
use crate::cooperation::PeersView;
use crate::folder::{FleetFolder, Kept};
use crate::machine::Machine;
use crate::message::{Heartbeat, Order};
use crate::nats::{Agent, Way};
use crate::orders::{Full, Orders};
use crate::peers::Peers;
use crate::records::Records;
use crate::seal::Secret;
use crate::settings::{Credentials, FleetSettings};
use crate::state::{FleetLook, OrderLook, Shared, unix};

/// How long the end waits for the thread, which says good-bye.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bits of a number of an order that are not used: the others are a whole number in every reader of JSON.
const UNUSED: u32 = 16;

/// The part of this machine in its fleet. Dropping it ends the thread.
#[derive(Debug)]
pub struct Fleet {
    shared: Arc<Shared>,
    folder: FleetFolder,
    thread: Option<JoinHandle<()>>,
}

/// The fleet, for the control socket.
#[derive(Clone, Debug)]
pub struct FleetView(Arc<Shared>);

impl Fleet {
    /// Starts the thread. `name` is that of the host, for a machine that has none in its settings; `kept` is the place of the
    /// cache that this machine begins with. Servers that cannot be reached are no failure: it goes on trying.
    ///
    /// # Errors
    /// When the queue cannot be read, or no thread can be started.
    pub fn start(
        settings: FleetSettings,
        (credentials, secret): (Option<Credentials>, Option<Secret>),
        (folder, kept): (FleetFolder, Option<Kept>),
        name: &str,
        machine: Arc<dyn Machine>,
    ) -> io::Result<Self> {
        let instance = format!("{:016x}", rand::random::<u64>());
        let number = rand::random::<u64>() >> UNUSED;
        let orders = Orders::new(instance.clone(), folder.queue()?).numbered_behind(number);
        let beat = Heartbeat {
            instance,
            name: settings.name.clone().unwrap_or_else(|| name.to_owned()),
            region: settings.region.clone().unwrap_or_default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            configuration: machine.readings().configuration,
            ..Heartbeat::default()
        };
        let age = |kept: Kept| Duration::from_secs(unix().saturating_sub(kept.word));
        let (desk, asks) = mpsc::unbounded_channel();
        let peers = settings.peers.zip(secret.as_ref());
        let peers = peers.map(|(address, secret)| Peers::new(address, secret));
        let word_before = kept.map(age).unwrap_or_default();
        let shared = Arc::new(Shared::new(orders, beat, word_before, desk, peers));
        shared.lock().configuring.number_behind(number);
        shared.tick_peers();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let agent = Agent {
            shared: Arc::clone(&shared),
            folder: folder.clone(),
            machine,
            way: Way { settings, credentials, secret },
            asks: tokio::sync::Mutex::new(asks),
        };
        let kept = kept.map(|kept| kept.purges);
        let run = move || {
            runtime.block_on(agent.run(kept));
            // A look-up of a name may take longer than anybody waits.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("afpa-fleet".to_owned()).spawn(run)?;
        Ok(Self { shared, folder, thread: Some(thread) })
    }

    /// The fleet, for the control socket.
    pub fn view(&self) -> FleetView {
        FleetView(Arc::clone(&self.shared))
    }

    /// Ends the thread. Returns the place up to which orders to purge are carried out, if this machine has one. No order of
    /// the fleet is carried out any more.
    pub fn stop(mut self) -> Option<Kept> {
        self.end();
        let silence = self.shared.silence().as_secs();
        let purges = self.shared.lock().beat.purges?;
        Some(Kept { purges, word: unix().saturating_sub(silence) })
    }

    /// The next process of this machine takes part in its place, and has its queue as it was at its start. Orders that are left
    /// at the end of this one are in a file that the next one takes in.
    pub fn hand_over(&self) {
        let mut state = self.shared.lock();
        state.is_handed_over = true;
        state.beat.hands_over = true;
        state.kept = None;
    }

    /// Likewise, and leaves the place to the next process, whose cache begins as this one's ends.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn leave(self) -> io::Result<()> {
        let folder = self.folder.clone();
        self.stop().map_or(Ok(()), |kept| folder.leave_place(&kept))
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.ends.notify_one();
        let deadline = Instant::now() + PATIENCE;
        while !thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.end();
    }
}

impl FleetView {
    /// Sends an order to all machines. Its number is for [`order`](Self::order).
    ///
    /// # Errors
    /// When too many orders wait already.
    pub fn send(&self, order: Order) -> Result<u64, Full> {
        self.0.take(order)
    }

    /// Sends an order to all machines that nobody has given: it follows from a request of any client that has changed something.
    ///
    /// # Errors
    /// When many orders wait already: there is room left for those that somebody gives.
    pub fn send_change(&self, order: Order) -> Result<(), Full> {
        self.0.take_change(order)
    }

    /// How far the fleet is with an order; `None`: there is no such order, or it was long ago.
    pub fn order(&self, number: u64) -> Option<OrderLook> {
        self.0.order(number)
    }

    /// Takes an order about the configuration of the fleet. Its number is for [`outcome`](Self::outcome). `None`: no server is
    /// reached, or this machine takes none.
    pub fn ask(&self, asked: Asked) -> Option<u64> {
        self.0.ask(asked)
    }

    /// The outcome of such an order; `None`: there is no such order, or it was long ago.
    pub fn outcome(&self, number: u64) -> Option<Outcome> {
        self.0.outcome(number)
    }

    /// The machines that ask one another for answers; `None`: this one is not asked, and asks none.
    pub fn peers(&self) -> Option<PeersView> {
        self.0.peers.as_ref().map(|_| PeersView(Arc::clone(&self.0)))
    }

    /// How often this machine has taken a configuration of the fleet.
    pub fn takes(&self) -> u64 {
        self.0.lock().configuring.takes
    }

    /// The fleet now.
    pub fn look(&self) -> FleetLook {
        self.0.look()
    }

    /// The records that all machines have.
    pub fn records(&self) -> Records {
        Records::new(Arc::clone(&self.0))
    }

    /// How many members are live, and how many silent.
    pub fn count(&self) -> (usize, usize) {
        self.0.lock().members.count(self.0.now())
    }

    /// Waits until this machine has carried out what was ordered while it was away, but no longer than `most`. Whether
    /// it has.
    pub fn catch_up(&self, most: Duration) -> bool {
        self.0.catch_up(most)
    }
}
