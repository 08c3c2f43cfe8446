//! A flood of spoofed SYNs beside an honest client, and a table of many connections. The assertions look at counters; times
//! are printed.
//!
//! ```text
//! AFPA_FLOOD_SYNS=200000 AFPA_FLOOD_MILLISECONDS=3000 AFPA_FLOOD_ROUNDS=5 AFPA_ENTRIES=200000 \
//!     cargo test -p afpa-bpf --test programs flood -- --nocapture
//! ```

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use afpa_bpf::{Admission, Flow, FlowKey, Reason, Settings};
use afpa_netlab::{Bed, pin};
use afpa_police::{Class, Limits, Police, PoliceKernel, PoliceSettings, Rate};
use afpa_testkit::packet::{PacketSocket, SYN, Segment, SynOptions};

use crate::support::socketless::Bench;
use crate::support::{PORT, SERVER_V4, enable_statistics, inside};

const STUCK: Duration = Duration::from_secs(3);
/// From one connection to the next: 5,000 a second.
const BETWEEN: Duration = Duration::from_micros(200);

/// A second, from which on SYNs are a flood.
const FLOOD_SYNS: u32 = 2000;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

/// The side that answers the client's SYNs, and the fate of those of the flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The kernel answers all SYNs, by its own cookies.
    WithSockets,
    /// The client's SYNs are answered here; the flood is the kernel's.
    Without,
    /// As `Without`, and connections have a rate, of which the client's class has a share.
    Shares,
    /// All SYNs are answered here, once they come faster than a rate.
    Cookies,
}

/// The results of a turn, in microseconds.
struct Turn {
    connections: usize,
    p50: u128,
    p99: u128,
    most: u128,
    /// Packets for which the server's core had no room (of the whole machine).
    lost: u64,
    sent_per_second: u64,
}

fn ask(server: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&server, STUCK)?;
    stream.set_read_timeout(Some(STUCK))?;
    stream.write_all(b"GET /kernel.html HTTP/1.1\r\nHost: server\r\n\r\n")?;
    let mut answer = [0; 1024];
    let length = stream.read(&mut answer)?;
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO))?; // no TIME_WAIT
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// One request a connection, one after the other and less often than the rate of its class, for so long. Each is due at a
/// time of its own, and its time counts from then: a client that has to wait does not ask less often.
fn client(time: Duration) -> Vec<u128> {
    let server: SocketAddr = SocketAddr::new(SERVER_V4.parse().expect("an address"), PORT);
    let (begin, mut times) = (Instant::now(), Vec::new());
    while begin.elapsed() < time {
        let due = begin + BETWEEN * times.len() as u32;
        while Instant::now() < due {
            std::thread::yield_now();
        }
        // An answer that does not come in time counts with the time that was waited.
        if let Ok(text) = ask(server) {
            assert!(text.contains("200 OK"), "{text}");
        }
        times.push(due.elapsed().as_micros());
    }
    times
}

/// SYNs of 4096 addresses, `per_second` of them if the device takes them, so many at once. How many were sent.
fn flood(wire: &PacketSocket, macs: &[u8; 12], per_second: u64, over: &AtomicBool) -> u64 {
    let burst = setting("AFPA_FLOOD_BURST", 64);
    let to = SocketAddr::new(SERVER_V4.parse().expect("an address"), PORT);
    let options = SynOptions { mss: Some(1460), ..SynOptions::default() };
    let frames: Vec<_> = (0..4096_u32)
        .map(|number| {
            let from = Ipv4Addr::from(0xc612_0000 + number * 32);
            let from = SocketAddr::new(from.into(), 1024 + number as u16);
            let seq = number.wrapping_mul(2_654_435_761);
            Segment { flags: SYN, seq, syn: options, ..Segment::new(from, to) }.frame(macs)
        })
        .collect();
    let (begin, mut sent) = (Instant::now(), 0_u64);
    while !over.load(Ordering::Acquire) {
        let due = (begin.elapsed().as_secs_f64() * per_second as f64) as u64;
        if sent + burst > due {
            std::hint::spin_loop();
            continue;
        }
        for _ in 0..burst {
            let frame = &frames[sent as usize % frames.len()];
            while !wire.send(frame).expect("sent") && !over.load(Ordering::Acquire) {}
            sent += 1;
        }
    }
    sent
}

/// Packets that found a full backlog, on all cores.
fn lost() -> u64 {
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    let dropped = text.lines().filter_map(|line| line.split_whitespace().nth(1));
    dropped.filter_map(|count| u64::from_str_radix(count, 16).ok()).sum()
}

fn turn(bench: &Bench, macs: &[u8; 12], per_second: u64, time: Duration) -> Turn {
    let over = AtomicBool::new(false);
    let namespace = bench.world.bed.client();
    bench.introduce_real(SERVER_V4);
    let (begin, lost) = (Instant::now(), lost());
    let (mut times, sent) = std::thread::scope(|scope| {
        let flood = scope.spawn(|| match per_second {
            0 => 0,
            _ => inside(namespace, || {
                pin(1).expect("on the other core");
                let wire = PacketSocket::open(Bed::DEVICE).expect("a packet socket");
                flood(&wire, macs, per_second, &over)
            }),
        });
        let times = scope.spawn(|| inside(namespace, || client(time)));
        let times = times.join().expect("it is served");
        over.store(true, Ordering::Release);
        (times, flood.join().expect("it floods"))
    });
    times.sort_unstable();
    let at = |of_hundred: usize| times[(times.len() - 1) * of_hundred / 100];
    let sent_per_second = (sent as f64 / begin.elapsed().as_secs_f64()) as u64;
    Turn {
        connections: times.len(),
        p50: at(50),
        p99: at(99),
        most: at(100),
        lost: self::lost() - lost,
        sent_per_second,
    }
}

fn set_up(bench: &Bench, police: &Police, mode: Mode) {
    bench.fast_path.clients.set_flood_syns(if mode == Mode::Cookies {
        FLOOD_SYNS
    } else {
        u32::MAX
    });
    match mode {
        Mode::WithSockets => bench.fast_path.socketless.drain(),
        Mode::Without | Mode::Shares | Mode::Cookies => {
            inside(bench.world.server(), || bench.fast_path.socketless.look_at_tcp()).expect("on");
        }
    }
    let mut settings = PoliceSettings::default();
    if mode == Mode::Shares {
        let connections = Rate { per_second: 20_000, burst: 2000 };
        settings.limits = Limits { connections, ..Limits::default() };
        let prefixes = vec!["10.77.0.0/16".parse().expect("a prefix")];
        let name = "known".to_owned();
        settings.classes = vec![Class { name, share: 95, prefixes, ..Class::default() }];
    }
    police.configure(&settings).expect("taken");
}

#[test]
fn a_flood_of_spoofed_syns_beside_a_client() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return afpa_testkit::aloud::say("SKIP", "there is one processor");
    }
    let settings = Settings { admission: Admission::Flood, ..Settings::default() };
    let Some(bench) = Bench::with(settings) else { return };
    let per_second = setting("AFPA_FLOOD_SYNS", 20_000);
    let time = Duration::from_millis(setting("AFPA_FLOOD_MILLISECONDS", 300));
    let server = bench.world.server();
    // Without a way back to the spoofed addresses the kernel would drop SYNs for nothing.
    let route =
        server.command("ip").args(["route", "add", "198.18.0.0/15", "via", "10.77.64.1"]).status();
    assert!(route.expect("ip").success());
    let sysctl = server.command("sysctl").args(["-qw", "net.ipv4.tcp_syncookies=2"]).status();
    assert!(sysctl.expect("sysctl").success());
    // Keep the answers to the flood from the client's stack, once they have left the server.
    let beyond = "add table netdev t; \
                  add chain netdev t in { type filter hook ingress device DEVICE priority 0; }; \
                  add rule netdev t in ip daddr 198.18.0.0/15 drop";
    let client = bench.world.bed.client();
    let nft = client.command("nft").arg(beyond.replace("DEVICE", Bed::DEVICE)).output();
    if !nft.is_ok_and(|nft| nft.status.success()) {
        println!("without nft the client's stack sees the answers to the flood as well");
    }
    let raw = bench.world.raw();
    let macs = *raw.frame(&raw.next()).first_chunk::<12>().expect("an Ethernet header");
    // As a card would: the server's side on one core, the senders on the other.
    server.interface(Bed::DEVICE).steer(Some(0)).expect("steered");
    let police =
        Police::new(Some(Arc::clone(&bench.fast_path.police) as Arc<dyn PoliceKernel>), 0, 0);
    for round in 0..setting("AFPA_FLOOD_ROUNDS", 1) {
        for mode in [Mode::WithSockets, Mode::Without, Mode::Shares, Mode::Cookies] {
            set_up(&bench, &police, mode);
            for per_second in [0, per_second] {
                let flows = bench.sweep().flows;
                let before = bench.count(Reason::DropTotalRate);
                let answered = bench.count(Reason::SocketlessFlood);
                let turn = turn(&bench, &macs, per_second, time);
                println!(
                    "round {round}, {mode:?}, {} SYNs/s: {} connections, p50 {} us, p99 {} us, most {} us; {} packets \
                     lost before any program",
                    turn.sent_per_second,
                    turn.connections,
                    turn.p50,
                    turn.p99,
                    turn.most,
                    turn.lost
                );
                assert!(turn.connections > 0);
                let dropped = bench.count(Reason::DropTotalRate) - before;
                assert!(
                    dropped == 0 || mode == Mode::Shares && per_second > 0,
                    "{mode:?} {per_second} {dropped} {:?}",
                    police.classes()
                );
                let answered = bench.count(Reason::SocketlessFlood) - answered;
                assert!(
                    answered == 0 || mode == Mode::Cookies && per_second > 0,
                    "{mode:?} {per_second} {answered}"
                );
                assert!(
                    bench.sweep().flows < flows + turn.connections + 100,
                    "a flood makes no flows"
                );
            }
        }
    }
    set_up(&bench, &police, Mode::Without);
    assert!(bench.count(Reason::SocketlessSyn) > 0, "{:?}", bench.counts());
}

/// Each of these connections is asked once, where all of them have the state of a fresh one. 64, again and again, lie in
/// the core's caches; of many, those that are asked lie far from each other.
#[test]
fn a_hit_among_many_connections() {
    let count = setting("AFPA_ENTRIES", 20_000) as u32;
    let settings = Settings { flows: count.max(64) + 64, log_every: 0, ..Settings::default() };
    let Some(bench) = Bench::with(settings) else { return };
    let client = bench.open();
    bench.fast_path.clients.set_firewall_interval(Duration::ZERO); // none of them has ever been seen
    let to = SocketAddr::new(SERVER_V4.parse().expect("an address"), PORT);
    let key = |from: SocketAddr| FlowKey::new(from, to);
    let fresh = bench.fast_path.flows.flow(&key(client.address())).expect("read").expect("a flow");
    let address = |number: u32| -> SocketAddr {
        SocketAddr::new(
            IpAddr::from(Ipv4Addr::from(0x0a4d_8000 + number % 8192)),
            1024 + (number / 8192) as u16,
        )
    };
    let raw = bench.world.raw();
    let macs = *raw.frame(&raw.next()).first_chunk::<12>().expect("an Ethernet header");
    let request = client.get("/kernel.html");
    // A way is believed for eight seconds. The programs' clock is a little behind this one.
    let put = |number: u32| {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let flow = Flow { way_known: (now >> 20) as u32 - 100, ..fresh };
        bench.fast_path.flows.put_flow(&key(address(number)), &flow.to_bytes()).expect("room");
    };
    const HITS: u32 = 3200;
    const BURST: u32 = 32; // less than a device's queue
    let _timing = enable_statistics();
    let wire =
        inside(bench.world.bed.client(), || PacketSocket::open(Bed::DEVICE)).expect("a socket");
    let mut medians = Vec::new();
    for entries in [64, count] {
        let stride = (entries / HITS).max(1);
        let ask = |number: u32| {
            let segment = Segment { from: address(number), to, ..request.clone() };
            while !wire.send(&segment.frame(&macs)).expect("sent") {}
        };
        let mut rounds: Vec<f64> = (0..5)
            .map(|round| {
                (0..entries).for_each(put);
                let (begin, answered) = (ingress(&bench), bench.count(Reason::Answered));
                for first in (0..HITS).step_by(BURST as usize) {
                    let numbers =
                        (first..first + BURST).map(|hit| (hit * stride + round) % entries);
                    numbers.clone().for_each(ask);
                    let due = answered + u64::from(first + BURST);
                    let begin = Instant::now();
                    while bench.count(Reason::Answered) < due {
                        assert!(begin.elapsed() < 10 * STUCK, "{:?}", bench.counts());
                    }
                    numbers.for_each(put);
                }
                let end = ingress(&bench);
                (end.0 - begin.0).as_nanos() as f64 / (end.1 - begin.1) as f64
            })
            .collect();
        rounds.sort_by(f64::total_cmp);
        println!(
            "{entries} connections: {:.0} ns a hit, median of 5 ({:.0} to {:.0})",
            rounds[2], rounds[0], rounds[4]
        );
        medians.push(rounds[2]);
    }
    println!("{:.2} times as long", medians[1] / medians[0]);
}

/// Time in the ingress programs, and how often they ran.
fn ingress(bench: &Bench) -> (Duration, u64) {
    let all = bench.fast_path.program_statistics().expect("statistics");
    let of = all.into_iter().find(|program| program.name == "afpa_ingress").expect("the program");
    (of.time, of.runs)
}
