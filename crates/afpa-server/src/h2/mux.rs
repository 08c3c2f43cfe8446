//! The streams of a connection: the output of each, and the content that has arrived for it.

use std::collections::{HashMap, VecDeque};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afpa_cache::root::{FileBody, resident};
use afpa_framework::{Part, Priority, Receipt, extended};
use afpa_h2::{Connection, ErrorCode, StreamId};

use super::upload::Upload;

/// Protocol state and streams, shared by the connection's task and those of its streams.
pub(super) struct Mux {
    pub(super) connection: Connection,
    /// Streams whose response is not in the output as a whole.
    pub(super) streams: HashMap<StreamId, StreamState>,
    /// The connection's task, while it waits.
    pub(super) waker: Option<Waker>,
    /// Until when the client's last progress lets streams wait that may send, in steady milliseconds.
    pub(super) progress_until_ms: u64,
    pub(super) pace: Pace,
    /// The handshake is not complete, and requests may be replays.
    pub(super) is_early: bool,
}

/// A stream whose response is not complete.
#[derive(Default)]
pub(super) struct StreamState {
    /// Content that waits to be sent, in memory.
    pub(super) bytes: VecDeque<u8>,
    /// Content behind it.
    pub(super) parts: VecDeque<Part>,
    /// The end of a part that is known to be resident.
    pub(super) resident_to: u64,
    /// The whole rest of the response is here: nothing is to come.
    pub(super) whole: bool,
    /// All of it was sent, and the client's side of the tunnel is still open.
    pub(super) is_half_closed: bool,
    /// The field block of a head that waits until the request has arrived as a whole, and how much of its content has.
    pub(super) held: Option<Held>,
    /// A field block that follows the content.
    pub(super) trailers: Option<Vec<u8>>,
    /// The priority of the content, where long responses of a core wait for one another.
    pub(super) priority: Priority,
    /// Content bytes that were sent.
    pub(super) sent: u64,
    pub(super) receipt: Option<Receipt>,
    /// Steady milliseconds by which some of the waiting bytes have to be sent, if it is the client that lets them wait.
    pub(super) deadline_ms: u64,
    /// The content of the request, if a server gets it.
    pub(super) upload: Option<Upload>,
    /// The stream's task, while it waits for the client to take bytes of the task.
    pub(super) sender: Option<Waker>,
    /// The stream's task, while it waits for content, or for the client to go.
    pub(super) receiver: Option<Waker>,
}

/// The head of an answer, and whether it is all of it.
pub(super) struct Held {
    pub(super) block: Vec<u8>,
    pub(super) end: bool,
    /// Content of the request that has arrived.
    pub(super) arrived: u64,
}

/// The result of filling a DATA frame.
pub(super) enum Filled {
    /// Its content is in the output.
    Bytes,
    /// A helper thread has to read the file first, from there on.
    NotResident(Arc<FileBody>, u64, u64),
    /// The content differs from the announced content.
    Broken,
}

/// How much of a file is made resident at a time.
const CHUNK: u64 = 2 * 1024 * 1024;

/// Content of a server that a stream keeps for its client at most; then the server waits.
pub(super) const KEPT: usize = 64 * 1024;

/// Content of a server that a stream keeps at most for a client that takes none of it.
pub(super) const LEAST_KEPT: usize = 4 * 1024;

/// The content that all streams of a connection may keep before each may keep only [`LEAST_KEPT`].
const KEPT_BY_ALL: usize = 1024 * 1024;

/// How long clients may let a response wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) write_ms: u64,
    pub(super) least_rate: u64,
}

impl Pace {
    /// Until when a client is waited for that was waited for until `until_ms`, and has taken so many bytes since.
    pub(super) fn extended(self, until_ms: u64, now_ms: u64, bytes: usize) -> u64 {
        extended(until_ms, now_ms, self.write_ms, bytes as u64, self.least_rate)
    }
}

impl Mux {
    /// Tells the connection's task that there is something to send.
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// The handshake is complete: streams that wait for it go on.
    pub(super) fn finish_handshake(&mut self) {
        self.is_early = false;
        let receivers = self.streams.values_mut().filter_map(|stream| stream.receiver.take());
        receivers.for_each(Waker::wake);
    }

    /// Waits for the end of the handshake. Ready with whether the stream is still there.
    pub(super) fn poll_handshake(&mut self, cx: &Context<'_>, id: StreamId) -> Poll<bool> {
        match self.streams.get_mut(&id) {
            None => Poll::Ready(false),
            Some(stream) if self.is_early => {
                stream.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(_) => Poll::Ready(true),
        }
    }

    /// Reports anew how much a stream has to send.
    pub(super) fn announce(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get(&id).filter(|stream| stream.held.is_none()) else {
            return;
        };
        let left = stream.left();
        self.connection.set_pending(id, (left > 0 || stream.whole).then_some(left));
    }

    /// Whether the connection has said that it ends, and nothing is to be done any more.
    pub(super) fn is_done(&self) -> bool {
        // A tunnel that both sides have ended may still have something for the server.
        self.connection.is_done() && self.streams.is_empty()
    }

    /// Until when a stream waits for its client, in steady milliseconds. A stream that may send waits for the streams
    /// before it: bytes that the client takes of them extend its deadline, too.
    pub(super) fn deadline(&self, id: StreamId) -> Option<u64> {
        let stream = self.streams.get(&id).filter(|stream| stream.waits_for_client())?;
        let waits_for_turn = stream.held.is_none() && !self.connection.is_stopped(id);
        Some(match waits_for_turn {
            true => stream.deadline_ms.max(self.progress_until_ms),
            false => stream.deadline_ms,
        })
    }

    /// The client has taken so many bytes of the connection.
    pub(super) fn progressed(&mut self, bytes: usize, now_ms: u64) {
        let before = self.progress_until_ms.max(now_ms);
        self.progress_until_ms = self.pace.extended(before, now_ms, bytes);
    }

    /// How much of a server's response may wait for a stream: as much as its client's window lets it send, but at least
    /// [`LEAST_KEPT`]. All streams together hold no more than a connection may.
    pub(super) fn may_keep(&self, id: StreamId) -> usize {
        let all: usize = self.streams.values().map(|stream| stream.bytes.len()).sum();
        let most = if all < KEPT_BY_ALL { KEPT } else { LEAST_KEPT };
        self.connection.window(id).clamp(LEAST_KEPT, most)
    }

    /// Sends an answer that was held back. From now on it waits for its client until then.
    pub(super) fn release(&mut self, id: StreamId, deadline_ms: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(Held { block, end, .. }) = stream.held.take() else { return };
        stream.deadline_ms = deadline_ms;
        self.connection.send_head(id, end, |to| to.extend_from_slice(&block));
        if end {
            self.remove(id);
        } else {
            self.announce(id);
        }
    }

    /// Removes a stream, and tells its task.
    pub(super) fn remove(&mut self, id: StreamId) -> Option<StreamState> {
        let stream = self.streams.remove(&id)?;
        stream.wake_all();
        Some(stream)
    }

    /// Ends a stream for a reason of ours.
    pub(super) fn reset(&mut self, id: StreamId, code: ErrorCode) -> Option<StreamState> {
        self.connection.reset(id, code);
        self.remove(id)
    }
}

impl StreamState {
    /// Bytes that wait to be sent.
    pub(super) fn left(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(Part::len).sum();
        self.bytes.len() as u64 + parts
    }

    /// Whether the next step is the client's: to take content, or to send that of its request.
    pub(super) fn waits_for_client(&self) -> bool {
        self.held.is_some() || self.left() > 0
    }

    /// Whether both directions end by themselves.
    pub(super) fn is_tunnel(&self) -> bool {
        self.upload.as_ref().is_some_and(Upload::is_tunnel)
    }

    fn wake_all(&self) {
        for waker in [&self.sender, &self.receiver].into_iter().flatten() {
            waker.wake_by_ref();
        }
    }

    /// Appends content to `out`, as much as there is room for. A file's version is checked after each read, so all
    /// bytes that were read before are of the announced version (see `connection/file.rs`).
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, mut room: usize) -> Filled {
        let begin = out.len();
        while room > 0 {
            let (waiting, _) = self.bytes.as_slices();
            if !waiting.is_empty() {
                let n = room.min(waiting.len());
                out.extend_from_slice(waiting.get(..n).unwrap_or_default());
                self.bytes.drain(..n);
                room -= n;
                continue;
            }
            let Some(part) = self.parts.front_mut() else { return Filled::Bytes };
            let n = part.len().min(room as u64) as usize;
            match part {
                Part::Bytes(bytes) => out.extend(bytes.get(..n).into_iter().flatten()),
                Part::Shared(bytes, range) => {
                    let bytes = (**bytes).as_ref().get(range.start..range.start + n);
                    out.extend_from_slice(bytes.unwrap_or_default());
                }
                Part::Pinned(object, range) => {
                    out.extend(object.get(range.start..range.start + n).into_iter().flatten());
                }
                Part::File { file, stamp, range } => {
                    if range.start >= self.resident_to || self.resident_to > range.end {
                        self.resident_to = range.end.min(range.start + CHUNK);
                        let length = self.resident_to - range.start;
                        if !resident(file, range.start, length) {
                            if out.len() > begin {
                                // The bytes that are there go first; then the file is looked at again.
                                self.resident_to = 0;
                                return Filled::Bytes;
                            }
                            return Filled::NotResident(Arc::clone(file), range.start, length);
                        }
                    }
                    let before = out.len();
                    out.resize(before + n, 0);
                    let place = out.get_mut(before..).unwrap_or_default();
                    if file.read_exact_at(place, range.start).is_err() || !file.holds(stamp) {
                        return Filled::Broken;
                    }
                }
            }
            part.advance(n as u64);
            room -= n;
            if part.is_empty() {
                self.parts.pop_front();
                self.resident_to = 0;
            }
        }
        Filled::Bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_kept_of_a_response_however_long_it_is() {
        let mut stream = StreamState::default();
        stream.bytes.extend([0; 100]);
        let mut out = Vec::new();
        for _ in 0..1_000 {
            out.clear();
            stream.bytes.extend([0; 16_384]);
            assert!(matches!(stream.fill(&mut out, 16_384), Filled::Bytes));
            assert_eq!((out.len(), stream.left()), (16_384, 100), "it never becomes empty");
        }
        assert!(stream.bytes.capacity() <= 2 * KEPT, "{}", stream.bytes.capacity());
    }
}
