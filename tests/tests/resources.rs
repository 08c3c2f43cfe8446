//! Resources that run out, operations that fail, targets that are no files: the server says so and goes on.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::{fs, os::unix::net::UnixListener, process::Command, thread, time::Duration};

use afpa_testkit::{
    Asked, Client, Server, Tree, eventually, eventually_within, figure, limits::is_root, skip,
    tree::patterned,
};

fn small_site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

#[test]
fn a_server_out_of_descriptors_survives_and_recovers() {
    let tree = small_site();
    for n in 0..20 {
        tree.file(format!("large{n}.bin"), patterned(300_000));
    }
    let mut server = Server::start(tree.path(), |launch| {
        launch.limit('n', 64).arg("--workers").arg("1");
    });
    let mut inside = Vec::new();
    let (mut answered, mut refused) = (0, 0);
    for n in 0..150 {
        let Ok(mut client) = Client::connect(server.endpoint()) else { break };
        client.set_patience(Duration::from_millis(30)).expect("time-out");
        let target = if n % 3 == 0 { format!("/large{}.bin", n % 20) } else { "/hello.txt".into() };
        let _ = client.try_send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        match client.try_receive(Asked::Body) {
            Ok(response) if response.status == 200 => answered += 1,
            Ok(response) => {
                assert!(matches!(response.status, 500 | 503), "{response:?}");
                refused += 1;
            }
            Err(_) => {}
        }
        inside.push(client);
    }
    let held = server.process().descriptors().expect("descriptors");
    figure!("{answered} answered, {refused} refused, {held} descriptors of 64");
    assert!(server.is_running());
    assert!(answered > 0);
    // Waiting for a descriptor is not to burn the processor.
    let ticks = || server.process().processor_ticks().expect("ticks");
    let before = ticks();
    thread::sleep(Duration::from_millis(600));
    let spent = ticks() - before;
    assert!(spent < 30, "{spent} of 60 ticks spent on nothing");
    drop(inside);
    eventually("it recovers", || {
        Client::connect(server.endpoint()).is_ok_and(|mut client| {
            client.set_patience(Duration::from_millis(500)).expect("time-out");
            let sent = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
            sent.is_ok() && client.try_receive(Asked::Body).is_ok_and(|r| r.status == 200)
        })
    });
    for n in 0..20 {
        assert_eq!(server.get(&format!("/large{n}.bin")).body.len(), 300_000);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_403_and_nothing_else_suffers() {
    let tree = small_site();
    tree.file("locked.txt", "locked");
    tree.file("closed/f.txt", "closed");
    tree.set_mode("locked.txt", 0o000);
    tree.set_mode("closed", 0o000);
    let server = Server::start(tree.path(), |_| ());
    if server.process().users().is_ok_and(|users| users.get(1) == Some(&0)) {
        skip!("the server runs as root, who may read everything");
    }
    let mut client = server.connect();
    for target in ["/locked.txt", "/closed/f.txt"] {
        let response = client.get(target);
        assert!(matches!(response.status, 403 | 404), "{target}: {response:?}");
    }
    assert_eq!(client.get("/hello.txt").text(), "hello");
    tree.set_mode("locked.txt", 0o644);
    eventually("the right is given", || server.get("/locked.txt").status == 200);
    tree.set_mode("locked.txt", 0o000);
    eventually_within(Duration::from_secs(3), "the right is taken", || {
        server.get("/locked.txt").status == 403
    });
    tree.set_mode("closed", 0o755);
    eventually("the folder is opened", || server.get("/closed/f.txt").status == 200);
}

#[test]
fn what_is_no_regular_file_is_refused_without_a_hang() {
    let tree = small_site();
    let _socket = UnixListener::bind(tree.at("socket")).expect("bind");
    tree.dir("index-is-a-folder/index.html");
    let made = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
    };
    let path = |name: &str| tree.at(name).to_str().expect("UTF-8").to_owned();
    assert!(made("mkfifo", &["--mode=666", &path("pipe")]), "mkfifo");
    let mut targets = vec!["/socket", "/pipe", "/index-is-a-folder/"];
    if is_root() && made("mknod", &["--mode=666", &path("zero"), "c", "1", "5"]) {
        targets.push("/zero");
    }
    let server = Server::start(tree.path(), |_| ());
    let mut client = server.connect();
    client.set_patience(Duration::from_secs(3)).expect("time-out");
    for target in targets {
        let response = client.get(target);
        assert!(matches!(response.status, 403 | 404), "{target}: {response:?}");
    }
    assert_eq!(client.get("/hello.txt").text(), "hello");
}

#[test]
fn killed_and_started_again_it_serves_over_its_stale_sockets() {
    let tree = small_site();
    let mut unix = None;
    let mut server = Server::start(tree.path(), |launch| unix = Some(launch.listen_unix()));
    let unix = unix.expect("endpoint");
    let mut old = server.connect();
    old.assert_open("/hello.txt");
    for _ in 0..3 {
        server.kill_and_restart();
        assert_eq!(server.get("/hello.txt").text(), "hello");
        assert_eq!(Client::connect(&unix).expect("connect").get("/hello.txt").text(), "hello");
        let health = Client::connect(&server.control()).expect("control").get("/health");
        assert_eq!(health.status, 200, "{health:?}");
    }
    assert!(
        old.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n").is_err() || {
            old.try_receive(Asked::Body).is_err()
        }
    );
}

#[test]
fn files_changed_while_it_was_down_are_served_as_they_are() {
    let tree = small_site();
    let mut server = Server::start(tree.path(), |_| ());
    assert_eq!(server.get("/hello.txt").text(), "hello");
    server.kill();
    tree.file("hello.txt", "other");
    server.kill_and_restart();
    assert_eq!(server.get("/hello.txt").text(), "other");
}

#[test]
fn without_a_right_to_lock_memory_it_still_serves() {
    let tree = small_site();
    let server = Server::start(tree.path(), |launch| {
        launch.limit('l', 0);
    });
    assert_eq!(server.get("/hello.txt").text(), "hello");
    // Root may lock all the same; for other users the log names the remedy.
    let locked = server.log().to_lowercase();
    assert!(is_root() || locked.contains("memlock") || locked.contains("lock"), "{locked}");
}

#[test]
fn a_log_that_cannot_be_written_stops_nobody() {
    let tree = small_site();
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--access-log").arg("/dev/full");
    });
    let mut client = server.connect();
    for _ in 0..2000 {
        assert_eq!(client.get("/hello.txt").status, 200);
    }
    assert_eq!(server.get("/hello.txt").text(), "hello");
}

#[test]
fn a_file_larger_than_memory_costs_no_memory() {
    const HUGE: u64 = 50 << 30;
    let tree = small_site();
    let file = fs::File::create(tree.at("huge.bin")).expect("create");
    if let Err(why) = file.set_len(HUGE) {
        skip!("no file of 50 GiB here: {why}");
    }
    let server = Server::start(tree.path(), |_| ());
    assert_eq!(server.get("/hello.txt").status, 200);
    let before = server.process().resident().expect("resident set");
    let mut client = server.connect();
    let head = client.head_with("/huge.bin", "");
    assert_eq!(head.field("content-length"), Some(HUGE.to_string().as_str()));
    let last = client.get_with("/huge.bin", "Range: bytes=-5\r\n");
    assert_eq!((last.status, last.body.as_slice()), (206, [0; 5].as_slice()));
    let span = format!("bytes {}-{}/{HUGE}", HUGE - 5, HUGE - 1);
    assert_eq!(last.field("content-range"), Some(span.as_str()));
    let middle = client.get_with("/huge.bin", "Range: bytes=5000000000-5000999999\r\n");
    assert!(middle.body == vec![0; 1_000_000]);
    client.send("GET /huge.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut piece = vec![0; 1 << 20];
    for _ in 0..20 {
        assert!(client.read_raw(&mut piece).expect("it flows") > 0);
    }
    let grown = server.process().resident().expect("resident set").saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes");
}

#[test]
fn a_working_set_larger_than_the_pinned_memory_is_served_right() {
    let tree = Tree::new();
    for n in 0..300 {
        tree.file(format!("{n}.bin"), patterned(30_000 + n));
    }
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--pinned-limit").arg("2MiB");
    });
    let mut client = server.connect();
    for round in 0..3 {
        for n in 0..300 {
            let body = client.get(&format!("/{n}.bin")).body;
            assert!(body == patterned(30_000 + n), "round {round}, file {n}");
        }
    }
    let resident = server.process().resident().expect("resident set");
    figure!("{} KiB resident with 2 MiB pinned at most", resident / 1024);
}

const HELLO: &str = "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n";
const LONG: &str = "GET /long.bin HTTP/1.1\r\nHost: h\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection of which the client's end is one of many: ports of one address would run out.
fn connect_from(number: usize, server: SocketAddr) -> socket2::Socket {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let socket = socket.expect("a socket");
    let own = Ipv4Addr::new(127, 0, 2, (number % 200) as u8 + 1);
    socket.bind(&SocketAddr::new(own.into(), 0).into()).expect("an address of its own");
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    socket.connect(&server.into()).expect("connected");
    socket
}

/// Reads `count` responses of `hello`.
fn read_hellos(stream: &mut TcpStream, count: usize) {
    let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
    while seen.windows(9).filter(|bytes| bytes == b"\r\n\r\nhello").count() < count {
        let length = stream.read(&mut piece).expect("a response in time");
        assert!(length > 0, "closed behind {:?}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..length]);
    }
}

/// One connection, which ends in one of the ways in which clients end them.
fn one_of_many(number: usize, server: SocketAddr) {
    let socket = connect_from(number, server);
    let mut stream = TcpStream::from(socket);
    let mut say = |text: &str| stream.write_all(text.as_bytes()).expect("taken");
    match number % 7 {
        // All in one segment; the client closes.
        0 => {
            say(&HELLO.repeat(4));
            read_hellos(&mut stream, 4);
        }
        // In the middle of a request, behind a first one.
        1 => {
            say(HELLO);
            read_hellos(&mut stream, 1);
            stream.write_all(&HELLO.as_bytes()[..20]).expect("taken");
        }
        // Before any response of many has been read.
        2 => say(&HELLO.repeat(50)),
        // In the middle of a long response, behind short ones.
        3 => {
            say(&HELLO.repeat(2));
            read_hellos(&mut stream, 2);
            stream.write_all(LONG.as_bytes()).expect("taken");
            stream.read_exact(&mut [0; 1000]).expect("a beginning");
        }
        // The server closes, because it is asked to.
        4 => {
            say(&HELLO.repeat(2));
            say("GET /hello.txt HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            read_hellos(&mut stream, 3);
            assert_eq!(stream.read(&mut [0; 1]).expect("the end"), 0);
        }
        // The server closes, because the client has ended its direction.
        5 => {
            say(&HELLO.repeat(2));
            read_hellos(&mut stream, 2);
            stream.shutdown(Shutdown::Write).expect("ended");
            assert_eq!(stream.read(&mut [0; 1]).expect("the end"), 0);
        }
        // Without a word.
        _ => {}
    }
    if number.is_multiple_of(2) {
        let reset = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        reset.expect("the next close is a reset");
    }
}

/// `AFPA_CONNECTIONS=1000000` for a million of them by each strategy, which takes minutes.
#[test]
fn many_connections_leave_neither_descriptors_nor_memory_however_the_engine_waits() {
    let all = std::env::var("AFPA_CONNECTIONS").map_or(6000, |all| all.parse().expect("a number"));
    const CLIENTS: usize = 4;
    const HELPERS: usize = 12; // which are made when they are needed, and the long file
    let tree = small_site();
    tree.file("long.bin", patterned(300_000));
    for io in ["readiness", "completion"] {
        let server = Server::start(tree.path(), |launch| {
            launch.arg("--workers").arg("1");
            launch.set(|settings| {
                settings.set("engine.io", format!("{io:?}"));
            });
        });
        let address = server.address();
        let connect = |first: usize, count: usize| {
            thread::scope(|scope| {
                for client in 0..CLIENTS {
                    let numbers = (first + client..first + count).step_by(CLIENTS);
                    scope.spawn(move || numbers.for_each(|number| one_of_many(number, address)));
                }
            });
        };
        server.settle();
        let process = server.process();
        let descriptors = || process.descriptors().expect("descriptors");
        let at_start = descriptors();
        connect(0, all / 4); // the server makes the resources that it keeps for reuse
        eventually_within(PATIENCE, "all connections of a quarter are closed", || {
            descriptors() <= at_start + HELPERS
        });
        let resident = process.resident().expect("memory");
        connect(all / 4, all - all / 4);
        eventually_within(PATIENCE, "all connections are closed", || {
            descriptors() <= at_start + HELPERS
        });
        let grown = process.resident().expect("memory").saturating_sub(resident);
        figure!("{io}: {all} connections, {} descriptors, {grown} bytes more", descriptors());
        assert!(grown < 4 << 20, "{io}: {grown} bytes more after {all} connections");
        assert_eq!(server.get("/hello.txt").text(), "hello");
    }
}
