//! The control socket and the metrics: a small protocol module of its own, on the same engine.
//!
//! It is an example of a module without a cache: every request is answered in *derive miss response*.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use afpa_fleet::LONGEST_FILES;
use afpa_framework::{
    Arguments, Cached, Client, ClientStream, Control, Derived, Diagram, Helpers, Miss, Module, Now,
    Offered, Operation, Outbox, Peer, Persistence, Protocol, Receipt, Refusal, Reply, Then,
    Timeout, Waiting,
};
use afpa_http::{
    BodyLength, Connection, FieldSlots, Host, HttpDate, Method, Request, RequestLimits,
    ResponseHead, Status, page, request,
};
use afpa_server::{Address, BoundListener, Engine, Settings};

use super::fleet_control::FleetOperations;
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
#[derive(Default)]
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
        (control, metrics): (Option<BoundListener>, Option<BoundListener>),
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

    /// The sockets, for the next process: that of the metrics, and a control socket whose path it has, too.
    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let control = self.control.iter().filter(|_| self.shares_path);
        let listeners = control.chain(&self.metrics).flat_map(Engine::listeners);
        listeners.flat_map(BoundListener::all_sockets)
    }

    /// The next process has the sockets, and takes orders from now on.
    pub(super) fn drain_for_next(&mut self) {
        let metrics = self.metrics.iter_mut();
        match self.shares_path {
            true => {
                metrics.chain(&mut self.control).for_each(|one| one.drain_for_next(Duration::ZERO))
            }
            false => metrics.chain(&mut self.control).for_each(Engine::drain),
        }
    }

    /// The process before has left its sockets to this one.
    pub(super) fn take_files(&self) {
        let engines = self.control.iter().chain(&self.metrics);
        engines.flat_map(Engine::listeners).for_each(BoundListener::take_file);
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
    let is_control = matches!(listener.address, Address::Unix(_));
    let largest_head = if is_control { LARGEST } else { RequestLimits::default().head };
    let mut engine = Engine::start(&settings, largest_head, move |_| {
        confinement.confine_worker();
        Admin { observed: Arc::clone(&observed) }
    })?;
    engine.listen(listener)?;
    Ok(engine)
}

struct Answer {
    status: Status,
    reply: Reply,
}

impl Answer {
    fn text(status: Status, text: impl Into<Vec<u8>>) -> Self {
        Self { status, reply: Reply::text(text) }
    }

    fn error(status: Status) -> Self {
        let content = page::error_page(status);
        Self { status, reply: Reply { content_type: page::CONTENT_TYPE, content } }
    }
}

impl From<Result<Reply, Refusal>> for Answer {
    fn from(outcome: Result<Reply, Refusal>) -> Self {
        match outcome {
            Ok(reply) => Self { status: Status::OK, reply },
            Err(Refusal::Invalid(why)) => Self::text(Status::BAD_REQUEST, why + "\n"),
            Err(Refusal::Absent(why)) => Self::text(Status::NOT_FOUND, why + "\n"),
            Err(Refusal::Failed) => Self::error(Status::INTERNAL_SERVER_ERROR),
        }
    }
}

impl Admin {
    /// Carries out an operation: the first path segments are its name. `/` lists all that the client may ask for.
    fn answer(&self, trusted: bool, asked: &Asked<'_, '_>) -> Answer {
        let Asked { request, content } = asked;
        let exposition = Exposition::wanted(request);
        let framework = Framework { observed: &self.observed, exposition };
        let serving = self.observed.serving.load();
        let fleet = self.observed.fleet.load_full();
        let fleet = fleet.map(|fleet| FleetOperations { fleet, observed: &self.observed, content });
        let mut owners: Vec<&dyn Control> =
            vec![&framework, &*serving.global, &*self.observed.zones];
        owners.extend(fleet.iter().map(|fleet| fleet as &dyn Control));
        let offered = Offered::of(&owners, trusted);
        let name = request.target.path().and_then(|path| path.strip_prefix(b"/"));
        let name = name.unwrap_or_default();
        if name.is_empty() && matches!(request.method, Method::Get | Method::Head) {
            return Answer::text(Status::OK, offered.list());
        }
        let (owner, operation) = match offered.find(name) {
            Ok(found) => found,
            Err(unknown) => return Err::<Reply, _>(unknown).into(),
        };
        if !trusted
            && FOR_BROWSERS.contains(&operation.name)
            && !is_own(&serving.hosts, &request.host)
        {
            return Answer::text(Status::MISDIRECTED_REQUEST, NOT_OWN);
        }
        match (operation.method(), &request.method) {
            ("GET", Method::Get | Method::Head) | ("POST", Method::Post) => {
                let arguments = Arguments::new(request.target.query());
                if operation.name == "purge" && self.observed.purges.waits() {
                    let why = "a reload exchanges the fleet: try again in a moment".to_owned();
                    return Err::<Reply, _>(Refusal::Invalid(why)).into();
                }
                let fleet = fleet.as_ref().filter(|_| operation.name == "purge");
                let everywhere = fleet.and_then(|fleet| fleet.purge_everywhere(&arguments));
                everywhere.unwrap_or_else(|| owner.call(operation.name, &arguments)).into()
            }
            _ => Answer::error(Status::METHOD_NOT_ALLOWED),
        }
    }
}

/// Operations whose answers a page of a stranger could read, if its name led here (DNS rebinding). A collector of metrics
/// comes by whatever name it was given.
const FOR_BROWSERS: [&str; 2] = ["stats", "status"];

const NOT_OWN: &str = "this is no name of this server: ask for it by its address, as localhost, \
                       or by one of the `hosts` of a [[site]]\n";

/// Whether a stranger cannot have made a name lead here: it is an address, localhost, or one of these hosts. Browsers
/// always send one.
fn is_own(hosts: &[String], host: &Host<'_>) -> bool {
    let name = host.name().to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_one_of = |own: &String| match own.strip_prefix('*') {
        Some(end) => name.len() > end.len() && name.ends_with(end),
        None => own == name,
    };
    host.is_absent()
        || bare.parse::<IpAddr>().is_ok()
        || name == "localhost"
        || hosts.iter().any(is_one_of)
}

/// The framework's own operations.
struct Framework<'o> {
    observed: &'o Arc<Observed>,
    /// The format of metrics.
    exposition: Exposition,
}

/// It asks for `stats` again and again, and draws the growth of the numbers.
const STATUS_PAGE: &[u8] = include_bytes!("status.html");

const OPERATIONS: &[Operation] = &[
    Operation::public("health", "", "whether it answers"),
    Operation::public("metrics", "", "all numbers, for Prometheus"),
    Operation::public("stats", "", "all numbers, as JSON"),
    Operation::public("status", "", "the same live, for a browser"),
    Operation::look("deny", "", "the denied prefixes"),
    Operation::change("deny/add", "prefix=PREFIX", "refuses the clients of a prefix"),
    Operation::change("deny/del", "prefix=PREFIX", "takes such an order back"),
];

impl Control for Framework<'_> {
    fn operations(&self) -> &'static [Operation] {
        OPERATIONS
    }

    fn call(&self, name: &str, arguments: &Arguments<'_>) -> Result<Reply, Refusal> {
        match name {
            "health" => Ok(Reply::text("ok\n")),
            "metrics" => {
                let page = self.observed.metrics(self.exposition).map_err(|_| Refusal::Failed)?;
                let content_type = self.exposition.content_type();
                Ok(Reply { content_type, content: page.into_bytes() })
            }
            "stats" => Ok(Reply::json(self.observed.to_json().to_string())),
            "status" => {
                Ok(Reply { content_type: page::CONTENT_TYPE, content: STATUS_PAGE.to_vec() })
            }
            "deny" => Ok(Reply::text(self.observed.police.list_denied())),
            "deny/add" => self.deny(arguments, true),
            "deny/del" => self.deny(arguments, false),
            _ => Err(Refusal::Failed),
        }
    }
}

impl Framework<'_> {
    /// Denies a prefix, or takes such an order back.
    fn deny(&self, arguments: &Arguments<'_>, denied: bool) -> Result<Reply, Refusal> {
        let police = &self.observed.police;
        let prefix = arguments.text("prefix");
        let done = police.order(prefix.as_deref(), denied).map_err(Refusal::Invalid)?;
        tracing::info!("{done}, {} prefixes are denied", police.denied().len());
        Ok(Reply::text(done + "\n"))
    }
}

/// A request with its content.
pub(crate) struct Asked<'s, 'b> {
    request: Request<'s, 'b>,
    content: &'b [u8],
}

/// More of it has to come.
struct Partial;

/// Bytes of a request to the control socket: the files of a configuration, as JSON.
const LARGEST: usize = 2 * LONGEST_FILES;

/// The content of a request; `None`: it is not taken. Only the operator has any.
fn content<'b>(
    request: &Request<'_, '_>,
    input: &'b [u8],
    trusted: bool,
) -> Option<Result<&'b [u8], Partial>> {
    let length = match request.body {
        BodyLength::None => 0,
        BodyLength::Length(length) if trusted => usize::try_from(length).ok()?,
        _ => return None,
    };
    let end = request.head_len.checked_add(length).filter(|end| *end <= LARGEST)?;
    Some(input.get(request.head_len..end).ok_or(Partial))
}

impl Protocol for Admin {
    type Table = Diagram;
}

impl Module for Admin {
    type Connection = Trusted;
    type Slots<'b> = FieldSlots<'b>;
    type Request<'s, 'b>
        = Asked<'s, 'b>
    where
        'b: 's;
    type Routed<'m, 's, 'b>
        = (&'m Admin, Now, &'m Asked<'s, 'b>)
    where
        'b: 's,
        's: 'm;
    type Uncached = Infallible;
    type Loaded = Infallible;
    type Remote = Infallible;
    type Exchanged = Infallible;
    type Checked = Infallible;

    // It is for operators and their tools: half of the engine is left out.
    const TAKES_TLS: bool = false;
    const TAKES_STREAMS: bool = false;

    fn connected(&mut self, peer: Peer, _: u32) -> Trusted {
        Trusted(peer.client == Client::Unix)
    }

    fn derive_request<'s, 'b>(
        &mut self,
        trusted: &mut Trusted,
        now: Now,
        input: &'b [u8],
        slots: &'s mut FieldSlots<'b>,
        out: &mut Outbox,
    ) -> Derived<Asked<'s, 'b>> {
        if input.is_empty() {
            return Derived::Incomplete(Waiting::Idle);
        }
        let refusal = match request::parse(input, slots, &RequestLimits::default()) {
            Ok(None) => return Derived::Incomplete(Waiting::Head),
            Ok(Some(request)) => match content(&request, input, trusted.0) {
                Some(Ok(content)) => {
                    let consumed = request.head_len + content.len();
                    return Derived::Request(Asked { request, content }, consumed);
                }
                Some(Err(Partial)) => return Derived::Incomplete(Waiting::Head),
                None => Status::CONTENT_TOO_LARGE,
            },
            Err(refusal) => refusal.status(),
        };
        send(&Answer::error(refusal), now, true, Connection::Close, out);
        Derived::Refused
    }

    fn derive_cached_response<'m, 's, 'b>(
        &'m mut self,
        _: &mut Trusted,
        now: Now,
        request: &'m Asked<'s, 'b>,
        _: &mut Outbox,
    ) -> Cached<Self::Routed<'m, 's, 'b>>
    where
        'b: 's,
        's: 'm,
    {
        Cached::Miss((self, now, request))
    }

    fn derive_miss_response(
        (admin, now, asked): Self::Routed<'_, '_, '_>,
        trusted: &mut Trusted,
        out: &mut Outbox,
    ) -> Miss<Infallible, Infallible> {
        let answer = admin.answer(trusted.0, asked);
        // One request for each connection: requests are too rare for more to matter.
        send(&answer, now, asked.request.method != Method::Head, Connection::Close, out);
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
    ) -> Then<Infallible, Infallible> {
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
    ) -> Then<Infallible, Infallible> {
        match never {}
    }

    fn derive_again<'s, 'b>(
        &mut self,
        _: &mut Trusted,
        _: Now,
        never: &'b mut Infallible,
        _: &'s mut FieldSlots<'b>,
        _: &mut Outbox,
    ) -> Option<Asked<'s, 'b>> {
        match *never {}
    }

    fn timed_out(&mut self, _: &mut Trusted, _: Timeout, _: &[u8], _: Now, _: &mut Outbox) {}

    fn refuse_connection(&mut self, _: Client, now: Now, out: &mut Outbox) {
        send(&Answer::error(Status::SERVICE_UNAVAILABLE), now, true, Connection::Close, out);
    }

    fn sent(&mut self, _: &Receipt, _: Now, _: u64) {}

    fn release_dropped(&mut self) {}
}

fn send(answer: &Answer, now: Now, with_body: bool, connection: Connection, out: &mut Outbox) {
    ResponseHead::build(answer.status)
        .field("Content-Type", answer.reply.content_type)
        .content_length(answer.reply.content.len() as u64)
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
        .finish()
        .write(&mut out.bytes, &HttpDate::new(now.unix()), connection);
    if with_body {
        out.bytes.extend_from_slice(&answer.reply.content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_stranger_has_are_own() {
        let hosts = ["www.example.org".to_owned(), "*.example.net".to_owned()];
        let is_own = |text: &'static str| {
            let host = Host::parse(text.as_bytes()).unwrap();
            super::is_own(&hosts, &host)
        };
        for own in [
            "127.0.0.1",
            "127.0.0.1:9090",
            "[::1]:9090",
            "localhost:9090",
            "LOCALHOST",
            "WWW.example.org",
            "www.example.org.:80",
            "a.example.net",
        ] {
            assert!(is_own(own), "{own}");
        }
        for strange in ["evil.example", "example.net", "localhost.evil.example", "1.2.3.4.nip.io"] {
            assert!(!is_own(strange), "{strange}");
        }
        assert!(super::is_own(&hosts, &Host::ABSENT));
    }
}
