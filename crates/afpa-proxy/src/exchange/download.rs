//! The response on its way from the server to the client.

use std::io;
use std::ops::Range;
use std::task::{Context, Poll};

use afpa_fastcgi::Fault;
use afpa_framework::{BreakOff, ClientStream, Persistence};
use afpa_h2::ErrorCode;
use afpa_h2::client::Gone;
use afpa_http::edits::Edits;
use afpa_http::{Connection, Version};

use super::job::lies_in;
use super::tap::{Passing, Tap};
use super::upload::put_chunk;
use crate::coding::{Coded, Compress, Encoder, Places};
use crate::end::Content;
use crate::pool::fastcgi::{self, early};
use crate::pool::http2::gone;
use crate::pool::{Buffer, Pool, ServerStream};
use crate::response::{self, Added, Asked, BadResponse, Delivery, Slots};
use crate::switch;
use crate::trailers::{MayTrail, put_last_chunk};

/// The facts, apart from the server's response, that decide the response to the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) asked: Asked,
    /// The head of the request, as the server has it.
    pub(super) request: &'a [u8],
    /// The client's version.
    pub(super) version: Version,
    /// Whether the connection to the client may go on.
    pub(super) keep: bool,
    /// Whether others may go first before it is sent: the request was sent as a whole, and there are others.
    pub(super) gives_way: bool,
    pub(super) head_limit: usize,
    pub(super) set_cookie: Option<&'a [u8]>,
    /// The value of Strict-Transport-Security, if the client is to get one.
    pub(super) hsts: Option<&'a str>,
    /// See [`Job::lines`](super::Job).
    pub(super) lines: &'a [u8],
    /// The changes of its fields.
    pub(super) edits: Option<Edits<'a>>,
    /// See [`Job::replaces`](super::Job).
    pub(super) replaces: Option<&'a [(u16, u16)]>,
    pub(super) compress: Option<&'a Compress>,
}

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

/// The facts known of the response so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Summary {
    /// 0: no final response yet.
    pub(super) status: u16,
    /// Content bytes that were passed on.
    pub(super) content: u64,
    /// Microseconds since the epoch at which its first byte came; 0: none came.
    pub(super) first_byte_us: u64,
    /// Whether a byte of the final response has gone to the client.
    pub(super) begun: bool,
    /// Whether the server keeps the connection.
    pub(super) keeps: bool,
    /// Whether the end of the response is certain.
    pub(super) exact: bool,
    /// Why it breaks off, if it does.
    pub(super) break_off: BreakOff,
    /// Whether only the end of the client's connection ends the response.
    pub(super) ends_with_connection: bool,
    /// Whether the connection to the client goes on.
    pub(super) persistence: Persistence,
    /// Whether the content is compressed, if it was to be.
    pub(super) coded: Option<Coded>,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            status: 0,
            content: 0,
            first_byte_us: 0,
            begun: false,
            keeps: false,
            exact: false,
            break_off: BreakOff::default(),
            ends_with_connection: false,
            persistence: Persistence::Close,
            coded: None,
        }
    }
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Complete {
    /// All of it was sent to the client.
    Response {
        /// The server has sent bytes beyond it.
        surplus: bool,
    },
    /// The server changes the protocol, and the client knows.
    Tunnel,
}

/// Why there is no response, or why it ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The client went away.
    ClientGone,
    /// The server ended the connection; `silent`: before it sent a byte.
    Reset { silent: bool },
    /// The server has not looked at the request, and says so (HTTP/2).
    Unprocessed,
    /// The server is overloaded, and says so (FastCGI).
    Overloaded,
    /// The server's bytes are not a response.
    Bad(BadResponse),
    /// Its content is malformed, or breaks off.
    Content,
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

/// Content that the client does not get is read up to this length.
const MOST_WITHHELD: u64 = 2 << 20;

/// Interim responses of one exchange.
const MOST_INTERIMS: u32 = 32;

/// Fields that tell a client what to do about a status, as lines: its owner writes them in its own answer.
fn status_fields(response: &response::Response<'_, '_>) -> Box<[u8]> {
    const NAMES: [&str; 6] = [
        "allow",
        "cache-control",
        "content-range",
        "retry-after",
        "set-cookie",
        "www-authenticate",
    ];
    let is_one = |name: &[u8]| NAMES.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes()));
    let mut lines = Vec::new();
    for (name, value) in response.end_to_end().filter(|(name, _)| is_one(name)) {
        for part in [name, b": ", value, b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines.into_boxed_slice()
}

/// Writes an interim response without an id of the server's own.
fn put_interim(out: &mut Vec<u8>, terms: &Terms<'_>, response: &response::Response<'_, '_>) {
    let begin = out.len();
    response.write_interim(out);
    if let Some(edits) = terms.edits {
        edits.remove_id(out, begin);
    }
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

    /// Sends the gathered bytes, then the bytes that are sent unchanged. Ready when all are sent; returns
    /// whether there were any.
    fn poll_flush(
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
    fn hold_little(&mut self, pool: &Pool) {
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

    /// Returns whether a whole head had arrived.
    fn digest_head(
        &mut self,
        terms: &Terms<'_>,
        client: &(impl ClientStream + ?Sized),
        places: &Places,
        mut tap: Option<&mut (dyn Tap + '_)>,
    ) -> Result<bool, Broken> {
        let input = self.buffer.as_deref().and_then(|buffer| buffer.get(self.raw.clone()));
        let mut slots = Slots::default();
        let limit = terms.head_limit;
        let parsed = response::parse(input.unwrap_or_default(), &mut slots, limit, terms.asked);
        let Some(mut response) = parsed.map_err(Broken::Bad)? else { return Ok(false) };
        self.raw.start += response.head_len;

        if response.is_interim() {
            self.interims += 1;
            if self.interims > MOST_INTERIMS {
                return Err(Broken::Bad(BadResponse::TooLong));
            }
            // HTTP/1.0 has none (RFC 9110 section 15.2).
            let passes = tap.as_deref().is_none_or(Tap::passes_interim);
            if terms.version != Version::Http10 && passes {
                put_interim(&mut self.out, terms, &response);
            }
            return Ok(!self.raw.is_empty());
        }
        self.summary.status = response.status;
        if response.status == 101 {
            let has_streams = terms.version.has_streams();
            if !switch::is_as_asked(terms.request, &response, has_streams) {
                return Err(Broken::Bad(BadResponse::Upgrade));
            }
            let Terms { set_cookie, hsts, lines, .. } = *terms;
            let begin = self.out.len();
            response.write_switch(&mut self.out, Added { set_cookie, hsts, lines });
            if let Some(edits) = terms.edits {
                edits.apply(&mut self.out, begin, response.status, None);
            }
            self.phase = Phase::Tunnel;
            return Ok(true);
        }
        let now = client.cached_now();
        let keeps = || tap.as_deref().is_some_and(|tap| tap.would_keep(&response, now));
        let (head, recoded) = terms
            .compress
            .and_then(|compress| compress.recode(&response, terms.asked, (places, &keeps)))
            .unzip();
        let mut slots = Slots::default();
        let new = head
            .as_ref()
            .zip(recoded)
            .and_then(|(head, recoded)| recoded.read(head, &mut slots, (&response, terms.asked)));
        // Without the line of Vary it answers only this request.
        response.is_makeshift = head.is_some() && new.is_none();
        let (content, keeps, exact) =
            (Content::new(&response.ending), response.keeps, response.ending.is_exact());
        // A cache knows what its own question was about.
        let for_tap = new.as_ref().map_or(&response, |(new, _)| new);
        let for_tap = if response.status == 304 { &response } else { for_tap };
        let passing = tap.as_deref_mut().map_or(Passing::On, |tap| tap.head(for_tap, now));
        let response = match new {
            Some((new, recoded)) => {
                (self.encoder, self.summary.coded) = (recoded.encoder, recoded.coded);
                new
            }
            None => response,
        };
        let delivery = match passing {
            Passing::HeadAlone => Delivery::None,
            Passing::On | Passing::Withheld => response.delivery(terms.version),
        };
        let keep = terms.keep && delivery != Delivery::Close;
        self.closes = !keep;
        let connection = match (keep, terms.version) {
            (false, _) => Connection::Close,
            (true, Version::Http11 | Version::Http2 | Version::Http3) => Connection::Implied,
            (true, Version::Http10) => Connection::KeepAlive,
        };
        self.withheld = passing == Passing::Withheld;
        if !self.withheld && lies_in(terms.replaces, response.status) {
            self.withheld = true;
            self.replaced = Some(status_fields(&response));
        }
        if self.withheld {
            // Neither the client nor a cache gets its content compressed.
            (self.encoder, self.summary.coded) = (None, None);
        } else {
            let Terms { set_cookie, hsts, lines, .. } = *terms;
            let added = Added { set_cookie, hsts, lines };
            let begin = self.out.len();
            response.write(&mut self.out, delivery, connection, now.unix(), added);
            if let Some(tap) = tap.as_deref() {
                // Before the empty line.
                self.out.truncate(self.out.len().saturating_sub(2));
                tap.put_fields(&mut self.out);
                self.out.extend_from_slice(b"\r\n");
            }
            if let Some(edits) = terms.edits {
                edits.apply(&mut self.out, begin, response.status, None);
            }
            self.withheld = passing == Passing::HeadAlone;
        }
        (self.summary.keeps, self.summary.exact) = (keeps, exact);
        self.summary.ends_with_connection = delivery == Delivery::Close;
        self.summary.persistence = if keep { Persistence::Keep } else { Persistence::Close };
        // Trailer fields that were not announced may be about the bytes as the server has sent them.
        if delivery == Delivery::Chunked && self.encoder.is_none() {
            self.may_trail = response.may_trail(terms.asked);
            if let Some(edits) = terms.edits.filter(|edits| edits.rules.id.is_some()) {
                self.may_trail.leave_id_out(edits.rules);
            }
        }
        self.phase = match content.is_done() {
            true => {
                if let Some(tap) = tap {
                    tap.whole(now);
                }
                Phase::Last
            }
            false => Phase::Content(content, delivery),
        };
        Ok(true)
    }

    fn digest_content(
        &mut self,
        mut tap: Option<&mut (dyn Tap + '_)>,
        client: &(impl ClientStream + ?Sized),
    ) -> Result<(), Broken> {
        let Phase::Content(content, delivery) = &mut self.phase else { return Ok(()) };
        let Some(buffer) = self.buffer.as_deref() else { return Ok(()) };
        let mut done = false;
        while !done && !self.raw.is_empty() {
            let input = buffer.get(self.raw.clone()).unwrap_or_default();
            let progress = content.feed(input).map_err(|_| Broken::Content)?;
            let data = input.get(progress.data.clone()).unwrap_or_default();
            let at = self.raw.start + progress.data.start;
            self.raw.start += progress.consumed;
            done = progress.done;
            self.read += data.len() as u64;
            let data = match &mut self.encoder {
                None => data,
                Some(encoder) => {
                    self.coded.clear();
                    encoder.write(data, &mut self.coded).map_err(|_| Broken::Content)?;
                    &self.coded
                }
            };
            self.summary.content += data.len() as u64;
            if let Some(tap) = tap.as_deref_mut() {
                tap.content(data);
            }
            if self.withheld && self.read > MOST_WITHHELD {
                // Nobody gets the rest: the connection is closed instead.
                (self.summary.keeps, self.summary.exact, self.raw) = (false, false, 0..0);
                self.phase = Phase::Last;
                return Ok(());
            }
            match delivery {
                _ if self.withheld => {}
                Delivery::Chunked => put_chunk(&mut self.out, data),
                // Only content that lies in one piece can be sent from the buffer.
                Delivery::Length(_)
                    if data.len() > GATHERED || (self.out.is_empty() && !client.gathers()) =>
                {
                    self.direct = at..at + data.len();
                }
                _ => self.out.extend_from_slice(data),
            }
        }
        if done {
            self.finish_content(tap, client)?;
        }
        Ok(())
    }

    /// Has the client get all content that has come, because the server pauses. Returns whether there is any.
    fn flush_encoder(
        &mut self,
        pool: &Pool,
        tap: Option<&mut (dyn Tap + '_)>,
    ) -> Result<bool, Broken> {
        let Some(encoder) = self.encoder.as_mut().filter(|encoder| encoder.holds()) else {
            return Ok(false);
        };
        self.coded.clear();
        encoder.flush(&mut self.coded).map_err(|_| Broken::Content)?;
        if self.out.capacity() == 0 {
            self.out = pool.text();
        }
        self.put_coded(tap);
        Ok(true)
    }

    /// Gathers compressed content.
    fn put_coded(&mut self, tap: Option<&mut (dyn Tap + '_)>) {
        self.summary.content += self.coded.len() as u64;
        if let Some(tap) = tap {
            tap.content(&self.coded);
        }
        match &self.phase {
            _ if self.withheld => {}
            Phase::Content(_, Delivery::Chunked) => put_chunk(&mut self.out, &self.coded),
            _ => self.out.extend_from_slice(&self.coded),
        }
    }

    fn finish_content(
        &mut self,
        mut tap: Option<&mut (dyn Tap + '_)>,
        client: &(impl ClientStream + ?Sized),
    ) -> Result<(), Broken> {
        if let Some(encoder) = self.encoder.take() {
            self.coded.clear();
            encoder.finish(&mut self.coded).map_err(|_| Broken::Content)?;
            self.put_coded(tap.as_deref_mut());
            self.coded = Vec::new();
        }
        if let Some(tap) = tap {
            tap.whole(client.cached_now());
        }
        if let Phase::Content(content, Delivery::Chunked) = &self.phase
            && !self.withheld
        {
            put_last_chunk(&mut self.out, content.trailers(), &self.may_trail);
        }
        self.phase = Phase::Last;
        Ok(())
    }

    fn end_of_stream(
        &mut self,
        tap: Option<&mut (dyn Tap + '_)>,
        client: &(impl ClientStream + ?Sized),
    ) -> Result<(), Broken> {
        match &mut self.phase {
            Phase::Head => {
                return Err(Broken::Reset { silent: self.summary.first_byte_us == 0 });
            }
            Phase::Content(content, _) => content.end_of_stream().map_err(|_| Broken::Content)?,
            Phase::Last | Phase::Tunnel => {}
        }
        self.finish_content(tap, client)
    }
}
