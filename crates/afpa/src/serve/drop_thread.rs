//! Where roots go that a reload has replaced.
//!
//! The end of a root closes its watch, and the kernel lets nobody return from that before every change
//! that is on its way has been told: 15 ms on an idle machine, seconds on a busy one. Whoever lets go of
//! a root last has to wait so long, and that must be neither a worker nor the thread that hears signals.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Ends what is given to it when nobody else has it any more, on a thread of its own.
pub(super) struct Leaving<T>(Arc<Mutex<State<T>>>);

struct State<T> {
    waiting: Vec<Arc<T>>,
    /// Whether there is a thread that looks after them; it ends when there are none.
    looked_after: bool,
}

/// How often it is looked whether requests in flight have let go.
const PAUSE: Duration = Duration::from_millis(100);

impl<T> Default for Leaving<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { waiting: Vec::new(), looked_after: false })))
    }
}

impl<T: Send + Sync + 'static> Leaving<T> {
    /// These are needed by nobody but those who have them now.
    pub(super) fn add(&self, more: impl IntoIterator<Item = Arc<T>>) {
        let mut state = lock(&self.0);
        state.waiting.extend(more);
        if state.waiting.is_empty() || state.looked_after {
            return;
        }
        let shared = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("afpa-leaving".to_owned());
        match thread.spawn(move || while end_some(&shared) {}) {
            Ok(_) => state.looked_after = true,
            // They wait for the next reload.
            Err(error) => tracing::warn!(%error, "old document roots are still watched"),
        }
    }
}

/// Whether any are left.
fn end_some<T>(shared: &Mutex<State<T>>) -> bool {
    let alone: Vec<Arc<T>> =
        lock(shared).waiting.extract_if(.., |held| Arc::strong_count(held) == 1).collect();
    let idle = alone.is_empty();
    // Not under the lock: whoever adds does not wait for an end.
    drop(alone);
    let mut state = lock(shared);
    state.looked_after = !state.waiting.is_empty();
    let goes_on = state.looked_after;
    drop(state);
    if goes_on && idle {
        std::thread::sleep(PAUSE);
    }
    goes_on
}

fn lock<T>(shared: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::ThreadId;

    use super::*;

    /// Ends when it may, and says where.
    struct Slow {
        may_end: Mutex<Receiver<()>>,
        ended: Sender<ThreadId>,
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = lock_receiver(&self.may_end).recv();
            let _ = self.ended.send(std::thread::current().id());
        }
    }

    fn lock_receiver(receiver: &Mutex<Receiver<()>>) -> MutexGuard<'_, Receiver<()>> {
        receiver.lock().unwrap()
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn nobody_who_lets_go_waits_for_the_end() {
        let (ended, ends) = channel();
        let slow = || {
            let (allow, may_end) = channel();
            let slow = Slow { may_end: Mutex::new(may_end), ended: ended.clone() };
            (Arc::new(slow), allow)
        };
        let leaving = Leaving::default();
        for _ in 0..3 {
            let ((first, allow_first), (second, allow_second)) = (slow(), slow());
            leaving.add([Arc::clone(&first)]);
            // A request in flight lets go. If that were the end, it would wait for good.
            drop(first);
            leaving.add([Arc::clone(&second)]);
            allow_second.send(()).unwrap();
            assert!(ends.recv_timeout(PAUSE).is_err(), "there is somebody who needs it");
            drop(second);
            allow_first.send(()).unwrap();
            for _ in 0..2 {
                assert_ne!(ends.recv_timeout(LONG).unwrap(), std::thread::current().id());
            }
        }
    }
}
