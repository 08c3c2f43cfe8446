//! Follows the logs: each order that comes is carried out, and nothing is missed without a flush.

use std::convert::Infallible;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{Context, Message};
use futures_util::StreamExt as _;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::{Agent, Fault, PAUSE, STUCK};
use crate::follower::{Begun, Due, Follower, Found, Log, Position};
use crate::members::BEAT;
use crate::message::{Envelope, Order};

/// Orders to deny that are carried out together. A machine that has just come gets all that there are, and each change of its rules
/// costs it a look at all of them: one by one, tens of thousands would keep it busy for hours.
const TOGETHER: usize = 4096;

/// An order to deny that has come; or the subject of one that cannot be read.
type Denial = (Due, Result<Envelope, String>);

/// Looks at a log in a row that show less than has come before this machine believes it. A server that has just become the
/// leader of a log may be behind for a moment.
const BEHIND: u32 = 3;

impl Agent {
    /// Follows a log for ever.
    pub(super) async fn follow_on(
        &self,
        kind: Log,
        kept: Option<Position>,
        streams: &Context,
    ) -> Infallible {
        let mut place = kept;
        loop {
            let Err(error) = self.follow(kind, &mut place, streams).await;
            tracing::debug!(%error, ?kind, "a log of the fleet cannot be followed");
            if self.shared.lock().connected {
                self.trouble(&format!("no answer about {}: {error}", self.way.stream(kind)));
            }
            sleep(PAUSE).await;
        }
    }

    async fn follow(
        &self,
        kind: Log,
        place: &mut Option<Position>,
        streams: &Context,
    ) -> Result<Infallible, Fault> {
        let stream = self.stream(streams, self.way.log(kind)).await?;
        let found = self.find(kind, *place, &stream).await?;
        let mut follower = match Follower::begin(kind, *place, found) {
            Begun::Follows(follower) => follower,
            Begun::Missed(unflushed) => {
                self.flush("earlier orders are not known");
                unflushed.flushed()
            }
        };
        if kind == Log::Purges {
            // Before it claims a place: purges that were done here before may be among those that come now.
            self.shared.begin(Position { log: found.log, sequence: found.last });
        }
        self.arrive(kind, &follower, place);
        self.shared.word(kind, found.last);
        let start_sequence = follower.next();
        let consumer = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence },
            ..pull::OrderedConfig::default()
        };
        let mut messages = stream.create_consumer(consumer).await?.messages().await?;
        self.well(kind, &follower);
        let mut look = interval(BEAT);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut behind, mut ahead) = ((follower.next(), 0), 0);
        let mut denials = Vec::new();
        loop {
            tokio::select! {
                message = messages.next() => {
                    let message = message.ok_or("the consumer has ended")??;
                    match kind {
                        Log::Purges => self.deliver(&mut follower, &message)?,
                        Log::Bans => self.gather(&mut follower, &mut denials, &message)?,
                    }
                    self.advance(kind, (&follower, ahead), place);
                }
                _ = look.tick() => {
                    let now = self::found(&stream.get_info().await?);
                    if now.log != found.log {
                        return Err("the log was made anew".into());
                    }
                    self.shared.word(kind, now.last);
                    // They have waited long enough, on a slow way to the servers; and the place moves with those that come.
                    if !denials.is_empty() {
                        self.deny(&mut follower, &mut denials);
                        self.advance(kind, (&follower, ahead), place);
                    }
                    let was_ahead = ahead > 0;
                    ahead = if follower.position().sequence > now.last { ahead + 1 } else { 0 };
                    match ahead {
                        0 if was_ahead => self.arrive(kind, &follower, place),
                        0 => {}
                        BEHIND.. => return Err("its servers do not agree on it".into()),
                        _ => self.shared.doubt(kind),
                    }
                    behind = match follower.next() {
                        next if next > now.last || next != behind.0 => (next, 0),
                        next => (next, behind.1 + 1),
                    };
                    if behind.1 >= STUCK {
                        return Err("the consumer gets nothing".into());
                    }
                }
            }
        }
    }

    /// The log as its leader has it. While that has less than this machine has done, the machine claims no place: a number may
    /// be given to another order.
    async fn find(
        &self,
        kind: Log,
        place: Option<Position>,
        stream: &Stream,
    ) -> Result<Found, Fault> {
        let mut looks = 1;
        loop {
            let found = found(&stream.get_info().await?);
            let is_behind = |place: Position| place.log == found.log && place.sequence > found.last;
            if looks >= BEHIND || !place.is_some_and(is_behind) {
                return Ok(found);
            }
            self.shared.doubt(kind);
            looks += 1;
            sleep(BEAT).await;
        }
    }

    /// The place has moved. While the servers have less than this machine has done, it claims none.
    fn advance(
        &self,
        kind: Log,
        (follower, ahead): (&Follower, u32),
        place: &mut Option<Position>,
    ) {
        *place = Some(follower.position());
        if ahead == 0 {
            self.arrive(kind, follower, place);
        }
    }

    fn arrive(&self, kind: Log, follower: &Follower, place: &mut Option<Position>) {
        *place = Some(follower.position());
        self.shared.move_to(kind, follower.position());
    }

    fn deliver(&self, follower: &mut Follower, message: &Message) -> Result<(), Fault> {
        let Some(due) = follower.deliver(message.info()?.stream_sequence) else { return Ok(()) };
        if due.is_after_gap {
            self.flush("orders to purge have expired before they came");
        }
        match Envelope::decode(&message.payload) {
            Ok(Envelope { order, .. }) => self.carry_out(&[order]),
            Err(error) => self.flush(&error.to_string()),
        }
        follower.done(due);
        Ok(())
    }

    /// An order to deny has come. It is carried out with those that come at once behind it, or at the next look.
    fn gather(
        &self,
        follower: &mut Follower,
        denials: &mut Vec<Denial>,
        message: &Message,
    ) -> Result<(), Fault> {
        let about = message.info()?;
        if let Some(due) = follower.deliver(about.stream_sequence) {
            // One that cannot be read is the last one of its subject all the same.
            let envelope = Envelope::decode(&message.payload).map_err(|error| {
                tracing::warn!(%error, "an order of the fleet is ignored");
                message.subject.rsplit('.').next().unwrap_or_default().to_owned()
            });
            denials.push((due, envelope));
        }
        if about.pending == 0 || denials.len() >= TOGETHER {
            self.deny(follower, denials);
        }
        Ok(())
    }

    /// Carries out the orders to deny that have been gathered.
    fn deny(&self, follower: &mut Follower, denials: &mut Vec<Denial>) {
        let orders = denials.iter().filter_map(|(_, envelope)| envelope.as_ref().ok());
        let orders: Vec<Order> = orders.map(|envelope| envelope.order.clone()).collect();
        self.carry_out(&orders);
        for (due, envelope) in denials.drain(..) {
            let at = Position { sequence: due.sequence(), ..follower.position() };
            let orders = &mut self.shared.lock().orders;
            match envelope {
                Ok(Envelope { order, id, .. }) => orders.shown(id, &order, at),
                Err(subject) => orders.shown_strange(subject, at),
            }
            follower.done(due);
        }
    }

    fn carry_out(&self, orders: &[Order]) {
        let failed = self.machine.carry_out_all(orders);
        let counts = &mut self.shared.lock().counts;
        for order in orders {
            match order {
                Order::Purge { .. } => counts.purges += 1,
                Order::Deny { .. } => counts.bans += 1,
            }
        }
        counts.failed += failed as u64;
    }

    fn flush(&self, why: &str) {
        self.machine.flush();
        self.shared.lock().counts.flushes += 1;
        tracing::info!("all kept answers are dropped, because {why}");
    }

    fn well(&self, kind: Log, follower: &Follower) {
        let mut state = self.shared.lock();
        state.trouble = None;
        if kind == Log::Purges {
            let (name, sequence) = (&state.beat.name, follower.position().sequence);
            tracing::info!("{name} follows the fleet from order {sequence} on");
        }
    }
}

pub(crate) fn found(info: &async_nats::jetstream::stream::Info) -> Found {
    let state = &info.state;
    Found {
        log: u64::try_from(info.created.unix_timestamp_nanos()).unwrap_or(0),
        first: state.first_sequence,
        last: state.last_sequence,
    }
}
