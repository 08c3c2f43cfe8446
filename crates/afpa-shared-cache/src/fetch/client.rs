//! Client streams that do not hold up an exchange whose answer is to be kept.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use afpa_cache::Object;
use afpa_framework::clock::steady;
use afpa_framework::{BreakOff, ClientStream, Now, Timeouts};
use tokio::time::Sleep;

use crate::fetch::Fetch;
use crate::fetch::backlog::{Backlog, Kept, Rest};
use crate::fetch::question::Question;
use crate::store::stored::StoredResponse;

/// The client of the request that leads. While its answer is to be kept, the exchange goes on at the speed of the
/// server: bytes that a slow client does not take wait here, and a client that has gone does not end the exchange.
pub(crate) struct Outlived<'c, C: ?Sized> {
    client: &'c mut C,
    fetch: &'c Fetch,
    /// Whether the exchange goes on without its client: the answer is to be kept, as far as that is known.
    goes_on: &'c Cell<bool>,
    is_gone: bool,
    for_nobody: bool,
    backlog: Backlog,
}

impl<'c, C: ClientStream + ?Sized> Outlived<'c, C> {
    pub(crate) fn new(
        client: &'c mut C,
        question: &'c Question<'c>,
        goes_on: &'c Cell<bool>,
        for_nobody: bool,
    ) -> Self {
        let backlog = Backlog::new(Arc::clone(&question.cache.responses));
        Self { client, fetch: question.fetch, goes_on, is_gone: false, for_nobody, backlog }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The bytes that the client has not taken when the exchange is over. `kept`: the answer, if it was kept.
    pub(crate) fn into_rest(self, kept: Option<Arc<Object<StoredResponse>>>) -> Option<Rest> {
        let left = self.backlog.left().len();
        if self.is_gone || left == 0 {
            return None;
        }
        let of_kept = kept.and_then(|kept| Rest::of_kept(Kept(kept), left));
        Some(of_kept.unwrap_or(Rest::Own(self.backlog)))
    }

    fn poll_backlog(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_gone && !self.backlog.left().is_empty() {
            match self.client.poll_send(cx, self.backlog.left(), false) {
                Poll::Ready(Ok(n)) if n > 0 => self.backlog.advance(n),
                Poll::Ready(_) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the bytes that wait, then calls `send` for these.
    fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        send: impl FnOnce(&mut C, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let sent = match self.poll_backlog(cx) {
            _ if self.is_gone => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Poll::Ready(Ok(())) => send(self.client, cx),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        if !self.goes_on.get() {
            return sent;
        }
        match sent {
            Poll::Ready(Ok(n)) if n > 0 => Poll::Ready(Ok(n)),
            Poll::Ready(_) => {
                self.is_gone = true;
                Poll::Ready(Ok(bytes.len()))
            }
            Poll::Pending if self.backlog.push(bytes) => Poll::Ready(Ok(bytes.len())),
            Poll::Pending => {
                // There is no more memory for that: the exchange goes on at the speed of its client.
                self.goes_on.set(false);
                Poll::Pending
            }
        }
    }
}

impl<C: ClientStream + ?Sized> ClientStream for Outlived<'_, C> {
    fn arrived(&self) -> &[u8] {
        self.client.arrived()
    }

    fn consume(&mut self, n: usize) {
        self.client.consume(n);
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        self.client.poll_receive(cx, room)
    }

    fn give_back(&mut self, bytes: &[u8]) {
        self.client.give_back(bytes);
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.for_nobody && !self.goes_on.get() {
            return Poll::Ready(());
        }
        if !self.is_gone {
            self.is_gone = self.client.poll_gone(cx).is_ready();
        }
        // Before its head has come, an answer that no other request waits for is not worth the server's work.
        let is_wanted = || {
            let now_ms = self.client.cached_now().steady_ms();
            self.goes_on.get() && self.fetch.is_wanted(now_ms)
        };
        match self.is_gone && !is_wanted() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn has_ended(&self) -> bool {
        // While others wait for the answer, this client does not decide.
        let now_ms = self.client.cached_now().steady_ms();
        let is_wanted = self.goes_on.get() && self.fetch.is_wanted(now_ms);
        !is_wanted && self.client.has_ended()
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        self.poll_pass(cx, bytes, |client, cx| client.poll_send(cx, bytes, more))
    }

    fn poll_send_last(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_pass(cx, bytes, |client, cx| client.poll_send_last(cx, bytes))
    }

    fn poll_send_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        if self.is_gone || !self.backlog.left().is_empty() {
            return Poll::Ready(Ok(0));
        }
        match self.client.poll_send_gathered(cx, bytes, more) {
            Poll::Ready(Err(_)) if self.goes_on.get() => {
                self.is_gone = true;
                Poll::Ready(Ok(bytes.len()))
            }
            sent => sent,
        }
    }

    fn gathers(&self) -> bool {
        !self.is_gone && self.backlog.left().is_empty() && self.client.gathers()
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.poll_shutdown(cx)
    }

    fn appetite(&self) -> usize {
        // Bytes that the client does not take now wait in the backlog, once it is known that the answer is to be kept.
        match self.goes_on.get() && self.fetch.has_begun() {
            true => usize::MAX,
            false => self.client.appetite(),
        }
    }

    fn reset_at_end(&mut self) {
        self.client.reset_at_end();
    }

    fn breaks_off(&mut self, why: BreakOff) {
        self.client.breaks_off(why);
    }

    fn now(&self) -> Now {
        self.client.now()
    }

    fn cached_now(&self) -> Now {
        self.client.cached_now()
    }

    fn timeouts(&self) -> Timeouts {
        self.client.timeouts()
    }

    fn wait_until(&mut self, steady_ms: Option<u64>) {
        self.client.wait_until(steady_ms);
    }

    fn is_over(&self, cx: &mut Context<'_>) -> bool {
        self.client.is_over(cx)
    }
}

/// The client of an exchange that nobody waits for: it takes everything, and sends no more than it has sent.
#[derive(Debug, Default)]
pub struct Nobody {
    sent: Vec<u8>,
    consumed: usize,
    sleep: RefCell<Option<Pin<Box<Sleep>>>>,
}

impl Nobody {
    /// One that has sent all of its content.
    pub fn with_content(sent: Vec<u8>) -> Self {
        Self { sent, ..Self::default() }
    }
}

impl ClientStream for Nobody {
    fn arrived(&self) -> &[u8] {
        self.sent.get(self.consumed..).unwrap_or_default()
    }

    fn consume(&mut self, n: usize) {
        self.consumed += n;
    }

    fn poll_receive(&mut self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn give_back(&mut self, _: &[u8]) {}

    fn poll_gone(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    fn poll_send(&mut self, _: &mut Context<'_>, bytes: &[u8], _: bool) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn reset_at_end(&mut self) {}

    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Now { unix_us: micros(wall), steady_us: micros(steady()) }
    }

    fn cached_now(&self) -> Now {
        self.now()
    }

    fn timeouts(&self) -> Timeouts {
        Timeouts { body: Duration::from_secs(1), write: Duration::from_secs(1), least_rate: 0 }
    }

    fn wait_until(&mut self, steady_ms: Option<u64>) {
        let now = self.now().steady_ms();
        let sleep = steady_ms.map(|until| {
            Box::pin(tokio::time::sleep(Duration::from_millis(until.saturating_sub(now))))
        });
        *self.sleep.borrow_mut() = sleep;
    }

    fn is_over(&self, cx: &mut Context<'_>) -> bool {
        let mut sleep = self.sleep.borrow_mut();
        sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_ready())
    }
}
