//! The response on its way from the server to the client.

mod content;
mod flush;
mod head;
mod terms;

use std::io;
use std::ops::Range;
use std::task::{Context, Poll};

use afpa_fastcgi::Fault;
use afpa_framework::{BreakOff, ClientStream};
use afpa_h2::ErrorCode;
use afpa_h2::client::Gone;

use super::tap::Tap;
use crate::coding::{Compress, Encoder, Places};
use crate::end::Content;
use crate::pool::fastcgi::{self, early};
use crate::pool::http2::gone;
use crate::pool::{Buffer, Pool, ServerStream};
use crate::response::{BadResponse, Delivery};
use crate::trailers::MayTrail;
pub(super) use terms::{Broken, Complete, Summary, Terms};

/// Content up to this size leaves together with the head, in one write.
const GATHERED: usize = 32 * 1024;

/// Longer output is sent in place, not lent: a client that does not take it at once would hold its memory twice.
const LARGEST_GATHERED: usize = 2 * GATHERED;

/// Bytes that wait for a client are copied up to this length: then they need no whole buffer.
pub(super) const MOST_COPIED: usize = 16 * 1024;

/// Bytes that are compressed before other connections of the core have their turn.
const MOST_ENCODED: usize = 32 * 1024;

/// The least that one read takes from a server, however little its client takes.
pub(super) const LEAST_READ: usize = 4 * 1024;

/// The response: its heads, and its content as it arrives. More is read only when all read bytes were sent,
/// so the server is slowed down to the speed of the client.
#[derive(Debug)]
pub(super) struct Download {
    buffer: Option<Buffer>,
    /// Bytes of the buffer that were not parsed yet.
    raw: Range<usize>,
    /// Bytes of the buffer that are sent to the client unchanged.
    direct: Range<usize>,
    /// Bytes that are sent to the client before them.
    out: Vec<u8>,
    sent: usize,
    /// Bytes that the client has taken.
    taken: u64,
    /// `out` is lent to the kernel.
    lent: bool,
    /// The client did not take the gathered bytes at once.
    slow: bool,
    phase: Phase,
    /// The client's connection is closed as soon as the response was sent. Nothing may be waited for in between, because the end of
    /// the connection leaves with the last bytes.
    closes: bool,
    /// Compresses the content.
    encoder: Option<Encoder>,
    /// Its output, until it is gathered.
    coded: Vec<u8>,
    /// Bytes of content that the server has sent.
    read: u64,
    /// The fields that may trail the content.
    may_trail: MayTrail,
    interims: u32,
    /// The client does not get the final response, or not its content.
    withheld: bool,
    /// Why not, if its owner replaces it; see [`Report::replaced`](super::Report).
    pub(super) replaced: Option<Box<[u8]>>,
    /// Of the final response.
    pub(super) summary: Summary,
}

#[derive(Debug)]
enum Phase {
    Head,
    Content(Content, Delivery),
    /// Everything has been gathered and is being sent.
    Last,
    /// The server has changed the protocol (101).
    Tunnel,
}

impl Download {
    pub(super) fn new() -> Self {
        Self {
            buffer: None,
            raw: 0..0,
            direct: 0..0,
            out: Vec::new(),
            sent: 0,
            taken: 0,
            lent: false,
            slow: false,
            phase: Phase::Head,
            closes: false,
            encoder: None,
            coded: Vec::new(),
            read: 0,
            may_trail: MayTrail::default(),
            interims: 0,
            withheld: false,
            replaced: None,
            summary: Summary::default(),
        }
    }

    /// Gives its memory back.
    pub(super) fn end(&mut self, pool: &Pool) {
        if let Some(buffer) = self.buffer.take() {
            pool.give_back(buffer);
        }
        pool.give_back_text(std::mem::take(&mut self.out));
    }

    /// Whether it waits for the client; otherwise it waits for the server.
    pub(super) fn waits_for_client(&self) -> bool {
        self.lent || self.sent < self.out.len() || !self.direct.is_empty()
    }

    /// Bytes that the client has taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// The bytes that the server sent behind the head that changed the protocol.
    pub(super) fn beyond(&self) -> &[u8] {
        self.buffer.as_deref().and_then(|buffer| buffer.get(self.raw.clone())).unwrap_or_default()
    }

    /// Moves bytes until it has to wait for client or server. Returns whether it moved any, and the end of
    /// the response if that was reached.
    pub(super) fn step<C: ClientStream + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        terms: &Terms<'_>,
        client: &mut C,
        stream: &mut ServerStream,
        (pool, mut tap): (&Pool, Option<&mut (dyn Tap + '_)>),
    ) -> Result<(bool, Option<Complete>), Broken> {
        let mut moved = false;
        let turn_ends = self.read + MOST_ENCODED as u64;
        loop {
            match self.poll_flush(cx, client) {
                Poll::Ready(Ok(flushed)) => moved |= flushed,
                Poll::Ready(Err(broken)) => return Err(broken),
                Poll::Pending => {
                    self.hold_little(pool);
                    return Ok((moved, None));
                }
            }
            match self.phase {
                Phase::Last => {
                    let surplus = !self.raw.is_empty();
                    return Ok((true, Some(Complete::Response { surplus })));
                }
                Phase::Tunnel => return Ok((true, Some(Complete::Tunnel))),
                Phase::Head | Phase::Content(..) => {}
            }
            if self.encoder.is_some() && self.read >= turn_ends {
                cx.waker().wake_by_ref();
                return Ok((true, None));
            }
            match self.poll_fill(cx, stream, self.appetite(terms, client), pool) {
                Poll::Ready(Ok(0)) => self.end_of_stream(tap.as_deref_mut(), client)?,
                Poll::Ready(Ok(_)) => {
                    if self.summary.first_byte_us == 0 {
                        self.summary.first_byte_us = client.now().unix_us;
                    }
                    if self.out.capacity() == 0 {
                        self.out = pool.text();
                    }
                    self.digest(terms, client, &pool.encoders, tap.as_deref_mut())?;
                    if terms.gives_way && self.is_whole_and_unsent() {
                        self.give_back_empty(pool);
                        cx.waker().wake_by_ref();
                        return Ok((true, None));
                    }
                }
                Poll::Ready(Err(error)) => return Err(self.ended_early(&error)),
                Poll::Pending if !self.flush_encoder(pool, tap.as_deref_mut())? => {
                    return Ok((moved, None));
                }
                Poll::Pending => {}
            }
            self.give_back_empty(pool);
            moved = true;
        }
    }

    /// Whether all of the response has come at once, so that the exchange has nothing to do but to send it.
    fn is_whole_and_unsent(&self) -> bool {
        matches!(self.phase, Phase::Last) && !self.summary.begun && self.waits_for_client()
    }

    /// The connection, or the stream, has ended before the response.
    fn ended_early(&mut self, error: &io::Error) -> Broken {
        if let (Phase::Head, Some(early)) = (&self.phase, early(error)) {
            return match early {
                fastcgi::Early::Fault(Fault::Overloaded) => Broken::Overloaded,
                fastcgi::Early::Fault(fault) => Broken::Bad(BadResponse::FastCgi(fault)),
                fastcgi::Early::Connection => Broken::Reset { silent: false },
            };
        }
        let gone = gone(error);
        self.summary.break_off = break_off(gone);
        match (&self.phase, gone) {
            (Phase::Head, Some(Gone::Unprocessed)) => Broken::Unprocessed,
            (Phase::Head, Some(Gone::Malformed)) => Broken::Bad(BadResponse::Http2),
            (Phase::Head, _) => Broken::Reset { silent: self.summary.first_byte_us == 0 },
            _ => Broken::Content,
        }
    }

    /// Bytes that one read may take; the first one brings content that may be compressed at once.
    fn appetite(&self, terms: &Terms<'_>, client: &(impl ClientStream + ?Sized)) -> usize {
        let may_code = match self.phase {
            Phase::Head => terms.compress.is_some_and(Compress::codes),
            _ => self.encoder.is_some(),
        };
        let appetite = client.appetite();
        if may_code { appetite.min(MOST_ENCODED) } else { appetite }
    }

    /// Reads into the buffer, behind the bytes that were not parsed yet.
    fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut ServerStream,
        appetite: usize,
        pool: &Pool,
    ) -> Poll<io::Result<usize>> {
        let buffer = self.buffer.get_or_insert_with(|| pool.buffer());
        if self.raw.is_empty() {
            self.raw = 0..0;
        } else if self.raw.start > 0 {
            buffer.copy_within(self.raw.clone(), 0);
            self.raw = 0..self.raw.len();
        }
        let room = buffer.get_mut(self.raw.end..).unwrap_or_default();
        debug_assert!(!room.is_empty(), "a head is shorter than the buffer, content is not kept");
        let most = room.len().min(appetite.max(LEAST_READ));
        let room = room.get_mut(..most).unwrap_or_default();
        match stream.poll_read(cx, room) {
            Poll::Ready(Ok(n)) => {
                self.raw.end += n;
                Poll::Ready(Ok(n))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.give_back_empty(pool);
                // All was sent: other exchanges can gather in it meanwhile.
                pool.give_back_text(std::mem::take(&mut self.out));
                Poll::Pending
            }
        }
    }

    /// Gives the buffer back if it is empty: gathered bytes may be with the kernel for a while, and other exchanges can
    /// read into it meanwhile.
    fn give_back_empty(&mut self, pool: &Pool) {
        if self.raw.is_empty()
            && self.direct.is_empty()
            && let Some(buffer) = self.buffer.take()
        {
            pool.give_back(buffer);
        }
    }

    /// Parses the arrived bytes, and gathers those for the client.
    fn digest(
        &mut self,
        terms: &Terms<'_>,
        client: &(impl ClientStream + ?Sized),
        places: &Places,
        mut tap: Option<&mut (dyn Tap + '_)>,
    ) -> Result<(), Broken> {
        while let Phase::Head = self.phase {
            if !self.digest_head(terms, client, places, tap.as_deref_mut())? {
                return Ok(());
            }
        }
        self.digest_content(tap, client)
    }
}

/// How a response breaks off for the client when the server's stream ends. All other codes are about the connection to
/// the server, or would have the client believe that its request was not processed (REFUSED_STREAM).
fn break_off(gone: Option<Gone>) -> BreakOff {
    const CANCEL: u32 = ErrorCode::Cancel as u32;
    const CALM: u32 = ErrorCode::EnhanceYourCalm as u32;
    match gone {
        Some(Gone::Reset(CANCEL)) => BreakOff::Cancelled,
        Some(Gone::Reset(CALM)) => BreakOff::TooMuch,
        _ => BreakOff::Failed,
    }
}
