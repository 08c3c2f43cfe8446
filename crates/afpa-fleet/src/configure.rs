//! The conversation about configurations of the fleet: two buckets of the servers, which are asked once a second.
//!
//! ```text
//! PREFIX-config    key `files`: the files of each revision, sealed; its number is the revision's
//! PREFIX-rollout   key `state`: the record of the roll-out, sealed, and written in the place of the one that was read
//! ```

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, LastRawMessageErrorKind, Stream as Bucket,
};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::configuring::{Asked, Outcome};
use crate::driver::Driver;
use crate::files::{Files, KeptFiles, Revision};
use crate::load::Load;
use crate::machine::Configure;
use crate::members::BEAT;
use crate::message::Refused;
use crate::nats::{Agent, Fault, PAUSE, Way};
use crate::rollout::{Listed, Phase, Rollout, Taker, Unfit};
use crate::seal::Secret;

/// A push waits so long until all machines that are there have been heard.
const HEARD: Duration = Duration::from_secs(5);

/// Revisions that a bucket keeps; NATS allows no more of a key.
const KEPT: i64 = 64;

/// The buckets, while the servers answer.
struct Buckets {
    files: Bucket,
    /// When that of the files was made: a sealed value is opened for its own bucket and number alone.
    made: u64,
    record: Bucket,
    streams: Context,
}

/// The record, as it was read, with its number.
struct Seen {
    number: u64,
    rollout: Option<Rollout>,
}

impl Agent {
    /// Follows the configuration of the fleet, for ever; a machine that takes none does nothing.
    pub(crate) async fn configure_on(&self, streams: &Context) -> Infallible {
        let Some(secret) = self.way.secret.clone().filter(|_| self.way.settings.configuration)
        else {
            return std::future::pending().await;
        };
        let instance = {
            let mut state = self.shared.lock();
            state.beat.takes = true;
            state.beat.instance.clone()
        };
        match self.folder.configuration() {
            Ok(kept) => self.runs(kept.map(|kept| kept.revision)),
            Err(error) => tracing::warn!(%error, "the kept configuration of the fleet is not read"),
        }
        let mut driver = Driver::new(instance);
        loop {
            let Err(error) = self.configure(&mut driver, &secret, streams).await;
            tracing::debug!(%error, "the configuration of the fleet cannot be followed");
            if self.shared.lock().connected {
                self.trouble(&format!("no answer about its configuration: {error}"));
            }
            self.refuse_waiting(&error.to_string());
            sleep(PAUSE).await;
        }
    }

    async fn configure(
        &self,
        driver: &mut Driver,
        secret: &Secret,
        streams: &Context,
    ) -> Result<Infallible, Fault> {
        let files = streams.get_or_create_stream(self.way.bucket("config", KEPT)).await?;
        let record = streams.get_or_create_stream(self.way.bucket("rollout", 1)).await?;
        let made = files.get_info().await?.created.unix_timestamp_nanos();
        let made = u64::try_from(made).unwrap_or(0);
        let buckets = Buckets { files, made, record, streams: streams.clone() };
        let mut look = interval(BEAT);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                () = self.shared.asked.notified() => {}
            }
            let mut seen = buckets.read(&self.way.key("rollout", "state"), secret).await?;
            let waiting = self.shared.lock().configuring.take();
            for (number, asked) in waiting {
                let outcome = self.obey(asked, &mut seen, &buckets, secret).await;
                self.shared.lock().configuring.settle(number, outcome);
            }
            let Seen { number, rollout: Some(rollout) } = &seen else { continue };
            self.shared.lock().configuring.rollout = Some(rollout.clone());
            self.run_wanted(rollout, &buckets, secret).await?;
            let takers = self.takers();
            let next = driver.step((*number, rollout), takers.as_deref(), self.shared.now());
            let Some(next) = next else { continue };
            if self.write_rollout(&next, *number, &buckets, secret).await?
                && next.phase != rollout.phase
            {
                tell(&next);
            }
        }
    }

    /// All that take configurations; `None`: not all of them can have been heard yet.
    fn takers(&self) -> Option<Vec<Taker>> {
        self.shared.next_beat();
        let (now, state) = (self.shared.now(), self.shared.lock());
        state.members.is_settled(now).then(|| Taker::of(&state.members.look(now)))
    }

    /// Carries out an order of this machine.
    async fn obey(
        &self,
        asked: Asked,
        seen: &mut Seen,
        buckets: &Buckets,
        secret: &Secret,
    ) -> Outcome {
        let next = match &asked {
            Asked::Push(files) => self.push(files, seen, buckets, secret).await,
            Asked::RollBack(wanted) => {
                let name = self.shared.lock().beat.name.clone();
                let nothing = Unfit::Nothing;
                let next = seen.rollout.as_ref().ok_or(nothing);
                next.and_then(|now| now.roll_back(*wanted, &name)).map_err(|why| why.to_string())
            }
        };
        let next = match next {
            Ok(next) => next,
            Err(why) => return Outcome::Refused { why },
        };
        let revision = if next.is_over() { next.running() } else { Some(next.target) };
        match self.write_rollout(&next, seen.number, buckets, secret).await {
            Ok(true) => {
                tell(&next);
                // The next look reads its number.
                seen.rollout = None;
                self.shared.asked.notify_one();
                Outcome::Done { revision }
            }
            Ok(false) => {
                let why = "another machine has changed it at the same moment: look at `afpa fleet`, and try again";
                Outcome::Refused { why: why.to_owned() }
            }
            Err(error) => Outcome::Refused { why: format!("the servers of the fleet: {error}") },
        }
    }

    /// Checks files here, and puts them to the bucket. The record says then who is to run them.
    async fn push(
        &self,
        files: &Arc<Files>,
        seen: &Seen,
        buckets: &Buckets,
        secret: &Secret,
    ) -> Result<Rollout, String> {
        let before = seen.rollout.as_ref();
        if let Some(before) = before.filter(|before| !before.is_over()) {
            return Err(Unfit::UnderWay(before.target).to_string());
        }
        self.ask_machine(Configure::Check(Arc::clone(files))).await?;
        let mut takers = self.takers();
        let deadline = self.shared.now() + HEARD;
        while takers.is_none() && self.shared.now() < deadline {
            sleep(PAUSE).await;
            takers = self.takers();
        }
        let takers = takers.ok_or("the other machines cannot be heard: try again")?;
        let put = self.put(files, buckets, secret).await;
        let revision = put.map_err(|error| format!("the servers of the fleet: {error}"))?;
        let (name, instance) = {
            let beat = &self.shared.lock().beat;
            (beat.name.clone(), beat.instance.clone())
        };
        let pushed = Listed {
            revision,
            by: name,
            at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            files: files.files.iter().map(|file| file.name.clone()).collect(),
            bytes: files.bytes() as u64,
        };
        let driver = (instance.as_str(), self.way.settings.bounds);
        Rollout::begin(before, pushed, driver, &takers).map_err(|why| why.to_string())
    }

    /// The next revision. Its number is known before, so that it is sealed for that.
    async fn put(&self, files: &Files, buckets: &Buckets, secret: &Secret) -> Result<u64, Fault> {
        let last = buckets.files.get_info().await?.state.last_sequence;
        let number = last.saturating_add(1);
        let sealed = secret.seal(&buckets.files_context(number), &files.encode());
        let message = PublishMessage::build().payload(sealed.into()).expected_last_sequence(last);
        let subject = self.way.key("config", "files");
        let ack = buckets.streams.send_publish(subject, message).await?.await?;
        Ok(ack.sequence)
    }

    /// Writes the record in the place of the one with a number. Whether nobody else has changed it.
    async fn write_rollout(
        &self,
        rollout: &Rollout,
        number: u64,
        buckets: &Buckets,
        secret: &Secret,
    ) -> Result<bool, Fault> {
        let context = buckets.record_context(number.saturating_add(1));
        let sealed = secret.seal(&context, &serde_json::to_vec(rollout)?);
        let message = PublishMessage::build().payload(sealed.into()).expected_last_sequence(number);
        let subject = self.way.key("rollout", "state");
        let sent = buckets.streams.send_publish(subject, message).await?;
        match sent.await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs the revision that the record has for this machine.
    async fn run_wanted(
        &self,
        rollout: &Rollout,
        buckets: &Buckets,
        secret: &Secret,
    ) -> Result<(), Fault> {
        let (name, runs, refused) = {
            let state = self.shared.lock();
            let refused = state.beat.refused.as_ref().map(|refused| refused.revision);
            (state.beat.name.clone(), state.configuring.runs, refused)
        };
        let wanted = rollout.wanted(&name);
        let revision = wanted.map(|number| Revision { bucket: buckets.made, number });
        if revision == runs || refused == Some(wanted.unwrap_or_default()) {
            return Ok(());
        }
        let kept = match revision {
            None => None,
            Some(revision) => match buckets.files(revision, secret).await? {
                Some(files) => Some(Arc::new(KeptFiles { revision, files })),
                None => {
                    self.refuse(revision.number, "it is sealed by another secret");
                    return Ok(());
                }
            },
        };
        match self.ask_machine(Configure::Take(kept)).await {
            Ok(()) => {
                let said = wanted.map_or("none".to_owned(), |number| number.to_string());
                tracing::info!("the configuration of the fleet is taken: revision {said}");
                self.runs(revision);
                self.shared.lock().configuring.takes += 1;
            }
            Err(why) => self.refuse(wanted.unwrap_or_default(), &why),
        }
        self.shared.moved.notify_one();
        Ok(())
    }

    fn refuse(&self, revision: u64, why: &str) {
        let refused = Refused::new(revision, why);
        tracing::error!("revision {revision} of the fleet cannot be taken: {}", refused.why);
        self.shared.lock().beat.refused = Some(refused);
    }

    /// From now on this machine runs a revision, and its answers count anew.
    fn runs(&self, revision: Option<Revision>) {
        let (now, readings) = (self.shared.now(), self.machine.readings());
        let mut state = self.shared.lock();
        state.window.begin(now, readings);
        state.configuring.runs = revision;
        state.beat.load = Load::default();
        state.beat.revision = revision.map(|revision| revision.number);
        state.beat.refused = None;
    }

    async fn ask_machine(&self, what: Configure) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        self.machine.configure(what, answer);
        answered.await.unwrap_or_else(|_| Err("this process ends".to_owned()))
    }

    fn refuse_waiting(&self, why: &str) {
        let mut state = self.shared.lock();
        for (number, _) in state.configuring.take() {
            let why = format!("the servers of the fleet do not answer: {why}");
            state.configuring.settle(number, Outcome::Refused { why });
        }
    }
}

impl Buckets {
    /// The purpose for which a revision is sealed: nobody can put it to another place.
    fn files_context(&self, number: u64) -> String {
        format!("configuration {} {number}", self.made)
    }

    /// Likewise, the record.
    fn record_context(&self, number: u64) -> String {
        format!("rollout {} {number}", self.made)
    }

    async fn read(&self, key: &str, secret: &Secret) -> Result<Seen, Fault> {
        let message = match self.record.get_last_raw_message_by_subject(key).await {
            Ok(message) => message,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                let number = self.record.get_info().await?.state.last_sequence;
                return Ok(Seen { number, rollout: None });
            }
            Err(error) => return Err(error.into()),
        };
        let opened = secret.open(&self.record_context(message.sequence), &message.payload);
        let opened = opened.ok_or("it is sealed by another `secret` than this machine has")?;
        Ok(Seen { number: message.sequence, rollout: Some(serde_json::from_slice(&opened)?) })
    }

    /// The files of a revision; `None`: they are sealed otherwise.
    async fn files(&self, revision: Revision, secret: &Secret) -> Result<Option<Files>, Fault> {
        let message = self.files.get_raw_message(revision.number).await?;
        let opened = secret.open(&self.files_context(revision.number), &message.payload);
        Ok(opened.and_then(|opened| Files::decode(&opened).ok()))
    }
}

impl Way {
    /// A bucket as the tools of NATS make it. One that is there stays as somebody has made it.
    pub(super) fn bucket(&self, what: &str, history: i64) -> Config {
        let name = format!("{}-{what}", self.settings.prefix);
        Config {
            subjects: vec![format!("$KV.{name}.>")],
            name: format!("KV_{name}"),
            max_messages_per_subject: history,
            discard: DiscardPolicy::New,
            deny_delete: true,
            allow_rollup: true,
            allow_direct: true,
            num_replicas: self.settings.replicas(),
            ..Config::default()
        }
    }

    fn key(&self, bucket: &str, key: &str) -> String {
        format!("$KV.{}-{bucket}.{key}", self.settings.prefix)
    }
}

/// One line in the log of whoever has changed it.
fn tell(rollout: &Rollout) {
    let (target, stage) = (rollout.target, rollout.stage);
    match &rollout.phase {
        Phase::Taking => {
            tracing::info!("revision {target} of the fleet: {}", rollout.chosen.join(", "));
        }
        Phase::Watching => tracing::info!(?stage, "revision {target} of the fleet is watched"),
        Phase::Done => tracing::info!("revision {target} of the fleet is for all machines"),
        Phase::Back { why } => {
            tracing::error!("revision {target} of the fleet is rolled back: {why}");
        }
    }
}
