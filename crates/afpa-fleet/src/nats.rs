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

mod beat;
mod follow;
mod way;

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::ContextBuilder;
use bytes::Bytes;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::folder::FleetFolder;
use crate::follower::{Log, Position};
use crate::machine::Machine;
use crate::message::Heartbeat;
use crate::records::Ask;
use crate::state::Shared;
pub(crate) use follow::found;
pub(crate) use way::Way;

/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(2);

/// How long the last word to a server may take.
const GOOD_BYE: Duration = Duration::from_millis(500);

/// After a failure.
pub(crate) const PAUSE: Duration = Duration::from_millis(300);

/// Looks at a log in a row that show more than has come before the consumer is made anew.
pub(crate) const STUCK: u32 = 3;

pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

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

    fn spoken(&self, beat: &Heartbeat) -> Bytes {
        beat.encode_by(self.way.secret.as_ref()).into()
    }

    /// One line for each trouble.
    pub(crate) fn trouble(&self, why: &str) {
        let mut state = self.shared.lock();
        if state.trouble.is_none() {
            tracing::warn!("the fleet cannot be followed, and AFPA serves on: {why}");
        }
        state.trouble = Some(why.to_owned());
    }
}
