//! An engine with a server group behind it, and servers that behave as a test wants.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use afpa_cache::root::{DocumentRoot, RootSettings};
use afpa_cache::{Arena, CacheSettings};
use afpa_framework::{Network, steady_ms};
use afpa_module_http::NoAccessLog;
use afpa_module_http::{DocRoot, DocRootSettings, Global, Http, HttpCounters, ServerGroup, Site};
use afpa_proxy::exchange::{Core, Settings as ExchangeSettings};
use afpa_proxy::limit::{Gate, LimitSettings};
use afpa_proxy::select::{Group, GroupSettings, ServerAddress, ServerSettings};
use afpa_router::{
    Action, Affinity, Conditions, Content, ContentGroup, GroupId, ListenerId, PathEntry, Reach,
    Redirect, RootId, Router, Table,
};
use afpa_server::{Address, BoundListener, Engine, ListenerSettings, Settings};
use afpa_testkit::{Client, Endpoint};

/// The settings that a test may change before the start.
pub(crate) struct Plan {
    pub(crate) group: GroupSettings,
    pub(crate) exchange: ExchangeSettings,
    pub(crate) limits: LimitSettings,
    pub(crate) engine: Settings,
    pub(crate) forwarded_from: Arc<[Network]>,
    pub(crate) proxy_from: Arc<[Network]>,
}

/// AFPA with one site: `/static/` is cached, `/old/` moved, everything else distributed.
pub(crate) struct Rig {
    pub(crate) engine: Engine<Http>,
    pub(crate) address: SocketAddr,
    pub(crate) counters: Arc<HttpCounters>,
    _root: tempfile::TempDir,
}

impl Rig {
    pub(crate) fn to(servers: &[&Backend], change: impl FnOnce(&mut Plan)) -> Self {
        let places: Vec<String> = servers.iter().map(|server| server.place()).collect();
        Self::to_places(&places, change)
    }

    pub(crate) fn to_places(places: &[String], change: impl FnOnce(&mut Plan)) -> Self {
        let server =
            |place: &String| ServerSettings::at(place.parse::<ServerAddress>().expect("a place"));
        let mut plan = Plan {
            group: GroupSettings {
                name: "app".into(),
                servers: places.iter().map(server).collect(),
                ..GroupSettings::default()
            },
            exchange: ExchangeSettings::default(),
            limits: LimitSettings::default(),
            engine: Settings::default(),
            forwarded_from: Arc::default(),
            proxy_from: Arc::default(),
        };
        change(&mut plan);
        plan.engine.remote_timeout = Some(plan.exchange.shortest());
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("static")).expect("a folder");
        std::fs::write(root.path().join("static/a.txt"), "from the cache").expect("a file");
        let global = global(root.path(), &plan);

        let counters = Arc::new(HttpCounters::default());
        let counted = Arc::clone(&counters);
        let module = move |context: afpa_server::worker::WorkerContext| {
            let counters = Arc::clone(&counted);
            let core = Core::new(context.ring);
            Http::new(Arc::clone(&global), counters, Box::new(NoAccessLog), core, context.wake)
        };
        let mut engine = Engine::start(&plan.engine, 32 * 1024, module).expect("starts");
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener = BoundListener::bind(&any, 1, 128).expect("binds");
        let Address::Tcp(address) = listener.address else { panic!("tcp stays tcp") };
        let proxy_from = plan.proxy_from.clone();
        let settings = ListenerSettings { proxy_from, ..ListenerSettings::default() };
        engine.listen(listener.with(settings)).expect("listens");
        Self { engine, address, counters, _root: root }
    }

    pub(crate) fn connect(&self) -> Client {
        Client::connect(&Endpoint::Tcp(self.address)).expect("connects")
    }
}

fn global(root: &Path, plan: &Plan) -> Arc<Global> {
    let content = |action| Content {
        group: ContentGroup::All,
        conditions: Conditions::default(),
        action,
        rewrite: None,
    };
    let path = |prefix: &str, action| PathEntry {
        prefix: prefix.into(),
        reach: Reach::Recursion,
        contents: vec![content(action)],
    };
    let moved = Redirect {
        status: afpa_http::Status::PERMANENT_REDIRECT,
        location: "/new/{rest}{query}".into(),
    };
    let distributed = Action::Distributed { group: GroupId(0), affinity: Affinity::None };
    let site = afpa_router::SiteEntry {
        name: "site".into(),
        listeners: vec![ListenerId(0)],
        hosts: Vec::new(),
        paths: vec![
            path("/static/", Action::Cached { root: RootId(0), fallback: None, scripts: None }),
            path("/old/", Action::Redirect(moved)),
            path("/", distributed),
        ],
    };
    let router = Router::compile(&Table { sites: vec![site] }).expect("no conflicts");
    let arena = Arena::new(8 << 20).expect("an arena");
    let root = DocumentRoot::open(root, RootSettings::default()).expect("a root");
    let cache = CacheSettings { pin_threshold: 64 << 10, ..CacheSettings::default() };
    let site = DocRoot::open(root, DocRootSettings::default(), cache, Default::default(), arena);
    Arc::new(Global {
        router: Some(Arc::new(router)),
        roots: vec![site.expect("a site")],
        sites: vec![Site {
            name: "site".into(),
            gate: Gate::new(plan.limits),
            forwarded_from: plan.forwarded_from.clone(),
            hsts: None,
            clients: None,
        }],
        groups: vec![ServerGroup {
            group: Group::new(plan.group.clone(), None, steady_ms()),
            settings: Arc::new(plan.exchange.clone()),
        }],
        body_limit: 1 << 20,
        counted_sets: 100,
        ..Global::default()
    })
}

/// A server whose connections are handled by a test. Received bytes are recorded.
pub(crate) struct Backend {
    place: String,
    records: Arc<Mutex<Vec<Vec<u8>>>>,
    accepted: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    _folder: Option<tempfile::TempDir>,
}

/// A connection as the server sees it.
pub(crate) struct Conn {
    stream: Box<dyn Stream>,
    /// Its number, from 0.
    pub(crate) number: usize,
    kept: Vec<u8>,
    records: Arc<Mutex<Vec<Vec<u8>>>>,
    asked: Arc<AtomicUsize>,
}

pub(crate) trait Stream: Read + Write + Send {
    fn reset(&self);
}

impl Stream for TcpStream {
    fn reset(&self) {
        let linger = socket2::SockRef::from(self).set_linger(Some(Duration::ZERO));
        linger.expect("a setting");
    }
}

impl Stream for std::os::unix::net::UnixStream {
    fn reset(&self) {}
}

impl Backend {
    pub(crate) fn start(handle: impl Fn(Conn) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let place = listener.local_addr().expect("bound").to_string();
        let accept = move || listener.accept().ok().map(|(s, _)| Box::new(s) as Box<dyn Stream>);
        Self::run(place, None, accept, handle)
    }

    pub(crate) fn start_unix(handle: impl Fn(Conn) + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.sock");
        let listener = UnixListener::bind(&path).expect("binds");
        let accept = move || listener.accept().ok().map(|(s, _)| Box::new(s) as Box<dyn Stream>);
        Self::run(format!("unix:{}", path.display()), Some(folder), accept, handle)
    }

    /// Answers every request with the same bytes, for as long as the connection lasts.
    pub(crate) fn saying(answer: &str) -> Self {
        let answer = answer.to_owned();
        Self::start(move |mut conn| {
            while conn.request().is_some() {
                conn.send(answer.as_bytes());
            }
        })
    }

    fn run(
        place: String,
        folder: Option<tempfile::TempDir>,
        accept: impl Fn() -> Option<Box<dyn Stream>> + Send + 'static,
        handle: impl Fn(Conn) + Send + Sync + 'static,
    ) -> Self {
        let records = Arc::new(Mutex::new(Vec::new()));
        let accepted = Arc::new(AtomicUsize::new(0));
        let asked = Arc::new(AtomicUsize::new(0));
        let backend = Self {
            place,
            records: Arc::clone(&records),
            accepted: Arc::clone(&accepted),
            asked: Arc::clone(&asked),
            _folder: folder,
        };
        let handle = Arc::new(handle);
        // The thread ends with the test's process: a listener cannot be stopped.
        std::thread::spawn(move || {
            while let Some(stream) = accept() {
                let number = accepted.fetch_add(1, Ordering::SeqCst);
                let records = Arc::clone(&records);
                records.lock().unwrap_or_else(PoisonError::into_inner).push(Vec::new());
                let (handle, asked) = (Arc::clone(&handle), Arc::clone(&asked));
                std::thread::spawn(move || {
                    handle(Conn { stream, number, kept: Vec::new(), records, asked });
                });
            }
        });
        backend
    }

    pub(crate) fn place(&self) -> String {
        self.place.clone()
    }

    /// Connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Heads of requests that it has read so far, on all connections. A connection that has been accepted may still
    /// wait for its first request.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Everything that came on each connection.
    pub(crate) fn received(&self) -> Vec<Vec<u8>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Everything that came on the first connection, as text.
    pub(crate) fn first(&self) -> String {
        let first = self.received().into_iter().next().unwrap_or_default();
        String::from_utf8_lossy(&first).into_owned()
    }
}

impl Conn {
    /// Reads the next bytes; 0 at the end.
    pub(crate) fn read(&mut self) -> usize {
        let mut room = [0; 65_536];
        let n = self.stream.read(&mut room).unwrap_or(0);
        self.kept.extend_from_slice(&room[..n]);
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        // A test of a large upload must not fill the memory with it.
        if records[self.number].len() < 1 << 20 {
            records[self.number].extend_from_slice(&room[..n]);
        }
        n
    }

    /// The first of the bytes that have come and were not taken.
    pub(crate) fn first_byte(&self) -> Option<u8> {
        self.kept.first().copied()
    }

    /// For [`Backend::asked`].
    pub(crate) fn count_head(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
    }

    /// One head, blank line included; `None` at the end.
    pub(crate) fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.kept.windows(4).position(|w| w == b"\r\n\r\n") {
                let head: Vec<u8> = self.kept.drain(..end + 4).collect();
                self.count_head();
                return Some(String::from_utf8_lossy(&head).into_owned());
            }
            if self.read() == 0 {
                return None;
            }
        }
    }

    /// One request with its content; `None` at the end.
    pub(crate) fn request(&mut self) -> Option<(String, Vec<u8>)> {
        let head = self.head()?;
        let field = |name: &str| {
            head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim).map(str::to_owned)
        };
        if let Some(length) = field("Content-Length:") {
            return Some((head, self.exactly(length.parse().expect("a length"))?));
        }
        if field("Transfer-Encoding:").is_some() {
            let mut content = Vec::new();
            loop {
                let line = self.line()?;
                let size = usize::from_str_radix(&line, 16).expect("a chunk size, nothing else");
                if size == 0 {
                    while !self.line()?.is_empty() {}
                    return Some((head, content));
                }
                content.extend(self.exactly(size)?);
                assert_eq!(self.line()?, "", "a chunk ends in CRLF");
            }
        }
        Some((head, Vec::new()))
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.kept.windows(2).position(|w| w == b"\r\n") {
                let line: Vec<u8> = self.kept.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.read() == 0 {
                return None;
            }
        }
    }

    pub(crate) fn exactly(&mut self, size: usize) -> Option<Vec<u8>> {
        while self.kept.len() < size {
            if self.read() == 0 {
                return None;
            }
        }
        Some(self.kept.drain(..size).collect())
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // A test that ends the connection first ends the server's part, too.
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Sends for as long as the other side takes it; how much it took.
    pub(crate) fn flood(&mut self, most: u64) -> u64 {
        let piece = [b'x'; 65_536];
        let mut sent = 0;
        while sent < most {
            let n = piece.len().min((most - sent) as usize);
            match self.stream.write(&piece[..n]) {
                Ok(0) | Err(_) => break,
                Ok(n) => sent += n as u64,
            }
        }
        sent
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) {
        self.stream.reset();
    }

    /// Waits until the other side has ended it.
    pub(crate) fn wait_for_end(mut self) {
        while self.read() > 0 {}
    }
}
