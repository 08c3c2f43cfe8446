//! The control socket and the metrics: a small protocol module of its own, on the same engine.
//!
//! It is an example of a module without a cache: every request is answered in *derive miss response*.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use afpa_framework::{
    Cached, Client, ClientStream, Derived, Finished, Helpers, Miss, Module, Now, Outbox,
    Persistence, Receipt, Timeout, Waiting,
};
use afpa_http::{
    BodyLength, Connection, FieldSlots, Host, HttpDate, Method, Request, RequestLimits,
    ResponseHead, Status, page, request, target,
};
use afpa_server::{Address, BoundListener, Engine, Settings};
use afpa_shared_cache::Purge;

use super::observe::{Exposition, Observed};
use crate::confine::Confinement;

/// The module of the administration.
pub(crate) struct Admin {
    observed: Arc<Observed>,
}

/// Whether a connection may change anything. Only connections to the control socket may, because only its
/// owner can enter its folder.
pub(crate) struct Trusted(bool);

/// The two ways to the administration. Each has an engine of its own, so that it answers when workers are busy, and so
/// that clients of the metrics take no place from the operator at the control socket.
pub(crate) struct Administration {
    control: Option<Engine<Admin>>,
    metrics: Option<Engine<Admin>>,
    /// The control socket has a path that the next process wants, too.
    shares_path: bool,
}

impl Administration {
    /// Serves the control socket and, if wanted, metrics over TCP.
    ///
    /// # Errors
    /// When one of them cannot be listened on.
    pub(super) fn start(
        observed: &Arc<Observed>,
        confinement: &Confinement,
        control: Option<BoundListener>,
        metrics: Option<BoundListener>,
        shares_path: bool,
    ) -> anyhow::Result<Self> {
        let serve = |listener: Option<BoundListener>| {
            listener
                .map(|listener| start(Arc::clone(observed), confinement.clone(), listener))
                .transpose()
        };
        Ok(Self { control: serve(control)?, metrics: serve(metrics)?, shares_path })
    }

    /// Where it can be reached.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.control.iter().chain(&self.metrics).flat_map(Engine::addresses)
    }

    /// Gives the addresses up that the next process needs, as workers do with theirs.
    pub(super) fn drain(&mut self) {
        let control = self.control.iter_mut().filter(|_| self.shares_path);
        control.chain(&mut self.metrics).for_each(Engine::drain);
    }

    pub(super) fn stop(&mut self) {
        self.control.iter_mut().chain(&mut self.metrics).for_each(Engine::stop);
    }
}

/// Requests are short and arrive at once. Anybody may come to the metrics: nobody gets more than a part of the places, or
/// keeps one for long.
fn start(
    observed: Arc<Observed>,
    confinement: Confinement,
    listener: BoundListener,
) -> anyhow::Result<Engine<Admin>> {
    const WAIT: Duration = Duration::from_secs(5);
    let settings = Settings {
        workers: 1,
        connections: 512,
        connections_per_client: 64,
        head_timeout: WAIT,
        idle_timeout: WAIT,
        body_timeout: WAIT,
        write_timeout: WAIT,
        helper_threads: 1,
        helper_start: confinement.helpers_below([]),
        ..Settings::default()
    };
    let largest_head = RequestLimits::default().head;
    let mut engine = Engine::start(&settings, largest_head, move |_| {
        confinement.confine_worker();
        Admin { observed: Arc::clone(&observed) }
    })?;
    engine.listen(listener)?;
    Ok(engine)
}

struct Answer {
    status: Status,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Answer {
    fn text(status: Status, text: impl Into<Vec<u8>>) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: text.into() }
    }

    fn error(status: Status) -> Self {
        Self { status, content_type: page::CONTENT_TYPE, body: page::error_page(status) }
    }
}

impl Admin {
    fn answer(&self, trusted: bool, request: &Request<'_, '_>) -> Answer {
        let path = request.target.path().unwrap_or_default();
        match (&request.method, path) {
            (Method::Get | Method::Head, b"/metrics") => self.metrics(Exposition::wanted(request)),
            (Method::Get | Method::Head, b"/health") => Answer::text(Status::OK, "ok\n"),
            (Method::Get | Method::Head, b"/stats") => self.stats(),
            (Method::Get | Method::Head, b"/top") if trusted => self.top(request.target.query()),
            (Method::Post, b"/purge") if trusted => self.purge(request.target.query()),
            (Method::Post, b"/drain") if trusted => self.order(request.target.query(), true),
            (Method::Post, b"/ready") if trusted => self.order(request.target.query(), false),
            (Method::Get | Method::Head, b"/deny") if trusted => {
                Answer::text(Status::OK, self.observed.police.list_denied())
            }
            (Method::Post, b"/deny/add") if trusted => self.deny(request.target.query(), true),
            (Method::Post, b"/deny/del") if trusted => self.deny(request.target.query(), false),
            (Method::Get | Method::Head, b"/") => Answer::text(Status::OK, INDEX),
            (
                _,
                b"/metrics" | b"/health" | b"/stats" | b"/top" | b"/purge" | b"/drain" | b"/ready"
                | b"/" | b"/deny" | b"/deny/add" | b"/deny/del",
            ) => Answer::error(Status::METHOD_NOT_ALLOWED),
            _ => Answer::error(Status::NOT_FOUND),
        }
    }

    fn metrics(&self, format: Exposition) -> Answer {
        let content_type = format.content_type();
        match self.observed.metrics(format) {
            Ok(text) => Answer { status: Status::OK, content_type, body: text.into_bytes() },
            Err(_) => Answer::error(Status::INTERNAL_SERVER_ERROR),
        }
    }

    fn stats(&self) -> Answer {
        let body = self.observed.to_json().to_string().into_bytes();
        Answer { status: Status::OK, content_type: "application/json", body }
    }

    /// `most=COUNT`: the kept answers of servers that save most.
    fn top(&self, query: Option<&[u8]>) -> Answer {
        let most = query.and_then(|query| query.strip_prefix(b"most="));
        let most = most.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
        let body = self.observed.top_json(most.unwrap_or(TOP).min(MOST_TOP)).to_string();
        Answer { status: Status::OK, content_type: "application/json", body: body.into_bytes() }
    }

    /// `path=VALUE`, and optionally `host=NAME`: the path and host of the URL as the user typed them,
    /// percent-encoded once more.
    fn purge(&self, query: Option<&[u8]>) -> Answer {
        let value = |name: &[u8]| {
            let mut pairs = query.unwrap_or_default().split(|byte| *byte == b'&');
            pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"=")).and_then(unescape)
        };
        let (soft, below) = (value(b"soft").is_some(), value(b"below").is_some());
        let responses = self.observed.serving.load().global.responses.clone();
        let purged = |what: Purge| {
            let count = responses.as_ref().map_or(0, |responses| responses.purge(&what, soft));
            Answer::text(Status::OK, purged(count, soft))
        };
        if let Some(tag) = value(b"tag") {
            return purged(Purge::Tag(tag));
        }
        let host = value(b"host");
        let host = match host.as_deref().map(Host::parse) {
            Some(Err(refusal)) => {
                return Answer::text(Status::BAD_REQUEST, format!("host: {refusal}\n"));
            }
            Some(Ok(host)) => Some(host.name()),
            None => None,
        };
        let Some(typed) = value(b"path") else {
            return match host {
                Some(host) => purged(Purge::Host(host.as_bytes().to_vec())),
                None => Answer::text(
                    Status::BAD_REQUEST,
                    "purge needs ?path=/the/path, ?host=NAME or ?tag=TAG\n",
                ),
            };
        };
        let path = typed.split(|&byte| byte == b'?' || byte == b'#').next().unwrap_or_default();
        let (mut scratch, mut spelled) = (Vec::new(), Vec::new());
        match target::normalise(path, &mut scratch) {
            Err(error) => Answer::text(Status::BAD_REQUEST, format!("{error}\n")),
            Ok(normal) => {
                // Files have names, answers of servers have URLs, in which an escape may mean something.
                let url = target::spell(path, &mut spelled).unwrap_or_default().to_vec();
                let path = normal;
                let shown = String::from_utf8_lossy(path).into_owned();
                let named = host.map(|host| host.as_bytes().to_vec());
                if below {
                    return purged(Purge::Prefix { host: named, path: url });
                }
                let what = Purge::Url { host: named, path: url, query: value(b"query") };
                let count = responses.as_ref().map_or(0, |responses| responses.purge(&what, soft));
                if soft {
                    return Answer::text(Status::OK, self::purged(count, soft));
                }
                Answer::text(
                    Status::OK,
                    match self.observed.serving.load().purge(host, path) {
                        Some(_) if count > 0 => format!("{shown} was dropped from the cache\n"),
                        Some(true) => format!("{shown} was dropped from the cache\n"),
                        Some(false) => format!("{shown} was not in the cache\n"),
                        None => format!("no site has the host {}\n", host.unwrap_or_default()),
                    },
                )
            }
        }
    }
}

impl Admin {
    /// `server=NAME`, and optionally `&group=NAME`: lets a server drain, or take requests again.
    fn order(&self, query: Option<&[u8]>, drain: bool) -> Answer {
        let Some(server) = parameter(query, b"server=") else {
            return Answer::text(Status::BAD_REQUEST, "an order needs ?server=NAME\n");
        };
        let wanted = parameter(query, b"group=");
        let mut text = String::new();
        for group in self.observed.serving.load().groups() {
            if wanted.as_deref().is_some_and(|wanted| wanted != group.name()) {
                continue;
            }
            let what = if drain { "drains" } else { "is ready" };
            for meant in group.order_drain(&server, drain) {
                text.push_str(&format!("{meant} of {} {what}\n", group.name()));
            }
        }
        match text.is_empty() {
            true => Answer::text(
                Status::NOT_FOUND,
                format!("no server is called {server}: afpa stats lists them\n"),
            ),
            false => Answer::text(Status::OK, text),
        }
    }
}

impl Admin {
    /// `prefix=PREFIX`: denies it, or takes such an order back.
    fn deny(&self, query: Option<&[u8]>, denied: bool) -> Answer {
        let Some(prefix) = parameter(query, b"prefix=") else {
            return Answer::text(Status::BAD_REQUEST, "an order needs ?prefix=PREFIX\n");
        };
        let police = &self.observed.police;
        let done = if denied { police.deny(&prefix) } else { police.undeny(&prefix) };
        match done {
            Ok(prefix) => {
                let (what, so_many) = (said(denied), police.denied().len());
                tracing::info!("{prefix} {what}, {so_many} prefixes are denied");
                Answer::text(Status::OK, format!("{prefix} {what}\n"))
            }
            Err(refused) => Answer::text(Status::BAD_REQUEST, format!("{refused}\n")),
        }
    }
}

fn purged(count: usize, soft: bool) -> String {
    match (count, soft) {
        (1, false) => "1 answer was dropped from the cache\n".to_owned(),
        (count, false) => format!("{count} answers were dropped from the cache\n"),
        (1, true) => "1 answer has to be validated\n".to_owned(),
        (count, true) => format!("{count} answers have to be validated\n"),
    }
}

fn said(denied: bool) -> &'static str {
    if denied { "is denied" } else { "is not denied any more" }
}

/// A parameter of a query, unescaped; `name` ends with its equals sign.
fn parameter(query: Option<&[u8]>, name: &[u8]) -> Option<String> {
    let mut all = query?.split(|&byte| byte == b'&');
    let value = all.find_map(|one| one.strip_prefix(name)).and_then(unescape)?;
    String::from_utf8(value).ok()
}

/// Answers that are listed unless the request says how many, and at most.
const TOP: usize = 20;
const MOST_TOP: usize = 10_000;

const INDEX: &str = "GET /health  GET /metrics  GET /stats\n";

fn unescape(value: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            plain.push(*byte);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        plain.push((digit(high)? * 16 + digit(low)?) as u8);
        rest = tail;
    }
    Some(plain)
}

impl Module for Admin {
    type Connection = Trusted;
    type Slots<'b> = FieldSlots<'b>;
    type Request<'s, 'b>
        = Request<'s, 'b>
    where
        'b: 's;
    type Routed<'m, 's, 'b>
        = (&'m Admin, Now, &'m Request<'s, 'b>)
    where
        'b: 's,
        's: 'm;
    type Uncached = Infallible;
    type Loaded = Infallible;
    type Remote = Infallible;
    type Exchanged = Infallible;

    fn connected(&mut self, client: Client, _: u32) -> Trusted {
        Trusted(client == Client::Unix)
    }

    fn derive_request<'s, 'b>(
        &mut self,
        _: &mut Trusted,
        now: Now,
        input: &'b [u8],
        slots: &'s mut FieldSlots<'b>,
        out: &mut Outbox,
    ) -> Derived<Request<'s, 'b>> {
        if input.is_empty() {
            return Derived::Incomplete(Waiting::Idle);
        }
        let refusal = match request::parse(input, slots, &RequestLimits::default()) {
            Ok(None) => return Derived::Incomplete(Waiting::Head),
            Ok(Some(parsed)) if parsed.body == BodyLength::None => {
                let consumed = parsed.head_len;
                return Derived::Request(parsed, consumed);
            }
            Ok(Some(_)) => Status::CONTENT_TOO_LARGE,
            Err(refusal) => refusal.status(),
        };
        send(&Answer::error(refusal), now, true, Connection::Close, out);
        Derived::Refused
    }

    fn derive_cached_response<'m, 's, 'b>(
        &'m mut self,
        _: &mut Trusted,
        now: Now,
        request: &'m Request<'s, 'b>,
        _: &mut Outbox,
    ) -> Cached<Self::Routed<'m, 's, 'b>>
    where
        'b: 's,
        's: 'm,
    {
        Cached::Miss((self, now, request))
    }

    fn derive_miss_response(
        (admin, now, request): Self::Routed<'_, '_, '_>,
        trusted: &mut Trusted,
        out: &mut Outbox,
    ) -> Miss<Infallible, Infallible> {
        let answer = admin.answer(trusted.0, request);
        // One request for each connection: requests are too rare for more to matter.
        send(&answer, now, request.method != Method::Head, Connection::Close, out);
        Miss::Answered(Persistence::Close)
    }

    fn derive_uncached_response(
        &mut self,
        _: Now,
        never: Infallible,
        _: &Helpers,
    ) -> impl Future<Output = Infallible> + 'static {
        std::future::ready(never)
    }

    fn finish_uncached(
        &mut self,
        _: &mut Trusted,
        _: Now,
        never: Infallible,
        _: &mut Outbox,
    ) -> Finished<Infallible> {
        match never {}
    }

    fn derive_remote_response<'c, C: ClientStream>(
        &mut self,
        never: Infallible,
        _: &'c mut C,
    ) -> impl Future<Output = Infallible> + use<'c, C> {
        std::future::ready(never)
    }

    fn finish_remote(
        &mut self,
        _: &mut Trusted,
        _: Now,
        never: Infallible,
        _: &mut Outbox,
    ) -> Persistence {
        match never {}
    }

    fn timed_out(&mut self, _: &mut Trusted, _: Timeout, _: &[u8], _: Now, _: &mut Outbox) {}

    fn refuse_connection(&mut self, _: Client, now: Now, out: &mut Outbox) {
        send(&Answer::error(Status::SERVICE_UNAVAILABLE), now, true, Connection::Close, out);
    }

    fn sent(&mut self, _: &Receipt, _: Now, _: u64) {}

    fn drain(&mut self) {}

    fn tick(&mut self, _: Now) {}

    fn release_dropped(&mut self) {}
}

fn send(answer: &Answer, now: Now, with_body: bool, connection: Connection, out: &mut Outbox) {
    ResponseHead::build(answer.status)
        .field("Content-Type", answer.content_type)
        .content_length(answer.body.len() as u64)
        .field("Cache-Control", "no-store")
        .finish()
        .write(&mut out.bytes, &HttpDate::new(now.unix()), connection);
    if with_body {
        out.bytes.extend_from_slice(&answer.body);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_their_names() {
        let query = Some(&b"server=app%3A80&group=a%26b"[..]);
        assert_eq!(parameter(query, b"server=").as_deref(), Some("app:80"));
        assert_eq!(parameter(query, b"group=").as_deref(), Some("a&b"));
        assert_eq!(parameter(query, b"x="), None);
        assert_eq!(parameter(Some(b"server=%ff"), b"server="), None);
    }

    #[test]
    fn a_purged_path_is_unescaped_once() {
        assert_eq!(unescape(b"/a%2520b/%26x").as_deref(), Some(&b"/a%20b/&x"[..]));
        assert_eq!(unescape(b"/plain").as_deref(), Some(&b"/plain"[..]));
        for broken in [&b"%"[..], b"%2", b"%zz"] {
            assert_eq!(unescape(broken), None);
        }
    }
}
