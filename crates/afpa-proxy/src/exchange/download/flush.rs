//! The gathered bytes of a response on their way to the client.

use std::io;
use std::task::{Context, Poll};

use afpa_framework::ClientStream;

use super::{Broken, Download, LARGEST_GATHERED, LEAST_READ, MOST_COPIED, Phase};
use crate::pool::Pool;

impl Download {
    /// Sends the gathered bytes, then the bytes that are sent unchanged. Ready when all are sent; returns
    /// whether there were any.
    pub(super) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut (impl ClientStream + ?Sized),
    ) -> Poll<Result<bool, Broken>> {
        let mut moved = false;
        while self.waits_for_client() {
            let lends = self.lent || self.may_lend(client);
            let sent = match lends {
                true => self.poll_lend(cx, client),
                false => self.poll_send(cx, client),
            };
            match sent {
                // The client takes nothing now: it is waited for.
                Poll::Ready(Ok(0)) if lends => continue,
                Poll::Ready(Ok(n)) if n > 0 => self.taken += n as u64,
                Poll::Ready(_) => return Poll::Ready(Err(Broken::ClientGone)),
                Poll::Pending => return Poll::Pending,
            }
            moved = true;
            self.summary.begun |= self.summary.status != 0;
        }
        self.out.clear();
        (self.sent, self.slow) = (0, false);
        Poll::Ready(Ok(moved))
    }

    /// While the client is waited for, only the bytes that wait stay in memory, not the buffer that they were read
    /// into.
    pub(super) fn hold_little(&mut self, pool: &Pool) {
        if self.lent {
            return;
        }
        let direct = self.buffer.as_deref().and_then(|buffer| buffer.get(self.direct.clone()));
        if let Some(direct) = direct.filter(|direct| (1..=MOST_COPIED).contains(&direct.len())) {
            self.out.drain(..self.sent);
            self.out.extend_from_slice(direct);
            (self.sent, self.direct) = (0, 0..0);
        }
        self.give_back_empty(pool);
        if self.out.capacity() > 2 * self.out.len().max(LEAST_READ) {
            self.out.shrink_to(self.out.len());
        }
    }

    /// Whether the gathered bytes are lent to the client's side as a whole, and not sent in place.
    fn may_lend(&self, client: &(impl ClientStream + ?Sized)) -> bool {
        let is_whole = self.sent == 0 && (1..=LARGEST_GATHERED).contains(&self.out.len());
        is_whole && !self.slow && client.gathers()
    }

    fn poll_lend(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut (impl ClientStream + ?Sized),
    ) -> Poll<io::Result<usize>> {
        let more = !self.direct.is_empty();
        let sent = client.poll_send_gathered(cx, &mut self.out, more);
        self.lent = sent.is_pending();
        // Bytes that are lent to the kernel may be on their way.
        self.summary.begun |= self.lent && self.summary.status != 0;
        if let Poll::Ready(Ok(n)) = sent {
            self.slow = n < self.out.len();
            self.sent += n;
        }
        sent
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut (impl ClientStream + ?Sized),
    ) -> Poll<io::Result<usize>> {
        let direct = self.buffer.as_deref().and_then(|buffer| buffer.get(self.direct.clone()));
        let direct = direct.unwrap_or_default();
        let is_end = self.closes && direct.is_empty() && matches!(self.phase, Phase::Last);
        match self.out.get(self.sent..).unwrap_or_default() {
            gathered if is_end => client.poll_send_last(cx, gathered).map_ok(|n| {
                self.sent += n;
                n
            }),
            [] => client.poll_send(cx, direct, false).map_ok(|n| {
                self.direct.start += n;
                n
            }),
            gathered => client.poll_send(cx, gathered, !direct.is_empty()).map_ok(|n| {
                self.sent += n;
                n
            }),
        }
    }
}
