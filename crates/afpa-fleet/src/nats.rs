//! The conversation with the servers of NATS: a client library does the protocol, and the cores decide.
//!
//! ```text
//! run ─┬─ follow(Purges)   a consumer of the log; once a second the log itself is asked, for its last number
//!      ├─ follow(Bans)     likewise
//!      ├─ send(Purges)     orders that wait, until the log has each: send.rs
//!      ├─ send(Bans)       likewise
//!      ├─ configure        the configuration of the fleet: configure.rs
//!      ├─ keep_keys        keys that all machines have: keep.rs
//!      ├─ keep_records     records that all machines have, each with a lease: shelving.rs
//!      ├─ listen           heartbeats of the others
//!      └─ beat             our own; and whether there was no word for too long
//! ```
//!
//! A conversation that fails begins anew with the state of the log, so no failure of a connection, a consumer or a server
//! needs a treatment of its own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, pull};
use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{Context, Message};
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use bytes::Bytes;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::folder::FleetFolder;
use crate::follower::{Begun, Due, Follower, Found, Log, Position};
use crate::machine::{Machine, Readings};
use crate::members::BEAT;
use crate::message::{Envelope, Heartbeat, Order};
use crate::records::Ask;
use crate::seal::Secret;
use crate::send::forbidden;
use crate::settings::{Credentials, FleetSettings};
use crate::state::{Shared, unix};

/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// How long the last word to a server may take.
const GOOD_BYE: Duration = Duration::from_millis(500);

/// Messages of the servers that wait for us.
const INBOX: usize = 4096;

/// After a failure.
pub(crate) const PAUSE: Duration = Duration::from_millis(300);

/// The longest time between two attempts to connect.
const RECONNECT: Duration = Duration::from_secs(2);

/// Heartbeats that say that places have moved are gathered for so long.
const GATHER: Duration = Duration::from_millis(5);

/// Orders to deny that are carried out together. A machine that has just come gets all that there are, and each change of its rules
/// costs it a look at all of them: one by one, tens of thousands would keep it busy for hours.
const TOGETHER: usize = 4096;

/// Looks at a log in a row that show more than has come before the consumer is made anew.
pub(crate) const STUCK: u32 = 3;

/// Looks at a log in a row that show less than has come before this machine believes it. A server that has just become the
/// leader of a log may be behind for a moment.
const BEHIND: u32 = 3;

/// A server that says nothing about the logs for so long, though it is connected, may be cut off from the others.
const DEAF: Duration = Duration::from_secs(5);

/// Beats without a server before the log says so.
const UNREACHED: u32 = 3;

/// The time in which servers compare ids of messages. AFPA's messages have none, but it has to be no longer than the retention.
const DUPLICATES: Duration = Duration::from_secs(120);

pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

/// The way to the servers.
pub(crate) struct Way {
    pub(crate) settings: FleetSettings,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) secret: Option<Secret>,
}

/// The thread's own part.
pub(crate) struct Agent {
    pub(crate) shared: Arc<Shared>,
    pub(crate) folder: FleetFolder,
    pub(crate) machine: Arc<dyn Machine>,
    pub(crate) way: Way,
    /// Questions of other threads about records.
    pub(crate) asks: tokio::sync::Mutex<UnboundedReceiver<Ask>>,
}

impl Agent {
    /// Takes part in the fleet until it is to end.
    pub(crate) async fn run(self, kept: Option<Position>) {
        let client = match self.way.connect(&self.shared).await {
            Ok(client) => client,
            Err(error) => {
                self.shared.lock().trouble = Some(error.to_string());
                return tracing::error!(%error, "[fleet] cannot be used");
            }
        };
        let streams =
            ContextBuilder::new().timeout(ANSWER).ack_timeout(ANSWER).build(client.clone());
        tokio::select! {
            never = self.follow_on(Log::Purges, kept, &streams) => match never {},
            never = self.follow_on(Log::Bans, None, &streams) => match never {},
            never = self.send(Log::Purges, &streams) => match never {},
            never = self.send(Log::Bans, &streams) => match never {},
            never = self.configure_on(&streams) => match never {},
            never = self.keep_keys(&streams) => match never {},
            never = self.keep_records(&streams) => match never {},
            never = self.listen(&client) => match never {},
            never = self.beat(&client) => match never {},
            () = self.shared.ends.notified() => {}
        }
        self.keep_queue();
        if !self.shared.lock().connected {
            return;
        }
        let leaves = Heartbeat { leaves: true, ..self.shared.next_beat() };
        let said = async {
            let _ = client.publish(self.way.subject("member"), self.spoken(&leaves)).await;
            let _ = client.flush().await;
        };
        let _ = timeout(GOOD_BYE, said).await;
    }

    /// Follows a log for ever.
    async fn follow_on(&self, kind: Log, kept: Option<Position>, streams: &Context) -> Infallible {
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
                    *place = Some(follower.position());
                    if ahead == 0 {
                        self.arrive(kind, &follower, place);
                    }
                }
                _ = look.tick() => {
                    let now = self::found(&stream.get_info().await?);
                    if now.log != found.log {
                        return Err("the log was made anew".into());
                    }
                    self.shared.word(kind, now.last);
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

    /// An order to deny has come. It is carried out with those that come at once behind it.
    fn gather(
        &self,
        follower: &mut Follower,
        denials: &mut Vec<(Due, Result<Envelope, String>)>,
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
        if about.pending > 0 && denials.len() < TOGETHER {
            return Ok(());
        }
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
        Ok(())
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

    fn spoken(&self, beat: &Heartbeat) -> Bytes {
        beat.encode_by(self.way.secret.as_ref()).into()
    }

    /// Hears the others, for ever.
    async fn listen(&self, client: &Client) -> Infallible {
        loop {
            if let Ok(mut beats) = client.subscribe(self.way.subject("member")).await {
                while let Some(message) = beats.next().await {
                    let heard = Heartbeat::decode_by(&message.payload, self.way.secret.as_ref());
                    let Ok(mut beat) = heard else { continue };
                    beat.ahead = ahead(beat.clock);
                    if beat.peer.is_some() {
                        self.shared.heard_peer(&beat.instance);
                    }
                    if self.shared.lock().members.heard(beat, self.shared.now()) {
                        self.shared.moved.notify_one();
                    }
                    self.shared.desk.heard.notify_waiters();
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Says that we are here, for ever.
    async fn beat(&self, client: &Client) -> Infallible {
        let mut tick = interval(BEAT);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = (Instant::now(), self.machine.readings());
        let mut softened = Duration::ZERO;
        let (mut was_connected, mut unreached, mut deaf_since) = (false, 0, None);
        loop {
            tokio::select! {
                _ = tick.tick() => {
                    let now = (Instant::now(), self.machine.readings());
                    self.note_readings(&before, &now);
                    before = now;
                    self.note_running();
                    self.shared.tick_peers();
                    self.soften(&mut softened);
                    self.take_in_left();
                    self.tell_twins();
                    self.tell_clocks();
                    self.complain(&mut unreached).await;
                    self.go_elsewhere(&mut deaf_since, client).await;
                }
                () = self.shared.moved.notified() => sleep(GATHER).await,
            }
            let is_connected = self.shared.lock().connected;
            if is_connected {
                let asks = !was_connected;
                let beat = Heartbeat { asks, ..self.shared.next_beat() };
                let _ = client.publish(self.way.subject("member"), self.spoken(&beat)).await;
            }
            was_connected = is_connected;
        }
    }

    fn note_readings(
        &self,
        (then, before): &(Instant, Readings),
        (now, readings): &(Instant, Readings),
    ) {
        let answers = readings.answers.saturating_sub(before.answers);
        let hits = readings.hits.saturating_sub(before.hits);
        let ms = u64::try_from((*now - *then).as_millis()).unwrap_or(u64::MAX).max(1);
        let mut state = self.shared.lock();
        let since = self.shared.now();
        let load = state.window.add(since, readings.clone(), &*self.machine);
        let beat = &mut state.beat;
        beat.load = load;
        beat.rate = answers.saturating_mul(1000) / ms;
        beat.hits = (hits.saturating_mul(1000) / answers.max(1)).min(1000);
        beat.connections = readings.connections;
        beat.configuration.clone_from(&readings.configuration);
    }

    /// Kept answers are stale when there was no word for too long, and so are those that were kept since then.
    fn soften(&self, softened: &mut Duration) {
        let Some(limit) = self.way.settings.stale_after else { return };
        let (silence, now) = (self.shared.silence(), self.shared.now());
        if silence < limit {
            *softened = Duration::ZERO;
        } else if *softened == Duration::ZERO || now.saturating_sub(*softened) >= limit {
            if *softened == Duration::ZERO {
                tracing::warn!(
                    "no word of the fleet for {} s: kept answers are validated before they are used",
                    silence.as_secs()
                );
            }
            *softened = now;
            self.machine.soften();
            self.shared.lock().counts.softened += 1;
        }
    }

    /// One line when the servers have not been reached for some beats.
    async fn complain(&self, unreached: &mut u32) {
        let is_connected = self.shared.lock().connected;
        *unreached = if is_connected { 0 } else { unreached.saturating_add(1) };
        if *unreached != UNREACHED {
            return;
        }
        let why = self.way.reason().await;
        tracing::warn!(
            "no server of the fleet can be reached, and AFPA serves on and goes on trying: {why}"
        );
        let mut state = self.shared.lock();
        if !state.connected {
            state.trouble = Some(why);
        }
    }

    /// Leaves a server that may be cut off from the others: it is well with its clients, and knows nothing of the logs. The next
    /// one is drawn by lot.
    async fn go_elsewhere(&self, deaf_since: &mut Option<Duration>, client: &Client) {
        let now = self.shared.now();
        if !self.shared.lock().connected || self.shared.silence() < DEAF {
            *deaf_since = None;
        } else if now.saturating_sub(*deaf_since.get_or_insert(now)) >= DEAF {
            *deaf_since = None;
            tracing::debug!("the server says nothing about the logs: another one is tried");
            let _ = client.force_reconnect().await;
        }
    }

    /// One line when two machines have one name: an order that one of them has done looks done by both.
    fn tell_twins(&self) {
        let mut state = self.shared.lock();
        let twins = state.members.twins(self.shared.now());
        if twins == state.twins {
            return;
        }
        for name in twins.difference(&state.twins) {
            tracing::warn!(
                "two machines of the fleet are named {name}: give each its own `name` in [fleet]"
            );
        }
        state.twins = twins;
    }

    /// One line when the clock of another machine is not that of this one.
    fn tell_clocks(&self) {
        let mut state = self.shared.lock();
        let apart = state.members.clocks(self.shared.now());
        for (name, ahead) in apart.iter().filter(|(name, _)| !state.clocks.contains_key(*name)) {
            let (seconds, side) =
                (ahead.unsigned_abs(), if *ahead < 0 { "behind" } else { "ahead of" });
            tracing::warn!(
                "the clock of {name} is {seconds} s {side} this machine's: tokens of HTTP/3 by one do not hold at the other until \
                 something sets both (chrony, systemd-timesyncd)"
            );
        }
        state.clocks = apart;
    }

    /// One line for each trouble.
    pub(crate) fn trouble(&self, why: &str) {
        let mut state = self.shared.lock();
        if state.trouble.is_none() {
            tracing::warn!("the fleet cannot be followed, and AFPA serves on: {why}");
        }
        state.trouble = Some(why.to_owned());
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

impl Way {
    /// A client that connects as soon as it can, and again whenever it must.
    async fn connect(&self, shared: &Arc<Shared>) -> Result<Client, Fault> {
        let shared = Arc::clone(shared);
        let options = self.options().retry_on_initial_connect().event_callback(move |event| {
            note(&shared, &event);
            std::future::ready(())
        });
        Ok(options.connect(self.servers()?).await?)
    }

    /// The reason for which no server can be reached: the client that goes on trying has none in its events.
    async fn reason(&self) -> String {
        let attempt = async { self.options().connect(self.servers()?).await.map_err(Fault::from) };
        match timeout(ANSWER, attempt).await {
            Ok(Ok(_)) => "one is there again".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        }
    }

    fn servers(&self) -> Result<Vec<ServerAddr>, Fault> {
        let servers: Result<_, _> = self.settings.servers.iter().map(|url| url.parse()).collect();
        Ok(servers?)
    }

    fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new()
            .name("afpa")
            .connection_timeout(ANSWER)
            .subscription_capacity(INBOX)
            .request_timeout(Some(ANSWER))
            .ping_interval(ANSWER)
            .reconnect_delay_callback(|attempts| {
                let doubled = PAUSE.saturating_mul(1 << attempts.min(4) as u32);
                doubled.min(RECONNECT).mul_f64(rand::random_range(0.5..1.0))
            });
        options = match self.credentials.clone() {
            Some(Credentials::User(user, password)) => options.user_and_password(user, password),
            Some(Credentials::Token(token)) => options.token(token),
            None => options,
        };
        if let Some(ca) = &self.settings.ca {
            options = options.add_root_certificates(ca.clone());
        }
        // Servers that others name are not those of the configuration: they could be without TLS, and as many as they like.
        options.ignore_discovered_servers().require_tls(self.settings.is_by_tls())
    }

    pub(crate) fn subject(&self, what: &str) -> String {
        format!("{}.{what}", self.settings.prefix)
    }

    fn stream(&self, kind: Log) -> String {
        let what = match kind {
            Log::Purges => "purges",
            Log::Bans => "bans",
        };
        format!("{}-{what}", self.settings.prefix)
    }

    pub(crate) fn log_subject(&self, kind: Log) -> String {
        self.subject(match kind {
            Log::Purges => "purges",
            Log::Bans => "bans",
        })
    }

    /// A log that is not there yet. One that is there stays as somebody has made it.
    fn log(&self, kind: Log) -> Config {
        let retention = self.settings.retention;
        let (max_age, per_subject, duplicates) = match kind {
            Log::Purges => (retention, -1, DUPLICATES.min(retention)),
            Log::Bans => (Duration::ZERO, 1, DUPLICATES),
        };
        Config {
            name: self.stream(kind),
            subjects: vec![format!("{}.>", self.log_subject(kind))],
            max_age,
            max_messages_per_subject: per_subject,
            duplicate_window: duplicates,
            num_replicas: self.settings.replicas(),
            ..Config::default()
        }
    }
}

/// Seconds by which a clock is ahead of that of this machine.
fn ahead(clock: u64) -> Option<i64> {
    let clock = i64::try_from(clock).ok().filter(|clock| *clock > 0)?;
    clock.checked_sub(i64::try_from(unix()).ok()?)
}

/// The connection has come, or gone.
fn note(shared: &Shared, event: &Event) {
    let now = shared.now();
    let mut state = shared.lock();
    match event {
        Event::Connected => {
            state.connected = true;
            state.trouble = None;
            state.forbidden.clear();
            state.members.listen(true, now);
        }
        Event::Disconnected => {
            state.connected = false;
            state.members.listen(false, now);
        }
        Event::ServerError(error) => {
            let text = error.to_string();
            if let Some(subject) = forbidden(&text) {
                state.forbid(subject);
            }
            state.trouble = Some(text);
        }
        Event::ClientError(error) if !state.connected => {
            state.trouble.get_or_insert_with(|| error.to_string());
        }
        _ => {}
    }
    drop(state);
    Log::ALL.iter().for_each(|kind| shared.ordered[kind.index()].notify_one());
    shared.moved.notify_one();
}

pub(crate) fn found(info: &async_nats::jetstream::stream::Info) -> Found {
    let state = &info.state;
    Found {
        log: u64::try_from(info.created.unix_timestamp_nanos()).unwrap_or(0),
        first: state.first_sequence,
        last: state.last_sequence,
    }
}
