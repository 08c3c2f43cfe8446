//! Sends the request to the server: its head, then its content as the client sends it.

use std::task::{Context, Poll};

use afpa_framework::ClientStream;
use afpa_http::BodyLength;

use crate::end::{Content, Ending};
use crate::pool::{Pool, ServerStream, Share};
use crate::request::RequestHead;
use crate::trailers::{MayTrail, put_last_chunk};

/// The head of a request, and its content as it arrives. More content is read only when all read bytes were
/// sent, so the client is slowed down to the speed of the server.
#[derive(Debug)]
pub(super) struct Upload {
    /// Content that is still to be taken from the client.
    content: Option<Content>,
    chunked: bool,
    /// The fields that may trail the content.
    may_trail: MayTrail,
    /// The request has content: its head is sent from `out`, too, together with the first content.
    gathers: bool,
    /// Head and content that wait to be sent.
    out: Vec<u8>,
    /// Bytes of the head, or of `out`, that were sent.
    sent: usize,
    /// Bytes of content that are still allowed.
    allowance: u64,
    /// Bytes of content that came, if their number was announced.
    announced: Option<u64>,
    /// Whether any content was taken from the client: then the request can only be sent again if all of it is held.
    taken: bool,
    /// Where the content begins in `out`; `None`: there was more content, which has taken its place.
    content_at: Option<usize>,
    /// Whether the server's socket has taken any byte.
    has_sent: bool,
    state: UploadState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UploadState {
    Going,
    Done,
    /// The server no longer reads it.
    Stopped,
}

/// Why a request was not sent to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The client went away.
    ClientGone,
    /// Its content is malformed.
    Malformed,
    /// It is larger than the limit.
    TooLarge,
    /// It has no length, and is too large to be counted first.
    NoLength,
    /// It would be gathered first, and there is no memory for more.
    NoRoom,
}

impl Upload {
    /// A request of which nothing was sent. Content that has arrived is sent together with the head.
    pub(super) fn new(
        body: BodyLength,
        largest: Option<u64>,
        head: &RequestHead,
        pool: &Pool,
    ) -> Self {
        let mut out = Vec::new();
        if !matches!(body, BodyLength::None) {
            out = pool.text();
            out.extend_from_slice(head.bytes());
        }
        Self::of(body, largest, head.may_trail().clone(), out)
    }

    /// A request whose content was taken for an attempt before, framed as it was then.
    pub(super) fn again(content: &[u8], head: &RequestHead, pool: &Pool) -> Self {
        let mut out = pool.text();
        out.extend_from_slice(head.bytes());
        let upload = Self::of(BodyLength::None, None, MayTrail::default(), out);
        let mut upload = Self { gathers: true, taken: true, ..upload };
        upload.out.extend_from_slice(content);
        upload
    }

    fn of(body: BodyLength, largest: Option<u64>, may_trail: MayTrail, out: Vec<u8>) -> Self {
        let (content, chunked) = match body {
            BodyLength::None => (None, false),
            BodyLength::Length(length) => (Some(Content::new(&Ending::Length(length))), false),
            BodyLength::Chunked => (Some(Content::new(&Ending::Chunked)), true),
        };
        let gathers = content.is_some();
        let allowance = largest.unwrap_or(u64::MAX);
        let content_at = Some(out.len());
        Self {
            content,
            chunked,
            may_trail,
            gathers,
            out,
            sent: 0,
            allowance,
            announced: matches!(body, BodyLength::Length(_)).then_some(0),
            taken: false,
            content_at,
            has_sent: false,
            state: UploadState::Going,
        }
    }

    /// Content that is to be gathered as a whole, without a head and without framing; in memory of this length, which grows.
    pub(super) fn of_whole(body: BodyLength, largest: Option<u64>, room: usize) -> Self {
        let upload = Self::of(body, largest, MayTrail::default(), Vec::with_capacity(room));
        Self { chunked: false, ..upload }
    }

    /// The content that was gathered.
    pub(super) fn gathered(&self) -> &[u8] {
        &self.out
    }

    /// Gathers content up to its end, but not much more than `most` bytes, and no more than there is room for.
    pub(super) fn poll_whole<C: ClientStream + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut C,
        pool: &Pool,
        most: usize,
        share: &mut Share,
    ) -> Poll<Result<(), Stopped>> {
        while self.content.is_some() {
            if !client.arrived().is_empty() {
                self.take_arrived(client)?;
            } else if !self.receive(cx, client, pool)? {
                return Poll::Pending;
            }
            if self.out.len() > most {
                return Poll::Ready(Err(Stopped::NoLength));
            }
            if !share.reach(self.out.capacity()) {
                return Poll::Ready(Err(Stopped::NoRoom));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Gives its memory back.
    pub(super) fn end(&mut self, pool: &Pool) {
        pool.give_back_text(std::mem::take(&mut self.out));
    }

    /// Whether all of the request was sent.
    pub(super) fn is_done(&self) -> bool {
        self.state == UploadState::Done
    }

    /// Whether no more content is expected from the client.
    pub(super) fn expects_nothing(&self) -> bool {
        self.content.is_none() || self.state != UploadState::Going
    }

    /// Whether it waits for the server; otherwise it waits for the client.
    pub(super) fn waits_for_server(&self) -> bool {
        self.sent < self.out.len() || self.content.is_none()
    }

    /// Bytes of content that have come; `None` if the content has no announced length.
    pub(super) fn announced(&self) -> Option<u64> {
        self.announced
    }

    pub(super) fn is_going(&self) -> bool {
        self.state == UploadState::Going
    }

    /// Whether any content was taken from the client.
    pub(super) fn has_taken(&self) -> bool {
        self.taken
    }

    /// The content as it is framed, if all of it has come and is held still.
    pub(super) fn held(&self) -> Option<&[u8]> {
        self.out.get(self.content_at?..).filter(|_| self.content.is_none())
    }

    /// Whether the server's socket has taken any byte.
    pub(super) fn has_sent(&self) -> bool {
        self.has_sent
    }

    /// Takes the content that has arrived behind the head, before the first write.
    pub(super) fn gather(
        &mut self,
        client: &mut (impl ClientStream + ?Sized),
    ) -> Result<(), Stopped> {
        if self.content.is_some() && !client.arrived().is_empty() {
            self.take_arrived(client)?;
        }
        Ok(())
    }

    /// Moves bytes until it has to wait for client or server. Returns whether it moved any.
    pub(super) fn step<C: ClientStream + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        head: &[u8],
        client: &mut C,
        stream: &mut ServerStream,
        pool: &Pool,
    ) -> Result<bool, Stopped> {
        let mut moved = false;
        while self.state == UploadState::Going {
            let waiting = if self.gathers { &self.out[..] } else { head };
            let waiting = waiting.get(self.sent..).unwrap_or_default();
            if !waiting.is_empty() {
                match stream.poll_write(cx, waiting) {
                    Poll::Ready(Ok(n)) if n > 0 => {
                        self.sent += n;
                        self.has_sent = true;
                    }
                    // The server may have sent an answer before it closed: that is still to be read.
                    Poll::Ready(_) => self.state = UploadState::Stopped,
                    Poll::Pending => return Ok(moved),
                }
                moved = true;
                continue;
            }
            if self.content.is_none() {
                self.state = UploadState::Done;
                break;
            }
            self.out.clear();
            (self.sent, self.content_at) = (0, None);
            if !client.arrived().is_empty() {
                self.take_arrived(client)?;
            } else if !self.receive(cx, client, pool)? {
                return Ok(moved);
            }
            moved = true;
        }
        Ok(moved)
    }

    fn take_arrived(&mut self, client: &mut (impl ClientStream + ?Sized)) -> Result<(), Stopped> {
        let taken = self.encode(client.arrived())?;
        client.consume(taken);
        Ok(())
    }

    /// Returns whether anything arrived.
    fn receive(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut (impl ClientStream + ?Sized),
        pool: &Pool,
    ) -> Result<bool, Stopped> {
        let mut room = pool.buffer();
        let received = client.poll_receive(cx, &mut room);
        let outcome = match received {
            Poll::Ready(Ok(n)) if n > 0 => {
                let input = room.get(..n).unwrap_or_default();
                self.encode(input).map(|taken| {
                    let beyond = input.get(taken..).unwrap_or_default();
                    if !beyond.is_empty() {
                        client.give_back(beyond);
                    }
                    true
                })
            }
            Poll::Ready(_) => Err(Stopped::ClientGone),
            Poll::Pending => Ok(false),
        };
        pool.give_back(room);
        outcome
    }

    /// Appends the content in `input` to `out`, framed anew. Returns how many bytes of `input` belonged to the
    /// content and its framing.
    fn encode(&mut self, input: &[u8]) -> Result<usize, Stopped> {
        let Some(content) = &mut self.content else { return Ok(0) };
        self.taken = true;
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let progress = content.feed(rest).map_err(|_| Stopped::Malformed)?;
            let data = rest.get(progress.data).unwrap_or_default();
            if let Some(announced) = &mut self.announced {
                *announced += data.len() as u64;
            }
            let left = self.allowance.checked_sub(data.len() as u64);
            self.allowance = left.ok_or(Stopped::TooLarge)?;
            if self.chunked {
                put_chunk(&mut self.out, data);
            } else {
                self.out.extend_from_slice(data);
            }
            at += progress.consumed;
            if progress.done {
                if self.chunked {
                    put_last_chunk(&mut self.out, content.trailers(), &self.may_trail);
                }
                self.content = None;
                return Ok(at);
            }
            if at >= input.len() {
                return Ok(at);
            }
        }
    }
}

/// Appends one chunk, unless it is empty: an empty chunk would end the content.
pub(super) fn put_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut shift = data.len().ilog2() / 4 * 4;
    loop {
        out.push(DIGITS[data.len() >> shift & 15]);
        if shift == 0 {
            break;
        }
        shift -= 4;
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_carry_their_length_in_hexadecimal() {
        for length in [1, 9, 15, 16, 17, 255, 256, 4096, 65_535, 1_048_577] {
            let mut out = Vec::new();
            put_chunk(&mut out, &vec![b'x'; length]);
            assert!(out.starts_with(format!("{length:x}\r\nx").as_bytes()), "{length}");
            assert_eq!(out.len(), length + 4 + format!("{length:x}").len());
        }
        let mut out = Vec::new();
        put_chunk(&mut out, b"");
        assert!(out.is_empty(), "an empty chunk would end the content");
    }

    #[test]
    fn content_is_framed_anew_and_what_lies_behind_it_is_left() {
        let pool = Pool::default();
        let head = RequestHead::in_memory(Vec::new());
        let mut upload = Upload::new(BodyLength::Chunked, None, &head, &pool);
        let input = b"3;evil=\"x\"\r\nabc\r\n00002\r\nde\r\n0\r\nTrailer: x\r\nX-Sum:1\r\n\r\nGET ";
        let taken = upload.encode(input).expect("well-formed");
        assert_eq!(&input[taken..], b"GET ");
        assert_eq!(upload.out, b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "nobody named it");
        assert!(upload.content.is_none() && upload.has_taken());

        let mut upload = Upload::new(BodyLength::Length(4), None, &head, &pool);
        assert_eq!(upload.encode(b"ab"), Ok(2));
        assert_eq!(upload.encode(b"cdGET"), Ok(2));
        assert_eq!(upload.out, b"abcd");
    }

    #[test]
    fn malformed_and_excessive_content_stops() {
        let pool = Pool::default();
        let head = RequestHead::in_memory(Vec::new());
        let mut upload = Upload::new(BodyLength::Chunked, None, &head, &pool);
        assert_eq!(upload.encode(b"2\r\nabc"), Err(Stopped::Malformed));
        let mut upload = Upload::new(BodyLength::Chunked, Some(4), &head, &pool);
        assert_eq!(upload.encode(b"5\r\nabcde\r\n"), Err(Stopped::TooLarge));
    }
}
