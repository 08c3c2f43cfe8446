//! The thread that goes on with long answers when nothing comes from their clients: what was lost at the
//! end of one, nobody acknowledges.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_bpf::{ANSWER_MAX, FastPath};

/// No time-out of the send engine is shorter.
const TICK: Duration = Duration::from_millis(10);

/// Tends flights until it is dropped.
pub(super) struct Tender {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Tender {
    /// None: there are no long answers.
    pub(super) fn start(fast_path: &Arc<FastPath>) -> std::io::Result<Option<Self>> {
        if fast_path.answer_max() <= ANSWER_MAX {
            return Ok(None);
        }
        let (ending, fast_path) = (Arc::<AtomicBool>::default(), Arc::clone(fast_path));
        let asked = Arc::clone(&ending);
        let thread = std::thread::Builder::new()
            .name("afpa-flights".to_owned())
            .spawn(move || tend(&fast_path, &asked))?;
        Ok(Some(Self { ending, thread: Some(thread) }))
    }
}

impl Drop for Tender {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic has been printed.
            let _ = thread.join();
        }
    }
}

fn tend(fast_path: &FastPath, ending: &AtomicBool) {
    let mut well = true;
    while !ending.load(Ordering::Acquire) {
        let outcome = fast_path.tend_flights();
        if let Err(error) = &outcome
            && well
        {
            tracing::warn!(%error, "lost ends of long answers are not sent again");
        }
        well = outcome.is_ok();
        std::thread::park_timeout(TICK);
    }
}
