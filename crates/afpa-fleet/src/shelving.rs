//! The bucket of records: a consumer has the last one of each subject, and then each that is written.

use std::convert::Infallible;
use std::sync::Arc;

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream as Bucket};
use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::follower::Position;
use crate::members::BEAT;
use crate::nats::{Agent, Fault, PAUSE, STUCK, Way, found};
use crate::records::{Ask, HeldRecord, refuse};
use crate::send::is_overtaken;
use crate::shelf::{Changed, Shelf, ShelfWrite};

/// The fate of a write.
enum Written {
    At(Position),
    /// Another machine was first.
    Refused,
}

impl Agent {
    /// Reads the records of the fleet, and writes the ones that this process holds. It does not return.
    pub(crate) async fn keep_records(&self, streams: &Context) -> Infallible {
        let secret = self.way.secret.clone().filter(|_| self.way.settings.certificates);
        let (Some(secret), mut asks) = (secret, self.asks.lock().await) else {
            return std::future::pending().await;
        };
        {
            let mut state = self.shared.lock();
            let own = state.beat.instance.clone();
            state.shelf = Some(Shelf::new(own, secret));
        }
        loop {
            let Err(error) = self.follow_records(&mut asks, streams).await;
            let why = error.to_string();
            self.with_shelf(Shelf::end);
            if self.shared.lock().connected {
                self.tell_of_records(Some(why.clone()));
            }
            let left = refuse(&mut asks, &format!("the servers of the fleet: {why}"));
            let now = self.shared.now();
            self.with_shelf(|shelf| left.iter().for_each(|key| drop(shelf.leave(key, now))));
            sleep(PAUSE).await;
        }
    }

    async fn follow_records(
        &self,
        asks: &mut mpsc::UnboundedReceiver<Ask>,
        streams: &Context,
    ) -> Result<Infallible, Fault> {
        let bucket = self.stream(streams, self.way.bucket("certificates", 1)).await?;
        let info = bucket.get_info().await?;
        let log = found(&info).log;
        self.with_shelf(|shelf| shelf.begin(log));
        let consumer = pull::OrderedConfig {
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: self.way.record(">"),
            ..pull::OrderedConfig::default()
        };
        let mut messages = bucket.create_consumer(consumer).await?.messages().await?;
        let mut place = Position { log, sequence: 0 };
        if info.state.messages == 0 {
            place.sequence = info.state.last_sequence;
            self.have_read(place);
        }
        let mut look = interval(BEAT);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut behind = (place.sequence, 0);
        loop {
            tokio::select! {
                message = messages.next() => {
                    let message = message.ok_or("the consumer has ended")??;
                    let about = message.info()?;
                    let (sequence, is_last) = (about.stream_sequence, about.pending == 0);
                    self.shelve(&message.subject, (sequence, &message.payload));
                    place.sequence = sequence;
                    if is_last {
                        // The last ones may have been deleted.
                        place.sequence = sequence.max(info.state.last_sequence);
                    }
                    if is_last || self.with_shelf(|shelf| shelf.is_read()) {
                        self.have_read(place);
                    }
                }
                _ = look.tick() => {
                    let now = found(&bucket.get_info().await?);
                    if now.log != log {
                        return Err("the bucket was made anew".into());
                    }
                    behind = match place.sequence {
                        next if next >= now.last || next != behind.0 => (next, 0),
                        next => (next, behind.1 + 1),
                    };
                    if behind.1 >= STUCK {
                        return Err("the consumer gets nothing".into());
                    }
                    let now = self.shared.now();
                    for write in self.with_shelf(|shelf| shelf.renew(now)) {
                        self.write_record(write, (log, &bucket), streams).await?;
                    }
                }
                ask = asks.recv() => {
                    let ask = ask.ok_or("nobody asks any more")?;
                    self.answer(ask, (log, &bucket), streams).await?;
                }
            }
        }
    }

    /// The part of the subject behind the last dot is the record's.
    fn shelve(&self, subject: &str, (revision, bytes): (u64, &[u8])) {
        let subject = subject.rsplit('.').next().unwrap_or_default();
        let now = self.shared.now();
        let read = |shelf: &mut Shelf| Some(shelf.read(subject, (revision, bytes), now));
        match self.with_shelf(read) {
            Some(Ok(changed)) => self.note(changed),
            Some(Err(sealed)) => self.tell_of_records(Some(sealed.to_string())),
            None => {}
        }
    }

    fn note(&self, changed: Option<Changed>) {
        let Some(Changed { key, value }) = changed else { return };
        self.machine.take_record(&key, value.as_deref());
        self.shared.desk.changed.notify_one();
    }

    /// Everything up to a place has been read and is in use.
    fn have_read(&self, place: Position) {
        let now = self.shared.now();
        let was_read = self.with_shelf(|shelf| {
            let was_read = shelf.is_read();
            shelf.complete(now);
            was_read
        });
        if !was_read {
            self.tell_of_records(None);
            self.shared.desk.changed.notify_one();
        }
        self.shared.lock().beat.certificates = Some(place);
        self.shared.moved.notify_one();
    }

    async fn answer(&self, ask: Ask, at: (u64, &Bucket), streams: &Context) -> Result<(), Fault> {
        let now = self.shared.now();
        match ask {
            Ask::Take(key, answer) => {
                if !self.shared.lock().reads_records(now) {
                    drop(answer.send(Err("not all machines have been heard yet".to_owned())));
                    return Ok(());
                }
                let outcome = match self.with_shelf(|shelf| shelf.take(&key, now)) {
                    Some(write) => self.write_record(write, at, streams).await,
                    None => Ok(Written::Refused),
                };
                let taken = outcome.as_ref().map(|fate| {
                    let is_taken = matches!(fate, Written::At(_));
                    is_taken.then(|| HeldRecord::new(Arc::clone(&self.shared), key))
                });
                // If the caller has gone, the record is dropped here, which gives it back.
                drop(answer.send(taken.map_err(ToString::to_string)));
                outcome.map(|_| ())
            }
            Ask::Put(key, value, is_held, answer) => {
                let lost = || "another machine may have the record".to_owned();
                let write = self.with_shelf(|shelf| shelf.put(&key, value, is_held, now));
                let Some(write) = write else {
                    drop(answer.send(Err(lost())));
                    return Ok(());
                };
                let outcome = self.write_record(write, at, streams).await;
                drop(answer.send(match &outcome {
                    Ok(Written::At(place)) => Ok(*place),
                    Ok(Written::Refused) => Err(lost()),
                    Err(error) => Err(error.to_string()),
                }));
                outcome.map(|_| ())
            }
            Ask::Leave(key) => match self.with_shelf(|shelf| shelf.leave(&key, now)) {
                Some(write) => self.write_record(write, at, streams).await.map(|_| ()),
                None => Ok(()),
            },
        }
    }

    async fn write_record(
        &self,
        write: ShelfWrite,
        (log, bucket): (u64, &Bucket),
        streams: &Context,
    ) -> Result<Written, Fault> {
        let subject = self.way.record(&write.subject);
        let message = PublishMessage::build()
            .payload(write.bytes.clone().into())
            .expected_last_subject_sequence(write.revision);
        let sent = async { streams.send_publish(subject.clone(), message).await?.await };
        match sent.await {
            Ok(taken) => {
                let now = self.shared.now();
                let changed = self.with_shelf(|shelf| shelf.wrote(write, taken.sequence, now));
                self.note(changed);
                Ok(Written::At(Position { log, sequence: taken.sequence }))
            }
            Err(error) => {
                self.with_shelf(|shelf| shelf.lost(&write.subject));
                self.read_anew(&subject, bucket).await?;
                if is_overtaken(&error) { Ok(Written::Refused) } else { Err(error.into()) }
            }
        }
    }

    /// The leader of the bucket is asked, so its answer is not older than the question.
    async fn read_anew(&self, subject: &str, bucket: &Bucket) -> Result<(), Fault> {
        match bucket.get_last_raw_message_by_subject(subject).await {
            Ok(found) => self.shelve(subject, (found.sequence, &found.payload)),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                let subject = subject.rsplit('.').next().unwrap_or_default();
                let now = self.shared.now();
                self.with_shelf(|shelf| shelf.absent(subject, now));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn with_shelf<T: Default>(&self, act: impl FnOnce(&mut Shelf) -> T) -> T {
        self.shared.lock().shelf.as_mut().map(act).unwrap_or_default()
    }

    /// Logs a trouble once, until it is over.
    fn tell_of_records(&self, why: Option<String>) {
        let mut state = self.shared.lock();
        if let Some(why) = why.as_ref().filter(|_| state.record_trouble.is_none()) {
            tracing::warn!("no certificates from the fleet, and those that are here stay: {why}");
        }
        state.record_trouble = why;
    }
}

impl Way {
    /// The subject of a record.
    fn record(&self, subject: &str) -> String {
        format!("$KV.{}-certificates.{subject}", self.settings.prefix)
    }
}
