//! A request whose answer another one has asked for.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use afpa_cache::Object;
use afpa_framework::{BreakOff, ClientStream, Persistence};
use afpa_http::caching::cache_status::{self, Outcome};
use afpa_http::edits::Edits;
use afpa_http::{Connection, Version};
use afpa_proxy::exchange::Failure;

use crate::answer::put_hsts;
use crate::fetch::send::send;
use crate::fetch::{Arriving, Fetch, Next, Phase, Seat};
use crate::store::stored::{Draft, StoredResponse};

/// The outcome for a follower.
#[derive(Debug)]
pub(crate) enum Followed {
    /// This answers it.
    Stored(Arc<Object<StoredResponse>>),
    /// The answer was sent as it arrived: so many bytes of content.
    Sent { status: u16, bytes: u64, persistence: Persistence },
    /// The answer broke off after it had begun.
    Broken { status: u16, bytes: u64 },
    /// No server answered.
    Failed(Failure),
    /// The answer is not for others, or has not come in time: it goes to a server itself.
    Alone,
    /// The answer is not for this request. Another machine may have one that is.
    Other,
    /// The leading request has gone: another one has to lead.
    Again,
    /// Its client went away.
    ClientGone,
}

/// The properties of a follower.
#[derive(Clone, Copy)]
pub(crate) struct Follower<'a> {
    pub(crate) version: Version,
    pub(crate) keep_alive: bool,
    /// Whether it can be answered as the answer arrives.
    pub(crate) streams: bool,
    /// The outcome to tell the client.
    pub(crate) cache_status: Option<Outcome>,
    /// The value of Strict-Transport-Security that it is to get, unless the server has sent one.
    pub(crate) hsts: Option<&'a str>,
    /// Further field lines that it is to get.
    pub(crate) lines: Option<&'a [u8]>,
    /// The changes of its fields.
    pub(crate) edits: Option<Edits<'a>>,
    /// Its own key among responses that vary.
    pub(crate) variant: &'a dyn Fn(&[Box<str>]) -> Vec<u8>,
    /// How long it waits for a head.
    pub(crate) wait_ms: u64,
}

/// Follows a fetch.
pub(crate) async fn follow<C: ClientStream + ?Sized>(
    fetch: &Fetch,
    client: &mut C,
    who: Follower<'_>,
) -> Followed {
    let mut seat = Seat::default();
    let followed = answer(fetch, client, who, &mut seat).await;
    fetch.stand_up(&mut seat);
    followed
}

async fn answer<C: ClientStream + ?Sized>(
    fetch: &Fetch,
    client: &mut C,
    who: Follower<'_>,
    seat: &mut Seat,
) -> Followed {
    let until = client.cached_now().steady_ms().saturating_add(who.wait_ms);
    let mut waiting = Waiting { until, armed: false };
    let phase = poll_fn(|cx| waiting.poll(cx, client, |cx| fetch.poll_answer(cx, seat))).await;
    let arriving = match phase {
        Ok(Phase::Arriving(arriving)) => arriving,
        Ok(Phase::Whole(object) | Phase::Stored(object)) => return for_it(who, object),
        Ok(Phase::Failed(failure)) => return Followed::Failed(failure),
        Ok(Phase::Gone | Phase::Waiting) => return Followed::Again,
        Ok(Phase::Passed) | Err(Ended::Over) => return Followed::Alone,
        Err(Ended::ClientGone) => return Followed::ClientGone,
    };
    if !who.is_for(arriving.draft.vary(), &arriving.variant) {
        return Followed::Other;
    }
    // An answer without a length may grow beyond the limit on kept answers, and a follower that has begun to send it
    // would have to break off.
    let may_stream = who.streams && arriving.announced.is_some();
    let arriving = if may_stream || arriving.is_whole {
        arriving
    } else {
        if let Some(until) = arriving.waits_until() {
            if until <= client.now().steady_ms() {
                return Followed::Alone;
            }
            waiting = Waiting { until: until.min(waiting.until), armed: false };
        }
        let whole = poll_fn(|cx| waiting.poll(cx, client, |cx| fetch.poll_whole(cx, seat))).await;
        match whole {
            Ok(()) => {}
            Err(Ended::Over) => return Followed::Alone,
            Err(Ended::ClientGone) => return Followed::ClientGone,
        }
        match poll_fn(|cx| fetch.poll_answer(cx, seat)).await {
            Phase::Arriving(arriving) if arriving.is_whole => arriving,
            Phase::Whole(object) | Phase::Stored(object) => return for_it(who, object),
            _ => return Followed::Alone,
        }
    };
    // The variant may be that of another attempt, for another request.
    if !who.is_for(arriving.draft.vary(), &arriving.variant) {
        return Followed::Other;
    }
    match arriving.object.clone() {
        Some(object) => Followed::Stored(object),
        // An answer that this machine does not keep is here all the same.
        None if who.streams => stream(fetch, client, who, seat, &arriving).await,
        None if fetch.is_elsewhere() => Followed::Other,
        None => Followed::Alone,
    }
}

fn for_it(who: Follower<'_>, object: Arc<Object<StoredResponse>>) -> Followed {
    let Some(response) = object.header().response() else { return Followed::Alone };
    match who.is_for(response.draft.vary(), &object.key().path) {
        true => Followed::Stored(object),
        false => Followed::Other,
    }
}

impl Follower<'_> {
    /// Whether a response with this Vary and this key is for the request.
    fn is_for(&self, names: &[Box<str>], key: &[u8]) -> bool {
        names.is_empty() || (self.variant)(names) == key
    }
}

/// Why a wait ended.
enum Ended {
    ClientGone,
    Over,
}

/// A wait that ends with the client, or after some time.
struct Waiting {
    until: u64,
    armed: bool,
}

impl Waiting {
    fn poll<C: ClientStream + ?Sized, T>(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut C,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<Result<T, Ended>> {
        if let Poll::Ready(value) = poll(cx) {
            return Poll::Ready(Ok(value));
        }
        if client.poll_gone(cx).is_ready() {
            return Poll::Ready(Err(Ended::ClientGone));
        }
        if !std::mem::replace(&mut self.armed, true) {
            client.wait_until(Some(self.until));
        }
        match client.is_over(cx) {
            true => Poll::Ready(Err(Ended::Over)),
            false => Poll::Pending,
        }
    }
}

/// How content is delimited for the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunks,
    Close,
}

/// Sends an answer as it arrives.
async fn stream<C: ClientStream + ?Sized>(
    fetch: &Fetch,
    client: &mut C,
    who: Follower<'_>,
    seat: &mut Seat,
    arriving: &Arriving,
) -> Followed {
    let draft = &arriving.draft;
    let status = draft.facts.status;
    let framing = match (arriving.announced, who.version) {
        _ if matches!(status, 204 | 304) => Framing::Length,
        (Some(_), _) => Framing::Length,
        (None, Version::Http11 | Version::Http2 | Version::Http3) => Framing::Chunks,
        (None, Version::Http10) => Framing::Close,
    };
    let keep = who.keep_alive && framing != Framing::Close;
    let cache_status = who.cache_status.filter(|_| !fetch.is_elsewhere());
    let who = Follower { cache_status, ..who };
    let mut out = head(arriving, who, framing, keep, client.cached_now().steady_ms() / 1000);
    let (mut number, mut bytes, mut begun) = (0, 0, false);
    loop {
        let next = poll_fn(|cx| fetch.poll_chunk(cx, seat, draft, number)).await;
        match next {
            Next::Chunk(chunk) => {
                number += 1;
                bytes += chunk.len() as u64;
                put_content(framing, &chunk, &mut out);
            }
            Next::End => {
                if framing == Framing::Chunks {
                    out.extend_from_slice(b"0\r\n\r\n");
                }
                if !send(client, &out).await {
                    return Followed::ClientGone;
                }
                let persistence = if keep { Persistence::Keep } else { Persistence::Close };
                return Followed::Sent { status, bytes, persistence };
            }
            // Its client has nothing yet, so another attempt may be its answer.
            Next::Broken if !begun => return Followed::Again,
            Next::Broken => {
                client.breaks_off(BreakOff::Failed);
                if framing == Framing::Close {
                    client.reset_at_end();
                }
                return Followed::Broken { status, bytes };
            }
        }
        // Content that is ready goes before a wait.
        if out.len() >= GATHERED || is_pending(fetch, seat, draft, number).await {
            if !send(client, &out).await {
                return Followed::ClientGone;
            }
            begun = true;
            out.clear();
        }
    }
}

/// A chunk without content would be the end, and `Fetch::add` lets none in.
fn put_content(framing: Framing, data: &[u8], out: &mut Vec<u8>) {
    if framing != Framing::Chunks {
        return out.extend_from_slice(data);
    }
    out.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

/// Bytes that are gathered for one write.
const GATHERED: usize = 64 * 1024;

/// Whether the next chunk has not arrived.
async fn is_pending(fetch: &Fetch, seat: &mut Seat, draft: &Arc<Draft>, number: usize) -> bool {
    poll_fn(|cx| Poll::Ready(fetch.poll_chunk(cx, seat, draft, number).is_pending())).await
}

fn head(
    Arriving { draft, announced, .. }: &Arriving,
    who: Follower<'_>,
    framing: Framing,
    keep: bool,
    now_s: u64,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(draft.head().len() + 128);
    out.extend_from_slice(draft.head());
    let age = draft.arrival.age(now_s);
    out.extend_from_slice(format!("Age: {age}\r\n").as_bytes());
    if let Some(outcome) = &who.cache_status {
        out.extend_from_slice(b"Cache-Status: ");
        cache_status::put(outcome, &mut out);
        out.extend_from_slice(b"\r\n");
    }
    put_hsts(who.hsts, draft.head(), &mut out);
    out.extend_from_slice(who.lines.unwrap_or_default());
    match (framing, *announced) {
        (Framing::Length, Some(length)) if draft.facts.status != 204 => {
            out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
        }
        (Framing::Chunks, _) => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        _ => {}
    }
    let connection = match (keep, who.version) {
        (false, _) => Connection::Close,
        (true, Version::Http11 | Version::Http2 | Version::Http3) => Connection::Implied,
        (true, Version::Http10) => Connection::KeepAlive,
    };
    out.extend_from_slice(connection.ending());
    if let Some(edits) = who.edits {
        edits.apply(&mut out, 0, draft.facts.status, None);
    }
    out
}
