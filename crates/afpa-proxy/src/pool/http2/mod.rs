//! Connections of HTTP/2 to servers, each of which carries many requests of its core.
//!
//! A stream of such a connection is a [`ServerStream`](super::ServerStream) like any other: its owner writes a request of HTTP/1.1 to it,
//! and reads a response of HTTP/1.1 from it. So an exchange, a probe, and the parser of responses need not know of
//! HTTP/2 (docs/decisions/http2-to-servers.md). [`afpa_h2::client`] speaks the protocol; a task for each connection
//! moves its bytes.

mod servers;
mod silence;
mod slot;
mod state;
mod stream;

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use afpa_framework::steady_ms;
use afpa_h2::Limits;

use super::carrier::Carrier;
use super::connect::{Connector, To};
use super::tls::TlsToServers;
pub(crate) use servers::{Http2Servers, Idle};
pub(crate) use silence::LONG_MS;
use state::{State, drive};
pub use stream::Http2Stream;
pub(crate) use stream::gone;

/// A connection to a server that was asked for HTTP/2.
#[derive(Debug)]
pub(crate) enum Reached {
    /// The server has chosen HTTP/1.1.
    Http1(Carrier),
    /// It speaks HTTP/2.
    Http2(Rc<Http2Connection>),
}

/// The settings of a connection. Requests with other settings do not get it: it may be unencrypted, or trust another
/// authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MadeFor {
    /// How the server is reached by TLS.
    pub(crate) tls: Option<TlsToServers>,
    /// The limits for the server.
    pub(crate) limits: Limits,
}

/// Connects to a server: by TLS if there are settings for it, which offer HTTP/2 and HTTP/1.1; else by prior knowledge
/// (RFC 9113 section 3.3). A connection of HTTP/2 is there once the server has said SETTINGS.
///
/// # Errors
/// With the error of the system, the fault of the server's certificate, or that the server speaks no HTTP/2.
pub(crate) async fn reach(
    connector: &Connector,
    to: To<'_>,
    made_for: MadeFor,
) -> io::Result<Reached> {
    let below = Carrier::connect(connector, to, made_for.tls.as_ref(), true).await?;
    if !below.may_speak_http2() {
        return Ok(Reached::Http1(below));
    }
    let state = RefCell::new(State::new(below, made_for.limits, to.tally.cloned()));
    let connection = Rc::new(Http2Connection { made_for, state });
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

/// Ends a connection whose maker does not wait for it any more.
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

/// How long a connection may take to say goodbye, in milliseconds.
const GOODBYE_MS: u64 = 3_000;

impl Http2Connection {
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

    /// Asks a server that was silent whether it is there. Ready with whether it is.
    pub(crate) async fn answers(&self) -> bool {
        self.state.borrow_mut().ask(steady_ms());
        poll_fn(|cx| self.poll_heard(cx)).await
    }

    fn poll_heard(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.state.borrow_mut();
        if state.below.is_none() {
            return Poll::Ready(false);
        }
        if !state.silence.is_asked() {
            return Poll::Ready(true);
        }
        if !state.askers.iter().any(|known| known.will_wake(cx.waker())) {
            state.askers.push(cx.waker().clone());
        }
        Poll::Pending
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

    /// Whether a server with requests is silent, and has not answered a PING either. It gets no more requests; the ones
    /// that it has keep their time-outs, because their answers may still come.
    fn is_dead(&self, now_ms: u64) -> bool {
        let mut state = self.state.borrow_mut();
        if !state.slots.is_empty() && state.silence.is_due(now_ms) {
            state.ask(now_ms);
        }
        state.silence.is_unanswered(now_ms)
    }

    /// For how long it has carried nothing, in milliseconds; `None`: it carries something.
    fn rests_ms(&self, now_ms: u64) -> Option<u64> {
        let state = self.state.borrow();
        state.is_idle().then(|| now_ms.saturating_sub(state.used_ms))
    }

    /// To be called once a second.
    fn tick(&self, now_ms: u64, wanted: bool, idle_ms: u64) {
        let (is_idle, used, closing) = {
            let state = self.state.borrow();
            (state.is_idle(), state.used_ms, state.closing_ms)
        };
        let unused = now_ms.saturating_sub(used);
        let wanted = wanted && !self.is_dead(now_ms);
        if is_idle
            && closing.is_some_and(|since| now_ms.saturating_sub(since.max(used)) > GOODBYE_MS)
        {
            self.end();
        } else if !wanted || (is_idle && unused >= idle_ms) {
            self.close();
        }
    }
}

#[cfg(test)]
mod tests;
