//! Helper threads: the thread context for work that may block (AMPED, as in Flash).

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;

/// A bounded pool of threads beside a core's event loop.
///
/// The threads are those of the core's tokio runtime. This type bounds how much work may wait for them, so
/// that a flood of misses is refused with [`Overloaded`] and does not fill the memory.
#[derive(Clone, Debug)]
pub struct Helpers {
    places: Arc<Semaphore>,
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

impl Helpers {
    /// A pool that lets at most `places` work items run or wait.
    pub fn new(places: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))) }
    }

    /// Runs `work` on a helper thread and gives back what it returns.
    ///
    /// # Errors
    /// [`Overloaded`] when no place is free, or when `work` panicked (the panic is contained: one
    /// request fails, not the server).
    pub async fn run<T, F>(&self, work: F) -> Result<T, Overloaded>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| Overloaded)?;
        let task = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(place);
            result
        });
        task.await.map_err(|_| Overloaded)
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
        while helpers.places.available_permits() > 0 {
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
}
