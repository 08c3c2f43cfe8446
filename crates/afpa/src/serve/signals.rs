//! The life of a server after its start: signals, with the same meaning as in nginx. Signals without a meaning there
//! are ignored: by default the kernel would end the process for them.

use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::{SigSet, Signal as Number};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until};

use super::Server;
use super::fleet::ToConfigure;
use super::upgrade::Upgrade;
use crate::cli::Serve;

/// They end a process by default, but nobody means that here. XFSZ comes when a log is as long as a file may be
/// (`ulimit -f`): the write fails as well.
const IGNORED: [Number; 7] = [
    Number::SIGALRM,
    Number::SIGVTALRM,
    Number::SIGPROF,
    Number::SIGIO,
    Number::SIGPWR,
    Number::SIGSTKFLT,
    Number::SIGXFSZ,
];

/// How often memory that is not used any more is given back.
const GIVE_BACK: Duration = Duration::from_secs(10);

/// The signals that are handled, from [`Signals::listen`] on.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
    reopen: Signal,
    upgrade: Signal,
}

/// How a server ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    AtOnce,
    /// Once its connections have ended.
    Drained,
    /// Once its connections have ended; the next process serves already.
    Replaced,
}

impl Signals {
    /// From now on no signal is lost. To be called before the first thread is started.
    pub(super) fn listen() -> anyhow::Result<Self> {
        for number in IGNORED {
            // A handler stays when its `Signal` is dropped, and it does nothing then.
            let handler = signal(SignalKind::from_raw(number as i32));
            drop(handler.with_context(|| number.to_string())?);
        }
        // The process that starts the next one had them blocked.
        SigSet::all().thread_unblock().context("cannot unblock signals")?;
        // A message on a terminal that stops those in the background (`stty tostop`): blocked, it is written all the same.
        SigSet::from(Number::SIGTTOU).thread_block().context("cannot block SIGTTOU")?;
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hangup: signal(SignalKind::hangup())?,
            reopen: signal(SignalKind::user_defined1())?,
            upgrade: signal(SignalKind::user_defined2())?,
        })
    }

    /// Handles them until the server has ended.
    pub(super) async fn follow(self, mut server: Server, options: &Serve) -> anyhow::Result<()> {
        let Signals { mut terminate, mut interrupt, mut quit, mut hangup, mut reopen, mut upgrade } =
            self;
        // Half the interval, so that one notification may be late.
        let mut look = tokio::time::interval(server.config.internals.reread);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut calm = tokio::time::interval(GIVE_BACK);
        calm.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut to_configure = server.fleet.to_configure.take();
        let demand = server.acme.demand();
        let beat = server.notifier.watchdog_interval().map(|interval| interval / 2);
        let mut upgraded = Upgrade::default();
        let end = loop {
            tokio::select! {
                _ = terminate.recv() => break End::AtOnce,
                _ = interrupt.recv() => break End::AtOnce,
                _ = quit.recv() => break End::Drained,
                news = upgraded.news() => {
                    if upgraded.follow(news, &mut server).await {
                        break End::Replaced;
                    }
                }
                _ = hangup.recv() => {
                    server.reload(options);
                    look.reset_immediately();
                }
                Some((what, answer)) = next_of(&mut to_configure) => {
                    // The fleet may have ended meanwhile, by a reload with another one.
                    if answer.is_closed() {
                        continue;
                    }
                    let _ = answer.send(server.configure(options, &what));
                    look.reset_immediately();
                }
                _ = look.tick() => {
                    server.tls.tick(&server.config);
                    server.dns.take_seeds(server.observed.seeds.load_full());
                    server.observed.serving.load().reread_error_pages();
                }
                _ = calm.tick() => server.give_back_memory(),
                () = demand.settled() => server.tls.take_on_demand(server.acme.on_demand_files()),
                _ = reopen.recv() => server.reopen_logs(),
                _ = upgrade.recv() => upgraded.begin(&server),
                () = pause(beat) => server.notifier.watchdog(),
            }
        };
        let has_successor = end == End::Replaced;
        if !has_successor {
            upgraded.cancel(&server);
            server.notifier.stopping();
        }
        server.pause_fast_path();
        // The next process has one of its own.
        drop(server.shield.take());
        if end != End::AtOnce {
            if has_successor {
                server.begin_drain_for_next()
            } else {
                server.begin_drain()
            }
            tokio::select! {
                () = server.drained() => {}
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        server.engine.stop();
        server.dns.stop();
        if let Some(fast_path) = server.fast_path.take() {
            fast_path.finish();
        }
        server.admin.stop();
        // The control socket is closed, so no purge can come any more.
        let Server { fleet, snapshot, responses, .. } = server;
        fleet.end(has_successor);
        // Nor does the snapshot know the purges that the next process carries out.
        if !has_successor {
            snapshot.write(&responses);
        }
        tracing::info!("stopped");
        Ok(())
    }
}

/// The next order about a configuration of the fleet.
async fn next_of(orders: &mut Option<UnboundedReceiver<ToConfigure>>) -> Option<ToConfigure> {
    match orders {
        Some(orders) => orders.recv().await,
        None => std::future::pending().await,
    }
}

async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

impl Server {
    /// Memory that a peak, the start or a reload has left unused.
    fn give_back_memory(&mut self) {
        self.arena.give_back_memory();
        self.responses.give_back_memory();
        self.heap.give_back();
    }

    /// The kernel answers no more, so all requests go to the workers, which can close their connections.
    pub(super) fn pause_fast_path(&self) {
        if let Some(fast_path) = &self.fast_path {
            fast_path.pause();
        }
    }

    /// Accepts no more connections, and lets requests in flight end.
    fn begin_drain(&mut self) {
        self.engine.drain();
        self.admin.drain();
        self.dns.stop();
    }

    /// Waits until all connections have ended, as long as `[timeouts] shutdown` allows.
    async fn drained(&self) {
        let patience = self.config.timeouts.shutdown;
        tracing::info!(open = self.engine.open_connections(), ?patience, "draining");
        let deadline = Instant::now() + patience;
        while self.engine.is_running() {
            if Instant::now() >= deadline {
                let left = self.engine.open_connections();
                tracing::warn!(
                    left,
                    "connections did not end within [timeouts] shutdown, and are closed"
                );
                return;
            }
            sleep_until(Instant::now() + Duration::from_millis(10)).await;
        }
    }

    fn reopen_logs(&self) {
        self.observed.access_log.load().reopen();
        tracing::info!("logs are opened again");
    }
}
