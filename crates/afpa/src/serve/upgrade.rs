//! The upgrade: the next process takes the sockets, and this one ends when that one serves.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use afpa_server::BoundListener;

use super::Server;
use crate::upgrade::{News, Starting};

/// A connection that is idle for so long does not get its client's next request any more; one that is not idle ends with
/// its next response.
const IDLE: Duration = Duration::from_secs(2);

/// An upgrade that may be in progress.
#[derive(Default)]
pub(super) struct Upgrade {
    next: Option<Starting>,
    has_left_fast_path: bool,
}

impl Upgrade {
    /// Has the next process started.
    pub(super) fn begin(&mut self, server: &Server) {
        if self.next.is_some() {
            return tracing::warn!("USR2: an upgrade is in progress already");
        }
        if std::process::id() == 1 {
            return tracing::error!(
                "USR2: the end of process 1 ends its container, so it cannot be replaced: start a new container, or run \
                 afpa below an init (docker run --init)"
            );
        }
        let Some(starter) = &server.starter else {
            return tracing::error!(
                "USR2: the process that starts the next one could not be started; restart afpa"
            );
        };
        match starter.start(&server.sockets()) {
            Ok(next) => {
                server.engine.expect_next(true);
                tracing::info!("upgrade: the next process begins");
                self.next = Some(next);
            }
            Err(error) => tracing::error!(
                "the upgrade failed, this process serves on: the process that starts the next one is gone ({error}); \
                 restart afpa"
            ),
        }
    }

    /// The next event; none while there is no upgrade. Can be dropped and called again.
    pub(super) async fn news(&mut self) -> News {
        match &mut self.next {
            Some(next) => next.news().await,
            None => std::future::pending().await,
        }
    }

    /// Whether the next process serves, so that this one can end.
    pub(super) async fn follow(&mut self, news: News, server: &mut Server) -> bool {
        let Some(next) = &mut self.next else { return false };
        match news {
            News::WantsFastPath => {
                self.has_left_fast_path = server.leave_fast_path();
                next.answer().await;
                false
            }
            News::Serves(pid) => {
                tracing::info!(pid, "upgrade: the next process serves, and this one ends");
                if let Some(pid) = pid {
                    server.notifier.main_process(pid);
                }
                next.answer().await;
                true
            }
            News::Failed(why) => {
                self.cancel(server);
                tracing::error!(
                    "the upgrade failed, this process serves on: the next process {why}; its messages stand above (`afpa \
                     check` finds errors of the configuration)"
                );
                if std::mem::take(&mut self.has_left_fast_path) {
                    tracing::warn!("the kernel answers nothing until the next upgrade or start");
                }
                false
            }
        }
    }

    /// Ends a next process that does not serve yet.
    pub(super) fn cancel(&mut self, server: &Server) {
        if self.next.take().is_some()
            && let Some(starter) = &server.starter
        {
            starter.end_next();
            server.engine.expect_next(false);
        }
    }
}

impl Server {
    fn sockets(&self) -> Vec<BorrowedFd<'_>> {
        let workers = self.engine.listeners().flat_map(BoundListener::all_sockets);
        workers.chain(self.admin.sockets()).chain(self.engine.steering_sockets()).collect()
    }

    /// Leaves it to the next process, if it can be taken over. It is the last step of that process that often fails.
    fn leave_fast_path(&mut self) -> bool {
        let fast_path = self.fast_path.take_if(|fast_path| fast_path.can_be_taken_over());
        let Some(fast_path) = fast_path else { return false };
        fast_path.leave();
        true
    }

    /// As a drain, but the next process has the sockets.
    pub(super) fn begin_drain_for_next(&mut self) {
        self.engine.drain_for_next(IDLE);
        self.admin.drain_for_next();
        self.fleet.begin_drain_for_next();
        self.dns.stop();
    }
}
