//! One stream, as the engine lends it to the module for an exchange with a server.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use afpa_framework::{BreakOff, ClientStream, Module, Now, Outbox, Part, Receipt, Timeouts};
use afpa_h2::{ErrorCode, ResponseEvent, ResponseReader, StreamId};

use super::mux::{KEPT, Mux};
use crate::connection::{SHORT, millis};
use crate::worker::Worker;

/// A stream that looks like the connection of a client of HTTP/1.1 to which one request belongs.
pub(super) struct StreamClient<M: Module> {
    worker: Rc<Worker<M>>,
    mux: Rc<RefCell<Mux>>,
    id: StreamId,
    /// Index of its entry in the worker's table, for its deadlines.
    entry: usize,
    reader: ResponseReader,
    /// Bytes that were given back; they belong to no request, because a stream has one only.
    surplus: Vec<u8>,
    broken: bool,
    /// Why the response breaks off, if it does.
    why_broken: BreakOff,
    /// Bytes of content received, and bytes of the response.
    moved: u64,
}

impl<M: Module> StreamClient<M> {
    pub(super) fn new(
        worker: Rc<Worker<M>>,
        mux: Rc<RefCell<Mux>>,
        id: StreamId,
        reader: ResponseReader,
        listener: u32,
    ) -> Self {
        let entry = worker.table.enter(listener);
        let why_broken = BreakOff::default();
        let (surplus, broken, moved) = (Vec::new(), false, 0);
        Self { worker, mux, id, entry, reader, surplus, broken, why_broken, moved }
    }

    /// Ends the exchange. If the server gave no answer, the module has left one in the outbox: an error page, or a
    /// stored response. Returns the receipt of a response that the client cannot get.
    pub(super) fn finish(mut self, out: &mut Outbox) -> Option<Receipt> {
        if self.moved <= SHORT {
            self.worker.counters.short_exchanges.add(1);
        }
        self.broken |= self.convey(&out.bytes).is_err();
        self.reader.skip(out.parts.iter().map(Part::len).sum());
        let deadline_ms = self.write_deadline();
        let mut mux = self.mux.borrow_mut();
        let Some(stream) = mux.streams.get_mut(&self.id) else { return out.receipt.take() };
        let is_tunnel = stream.is_tunnel();
        stream.upload = None;
        if stream.is_half_closed {
            mux.reset(self.id, ErrorCode::NoError);
        } else if self.reader.is_done() || (self.reader.ends_with_bytes() && !self.broken) {
            if stream.left() == 0 {
                stream.deadline_ms = deadline_ms;
            }
            stream.parts = std::mem::take(&mut out.parts);
            stream.receipt = out.receipt.take();
            stream.priority = out.priority;
            stream.whole = true;
            mux.announce(self.id);
        } else {
            mux.reset(self.id, code_of(self.why_broken, is_tunnel));
        }
        mux.wake();
        out.receipt.take()
    }

    /// By when the client has to take some of the bytes that wait for it from now on.
    fn write_deadline(&self) -> u64 {
        let timeout = self.worker.settings.borrow().write_timeout;
        self.worker.clock.cached_now().steady_ms() + millis(timeout)
    }

    /// Until when the client may take the bytes that wait, if the exchange waits for that. Progress on other streams
    /// extends it.
    fn sending_deadline(&self) -> Option<u64> {
        let mux = self.mux.borrow();
        mux.streams.get(&self.id)?.sender.as_ref()?;
        mux.deadline(self.id)
    }

    /// Reads a response, and gives its parts to the stream.
    fn convey(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let deadline_ms = self.write_deadline();
        self.moved += bytes.len() as u64;
        let mut mux = self.mux.borrow_mut();
        while !bytes.is_empty() {
            let (n, event) = self.reader.read(bytes).map_err(|_| broken())?;
            bytes = bytes.get(n..).unwrap_or_default();
            let block = self.reader.block();
            let Mux { connection, streams, .. } = &mut *mux;
            let stream = streams.get_mut(&self.id).ok_or_else(broken)?;
            match event {
                Some(ResponseEvent::Head { end, .. }) => {
                    connection.send_head(self.id, end, |out| out.extend_from_slice(block));
                    if end {
                        mux.remove(self.id);
                    }
                }
                Some(ResponseEvent::Content { bytes, end }) => {
                    if stream.left() == 0 {
                        stream.deadline_ms = deadline_ms;
                    }
                    stream.bytes.extend(bytes);
                    stream.whole |= end;
                    mux.announce(self.id);
                }
                Some(ResponseEvent::Trailers) => {
                    stream.trailers = Some(block.to_vec());
                    stream.whole = true;
                    mux.announce(self.id);
                }
                None => {}
            }
        }
        mux.wake();
        Ok(())
    }
}

impl<M: Module> Drop for StreamClient<M> {
    fn drop(&mut self) {
        self.worker.table.leave(self.entry);
    }
}

/// The error code for the client of a response that breaks off. Codes about the connection to the server say nothing
/// about the client's connection (docs/rules/passing.md, T5).
fn code_of(why: BreakOff, is_tunnel: bool) -> ErrorCode {
    match why {
        // A reset connection is CANCEL in a tunnel (RFC 8441 section 5).
        _ if is_tunnel => ErrorCode::Cancel,
        BreakOff::Failed => ErrorCode::Internal,
        BreakOff::Cancelled => ErrorCode::Cancel,
        BreakOff::TooMuch => ErrorCode::EnhanceYourCalm,
    }
}

fn gone() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl<M: Module> ClientStream for StreamClient<M> {
    fn arrived(&self) -> &[u8] {
        &self.surplus
    }

    fn consume(&mut self, n: usize) {
        self.surplus.drain(..n.min(self.surplus.len()));
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>, room: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut mux = self.mux.borrow_mut();
        let Some(stream) = mux.streams.get_mut(&self.id) else {
            return Poll::Ready(Err(gone()));
        };
        let Some(upload) = &mut stream.upload else { return Poll::Ready(Ok(0)) };
        if !upload.has_arrived() {
            if upload.is_done() && upload.is_tunnel() {
                return Poll::Ready(Ok(0));
            }
            stream.receiver = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let taken = upload.take(room);
        self.moved += taken.filled as u64;
        mux.connection.read(self.id, taken.content);
        // The connection's task tells the client of the new room (WINDOW_UPDATE).
        mux.wake();
        match taken.filled {
            0 => Poll::Ready(Err(io::ErrorKind::InvalidInput.into())),
            n => Poll::Ready(Ok(n)),
        }
    }

    fn give_back(&mut self, bytes: &[u8]) {
        self.surplus.extend_from_slice(bytes);
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.mux.borrow_mut().streams.get_mut(&self.id) {
            Some(stream) => {
                stream.receiver = Some(cx.waker().clone());
                Poll::Pending
            }
            // A response that was sent as a whole takes its stream with it.
            None if self.reader.is_done() => Poll::Pending,
            None => Poll::Ready(()),
        }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        _more: bool,
    ) -> Poll<io::Result<usize>> {
        let n = {
            let mut mux = self.mux.borrow_mut();
            let most = mux.may_keep(self.id);
            let Some(stream) = mux.streams.get_mut(&self.id) else {
                return Poll::Ready(Err(gone()));
            };
            let waiting = stream.bytes.len();
            if waiting >= most {
                stream.sender = Some(cx.waker().clone());
                return Poll::Pending;
            }
            bytes.len().min(most - waiting)
        };
        let sent = self.convey(bytes.get(..n).unwrap_or_default());
        self.broken |= sent.is_err();
        Poll::Ready(sent.map(|()| n))
    }

    fn appetite(&self) -> usize {
        let mux = self.mux.borrow();
        let waiting = mux.streams.get(&self.id).map_or(0, |stream| stream.bytes.len());
        match mux.may_keep(self.id).saturating_sub(waiting) {
            KEPT.. => usize::MAX,
            little => little,
        }
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut mux = self.mux.borrow_mut();
        if let Some(stream) = mux.streams.get_mut(&self.id) {
            stream.whole = true;
            mux.announce(self.id);
            mux.wake();
        }
        Poll::Ready(Ok(()))
    }

    fn reset_at_end(&mut self) {
        self.broken = true;
    }

    fn breaks_off(&mut self, why: BreakOff) {
        self.why_broken = why;
    }

    fn now(&self) -> Now {
        self.worker.clock.now()
    }

    fn cached_now(&self) -> Now {
        self.worker.clock.cached_now()
    }

    fn timeouts(&self) -> Timeouts {
        self.worker.settings.borrow().client_timeouts()
    }

    fn wait_until(&mut self, steady_ms: Option<u64>) {
        self.worker.table.set(self.entry, steady_ms, false);
    }

    fn is_over(&self, cx: &mut Context<'_>) -> bool {
        let Self { worker, entry, .. } = self;
        if !worker.table.wait(*entry, cx.waker()) {
            return false;
        }
        let Some(deadline) = self.sending_deadline() else { return true };
        if deadline <= worker.clock.cached_now().steady_ms() {
            return true;
        }
        worker.table.set(*entry, Some(deadline), false);
        worker.table.wait(*entry, cx.waker())
    }
}
