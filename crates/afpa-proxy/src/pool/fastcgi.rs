//! A connection to a FastCGI server: one request at a time, in the words of HTTP/1.1.
//!
//! The owner writes a request of HTTP/1.1 and reads a response of HTTP/1.1, as with [`Http2Stream`](super::Http2Stream).
//! [`afpa_fastcgi`] speaks the protocol; this moves its bytes. Where the request is kept waiting by the socket, reading
//! sends it, because the owner may have nothing more to write.
//!
//! A process of PHP waits behind its answer for the end of the connection, before it takes the next request (`fcgi_close` of PHP).
//! So a unix socket that is not kept ends as soon as the record has come that ends the request, and not when the client has its
//! answer: that wakes the process together with the read, which makes room in its socket, and other clients get it sooner.
//! Over TCP the end would come first from here, and leave a port that rests (docs/rules/upstream.md, U2): there it follows at once
//! when the process has ended its direction ([`ending`](super::ending)).

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use afpa_fastcgi::{Fault, RequestWriter, ResponseReader};

use super::socket::ServerSocket;

/// A connection to a FastCGI server.
#[derive(Debug)]
pub struct FastCgiStream {
    below: ServerSocket,
    /// The server's name, for logs.
    server: Box<str>,
    terms: FastCgiTerms,
    writer: RequestWriter,
    /// `None`: the head of the request was not written yet.
    reader: Option<ResponseReader>,
    /// Records of the request that were not sent yet.
    unsent: Vec<u8>,
    /// The response that was not read yet.
    unread: Vec<u8>,
    /// Bytes of the server have arrived for this request.
    has_heard: bool,
    /// Bytes came behind the end of the request, or the connection has ended.
    is_over: bool,
}

/// The terms of a request beside its head.
#[derive(Clone, Debug, Default)]
pub struct FastCgiTerms {
    /// Parameters that the head does not tell, as [`put_param`](afpa_fastcgi::put_param) gives them.
    pub params: Arc<[u8]>,
    /// Whether the server is to keep the connection.
    pub keeps: bool,
    /// Bytes of the head of a response.
    pub head_limit: usize,
}

/// How an answer of FastCGI ended too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Early {
    /// The server has ended the connection within an answer.
    #[error("the server of FastCGI ended the connection within an answer")]
    Connection,
    /// The server's bytes are no answer.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// How an answer of FastCGI ended, if that is what an error is about.
pub(crate) fn early(error: &io::Error) -> Option<Early> {
    error.get_ref()?.downcast_ref::<Early>().copied()
}

/// Bytes that are received at a time. PHP-FPM sends 8 KiB at a time.
const ROOM: usize = 16 * 1024;

thread_local! {
    /// Room for the records that arrive at one of a core's connections.
    static ARRIVED: RefCell<Box<[u8]>> = RefCell::new(vec![0; ROOM].into());
}

/// Bytes of a request that may wait for the socket.
const MOST_UNSENT: usize = 64 * 1024;

/// Receptions in one go of which nothing comes for the response: other connections of the core wait meanwhile.
const MOST_VAIN: u32 = 8;

/// The side that ends a connection first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BySide {
    Server,
    Here,
}

impl FastCgiStream {
    /// A new connection, for its first request.
    pub(crate) fn new(below: ServerSocket, server: &str, terms: FastCgiTerms) -> Self {
        Self {
            below,
            server: server.into(),
            writer: RequestWriter::new(terms.keeps),
            terms,
            reader: None,
            unsent: Vec::new(),
            unread: Vec::new(),
            has_heard: false,
            is_over: false,
        }
    }

    /// The next request on a connection that [is kept](Self::is_kept).
    pub(crate) fn begin(&mut self, terms: FastCgiTerms) {
        self.writer = RequestWriter::new(terms.keeps);
        (self.terms, self.reader, self.has_heard) = (terms, None, false);
    }

    /// Whether it can carry another request: the answer has ended, with the record that says so, and the server keeps the
    /// connection. Its memory is given up.
    pub(crate) fn is_kept(&mut self) -> bool {
        let is_kept = self.terms.keeps
            && self.is_quiet()
            && self.writer.is_done()
            && self.unsent.is_empty()
            && self.reader.as_ref().is_some_and(ResponseReader::keeps);
        (self.unsent, self.unread) = Default::default();
        is_kept
    }

    /// Whether neither the end of the connection nor bytes that nobody waits for have arrived. The end of the request may
    /// arrive.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let mut vain = 0;
        while !self.is_over && vain < MOST_VAIN {
            if self.reader.as_ref().is_none_or(ResponseReader::has_ended) {
                // A server that keeps no connection ends this one. Without a port that would rest, AFPA need not wait for that,
                // also where the server has not taken all of the request.
                let waits = self.terms.keeps || !self.below.is_unix();
                return waits && self.below.is_silent();
            }
            match self.poll_receive(&mut cx) {
                Poll::Pending => return true,
                Poll::Ready(Ok(0) | Err(_)) => self.is_over = true,
                Poll::Ready(Ok(_)) => vain += 1,
            }
        }
        false
    }

    /// Reads on behind the answer, until the server has ended the connection, or waits for another request that will not come.
    /// Messages of the program are logged; nobody waits for other bytes.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<BySide> {
        for _ in 0..MOST_VAIN {
            // Without the connection's end such a process of PHP would take no other request.
            if self.terms.keeps && self.reader.as_ref().is_some_and(ResponseReader::has_ended) {
                return Poll::Ready(BySide::Here);
            }
            match self.poll_receive(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(BySide::Server),
                // It was let go, or its bytes belong to no request.
                Poll::Ready(Ok(_)) if self.is_over => return Poll::Ready(BySide::Here),
                Poll::Ready(Err(_)) => return Poll::Ready(BySide::Here),
                Poll::Ready(Ok(_)) => self.unread.clear(),
            }
        }
        // Others get their turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads the response as HTTP/1.1 has it.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        // A server that takes no more may have answered already.
        let _ = self.poll_flush(cx);
        let mut vain = 0;
        while self.unread.is_empty() {
            match &self.reader {
                None => return Poll::Pending,
                Some(reader) if reader.has_ended() => return Poll::Ready(Ok(0)),
                Some(_) if vain == MOST_VAIN => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Some(_) => vain += 1,
            }
            match self.poll_receive(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) if self.has_heard => {
                    let error = io::Error::new(io::ErrorKind::UnexpectedEof, Early::Connection);
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(0)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(_)) => {}
            }
        }
        let n = self.unread.len().min(room.len());
        if let (Some(room), Some(unread)) = (room.get_mut(..n), self.unread.get(..n)) {
            room.copy_from_slice(unread);
        }
        self.unread.drain(..n);
        Poll::Ready(Ok(n))
    }

    /// Takes a request of HTTP/1.1, whose content has a length.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Err(error)) = self.poll_flush(cx) {
            return Poll::Ready(Err(error));
        }
        if self.unsent.len() > MOST_UNSENT {
            return Poll::Pending;
        }
        // The records are a copy: the rest waits where its owner has counted it.
        let bytes = bytes.get(..MOST_UNSENT).unwrap_or(bytes);
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        self.writer.write(bytes, &self.terms.params, &mut self.unsent).map_err(wrong)?;
        if self.writer.takes_expectation() {
            self.unread.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        if self.reader.is_none() && !self.unsent.is_empty() {
            let FastCgiTerms { keeps, head_limit, .. } = self.terms;
            self.reader = Some(ResponseReader::new(self.writer.asks_head(), keeps, head_limit));
        }
        match self.poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(bytes.len())),
        }
    }

    /// The connection will end with a reset.
    pub(super) fn reset_at_end(&self) {
        self.below.reset_at_end();
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            match self.below.poll_write(cx, &self.unsent) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(n)) if n > 0 => drop(self.unsent.drain(..n)),
                Poll::Ready(outcome) => {
                    let error = outcome.err();
                    return Poll::Ready(Err(error.unwrap_or(io::ErrorKind::WriteZero.into())));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Receives records, once. `Ok(0)` is the end of the connection.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        ARRIVED.with_borrow_mut(|room| match self.below.poll_read(cx, room) {
            Poll::Ready(Ok(n)) if n > 0 => {
                Poll::Ready(self.read(room.get(..n).unwrap_or_default()).map(|()| n))
            }
            other => other,
        })
    }

    /// Reads records that have arrived.
    fn read(&mut self, arrived: &[u8]) -> io::Result<()> {
        self.has_heard = true;
        let Some(reader) = &mut self.reader else {
            self.is_over = true;
            return Ok(());
        };
        let read = reader.read(arrived, &mut self.unread);
        for message in reader.messages() {
            tracing::warn!(server = &*self.server, "{message}");
        }
        let wrong = |fault| io::Error::new(io::ErrorKind::InvalidData, Early::Fault(fault));
        self.is_over |= read.map_err(wrong)? < arrived.len();
        self.let_go();
        Ok(())
    }

    /// Ends a connection that the server would end now, too, if nothing more is to be sent or received.
    fn let_go(&mut self) {
        let has_answer = self.reader.as_ref().is_some_and(ResponseReader::has_ended);
        let has_request = self.writer.is_done() && self.unsent.is_empty();
        if has_answer && has_request && !self.terms.keeps && self.below.is_unix() {
            self.below.end();
            self.is_over = true;
        }
    }
}
