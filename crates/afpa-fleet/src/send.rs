//! Orders on their way to their logs, each log by itself, and the file in which they wait.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::error::Error as _;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, Context, ErrorCode};
use futures_util::future::join_all;
use tokio::time::sleep;

use crate::follower::{Log, Position};
use crate::message::Envelope;
use crate::nats::{Agent, PAUSE};
use crate::orders::{BATCH, Fate, Queued};

/// Rounds in a row without success before the log of AFPA says so.
const HELD: u32 = 5;

/// Orders wait for the next round.
struct Held {
    /// The servers' reason; `None`: they are not reached, or the log is to be read first.
    why: Option<String>,
}

impl Agent {
    /// Hands the orders for a log to it, for ever.
    pub(crate) async fn send(&self, log: Log, streams: &Context) -> Infallible {
        let mut rounds = 0_u32;
        loop {
            let mut batch = self.shared.lock().orders.first(log, BATCH);
            if batch.iter().any(Queued::waits_for_log) {
                batch = self.read_back(log).await;
            }
            if batch.is_empty() {
                if self.shared.lock().orders.count() == 0 {
                    self.keep_queue();
                }
                self.shared.ordered[log.index()].notified().await;
                continue;
            }
            let Err(Held { why }) = self.publish(log, &batch, streams).await else {
                rounds = 0;
                self.shared.lock().held[log.index()] = None;
                continue;
            };
            self.keep_queue();
            if let Some(why) = why {
                rounds = rounds.saturating_add(1);
                if rounds == HELD {
                    tracing::warn!(
                        "orders of the fleet wait, as its servers do not take them: {why}"
                    );
                }
                self.shared.lock().held[log.index()] = Some(why);
            }
            sleep(PAUSE).await;
        }
    }

    /// Waits until this machine has read what the log has now, and returns the orders that are to be sent. An order may be there
    /// though nobody has said so, and if it were sent again it would undo what another machine has ordered since.
    async fn read_back(&self, log: Log) -> Vec<Queued> {
        let since = self.shared.now();
        while !self.shared.has_read(log, since) {
            self.keep_queue();
            sleep(PAUSE).await;
        }
        let mut state = self.shared.lock();
        state.orders.settle_overtaken();
        state.orders.first(log, BATCH)
    }

    /// Returns when each of them is settled, or has to wait.
    async fn publish(&self, log: Log, batch: &[Queued], streams: &Context) -> Result<(), Held> {
        let (by, place) = {
            let state = self.shared.lock();
            let place = state.beat.position(log).filter(|_| state.connected);
            (state.beat.name.clone(), place)
        };
        let Some(Position { log: made, sequence }) = place else { return Err(Held { why: None }) };
        let new = self.attempt(log, batch, Position { log: made, sequence });
        let mut under_way = Vec::new();
        for queued in batch {
            let Queued { id, order, .. } = queued;
            let subject = format!("{}.{}", self.way.log_subject(log), order.subject());
            // A purge may come twice, and a ban is read back. It has no id that servers compare: replicas do so by their own
            // clocks, and one that is behind at the end of the time for which they do may leave a message out that others have.
            let own = (log == Log::Bans).then(|| id.clone());
            let payload = Envelope { by: by.clone(), id: own, order: order.clone() }.encode();
            let replaced = match log {
                Log::Purges => None,
                Log::Bans => self.shared.lock().orders.replaces(queued, made),
            };
            let message = PublishMessage::build().payload(payload.into());
            let message = match replaced {
                Some(last) => message.expected_last_subject_sequence(last),
                None => message,
            };
            let sent = streams.send_publish(subject.clone(), message).await;
            under_way.push(async move {
                let outcome = match sent {
                    Ok(answer) => answer.await,
                    Err(error) => Err(error),
                };
                (id, subject, replaced, outcome)
            });
        }
        let (mut held, mut refused) = (Ok(()), None);
        for (id, subject, replaced, outcome) in join_all(under_way).await {
            let mut state = self.shared.lock();
            let fate = match outcome {
                Ok(ack) => Fate::Logged(Position { log: made, sequence: ack.sequence }),
                Err(error) if is_overtaken(&error) => {
                    state.orders.was_behind(id, replaced, new.contains(id));
                    held = held.and(Err(Held { why: None }));
                    continue;
                }
                Err(error) => {
                    let why = match state.was_forbidden(&subject) {
                        true => Some(format!("no right to publish to {subject}")),
                        false => refusal(&error),
                    };
                    let Some(why) = why else {
                        if new.contains(id) && is_known(&error) {
                            state.orders.not_sent(id);
                        }
                        held = Err(Held { why: Some(error.to_string()) });
                        continue;
                    };
                    refused = Some(why.clone());
                    Fate::Refused { why }
                }
            };
            state.orders.settle(id, fate);
        }
        if let Some(why) = refused {
            tracing::warn!(
                "the servers of the fleet refuse an order, which is done here alone: {why}"
            );
        }
        held
    }

    /// The orders to deny that are sent for the first time now. The queue on disk says so before, where it has them.
    fn attempt(&self, log: Log, batch: &[Queued], place: Position) -> BTreeSet<String> {
        if log == Log::Purges {
            return BTreeSet::new();
        }
        let mut state = self.shared.lock();
        let ids = batch.iter().map(|queued| &queued.id);
        let new = ids.filter(|id| state.orders.attempt(id, place)).cloned().collect();
        let is_on_disk = state.kept.is_some();
        drop(state);
        if is_on_disk {
            self.keep_queue();
        }
        new
    }

    /// The queue on disk is as the one here. After the next process has taken over it is a file that this process holds
    /// locked for as long as it may still send.
    pub(crate) fn keep_queue(&self) {
        let mut state = self.shared.lock();
        let changes = state.orders.changes();
        let is_as_kept = match state.kept {
            Some(kept) => kept == changes,
            None => state.orders.count() == 0,
        };
        if is_as_kept {
            return;
        }
        let queue: Vec<_> = state.orders.waiting().cloned().collect();
        let (is_handed_over, own) = (state.is_handed_over, state.left.take());
        let instance = state.beat.instance.clone();
        drop(state);
        let kept = if is_handed_over {
            let own = own.map_or_else(|| self.folder.leave_queue(&instance), Ok);
            own.and_then(|own| own.keep(&queue).map(|()| Some(own)))
        } else {
            self.folder.keep_queue(&queue).map(|()| None)
        };
        match kept {
            Ok(own) => {
                let mut state = self.shared.lock();
                state.left = own;
                state.kept = (!queue.is_empty()).then_some(changes);
            }
            Err(error) => {
                tracing::error!(%error, "orders that wait for the fleet are lost if AFPA ends: is [fleet] state writable?");
            }
        }
    }

    /// Takes in the orders of processes before, when these have ended.
    pub(crate) fn take_in_left(&self) {
        if self.shared.lock().is_handed_over {
            return;
        }
        for (path, left) in self.folder.left_queues() {
            if self.shared.lock().orders.take_in(left) {
                self.keep_queue();
                self.folder.forget(&path);
            }
            self.shared.ordered.iter().for_each(tokio::sync::Notify::notify_one);
        }
    }
}

/// Whether the servers have not taken a write because there is another one that it does not know. Servers from 2.12 on have a code
/// of its own for one that is under way.
pub(crate) fn is_overtaken(error: &PublishError) -> bool {
    let said = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
    let code = said.map(jetstream::Error::error_code);
    error.kind() == PublishErrorKind::WrongLastSequence
        || code == Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)
}

/// The reason for which the servers will never take a message; `None`: they may.
fn refusal(error: &PublishError) -> Option<String> {
    if error.kind() == PublishErrorKind::MaxPayloadExceeded {
        return Some(error.to_string());
    }
    let said = error.source()?.downcast_ref::<jetstream::Error>()?;
    stays(said.code()).then(|| said.to_string())
}

/// Whether a message that failed is in no log for certain: nobody has got it, or the servers have said that they do not take it.
fn is_known(error: &PublishError) -> bool {
    let said = error.source().is_some_and(|source| source.is::<jetstream::Error>());
    said || error.kind() == PublishErrorKind::StreamNotFound
}

/// Whether the same message gets the same code again: the others are those of servers that are busy, full or without a leader.
fn stays(code: usize) -> bool {
    matches!(code, 400..=499) && !matches!(code, 408 | 409 | 429)
}

/// The subject of a message that its sender had no right to.
pub(crate) fn forbidden(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Permissions Violation for Publish to \"")?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> jetstream::Error {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_write_that_another_one_has_overtaken_is_known_by_both_codes() {
        use PublishErrorKind::{Other, TimedOut, WrongLastSequence};
        let said = |kind, text| is_overtaken(&PublishError::with_source(kind, error(text)));
        assert!(said(WrongLastSequence, r#"{"code":400,"err_code":10071}"#));
        assert!(said(Other, r#"{"code":400,"err_code":10164}"#));
        assert!(!said(Other, r#"{"code":400,"err_code":10054}"#));
        assert!(!is_overtaken(&PublishError::new(TimedOut)));
    }

    #[test]
    fn what_stays_is_refused_and_what_passes_waits() {
        let refused =
            |text| refusal(&PublishError::with_source(PublishErrorKind::Other, error(text)));
        let long =
            r#"{"code":400,"err_code":10054,"description":"message size exceeds maximum allowed"}"#;
        assert!(refused(long).is_some_and(|why| why.contains("exceeds maximum")));
        for passes in [r#"{"code":503,"err_code":10077}"#, r#"{"code":500,"err_code":10051}"#] {
            assert_eq!(refused(passes), None, "{passes}");
        }
        assert_eq!(refusal(&PublishError::new(PublishErrorKind::TimedOut)), None);
        assert_eq!(refusal(&PublishError::new(PublishErrorKind::StreamNotFound)), None);
        assert!(refusal(&PublishError::new(PublishErrorKind::MaxPayloadExceeded)).is_some());
        assert!(is_known(&PublishError::with_source(PublishErrorKind::Other, error(long))));
        assert!(is_known(&PublishError::new(PublishErrorKind::StreamNotFound)));
        assert!(!is_known(&PublishError::new(PublishErrorKind::TimedOut)));
        let text = "nats: Permissions Violation for Publish to \"afpa.bans.::1\"";
        assert_eq!(forbidden(text), Some("afpa.bans.::1"));
        assert_eq!(forbidden("nats: Permissions Violation for Subscription to \"a\""), None);
    }
}
