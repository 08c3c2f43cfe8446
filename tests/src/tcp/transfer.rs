//! The transfer: many connections ask for all kinds of things, in all kinds of ways, and compare
//! every response with the one that nginx gave before the fast path was there.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, FlowKey};
use afpa_netlab::Bed;
use socket2::{Domain, SockRef, Socket, Type};

use super::client::{Client, blank_date, read_by};
use super::sample::{field, pin_reply};
use super::{Lab, PORT, Trace};

/// One request, and what nginx alone answers to it, its Date made blank.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// As it is sent.
    pub request: Vec<u8>,
    /// The whole response.
    pub expected: Vec<u8>,
}

/// Everything that is asked for.
#[derive(Debug, Default)]
pub struct Menu {
    /// May be answered by the kernel, once pinned: GET, HEAD, validators.
    pub pinned: Vec<Exchange>,
    /// What only nginx has: large files, missing ones.
    pub other: Vec<Exchange>,
    /// With content.
    pub posts: Vec<Exchange>,
    /// Path, response to GET where it may be pinned, 304.
    objects: Vec<(String, Option<Vec<u8>>, Vec<u8>)>,
}

/// Answers that fit into one segment of every connection. Of longer ones whole answers are the point.
const ONE_SEGMENT: usize = 1400;

/// Files of the menu: name and content.
pub fn files(seed: u64) -> Vec<(String, Vec<u8>)> {
    let mut dice = Dice(seed);
    let mut files = Vec::new();
    for (number, size) in [0, 1, 2, 63, 64, 255, 512, 700, 901, 1024, 1100].into_iter().enumerate()
    {
        files.push((format!("small-{number}.html"), dice.bytes(size)));
    }
    for (number, size) in [3_000, 20_000, 150_001].into_iter().enumerate() {
        files.push((format!("large-{number}.html"), dice.bytes(size)));
    }
    files
}

/// Files whose responses take several segments, up to the most that the kernel gives.
pub fn long_files(seed: u64) -> Vec<(String, Vec<u8>)> {
    const SIZES: [usize; 14] = [
        1_200, 1_461, 2_000, 2_896, 4_096, 6_000, 8_192, 12_288, 14_336, 20_000, 32_768, 45_001,
        60_000, 65_536,
    ];
    let mut dice = Dice(seed);
    let file = |(number, size)| (format!("long-{number}.html"), dice.bytes(size));
    SIZES.into_iter().enumerate().map(file).collect()
}

impl Menu {
    /// Ask nginx for everything. The fast path must not be there yet, nor the network bad.
    pub fn record(client: Client, files: &[(String, Vec<u8>)]) -> Self {
        Self::record_up_to(ONE_SEGMENT, client, files)
    }

    /// The same, and whole responses of up to `longest` bytes may be pinned.
    pub fn record_up_to(longest: usize, mut client: Client, files: &[(String, Vec<u8>)]) -> Self {
        let mut menu = Self::default();
        let mut ask = |request: Vec<u8>, to_head: bool| {
            client.send(&request);
            let reply = client.read(to_head);
            let response = [reply.head.as_bytes(), &reply.body].concat();
            Exchange { request, expected: blank_date(&response).expect("a Date") }
        };
        for (name, content) in files {
            let path = format!("/{name}");
            let whole = ask(request("GET", &path, ""), false);
            let tag = field(&whole.expected, "ETag").to_owned();
            let date = field(&whole.expected, "Last-Modified").to_owned();
            let matched = ask(request("GET", &path, &format!("If-None-Match: {tag}\r\n")), false);
            let since =
                ask(request("GET", &path, &format!("If-Modified-Since: {date}\r\n")), false);
            let fits = whole.expected.len() <= longest;
            let kept = fits.then(|| whole.expected.clone());
            menu.objects.push((path.clone(), kept, matched.expected.clone()));
            menu.pinned.extend([ask(request("HEAD", &path, ""), true), matched, since]);
            if fits {
                menu.pinned.push(ask(request("GET", &path, BROWSER), false));
                let times = if whole.expected.len() > ONE_SEGMENT { 4 } else { 1 };
                menu.pinned.extend(std::iter::repeat_n(whole, times));
            } else {
                let range = format!("Range: bytes=7-{}\r\n", content.len() / 2);
                menu.other.push(ask(request("GET", &path, &range), false));
                menu.other.push(whole);
            }
        }
        menu.other.push(ask(request("GET", "/missing.html", ""), false));
        menu.other.push(ask(request("GET", "/small-5.html?query", ""), false));
        for size in [0, 1, 700, 5_000, 40_000] {
            menu.posts.push(ask(post(size), false));
        }
        menu
    }

    /// What connection `number` asks for at this turn: mostly pinned objects.
    pub fn pick(&self, number: usize, turn: usize) -> &Exchange {
        let mut dice = Dice((number * 1_000_003 + turn) as u64);
        match dice.below(20) {
            0 => dice.one(&self.other),
            _ => dice.one(&self.pinned),
        }
    }

    /// Pin what may be.
    pub fn pin(&self, fast_path: &FastPath) {
        for (path, whole, not_modified) in &self.objects {
            pin_reply(fast_path, path, whole.as_deref(), not_modified);
        }
    }
}

/// What a browser sends beside.
const BROWSER: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n\
    Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; seen=yes\r\n\
    Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n";

fn request(method: &str, path: &str, fields: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nHost: server\r\n{fields}\r\n").into_bytes()
}

fn post(size: usize) -> Vec<u8> {
    let mut bytes = request("POST", "/post", &format!("Content-Length: {size}\r\n"));
    bytes.resize(bytes.len() + size, b'p');
    bytes
}

/// What went wrong on one connection.
#[derive(Debug)]
pub struct Failure {
    client: SocketAddr,
    server: SocketAddr,
    what: String,
}

/// What a run did.
#[derive(Debug, Default)]
pub struct Done {
    /// Responses compared.
    pub responses: u64,
    /// Connections made.
    pub connections: u64,
    /// Responses by the way their requests were sent.
    pub by_way: BTreeMap<&'static str, u64>,
    /// From request to response, of those that were asked for one by one.
    pub times: Vec<Duration>,
}

/// A run: how much, how wide, and what decides.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Responses in all.
    pub requests: u64,
    /// Connections at a time.
    pub connections: usize,
    /// The same seed: the same requests on each connection.
    pub seed: u64,
    /// No response may take longer.
    pub deadline: Duration,
}

/// Run it. The failure of any connection ends all; it is told with its trace, and panics.
pub fn run(lab: &Lab, menu: &Menu, load: Load) -> Done {
    let trace = Trace::start(&lab.bed);
    let shared = Shared {
        menu,
        load,
        left: AtomicU64::new(load.requests),
        failed: AtomicBool::new(false),
        done: Mutex::default(),
    };
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..load.connections {
            let (shared, failures) = (&shared, &failures);
            let work = move || {
                lab.bed.client().enter().expect("inside");
                if let Err(failure) = shared.connections(number as u64) {
                    shared.failed.store(true, Ordering::Relaxed);
                    failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
                }
            };
            let thread = std::thread::Builder::new().stack_size(256 << 10);
            thread.spawn_scoped(scope, work).expect("a thread");
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    for failure in failures.iter().take(3) {
        tell(lab, &trace, failure);
    }
    assert!(failures.is_empty(), "{} connections failed; seed {}", failures.len(), load.seed);
    shared.done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn tell(lab: &Lab, trace: &Trace, failure: &Failure) {
    let Failure { client, server, what } = failure;
    eprintln!("--- {client} -> {server}: {what}");
    eprintln!("{}", trace.tell(*client));
    let flow = lab.fast_path().flow(&FlowKey::new(*client, *server));
    eprintln!("flow: {flow:?}\ncounters:\n{}", lab.tally());
    for state in ["established", "syn-recv", "close-wait", "listening", "time-wait"] {
        eprintln!("server's sockets, {state}: {}", lab.sockets(state));
    }
    eprintln!("injector: {:?}", lab.bed.injector().map(|injector| injector.counts()));
}

struct Shared<'m> {
    menu: &'m Menu,
    load: Load,
    left: AtomicU64,
    failed: AtomicBool,
    done: Mutex<Done>,
}

/// A socket whose port is known before it connects, for the trace of one that does not.
fn bound(server: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(Bed::client_address(server.ip(), 0), 0).into())?;
    Ok(socket)
}

/// Turns of a connection that nginx has to itself for the rest of its life.
const LATER: u64 = 4;

/// How requests are sent. After all but the first two nobody but nginx answers on the connection.
const WAYS: [(&str, u64); 7] = [
    ("one by one", 200),
    ("one behind the other, in segments of their own", 3),
    ("pipelined", 2),
    ("one and a half", 2),
    ("split at one byte", 3),
    ("byte by byte", 1),
    ("post", 3),
];

impl Shared<'_> {
    /// One connection after the other until all requests are made.
    fn connections(&self, number: u64) -> Result<(), Failure> {
        let mut dice = Dice(self.load.seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        while self.left.load(Ordering::Relaxed) > 0 && !self.failed.load(Ordering::Relaxed) {
            let server: IpAddr = match dice.below(2) {
                0 => Bed::SERVER_V4.into(),
                _ => Bed::SERVER_V6.into(),
            };
            let server = SocketAddr::new(server, PORT);
            let socket = bound(server).expect("a socket");
            let client =
                socket.local_addr().ok().and_then(|bound| bound.as_socket()).expect("bound");
            let made = socket.connect_timeout(&server.into(), self.load.deadline);
            made.map_err(|error| {
                let what = format!("no connection: {error}");
                Failure { client, server, what }
            })?;
            let mut connection = Connection {
                client,
                stream: socket.into(),
                shared: self,
                got: Vec::new(),
                by_way: BTreeMap::new(),
                times: Vec::new(),
            };
            let result = connection.live(&mut dice);
            self.account(&connection.by_way, &connection.times);
            result.map_err(|what| Failure { client: connection.client, server, what })?;
        }
        Ok(())
    }

    fn account(&self, by_way: &BTreeMap<&'static str, u64>, times: &[Duration]) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.connections += 1;
        done.times.extend(times);
        for (way, count) in by_way {
            *done.by_way.entry(way).or_default() += count;
            done.responses += count;
        }
    }
}

struct Connection<'s> {
    client: SocketAddr,
    stream: TcpStream,
    shared: &'s Shared<'s>,
    got: Vec<u8>,
    by_way: BTreeMap<&'static str, u64>,
    times: Vec<Duration>,
}

impl Connection<'_> {
    fn live(&mut self, dice: &mut Dice) -> Result<(), String> {
        let told = |error: std::io::Error| error.to_string();
        self.stream.set_nodelay(true).map_err(told)?;
        self.stream.set_write_timeout(Some(self.shared.load.deadline)).map_err(told)?;
        let mut turns = 1 + dice.below(60);
        while turns > 0 {
            turns -= 1;
            if self.shared.failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            let (way, exchanges, pieces) = choose(self.shared.menu, dice);
            let count = exchanges.len() as u64;
            let less = |left: u64| left.checked_sub(count.min(left)).filter(|_| left > 0);
            if self.shared.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
                break;
            }
            let begin = Instant::now();
            for piece in pieces {
                self.stream.write_all(&piece).map_err(|error| format!("{way}: write: {error}"))?;
            }
            for exchange in exchanges {
                self.compare(exchange).map_err(|what| format!("{way}: {what}"))?;
            }
            *self.by_way.entry(way).or_default() += count;
            if way == WAYS[0].0 {
                self.times.push(begin.elapsed());
            }
            if way != WAYS[0].0 {
                turns = turns.min(LATER);
            }
        }
        self.end(dice)
    }

    /// The next response must be this one, in time.
    fn compare(&mut self, exchange: &Exchange) -> Result<(), String> {
        let deadline = Instant::now() + self.shared.load.deadline;
        let mut buffer = [0; 32768];
        while self.got.len() < exchange.expected.len() {
            match read_by(&mut self.stream, &mut buffer, deadline) {
                Ok(0) => return Err(self.differs(exchange, "the server ended the connection")),
                Ok(length) => self.got.extend_from_slice(&buffer[..length]),
                Err(error) => return Err(self.differs(exchange, &error.to_string())),
            }
        }
        match blank_date(&self.got[..exchange.expected.len()]) {
            Ok(blank) if blank == exchange.expected => {
                self.got.drain(..exchange.expected.len());
                Ok(())
            }
            Ok(_) => Err(self.differs(exchange, "another response than nginx's")),
            Err(why) => Err(self.differs(exchange, &why)),
        }
    }

    fn differs(&self, exchange: &Exchange, why: &str) -> String {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        let same = self.got.iter().zip(&exchange.expected).take_while(|(a, b)| a == b).count();
        format!(
            "{why}\nrequest: {}\nexpected {} bytes: {}\ngot {} bytes (the same up to {same}): {}",
            text(&exchange.request[..exchange.request.len().min(2000)]),
            exchange.expected.len(),
            text(&exchange.expected[..exchange.expected.len().min(2000)]),
            self.got.len(),
            text(&self.got)
        )
    }

    /// A reset, a plain end, or a half-close after which nothing but the server's end may come.
    fn end(&mut self, dice: &mut Dice) -> Result<(), String> {
        if !self.got.is_empty() {
            return Err(format!("stray bytes: {}", self.got.escape_ascii()));
        }
        match dice.below(4) {
            0 => {
                let now = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
                now.map_err(|error| error.to_string())
            }
            1 => Ok(()),
            _ => {
                let shut = self.stream.shutdown(Shutdown::Write);
                shut.map_err(|error| format!("half-close: {error}"))?;
                let deadline = Instant::now() + self.shared.load.deadline;
                match read_by(&mut self.stream, &mut [0; 1024], deadline) {
                    Ok(0) => Ok(()),
                    Ok(stray) => Err(format!("{stray} stray bytes after the half-close")),
                    Err(error) => Err(format!("after the half-close: {error}")),
                }
            }
        }
    }
}

/// What to send next: the way, the exchanges, and the pieces that are written one by one.
fn choose<'m>(menu: &'m Menu, dice: &mut Dice) -> (&'static str, Vec<&'m Exchange>, Vec<Vec<u8>>) {
    let way = dice.weighted(&WAYS);
    let many = match way {
        1 => 2 + dice.below(2),
        2 => [2, 3, 10][dice.below(3) as usize],
        3 => 2,
        _ => 1,
    };
    let pick = |dice: &mut Dice| match (way, dice.below(20)) {
        (6, _) => dice.one(&menu.posts),
        (5, _) | (_, 3..) => dice.one(&menu.pinned),
        _ => dice.one(&menu.other),
    };
    let exchanges: Vec<&Exchange> = (0..many).map(|_| pick(dice)).collect();
    let all: Vec<u8> = exchanges.iter().flat_map(|e| e.request.iter().copied()).collect();
    let first = exchanges[0].request.len();
    let cut_at = |at: usize| vec![all[..at].to_vec(), all[at..].to_vec()];
    let pieces = match way {
        1 => exchanges.iter().map(|exchange| exchange.request.clone()).collect(),
        3 => cut_at(first + 1 + dice.below((all.len() - first - 1) as u64) as usize),
        4 => cut_at(1 + dice.below(first as u64 - 1) as usize),
        5 => all.chunks(1).map(<[u8]>::to_vec).collect(),
        _ => vec![all],
    };
    (WAYS[way].0, exchanges, pieces)
}

/// SplitMix64, so that a seed means the same everywhere.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound.max(1)
    }

    pub(super) fn one<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len() as u64) as usize]
    }

    fn weighted(&mut self, choices: &[(&str, u64)]) -> usize {
        let mut left = self.below(choices.iter().map(|(_, weight)| weight).sum());
        choices
            .iter()
            .position(|(_, weight)| left.checked_sub(*weight).map(|rest| left = rest).is_none())
            .expect("below the sum")
    }

    /// Bytes of all values, so that nothing in a body looks like a rule.
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.roll() as u8).collect()
    }
}

/// One GET on a fresh connection, compared with nginx's own response.
pub fn matches(client: &mut Client, exchange: &Exchange) -> bool {
    client.send(&exchange.request);
    blank_date(&client.take(exchange.expected.len())).is_ok_and(|got| got == exchange.expected)
}
