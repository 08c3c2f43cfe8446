//! One exchange over a split connection (IBM paper, section 3): select a server, get a connection to it, send
//! the request, pass on the response, and put the connection on the list that it belongs to.
//!
//! [`run`] walks the states of `states`, in which it does this. `relay` moves the bytes: `upload` those of the request, `download` those
//! of the response, at the same time, each only as fast as its reader takes them. An exchange holds a buffer
//! only while there are bytes in it. One that is not alone lets the others go first before it sends a request or an answer:
//! then all that has arrived on the core is read first, and what is to leave leaves at once, for one interrupt of the core that it is for.
//!
//! LIFECYCLE.md in this crate has the states, Z1 to Z18 of docs/rules are the rules.

mod download;
mod failure;
mod job;
mod reach;
mod relay;
mod settings;
mod states;
mod tap;
mod tunnel;
mod upload;
mod wait;
mod whole;

use std::rc::Rc;
use std::time::Duration;

use afpa_framework::duration_us;
use afpa_framework::{ClientStream, Persistence};

use crate::pool::{Pool, ServerStream, Share};
use crate::select::{Address, AttemptOutcome, Chosen, Lease, Pick, ServerIndex, WhyNone};
pub use failure::Failure;
use failure::{Fault, RetryPolicy};
pub use job::{Core, End, Job, Report};
use relay::{Relay, Relayed};
pub use settings::{HalfClosed, Settings};
use states::{Event, Reached, State};
pub use tap::{Passing, Tap};
use wait::{Interrupted, while_client_stays};

/// Passes `job` on to a server, and the server's response to `client`. A tap is a second reader of the response.
///
/// The client is known by its table alone, so that all of this is in the program once, and not for each kind of connection.
pub async fn run<'a>(
    job: &'a mut Job,
    core: &'a Rc<Core>,
    client: &'a mut (dyn ClientStream + 'a),
    tap: Option<&'a mut (dyn Tap + 'a)>,
) -> Report {
    let mut exchange = Exchange::begin(job, core, client, tap);
    let end = exchange.run().await;
    exchange.report(end)
}

/// The result of a state function.
type Happened = Event<Lease, ServerStream>;

/// An exchange under way.
struct Exchange<'a, C: ?Sized> {
    job: &'a mut Job,
    core: &'a Rc<Core>,
    client: &'a mut C,
    tap: Option<&'a mut (dyn Tap + 'a)>,
    started_us: u64,
    /// Steady milliseconds at which everything must be over.
    total_ms: Option<u64>,
    excluded: Vec<ServerIndex>,
    repeats: u32,
    attempts: u32,
    /// Whether connections that are there may be used.
    may_reuse: bool,
    /// The last server that failed, and how.
    last: Option<(String, Failure)>,
    /// How often a server has said that it did not look at the request.
    unprocessed: u32,
    connected_us: u64,
    server: Option<Box<str>>,
    summary: download::Summary,
    replaced: Option<Box<[u8]>>,
    /// The room of the content that was gathered; it is in the head now.
    gathered: Option<Share>,
    /// The content of the request, as it was sent to a server that did not answer.
    held: Option<Box<[u8]>>,
}

impl<'a, C: ClientStream + ?Sized> Exchange<'a, C> {
    fn begin(
        job: &'a mut Job,
        core: &'a Rc<Core>,
        client: &'a mut C,
        tap: Option<&'a mut (dyn Tap + 'a)>,
    ) -> Self {
        let now = client.cached_now();
        Self {
            started_us: now.unix_us,
            total_ms: job.settings.total.map(|total| now.steady_ms() + millis(total)),
            excluded: Vec::new(),
            repeats: job.settings.repeats,
            attempts: 0,
            may_reuse: true,
            last: None,
            unprocessed: 0,
            connected_us: now.unix_us,
            server: None,
            summary: download::Summary::default(),
            replaced: None,
            gathered: None,
            held: None,
            job,
            core,
            client,
            tap,
        }
    }

    /// Walks the states of the server's half to the end.
    async fn run(&mut self) -> End {
        if let Err(stop) = self.take_content().await {
            return stop.into();
        }
        let mut state = State::SelectServer;
        loop {
            let event = match state {
                State::SelectServer => self.select_server().await,
                State::ReachServer(lease) => self.reach_server(lease).await,
                State::Relay(lease, reached) => self.relay(lease, reached).await,
                State::JudgeFault(lease, fault) => self.judge_fault(lease, fault),
                State::Ended(end) => return end,
            };
            state = event.leads_to();
        }
    }

    /// *Select server*: as the group balances, without those that have failed.
    async fn select_server(&mut self) -> Happened {
        match self.acquire().await {
            Ok(lease) => {
                self.attempts += 1;
                if self.job.names_server {
                    self.server = Some(lease.name().into());
                }
                Event::Selected(lease)
            }
            Err(stop) => Event::Ended(self.without_server(stop)),
        }
    }

    /// *Reach server*: a connection from the pool, or a new one.
    async fn reach_server(&mut self, lease: Lease) -> Happened {
        match self.reach(&lease, self.may_reuse).await {
            Ok(Some((stream, was_there))) => Event::Reached(lease, Reached { stream, was_there }),
            Ok(None) => Event::Ended(End::ClientGone),
            Err(fault) => Event::Failed(lease, fault),
        }
    }

    /// *Relay*: sends the request to the server and conveys its response. A fault leaves the client without a byte
    /// of a final response.
    async fn relay(&mut self, lease: Lease, reached: Reached<ServerStream>) -> Happened {
        let Reached { mut stream, was_there } = reached;
        if !self.job.head.is_final() {
            match lease.address() {
                Address::Tcp(address) => self.job.head.bytes_for(address),
                // The path of a unix socket cannot be sent as Host.
                Address::Unix(_) => self.job.head.bytes_for("localhost"),
            };
        }
        let core = Rc::clone(self.core);
        let _busy = Busy::count(&core.pool);
        let mut relay = Relay::new(self, &lease, &mut stream);
        let relayed = relay.run().await;
        let summary = relay.end();
        self.summary = summary;
        if !matches!(relayed, Relayed::Whole { .. } | Relayed::Tunnelled) {
            // The server need not go on, and no port is to rest for a client that has left.
            stream.reset_at_end();
        }
        let (end, outcome) = match relayed {
            Relayed::Whole { reusable } => {
                self.put_away(&lease, stream, reusable, &summary);
                (End::Relayed(summary.persistence), Some(self.success(&summary)))
            }
            Relayed::Tunnelled => (End::Relayed(Persistence::Close), Some(self.success(&summary))),
            Relayed::ClientGone => (End::ClientGone, None),
            Relayed::Broken(outcome) => {
                if outcome == Some(AttemptOutcome::IdleTimeout) {
                    stream.distrust();
                }
                self.client.breaks_off(summary.break_off);
                if summary.ends_with_connection {
                    self.client.reset_at_end();
                }
                (End::Broken, outcome)
            }
            Relayed::Failed(mut fault) => {
                if fault.failure == Failure::ServerTimeout {
                    stream.distrust();
                }
                fault.unprocessed &= self.unprocessed < MOST_UNPROCESSED;
                // A shared connection may end through other requests, too, so its end excuses the server only once.
                fault.stale &= was_there && self.may_reuse;
                if fault.stale || fault.unprocessed {
                    fault.outcome = None;
                }
                return Event::Failed(lease, fault);
            }
        };
        self.finish(lease, outcome);
        Event::Ended(end)
    }

    /// *Judge fault*: whether the request goes to a server again, and to which ones not.
    fn judge_fault(&mut self, lease: Lease, fault: Fault) -> Happened {
        tracing::debug!(
            server = lease.name(),
            attempt = self.attempts,
            stale = fault.stale,
            why = %fault.failure.why(),
            "a server did not answer a request"
        );
        if fault.stale {
            // The server had closed an idle connection, which is not a failure.
            self.core.pool.forget(lease.id(), self.client.cached_now().steady_ms());
            self.may_reuse = false;
        } else if fault.unprocessed {
            self.unprocessed += 1;
        } else {
            self.excluded.push(lease.server());
        }
        let server = lease.name().to_owned();
        self.finish(lease, fault.outcome);
        if !self.may_try_again(&fault) {
            self.explain(&server, fault.failure);
            return Event::Ended(End::Failed(fault.failure));
        }
        self.last = Some((server, fault.failure));
        Event::Again
    }

    /// Ends a request for which no server is left. If all were tried, it ends with the failure of the last one, which
    /// tells more than that there is no other.
    fn without_server(&self, stop: Stop) -> End {
        match (stop, &self.last) {
            (Stop::Failed(none @ Failure::NoServer(why)), Some((server, failure))) => {
                self.explain(server, *failure);
                End::Failed(if why == WhyNone::AllTried { *failure } else { none })
            }
            (stop, _) => stop.into(),
        }
    }

    /// Logs why a client gets an error for a server's failure (5xx). Faults of the client itself are not logged.
    fn explain(&self, server: &str, failure: Failure) {
        let status = failure.status().code();
        if status >= 500 {
            let (attempts, why) = (self.attempts, failure.why());
            tracing::info!(status, server, attempts, %why, "a request got no answer from its server");
        }
    }

    /// Whether a request whose server failed may be sent again.
    fn may_try_again(&mut self, fault: &Fault) -> bool {
        match fault.retry {
            RetryPolicy::Never => false,
            RetryPolicy::Always => true,
            RetryPolicy::IfIdempotent if !self.job.idempotent => false,
            RetryPolicy::IfIdempotent if fault.stale => true,
            RetryPolicy::IfIdempotent => {
                let left = self.repeats.checked_sub(1);
                self.repeats = left.unwrap_or_default();
                left.is_some()
            }
        }
    }

    fn finish(&self, lease: Lease, outcome: Option<AttemptOutcome>) {
        if let Some(outcome) = outcome {
            lease.finish(self.client.cached_now().steady_ms(), outcome);
        }
    }

    /// The client, and when it counts as gone.
    fn patient_client(&mut self) -> (&mut C, HalfClosed) {
        (&mut *self.client, self.job.settings.half_closed)
    }

    /// Selects a server, and waits in the queue if it must.
    async fn acquire(&mut self) -> Result<Lease, Stop> {
        let chosen = Chosen {
            url_hash: self.job.url_hash,
            client: self.job.client,
            sharer: self.job.sharer,
            cookie: self.job.cookie.as_deref(),
            affinity: self.job.affinity,
        };
        let now = self.client.cached_now().steady_ms();
        let mut pick = self.job.group.pick(now, &chosen, &self.excluded);
        let deadline = now + millis(self.job.group.queue_timeout());
        loop {
            match pick {
                Pick::Server(lease) => return Ok(lease),
                Pick::None(why) => return Err(Stop::Failed(Failure::NoServer(why))),
                Pick::Queue(waiter) => {
                    let until = self.total_ms.map_or(deadline, |total| total.min(deadline));
                    pick = while_client_stays(self.patient_client(), until, waiter).await.map_err(
                        |interrupted| match interrupted {
                            Interrupted::ClientGone => Stop::ClientGone,
                            Interrupted::Over => Stop::Failed(Failure::QueueTimeout),
                        },
                    )?;
                }
            }
        }
    }

    fn success(&self, summary: &download::Summary) -> AttemptOutcome {
        AttemptOutcome::Ok {
            status: summary.status,
            first_byte_us: duration_us(self.connected_us, summary.first_byte_us),
            total_us: duration_us(self.connected_us, self.client.now().unix_us),
        }
    }

    fn report(self, end: End) -> Report {
        // The clock was read when the response ended: no need to read it again.
        let ended = match end {
            End::Relayed(_) => self.client.cached_now(),
            _ => self.client.now(),
        };
        let since = |us: u64| if us == 0 { 0 } else { duration_us(self.started_us, us) };
        Report {
            end,
            status: self.summary.status,
            content_bytes: self.summary.content,
            attempts: self.attempts,
            connect_us: since(self.connected_us),
            first_byte_us: since(self.summary.first_byte_us),
            total_us: since(ended.unix_us),
            server: self.server,
            replaced: self.replaced.filter(|_| matches!(end, End::Relayed(_))),
            coded: self.summary.coded,
        }
    }
}

/// How often a server that did not process a request is asked again, before it counts as failed.
const MOST_UNPROCESSED: u32 = 3;

/// Why there is no server.
enum Stop {
    ClientGone,
    Failed(Failure),
}

impl From<Stop> for End {
    fn from(stop: Stop) -> End {
        match stop {
            Stop::ClientGone => End::ClientGone,
            Stop::Failed(failure) => End::Failed(failure),
        }
    }
}

/// Counts a connection as busy for as long as it lives.
struct Busy<'p>(&'p Pool);

impl<'p> Busy<'p> {
    fn count(pool: &'p Pool) -> Self {
        pool.count_busy(1);
        Self(pool)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.count_busy(-1);
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}
