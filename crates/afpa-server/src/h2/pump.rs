//! *Send response*: content by priority into DATA frames, and the output to the client.

use std::rc::Rc;
use std::task::{Context, Poll};

use afpa_cache::root::fetch;
use afpa_framework::Module;
use afpa_h2::{ErrorCode, StreamId};

use super::mux::{Filled, KEPT, LEAST_KEPT, Mux};
use super::outcome::Outcome;
use super::{H2, OUTPUT};
use crate::connection::End;
use crate::transport::Transport;
use crate::turns::Claim;

/// Output for which an idle connection keeps the memory: that of a small answer.
const IDLE: usize = 4 * 1024;

/// Frees the memory of a buffer that was larger than this.
fn shrink(empty: &mut Vec<u8>, most: usize) {
    debug_assert!(empty.is_empty(), "nothing is lost");
    if empty.capacity() > most {
        *empty = Vec::new();
    }
}

impl<M: Module, T: Transport> H2<M, T> {
    /// Fills the output with content, as far as the windows allow. Returns whether there is output now.
    pub(super) fn pump(&mut self, cx: &mut Context<'_>) -> bool {
        let mux = Rc::clone(&self.mux);
        loop {
            let next = {
                let mut mux = mux.borrow_mut();
                if self.ends.is_some() || mux.connection.output().len() >= OUTPUT {
                    break;
                }
                mux.connection.next_to_send()
            };
            let Some((id, room)) = next else { break };
            if !self.has_turn(cx, id) {
                break;
            }
            self.send_some(id, room);
        }
        let mut mux = mux.borrow_mut();
        let output = mux.connection.output();
        if !output.is_empty() {
            std::mem::swap(&mut self.sending, output);
            self.times.blocked_ms = None;
        }
        !self.sending.is_empty()
    }

    /// Whether this connection's long responses may go on, among those of the core.
    fn has_turn(&mut self, cx: &mut Context<'_>, id: StreamId) -> bool {
        let worker = &self.inner.worker;
        let claim = self.mux.borrow().streams.get(&id).map_or_else(Claim::default, |stream| {
            Claim { priority: stream.priority, bytes_left: stream.left() }
        });
        self.ticket.poll(cx, claim, || worker.clock.now().steady_ms()).is_ready()
    }

    /// One DATA frame of a stream, or its end.
    fn send_some(&mut self, id: StreamId, room: usize) {
        let worker = Rc::clone(&self.inner.worker);
        let now = worker.clock.cached_now();
        let mut mux = self.mux.borrow_mut();
        let Mux { connection, streams, progress_until_ms, pace, .. } = &mut *mux;
        let Some(stream) = streams.get_mut(&id) else {
            connection.set_pending(id, None);
            return;
        };
        let start = connection.begin_data();
        let filled = stream.fill(connection.output(), room);
        let length = connection.output().len().saturating_sub(start + afpa_h2::frame::HEADER);
        stream.sent += length as u64;
        let left = stream.left();
        let is_last = stream.whole && left == 0;
        match filled {
            Filled::Bytes => {}
            Filled::NotResident(file, at, length) => {
                connection.output().truncate(start);
                // The stream waits; others go on.
                connection.set_pending(id, None);
                let helpers = worker.helpers.borrow().clone();
                drop(mux);
                self.spawn(id, async move {
                    // If no helper is free, the core reads the file itself: slower, but correct.
                    let _ = helpers.run(move || fetch(&file, at, length)).await;
                    Outcome::Resident(id)
                });
                return;
            }
            Filled::Broken => {
                connection.output().truncate(start);
                worker.counters.aborted.add(1);
                mux.connection.reset(id, ErrorCode::Internal);
                drop(mux);
                self.on_reset(id, now);
                return;
            }
        }
        *pace = self.times.pace;
        let now_ms = now.steady_ms();
        *progress_until_ms = pace.extended(now_ms.max(*progress_until_ms), now_ms, length);
        let trailers = if is_last { stream.trailers.take() } else { None };
        connection.end_data(start, id, is_last && trailers.is_none());
        if let Some(trailers) = trailers {
            connection.send_head(id, true, |out| out.extend_from_slice(&trailers));
        }
        worker.turns.sent(length);
        if is_last {
            stream.is_half_closed = stream.is_tunnel() && connection.has(id);
            if !stream.is_half_closed {
                drop(mux);
                self.on_reset(id, now);
            }
            return;
        }
        stream.deadline_ms = pace.extended(stream.deadline_ms, now_ms, length);
        if connection.is_stopped(id)
            && stream.bytes.capacity() > 2 * LEAST_KEPT.max(stream.bytes.len())
        {
            // It may stay so for long.
            stream.bytes.shrink_to(LEAST_KEPT);
        }
        if stream.bytes.len() < KEPT / 2
            && let Some(sender) = stream.sender.take()
        {
            sender.wake();
        }
        connection.set_pending(id, (left > 0).then_some(left));
        if left > 0 && length == room && connection.charge_short(length, now.steady_ms()).is_err() {
            self.ends = Some(End::Finished);
        }
    }

    /// Sends the output. Ready when all of it was sent.
    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        while !self.is_sent() {
            let Self { inner, sending, .. } = self;
            let sent = if self.sent == 0 && self.times.blocked_ms.is_none() {
                let sent = inner.transport.poll_send_gathered(cx, sending, false);
                self.handed_over = sent.is_pending();
                sent
            } else {
                let rest = sending.get(self.sent..).unwrap_or_default();
                inner.transport.poll_send(cx, rest, false)
            };
            let n = match sent {
                Poll::Ready(Ok(n)) => n,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(End::Gone)),
                Poll::Pending => return Poll::Pending,
            };
            inner.worker.counters.sent_bytes.add(n as u64);
            self.sent += n;
            if self.sent >= self.sending.len() {
                self.sent = 0;
                self.times.blocked_ms = None;
                self.sending.clear();
                shrink(&mut self.sending, 2 * OUTPUT);
            } else {
                // From now on it waits for the client, for so long at most.
                let now = inner.worker.clock.now();
                let until = match self.times.blocked_ms {
                    Some(until) => self.times.pace.extended(until, now.steady_ms(), n),
                    None => self.times.write_deadline(now),
                };
                self.times.blocked_ms = Some(until);
                self.mux.borrow_mut().progressed(n, now.steady_ms());
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The connection waits for a request: it gives back the memory that its answers took.
    pub(super) fn give_back_memory(&mut self) {
        if self.sending.is_empty() {
            shrink(&mut self.sending, IDLE);
        }
        let Mux { connection, streams, .. } = &mut *self.mux.borrow_mut();
        if connection.output().is_empty() {
            shrink(connection.output(), IDLE);
        }
        if streams.is_empty() && streams.capacity() > 8 {
            streams.shrink_to_fit();
        }
    }
}
