//! The admission of clients: denied clients, rates, and floods, with the kernel's part and without it.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use afpa_netlab::Bed;
use afpa_testkit::packet::{PacketSocket, SYN, Segment};
use afpa_testkit::{Asked, Client, Endpoint, Server, Tree, eventually};
use rustix::process::Signal;

use crate::lab::{Lab, PORT, answers, is_from_kernel, stats, warm};

/// The address from which the test waits for the start of the server.
const FRIEND: &str = "10.77.64.1";
const FRIEND_V6: &str = "fd77::a4d:4001";
/// Others on the client's side.
const OTHER: &str = "10.77.64.2";
const OTHER_V6: &str = "fd77::bad:1";

/// Longer than any SYN takes that is answered here.
const SILENCE: Duration = Duration::from_millis(300);

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

/// A server with police, of both families. The others have no address before it is there, lest it is one of them that
/// looks whether it is.
#[track_caller]
fn server(lab: &Lab, tree: &Tree, mode: &'static str, police: &[(&str, &str)]) -> Server {
    let server = lab.server_on(PORT, tree, |launch| {
        launch.fast_path(mode);
        launch.listen(Endpoint::Tcp(SocketAddr::new(IpAddr::V6(Bed::SERVER_V6), PORT)));
        launch.set(|settings| {
            for (key, value) in police {
                settings.set(&format!("police.{key}"), value);
            }
        });
    });
    let addresses = [format!("{OTHER}/16"), format!("{OTHER_V6}/64")];
    let interface = lab.bed().client().interface(Bed::DEVICE);
    // Of an earlier server of the same test, it has them already.
    let _there = interface.add_addresses(addresses.iter().map(String::as_str));
    server
}

/// Time enough for a SYN that is answered, on a machine that has much else to do.
const ANSWER: Duration = Duration::from_secs(10);

fn connect(from: &str, within: Duration) -> std::io::Result<Client> {
    let from: IpAddr = from.parse().expect("an address");
    let server: IpAddr = if from.is_ipv4() { Bed::SERVER_V4.into() } else { Bed::SERVER_V6.into() };
    Client::connect_within(within, from, SocketAddr::new(server, PORT))
}

#[track_caller]
fn is_served(from: &str) {
    let mut client = connect(from, ANSWER).unwrap_or_else(|error| panic!("{from}: {error}"));
    assert_eq!(client.get("/hello.txt").text(), "hello", "{from}");
}

/// Its SYN gets no answer at all: no refusal either.
#[track_caller]
fn gets_no_answer(from: &str) {
    let error = connect(from, SILENCE).expect_err("a denied client");
    assert!([ErrorKind::TimedOut, ErrorKind::WouldBlock].contains(&error.kind()), "{error:?}");
}

fn refused(server: &Server, what: &str, why: &str) -> u64 {
    stats(server)["police"][what][why].as_u64().expect("a count")
}

#[track_caller]
fn order(server: &Server, arguments: &[&str]) -> (bool, String) {
    let output = server.command(&[&["deny"], arguments].concat());
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_denied_client_gets_no_answer_and_an_allowed_one_within_its_prefix_is_served() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let police = [
        ("deny", "[\"10.77.0.0/16\", \"fd77::/64\"]"),
        ("allow", "[\"10.77.64.1\", \"fd77::a4d:4001\"]"),
    ];
    let server = server(&lab, &tree, "on", &police);
    for from in [FRIEND, FRIEND_V6] {
        is_served(from);
    }
    let accepted = || stats(&server)["connections"]["accepted"].as_u64().expect("a count");
    // The kernel may have answered before user mode accepts.
    let mut before = accepted();
    eventually("user mode has accepted them", || {
        std::thread::sleep(SILENCE);
        std::mem::replace(&mut before, accepted()) == accepted()
    });
    for from in [OTHER, OTHER_V6] {
        gets_no_answer(from);
    }
    assert_eq!(refused(&server, "refused_connections", "denied"), 2);
    assert_eq!(accepted(), before, "user mode saw none of it");
}

#[test]
fn a_reload_takes_new_lists_and_a_bad_one_changes_nothing() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let list =
        tree.path().parent().expect("a folder").join(format!("denied-{}", std::process::id()));
    std::fs::write(&list, format!("# none of these\n{OTHER} # this one\n")).expect("written");
    let files = format!("[{:?}]", list.display().to_string());
    let server = server(&lab, &tree, "on", &[("deny_files", &files)]);
    gets_no_answer(OTHER);
    is_served(FRIEND);

    std::fs::write(&list, "fd77::bad:0/112\n10.77.64.300\n").expect("written");
    server.signal(Signal::HUP);
    let wrong =
        format!("{}:2: \"10.77.64.300\" is neither an address nor a prefix", list.display());
    eventually("it complains", || server.log().contains(&wrong));
    eventually("it goes on", || server.log().contains("the running configuration stays"));
    gets_no_answer(OTHER);
    is_served(OTHER_V6);

    std::fs::write(&list, "fd77::bad:0/112\n").expect("written");
    server.signal(Signal::HUP);
    eventually("the other list is in force", || connect(OTHER, SILENCE).is_ok());
    is_served(OTHER);
    gets_no_answer(OTHER_V6);
    std::fs::remove_file(&list).expect("removed");
}

#[test]
fn orders_act_at_once_also_on_open_connections() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = server(&lab, &tree, "on", &[]);
    warm(&server, "/hello.txt");
    let mut open = connect(OTHER, ANSWER).expect("nobody is denied");
    assert!(is_from_kernel(&server, &mut open, "/hello.txt"));

    let (done, said) = order(&server, &["add", "10.77.64.2/31"]);
    assert!(done && said == "10.77.64.2/31 is denied\n", "{said}");
    gets_no_answer(OTHER);
    is_served(FRIEND);
    let before = answers(&server);
    open.send("GET /hello.txt HTTP/1.1\r\nHost: test\r\n\r\n");
    let response = open.receive();
    assert_eq!((response.status, answers(&server)), (403, before), "{response:?}");
    assert!(response.says_close());
    open.assert_closed();
    assert_eq!(refused(&server, "refused_requests", "denied"), 1);

    server.signal(Signal::HUP);
    eventually("it reloaded", || server.log().contains("reloaded"));
    gets_no_answer(OTHER);
    let (_, list) = order(&server, &["list"]);
    assert_eq!(list.split_whitespace().collect::<Vec<_>>(), ["10.77.64.2/31", "order"]);

    let (done, said) = order(&server, &["del", "10.77.64.2/31"]);
    assert!(done && said == "10.77.64.2/31 is not denied any more\n", "{said}");
    is_served(OTHER);
    for (arguments, says) in [
        (["del", "10.77.64.2/31"], "10.77.64.2/31 is not denied (`afpa deny list` shows what is)"),
        (
            ["add", "10.77.64.2/8"],
            "write 10.0.0.0/8 for all of it, or 10.77.64.2 for the one address",
        ),
        (["add", "example.org"], "\"example.org\" is neither an address nor a prefix"),
    ] {
        let (done, said) = order(&server, &arguments);
        assert!(!done && said.contains(says), "{said}");
    }
}

/// Whether one more connection succeeds. Without an answer this takes 20 ms.
fn connects(from: &str) -> bool {
    let from: IpAddr = from.parse().expect("an address");
    let to = SocketAddr::new(Bed::SERVER_V4.into(), PORT);
    Client::connect_within(Duration::from_millis(20), from, to).is_ok()
}

/// Connects again and again until so many have succeeded and so many have not, and counts the former.
fn connections_until(successes: u32, failures: u32, from: &str) -> u32 {
    let (mut count, mut failed) = (0, 0);
    eventually("some succeed and some do not", || {
        if connects(from) {
            count += 1
        } else {
            failed += 1
        }
        assert!(count < 1000, "nobody is held back");
        count >= successes && failed >= failures
    });
    count
}

/// The kernel counts at the SYN; without it, connections are closed when they are accepted.
#[test]
fn a_client_connects_as_often_as_its_rate_says_and_others_do_not_notice() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let police = [("client_connections_per_second", "20"), ("client_connections_burst", "10")];
    let server = server(&lab, &tree, "on", &police);
    let begun = Instant::now();
    let count = connections_until(40, 20, OTHER);
    let most = 10 + (begun.elapsed().as_secs_f64() * 20.0) as u32 + 1;
    assert!(count <= most, "{count} of at most {most}");
    is_served(FRIEND);
    assert!(refused(&server, "refused_connections", "client_rate") > 10);
}

/// Clients of many prefixes: only the rate of all of them together is bounded, and an allowed client does not notice.
#[test]
fn all_clients_together_connect_as_often_as_their_rate_says() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let police = [
        ("connections_per_second", "20"),
        ("connections_burst", "10"),
        ("allow", "[\"10.77.64.1\"]"),
    ];
    let server = server(&lab, &tree, "on", &police);
    let begun = Instant::now();
    let count = connections_until(20, 10, OTHER);
    let most = 10 + (begun.elapsed().as_secs_f64() * 20.0) as u32 + 1;
    assert!(count <= most, "{count} of at most {most}");
    (0..50).for_each(|_| is_served(FRIEND));
    assert!(refused(&server, "refused_connections", "total_rate") > 5);
}

#[test]
fn requests_are_limited_wherever_they_are_answered() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let police = [("client_requests_per_second", "50"), ("client_requests_burst", "25")];
    for mode in ["on", "off"] {
        let server = server(&lab, &tree, mode, &police);
        if mode == "on" {
            eventually("the kernel answers", || {
                let _perhaps_too_often = server.get("/hello.txt");
                answers(&server) > 0
            });
        }
        let before = refused(&server, "refused_requests", "client_rate");
        let mut client = connect(OTHER, ANSWER).expect("connected");
        let begun = Instant::now();
        let (mut served, mut limited) = (0, 0);
        while served < 125 || limited <= 20 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{mode}: {served} and {limited}");
            let response = client.get("/hello.txt");
            match response.status {
                200 => served += 1,
                429 => {
                    assert_eq!(response.field("Retry-After"), Some("1"), "{response:?}");
                    limited += 1;
                    std::thread::sleep(Duration::from_millis(3));
                }
                other => panic!("{other}: {response:?}"),
            }
        }
        let most = 25 + (begun.elapsed().as_secs_f64() * 50.0) as u32 + 1;
        assert!(served <= most, "{mode}: {served} of at most {most}");
        assert_eq!(refused(&server, "refused_requests", "client_rate") - before, limited, "{mode}");
        if mode == "on" {
            assert!(answers(&server) > 90, "the kernel answers, {} only", answers(&server));
        }
    }
}

/// Others take all that they can get, which is much more than there is; the class comes a little less often than its share.
#[test]
fn a_class_is_served_however_often_others_come() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let police = [
        ("connections_per_second", "20"),
        ("connections_burst", "10"),
        ("class", "[{ name = \"friends\", share = 50, prefixes = [\"10.77.64.1\"] }]"),
    ];
    for mode in ["on", "off"] {
        let server = server(&lab, &tree, mode, &police);
        let class = |name: &str| stats(&server)["police"]["classes"][name].clone();
        // Its looks whether the server is there have taken of its share; after this time the burst is whole again.
        std::thread::sleep(Duration::from_secs(1));
        let before = class("friends")["refused_connections"].as_u64().expect("a count");
        let (over, others) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    others.fetch_add(connects(OTHER).into(), Ordering::Relaxed);
                }
            });
            let mut times = 0;
            // They are served, too, as often as there is room.
            eventually("others are served, and many are not", || {
                is_served(FRIEND);
                std::thread::sleep(Duration::from_millis(120));
                times += 1;
                let refused = class("others")["refused_connections"].as_u64();
                times >= 16 && others.load(Ordering::Relaxed) > 5 && refused > Some(10)
            });
            over.store(true, Ordering::Release);
        });
        assert_eq!(class("friends")["refused_connections"], before, "{mode}");
        assert_eq!(class("friends")["share_percent"], 50, "{mode}");
        let metrics = Client::connect(&server.control()).expect("control").get("/metrics");
        let name = "afpa_police_class_refused_connections_total";
        let line = format!("{name}{{class=\"friends\"}} {before}\n");
        assert!(metrics.text().contains(&line), "{mode}: {}", metrics.text());
    }
}

/// Twenty thousand SYNs, as fast as they can be sent, from a few addresses of one prefix.
#[test]
fn a_flood_from_one_prefix_leaves_another_client_served() {
    let Some(lab) = Lab::new() else { return };
    const SYNS: u32 = 20_000;
    let tree = site();
    let police = [("client_connections_per_second", "50"), ("client_connections_burst", "50")];
    let server = server(&lab, &tree, "on", &police);
    let raw = lab.bed().raw_client(SocketAddr::new(Bed::SERVER_V4.into(), PORT)).expect("a client");
    let macs = *raw.frame(&raw.next()).first_chunk::<12>().expect("an Ethernet header");
    let wire = PacketSocket::open(Bed::DEVICE).expect("a packet socket");
    let over = AtomicBool::new(false);
    let (mut served, mut slowest) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..SYNS {
                let from = Ipv4Addr::from(0x0a4d_8000 + number % 4);
                let from = SocketAddr::new(from.into(), 1024 + (number / 4) as u16);
                let to = SocketAddr::new(Bed::SERVER_V4.into(), PORT);
                let syn = Segment { flags: SYN, seq: number, ..Segment::new(from, to) };
                while !wire.send(&syn.frame(&macs)).expect("sent") {}
            }
            over.store(true, Ordering::Release);
        });
        loop {
            let begun = Instant::now();
            is_served(OTHER);
            slowest = slowest.max(begun.elapsed());
            served += 1;
            if over.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(Duration::from_millis(25)); // its own rate is limited, too
        }
    });
    let dropped = || refused(&server, "refused_connections", "client_rate");
    // Some may be lost on their way, where the queue of the interface is full.
    eventually("they have come", || dropped() > u64::from(SYNS / 2));
    println!("{served} connections were served meanwhile, the slowest took {slowest:?}");
    is_served(OTHER);
}

#[test]
fn user_mode_decides_alike_where_there_is_no_fast_path() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let police = [
        ("deny", "[\"10.77.64.0/24\"]"),
        // Those from which the test waits for the start: one of them shares its prefix with the client that is limited.
        ("allow", "[\"10.77.64.1\", \"fd77::a4d:4001\"]"),
        ("client_connections_per_second", "1"),
        ("client_connections_burst", "20"),
    ];
    let server = server(&lab, &tree, "off", &police);
    is_served(FRIEND);
    // The kernel's TCP has let it in; then the connection is closed without a word.
    let closed = |from: &str| {
        let mut client = connect(from, ANSWER).expect("accepted");
        let _perhaps_closed = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: test\r\n\r\n");
        let answer = client.read_to_close();
        assert!(answer.as_ref().is_ok_and(Vec::is_empty) || answer.is_err(), "{answer:?}");
    };
    closed(OTHER);
    assert_eq!(refused(&server, "refused_connections", "denied"), 1);
    let (begun, mut count) = (Instant::now(), 0);
    while refused(&server, "refused_connections", "client_rate") == 0 {
        let mut client = connect(OTHER_V6, ANSWER).expect("accepted");
        let _perhaps_closed = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: test\r\n\r\n");
        count += u64::from(client.try_receive(Asked::Body).is_ok());
    }
    let most = 20 + begun.elapsed().as_secs() + 1;
    assert!((20..=most).contains(&count), "{count} of at most {most}");
    (0..50).for_each(|_| is_served(FRIEND));
    let metrics = Client::connect(&server.control()).expect("control").get("/metrics");
    for (why, count) in [("denied", 1), ("client_rate", 1), ("total_rate", 0)] {
        let line = format!("afpa_police_refused_connections_total{{why=\"{why}\"}} {count}\n");
        assert!(metrics.text().contains(&line), "{line} in {}", metrics.text());
    }
    let (done, said) = order(&server, &["add", OTHER_V6]);
    assert!(done, "{said}");
    closed(OTHER_V6);
    assert_eq!(refused(&server, "refused_connections", "denied"), 2);
}
