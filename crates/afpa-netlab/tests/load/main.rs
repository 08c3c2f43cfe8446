//! The closed-loop generator against small real servers.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afpa_netlab::load::{Generator, Interval, LoadOptions, Target, browser_headers};
use afpa_netlab::{Bed, BedOptions, Offloads, Path, missing_privilege};
use afpa_testkit::eventually;

macro_rules! skip_unless_privileged {
    () => {
        if let Some(reason) = missing_privilege() {
            eprintln!("SKIP: {reason}");
            return;
        }
    };
}

mod reflector;

/// How long a load is measured at first; longer where a busy machine needs it ([`load_until`]).
const RUN: Duration = Duration::from_millis(400);

/// Responses that a load is judged by.
const ENOUGH: u64 = 200;

/// The longest interval that is tried.
const AT_MOST: Duration = Duration::from_secs(30);

/// Answers GET /N with a body of N bytes, a thread for each connection; GET /N/late after a while,
/// the first time on each.
struct Origin {
    address: SocketAddr,
    requests: Arc<AtomicU64>,
    longest: Arc<AtomicU64>,
    /// Connections that ended by a reset.
    reset: Arc<AtomicU64>,
    /// Connections that have not ended.
    open: Arc<AtomicU64>,
    /// Requests on each connection that has ended.
    each: Arc<Mutex<Vec<u64>>>,
}

impl Origin {
    fn start(bed: &Bed, address: IpAddr, requests_per_connection: u64) -> Self {
        let listener = bed.server().run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
        let origin = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
            longest: Arc::default(),
            reset: Arc::default(),
            open: Arc::default(),
            each: Arc::default(),
        };
        let (requests, longest, reset, open, each) = (
            origin.requests.clone(),
            origin.longest.clone(),
            origin.reset.clone(),
            origin.open.clone(),
            origin.each.clone(),
        );
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (requests, longest, reset, open, each) =
                    (requests.clone(), longest.clone(), reset.clone(), open.clone(), each.clone());
                open.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || {
                    let mut served = 0;
                    let stream = stream.unwrap();
                    let ended =
                        serve(stream, &mut served, &requests, &longest, requests_per_connection);
                    each.lock().unwrap().push(served);
                    if ended.is_err() {
                        reset.fetch_add(1, Ordering::Relaxed);
                    }
                    open.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        origin
    }

    /// Requests on the least and on the most used connection, of those that asked more than once; all have ended.
    fn served(&self) -> [u64; 2] {
        eventually("all connections end", || self.open.load(Ordering::Relaxed) == 0);
        let each = self.each.lock().unwrap();
        let used = || each.iter().copied().filter(|requests| *requests > 1);
        [used().min().unwrap(), used().max().unwrap()]
    }
}

fn serve(
    mut stream: TcpStream,
    served: &mut u64,
    requests: &AtomicU64,
    longest: &AtomicU64,
    limit: u64,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    for _ in 0..limit {
        request.clear();
        while !request.ends_with(b"\r\n\r\n") {
            let count = stream.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            request.extend_from_slice(&buffer[..count]);
        }
        *served += 1;
        requests.fetch_add(1, Ordering::Relaxed);
        longest.fetch_max(request.len() as u64, Ordering::Relaxed);
        let text = String::from_utf8_lossy(&request);
        let path = text.split(' ').nth(1).unwrap_or("/0");
        let (size, late) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
        let size: usize = size.parse().unwrap_or(0);
        if *served == 1 && late == "late" {
            std::thread::sleep(Duration::from_millis(60));
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
        stream.write_all(&[head.into_bytes(), vec![b'x'; size]].concat())?;
    }
    Ok(())
}

/// Runs a load until it has enough requests for a judgement, however long that takes on this machine.
fn load(bed: &Bed, options: &LoadOptions) -> Interval {
    load_until(bed, options, |interval| {
        interval.errors > 0 || count(interval, "responses") > ENOUGH
    })
}

/// The same, for checks that hold only in an interval without delays: no request was sent again by time alone.
fn load_steadily(bed: &Bed, options: &LoadOptions) -> Interval {
    load_until(bed, options, |interval| {
        let steady =
            ["resent_by_watchdog", "duplicates"].iter().all(|name| count(interval, name) == 0);
        interval.errors > 0 || count(interval, "responses") > ENOUGH && steady
    })
}

/// The first interval that is `enough`, or else the last one; each is twice as long as the one before.
fn load_until(
    bed: &Bed,
    options: &LoadOptions,
    enough: impl Fn(&Interval) -> bool + Sync,
) -> Interval {
    bed.client()
        .run(|| {
            let (mut generator, mut run) = (Generator::start(options).unwrap(), RUN);
            let interval = loop {
                let interval = generator.measure(run).unwrap();
                run *= 2;
                if enough(&interval) || run > AT_MOST {
                    break interval;
                }
            };
            generator.finish().unwrap();
            interval
        })
        .unwrap()
}

fn count(interval: &Interval, name: &str) -> u64 {
    *interval.counts.get(name).unwrap_or_else(|| panic!("no counter {name}"))
}

/// The loop ran, everything was checked and right, and the server saw what the client counted.
fn assert_clean(interval: &Interval, origin: &Origin) {
    assert_eq!(interval.errors, 0, "{interval:?}");
    let (responses, seen) = (count(interval, "responses"), origin.requests.load(Ordering::Relaxed));
    assert!(responses > ENOUGH, "{interval:?}");
    assert!(seen >= responses, "the server saw {seen}: {interval:?}");
}

fn options(origin: &Origin, paths: &[&str]) -> LoadOptions {
    let targets = paths.iter().map(|path| path.parse().unwrap()).collect();
    LoadOptions { connections: 8, ..LoadOptions::new(origin.address, targets) }
}

#[test]
fn responses_of_one_and_of_many_segments_over_both_families() {
    skip_unless_privileged!();
    for offloads in [Offloads::CARD, Offloads::CHECKSUM_ONLY, Offloads::NONE] {
        let path = Path::Direct(offloads);
        let bed = Bed::create(&BedOptions { path, ..BedOptions::default() }).unwrap();
        for address in [IpAddr::from(Bed::SERVER_V4), Bed::SERVER_V6.into()] {
            for path in ["/512", "/14000", "/200000"] {
                let origin = Origin::start(&bed, address, u64::MAX);
                let interval = load(&bed, &options(&origin, &[path]));
                println!("{offloads:?} {address} {path}: {}", interval.line());
                assert_clean(&interval, &origin);
            }
        }
    }
}

#[test]
fn every_connection_is_reset_at_the_end() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), u64::MAX);
    load(&bed, &options(&origin, &["/100"]));
    eventually("all are reset", || origin.reset.load(Ordering::Relaxed) == 8);
}

#[test]
fn browser_headers_fit_and_arrive_whole() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), u64::MAX);
    let target = Target { headers: browser_headers(), ..Target::get("/512") };
    let options = LoadOptions { connections: 8, ..LoadOptions::new(origin.address, vec![target]) };
    assert_clean(&load(&bed, &options), &origin);
    assert!(origin.longest.load(Ordering::Relaxed) > 1000);
}

#[test]
fn targets_come_in_proportion_to_their_weights() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), u64::MAX);
    let many = |interval: &Interval| interval.errors > 0 || count(interval, "responses") > 3000;
    let interval = load_until(&bed, &options(&origin, &["3:/1000", "1:/5000"]), many);
    assert_clean(&interval, &origin);
    let bytes = count(&interval, "response_bytes") as f64 / count(&interval, "responses") as f64;
    let expected = 0.75 * 1000.0 + 0.25 * 5000.0 + 41.0;
    assert!((bytes - expected).abs() < 0.1 * expected, "{bytes} is not near {expected}");
}

#[test]
fn connections_that_the_server_closes_are_opened_again() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), 50);
    let closed = |interval: &Interval| count(interval, "reopened") >= 8;
    let interval = load_until(&bed, &options(&origin, &["/100"]), closed);
    assert!(closed(&interval), "{interval:?}");
    assert_eq!(interval.errors, 0, "{interval:?}");
}

/// Requests and connections are as many, each closed by the server, none reset.
/// The kernel's acknowledgement of a late answer has a later timestamp than the one that the server echoes.
#[test]
fn a_server_that_is_slow_at_first_takes_what_comes_next() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), u64::MAX);
    let interval = load_steadily(&bed, &options(&origin, &["/64/late"]));
    assert_clean(&interval, &origin);
    assert_eq!(count(&interval, "resent_by_watchdog"), 0, "{interval:?}");
}

#[test]
fn one_request_a_connection() {
    skip_unless_privileged!();
    for offloads in [Offloads::CARD, Offloads::NONE] {
        let path = Path::Direct(offloads);
        let bed = Bed::create(&BedOptions { path, sources: 2, ..BedOptions::default() }).unwrap();
        for address in [IpAddr::from(Bed::SERVER_V4), Bed::SERVER_V6.into()] {
            for path in ["/100", "/20000"] {
                let origin = Origin::start(&bed, address, 1);
                let first_source = Some(Bed::client_address(address, 0));
                let closing = vec![("Connection".to_owned(), "close".to_owned())];
                let target = Target { headers: closing, ..Target::get(path) };
                let options = LoadOptions {
                    connections: 6,
                    once: true,
                    first_source,
                    sources: 2,
                    ..LoadOptions::new(origin.address, vec![target])
                };
                let interval = load(&bed, &options);
                println!("{offloads:?} {address} {path}: {}", interval.line());
                assert_clean(&interval, &origin);
                let (opened, done) =
                    (count(&interval, "connections"), count(&interval, "responses"));
                // Counts of a load that goes on are read one after the other.
                assert!(opened.abs_diff(done) <= 12 + done / 50, "{interval:?}");
                assert_eq!(origin.reset.load(Ordering::Relaxed), 0, "{interval:?}");
            }
        }
    }
}

/// A server that closes in the middle is an error; the load goes on.
#[test]
fn responses_that_are_cut_short_are_errors() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let whole = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let listener = bed.server().run(|| TcpListener::bind((Bed::SERVER_V4, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        // Two are whole: one is learned from, and one shows the link addresses.
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let length = if number < 2 { whole.len() } else { whole.len() - 1 };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&whole.as_bytes()[..length]);
        }
    });
    let target = Target::get("/");
    let options =
        LoadOptions { connections: 2, once: true, ..LoadOptions::new(address, vec![target]) };
    let told =
        |interval: &Interval| count(interval, "cut_short") >= 2 && count(interval, "reopened") >= 1;
    let interval = load_until(&bed, &options, told);
    assert!(told(&interval), "{interval:?}");
    assert_eq!(count(&interval, "responses"), 0, "{interval:?}");
}

/// Nine connections in one ring: all of them are used, by turns, one request outstanding.
#[test]
fn more_connections_than_requests_take_turns() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions { sources: 2, ..BedOptions::default() }).unwrap();
    for address in [IpAddr::from(Bed::SERVER_V4), Bed::SERVER_V6.into()] {
        let origin = Origin::start(&bed, address, u64::MAX);
        let first_source = Some(Bed::client_address(address, 0));
        let options = LoadOptions {
            connections: 9,
            active: 1,
            first_source,
            sources: 2,
            ..options(&origin, &["/100", "/5000"])
        };
        let interval = load(&bed, &options);
        println!("{}", interval.line());
        assert_clean(&interval, &origin);
        // Each response is acknowledged; the two are not counted at quite the same moment.
        assert!(count(&interval, "acks") + 10 > count(&interval, "responses"), "{interval:?}");
        let [least, most] = origin.served();
        assert!(most - least <= 1, "{least} to {most}");
    }
}

/// No acknowledgement of its own: the next request on the connection carries it.
#[test]
fn late_acknowledgements_ride_on_requests() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), u64::MAX);
    let options =
        LoadOptions { connections: 9, active: 1, late_acks: true, ..options(&origin, &["/100"]) };
    let interval = load_steadily(&bed, &options);
    println!("{}", interval.line());
    assert_clean(&interval, &origin);
    assert_eq!(count(&interval, "acks"), 0, "{interval:?}");
    assert_eq!(count(&interval, "duplicates"), 0, "{interval:?}");
    let [least, most] = origin.served();
    assert!(most - least <= 1, "{least} to {most}");
}

#[test]
fn rings_survive_connections_that_are_closed() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), 20);
    let options = LoadOptions { connections: 6, active: 2, ..options(&origin, &["/100"]) };
    let closed =
        |interval: &Interval| count(interval, "reopened") >= 6 && count(interval, "responses") > 60;
    let interval = load_until(&bed, &options, closed);
    println!("{}", interval.line());
    assert!(closed(&interval), "{interval:?}");
    assert_eq!(interval.errors, 0, "{interval:?}");
}

#[test]
fn several_client_addresses_share_the_load() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions { sources: 4, ..BedOptions::default() }).unwrap();
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), u64::MAX);
    let first_source = Some(Bed::client_address(Bed::SERVER_V4.into(), 0));
    let options = LoadOptions { first_source, sources: 4, ..options(&origin, &["/100"]) };
    assert_clean(&load(&bed, &options), &origin);
}

#[test]
fn lost_packets_are_made_good() {
    skip_unless_privileged!();
    for once in [false, true] {
        lose_packets(once);
    }
}

fn lose_packets(once: bool) {
    use afpa_netlab::inject::{Impairment, Rules};
    let impairment = Impairment { loss: 0.01, duplicate: 0.01, ..Impairment::default() };
    let path = Path::Through(Box::new(Rules::both(impairment, 5)));
    let bed = Bed::create(&BedOptions { path, ..BedOptions::default() }).unwrap();
    let requests = if once { 1 } else { u64::MAX };
    let origin = Origin::start(&bed, Bed::SERVER_V4.into(), requests);
    let mut options = LoadOptions { once, ..options(&origin, &["/5000"]) };
    if once {
        options.targets[0].headers.push(("Connection".into(), "close".into()));
    }
    let repaired = |interval: &Interval| {
        let repairs =
            ["duplicates", "gaps", "resent_by_watchdog"].map(|name| count(interval, name));
        repairs.iter().sum::<u64>() > 0 && count(interval, "responses") > 3
    };
    let interval = load_until(&bed, &options, repaired);
    println!("{}", interval.line());
    assert_eq!(interval.errors, 0, "{interval:?}");
    assert!(repaired(&interval), "{interval:?}");
}

/// A server that lies about its length, or answers another status, is caught by the program.
#[test]
fn wrong_responses_are_errors() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    for second in [
        "HTTP/1.1 404 NF\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789",
    ] {
        let first = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        let address = start_two_faced(&bed, first, second);
        let options =
            LoadOptions { connections: 1, ..LoadOptions::new(address, vec![Target::get("/")]) };
        let interval = load_until(&bed, &options, |interval| interval.errors > 0);
        assert!(interval.errors > 0, "{second}: {interval:?}");
    }
}

/// An answer of a cache that gets older, where that is expected, and nothing else.
#[test]
fn an_age_may_get_longer_and_nothing_else() {
    skip_unless_privileged!();
    let bed = Bed::create(&BedOptions::default()).unwrap();
    let first = "HTTP/1.1 200 OK\r\nAge: 9\r\nContent-Length: 3\r\n\r\nabc";
    let older = "HTTP/1.1 200 OK\r\nAge: 1000\r\nContent-Length: 3\r\n\r\nabc";
    let ask = |ages, later: &'static str| LoadOptions {
        connections: 1,
        ages,
        ..LoadOptions::new(start_two_faced(&bed, first, later), vec![Target::get("/")])
    };
    let take = |ages, later| load(&bed, &ask(ages, later));
    let right = take(true, older);
    let (responses, bytes) = (count(&right, "responses"), count(&right, "response_bytes"));
    assert_eq!(right.errors, 0, "{right:?}");
    assert!(responses > 20, "{right:?}");
    // Counts of a load that goes on are read one after the other.
    let of_older = responses * older.len() as u64;
    assert!(
        bytes.abs_diff(of_older) <= of_older / 50,
        "of the first ones it is 6 % less: {right:?}"
    );
    // The same bytes, where no Age is expected to change.
    assert!(take(false, older).errors > 0);
    for wrong in [
        "HTTP/1.1 200 OK\r\nAge: 10\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nAge: 10\r\nX: y\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nAge: 123456789\r\nContent-Length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nAge: x10\r\nContent-Length: 3\r\n\r\nabc",
    ] {
        let interval = take(true, wrong);
        assert!(interval.errors > 0, "{wrong}: {interval:?}");
    }
    // The exchange of a response that is too short never comes to its end.
    let short = ask(true, "HTTP/1.1 200 OK\r\nAge: 10\r\nContent-Length: 2\r\n\r\nab");
    let short = load_until(&bed, &short, |_| true);
    assert_eq!(count(&short, "responses"), 0, "{short:?}");
}

/// The first answer on each connection differs from all later ones.
fn start_two_faced(bed: &Bed, first: &'static str, later: &'static str) -> SocketAddr {
    let listener = bed.server().run(|| TcpListener::bind((Bed::SERVER_V4, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let (mut stream, mut answer) = (stream.unwrap(), first);
                while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {
                    stream.write_all(answer.as_bytes()).unwrap();
                    answer = later;
                }
            });
        }
    });
    address
}
