//! The ring of a core below its event loop, and the decision whether it is used.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use afpa_framework::{Module, give_way};
use afpa_ring::Ring;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Worker;
use crate::io::{Chooser, Io, Load, Reason, Strategy, WorkerIo};

/// How often a core looks at its load.
const PERIOD: Duration = Duration::from_millis(100);

/// Submits the operations of a ring, and hands their results to the tasks that wait for them. It runs behind the tasks
/// that it has woken: the operations that they queue are submitted together, with the system call that takes further
/// results.
pub(super) async fn drive(ring: Ring, io: Rc<WorkerIo>) {
    let event = watch(ring.event());
    let failed = match event {
        Ok(event) => turn_until_it_fails(&ring, &event).await,
        Err(error) => error,
    };
    tracing::error!(error = %failed, "io_uring has failed on a core, which goes on with epoll");
    io.lose_ring();
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe; an OwnedFd keeps its descriptor open, and the same"
)]
fn watch(event: io::Result<OwnedFd>) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(event?, Interest::READABLE)
}

async fn turn_until_it_fails(ring: &Ring, event: &AsyncFd<OwnedFd>) -> io::Error {
    loop {
        match ring.turn() {
            Err(error) => return error,
            Ok(done) if done > 0 => give_way().await,
            Ok(_) if ring.rest() => poll_fn(|cx| poll_work(ring, event, cx)).await,
            // Other tasks get their turn in any case.
            Ok(_) => give_way().await,
        }
    }
}

/// Ready when an operation is queued, or one is done.
fn poll_work(ring: &Ring, event: &AsyncFd<OwnedFd>, cx: &mut Context<'_>) -> Poll<()> {
    if ring.poll_queued(cx).is_ready() {
        return Poll::Ready(());
    }
    match event.poll_read_ready(cx) {
        Poll::Ready(Ok(mut told)) => {
            // The event is not read: epoll tells of each time it is written to.
            told.clear_ready();
            Poll::Ready(())
        }
        Poll::Ready(Err(_)) => Poll::Ready(()),
        Poll::Pending => Poll::Pending,
    }
}

/// Takes the strategy that the settings name, or the one that suits the load.
pub(super) async fn choose<M: Module>(worker: Rc<Worker<M>>) {
    let mut chooser = None;
    let mut before = Counted::default();
    let mut period = tokio::time::interval(PERIOD);
    loop {
        let io = worker.settings.borrow().io;
        match io {
            Io::Readiness => worker.io.take(Strategy::Readiness, Reason::Configured),
            Io::Completion => worker.io.take(Strategy::Completion, Reason::Configured),
            Io::Auto => {
                let now = Counted::of(&worker);
                let chooser = chooser.get_or_insert_with(|| Chooser::new(worker.io.strategy()));
                if let Some((strategy, why)) = chooser.observe(&now.since(&before)) {
                    worker.io.take(strategy, why);
                }
                before = now;
            }
        }
        if io == Io::Auto {
            period.tick().await;
        } else {
            chooser = None;
            worker.reloaded.notified().await;
            before = Counted::of(&worker);
        }
    }
}

/// Counts since the core began.
#[derive(Clone, Copy, Default)]
struct Counted(Load);

impl Counted {
    fn of<M: Module>(worker: &Worker<M>) -> Self {
        let counters = &worker.counters;
        let exchanged = counters.short_exchanges.get();
        let left = counters.left_for_thread.get().saturating_sub(exchanged);
        Self(Load {
            accepted: counters.accepted.get(),
            // An exchange receives from its server, too.
            receives: counters.receives.get() + exchanged,
            answered: counters.answered.get() + exchanged,
            exchanged,
            others: left + counters.long_answers.get(),
            waits: tokio::runtime::Handle::current().metrics().worker_park_count(0)
                + worker.io.ring().map_or(0, |ring| ring.enters()),
        })
    }

    fn since(&self, before: &Self) -> Load {
        let (now, before) = (&self.0, &before.0);
        Load {
            accepted: now.accepted - before.accepted,
            receives: now.receives - before.receives,
            answered: now.answered - before.answered,
            exchanged: now.exchanged - before.exchanged,
            // An exchange that is under way counts as another until it turns out to be a short one.
            others: now.others.saturating_sub(before.others),
            waits: now.waits - before.waits,
        }
    }
}
