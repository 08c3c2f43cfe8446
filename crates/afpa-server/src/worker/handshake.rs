//! Handshakes of TLS: how many, and how long.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use afpa_framework::{Client, Module, Peer, Seldom, steady_ms};
use afpa_tls::resolver::CHALLENGE;
use afpa_tls::{Facts, Failure, ListenerTls, Reason};

use super::Worker;
use super::early::{Early, secured};
use super::handshake_turns::Turn;
use crate::connection::Connection;
use crate::transport::{Tls, Transport};

/// Shakes hands with a client that was admitted, and serves it. `input` has arrived already.
pub(super) async fn serve<M: Module, T: Transport + 'static>(
    worker: Rc<Worker<M>>,
    stream: T,
    from: (Peer, u32),
    settings: ListenerTls,
    input: Vec<u8>,
) {
    match shake(&worker, stream, from, &settings, input).await {
        // The authority has seen the certificate; nothing else is sent (RFC 8737 section 4).
        Ok(Shaken { mut tls, facts, .. }) if facts.protocol.as_deref() == Some(CHALLENGE) => {
            poll_fn(|cx| tls.poll_goodbye(cx)).await;
        }
        Ok(Shaken { mut tls, facts, early }) => {
            let input = tls.take_ahead();
            let is_h2 = facts.protocol.as_deref() == Some(b"h2");
            let mut connection = Connection::new(worker, tls, from, input);
            connection.secured(match &early {
                None => Rc::new(secured(facts, false)),
                Some(early) => early.so_far(),
            });
            connection.early = early;
            match is_h2 {
                true => connection.run_h2().await,
                false => connection.run().await,
            }
        }
        Err(reason) => worker.counters.tls.failed(reason).add(1),
    }
}

/// The result of a handshake.
struct Shaken<M: Module, T> {
    tls: Tls<T>,
    facts: Facts,
    /// It is not complete, but there is early data.
    early: Option<Box<Early<M>>>,
}

async fn shake<M: Module, T: Transport>(
    worker: &Rc<Worker<M>>,
    stream: T,
    (Peer { client, .. }, listener): (Peer, u32),
    settings: &ListenerTls,
    mut input: Vec<u8>,
) -> Result<Shaken<M, T>, Reason> {
    let (total, per_client, patience) = {
        let settings = worker.settings.borrow();
        (settings.handshakes, settings.handshakes_per_client, settings.handshake_timeout)
    };
    let place = worker.limits.handshakes.admit(client, total, per_client).ok_or(Reason::Limit)?;
    let mut tls =
        Tls::new(stream, settings, &worker.tls).map_err(|failure| report(client, &failure))?;
    let (shaken, deadline_ms) = {
        let entry = Entry::new(worker, listener, patience);
        let first = if input.is_empty() { Ok(()) } else { tls.take(&mut input) };
        let shaken = match first {
            Ok(()) => entry.shake(&mut tls).await,
            Err(failure) => Err(Some(failure)),
        };
        (shaken, entry.deadline_ms)
    };
    match shaken {
        Ok(true) => {
            let agreed = tls.agreed().map_err(|failure| report(client, &failure))?;
            let facts = agreed.ok_or(Reason::Other)?;
            worker.counters.tls.early_data(facts.early_data);
            let early = match tls.is_early() {
                true => Some(Early::new(worker, place, deadline_ms, facts.clone())),
                false => {
                    worker.counters.tls.complete(&facts);
                    None
                }
            };
            Ok(Shaken { tls, facts, early })
        }
        Ok(false) => Err(Reason::TimedOut),
        Err(None) => Err(Reason::Gone),
        Err(Some(failure)) => {
            if failure.reason == Reason::NotTls {
                say_plainly(tls.below(), M::TO_PLAIN_CLIENTS);
            }
            Err(report(client, &failure))
        }
    }
}

/// Logs a failure. A client's fault is no news, so only the debug level shows more than its kind. A refused certificate
/// is a warning: a client that shows one was meant to get in.
fn report(client: Client, failure: &Failure) -> Reason {
    static REFUSED: Seldom = Seldom::new();
    if failure.reason != Reason::PeerCertificate {
        tracing::debug!(%client, %failure, "a handshake of TLS failed");
    } else if let Some(unsaid) = REFUSED.admit(steady_ms()) {
        tracing::warn!(%client, %failure, unsaid, "a client's certificate is refused");
    }
    failure.reason
}

/// Tells a client that has sent no record of TLS what is wrong, with one attempt.
fn say_plainly<T: Transport>(below: &mut T, answer: &[u8]) {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let _ = below.poll_send(&mut cx, answer, false);
    let _ = below.poll_shutdown(&mut cx);
}

/// A handshake in the table of the core's connections, whose sweep ends it in time.
struct Entry<'w, M: Module> {
    worker: &'w Worker<M>,
    index: usize,
    deadline_ms: u64,
}

impl<'w, M: Module> Entry<'w, M> {
    fn new(worker: &'w Worker<M>, listener: u32, patience: Duration) -> Self {
        let index = worker.table.enter(listener);
        let patience = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX / 2);
        let deadline_ms = worker.clock.now().steady_ms().saturating_add(patience);
        worker.table.set(index, Some(deadline_ms), false);
        worker.counters.tls.in_progress.add(1);
        Self { worker, index, deadline_ms }
    }

    /// Whether the handshake was complete in time, or early data has come.
    async fn shake<T: Transport>(&self, tls: &mut Tls<T>) -> Result<bool, Option<Failure>> {
        let turns = &self.worker.handshake_turns;
        let mut turn = Turn::default();
        poll_fn(|cx| {
            loop {
                let worked = match turn.poll(cx, turns) {
                    Poll::Ready(()) => tls.poll_handshake(cx).map(|worked| (worked, ())),
                    Poll::Pending => return self.or_over(cx),
                };
                match worked {
                    Poll::Ready((Ok(false), ())) => {}
                    Poll::Ready((worked, ())) => return Poll::Ready(worked),
                    Poll::Pending => {
                        turns.give_back();
                        return self.or_over(cx);
                    }
                }
            }
        })
        .await
    }

    fn or_over(&self, cx: &Context<'_>) -> Poll<Result<bool, Option<Failure>>> {
        match self.worker.table.wait(self.index, cx.waker()) {
            true => Poll::Ready(Ok(false)),
            false => Poll::Pending,
        }
    }
}

impl<M: Module> Drop for Entry<'_, M> {
    fn drop(&mut self) {
        self.worker.table.leave(self.index);
        self.worker.counters.tls.in_progress.sub(1);
    }
}
