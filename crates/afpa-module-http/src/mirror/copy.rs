//! The content of a request that is mirrored: copied on its way from the client.

use std::io;
use std::task::{Context, Poll};

use afpa_framework::{BreakOff, ClientStream, Now, Timeouts};
use afpa_http::body::BodySkipper;
use afpa_proxy::exchange::{Passing, Tap};
use afpa_proxy::response::Response;

use super::{Dropped, Mirror};

/// A client whose content is copied. There is one kind of it for all connections, so that the machine code of exchanges
/// is there once more, not once more for each kind.
pub(crate) struct Copying<'c> {
    client: &'c mut dyn ClientStream,
    /// `None`: it is not mirrored after all.
    mirror: Option<Box<Mirror>>,
    /// Finds the end of the content.
    end: BodySkipper,
    is_whole: bool,
}

impl<'c> Copying<'c> {
    pub(crate) fn new(client: &'c mut dyn ClientStream, mirror: Box<Mirror>) -> Self {
        let end = BodySkipper::new(mirror.job.body, u64::MAX);
        Self { client, mirror: Some(mirror), end, is_whole: false }
    }

    /// The mirror, if all of the content has passed by.
    pub(crate) fn into_mirror(mut self) -> Option<Box<Mirror>> {
        if !self.is_whole {
            self.give_up(Dropped::Incomplete);
        }
        self.mirror
    }

    fn give_up(&mut self, why: Dropped) {
        if let Some(mirror) = self.mirror.take() {
            mirror.held.stock.dropped(why);
        }
    }
}

/// Copies the part of `bytes` that belongs to the content.
fn copy(
    mirror: &mut Option<Box<Mirror>>,
    (end, is_whole): (&mut BodySkipper, &mut bool),
    bytes: &[u8],
) {
    let Some(copied) = mirror.as_mut().filter(|_| !*is_whole) else { return };
    let mut at = 0;
    let done = loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Ok(progress) = end.feed(rest) else { break Err(Dropped::Unfit) };
        at += progress.consumed;
        *is_whole = progress.done;
        if progress.done || progress.consumed == 0 || at >= bytes.len() {
            break copied.copy(bytes.get(..at).unwrap_or_default());
        }
    };
    if let Err(why) = done
        && let Some(mirror) = mirror.take()
    {
        mirror.held.stock.dropped(why);
    }
}

impl ClientStream for Copying<'_> {
    fn arrived(&self) -> &[u8] {
        self.client.arrived()
    }

    fn consume(&mut self, n: usize) {
        let Self { client, mirror, end, is_whole, .. } = self;
        copy(mirror, (end, is_whole), client.arrived().get(..n).unwrap_or_default());
        client.consume(n);
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let received = self.client.poll_receive(cx, room);
        if let Poll::Ready(Ok(n)) = received {
            let Self { mirror, end, is_whole, .. } = self;
            copy(mirror, (end, is_whole), room.get(..n).unwrap_or_default());
        }
        received
    }

    fn give_back(&mut self, bytes: &[u8]) {
        self.client.give_back(bytes);
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.client.poll_gone(cx)
    }

    fn has_ended(&self) -> bool {
        self.client.has_ended()
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        more: bool,
    ) -> Poll<io::Result<usize>> {
        self.client.poll_send(cx, bytes, more)
    }

    fn poll_send_gathered(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        self.client.poll_send_gathered(cx, bytes, more)
    }

    fn appetite(&self) -> usize {
        self.client.appetite()
    }

    fn gathers(&self) -> bool {
        self.client.gathers()
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.client.poll_shutdown(cx)
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

/// Reads an answer for nobody.
#[derive(Debug)]
pub(super) struct Discarding;

impl Tap for Discarding {
    fn head(&mut self, _response: &Response<'_, '_>, _now: Now) -> Passing {
        Passing::Withheld
    }

    fn passes_interim(&self) -> bool {
        false
    }

    fn put_fields(&self, _out: &mut Vec<u8>) {}

    fn content(&mut self, _data: &[u8]) {}

    fn whole(&mut self, _now: Now) {}
}
