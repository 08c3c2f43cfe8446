//! Waits for data, within the time-outs for clients.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use afpa_framework::{Module, Timeout, Waiting};

use super::{Connection, millis};
use crate::transport::Transport;

/// How a wait ended.
pub(super) enum Received {
    /// So many bytes are in the worker's receive buffer, including those kept from before.
    Data(usize),
    /// The client took too long.
    TimedOut(Timeout),
    /// The worker drains, or the listener was given up, and no request has begun.
    Draining,
    /// The client sends nothing more.
    Ended,
    /// The connection broke.
    Gone,
}

impl<M: Module, T: Transport> Connection<M, T> {
    /// Waits for data. The data is received into the worker's receive buffer, which this connection uses until
    /// it waits again.
    pub(super) async fn receive(&mut self) -> Received {
        if std::mem::take(&mut self.unfinished) {
            return Received::Data(self.restore_input());
        }
        if self.waiting == Waiting::Idle && self.early.is_none() && self.is_to_end() {
            return Received::Draining;
        }
        let mut deadline = self.receive_deadline();
        loop {
            let idle = self.waiting == Waiting::Idle || self.seems_new();
            self.worker.table.set(self.entry, Some(deadline), idle);
            let received = poll_fn(|cx| self.poll_receive(cx)).await;
            if self.note_handshake() && matches!(received, Received::TimedOut(_)) {
                deadline = self.receive_deadline();
                continue;
            }
            let Received::TimedOut(Timeout::Idle) = received else { return received };
            let Some(left) = self.time_left() else { return received };
            self.waiting = Waiting::Idle;
            deadline = self.worker.clock.now().steady_ms() + millis(left);
        }
    }

    /// The rest of the idle time-out of a connection on which the kernel's fast path has answered.
    fn time_left(&self) -> Option<Duration> {
        let since = self.since_kernel_answer()?;
        let idle_timeout = self.worker.settings.borrow().idle_timeout;
        idle_timeout.checked_sub(since).filter(|left| !left.is_zero())
    }

    /// How long ago the kernel's fast path answered on this connection; `None`: it never did.
    fn since_kernel_answer(&self) -> Option<Duration> {
        let activity = self.worker.settings.borrow().kernel_activity.clone()?;
        let (client, server) = self.transport.addresses()?;
        activity.since(client, server)
    }

    /// Whether no byte of a request has arrived in user mode.
    fn seems_new(&self) -> bool {
        self.waiting == Waiting::Head && self.input.is_empty()
    }

    /// Whether the core ends its idle connections, or its listener was given up.
    fn is_to_end(&self) -> bool {
        self.worker.ends_idle.get() || self.worker.table.is_leaving(self.entry)
    }

    /// Whether it may be closed then. A new connection may not, because its first request is still to come.
    fn may_be_drained(&self) -> bool {
        self.is_to_end()
            && !self.transport.is_early()
            && (self.waiting == Waiting::Idle
                || self.seems_new() && self.since_kernel_answer().is_some())
    }

    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let kept = self.restore_input();
        let worker = &self.worker;
        let mut scratch = worker.scratch.borrow_mut();
        let Some(room) = scratch.get_mut(kept..).filter(|room| !room.is_empty()) else {
            // The buffer is full, although the module must decide before that: room would never come.
            return Poll::Ready(Received::Gone);
        };
        match self.transport.poll_receive(cx, room) {
            Poll::Ready(Ok(0)) => Poll::Ready(Received::Ended),
            Poll::Ready(Err(error)) => {
                if let Some(early) = &mut self.early {
                    early.fail(&error);
                }
                if let Some(said) = self.transport.take_malformed() {
                    let now = worker.clock.cached_now();
                    worker.module.borrow_mut().malformed(&mut self.data, &said, now);
                }
                Poll::Ready(Received::Gone)
            }
            Poll::Ready(Ok(arrived)) => {
                worker.counters.receives.add(1);
                worker.counters.received_bytes.add(arrived as u64);
                Poll::Ready(Received::Data(kept + arrived))
            }
            Poll::Pending if worker.table.wait(self.entry, cx.waker()) => {
                Poll::Ready(Received::TimedOut(match self.waiting {
                    Waiting::Idle => Timeout::Idle,
                    Waiting::Head if self.input.is_empty() => Timeout::Idle,
                    Waiting::Head => Timeout::Head,
                    Waiting::Body => Timeout::Body,
                }))
            }
            Poll::Pending if self.may_be_drained() => Poll::Ready(Received::Draining),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Copies the kept data to the front of the receive buffer. Returns its length.
    pub(crate) fn restore_input(&self) -> usize {
        let mut scratch = self.worker.scratch.borrow_mut();
        let kept = self.input.len().min(scratch.len());
        scratch[..kept].copy_from_slice(&self.input[..kept]);
        kept
    }

    /// When this wait expires. A head has one deadline, which its further bytes do not extend.
    fn receive_deadline(&mut self) -> u64 {
        let settings = self.worker.settings.borrow();
        let now = self.worker.clock.cached_now().steady_ms();
        let deadline = match self.waiting {
            Waiting::Idle => now + millis(settings.idle_timeout),
            Waiting::Head => self.head_deadline,
            Waiting::Body => now + millis(settings.body_timeout),
        };
        self.early.as_ref().map_or(deadline, |early| deadline.min(early.deadline_ms))
    }

    /// Records the purpose of the connection's wait from now on, and keeps the rest of the data.
    pub(super) fn wait_for(&mut self, waiting: Waiting, left: &[u8]) {
        let head_begins = waiting == Waiting::Head && self.waiting != Waiting::Head;
        if head_begins {
            let timeout = millis(self.worker.settings.borrow().head_timeout);
            self.head_deadline = self.worker.clock.now().steady_ms() + timeout;
        }
        self.waiting = waiting;
        self.keep(left);
    }

    /// Keeps data that is not part of a request yet. An idle connection gives its buffer back.
    pub(crate) fn keep(&mut self, left: &[u8]) {
        if left.is_empty() {
            self.input = Vec::new();
        } else {
            self.input.clear();
            self.input.extend_from_slice(left);
        }
    }
}
