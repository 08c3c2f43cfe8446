//! How a stream's task ends.

use afpa_framework::Module;
use afpa_h2::StreamId;
use afpa_h2::request::Framing;

use super::client::StreamClient;

/// The facts of a request on which its answer depends.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) id: StreamId,
    /// The method is HEAD.
    pub(super) head: bool,
    /// The answer does not wait for the request's content.
    pub(super) early: bool,
    /// How a server would get its content.
    pub(super) framing: Framing,
}

/// The outcome of a stream's task.
pub(super) enum Outcome<M: Module> {
    /// A helper thread has loaded the answer.
    Loaded(Asked, M::Loaded),
    /// A server has answered, or none has.
    Exchanged(Asked, M::Exchanged, StreamClient<M>),
    /// A part of a file is in memory.
    Resident(StreamId),
    /// The stream ended before the handshake did, and no server was asked.
    Gone,
}
