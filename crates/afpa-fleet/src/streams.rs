//! The streams at the servers, which a machine makes where there are none.
//!
//! A server that has just become the leader of all may not know yet which streams there are, and says of each that it is not
//! found. A machine that makes it then makes a second one of that name, and servers disagree about which is which. So a machine
//! that has seen a stream before makes it anew only when it was not found for some time, and nothing else was said.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::context::{GetStreamError, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, Stream};

use crate::nats::{Agent, Fault};

/// A stream that was seen before is not there any more after this time.
const ABSENT: Duration = Duration::from_secs(15);

impl Agent {
    /// A stream. One that is there stays as somebody has made it.
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
