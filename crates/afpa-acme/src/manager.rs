//! The thread that sees to it that there are certificates.

mod order;
mod status;
mod wanted;
mod work;

use std::cell::RefCell;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use tokio::sync::oneshot;

use crate::challenges::Challenges;
use crate::demand::Demand;
use crate::settings::AcmeSettings;
use crate::state::StateFolder;
use crate::together::Others;
pub(crate) use order::usable;
pub use status::{Status, Statuses};
pub(crate) use wanted::Wanted;
pub(crate) use work::Work;

/// Seconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The clock and the intervals of a manager.
#[derive(Clone)]
pub struct Pace {
    /// The current time.
    pub clock: Clock,
    /// How often it looks at the clock. It looks, rather than sleeping until a certificate is due, because a machine
    /// can be suspended and its clock set.
    pub look: Duration,
    /// How long an authority may be silent before an order is given up.
    pub patience: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        let since = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let clock = move || since().map_or(0, |time| time.as_secs());
        let (look, patience) = (Duration::from_secs(20), Duration::from_secs(60));
        Self { clock: Arc::new(clock), look, patience }
    }
}

/// The state that a manager shares with the server.
#[derive(Clone, Default)]
pub struct Shared {
    /// The answers that the server shows to the authority.
    pub challenges: Challenges,
    /// How it stands with the certificates.
    pub statuses: Statuses,
    /// The names that clients ask for.
    pub demand: Demand,
    /// The other machines, with which this one orders; none: it is alone.
    pub others: Arc<ArcSwapOption<OtherMachines>>,
}

/// The other machines.
pub type OtherMachines = Box<dyn Others>;

/// Orders certificates for as long as it lives, from [`Manager::begin`] on.
pub struct Manager {
    statuses: Statuses,
    begin: Option<oneshot::Sender<()>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Manager {
    /// Its thread, which orders nothing yet.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        settings: AcmeSettings,
        state: StateFolder,
        shared: Shared,
        pace: Pace,
    ) -> std::io::Result<Self> {
        shared.demand.set(&settings.on_demand);
        let ((begin, begun), (stop, stopped)) = (oneshot::channel(), oneshot::channel());
        let statuses = shared.statuses.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("afpa-acme".to_owned()).spawn(move || {
            let (lock, unstored) = (RefCell::default(), RefCell::default());
            let opening = tokio::sync::Mutex::default();
            let work = Work { settings, state, shared, pace, lock, unstored, opening };
            let work = async {
                if begun.await.is_ok() {
                    work.go_on().await;
                }
            };
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = work => {}
                }
            });
            // Does not wait for a name look-up in progress: its result is of no use, and it may take long.
            runtime.shutdown_background();
        })?;
        Ok(Self { statuses, begin: Some(begin), stop: Some(stop), thread: Some(thread) })
    }

    /// Orders from now on: the authority may ask this server at once.
    pub fn begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            // The thread goes on until it is stopped, so it hears this.
            let _ = begin.send(());
        }
    }

    /// How it stands with each certificate.
    pub fn statuses(&self) -> Vec<Status> {
        self.statuses.get()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::demand::{Answer, OnDemand};

    #[test]
    fn names_that_clients_ask_for_all_the_time_leave_turns_to_renewals() {
        // Connections are made, and nothing is ever answered.
        let authority = TcpListener::bind("127.0.0.1:0").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let settings = AcmeSettings {
            directory: format!("https://{}/directory", authority.local_addr().unwrap()),
            certificates: vec![vec!["www.a.test".to_owned()]],
            on_demand: OnDemand {
                names: vec!["*.b.test".to_owned()],
                most: 1_000_000,
                per_hour: 1_000_000,
            },
            ..AcmeSettings::new(folder.path().join("acme"))
        };
        let state = StateFolder::prepare(&settings.state, None).unwrap();
        let (look, patience) = (Duration::from_millis(100), Duration::from_millis(300));
        let pace = Pace { clock: Arc::new(|| 1_000_000), look, patience };
        let (shared, ended) = (Shared::default(), AtomicBool::new(false));
        let mut manager = Manager::start(settings, state, shared.clone(), pace).unwrap();
        let demand = &shared.demand;
        std::thread::scope(|scope| {
            let first = demand.ask("first.b.test", 1_000_000);
            assert_eq!(first, Answer::Wait);
            scope.spawn(|| {
                for number in 0.. {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    demand.ask(&format!("n{number}.b.test"), 1_000_000);
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
            manager.begin();
            let since = Instant::now();
            let is_tried = || {
                let statuses = shared.statuses.get();
                statuses.iter().any(|status| status.names == ["www.a.test"] && status.failures > 0)
            };
            while !is_tried() && since.elapsed() < Duration::from_secs(120) {
                std::thread::sleep(Duration::from_millis(20));
            }
            ended.store(true, Ordering::Relaxed);
            assert!(is_tried(), "{:?}", shared.statuses.get());
        });
        let why = shared.statuses.get().into_iter().find_map(|status| status.error).unwrap();
        assert!(why.contains("has not answered"), "{why}");
    }
}
