//! The record of shared keys at the servers, a value in a bucket of JetStream: read once a second, and written by the machine
//! that holds the lease.

use std::convert::Infallible;
use std::time::{SystemTime, UNIX_EPOCH};

use async_nats::jetstream::Context;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use aws_lc_rs::rand;
use tokio::time::sleep;

use crate::keyring::{Keyring, SEED, Seed, Seeds, Write};
use crate::members::BEAT;
use crate::nats::{Agent, Fault, PAUSE, Way};
use crate::send::is_overtaken;

impl Agent {
    /// Uses the keys of the fleet, and makes the next ones while this machine holds the lease, for ever.
    pub(crate) async fn keep_keys(&self, streams: &Context) -> Infallible {
        let Some(secret) = self.way.secret.clone() else { return std::future::pending().await };
        let seeds = self.folder.seeds().and_then(|sealed| Seeds::open(&secret, &sealed));
        let own = self.shared.lock().beat.instance.clone();
        let mut ring = Keyring::new(own, secret, seeds, self.shared.now());
        self.use_keys(&ring);
        loop {
            let Err(error) = self.follow_keys(&mut ring, streams).await;
            ring.lost();
            if self.shared.lock().connected {
                self.tell_of_keys(Some(error.to_string()));
            }
            sleep(PAUSE).await;
        }
    }

    async fn follow_keys(
        &self,
        ring: &mut Keyring,
        streams: &Context,
    ) -> Result<Infallible, Fault> {
        let bucket = self.stream(streams, self.way.bucket("keys", 1)).await?;
        loop {
            let found = self.record(&bucket).await?;
            let now = self.shared.now();
            let found = found.as_ref().map(|(revision, bytes)| (*revision, &**bytes));
            match ring.read(found, now) {
                Ok(is_new) => {
                    self.tell_of_keys(None);
                    self.keep(ring, is_new);
                }
                Err(foreign) => self.tell_of_keys(Some(foreign.to_string())),
            }
            let (now, period) = (self.shared.now(), self.way.settings.key_period);
            if let Some(write) = ring.attempt((now, unix()), period, random) {
                self.write_keys(ring, write, streams).await?;
            }
            sleep(BEAT).await;
        }
    }

    /// The leader of the bucket is asked, so its answer is not older than the question.
    async fn record(&self, bucket: &Stream) -> Result<Option<(u64, Vec<u8>)>, Fault> {
        match bucket.get_last_raw_message_by_subject(&self.way.keys()).await {
            Ok(found) => Ok(Some((found.sequence, found.payload.to_vec()))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn write_keys(
        &self,
        ring: &mut Keyring,
        write: Write,
        streams: &Context,
    ) -> Result<(), Fault> {
        let message = PublishMessage::build()
            .payload(write.bytes.clone().into())
            .expected_last_subject_sequence(write.revision);
        let sent = async { streams.send_publish(self.way.keys(), message).await?.await };
        match sent.await {
            Ok(taken) => {
                let is_new = ring.wrote(write, taken.sequence, self.shared.now());
                self.keep(ring, is_new);
                Ok(())
            }
            Err(error) if is_overtaken(&error) => {
                ring.lost();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn keep(&self, ring: &Keyring, is_new: bool) {
        self.shared.lock().beat.turns_keys = ring.holds(self.shared.now());
        if !is_new {
            return;
        }
        self.use_keys(ring);
        let Some(sealed) = ring.sealed() else { return };
        if let Err(error) = self.folder.keep_seeds(&sealed) {
            tracing::error!(%error, "shared keys are lost if AFPA ends while no server is reached: is [fleet] state writable?");
        }
    }

    fn use_keys(&self, ring: &Keyring) {
        let Some(seeds) = ring.seeds() else { return };
        self.machine.take_seeds(seeds);
        self.shared.lock().beat.keys = Some(seeds.turn);
        tracing::info!("shared keys of turn {} are in use", seeds.turn);
        self.shared.moved.notify_one();
    }

    /// One line for each trouble.
    fn tell_of_keys(&self, why: Option<String>) {
        let mut state = self.shared.lock();
        if let Some(why) = why.as_ref().filter(|_| state.key_trouble.is_none()) {
            tracing::warn!("no shared keys from the fleet, and the last ones stay: {why}");
        }
        state.key_trouble = why;
    }
}

impl Way {
    /// The subject of the record.
    fn keys(&self) -> String {
        format!("$KV.{}-keys.seeds", self.settings.prefix)
    }
}

fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn random() -> Option<Seed> {
    let mut seed = [0; SEED];
    rand::fill(&mut seed).ok()?;
    Some(seed)
}
