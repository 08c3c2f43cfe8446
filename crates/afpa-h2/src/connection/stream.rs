//! What the server knows of each stream.

use crate::endpoint::StreamId;
use crate::endpoint::stream::{Numbered, Window};
use crate::priority::Urgency;

/// A stream that is open, in one or both directions.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    /// The client may still send on it.
    pub(super) client_open: bool,
    /// We may still send on it.
    pub(super) we_open: bool,
    /// Both directions end by themselves: it is a tunnel.
    pub(super) is_tunnel: bool,
    /// Content that we may send; below 0 after the client has made its windows smaller (section 6.9.2).
    pub(super) send_window: i64,
    /// Content that the client may send.
    pub(super) receive: Window,
    /// Content that has arrived and was not read by the stream's owner.
    pub(super) unread: u32,
    /// Content that Content-Length has announced and that has not arrived.
    pub(super) content_left: Option<u64>,
    pub(super) priority: Urgency,
    /// Bytes that its owner has to send; `None`: nothing now.
    pub(super) pending: Option<u64>,
    /// When it last sent, counted in DATA frames.
    pub(super) last_turn: u64,
}

impl Numbered for Stream {
    fn id(&self) -> StreamId {
        self.id
    }
}
