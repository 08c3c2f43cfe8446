//! The thread that chooses the replacement policy, where the setting is [`Auto`](crate::PolicySetting::Auto).
//!
//! Every few seconds it takes the requests that the table has recorded, replays them through every policy at the lowest
//! priority, and has the table change to a better one. Requests and loads pay for the recording only: one entry for
//! each object that was touched since the last tick, or loaded.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crate::cache::Cache;
use crate::policy::auto::{Change, Standing};
use crate::policy::replay::Request;
use crate::policy::{Judge, PolicyKind, PolicySetting};

/// Which replacement policies are in use, and why: over pinned objects, and over file-system objects.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyReport {
    /// Over pinned objects, and over file-system objects.
    pub policies: [ShelfReport; 2],
    /// How often one of the policies was changed.
    pub changes: u64,
}

/// Which replacement policy is in use over one kind of objects, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct ShelfReport {
    /// The policy.
    pub kind: PolicyKind,
    /// The chooser of the policy, in words for people.
    pub why: String,
    /// The results of the latest replays, if AFPA chooses and there were enough requests.
    pub standing: Option<Standing>,
}

/// The results of the thread. The thread ends when this is dropped, with the cache.
pub(crate) struct Chooser {
    found: Arc<Mutex<Found>>,
    /// Nothing is ever sent: its drop ends the thread.
    _ends: SyncSender<()>,
}

/// The results for each of the two policies.
#[derive(Default)]
struct Found {
    standing: [Option<Standing>; 2],
    last: [Option<Change>; 2],
    changes: u64,
}

/// The thread runs only when no other thread wants the core.
const NICE: i32 = 19;

impl<H: Send + Sync + 'static> Cache<H> {
    /// Starts the thread that chooses the policy, if the settings say so. It judges after each `period`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start_choosing(self: &Arc<Self>, period: Duration) -> io::Result<()> {
        let Some(judges) = self.table().take_judges() else { return Ok(()) };
        let (ends, ended) = sync_channel(0);
        let found = Arc::new(Mutex::new(Found::default()));
        let thread = Choosing {
            cache: Arc::downgrade(self),
            ended,
            period,
            judges,
            found: Arc::clone(&found),
        };
        std::thread::Builder::new().name("afpa-policy".into()).spawn(move || thread.run())?;
        // This is the only place that sets it, and the judges are there only once.
        let _ = self.chooser.set(Chooser { found, _ends: ends });
        Ok(())
    }
}

impl<H> Cache<H> {
    /// Which replacement policies are in use, and why.
    pub fn policy_report(&self) -> PolicyReport {
        let nothing = Found::default();
        let found = self.chooser.get().map(|chooser| lock(&chooser.found));
        let found = found.as_deref().unwrap_or(&nothing);
        // The policies come last: each change that was found is made by then.
        let kinds = self.table().policies();
        let is_chosen = self.settings().policy == PolicySetting::Auto;
        let shelf = |index: usize| {
            let standing = found.standing[index];
            let why = match (is_chosen, &found.last[index], standing) {
                (false, ..) => "configured".to_owned(),
                (true, Some(change), _) => change.to_string(),
                (true, None, Some(_)) => "no other has clearly fewer misses".to_owned(),
                (true, None, None) => "too few requests to judge".to_owned(),
            };
            ShelfReport { kind: kinds[index], why, standing }
        };
        PolicyReport { policies: [shelf(0), shelf(1)], changes: found.changes }
    }
}

/// The thread.
struct Choosing<H> {
    cache: Weak<Cache<H>>,
    ended: Receiver<()>,
    period: Duration,
    judges: [Judge; 2],
    found: Arc<Mutex<Found>>,
}

impl<H> Choosing<H> {
    fn run(mut self) {
        if let Err(error) = rustix::process::nice(NICE) {
            tracing::warn!(
                %error,
                "the priority of a thread cannot be lowered: policies are judged at that of \
                 requests"
            );
        }
        let mut memory: [Vec<Request>; 2] = Default::default();
        while self.ended.recv_timeout(self.period) == Err(RecvTimeoutError::Timeout) {
            let Some(cache) = self.cache.upgrade() else { return };
            let Some(traces) = cache.table().take_traces(memory) else { return };
            // The replays take a while, in which the cache may be dropped.
            drop(cache);
            for (judge, trace) in self.judges.iter_mut().zip(&traces) {
                judge.observe(trace);
            }
            memory = traces.map(|trace| trace.into_memory());
            let Some(cache) = self.cache.upgrade() else { return };
            self.decide(&cache);
        }
    }

    fn decide(&mut self, cache: &Cache<H>) {
        for (shelf, judge) in self.judges.iter_mut().enumerate() {
            let change = judge.decide();
            if let Some(change) = &change {
                tracing::info!(%change, "another replacement policy does better");
                cache.table().switch(shelf, change.to);
            }
            let mut found = lock(&self.found);
            found.standing[shelf] = judge.standing();
            if change.is_some() {
                found.changes += 1;
                found.last[shelf] = change;
            }
        }
    }
}

fn lock(found: &Mutex<Found>) -> std::sync::MutexGuard<'_, Found> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}
