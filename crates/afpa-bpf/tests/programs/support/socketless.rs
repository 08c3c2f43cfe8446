//! A server before which connections begin without a socket, and clients that are known to it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, Reason, Settings};
use afpa_netlab::Namespace;
use afpa_testkit::packet::{ACK, ECE, RST, SYN, Segment, SynOptions};
use afpa_testkit::tcp::{Habits, RawClient};
use afpa_testkit::{Client, eventually};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use super::{Lent, PORT, Sample, World, counted, inside};

/// Longer than anything that comes at once takes.
pub const SOON: Duration = Duration::from_millis(60);

/// Of this one no cookie keeps enough.
const UNFIT_MSS: u16 = 700;

/// How often a connection is tried.
const PATIENCE: u32 = 10;

/// The fast path before a server.
pub struct Bench {
    /// Ends first.
    heart: Heart,
    pub world: World,
    pub fast_path: Lent,
    /// Of the test's own, instead of nginx's.
    pub listeners: Vec<TcpListener>,
}

/// Beats as user mode does, so that no test depends on how long it has waited for what.
struct Heart {
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    fn of(fast_path: &Arc<FastPath>) -> Self {
        let (fast_path, stops) = (Arc::clone(fast_path), Arc::<AtomicBool>::default());
        let stopped = Arc::clone(&stops);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                fast_path.clock.beat();
                std::thread::park_timeout(Duration::from_millis(250));
            }
        });
        Self { stops, thread: Some(thread) }
    }

    fn stop(&mut self) {
        self.stops.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().expect("it beats");
        }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Bench {
    /// nginx with a few files, and pinned objects of one and of several segments.
    pub fn new() -> Option<Self> {
        Self::with(Settings::default())
    }

    pub fn with(settings: Settings) -> Option<Self> {
        Self::over(World::new()?, settings)
    }

    /// The same in a world of another kind.
    pub fn over(mut world: World, settings: Settings) -> Option<Self> {
        world.file("user.html", b"from nginx");
        world.file("kernel.html", b"the pinned one, from nginx");
        world.file("large.bin", &vec![b'z'; 3_000_000]);
        world.file("some.html", &[b'k'; 30_000]);
        world.nginx("");
        world.await_server();
        Self::before(world, Vec::new(), settings)
    }

    /// A listener that only the test accepts from.
    pub fn listening(backlog: i32, prepare: impl Fn(&Socket) + Sync) -> Option<Self> {
        let world = World::new()?;
        let listeners = vec![listen(world.server(), backlog, prepare)];
        Self::before(world, listeners, Settings::default())
    }

    fn before(world: World, listeners: Vec<TcpListener>, settings: Settings) -> Option<Self> {
        let answer_max = match settings.last_answer_max {
            0 => 65_536,
            _ => settings.answer_max,
        };
        let settings = Settings { socketless: true, answer_max, pages: 64, ..settings };
        let fast_path = world.fast_path(settings)?;
        if let Err(why) = inside(world.server(), || fast_path.socketless.look_at_tcp()) {
            println!("SKIP: {why}");
            return None;
        }
        Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
        Sample::new(vec![b'k'; 30_000]).pin(&fast_path, "/some.html");
        Some(Self { heart: Heart::of(&fast_path), world, fast_path, listeners })
    }

    /// The process ends without a word, and another one starts, before the same server.
    pub fn next_process(self, settings: Settings) -> Option<Self> {
        let Self { heart, world, fast_path, listeners } = self;
        drop((heart, fast_path)); // all descriptors are closed, as the kernel closes them for a killed process
        Self::before(world, listeners, settings)
    }

    /// From now on the fast path does not beat by itself.
    pub fn stop_heart(&mut self) {
        self.heart.stop();
    }

    #[track_caller]
    pub fn count(&self, reason: Reason) -> u64 {
        counted(&self.fast_path, reason)
    }

    /// All that was counted.
    pub fn counts(&self) -> Vec<(&'static str, u64)> {
        let counters = self.fast_path.stats.counters().expect("counters");
        let some = counters.iter().filter(|(_, count)| *count != 0);
        some.map(|(why, count)| (why.text(), count)).collect()
    }

    // --- clients ---

    /// A client by hand whose SYN is the kernel's: no cookie has room for its MSS.
    pub fn unfit(&self) -> RawClient {
        let mut client = self.world.raw();
        client.habits.mss = UNFIT_MSS;
        client
    }

    /// A connection of the kernel's, by which the raw clients' address is known for three quarters of a second.
    pub fn introduce(&self) {
        let mut known = self.unfit();
        known.connect();
        known.push(&known.get("/kernel.html"));
        known.await_segment("an acknowledgement", |segment| segment.ack == known.seq);
        known.reset();
        self.forget_accepted();
    }

    /// Opens so many connections that are not accepted.
    pub fn fill_queue(&self, connections: usize) -> Vec<RawClient> {
        let clients: Vec<_> = (0..connections).map(|_| self.unfit()).collect();
        clients
            .into_iter()
            .map(|mut client| {
                client.connect();
                client
            })
            .collect()
    }

    /// A client by hand whose SYN will be answered by the programs.
    pub fn raw(&self) -> RawClient {
        let client = self.world.raw();
        self.introduce();
        client
    }

    /// Its connection, which has no socket.
    #[track_caller]
    pub fn open(&self) -> RawClient {
        self.open_with(|_| ())
    }

    #[track_caller]
    pub fn open_with(&self, change: impl FnOnce(&mut Habits)) -> RawClient {
        let mut client = self.raw();
        client.habits.window = 1000;
        change(&mut client.habits);
        self.connect(&mut client);
        client
    }

    /// Its handshake. On a machine that is busy the client may not be known any more when its SYN comes: then once more.
    #[track_caller]
    pub fn connect(&self, client: &mut RawClient) {
        for _ in 0..PATIENCE {
            let before = self.opened();
            client.connect();
            if self.opened() == (before.0 + 1, before.1 + 1) {
                return;
            }
            client.reset();
            self.introduce();
            client.seq = client.seq.wrapping_add(1_000_000);
            client.ack = 0;
        }
        panic!("not without a socket: {:?}", self.counts());
    }

    fn opened(&self) -> (u64, u64) {
        (self.count(Reason::SocketlessSyn), self.count(Reason::SocketlessOpened))
    }

    /// A connection of the client's kernel, without a socket at the server.
    #[track_caller]
    pub fn open_real(&self, address: &str) -> Client {
        for _ in 0..PATIENCE {
            self.introduce_real(address);
            let before = self.count(Reason::SocketlessSyn);
            let client = self.world.connect(address);
            if self.count(Reason::SocketlessSyn) == before + 1 {
                return client;
            }
            drop(client);
            self.forget_accepted();
        }
        panic!("not without a socket: {:?}", self.counts());
    }

    pub fn introduce_real(&self, address: &str) {
        let server = SocketAddr::new(address.parse().expect("an address"), PORT);
        let mut known = inside(self.world.bed.client(), || {
            let socket = Socket::new(Domain::for_address(server), Type::STREAM, None)?;
            socket.set_tcp_mss(u32::from(UNFIT_MSS))?;
            socket.connect(&server.into())?;
            std::thread::sleep(Duration::from_millis(5));
            Ok::<_, std::io::Error>(Client::of(socket.into()))
        })
        .expect("connected");
        assert!(known.get("/kernel.html").is_from_kernel(), "{:?}", self.counts());
        drop(known);
        self.forget_accepted();
    }

    // --- the server's side ---

    /// A connection that the kernel made.
    #[track_caller]
    pub fn accept(&self) -> TcpStream {
        self.try_accept(Duration::from_secs(5)).expect("a connection")
    }

    /// Ends the listening. Closing alone is not enough: a process that another test has just forked holds the open sockets
    /// until it becomes its program.
    pub fn stop_listening(&mut self) {
        for listener in self.listeners.drain(..) {
            SockRef::from(&listener).shutdown(Shutdown::Both).expect("it listens");
        }
    }

    pub fn try_accept(&self, patience: Duration) -> Option<TcpStream> {
        let deadline = Instant::now() + patience;
        loop {
            let accepted = self.listeners.iter().find_map(|listener| listener.accept().ok());
            if let Some((stream, _)) = accepted {
                stream.set_nonblocking(false).expect("blocking");
                stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
                return Some(stream);
            }
            if Instant::now() > deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn forget_accepted(&self) {
        while self.try_accept(Duration::from_millis(2)).is_some() {}
    }

    /// Sockets of the tuple at the server, as `ss` says them.
    pub fn sockets_of(&self, client: SocketAddr) -> String {
        ss(self.world.server(), &["-Htano", &format!("dport = :{}", client.port())])
    }

    /// Counters of TCP in the server's namespace, such as `TcpPassiveOpens` and `TcpExtListenOverflows`.
    pub fn tcp(&self, name: &str) -> u64 {
        tcp_counters(self.world.server()).into_iter().find(|(n, _)| n == name).map_or(0, |(_, v)| v)
    }

    /// Flows, translated, socketless.
    pub fn sweep(&self) -> afpa_bpf::Swept {
        inside(self.world.server(), || self.fast_path.sweep(Duration::from_secs(60)))
            .expect("swept")
    }

    /// As user mode does when it ends. How many connections wait for the end of an answer.
    pub fn close(&self) -> usize {
        inside(self.world.server(), || self.fast_path.flows.close_socketless()).expect("closed")
    }

    #[track_caller]
    pub fn await_count(&self, reason: Reason, count: u64) {
        eventually(reason.text(), || self.count(reason) == count);
    }

    /// The connection is answered here, and by nginx, in turn.
    #[track_caller]
    pub fn goes_on(&self, client: &mut RawClient) {
        let reply = client.ask(&client.get("/kernel.html"));
        assert!(reply.text().ends_with("from the kernel"), "{reply:?}");
        client.ask_user();
        client.ask_user();
        // The kernel's TCP may send a segment again to a client that was not scheduled for a while: that is not new.
        let all = data(client.collect(SOON));
        assert!(!all.iter().any(|segment| client.is_new(segment)), "{all:?}");
    }
}

/// Sends the client's SYN, and returns the answer.
#[track_caller]
pub fn syn_ack(client: &mut RawClient, change: impl FnOnce(&mut Segment)) -> Segment {
    let mut syn = Segment {
        flags: SYN,
        ack: 0,
        syn: SynOptions { mss: Some(1460), sack: true, scale: Some(7) },
        ts_echo: 0,
        ..client.next()
    };
    change(&mut syn);
    client.send(&syn);
    let answer = client.await_segment("SYN-ACK", |s| s.flags & SYN != 0);
    assert_eq!((answer.flags & !ECE, answer.ack), (SYN | ACK, client.seq.wrapping_add(1)));
    answer
}

/// As an honest client is after it.
pub fn learn(client: &mut RawClient, answer: &Segment) {
    client.seq = client.seq.wrapping_add(1);
    client.ack = answer.end();
    client.ts_recent = answer.ts_value;
}

/// A listener in a namespace, for both families.
pub fn listen(server: &Namespace, backlog: i32, prepare: impl Fn(&Socket) + Sync) -> TcpListener {
    listen_by(server, backlog, None, prepare)
}

/// With another protocol of TCP's kind.
pub fn listen_by(
    server: &Namespace,
    backlog: i32,
    protocol: Option<Protocol>,
    prepare: impl Fn(&Socket) + Sync,
) -> TcpListener {
    inside(server, || {
        let socket = Socket::new(Domain::IPV6, Type::STREAM, protocol).expect("a socket");
        socket.set_reuse_address(true).expect("reused");
        socket.set_only_v6(false).expect("both families");
        prepare(&socket);
        let any: SocketAddr = SocketAddr::new("::".parse().expect("an address"), PORT);
        socket.bind(&any.into()).expect("bound");
        socket.listen(backlog).expect("listening");
        socket.set_nonblocking(true).expect("not blocking");
        socket.into()
    })
}

/// Read exactly so many bytes.
#[track_caller]
pub fn read(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).expect("as many bytes");
    bytes
}

/// A response with this content.
#[track_caller]
pub fn respond(stream: &mut TcpStream, content: &str) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", content.len());
    stream.write_all(format!("{head}{content}").as_bytes()).expect("written");
}

/// A POST with this content.
pub fn post(content: &[u8]) -> Vec<u8> {
    let head =
        format!("POST /p HTTP/1.1\r\nHost: server\r\nContent-Length: {}\r\n\r\n", content.len());
    [head.as_bytes(), content].concat()
}

pub fn data(segments: Vec<Segment>) -> Vec<Segment> {
    segments.into_iter().filter(|segment| !segment.payload.is_empty()).collect()
}

pub fn resets(segments: &[Segment]) -> usize {
    segments.iter().filter(|segment| segment.flags & RST != 0).count()
}

pub fn ss(namespace: &Namespace, arguments: &[&str]) -> String {
    let output = namespace.command("ss").args(arguments).output().expect("ss");
    String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Counters of TCP by name.
pub fn tcp_counters(namespace: &Namespace) -> Vec<(String, u64)> {
    let texts = inside(namespace, || {
        ["snmp", "netstat"].map(|name| {
            std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).expect("counters")
        })
    });
    let mut counters = Vec::new();
    for text in texts {
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks(2) {
            let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
            let group = pair[0].split(':').next().expect("a name");
            counters.extend(
                names
                    .zip(values)
                    .skip(1)
                    .map(|(name, value)| (format!("{group}{name}"), value.parse().unwrap_or(0))),
            );
        }
    }
    counters
}

/// An option of TCP of which socket2 knows nothing.
pub fn set_tcp_option<T>(socket: &Socket, name: i32, value: &T) {
    const IPPROTO_TCP: i32 = 6;
    set_option(socket, (IPPROTO_TCP, name), value);
}

/// The same of any level.
pub fn set_option<T>(socket: &Socket, (level, name): (i32, i32), value: &T) {
    use std::os::fd::AsRawFd;
    unsafe extern "C" {
        fn setsockopt(socket: i32, level: i32, name: i32, value: *const u8, size: u32) -> i32;
    }
    // JUSTIFICATION: no dependency has these options.
    // SAFETY: plain system call wrapper; the value lives as long as the call, and has the size that is passed.
    let result = unsafe {
        let size = size_of::<T>() as u32;
        setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size)
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}
