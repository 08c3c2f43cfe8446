//! Drops the roots that a reload has replaced, on a thread of its own.
//!
//! The last owner of a root ends the watches that no other root has, and frees the objects that are cached for it. For
//! thousands of roots that takes time, which must be taken neither from a worker nor from the thread that handles
//! signals.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Drops each object that is given to it as soon as nothing else refers to the object.
pub(super) struct DropThread<T>(Arc<Mutex<DropQueue<T>>>);

struct DropQueue<T> {
    objects: Vec<Arc<T>>,
    /// Whether the thread runs. It ends when the queue is empty.
    is_served: bool,
}

/// How often the thread looks whether requests in flight have released their objects.
const PAUSE: Duration = Duration::from_millis(100);

impl<T> Default for DropThread<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(DropQueue { objects: Vec::new(), is_served: false })))
    }
}

impl<T: Send + Sync + 'static> DropThread<T> {
    /// Takes objects that only their present owners still need.
    pub(super) fn add(&self, more: impl IntoIterator<Item = Arc<T>>) {
        let mut queue = lock(&self.0);
        queue.objects.extend(more);
        if queue.objects.is_empty() || queue.is_served {
            return;
        }
        let shared = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("afpa-drop".to_owned());
        match thread.spawn(move || while drop_some(&shared) {}) {
            Ok(_) => queue.is_served = true,
            // They stay in the queue until the next reload.
            Err(error) => {
                tracing::warn!(
                    %error,
                    "no thread can be started, so old document roots are watched until the next \
                     reload"
                )
            }
        }
    }
}

/// Drops what can be dropped. Whether anything is left in the queue.
fn drop_some<T>(shared: &Mutex<DropQueue<T>>) -> bool {
    let alone: Vec<Arc<T>> =
        lock(shared).objects.extract_if(.., |object| Arc::strong_count(object) == 1).collect();
    let idle = alone.is_empty();
    // Not under the lock: `add` must not wait for a drop.
    drop(alone);
    let mut queue = lock(shared);
    queue.is_served = !queue.objects.is_empty();
    let goes_on = queue.is_served;
    drop(queue);
    if goes_on && idle {
        std::thread::sleep(PAUSE);
    }
    goes_on
}

fn lock<T>(shared: &Mutex<DropQueue<T>>) -> MutexGuard<'_, DropQueue<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::ThreadId;

    use super::*;

    /// Its drop waits until it is allowed to end, and says on which thread it ran.
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
    fn no_other_owner_waits_for_a_drop() {
        let (ended, ends) = channel();
        let slow = || {
            let (allow, may_end) = channel();
            let slow = Slow { may_end: Mutex::new(may_end), ended: ended.clone() };
            (Arc::new(slow), allow)
        };
        let drop_thread = DropThread::default();
        for _ in 0..3 {
            let ((first, allow_first), (second, allow_second)) = (slow(), slow());
            drop_thread.add([Arc::clone(&first)]);
            // A request in flight releases it. If that dropped it, this would wait forever.
            drop(first);
            drop_thread.add([Arc::clone(&second)]);
            allow_second.send(()).unwrap();
            assert!(ends.recv_timeout(PAUSE).is_err(), "it still has another owner");
            drop(second);
            allow_first.send(()).unwrap();
            for _ in 0..2 {
                assert_ne!(ends.recv_timeout(LONG).unwrap(), std::thread::current().id());
            }
        }
    }
}
