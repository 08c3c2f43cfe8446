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
use crate::record::{self, Opened};
use crate::rollout::{Listed, Phase, Rollout, Taker, Unfit};
use crate::seal::Secret;
use crate::send::is_overtaken;

/// A push waits so long until all machines that are there have been heard.
const HEARD: Duration = Duration::from_secs(5);

/// A revision that could not be taken is tried again after this time, where no roll-out waits for it.
const AGAIN: Duration = Duration::from_secs(30);

/// Faults in a row after which orders that wait are refused. Servers that have just come together say nothing for a moment.
const REFUSED_AFTER: u32 = 3;

/// Names of a revision's files in the record: with 32 revisions and a thousand machines it fits into one message.
const MOST_NAMES: usize = 8;

/// Revisions that a bucket keeps; NATS allows no more of a key.
const KEPT: i64 = 64;

/// The buckets, while the servers answer.
struct Buckets {
    files: Bucket,
    record: Bucket,
    /// When both were made: a sealed value is opened for its own bucket and number alone.
    made: u64,
    record_made: u64,
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
        self.note_running();
        let mut driver = Driver::new(instance);
        let mut faults = 0;
        loop {
            let begun = self.shared.now();
            let Err(error) = self.configure(&mut driver, &secret, streams).await;
            let went_well = self.shared.now().saturating_sub(begun) > HEARD;
            faults = if went_well { 1 } else { faults + 1 };
            driver.lost();
            tracing::debug!(%error, "the configuration of the fleet cannot be followed");
            if self.shared.lock().connected {
                self.trouble(&format!("no answer about its configuration: {error}"));
            }
            if faults >= REFUSED_AFTER {
                self.refuse_waiting(&error.to_string());
            }
            sleep(PAUSE).await;
        }
    }

    async fn configure(
        &self,
        driver: &mut Driver,
        secret: &Secret,
        streams: &Context,
    ) -> Result<Infallible, Fault> {
        let files = self.stream(streams, self.way.bucket("config", KEPT)).await?;
        let record = self.stream(streams, self.way.bucket("rollout", 1)).await?;
        let (made, record_made) = (made(&files).await?, made(&record).await?);
        let buckets = Buckets { files, record, made, record_made, streams: streams.clone() };
        let mut look = interval(BEAT);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = look.tick() => {}
                () = self.shared.asked.notified() => {}
            }
            self.note_running();
            let mut seen = buckets.read(&self.way.key("rollout", "state"), secret).await?;
            self.note_newest(&buckets, seen.number)?;
            if seen.rollout.is_none() {
                self.shared.lock().configuring.rollout = None;
            }
            // One order a look: the next one needs the record that this one writes.
            let asked = self.shared.lock().configuring.next();
            if let Some((number, asked)) = asked {
                let outcome = self.obey(asked, &mut seen, &buckets, secret).await;
                self.shared.lock().configuring.settle(number, outcome);
                self.shared.asked.notify_one();
            }
            let Seen { number, rollout: Some(rollout) } = &seen else { continue };
            self.shared.lock().configuring.rollout = Some(rollout.clone());
            self.run_wanted(rollout, &buckets, secret).await?;
            let (takers, asked) = (self.takers(), self.shared.now());
            let next = driver.step((*number, rollout), takers.as_deref(), asked);
            let Some(next) = next else { continue };
            if !self.write_rollout(&next, *number, &buckets, secret).await? {
                driver.lost();
                continue;
            }
            driver.wrote(number.saturating_add(1), asked, self.shared.now());
            if next.phase != rollout.phase {
                tell(&next);
            }
        }
    }

    /// Servers that were restored from a copy have an older record, which is no order.
    fn note_newest(&self, buckets: &Buckets, number: u64) -> Result<(), Fault> {
        let newest = &mut self.shared.lock().configuring.newest;
        if newest.0 == buckets.record_made && number < newest.1 {
            let bucket = format!("{}-rollout", self.way.settings.prefix);
            return Err(format!(
                "they have an older record than before: delete the bucket {bucket}, and push again"
            )
            .into());
        }
        *newest = (buckets.record_made, number);
        Ok(())
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
            files: files.files.iter().map(|file| file.name.clone()).take(MOST_NAMES).collect(),
            bytes: files.bytes() as u64,
        };
        let driver = (instance.as_str(), self.way.settings.bounds);
        let begun = Rollout::begin(before, pushed, driver, &takers);
        let mut rollout = begun.map_err(|why| why.to_string())?;
        if before.is_none() {
            // The servers have lost the record, and not the files.
            let runs = self.shared.lock().configuring.runs;
            let runs = runs.filter(|runs| runs.bucket == buckets.made);
            rollout.base = runs.map(|runs| runs.number);
        }
        Ok(rollout)
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
        let made = [buckets.made, buckets.record_made];
        let sealed = record::seal(secret, made, number.saturating_add(1), rollout)?;
        let message = PublishMessage::build().payload(sealed.into()).expected_last_sequence(number);
        let subject = self.way.key("rollout", "state");
        let sent = buckets.streams.send_publish(subject, message).await?;
        match sent.await {
            Ok(_) => Ok(true),
            Err(error) if is_overtaken(&error) => Ok(false),
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
        let (name, runs, refused, refused_at) = {
            let state = self.shared.lock();
            let refused = state.beat.refused.as_ref().map(|refused| refused.revision);
            let (runs, refused_at) = (state.configuring.runs, state.configuring.refused_at);
            (state.beat.name.clone(), runs, refused, refused_at)
        };
        let wanted = rollout.wanted(&name);
        let revision = wanted.map(|number| Revision { bucket: buckets.made, number });
        let is_of_record = |runs: Revision| {
            let mut listed = rollout.revisions.iter().map(|listed| listed.revision);
            runs.bucket == buckets.made && listed.any(|number| number == runs.number)
        };
        // The servers have lost the record of a revision that runs: that is no order to run none.
        if revision == runs || revision.is_none() && !runs.is_some_and(is_of_record) {
            return Ok(());
        }
        // A roll-out that is under way goes back by a refusal; afterwards its reason may pass.
        let is_refused = refused == Some(wanted.unwrap_or_default());
        let since = self.shared.now().saturating_sub(refused_at);
        if is_refused && !(rollout.is_over() && since >= AGAIN) {
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
            Ok(()) if self.machine.runs() != revision => {
                self.refuse(
                    wanted.unwrap_or_default(),
                    "another one is in force after it was taken",
                );
            }
            Ok(()) => {
                let said = wanted.map_or("none".to_owned(), |number| number.to_string());
                tracing::info!("the configuration of the fleet is taken: revision {said}");
                self.note_running();
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
        let now = self.shared.now();
        let mut state = self.shared.lock();
        state.beat.refused = Some(refused);
        state.configuring.refused_at = now;
    }

    /// Says which revision is in force here. When it has changed, answers count anew, whatever has changed it: an order of the
    /// fleet, or a reload.
    pub(crate) fn note_running(&self) {
        let (now, revision) = (self.shared.now(), self.machine.runs());
        if self.shared.lock().configuring.runs == revision {
            return;
        }
        let readings = self.machine.readings();
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
        while let Some((number, _)) = state.configuring.next() {
            let why = format!("the servers of the fleet do not answer: {why}");
            state.configuring.settle(number, Outcome::Refused { why });
        }
    }
}

/// When a bucket was made, in nanoseconds.
async fn made(bucket: &Bucket) -> Result<u64, Fault> {
    let created = bucket.get_info().await?.created;
    Ok(u64::try_from(created.unix_timestamp_nanos()).unwrap_or(0))
}

impl Buckets {
    /// The purpose for which a revision is sealed: nobody can put it to another place.
    fn files_context(&self, number: u64) -> String {
        format!("configuration {} {number}", self.made)
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
        let number = message.sequence;
        let made = [self.made, self.record_made];
        let rollout = match record::open(secret, made, number, &message.payload)? {
            Opened::Here(rollout) => Some(*rollout),
            // Servers that have forgotten a bucket have its messages again when it is made anew.
            Opened::OfBucketBefore => None,
        };
        Ok(Seen { number, rollout })
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
