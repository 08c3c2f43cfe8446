//! One connection of HTTP/2. Its requests walk the states of those of HTTP/1.1, and hit the same objects.
//!
//! ```text
//! receive ─▶ afpa_h2::Connection ─ events ─▶ `request`: the module's state functions ─▶ outbox
//!                   ▲                                             │ miss: a task for each stream
//! send ◀── output ──┴── `pump`: content, by priority ◀── `mux` ◀──┴── `client`: output of an exchange
//! ```
//!
//! The connection's task owns the socket and the protocol; it alone receives and sends. A stream whose answer comes from a
//! helper thread or a server has a task of its own, which shares [`mux::Mux`] with it. The module's connection data is that
//! of the connection: all that it holds is the client's, and a stream's content needs no skipping, because frames say
//! where it ends.

mod client;
mod mux;
mod outcome;
mod pump;
mod request;
mod task;
mod time;
mod upload;

pub(crate) use upload::Upload;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use afpa_framework::{Module, Now};
use afpa_h2::frame::kind;
use afpa_h2::{Event, Limits, ResponseReader, StreamId};
use tokio::task::JoinSet;

use crate::connection::{Connection, End};
use crate::transport::Transport;
use crate::turns::Ticket;
use mux::Mux;
use outcome::Outcome;
use time::{Times, Unfinished};

/// A connection of HTTP/2.
pub(crate) struct H2<M: Module, T> {
    inner: Connection<M, T>,
    mux: Rc<RefCell<Mux>>,
    /// The tasks of streams whose answers come from helper threads or servers.
    tasks: JoinSet<Outcome<M>>,
    reader: ResponseReader,
    /// Output that is being sent, and how much of it was.
    sending: Vec<u8>,
    sent: usize,
    /// `sending` was handed over by completion, and comes back. Until then it may be empty, and nothing else takes its
    /// place.
    handed_over: bool,
    ticket: Ticket,
    times: Times,
    /// The connection ends when the output has been sent.
    ends: Option<End>,
}

/// While so much output waits, nothing is received, and no content is taken from where it lies.
const OUTPUT: usize = 64 * 1024;

impl<M: Module, T: Transport> H2<M, T> {
    /// Goes on with a connection whose first bytes were the preface, or whose client has chosen HTTP/2 in its
    /// TLS handshake.
    pub(crate) fn new(mut inner: Connection<M, T>) -> Self {
        // Frames of requests and of content go both ways at once: none may wait for an answer.
        inner.transport.expects_more();
        let worker = Rc::clone(&inner.worker);
        worker.module.borrow_mut().has_streams(&mut inner.data);
        worker.counters.h2_connections.add(1);
        let limits = Limits { head: worker.largest_head, ..worker.settings.borrow().http2 };
        let connection = afpa_h2::Connection::new(limits);
        let times = Times::begin(worker.clock.now(), &worker.settings.borrow());
        let is_early = inner.early.is_some();
        let mux = Mux {
            connection,
            streams: HashMap::new(),
            waker: None,
            progress_until_ms: 0,
            pace: times.pace,
            is_early,
        };
        Self {
            mux: Rc::new(RefCell::new(mux)),
            tasks: JoinSet::new(),
            reader: ResponseReader::new(false, false),
            sending: Vec::new(),
            sent: 0,
            handed_over: false,
            ticket: worker.turns.ticket(),
            times,
            ends: None,
            inner,
        }
    }

    /// Serves the connection until either side ends it.
    pub(crate) async fn run(mut self) {
        let kept = self.inner.restore_input();
        let now = self.inner.worker.clock.now();
        self.digest(kept, now);
        let end = poll_fn(|cx| self.poll(cx)).await;
        self.abandon();
        // Exchanges end when their client is gone, and their answers are counted.
        while let Some(outcome) = self.tasks.join_next().await {
            self.on_outcome(outcome.ok());
        }
        self.abandon();
        self.inner.end(end).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        {
            let mut mux = self.mux.borrow_mut();
            if !mux.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
                mux.waker = Some(cx.waker().clone());
            }
        }
        let mut rounds = ROUNDS;
        loop {
            while let Poll::Ready(Some(outcome)) = self.tasks.poll_join_next(cx) {
                self.on_outcome(outcome.ok());
            }
            if let Poll::Ready(Err(end)) = self.poll_send(cx) {
                return Poll::Ready(end);
            }
            if self.is_sent() {
                if self.pump(cx) {
                    continue;
                }
                if let Some(end) = self.ends {
                    return Poll::Ready(end);
                }
                if self.mux.borrow().is_done() {
                    return Poll::Ready(End::Finished);
                }
            }
            if self.ends.is_none() && !self.handed_over && self.may_receive() {
                if rounds == 0 {
                    // Others get their turn.
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                rounds -= 1;
                match self.poll_receive(cx) {
                    Poll::Ready(Some(end)) => return Poll::Ready(end),
                    Poll::Ready(None) => continue,
                    Poll::Pending => {}
                }
            }
            match self.poll_time(cx) {
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Whether nothing of the output is being sent.
    fn is_sent(&self) -> bool {
        self.sending.is_empty() && !self.handed_over
    }

    /// Whether there is room for the output that an arrival may cause.
    fn may_receive(&self) -> bool {
        let waiting = self.sending.len() - self.sent;
        waiting + self.mux.borrow_mut().connection.output().len() < OUTPUT
    }

    /// Receives once, and answers. Ready with an end if there is one.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        let worker = Rc::clone(&self.inner.worker);
        let kept = self.inner.restore_input();
        if std::mem::take(&mut self.times.unfinished) {
            self.digest(kept, worker.clock.now());
            return Poll::Ready(None);
        }
        let received = {
            let mut scratch = worker.scratch.borrow_mut();
            let room = scratch.get_mut(kept..).unwrap_or_default();
            self.inner.transport.poll_receive(cx, room)
        };
        if self.inner.note_handshake() {
            self.mux.borrow_mut().finish_handshake();
        }
        let arrived = match std::task::ready!(received) {
            Ok(0) => return Poll::Ready(Some(End::Gone)),
            Ok(n) => n,
            Err(error) => {
                if let Some(early) = &mut self.inner.early {
                    early.fail(&error);
                }
                return Poll::Ready(Some(End::Gone));
            }
        };
        worker.counters.receives.add(1);
        worker.counters.received_bytes.add(arrived as u64);
        self.digest(kept + arrived, worker.clock.now());
        Poll::Ready(None)
    }

    /// Reads the frames in the first bytes of the receive buffer, and answers the requests that the cache can answer.
    fn digest(&mut self, arrived: usize, now: Now) {
        let worker = Rc::clone(&self.inner.worker);
        let scratch = worker.scratch.borrow();
        let mut head = worker.h2_head.borrow_mut();
        let mut input = scratch.get(..arrived).unwrap_or_default();
        loop {
            if self.mux.borrow_mut().connection.output().len() >= OUTPUT {
                self.times.unfinished = !input.is_empty();
                break;
            }
            let got = self.mux.borrow_mut().connection.receive(input, &mut head, now.steady_ms());
            // Also where a fault of the connection follows: the next connection of this core has the same head.
            for said in head.take_refused() {
                worker.module.borrow_mut().malformed(&mut self.inner.data, &said, now);
            }
            let (n, event) = match got {
                Ok(got) => got,
                Err(fatal) => {
                    tracing::debug!(%fatal, "a connection of HTTP/2 ends");
                    worker.counters.h2_faults.add(1);
                    self.ends = Some(End::Finished);
                    input = b"";
                    break;
                }
            };
            input = input.get(n..).unwrap_or_default();
            match event {
                None => break,
                Some(Event::Request { id, end }) => {
                    self.times.asked(now, &worker.settings.borrow());
                    self.on_request(id, end, &head, now);
                }
                Some(Event::Data { id, bytes, end }) => self.on_data(id, bytes, end),
                Some(Event::Trailers { id }) => self.on_trailers(id, head.text()),
                Some(Event::Reset { id }) => self.on_reset(id, now),
            }
        }
        self.inner.keep(input);
        let left = match input.get(3) {
            _ if self.times.unfinished => Unfinished::Nothing,
            _ if self.mux.borrow().connection.is_within_head() => Unfinished::Head,
            _ if input.is_empty() => Unfinished::Nothing,
            Some(&kind::DATA) => Unfinished::Content,
            _ => Unfinished::Frame,
        };
        let progress = input.len() < arrived;
        self.times.arrived(now, left, progress, &worker.settings.borrow());
    }

    /// The client is gone: drops the rest of every response.
    fn abandon(&mut self) {
        let ids: Vec<StreamId> = self.mux.borrow().streams.keys().copied().collect();
        let now = self.inner.worker.clock.now();
        for id in ids {
            self.on_reset(id, now);
        }
    }
}

/// How often a connection may receive before others get their turn.
const ROUNDS: u32 = 8;
