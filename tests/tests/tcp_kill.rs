//! `kill -9` of the process that owns the fast path, under load.
//!
//! No wrong byte is delivered, and nginx serves new connections at once; with a folder to keep
//! programs in, connections whose numbers have an offset go on as well.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use afpa_bpf::{FastPath, PinDir, Settings};
use afpa_netlab::Bed;
use afpa_testkit::{Running, eventually};
use afpa_tests::tcp::transfer::{self, Exchange, Menu};
use afpa_tests::tcp::{Lab, PORT, Plan, Sample, attach, blank_date};

const CLIENTS: usize = 40;
const SEED: u64 = 7;

/// A folder of ours on the BPF file system, removed with the maps and links that are pinned there.
struct Pins(PathBuf);

impl Pins {
    fn new() -> Option<Self> {
        if let Err(reason) = afpa_testkit::bpf_fs::private() {
            eprintln!("SKIP: no BPF file system of our own: {reason}");
        }
        let folder = PathBuf::from(format!("/sys/fs/bpf/afpa-kill-{}", std::process::id()));
        let made = std::fs::create_dir(&folder);
        if let Err(error) = &made {
            eprintln!("SKIP: no BPF file system at /sys/fs/bpf: {error}");
        }
        made.ok().map(|()| Self(folder))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let removed = PinDir::forget(&self.0);
        assert!(removed.is_ok() || std::thread::panicking(), "{removed:?}");
    }
}

/// The process that is killed.
struct Victim(Running);

impl Victim {
    /// In the server's namespace, with this thread's /sys/fs/bpf.
    fn start(lab: &Lab, pins: Option<&Path>) -> Self {
        let ready = lab.file("../ready");
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", lab.bed.server().name()))
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", "victim", "--ignored", "--nocapture"])
            .env("AFPA_TEST_READY", &ready);
        if let Some(pins) = pins {
            command.env("AFPA_TEST_PINS", pins);
        }
        let mut victim = Self(Running::start(&mut command));
        eventually("the victim", || {
            assert!(victim.0.is_alive(), "the victim did not live");
            ready.exists()
        });
        victim
    }

    fn kill(&mut self) {
        self.0.kill();
    }
}

/// Answers from softirq until it is killed. Started by the tests below.
#[test]
#[ignore = "a part of other tests"]
fn victim() {
    let Some(ready) = std::env::var_os("AFPA_TEST_READY") else { return };
    let keep_in = std::env::var_os("AFPA_TEST_PINS").map(PathBuf::from);
    let fast_path = FastPath::load(Settings { keep_in, ..Settings::default() }).expect("loaded");
    let menu = record(|| TcpStream::connect(("127.0.0.1", PORT)).expect("nginx"));
    menu.pin(&fast_path);
    Sample::new("from the kernel").pin(&fast_path, "/marked.html");
    attach(&fast_path, Bed::DEVICE).expect("attached");
    std::fs::write(ready, "").expect("written");
    loop {
        fast_path.clock.beat();
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn record(connect: impl FnOnce() -> TcpStream) -> Menu {
    Menu::record(afpa_testkit::Client::of(connect()), &transfer::files(SEED))
}

#[derive(Default)]
struct Tally {
    over: AtomicBool,
    killed: AtomicBool,
    before: AtomicU64,
    after: AtomicU64,
    /// Connections made after the kill that gave their first response.
    fresh: AtomicU64,
    broken: AtomicU64,
}

/// How a connection ended.
enum End {
    Over,
    Broken,
}

/// Sends one request after the other until the run is over. Panics when a wrong byte is delivered.
fn one_connection(menu: &Menu, number: usize, tally: &Tally) -> End {
    let born_after = tally.killed.load(Ordering::SeqCst);
    let address =
        if number.is_multiple_of(2) { Bed::SERVER_V4.into() } else { Bed::SERVER_V6.into() };
    let mut stream = TcpStream::connect(SocketAddr::new(address, PORT)).expect("connected");
    stream.set_nodelay(true).expect("no delay");
    stream.set_read_timeout(Some(Duration::from_secs(3))).expect("a timeout");
    for turn in 0.. {
        let over = tally.over.load(Ordering::Relaxed);
        if over && turn > 0 {
            return End::Over;
        }
        let exchange = menu.pick(number, turn);
        let late = tally.killed.load(Ordering::SeqCst);
        match ask(&mut stream, exchange) {
            Ok(()) if late => tally.after.fetch_add(1, Ordering::Relaxed),
            Ok(()) => tally.before.fetch_add(1, Ordering::Relaxed),
            Err(error) => {
                assert!(!born_after, "a connection made after the kill broke: {error}");
                tally.broken.fetch_add(1, Ordering::Relaxed);
                return End::Broken;
            }
        };
        if born_after && turn == 0 {
            tally.fresh.fetch_add(1, Ordering::Relaxed);
        }
    }
    End::Over
}

/// Err: the connection broke. The bytes that came until then must have been right.
fn ask(stream: &mut TcpStream, exchange: &Exchange) -> std::io::Result<()> {
    use std::io::Read;
    stream.write_all(&exchange.request)?;
    let mut got = vec![0; exchange.expected.len()];
    let mut length = 0;
    while length < got.len() {
        match stream.read(&mut got[length..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => length += more,
            Err(error) => {
                assert_right_so_far(&got[..length], exchange);
                return Err(error);
            }
        }
    }
    let blank = blank_date(&got).unwrap_or_else(|why| panic!("{why}: {}", got.escape_ascii()));
    assert!(blank == exchange.expected, "another response: {}", got.escape_ascii());
    Ok(())
}

fn assert_right_so_far(got: &[u8], exchange: &Exchange) {
    let right =
        |(at, byte): (usize, &u8)| exchange.expected[at] == b'_' || exchange.expected[at] == *byte;
    assert!(got.iter().enumerate().all(right), "wrong bytes: {}", got.escape_ascii());
}

fn killed_under_load(pins: Option<&Path>) -> Option<Tally> {
    let files = transfer::files(SEED);
    let borrowed: Vec<_> = files.iter().map(|(name, body)| (name.as_str(), &body[..])).collect();
    let lab = Lab::without_fast_path(Plan::default(), &borrowed)?;
    let menu = Menu::record(lab.client(), &files);
    let mut victim = Victim::start(&lab, pins);
    let tally = Tally::default();
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (tally, menu, lab) = (&tally, &menu, &lab);
            scope.spawn(move || {
                lab.bed.client().enter().expect("inside");
                while let End::Broken = one_connection(menu, number, tally) {}
            });
        }
        eventually("load", || tally.before.load(Ordering::Relaxed) > 5_000);
        victim.kill();
        tally.killed.store(true, Ordering::SeqCst);
        // At once: the first new connection is served, even if the old ones break.
        let begin = Instant::now();
        let mut late = lab.client();
        assert!(transfer::matches(&mut late, menu.pick(0, 0)));
        println!("a new connection was served {:?} after the kill", begin.elapsed());
        late.end();
        let served = |count: &AtomicU64| count.load(Ordering::Relaxed);
        eventually("more", || {
            served(&tally.after) > 5_000 && (pins.is_some() || served(&tally.fresh) > 0)
        });
        tally.over.store(true, Ordering::Relaxed);
    });
    println!(
        "responses before {:?}, after {:?}; connections broken {:?}, new ones served {:?}",
        tally.before, tally.after, tally.broken, tally.fresh
    );
    Some(tally)
}

/// The programs stay on the interface. The kernel ends the answering a little after the end of the process, or else
/// the heartbeat, which goes out of date: LIFECYCLE.md.
#[test]
fn answers_end_soon_after_the_kill() {
    if afpa_tests::tcp::skip() {
        return;
    }
    let Some(pins) = Pins::new() else { return };
    let files = transfer::files(SEED);
    let borrowed: Vec<_> = files.iter().map(|(name, body)| (name.as_str(), &body[..])).collect();
    let Some(lab) = Lab::without_fast_path(Plan::default(), &borrowed) else { return };
    let menu = Menu::record(lab.client(), &files);
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let mut victim = Victim::start(&lab, Some(&pins.0));
        assert!(transfer::matches(&mut lab.client(), menu.pick(0, 0)));
        victim.kill();
        let killed = Instant::now();
        longest = longest.max(last_answer_after(&lab, killed));
        let _ready_for_the_next = std::fs::remove_file(lab.file("../ready"));
    }
    println!("FIGURE last answer after a kill: {longest:?} at most, of 5");
    assert!(longest < Duration::from_secs(2), "the pulse was out of date: {longest:?}");
}

/// When the kernel answered the last of many requests, each on a connection of its own.
fn last_answer_after(lab: &Lab, killed: Instant) -> Duration {
    let from_kernel = || {
        let mut client = lab.client();
        let reply = client.get("/marked.html");
        client.end();
        reply.is_from_kernel()
    };
    let mut last = Duration::ZERO;
    let mut quiet = 0;
    while quiet < 50 {
        quiet += 1;
        if from_kernel() {
            (last, quiet) = (killed.elapsed(), 0);
        }
    }
    last
}

#[test]
fn killed_under_load_without_a_folder_to_keep_programs_in() {
    let Some(tally) = killed_under_load(None) else { return };
    assert!(tally.fresh.load(Ordering::Relaxed) > 0, "new connections were served");
}

#[test]
fn killed_under_load_with_programs_kept() {
    if afpa_tests::tcp::skip() {
        return;
    }
    let Some(pins) = Pins::new() else { return };
    let Some(tally) = killed_under_load(Some(&pins.0)) else { return };
    assert_eq!(
        tally.broken.load(Ordering::Relaxed),
        0,
        "connections with an offset are translated on"
    );
}
