//! The way to the servers: the client, and the names of what it asks for.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::stream::Config;
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use tokio::time::timeout;

use super::{ANSWER, Fault, PAUSE};
use crate::follower::Log;
use crate::seal::Secret;
use crate::send::forbidden;
use crate::settings::{Credentials, FleetSettings};
use crate::state::Shared;

/// Messages of the servers that wait for us.
const INBOX: usize = 4096;

/// The longest time between two attempts to connect.
const RECONNECT: Duration = Duration::from_secs(2);

/// The time in which servers compare ids of messages. AFPA's messages have none, but it has to be no longer than the retention.
const DUPLICATES: Duration = Duration::from_secs(120);

/// The way to the servers.
pub(crate) struct Way {
    pub(crate) settings: FleetSettings,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) secret: Option<Secret>,
}

impl Way {
    /// A client that connects as soon as it can, and again whenever it must.
    pub(super) async fn connect(&self, shared: &Arc<Shared>) -> Result<Client, Fault> {
        let shared = Arc::clone(shared);
        let options = self.options().retry_on_initial_connect().event_callback(move |event| {
            note(&shared, &event);
            std::future::ready(())
        });
        Ok(options.connect(self.servers()?).await?)
    }

    /// The reason for which no server can be reached: the client that goes on trying has none in its events.
    pub(super) async fn reason(&self) -> String {
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

    pub(super) fn stream(&self, kind: Log) -> String {
        format!("{}-{}", self.settings.prefix, word(kind))
    }

    pub(crate) fn log_subject(&self, kind: Log) -> String {
        self.subject(word(kind))
    }

    /// A log that is not there yet. One that is there stays as somebody has made it.
    pub(super) fn log(&self, kind: Log) -> Config {
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

/// The word for a log in the names of streams and subjects.
fn word(kind: Log) -> &'static str {
    match kind {
        Log::Purges => "purges",
        Log::Bans => "bans",
    }
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
