//! The thread that compares.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_bpf::{Objects, Reports, Sample, Samples, Sockets, sampled_answer, sampled_request};

use crate::ask::ask;
use crate::compare::Difference;
use crate::judge::{Question, Verdict, judge};

/// The thread asks the server at most this often, so that it costs a busy server nothing that can be measured.
const PACE: Duration = Duration::from_millis(100);

/// How often, and how patiently.
#[derive(Clone, Copy, Debug)]
pub struct SelfCheckSettings {
    /// One in this many answers is sampled; 0: none.
    pub every: u32,
    /// The time within which a change that user mode knows of reaches the kernel.
    pub settle: Duration,
}

/// The results so far.
#[derive(Debug, Default)]
pub struct SelfCheckCounts {
    /// Answers that the server gives, too.
    pub same: AtomicU64,
    /// Answers of which nothing is known: see [`Verdict::Unknown`].
    pub unknown: AtomicU64,
    /// Answers that the server does not give.
    pub different: AtomicU64,
}

/// The parts of a fast path that are checked.
#[derive(Clone, Copy)]
pub struct Checked<'f> {
    /// They give the samples.
    pub reports: &'f Reports,
    /// They tell whether a version is still answered.
    pub objects: &'f Objects,
    /// By them the server is asked.
    pub sockets: &'f Sockets,
}

/// The running self-check. It ends when this is dropped.
#[derive(Debug)]
pub struct SelfCheck {
    counts: Arc<SelfCheckCounts>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SelfCheck {
    /// Begins to compare the answers of the fast path that `owner` has. `on_difference` is called on the thread of the check, once for each difference.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start<O: Send + Sync + 'static>(
        owner: Arc<O>,
        checked: fn(&O) -> Checked<'_>,
        settings: SelfCheckSettings,
        on_difference: impl Fn(&Difference) + Send + 'static,
    ) -> io::Result<Self> {
        let (counts, ending) = (Arc::<SelfCheckCounts>::default(), Arc::<AtomicBool>::default());
        let (found, end) = (Arc::clone(&counts), Arc::clone(&ending));
        let check = move || {
            let checked = checked(&owner);
            checked.reports.set_sample_every(settings.every);
            if let Ok(samples) = checked.reports.samples() {
                run(checked, &samples, settings.settle, (&found, &end), &on_difference);
            }
            checked.reports.set_sample_every(0);
        };
        let thread = std::thread::Builder::new().name("afpa-self-check".to_owned()).spawn(check)?;
        Ok(Self { counts, ending, thread: Some(thread) })
    }

    /// The results so far.
    pub fn counts(&self) -> &Arc<SelfCheckCounts> {
        &self.counts
    }
}

impl Drop for SelfCheck {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

fn run(
    checked: Checked<'_>,
    samples: &Samples<'_>,
    settle: Duration,
    (counts, ending): (&SelfCheckCounts, &AtomicBool),
    on_difference: &dyn Fn(&Difference),
) {
    while !ending.load(Ordering::Acquire) {
        std::thread::park_timeout(PACE);
        let Ok(drained) = samples.drain() else { return };
        // The newest one: the older a sample, the likelier its object has changed since.
        let Some(sample) = drained.last() else { continue };
        let mut question = Asked { checked, sample, settle, ending };
        match judge(sampled_request(sample), sampled_answer(sample), &mut question) {
            Verdict::Same => counts.same.fetch_add(1, Ordering::Relaxed),
            Verdict::Unknown => counts.unknown.fetch_add(1, Ordering::Relaxed),
            Verdict::Different(difference) => {
                on_difference(&difference);
                counts.different.fetch_add(1, Ordering::Relaxed)
            }
        };
    }
}

/// A sample, asked again at the address at which its request came in.
struct Asked<'a> {
    checked: Checked<'a>,
    sample: &'a Sample,
    settle: Duration,
    ending: &'a AtomicBool,
}

impl Question for Asked<'_> {
    fn ask(&mut self) -> io::Result<Vec<u8>> {
        let key = &self.sample.flow;
        let address = Ipv6Addr::from(key.server);
        let address = address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4);
        let server = SocketAddr::new(address, key.server_port);
        ask(self.checked.sockets, server, sampled_request(self.sample))
    }

    fn is_current(&self) -> bool {
        let target = sampled_request(self.sample).split(|byte| *byte == b' ').nth(1);
        let target = target.unwrap_or_default();
        self.checked.objects.answers_with(self.sample, target)
            && !self.ending.load(Ordering::Acquire)
    }

    fn settle(&mut self) {
        let deadline = std::time::Instant::now() + self.settle;
        while !self.ending.load(Ordering::Acquire) {
            let rest = deadline.saturating_duration_since(std::time::Instant::now());
            if rest.is_zero() {
                return;
            }
            std::thread::park_timeout(rest);
        }
    }
}
