//! Helper threads: the thread context for work that may block (AMPED, as in Flash).
//!
//! The threads of a pool descend from one thread that is made when the pool starts, never from the threads that give
//! work. In Linux a thread inherits the restrictions of the thread that makes it (seccomp filters, Landlock domains),
//! and a core may do less than its helpers.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::Client;
use crate::places::{Places, Sharer};

/// How long a thread waits for work before it ends, unless it is the last of its pool.
const PATIENCE: Duration = Duration::from_secs(10);

/// A bounded pool of threads beside a core's event loop.
///
/// There is always one thread more than has work, up to the limit, so nobody waits for a thread to be made while one
/// may be had. How much work may wait for threads is bounded as well, so that a flood of misses is refused with
/// [`Overloaded`] and does not fill the memory. The threads end when the pool is dropped, each with its work at hand.
#[derive(Clone)]
pub struct Helpers {
    pool: Arc<Pool>,
    places: Arc<Places>,
    /// The client whose share the work takes.
    client: Option<Sharer>,
}

/// The size of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelperLimits {
    /// Threads at most; 0: there is none, and all work is refused.
    pub threads: usize,
    /// Work items that may run or wait at the same time.
    pub places: usize,
}

/// More work waits for helper threads than the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overloaded;

impl fmt::Display for Overloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too much work waits for helper threads")
    }
}

impl std::error::Error for Overloaded {}

impl fmt::Debug for Helpers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helpers").field("free", &self.places.free()).finish()
    }
}

impl Helpers {
    /// A pool that lets at most `places` work items run or wait, on up to 16 threads.
    ///
    /// # Panics
    /// When the system gives no thread: [`Helpers::start`] says so instead.
    pub fn new(places: usize) -> Self {
        let limits = HelperLimits { threads: 16, places };
        let pools = Self::start(["afpa-help".to_owned()], limits, || ());
        pools.ok().and_then(|mut pools| pools.pop()).expect("a thread")
    }

    /// A pool of each name, which its threads bear. `begin` runs once, on the thread from which all threads of all
    /// these pools descend.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        names: impl IntoIterator<Item = String>,
        limits: HelperLimits,
        begin: impl FnOnce() + Send,
    ) -> io::Result<Vec<Self>> {
        let pools: Vec<Self> = names.into_iter().map(|name| Self::idle(name, limits)).collect();
        if limits.threads == 0 {
            return Ok(pools);
        }
        thread::scope(|scope| {
            let ancestor = thread::Builder::new().name("afpa-help".to_owned());
            let made = ancestor.spawn_scoped(scope, || {
                begin();
                pools.iter().try_for_each(|pool| pool.pool.add_thread())
            })?;
            made.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        })?;
        Ok(pools)
    }

    fn idle(name: String, limits: HelperLimits) -> Self {
        let pool =
            Shared { name, most: limits.threads, queue: Mutex::default(), arrived: Condvar::new() };
        let places = if limits.threads == 0 { 0 } else { limits.places };
        Self { pool: Arc::new(Pool(Arc::new(pool))), places: Places::new(places), client: None }
    }

    /// This pool, for work of one client, which leaves places to others.
    pub fn for_client(&self, client: Client) -> Self {
        Self { client: Sharer::of(client), ..self.clone() }
    }

    /// Runs `work` on a helper thread and returns its result.
    ///
    /// # Errors
    /// [`Overloaded`] when no place is free, or the client has its share, or when `work` panicked (the panic is contained: one
    /// request fails, not the server).
    pub async fn run<T, F>(&self, work: F) -> Result<T, Overloaded>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let place = self.places.enter(self.client).ok_or(Overloaded)?;
        let (give, result) = oneshot::channel();
        self.pool.0.add_work(Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            drop(place);
            if let Ok(result) = result {
                // The task that asked may have gone.
                let _ = give.send(result);
            }
        }));
        result.await.map_err(|_| Overloaded)
    }
}

/// The handle of the threads that give work; its end is the end of the pool.
struct Pool(Arc<Shared>);

type Work = Box<dyn FnOnce() + Send>;

struct Shared {
    name: String,
    most: usize,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Default)]
struct Queue {
    work: VecDeque<Work>,
    threads: usize,
    /// Threads without work, with those that are being made.
    free: usize,
    closed: bool,
}

impl Pool {
    fn add_thread(&self) -> io::Result<()> {
        let mut queue = self.0.lock();
        queue.threads += 1;
        queue.free += 1;
        drop(queue);
        self.0.spawn()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.closed = true;
        let abandoned = std::mem::take(&mut queue.work);
        drop(queue);
        self.0.arrived.notify_all();
        drop(abandoned);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Work runs without the lock, so a panic leaves nothing half done.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_work(&self, work: Work) {
        self.lock().work.push_back(work);
        self.arrived.notify_one();
    }

    /// Makes a thread that was counted already; the count is taken back when there is none to be had.
    fn spawn(self: &Arc<Self>) -> io::Result<()> {
        let pool = Arc::clone(self);
        let made = thread::Builder::new().name(self.name.clone()).spawn(move || pool.serve());
        if made.is_err() {
            let mut queue = self.lock();
            queue.threads -= 1;
            queue.free -= 1;
        }
        made.map(drop)
    }

    /// The life of a thread.
    fn serve(self: &Arc<Self>) {
        while let Some((work, is_last_free)) = self.take() {
            if is_last_free {
                // Where the system has no further thread, those that are there go on.
                let _ = self.spawn();
            }
            work();
            self.lock().free += 1;
        }
    }

    /// Waits for work. With it comes whether a further thread has been counted, and is to be made.
    fn take(&self) -> Option<(Work, bool)> {
        let mut queue = self.lock();
        loop {
            if let Some(work) = queue.work.pop_front() {
                queue.free -= 1;
                let is_last_free = queue.free == 0 && queue.threads < self.most;
                if is_last_free {
                    queue.threads += 1;
                    queue.free += 1;
                }
                return Some((work, is_last_free));
            }
            if queue.closed {
                return self.leave(queue);
            }
            let waited = self.arrived.wait_timeout(queue, PATIENCE);
            let (woken, time) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            if time.timed_out() && queue.work.is_empty() && queue.free > 1 {
                return self.leave(queue);
            }
        }
    }

    fn leave<T>(&self, mut queue: MutexGuard<'_, Queue>) -> Option<T> {
        queue.threads -= 1;
        queue.free -= 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn work_beyond_the_limit_is_refused_and_places_come_back() {
        let helpers = Helpers::new(1);
        let (release, wait) = mpsc::channel::<()>();
        let busy = tokio::spawn({
            let helpers = helpers.clone();
            async move { helpers.run(move || wait.recv().is_ok()).await }
        });
        while helpers.places.free() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(helpers.run(|| 1).await, Err(Overloaded));
        release.send(()).expect("the helper waits");
        assert_eq!(busy.await.expect("joins"), Ok(true));
        assert_eq!(helpers.run(|| 2).await, Ok(2));
    }

    #[tokio::test]
    async fn a_panic_on_a_helper_fails_one_request_only() {
        let helpers = Helpers::new(1);
        let outcome = helpers.run(|| -> u8 { panic!("expected by this test") }).await;
        assert_eq!(outcome, Err(Overloaded));
        assert_eq!(helpers.run(|| 3).await, Ok(3));
    }

    #[tokio::test]
    async fn a_pool_without_threads_makes_none_and_refuses_work() {
        let limits = HelperLimits { threads: 0, places: 8 };
        let begin = || panic!("no thread is made");
        let pools = Helpers::start(["one".to_owned(), "two".to_owned()], limits, begin);
        let pools = pools.expect("pools");
        assert_eq!(pools.len(), 2);
        for pool in pools {
            assert_eq!(pool.run(|| 1).await, Err(Overloaded));
            assert_eq!(pool.pool.0.lock().threads, 0);
        }
    }

    fn pool_of(threads: usize) -> Helpers {
        let limits = HelperLimits { threads, places: 100 };
        Helpers::start(["test".to_owned()], limits, || ()).expect("a pool").remove(0)
    }

    #[tokio::test]
    async fn work_gets_threads_up_to_the_limit_and_waits_beyond_it() {
        let helpers = pool_of(4);
        let (release, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let (report, running) = mpsc::channel();
        let mut all = Vec::new();
        for _ in 0..6 {
            let (helpers, wait, report) = (helpers.clone(), Arc::clone(&wait), report.clone());
            all.push(tokio::spawn(async move {
                let work = move || {
                    // For the last two no receiver is left.
                    report.send(thread::current().id()).ok();
                    wait.lock().expect("not poisoned").recv().is_ok()
                };
                helpers.run(work).await
            }));
        }
        // Four of them run at a time: three wait for the lock, and one holds it.
        let counted = tokio::task::spawn_blocking(move || {
            (0..4)
                .map(|_| running.recv().expect("it runs"))
                .collect::<std::collections::HashSet<_>>()
        });
        assert_eq!(counted.await.expect("four run").len(), 4);
        assert_eq!(helpers.pool.0.lock().threads, 4);
        for _ in 0..6 {
            release.send(()).expect("somebody waits");
        }
        for one in all {
            assert_eq!(one.await.expect("joins"), Ok(true));
        }
    }

    #[test]
    fn all_threads_descend_from_the_one_that_began() {
        // The name of a thread is no help here, its CPU affinity is passed on as filters are.
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let only_one = || {
            let allowed = rustix::thread::sched_getaffinity(None).expect("asked");
            let first = (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
            let mut one = rustix::thread::CpuSet::new();
            one.set(first.expect("a processor"));
            rustix::thread::sched_setaffinity(None, &one).expect("allowed");
        };
        let limits = HelperLimits { threads: 3, places: 10 };
        let names = ["a".to_owned(), "b".to_owned()];
        let pools = Helpers::start(names, limits, only_one).expect("pools");
        for pool in &pools {
            for _ in 0..5 {
                let count = || rustix::thread::sched_getaffinity(None).expect("asked").count();
                assert_eq!(runtime.block_on(pool.run(count)), Ok(1));
            }
        }
    }

    #[test]
    fn threads_end_with_their_pool() {
        let helpers = pool_of(4);
        let shared = Arc::clone(&helpers.pool.0);
        drop(helpers);
        while shared.lock().threads > 0 {
            thread::yield_now();
        }
    }
}
