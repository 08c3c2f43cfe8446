//! The bytes of an answer that a slow client has not taken yet, while the exchange goes on without it.

use std::sync::Arc;

use afpa_cache::{Object, Payload};
use afpa_framework::ClientStream;

use crate::fetch::send::send_some;
use crate::store::responses::Responses;
use crate::store::stored::StoredResponse;

/// Bytes that wait for a client. They count as bytes of answers on their way.
#[derive(Debug)]
pub(crate) struct Backlog {
    responses: Arc<Responses>,
    bytes: Vec<u8>,
    /// The room of that memory, which counts.
    counted: usize,
    sent: usize,
}

/// Bytes of an answer that count among those on their way, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    responses: Arc<Responses>,
    bytes: usize,
}

/// An answer that was kept as a whole, and whose content was sent as it is.
#[derive(Debug)]
pub(crate) struct Kept(pub(crate) Arc<Object<StoredResponse>>);

/// The rest of an answer.
#[derive(Debug)]
pub(crate) enum Rest {
    /// In memory of its own.
    Own(Backlog),
    /// The content of the kept object, from this position on.
    OfKept(Kept, usize),
}

impl Backlog {
    pub(crate) fn new(responses: Arc<Responses>) -> Self {
        Self { responses, bytes: Vec::new(), counted: 0, sent: 0 }
    }

    /// The bytes that wait.
    pub(crate) fn left(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Adds to it. `false`: there is no more memory for that.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let needed = self.bytes.len().saturating_add(bytes.len());
        if needed > self.counted {
            // Twice the room, so that it is not moved with each piece; if there is no such room, what is needed.
            let rooms = [needed.max(self.counted.saturating_mul(2)), needed];
            let has_room = |room: &usize| self.responses.buffer(room.saturating_sub(self.counted));
            let Some(room) = rooms.into_iter().find(has_room) else { return false };
            self.counted = room;
            self.bytes.reserve_exact(room.saturating_sub(self.bytes.len()));
        }
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// So much was sent.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        if self.left().is_empty() {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.responses.unbuffer(self.counted);
        (self.bytes, self.counted, self.sent) = (Vec::new(), 0, 0);
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Held {
    /// `None`: there is no room for them.
    pub(crate) fn of(responses: &Arc<Responses>, bytes: usize) -> Option<Self> {
        responses.buffer(bytes).then(|| Self::counted(responses, bytes))
    }

    /// Bytes that count already.
    pub(crate) fn counted(responses: &Arc<Responses>, bytes: usize) -> Self {
        Self { responses: Arc::clone(responses), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.responses.unbuffer(self.bytes);
    }
}

impl Kept {
    fn content(&self) -> &[u8] {
        match self.0.payloads().first() {
            Some(Payload::Pinned(bytes)) => bytes,
            _ => &[],
        }
    }
}

impl Rest {
    /// The last `left` bytes of the kept object, instead of a copy of them. `None`: its content is shorter.
    pub(crate) fn of_kept(kept: Kept, left: usize) -> Option<Self> {
        let from = kept.content().len().checked_sub(left)?;
        Some(Rest::OfKept(kept, from))
    }

    fn left(&self) -> &[u8] {
        match self {
            Rest::Own(backlog) => backlog.left(),
            Rest::OfKept(kept, from) => kept.content().get(*from..).unwrap_or_default(),
        }
    }

    fn advance(&mut self, bytes: usize) {
        match self {
            Rest::Own(backlog) => backlog.advance(bytes),
            Rest::OfKept(_, from) => *from += bytes,
        }
    }

    /// Sends it. `false`: the client went away, or stopped reading.
    pub(crate) async fn send<C: ClientStream + ?Sized>(mut self, client: &mut C) -> bool {
        while !self.left().is_empty() {
            match send_some(client, self.left()).await {
                Some(n) => self.advance(n),
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use afpa_cache::{Arena, CacheSettings};

    use super::*;

    /// Memory that grows piece by piece has more room than bytes.
    #[test]
    fn a_backlog_counts_the_room_that_it_holds() {
        let arena = Arena::new(1 << 20).expect("an arena");
        let responses = Responses::new(CacheSettings::default(), arena);
        let mut backlog = Backlog::new(Arc::clone(&responses));
        let mut pushed = 0;
        while backlog.push(&[b'x'; 10_000]) {
            pushed += 10_000;
            assert!(backlog.bytes.capacity() <= responses.buffered(), "behind {pushed} B");
        }
        assert_eq!(backlog.left().len(), pushed);
        backlog.advance(pushed);
        assert_eq!(responses.buffered(), 0);
        assert!(pushed > 500_000, "there is room for {pushed} B");
    }
}
