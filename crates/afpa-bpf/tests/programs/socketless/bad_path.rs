//! A path that loses, repeats and reorders: clients of the kernel's own TCP get the right bytes, and none waits for ever.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::socketless::Bench;
use crate::support::{PORT, SERVER_V4, SERVER_V6, World, inside};
use afpa_bpf::{FastPath, Reason, RtxThread, Settings};

/// Longer than TCP takes for anything on such a path, unless something is stuck: where 8 of 100 packets are lost each way,
/// one segment in half a million is lost seven times, and waits 25 seconds.
const STUCK: Duration = Duration::from_secs(120);

const LONG: usize = 300_000;

/// The outcomes of the connections.
#[derive(Debug, Default)]
pub(super) struct Tally {
    connections: u32,
    pub(super) hits: u32,
    pub(super) misses: u32,
    pub(super) reset: u32,
    /// In milliseconds.
    times: Vec<u128>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.hits += other.hits;
        self.misses += other.misses;
        self.reset += other.reset;
        self.times.extend(other.times);
    }

    fn percentile(&self, of_hundred: usize) -> u128 {
        self.times[(self.times.len() - 1) * of_hundred / 100]
    }
}

/// Numbers that are the same in each run of a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// One request and its response, of which every byte is looked at. Ok: did the kernel answer?
fn ask(stream: &mut TcpStream, path: &str, cut: usize) -> std::io::Result<bool> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: server\r\n\r\n");
    let (first, second) = request.as_bytes().split_at(request.len() * cut / 4);
    stream.write_all(first)?;
    if !second.is_empty() && !first.is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    stream.write_all(second)?;
    let mut received = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let head = received.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&received[..head]).into_owned();
            let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let length: usize = length.expect("a length").parse().expect("a number");
            if received.len() >= head + length {
                let by_kernel = text.contains("Server: afpa-kernel");
                assert_eq!(received.len(), head + length, "more than was asked for");
                is_right(path, by_kernel, &received[head..]);
                return Ok(by_kernel);
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
}

#[track_caller]
fn is_right(path: &str, by_kernel: bool, body: &[u8]) {
    let right = match (path, by_kernel) {
        ("/kernel.html", true) => body == b"from the kernel",
        ("/kernel.html", false) => body == b"the pinned one, from nginx",
        ("/user.html", false) => body == b"from nginx",
        ("/some.html", _) => body.len() == 30_000 && body.iter().all(|byte| *byte == b'k'),
        ("/long.bin", false) => body.len() == LONG && body.iter().all(|byte| *byte == b'z'),
        _ => false,
    };
    assert!(right, "{path} by_kernel={by_kernel}: {} bytes", body.len());
}

/// Connections one after the other, for so long.
pub(super) fn traffic(bench: &Bench, seed: u64, time: Duration) -> Tally {
    let begin = Instant::now();
    traffic_while(bench, seed, SERVER_V4, || begin.elapsed() < time)
}

fn traffic_while(bench: &Bench, seed: u64, server: &str, go_on: impl Fn() -> bool) -> Tally {
    let (mut tally, mut chance) = (Tally::default(), Chance(seed));
    let server = SocketAddr::new(server.parse().expect("an address"), PORT);
    'connections: while go_on() {
        let mut stream = TcpStream::connect_timeout(&server, STUCK).expect("connected");
        stream.set_nodelay(true).expect("no delay");
        stream.set_read_timeout(Some(STUCK)).expect("a time-out");
        tally.connections += 1;
        for _ in 0..=chance.below(6) {
            let path = match chance.below(24) {
                0..16 => "/kernel.html",
                16..21 => "/user.html",
                21..23 => "/some.html",
                _ => "/long.bin",
            };
            let cut = if chance.below(7) == 0 { 2 } else { 0 };
            let asked = Instant::now();
            match ask(&mut stream, path, cut) {
                Ok(true) => tally.hits += 1,
                Ok(false) => tally.misses += 1,
                Err(error) if is_reset(&error) => {
                    let port = stream.local_addr().map_or(0, |address| address.port());
                    println!("reset: port {port}, {path} in {} parts: {error}", 1 + cut / 2);
                    tally.reset += 1;
                    continue 'connections;
                }
                Err(error) => panic!("{path} stood still: {error} {:?}", bench.counts()),
            }
            tally.times.push(asked.elapsed().as_millis());
        }
        if chance.below(3) == 0 {
            stream.shutdown(std::net::Shutdown::Write).expect("half-closed");
            let end = stream.read(&mut [0]);
            assert!(matches!(end, Ok(0)) || end.is_err_and(|error| is_reset(&error)));
        }
    }
    tally
}

fn is_reset(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), ConnectionReset | BrokenPipe | UnexpectedEof)
}

/// So many clients on the path at once, with connections without a socket or with none; each does its `work`.
fn run(
    (percent, seed): (u64, u64),
    socketless: bool,
    count: u64,
    work: &(dyn Fn(&Bench, u64) -> Tally + Sync),
) -> Option<Tally> {
    let world = World::lossy(percent, seed)?;
    world.file("long.bin", &vec![b'z'; LONG]);
    let bench = Bench::over(world, Settings::default())?;
    bench.fast_path.flows.set_bypass_after(0);
    if !socketless {
        bench.fast_path.socketless.drain();
    }
    let fast_path: std::sync::Arc<FastPath> = std::sync::Arc::clone(&*bench.fast_path);
    let rtx = inside(bench.world.server(), || {
        RtxThread::start(move || fast_path.rtx.service_timers(), |error| panic!("{error}"))
    })
    .expect("a thread");
    let client = bench.world.bed.client();
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let bench = &bench;
        let start = |i| scope.spawn(move || inside(client, || work(bench, i)));
        let clients: Vec<_> = (0..count).map(start).collect();
        clients.into_iter().for_each(|client| tally.add(client.join().expect("no panic")));
    });
    tally.times.sort_unstable();
    drop(rtx);
    println!(
        "{percent} % seed {seed} {}: {} connections, {} hits, {} misses, {} reset, p50 {} ms, p99 {} ms, max {} ms",
        if socketless { "socketless" } else { "with sockets" },
        tally.connections,
        tally.hits,
        tally.misses,
        tally.reset,
        tally.percentile(50),
        tally.percentile(99),
        tally.percentile(100),
    );
    println!("{:?}", bench.counts());
    let opened = bench.count(Reason::SocketlessOpened);
    assert_eq!(opened != 0, socketless, "{:?}", bench.counts());
    Some(tally)
}

/// How long, how many at a time, and which: `AFPA_BAD_PATH_SECONDS`, `AFPA_BAD_PATH_CLIENTS`, `AFPA_SEED`.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

fn bad_path(percent: u64) {
    let time = Duration::from_secs(setting("AFPA_BAD_PATH_SECONDS", 6));
    let seed = setting("AFPA_SEED", 1);
    let count = setting("AFPA_BAD_PATH_CLIENTS", 4);
    let work = |bench: &Bench, client| traffic(bench, seed * count + client, time);
    let Some(tally) = run((percent, seed), true, count, &work) else { return };
    run((percent, seed), false, count, &work);
    assert!(tally.hits > 0 && tally.misses > 0);
    assert_eq!(tally.reset, 0, "{tally:?}");
}

#[test]
fn a_good_path() {
    bad_path(0);
}

#[test]
fn a_path_that_loses_3_percent() {
    bad_path(3);
}

#[test]
fn a_path_that_loses_8_percent() {
    bad_path(8);
}

/// So many connections, by IPv4 and IPv6, on all cores, some at a time: none gets a wrong byte, none stands still, none is
/// reset. `AFPA_BAD_PATH_CONNECTIONS=1000000` is for nights; `AFPA_BAD_PATH_LOSS` in a hundred packets.
#[test]
fn many_connections_on_a_bad_path() {
    let most = setting("AFPA_BAD_PATH_CONNECTIONS", 2000);
    let (percent, seed) = (setting("AFPA_BAD_PATH_LOSS", 3), setting("AFPA_SEED", 1));
    let count = setting("AFPA_BAD_PATH_CLIENTS", 64);
    let begun = AtomicU64::new(0);
    let work = |bench: &Bench, client: u64| {
        let server = if client.is_multiple_of(2) { SERVER_V4 } else { SERVER_V6 };
        let go_on = || begun.fetch_add(1, Ordering::Relaxed) < most;
        traffic_while(bench, seed * count + client, server, go_on)
    };
    let Some(tally) = run((percent, seed), true, count, &work) else { return };
    assert_eq!((u64::from(tally.connections), tally.reset), (most, 0), "{tally:?}");
    assert!(tally.hits > tally.misses, "{tally:?}");
}
