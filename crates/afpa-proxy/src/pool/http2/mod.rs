//! Connections of HTTP/2 to servers, each of which carries many requests of its core.
//!
//! A stream of such a connection is a [`ServerStream`] like any other: what is written to it is a request of HTTP/1.1,
//! and what is read from it a response of HTTP/1.1. So an exchange, a probe, and the parser of responses need not know
//! (docs/decisions/http2-to-servers.md). [`afpa_h2::client`] speaks the protocol; a task for each connection, `drive`,
//! moves its bytes.

mod servers;
mod slot;
mod stream;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use afpa_framework::steady_ms;
use afpa_h2::client::{Connection, Event, Gone, ResponseHead};
use afpa_h2::{Limits, StreamId};
use foldhash::fast::RandomState;

use super::stream::ServerStream;
use super::tls::{TlsStream, TlsToServers};
use crate::select::{Address, Tally};
pub(crate) use servers::Http2Servers;
use slot::Slot;
pub use stream::Http2Stream;
pub(crate) use stream::gone;

/// A connection to a server that was asked for HTTP/2.
#[derive(Debug)]
pub(crate) enum Reached {
    /// The server has chosen HTTP/1.1.
    Http1(ServerStream),
    /// It speaks HTTP/2.
    Http2(Rc<Http2Connection>),
}

/// How a connection was made. Requests of other settings do not get it: it may be unencrypted, or trust somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeFor {
    /// How the server is reached by TLS.
    pub(crate) tls: Option<TlsToServers>,
    /// What the server may ask of us.
    pub(crate) limits: Limits,
}

/// Connects to the server that logs call `name`: by TLS if there are settings for it, which offer HTTP/2 and HTTP/1.1;
/// else by prior knowledge (RFC 9113 section 3.3). A connection of HTTP/2 is there once the server has said SETTINGS.
///
/// # Errors
/// What the system says, what is wrong with the server's certificate, or that it speaks no HTTP/2.
pub(crate) async fn reach(
    address: &Address,
    name: &str,
    made_for: MadeFor,
    tally: Option<&Tally>,
) -> io::Result<Reached> {
    let below = ServerStream::connect_plainly(address).await?;
    let below = match &made_for.tls {
        None => below,
        Some(tls) => {
            let stream = Box::pin(TlsStream::connect(below, tls, (name, address), true)).await?;
            let is_http2 = stream.speaks_http2();
            let stream = ServerStream::Tls(Box::new(stream));
            if !is_http2 {
                return Ok(Reached::Http1(stream));
            }
            stream
        }
    };
    let connection = Rc::new(Http2Connection::new(below, made_for, tally.cloned()));
    let opening = Opening(Some(Rc::clone(&connection)));
    tokio::task::spawn_local(drive(Rc::clone(&connection)));
    poll_fn(|cx| connection.poll_ready(cx)).await?;
    opening.succeed();
    Ok(Reached::Http2(connection))
}

/// Closes a connection that is used only once.
pub(crate) struct Once(pub(crate) Rc<Http2Connection>);

impl Drop for Once {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Ends a connection that nobody waits for any more.
struct Opening(Option<Rc<Http2Connection>>);

impl Opening {
    fn succeed(mut self) {
        self.0 = None;
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.end();
        }
    }
}

/// A connection of HTTP/2.
#[derive(Debug)]
pub(crate) struct Http2Connection {
    made_for: MadeFor,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    machine: Connection,
    /// `None`: it is over.
    below: Option<ServerStream>,
    /// What the machine has to say and was sent already.
    sent: usize,
    /// The beginning of a frame.
    input: Vec<u8>,
    head: ResponseHead,
    slots: HashMap<StreamId, Slot, RandomState>,
    /// Streams whose content waits to be sent, in turns.
    sending: VecDeque<StreamId>,
    /// Streams that were promised and not opened yet.
    reserved: usize,
    driver: Option<Waker>,
    opener: Option<Waker>,
    /// When the server was last heard of, in steady milliseconds.
    heard_ms: u64,
    /// When it was last in use.
    used_ms: u64,
    /// Since when it takes no new streams, because we do not want it any more.
    closing_ms: Option<u64>,
    tally: Option<Tally>,
}

/// Bytes that one read takes.
const READ: usize = 32 * 1024;

/// While so much waits to be sent, nothing more is read, and no more content is taken: a server that reads nothing cannot
/// make its answers to frames pile up.
const MOST_UNSENT: usize = 64 * 1024;

/// Reads before other tasks have their turn.
const READS: usize = 8;

/// How long a connection may take to say goodbye, in milliseconds.
const GOODBYE_MS: u64 = 3_000;

/// Moves the bytes of a connection until its end.
async fn drive(connection: Rc<Http2Connection>) {
    let mut room = vec![0; READ];
    poll_fn(|cx| connection.state.borrow_mut().poll(cx, &mut room)).await;
}

impl Http2Connection {
    fn new(below: ServerStream, made_for: MadeFor, tally: Option<Tally>) -> Self {
        let now = steady_ms();
        if let Some(tally) = &tally {
            tally.opened();
        }
        let state = State {
            machine: Connection::new(made_for.limits),
            below: Some(below),
            sent: 0,
            input: Vec::new(),
            head: ResponseHead::default(),
            slots: HashMap::default(),
            sending: VecDeque::new(),
            reserved: 0,
            driver: None,
            opener: None,
            heard_ms: now,
            used_ms: now,
            closing_ms: None,
            tally,
        };
        Self { made_for, state: RefCell::new(state) }
    }

    /// Ready when the server has said SETTINGS.
    fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.state.borrow_mut();
        if state.machine.is_ready() {
            return Poll::Ready(Ok(()));
        }
        if state.below.is_none() {
            let why = "the server speaks no HTTP/2";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        state.opener = Some(cx.waker().clone());
        Poll::Pending
    }

    /// A stream for a request, if there is room for one.
    pub(crate) fn stream(self: &Rc<Self>) -> Option<Http2Stream> {
        let mut state = self.state.borrow_mut();
        if state.room() == 0 {
            return None;
        }
        state.reserved += 1;
        Some(Http2Stream::new(Rc::clone(self), self.made_for.tls.is_some()))
    }

    /// How many requests it may carry at a time.
    fn most_streams(&self) -> usize {
        self.state.borrow().machine.most_streams()
    }

    /// Whether it will carry requests again.
    fn is_good(&self) -> bool {
        let state = self.state.borrow();
        state.below.is_some() && state.closing_ms.is_none() && state.machine.takes_streams()
    }

    /// Gives it no more requests. It ends with those that it has.
    pub(crate) fn close(&self) {
        let mut state = self.state.borrow_mut();
        if state.closing_ms.is_none() {
            state.closing_ms = Some(steady_ms());
            state.machine.leave();
            state.wake();
        }
    }

    /// Ends it now.
    fn end(&self) {
        let mut state = self.state.borrow_mut();
        state.over();
        state.wake();
    }

    /// To be called once a second.
    fn tick(&self, now_ms: u64, wanted: bool, idle_ms: u64) {
        let (is_idle, used, closing) = {
            let state = self.state.borrow();
            (state.is_idle(), state.used_ms, state.closing_ms)
        };
        let unused = now_ms.saturating_sub(used);
        if is_idle
            && closing.is_some_and(|since| now_ms.saturating_sub(since.max(used)) > GOODBYE_MS)
        {
            self.end();
        } else if !wanted || (is_idle && unused >= idle_ms) {
            self.close();
        }
    }
}

impl State {
    /// Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<()> {
        if !self.driver.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            self.driver = Some(cx.waker().clone());
        }
        for _ in 0..READS {
            self.pump();
            let is_idle = self.is_idle();
            let Some(below) = &mut self.below else { return Poll::Ready(()) };
            if flush(&mut self.machine, &mut self.sent, below, cx).is_err() {
                self.over();
                return Poll::Ready(());
            }
            let unsent = self.machine.output().len().saturating_sub(self.sent);
            let is_leaving = self.machine.is_ready() && !self.machine.takes_streams();
            if unsent == 0 && is_leaving && is_idle {
                // The server is told as far as it listens at once.
                let _ = below.poll_shutdown(cx);
                self.over();
                return Poll::Ready(());
            }
            if unsent > MOST_UNSENT {
                return Poll::Pending;
            }
            match below.poll_read(cx, room) {
                Poll::Pending if self.may_send_more() => {}
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(n @ 1..)) => {
                    let arrived = room.get(..n).unwrap_or_default();
                    if self.arrived(arrived).is_err() {
                        if let Some(below) = &mut self.below {
                            let _ = flush(&mut self.machine, &mut self.sent, below, cx);
                        }
                        self.over();
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(_) => {
                    self.over();
                    return Poll::Ready(());
                }
            }
        }
        // Others have their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether content waits that can go on at once.
    fn may_send_more(&mut self) -> bool {
        let Self { machine, sending, .. } = self;
        machine.output().is_empty() && sending.iter().any(|&id| machine.room(id) > 0)
    }

    /// Turns content that waits into frames: one for each stream in turn.
    fn pump(&mut self) {
        let mut blocked = 0;
        while blocked < self.sending.len() && self.machine.output().len() < MOST_UNSENT {
            let Some(id) = self.sending.pop_front() else { return };
            let Some(slot) = self.slots.get_mut(&id) else { continue };
            match slot.send(id, &mut self.machine) {
                slot::Sent::All => {}
                slot::Sent::Some => {
                    blocked = 0;
                    self.sending.push_back(id);
                }
                slot::Sent::Blocked => {
                    blocked += 1;
                    self.sending.push_back(id);
                }
            }
        }
    }

    /// Takes what has arrived apart.
    fn arrived(&mut self, bytes: &[u8]) -> Result<(), afpa_h2::Fatal> {
        let now = steady_ms();
        self.heard_ms = now;
        if self.input.is_empty() {
            let taken = self.frames(bytes, now)?;
            self.input.extend_from_slice(bytes.get(taken..).unwrap_or_default());
        } else {
            let mut input = std::mem::take(&mut self.input);
            input.extend_from_slice(bytes);
            let taken = self.frames(&input, now)?;
            input.drain(..taken);
            if !input.is_empty() {
                self.input = input;
            }
        }
        if self.machine.is_ready()
            && let Some(opener) = self.opener.take()
        {
            opener.wake();
        }
        Ok(())
    }

    fn frames(&mut self, input: &[u8], now_ms: u64) -> Result<usize, afpa_h2::Fatal> {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let (n, event) = self.machine.receive(rest, &mut self.head, now_ms)?;
            at += n;
            let Some(event) = event else { return Ok(at) };
            self.happened(event);
        }
    }

    fn happened(&mut self, event: Event<'_>) {
        let Self { machine, head, slots, .. } = self;
        match event {
            Event::Head { id, end, .. } => {
                let Some(slot) = slots.get_mut(&id) else { return };
                if !slot.head(head, end) {
                    machine.reset(id, afpa_h2::ErrorCode::EnhanceYourCalm);
                    slot.gone(Gone::Malformed);
                }
            }
            Event::Data { id, bytes, end } => {
                if let Some(slot) = slots.get_mut(&id) {
                    slot.content(bytes, end);
                }
            }
            Event::Trailers { id } => {
                if let Some(slot) = slots.get_mut(&id) {
                    slot.trailers(head.text());
                }
            }
            Event::Gone { id, why } => {
                if let Some(slot) = slots.get_mut(&id) {
                    slot.gone(why);
                }
            }
            Event::Leaving => {
                while let Some(id) = machine.next_unprocessed() {
                    if let Some(slot) = slots.get_mut(&id) {
                        slot.gone(Gone::Unprocessed);
                    }
                }
            }
        }
    }

    /// The connection has ended, and with it all that it carried.
    fn over(&mut self) {
        if self.below.take().is_some()
            && let Some(tally) = &self.tally
        {
            tally.closed();
        }
        for slot in self.slots.values_mut() {
            slot.gone(Gone::Reset);
        }
        if let Some(opener) = self.opener.take() {
            opener.wake();
        }
    }

    fn room(&self) -> usize {
        match self.below.is_some() && self.closing_ms.is_none() {
            true => self.machine.room_for_streams().saturating_sub(self.reserved),
            false => 0,
        }
    }

    fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.reserved == 0
    }

    /// There is something for the driver to do.
    fn wake(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }
}

/// Sends what the machine has to say, as far as the server takes it.
fn flush(
    machine: &mut Connection,
    sent: &mut usize,
    below: &mut ServerStream,
    cx: &mut Context<'_>,
) -> io::Result<()> {
    let output = machine.output();
    while let Some(rest) = output.get(*sent..).filter(|rest| !rest.is_empty()) {
        match below.poll_write(cx, rest) {
            Poll::Ready(Ok(n @ 1..)) => *sent += n,
            Poll::Ready(Ok(_)) => return Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => break,
        }
    }
    if *sent >= output.len() {
        output.clear();
        *sent = 0;
    } else if *sent > MOST_UNSENT {
        output.drain(..*sent);
        *sent = 0;
    }
    Ok(())
}
