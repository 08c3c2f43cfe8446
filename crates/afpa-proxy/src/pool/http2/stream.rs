//! A request and its response on a connection of HTTP/2, in the words of HTTP/1.1.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use afpa_framework::steady_ms;
use afpa_h2::StreamId;
use afpa_h2::client::tunnel::Upgrade;
use afpa_h2::client::{Gone, Part, RequestReader, Tunnel};

use super::Http2Connection;
use super::slot::{OutEnd, Slot};
use super::state::State;
use crate::websocket;

/// One request and its response. Dropping it ends the stream, and no other one.
#[derive(Debug)]
pub struct Http2Stream {
    connection: Rc<Http2Connection>,
    request: RequestReader,
    /// `None`: the head of the request was not written yet, or there was no room for it.
    id: Option<StreamId>,
    /// There was no room for it.
    refused: bool,
    opened_ms: u64,
    /// The end of a tunnel was given to the connection.
    ended: bool,
}

/// A stream ended before its response did.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the stream of HTTP/2 has ended: {0:?}")]
struct StreamGone(Gone);

/// How a stream of HTTP/2 ended, if that is what an error is about.
pub(crate) fn gone(error: &io::Error) -> Option<Gone> {
    let gone = error.get_ref()?.downcast_ref::<StreamGone>()?;
    Some(gone.0)
}

fn failure(why: Gone) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, StreamGone(why))
}

impl Http2Stream {
    pub(super) fn new(connection: Rc<Http2Connection>, secure: bool) -> Self {
        let request = RequestReader::new(secure);
        let opened_ms = steady_ms();
        Self { connection, request, id: None, refused: false, opened_ms, ended: false }
    }

    /// Reads the response as HTTP/1.1 has it.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if self.refused {
            return Poll::Ready(Err(failure(Gone::Unprocessed)));
        }
        let Some(id) = self.id else { return Poll::Pending };
        let mut state = self.connection.state.borrow_mut();
        let State { machine, slots, .. } = &mut *state;
        let Some(slot) = slots.get_mut(&id) else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let (n, content) = slot.read(room);
        if n == 0 {
            if slot.has_ended() {
                return Poll::Ready(Ok(0));
            }
            if let Some(why) = slot.why_gone() {
                return Poll::Ready(Err(failure(why)));
            }
            slot.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        if content > 0 {
            machine.read(id, content);
            if machine.unsent() > 0 {
                state.wake();
            }
        }
        Poll::Ready(Ok(n))
    }

    /// Takes a request of HTTP/1.1: its head, its content, its trailer section.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let connection = Rc::clone(&self.connection);
        let mut state = connection.state.borrow_mut();
        if let Some(slot) = self.id.and_then(|id| state.slots.get_mut(&id)) {
            if self.request.upgrade().is_some() && slot.is_done() {
                // The server takes no more of the tunnel. These bytes are dropped, because an error here would stop the
                // bytes that the server has sent.
                return Poll::Ready(Ok(bytes.len()));
            }
            if slot.is_closed() {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            if slot.is_full() {
                slot.writer = Some(cx.waker().clone());
                return Poll::Pending;
            }
        }
        let taken = self.take(&mut state, bytes);
        if taken.is_err() && self.id.is_none() && !self.refused {
            self.refused = true;
            state.reserved = state.reserved.saturating_sub(1);
        }
        state.wake();
        Poll::Ready(taken.map(|()| bytes.len()))
    }

    /// Ends the sending direction of a tunnel: ready when its end was sent. A request shows its end itself.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let connection = Rc::clone(&self.connection);
        let mut state = connection.state.borrow_mut();
        let id = self.id.filter(|_| self.request.upgrade().is_some());
        let Some(id) = id.filter(|id| state.slots.get(id).is_some_and(|slot| !slot.is_closed()))
        else {
            return Poll::Ready(Ok(()));
        };
        if !self.ended {
            self.ended = true;
            self.content(&mut state, b"", Some(OutEnd::Plain));
            state.wake();
        }
        match state.slots.get_mut(&id) {
            Some(slot) if !slot.is_sent() => {
                slot.writer = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Whether the server takes extended CONNECT.
    pub(crate) fn takes_tunnels(&self) -> bool {
        self.connection.state.borrow().machine.takes_tunnels()
    }

    fn take(&mut self, state: &mut State, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
            let (n, part) = self.request.read(rest).map_err(wrong)?;
            rest = rest.get(n..).unwrap_or_default();
            match part {
                None => {}
                Some(Part::Head { end }) => self.open(state, end)?,
                Some(Part::Content { bytes, end }) => {
                    self.content(state, bytes, end.then_some(OutEnd::Plain));
                }
                Some(Part::Trailers) => {
                    let block = self.request.block().into();
                    self.content(state, b"", Some(OutEnd::Trailers(block)));
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, state: &mut State, end: bool) -> io::Result<()> {
        let Self { request, id, refused, opened_ms, .. } = self;
        state.reserved = state.reserved.saturating_sub(1);
        let is_over = state.below.is_none() || state.closing_ms.is_some();
        let opened = match is_over {
            true => None,
            false => match request.upgrade() {
                Some(upgrade) => state.machine.open_tunnel(request.block(), tunnel(upgrade)),
                None => state.machine.open(request.block(), end, request.asks_head()),
            },
        };
        let Some(opened) = opened else {
            *refused = true;
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        state.slots.insert(opened, Slot::default());
        state.silence.moved();
        if let Some(tally) = &state.tally {
            tally.stream();
        }
        (*id, *opened_ms) = (Some(opened), steady_ms());
        Ok(())
    }

    fn content(&self, state: &mut State, bytes: &[u8], end: Option<OutEnd>) {
        let Some(id) = self.id else { return };
        let Some(slot) = state.slots.get_mut(&id) else { return };
        if bytes.is_empty() && end.is_none() {
            return;
        }
        slot.write(bytes, end);
        if !state.sending.contains(&id) {
            state.sending.push_back(id);
        }
    }

    /// The server took too long. If nothing at all was heard of it meanwhile, the connection may be dead, and gets no more
    /// requests.
    pub(crate) fn distrust(&self) {
        if self.connection.state.borrow().silence.heard_ms() <= self.opened_ms {
            self.connection.close();
        }
    }
}

/// The change of protocol that a successful answer becomes.
fn tunnel(upgrade: &Upgrade) -> Tunnel {
    let accept = upgrade.key.as_deref().map(websocket::accept);
    Tunnel { protocol: upgrade.protocol.clone(), accept }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        let mut state = self.connection.state.borrow_mut();
        state.used_ms = steady_ms();
        match self.id {
            Some(id) => {
                state.slots.remove(&id);
                state.machine.abandon(id);
            }
            None if !self.refused => state.reserved = state.reserved.saturating_sub(1),
            None => {}
        }
        state.wake();
    }
}
