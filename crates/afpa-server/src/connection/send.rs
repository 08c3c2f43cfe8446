//! *Send response*: the gathered bytes in one write, then parts from pinned memory and from files (`file`).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use afpa_framework::{Client, Context as RunsIn, Module, Outbox, Part, State, Table, extended};
use bytes::Bytes;

use super::{Connection, End, millis};
use crate::transport::{Leaving, Transport};
use crate::turns::Claim;
use crate::worker::Worker;

impl<M: Module, T: Transport> Connection<M, T> {
    /// Sends the outbox, and the rest of earlier responses. On success the outbox is empty.
    pub(super) async fn send_response(&mut self) -> Result<(), End> {
        self.send_outbox().await?;
        if !self.transport.is_flushed() {
            self.write_until_ms = None;
            let flush = |transport: &mut T, cx: &mut Context<'_>| {
                transport.poll_flush(cx).map(|flushed| flushed.map(|()| 0))
            };
            self.while_client_reads(flush).await?;
        }
        Ok(())
    }

    async fn send_outbox(&mut self) -> Result<(), End> {
        if self.worker.outbox.borrow().is_empty() {
            return Ok(());
        }
        let mut out = self.take_outbox();
        let announced: u64 = out.parts.iter().map(Part::len).sum();
        self.priority = out.priority;
        let parts = std::mem::take(&mut out.parts);
        let receipt = out.receipt.take();
        if out.block > 0 {
            let content = out.bytes.len().saturating_sub(out.block) as u64 + announced;
            self.transport.begin_section(out.block, content);
        }
        if !parts.is_empty() {
            self.worker.counters.long_answers.add(1);
            // Nothing is received while it is sent, and a round trip does not matter to it.
            self.wait_for_handshake().await?;
            self.leave_ring(Leaving::LongAnswer).await?;
        }
        let sent = match self.send_gathered(out, !parts.is_empty()).await {
            Ok(()) if parts.is_empty() => return Ok(()),
            Ok(()) => Box::pin(self.send_parts(parts)).await,
            Err(end) => Err((end, 0)),
        };
        if let Some(receipt) = receipt {
            let bytes = sent.as_ref().map_or_else(|(_, bytes)| *bytes, |()| announced);
            let now = self.worker.clock.now();
            self.worker.module.borrow_mut().sent(&receipt, now, bytes);
        }
        sent.map_err(|(end, _)| end)
    }

    /// Sends the gathered bytes, with one write where the socket takes them.
    async fn send_gathered(&mut self, mut out: Outbox, more: bool) -> Result<(), End> {
        let sent = match const { sends_in_thread::<M::Table>() } {
            true => Box::pin(self.send_in_thread(&mut out.bytes, more)).await,
            false => {
                poll_fn(|cx| self.transport.poll_send_gathered(cx, &mut out.bytes, more)).await
            }
        };
        let sent = sent.map_err(|_| End::Gone)?;
        self.count_sent(sent);
        if sent == out.bytes.len() {
            self.return_outbox(out);
            return Ok(());
        }
        // A slow reader: it keeps a copy of the rest, not the worker's large buffer.
        let rest = out.bytes.split_off(sent);
        self.return_outbox(out);
        self.send_all(&rest, more).await.map_err(|(end, _)| end)
    }

    /// Has the connection wait for readiness from now on.
    pub(super) async fn leave_ring(&mut self, why: Leaving) -> Result<(), End> {
        poll_fn(|cx| self.transport.poll_leave_ring(cx, why)).await.map_err(|_| End::Gone)
    }

    /// Sends all of `bytes`, as long as the client takes some within each write time-out. An error tells how
    /// many bytes were sent before.
    pub(super) async fn send_all(&mut self, bytes: &[u8], more: bool) -> Result<(), (End, u64)> {
        let mut rest = bytes;
        self.write_until_ms = None;
        while !rest.is_empty() {
            let sent = (bytes.len() - rest.len()) as u64;
            let n = self
                .while_client_reads(|transport, cx| transport.poll_send(cx, rest, more))
                .await
                .map_err(|end| (end, sent))?;
            rest = rest.get(n..).unwrap_or_default();
        }
        Ok(())
    }

    /// As `send_all`, in turn.
    async fn send_long(&mut self, bytes: &[u8], more: bool) -> Result<(), (End, u64)> {
        let mut rest = bytes;
        self.write_until_ms = None;
        while !rest.is_empty() {
            let sent = (bytes.len() - rest.len()) as u64;
            let n = self
                .in_turn(rest.len() as u64, |transport, cx| transport.poll_send(cx, rest, more))
                .await
                .map_err(|end| (end, sent))?;
            rest = rest.get(n..).unwrap_or_default();
        }
        Ok(())
    }

    /// As `send_long`, without a copy.
    async fn send_kept(&mut self, mut bytes: Bytes) -> Result<(), (End, u64)> {
        let length = bytes.len();
        self.write_until_ms = None;
        while !bytes.is_empty() {
            let left = bytes.len();
            self.in_turn(left as u64, |transport, cx| transport.poll_send_kept(cx, &mut bytes))
                .await
                .map_err(|end| (end, (length - left) as u64))?;
        }
        Ok(())
    }

    /// Sends the parts in order. An error tells how many of their bytes were sent before.
    async fn send_parts(&mut self, mut parts: VecDeque<Part>) -> Result<(), (End, u64)> {
        let mut before = 0;
        self.behind = parts.iter().map(Part::len).sum();
        while let Some(part) = parts.pop_front() {
            let more = !parts.is_empty();
            let length = part.len();
            self.behind -= length;
            match part {
                Part::Bytes(bytes) => self.send_long(&bytes, more).await,
                Part::Shared(bytes, range) => {
                    let bytes = (*bytes).as_ref();
                    self.send_long(bytes.get(range).unwrap_or_default(), more).await
                }
                Part::Pinned(object, range) if T::KEEPS_BYTES => {
                    let range = range.start.min(object.len())..range.end.min(object.len());
                    self.send_kept(Bytes::from_owner(object).slice(range)).await
                }
                Part::Pinned(object, range) => {
                    self.send_long(object.get(range).unwrap_or_default(), more).await
                }
                Part::File { file, stamp, range } => self.send_file(file, stamp, range, more).await,
            }
            .map_err(|(end, sent)| (end, before + sent))?;
            before += length;
        }
        Ok(())
    }

    /// Runs `send` until it succeeds, as long as the client reads.
    pub(super) async fn while_client_reads(
        &mut self,
        mut send: impl FnMut(&mut T, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Result<usize, End> {
        self.allow_write_time();
        self.in_flight = u64::MAX;
        let n = poll_fn(|cx| match send(&mut self.transport, cx) {
            Poll::Ready(result) => Poll::Ready(result.map_err(|_| End::Gone)),
            Poll::Pending if self.worker.table.wait(self.entry, cx.waker()) => {
                self.worker.counters.timed_out.add(1);
                Poll::Ready(Err(End::Gone))
            }
            Poll::Pending => Poll::Pending,
        })
        .await?;
        self.count_sent(n);
        self.earn_write_time(n);
        Ok(n)
    }

    /// So many bytes have left, and may still be on their way.
    pub(super) fn count_sent(&mut self, bytes: usize) {
        self.worker.counters.sent_bytes.add(bytes as u64);
        self.in_flight = self.in_flight.saturating_add(bytes as u64);
    }

    /// As `while_client_reads`, but each attempt waits for its turn among the long responses of the core. `left`:
    /// bytes of this part that are to be sent.
    pub(super) async fn in_turn(
        &mut self,
        left: u64,
        mut send: impl FnMut(&mut T, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Result<usize, End> {
        let worker = Rc::clone(&self.worker);
        let (mut ticket, claim) = (worker.turns.ticket(), self.claim(left));
        let sent = self.while_client_reads(|transport, cx| {
            ready!(ticket.poll(cx, claim, || worker.clock.now().steady_ms()));
            send(transport, cx)
        });
        let n = sent.await?;
        worker.turns.sent(n);
        Ok(n)
    }

    /// Waits for a turn, for an attempt that does not wait for the client.
    pub(super) async fn turn(&mut self, left: u64) {
        let worker = &self.worker;
        let (mut ticket, claim) = (worker.turns.ticket(), self.claim(left));
        poll_fn(|cx| ticket.poll(cx, claim, || worker.clock.now().steady_ms())).await;
    }

    /// The claim for the rest of the response, of whose present part `left` bytes are left.
    fn claim(&self, left: u64) -> Claim {
        Claim { priority: self.priority, bytes_left: left + self.behind }
    }

    /// The client is waited for: at first as long as the time-out says, then as long as it keeps to the least rate.
    fn allow_write_time(&mut self) {
        let timeout = millis(self.worker.settings.borrow().write_timeout);
        let now_ms = self.worker.clock.now().steady_ms();
        let until_ms = *self.write_until_ms.get_or_insert(now_ms + timeout);
        self.worker.table.set(self.entry, Some(until_ms), false);
    }

    /// The client for which the response waits has taken so many bytes.
    fn earn_write_time(&mut self, bytes: usize) {
        let Some(until_ms) = self.write_until_ms else { return };
        let settings = self.worker.settings.borrow();
        let (timeout, now_ms) =
            (millis(settings.write_timeout), self.worker.clock.now().steady_ms());
        let until_ms = extended(until_ms, now_ms, timeout, bytes as u64, settings.least_rate);
        self.write_until_ms = Some(until_ms);
    }
}

/// Whether *send response* has a thread context in this table.
const fn sends_in_thread<T: Table>() -> bool {
    matches!(State::SendResponse.context::<T>(), RunsIn::Thread)
}

/// Shuts down the sending direction and reads for a moment. Closing while the client still sends would reset
/// the connection, and the reset can destroy the last response before the client has read it.
pub(super) async fn linger<M: Module, T: Transport>(connection: &mut Connection<M, T>) {
    const PATIENCE_MS: u64 = 2_000;
    const MOST: u64 = 1024 * 1024;
    let worker = Rc::clone(&connection.worker);
    worker.table.set(connection.entry, Some(worker.clock.now().steady_ms() + PATIENCE_MS), true);
    let shut_down = poll_fn(|cx| match connection.transport.poll_shutdown(cx) {
        Poll::Pending if worker.table.wait(connection.entry, cx.waker()) => Poll::Ready(false),
        shut_down => shut_down.map(|result| result.is_ok()),
    });
    if !shut_down.await {
        return;
    }
    let mut read = 0;
    // As long as a drain gives idle connections time (an upgrade), there is time for this, too.
    let hurries = || worker.ends_idle.get();
    while read < MOST && !hurries() {
        let n = poll_fn(|cx| {
            let mut scratch = worker.scratch.borrow_mut();
            match connection.transport.poll_receive(cx, &mut scratch) {
                Poll::Ready(result) => Poll::Ready(result.unwrap_or(0)),
                Poll::Pending if worker.table.wait(connection.entry, cx.waker()) => Poll::Ready(0),
                Poll::Pending if hurries() => Poll::Ready(0),
                Poll::Pending => Poll::Pending,
            }
        })
        .await;
        if n == 0 {
            return;
        }
        read += n as u64;
    }
}

/// Sends a last answer to a client beyond the limits, as far as it fits the empty socket buffer, and closes.
pub(crate) fn say_last_words<M: Module, T: Transport>(
    worker: &Rc<Worker<M>>,
    mut transport: T,
    client: Client,
) {
    let mut out = worker.outbox.take();
    worker.module.borrow_mut().refuse_connection(client, worker.clock.now(), &mut out);
    // One attempt, without an entry in the table: a client that is not admitted costs no memory.
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    if let Poll::Ready(Ok(n)) = transport.poll_send(&mut cx, &out.bytes, false) {
        worker.counters.sent_bytes.add(n as u64);
    }
    let _ = transport.poll_shutdown(&mut cx);
    out.clear();
    worker.outbox.replace(out);
}
