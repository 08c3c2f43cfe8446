//! The streams at the servers, which a machine makes where there are none.
//!
//! A server that has just become the leader of the cluster may not know its streams yet, and answers that they are not found.
//! A machine that creates a stream then creates a second one of the same name, and the servers disagree about the two. So a
//! machine that has seen a stream creates it again only if every answer for some time was that it is not found.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, Stream};

use crate::nats::{Agent, Fault};

/// A stream that was seen before counts as gone when it was not found for this time.
const ABSENT: Duration = Duration::from_secs(15);

impl Agent {
    /// Finds a stream, or makes it. One that exists keeps its settings.
    pub(crate) async fn stream(&self, streams: &Context, config: Config) -> Result<Stream, Fault> {
        let name = config.name.clone();
        match streams.get_stream(&name).await {
            Err(error) if is_absent(&error) => {
                if !self.may_make(&name) {
                    return Err(error.into());
                }
            }
            found => {
                self.shared.lock().absent.remove(&name);
                let stream = found?;
                self.note_seen(&name);
                return Ok(stream);
            }
        }
        let stream = streams.create_stream(config).await?;
        self.shared.lock().absent.remove(&name);
        self.note_seen(&name);
        Ok(stream)
    }

    fn may_make(&self, name: &str) -> bool {
        let now = self.shared.now();
        let since = *self.shared.lock().absent.entry(name.to_owned()).or_insert(now);
        !self.folder.has_seen(name) || now.saturating_sub(since) >= ABSENT
    }

    fn note_seen(&self, name: &str) {
        if let Err(error) = self.folder.note_seen(name) {
            tracing::debug!(%error, "[fleet] state takes no note of a stream");
        }
    }
}

fn is_absent(error: &GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(said) if said.code() == 404)
}
