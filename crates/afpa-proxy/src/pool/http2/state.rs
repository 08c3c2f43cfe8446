//! The work of a connection's task, event by event and byte by byte.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use afpa_framework::steady_ms;
use afpa_h2::client::{Connection, Event, Gone, ResponseHead};
use afpa_h2::{Limits, StreamId};
use foldhash::fast::RandomState;

use super::silence::Silence;
use super::slot::{self, Slot};
use super::{Carrier, Http2Connection};
use crate::select::Tally;

#[derive(Debug)]
pub(super) struct State {
    pub(super) machine: Connection,
    /// `None`: it is over.
    pub(super) below: Option<Carrier>,
    /// Bytes of the machine's output that were sent already.
    pub(super) sent: usize,
    /// The beginning of a frame.
    pub(super) input: Vec<u8>,
    pub(super) head: ResponseHead,
    pub(super) slots: HashMap<StreamId, Slot, RandomState>,
    /// Streams whose content waits to be sent, in turns.
    pub(super) sending: VecDeque<StreamId>,
    /// Streams that were promised and not opened yet.
    pub(super) reserved: usize,
    pub(super) driver: Option<Waker>,
    pub(super) opener: Option<Waker>,
    pub(super) silence: Silence,
    /// The tasks that wait for a sign of life of the server.
    pub(super) askers: Vec<Waker>,
    /// When it was last in use.
    pub(super) used_ms: u64,
    /// Since when it takes no new streams, because we do not want it any more.
    pub(super) closing_ms: Option<u64>,
    pub(super) tally: Option<Tally>,
}

/// Bytes that one read takes.
const READ: usize = 32 * 1024;

/// While so much waits to be sent, no more content is added to it.
const MOST_UNSENT: usize = 64 * 1024;

/// While so much waits, nothing more is read and no stream is opened: a server that reads nothing can make neither our
/// answers to its frames pile up nor the requests of clients that come and go. It is more than content alone can be, because a
/// server may want to be read before it reads.
const STUCK: usize = 4 * MOST_UNSENT;

/// Reads before other tasks have their turn.
const READS: usize = 8;

/// Moves the bytes of a connection until its end.
pub(super) async fn drive(connection: Rc<Http2Connection>) {
    let mut room = vec![0; READ];
    poll_fn(|cx| connection.state.borrow_mut().poll(cx, &mut room)).await;
}

impl State {
    pub(super) fn new(below: Carrier, limits: Limits, tally: Option<Tally>) -> Self {
        let now = steady_ms();
        if let Some(tally) = &tally {
            tally.http2_opened();
        }
        Self {
            machine: Connection::new(limits),
            below: Some(below),
            sent: 0,
            input: Vec::new(),
            head: ResponseHead::default(),
            slots: HashMap::default(),
            sending: VecDeque::new(),
            reserved: 0,
            driver: None,
            opener: None,
            silence: Silence::new(now),
            askers: Vec::new(),
            used_ms: now,
            closing_ms: None,
            tally,
        }
    }

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
            let unsent = self.machine.unsent().saturating_sub(self.sent);
            let is_leaving = self.machine.is_ready() && !self.machine.takes_streams();
            if unsent == 0 && is_leaving && is_idle {
                // One attempt: the end reaches the server if the socket takes it at once.
                let _ = below.poll_shutdown(cx);
                self.over();
                return Poll::Ready(());
            }
            if unsent > STUCK {
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
        machine.unsent() == 0 && sending.iter().any(|&id| machine.room(id) > 0)
    }

    /// Turns content that waits into frames: one for each stream in turn.
    fn pump(&mut self) {
        let mut blocked = 0;
        while blocked < self.sending.len() && self.unsent() < MOST_UNSENT {
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

    /// Processes bytes that have arrived.
    fn arrived(&mut self, bytes: &[u8]) -> Result<(), afpa_h2::Fatal> {
        let now = steady_ms();
        self.silence.heard(now);
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
        self.askers.drain(..).for_each(Waker::wake);
        Ok(())
    }

    /// Asks whether the server is there, if that was not asked.
    pub(super) fn ask(&mut self, now_ms: u64) {
        if self.silence.ask(now_ms) {
            self.machine.ping();
            self.wake();
        }
    }

    fn frames(&mut self, input: &[u8], now_ms: u64) -> Result<usize, afpa_h2::Fatal> {
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let (n, event) = self.machine.receive(rest, &mut self.head, now_ms)?;
            at += n;
            let Some(event) = event else { return Ok(at) };
            self.silence.moved();
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
    pub(super) fn over(&mut self) {
        if self.below.take().is_some()
            && let Some(tally) = &self.tally
        {
            tally.http2_closed();
        }
        for slot in self.slots.values_mut() {
            slot.gone(Gone::Lost);
        }
        if let Some(opener) = self.opener.take() {
            opener.wake();
        }
        self.askers.drain(..).for_each(Waker::wake);
    }

    /// Bytes that wait to be sent.
    fn unsent(&self) -> usize {
        self.machine.unsent().saturating_sub(self.sent)
    }

    pub(super) fn room(&self) -> usize {
        let is_good = self.below.is_some() && self.closing_ms.is_none();
        match is_good && self.unsent() <= STUCK {
            true => self.machine.room_for_streams().saturating_sub(self.reserved),
            false => 0,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.reserved == 0
    }

    /// There is something for the driver to do.
    pub(super) fn wake(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }
}

/// Sends the machine's output, as far as the server takes it.
fn flush(
    machine: &mut Connection,
    sent: &mut usize,
    below: &mut Carrier,
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
