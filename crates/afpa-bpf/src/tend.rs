//! The clock of answers on their way: what nobody acknowledges leaves again in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::load::FastPath;

/// No time-out of an answer is shorter.
const TICK: Duration = Duration::from_millis(10);

impl FastPath {
    /// Look after what is on its way: see [`tend_flights`](Self::tend_flights) and
    /// [`tend_watches`](Self::tend_watches). To be called every ten milliseconds, in the network namespace of
    /// the interfaces; a [`RtxThread`] does. While nothing is on its way it costs a look at two words.
    pub fn service_timers(&self) -> libbpf_rs::Result<()> {
        self.tend_flights()?;
        self.tend_watches().map(drop)
    }
}

/// A thread that looks after answers on their way until it is dropped.
#[derive(Debug)]
pub struct RtxThread {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RtxThread {
    /// `tend` is [`FastPath::tend`] of whoever owns it; `complain` hears the first error of those in a row.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(
        tend: impl Fn() -> libbpf_rs::Result<()> + Send + 'static,
        complain: impl Fn(&libbpf_rs::Error) + Send + 'static,
    ) -> std::io::Result<Self> {
        let ending = Arc::<AtomicBool>::default();
        let asked = Arc::clone(&ending);
        let work = move || {
            let mut well = true;
            while !asked.load(Ordering::Acquire) {
                let outcome = tend();
                outcome.as_ref().err().filter(|_| well).inspect(|error| complain(error));
                well = outcome.is_ok();
                std::thread::park_timeout(TICK);
            }
        };
        let thread = std::thread::Builder::new().name("afpa-tend".to_owned()).spawn(work)?;
        Ok(Self { ending, thread: Some(thread) })
    }
}

impl Drop for RtxThread {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}
