//! The stream of a request as a transport of HTTP/1.1: its head and content come as HTTP/1.1 has them, and the answer is
//! taken as HTTP/1.1 has it.

mod receive;
mod send;

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::task::{Context, Poll};

use afpa_framework::{BreakOff, Module};
use afpa_h2::CodedReader;
use afpa_h3::frame::{kind, put_header, size};
use afpa_h3::{ErrorCode, Qpack, RequestStream};
use bytes::{Buf as _, Bytes};
use quinn_proto::StreamId;

use super::buffers;
use super::peer::{Peer, code_of};
use crate::h2::Upload;
use crate::transport::{Leaving, Transport};
use crate::worker::Worker;

/// A request's stream.
pub(super) struct Stream<M: Module> {
    worker: Rc<Worker<M>>,
    peer: Rc<RefCell<Peer>>,
    id: StreamId,
    request: RequestStream,
    /// Bytes of HTTP/1.1 that wait to be taken: a head for which there was no room when it came.
    arrived: Vec<u8>,
    /// Bytes that are in the room of the present receive.
    received: usize,
    /// The content behind it, once the head has come.
    upload: Option<Upload>,
    /// The client has sent all.
    is_whole: bool,
    is_tunnel: bool,
    /// Of the answer.
    reader: CodedReader<Qpack>,
    /// The front of what is sent next is a field section of its length, behind which so much content comes.
    section: Option<(usize, u64)>,
    /// Frames that are being put together.
    out: Vec<u8>,
    /// Frames that the connection could not take yet, and content behind them.
    waiting: [Bytes; 2],
    /// The connection took all of the last long piece: the next one may be longer.
    flows: bool,
    /// The end of the answer, or of the stream, was sent.
    is_finished: bool,
    /// The answer breaks off.
    is_broken: bool,
    /// Why the response of a server has broken off.
    why_broken: Option<BreakOff>,
    /// The readable part of a request that is none.
    malformed: Option<Vec<u8>>,
}

/// Content of an answer that is taken at a time.
const PIECE: usize = 16 * 1024;

/// The result of looking at what has arrived.
enum Looked {
    /// There are bytes to take, or all were taken and the client sends no more.
    Ready,
    /// Nothing more has come.
    Nothing,
}

impl<M: Module> Stream<M> {
    pub(super) fn new(worker: &Rc<Worker<M>>, peer: &Rc<RefCell<Peer>>, id: StreamId) -> Self {
        Self {
            worker: Rc::clone(worker),
            peer: Rc::clone(peer),
            id,
            request: RequestStream::default(),
            arrived: Vec::new(),
            received: 0,
            upload: None,
            is_whole: false,
            is_tunnel: false,
            reader: CodedReader::new(false, false),
            section: None,
            out: Vec::new(),
            waiting: [Bytes::new(), Bytes::new()],
            flows: false,
            is_finished: false,
            is_broken: false,
            why_broken: None,
            malformed: None,
        }
    }

    /// The error code for the client, as the answer does not end. Codes about the connection to a server say nothing about
    /// the client's connection (T5 of docs/rules).
    fn code(&self) -> ErrorCode {
        match self.why_broken {
            // A reset connection is a request that is cancelled in a tunnel (RFC 9220 section 3).
            _ if self.is_tunnel => ErrorCode::RequestCancelled,
            Some(BreakOff::Failed) => ErrorCode::Internal,
            Some(BreakOff::Cancelled) => ErrorCode::RequestCancelled,
            Some(BreakOff::TooMuch) => ErrorCode::ExcessiveLoad,
            None if self.is_broken => ErrorCode::Internal,
            None => ErrorCode::RequestCancelled,
        }
    }

    fn has_bytes(&self) -> bool {
        !self.arrived.is_empty() || self.upload.as_ref().is_some_and(Upload::has_arrived)
    }
}

impl<M: Module> Transport for Stream<M> {
    const SENDS_PAGES: bool = false;
    const KEEPS_BYTES: bool = true;
    const MAY_BE_H2: bool = false;

    fn poll_receive(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let looked = self.look(buffer);
        let received = std::mem::take(&mut self.received);
        match looked? {
            Looked::Ready if received > 0 => return Poll::Ready(Ok(received)),
            Looked::Ready => {}
            Looked::Nothing => {
                if let Some(waiting) = self.peer.borrow_mut().streams.get_mut(&self.id) {
                    waiting.receiver = Some(cx.waker().clone());
                }
                return Poll::Pending;
            }
        }
        if !self.arrived.is_empty() {
            let n = self.arrived.len().min(buffer.len());
            let (to, from) = (buffer.get_mut(..n), self.arrived.get(..n));
            if let (Some(to), Some(from)) = (to, from) {
                to.copy_from_slice(from);
            }
            self.arrived.drain(..n);
            return Poll::Ready(Ok(n));
        }
        let taken = self.upload.as_mut().map(|upload| upload.take(buffer));
        Poll::Ready(Ok(taken.map_or(0, |taken| taken.filled)))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        _more: bool,
    ) -> Poll<io::Result<usize>> {
        match self.put(bytes, Some(cx), false) {
            Ok(0) if !bytes.is_empty() => Poll::Pending,
            sent => Poll::Ready(sent),
        }
    }

    fn poll_send_gathered(
        &mut self,
        _cx: &mut Context<'_>,
        bytes: &mut Vec<u8>,
        more: bool,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.put(bytes, None, more))
    }

    fn poll_send_kept(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<io::Result<usize>> {
        if !self.flush(Some(cx))? {
            return Poll::Pending;
        }
        let n = bytes.len().min(buffers::CONTENT);
        if !self.announces(n) {
            let taken = self.put(bytes, Some(cx), false)?;
            bytes.advance(taken);
            return if taken == 0 { Poll::Pending } else { Poll::Ready(Ok(taken)) };
        }
        let mut header = Vec::with_capacity(size(kind::DATA, n) - n);
        put_header(&mut header, kind::DATA, n as u64);
        self.waiting = [header.into(), bytes.split_to(n)];
        Poll::Ready(self.send_framed(n))
    }

    fn begin_section(&mut self, section: usize, content: u64) {
        self.section = Some((section, content));
    }

    fn lends(&self) -> bool {
        false
    }

    fn poll_leave_ring(&mut self, _: &mut Context<'_>, _: Leaving) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_send_file(
        &mut self,
        cx: &mut Context<'_>,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Poll<io::Result<usize>> {
        if !self.flush(Some(cx))? {
            return Poll::Pending;
        }
        let most = len.min(if self.flows { buffers::CONTENT } else { PIECE });
        if !self.announces(most) {
            let mut bytes = vec![0; most];
            let n = file.read_at(&mut bytes, offset)?;
            bytes.truncate(n);
            return Poll::Ready(self.put(&bytes, Some(cx), false));
        }
        let (n, frame) = self.worker.h3_buffers.read(file, offset, most)?;
        if n == 0 {
            return Poll::Ready(Ok(0));
        }
        self.waiting[0] = frame;
        Poll::Ready(self.send_framed(n))
    }

    fn is_flushed(&self) -> bool {
        self.out.is_empty() && self.is_taken()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.flush(Some(cx)) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn is_over(&self) -> bool {
        self.is_whole && self.is_finished && !self.has_bytes()
    }

    fn is_early(&self) -> bool {
        self.peer.borrow().secured.is_none()
    }

    fn poll_handshake_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let peer = &mut *self.peer.borrow_mut();
        match peer.streams.get_mut(&self.id) {
            _ if peer.secured.is_some() => Poll::Ready(Ok(())),
            Some(waiting) if !peer.is_lost && !waiting.is_stopped => {
                waiting.handshake = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn has_arrived(&self) -> bool {
        false
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        None
    }

    fn reset_at_end(&mut self) {
        self.is_broken = true;
    }

    fn take_malformed(&mut self) -> Option<Vec<u8>> {
        self.malformed.take()
    }

    fn breaks_off(&mut self, why: BreakOff) {
        self.why_broken = Some(why);
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.flush(Some(cx))? {
            return Poll::Pending;
        }
        // An answer whose end is that of the bytes ends here; any other one was whole before, or breaks off.
        let ends = self.reader.is_done() || self.reader.ends_with_bytes();
        if !std::mem::replace(&mut self.is_finished, true) {
            let mut peer = self.peer.borrow_mut();
            match ends && !self.is_broken {
                true => peer.finish(self.id),
                false => peer.break_off(self.id, self.code()),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<M: Module> Drop for Stream<M> {
    fn drop(&mut self) {
        let mut peer = self.peer.borrow_mut();
        peer.streams.remove(&self.id);
        let handle = peer.handle;
        peer.touched.touch(handle);
        if peer.is_lost {
            return;
        }
        if !self.is_finished {
            peer.break_off(self.id, self.code());
        }
        if !self.is_whole {
            // RFC 9114 section 4.1: the answer did not need the rest of the request.
            let _ = peer.quic.recv_stream(self.id).stop(code_of(ErrorCode::NoError));
        }
    }
}
