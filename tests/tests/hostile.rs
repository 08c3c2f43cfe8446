//! Clients that mean harm: slow ones, many, large, and nonsense. What they cost is bounded, and
//! the others are served meanwhile.

use std::{
    net::IpAddr,
    thread,
    time::{Duration, Instant},
};

use afpa_testkit::{
    Asked, Client, Random, ReceiveError, Server, Tree, eventually, eventually_within,
    exclusive::exclusive, figure, limits::raise_open_files, skip, tree::patterned,
};

const SHORT: Duration = Duration::from_millis(500);

/// A time-out of half a second may take this long on a busy machine.
const LATE: Duration = Duration::from_secs(4);

fn small_site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

/// A server with one worker, so that all clients meet in it.
fn server(tree: &Tree, change: impl FnOnce(&mut afpa_testkit::settings::Settings)) -> Server {
    Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").set(change);
    })
}

#[test]
fn a_head_that_dribbles_is_408_when_its_time_is_over() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.head_time(SHORT);
    });
    let mut clients: Vec<Client> = (0..30).map(|_| server.connect()).collect();
    let start = Instant::now();
    let head = b"GET /hello.txt HTTP/1.1\r\nHost: h\r\nX-Slow: ".iter().chain(&[b'x'; 200]);
    for byte in head {
        for client in &mut clients {
            // The server may have lost its patience.
            let _ = client.try_send([*byte]);
        }
        if start.elapsed() > SHORT {
            break;
        }
        // Everybody else is served at once meanwhile.
        assert_eq!(server.get("/hello.txt").status, 200);
        thread::sleep(Duration::from_millis(10));
    }
    for mut client in clients {
        let response = client.receive();
        assert_eq!(response.status, 408, "{response:?}");
        assert!(response.says_close());
        client.assert_closed();
    }
    let took = start.elapsed();
    assert!(SHORT <= took && took < LATE, "{took:?}");
}

#[test]
fn time_runs_from_the_first_byte_of_a_head_not_from_the_last() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.head_time(SHORT).idle_time(Duration::from_secs(30));
    });
    let mut client = server.connect();
    assert_eq!(client.get("/hello.txt").status, 200);
    // A second request on the same connection gets no more time than the first.
    let start = Instant::now();
    let mut sent = client.try_send("GET /hello.txt HTTP/1.1\r\n");
    while sent.is_ok() && start.elapsed() < LATE {
        thread::sleep(Duration::from_millis(50));
        sent = client.try_send("A: b\r\n");
    }
    let took = start.elapsed();
    assert!(SHORT <= took && took < LATE, "{took:?}");
}

#[test]
fn a_connection_at_rest_is_closed_in_silence() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.idle_time(SHORT).head_time(SHORT);
    });
    let mut fresh = server.connect();
    let mut used = server.connect();
    assert_eq!(used.get("/hello.txt").status, 200);
    let start = Instant::now();
    used.assert_closed();
    fresh.assert_closed();
    let took = start.elapsed();
    assert!(SHORT / 2 <= took && took < LATE, "{took:?}");
}

#[test]
fn a_body_that_stops_coming_ends_the_connection() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.body_time(SHORT);
    });
    for head in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        let mut client = server.connect();
        client.send(format!("POST /hello.txt HTTP/1.1\r\nHost: h\r\n{head}\r\n\r\n3\r\nabc"));
        let start = Instant::now();
        let bytes = client.read_to_close().expect("the server closes");
        let took = start.elapsed();
        assert!(SHORT / 2 <= took && took < LATE, "{head}: {took:?}");
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains(" 405 ") || text.contains(" 408 "), "{head}: {text:?}");
        assert!(!text.contains(" 200 "), "{head}: {text:?}");
    }
}

#[test]
fn a_reader_that_stands_still_is_cut_off_and_a_slow_one_is_not() {
    let tree = Tree::new();
    let large = patterned(4_000_000);
    tree.file("large.bin", &large);
    let server = server(&tree, |settings| {
        settings.write_time(Duration::from_secs(1));
    });
    let ask = "GET /large.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let mut still = Client::connect_narrow(server.address(), 4096).expect("connect");
    let mut slow = Client::connect_narrow(server.address(), 4096).expect("connect");
    still.send(ask);
    slow.send(ask);
    let start = Instant::now();
    let mut got = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = slow.read_raw(&mut piece).expect("the slow reader is not cut off");
        if count == 0 {
            break;
        }
        got.extend_from_slice(&piece[..count]);
        if start.elapsed() < Duration::from_secs(3) {
            thread::sleep(Duration::from_millis(2));
        }
    }
    let (count, took) = (got.len(), start.elapsed());
    assert!(got.ends_with(&large), "the slow reader got {count} bytes in {took:?}, not all");
    let bytes = still.read_to_close().expect("the still one is cut off");
    assert!(bytes.len() < large.len(), "{} bytes", bytes.len());
}

#[test]
fn stalled_readers_cost_bounded_memory() {
    const READERS: u64 = 200;
    const ALLOWED: u64 = 64 * 1024;
    let _alone = exclusive();
    if let Err(why) = raise_open_files(2000) {
        skip!("{why}");
    }
    let tree = Tree::new();
    tree.file("large.bin", patterned(10_000_000));
    tree.file("hello.txt", "hello");
    let server = server(&tree, |settings| {
        settings.write_time(Duration::from_secs(600));
    });
    let mut first = server.connect();
    assert_eq!(first.get("/large.bin").body.len(), 10_000_000);
    let before = server.process().resident().expect("resident set");
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = Client::connect_narrow(server.address(), 4096).expect("connect");
        // A pipeline of them, so that there is always more to send than anybody takes.
        reader.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n".repeat(20));
        readers.push(reader);
    }
    thread::sleep(Duration::from_millis(300));
    assert_eq!(server.get("/hello.txt").text(), "hello", "others are served");
    let grown = server.process().resident().expect("resident set").saturating_sub(before);
    figure!("{} bytes of the server's memory per stalled reader", grown / READERS);
    assert!(grown / READERS <= ALLOWED, "{grown} bytes for {READERS} readers");
    let held = server.process().descriptors().expect("descriptors");
    drop(readers);
    eventually("the connections are let go", || {
        server.process().descriptors().expect("descriptors") < held - READERS as usize / 2
    });
}

#[test]
fn ten_thousand_idle_connections_cost_little() {
    const CONNECTIONS: u64 = 10_000;
    const ALLOWED: u64 = 8 * 1024;
    let _alone = exclusive();
    if let Err(why) = raise_open_files(CONNECTIONS + 1000) {
        skip!("{why}");
    }
    let tree = small_site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.connections(20_000).connections_per_client(20_000);
            settings.idle_time(Duration::from_secs(600));
        });
    });
    for _ in 0..50 {
        assert_eq!(server.get("/hello.txt").status, 200);
    }
    let before = server.process().resident().expect("resident set");
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS {
        // Each has been used once: what a request needs must have been given back.
        let mut client = server.connect();
        assert_eq!(client.get("/hello.txt").status, 200);
        idle.push(client);
    }
    let after = server.process().resident().expect("resident set");
    let each = after.saturating_sub(before) / CONNECTIONS;
    figure!("{each} bytes of the server's memory per idle connection, {CONNECTIONS} open");
    assert!(each <= ALLOWED, "{each} bytes per idle connection");
    let start = Instant::now();
    assert_eq!(server.get("/hello.txt").status, 200);
    assert!(start.elapsed() < Duration::from_secs(1), "a newcomer is served at once");
    for client in idle.iter_mut().step_by(500) {
        client.assert_open("/hello.txt");
    }
    let descriptors = server.process().descriptors().expect("descriptors");
    assert!(descriptors >= CONNECTIONS as usize);
    drop(idle);
    eventually_within(Duration::from_secs(20), "all are let go", || {
        server.process().descriptors().expect("descriptors") < 200
    });
}

#[test]
fn beyond_the_limit_of_connections_there_is_503() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.connections(20).connections_per_client(1000);
    });
    // The readiness check's own connection may still count.
    eventually("all places are free", || server.get("/hello.txt").status == 200);
    let mut inside: Vec<Client> = (0..19).map(|_| server.connect()).collect();
    for client in &mut inside {
        client.assert_open("/hello.txt");
    }
    let mut refused = 0;
    for _ in 0..5 {
        let mut client = server.connect();
        // Told at once, or as soon as it asks.
        let _ = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
        let response = client.receive();
        if response.status == 200 {
            inside.push(client);
            continue;
        }
        assert_eq!(response.status, 503, "{response:?}");
        assert!(response.says_close());
        client.assert_closed();
        refused += 1;
    }
    assert!(refused >= 4, "{refused} of 5 refused");
    inside[0].assert_open("/hello.txt");
    drop(inside);
    eventually("places come back", || server.get("/hello.txt").status == 200);
}

#[test]
fn one_client_cannot_take_all_connections() {
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.connections(1000).connections_per_client(5);
    });
    let greedy: IpAddr = "127.0.0.2".parse().expect("an address");
    let modest: IpAddr = "127.0.0.3".parse().expect("an address");
    let connect = |from| Client::connect_from(from, server.address()).expect("connect");
    let mut inside: Vec<Client> = (0..5).map(|_| connect(greedy)).collect();
    for client in &mut inside {
        client.assert_open("/hello.txt");
    }
    let mut sixth = connect(greedy);
    let _ = sixth.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(sixth.receive().status, 503);
    sixth.assert_closed();
    connect(modest).assert_open("/hello.txt");
    inside.pop();
    eventually("the place comes back", || connect(greedy).get("/hello.txt").status == 200);
}

#[test]
fn unfinished_heads_cost_bounded_memory() {
    const CLIENTS: u64 = 100;
    let _alone = exclusive();
    let tree = small_site();
    let server = server(&tree, |settings| {
        settings.head_time(Duration::from_secs(60));
    });
    assert_eq!(server.get("/hello.txt").status, 200);
    let before = server.process().resident().expect("resident set");
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = server.connect();
        client.send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n");
        client.send(format!("X: {}\r\n", "x".repeat(990)).repeat(30));
        clients.push(client);
    }
    thread::sleep(Duration::from_millis(200));
    let grown = server.process().resident().expect("resident set").saturating_sub(before);
    figure!("{} bytes of the server's memory per unfinished head of 30 KiB", grown / CLIENTS);
    assert!(grown / CLIENTS <= 80 * 1024, "{grown} bytes for {CLIENTS} heads");
    for mut client in clients {
        client.send("\r\n");
        assert_eq!(client.receive().status, 200);
    }
}

#[test]
fn a_client_that_asks_and_never_reads_is_not_read_without_end() {
    let _alone = exclusive();
    let tree = small_site();
    tree.file("page.html", "x".repeat(30_000));
    let server = server(&tree, |_| ());
    assert_eq!(server.get("/page.html").status, 200);
    let before = server.process().resident().expect("resident set");
    let mut client = Client::connect_narrow(server.address(), 4096).expect("connect");
    client.set_patience(Duration::from_millis(300)).expect("time-out");
    let requests = "GET /page.html HTTP/1.1\r\nHost: h\r\n\r\n".repeat(1000);
    let mut blocked = false;
    for _ in 0..2000 {
        if client.try_send(&requests).is_err() {
            blocked = true;
            break;
        }
    }
    assert!(blocked, "78 MB of requests were taken, whose answers nobody reads");
    let grown = server.process().resident().expect("resident set").saturating_sub(before);
    figure!("{grown} bytes of the server's memory for a client that never reads");
    assert!(grown <= 4 << 20, "{grown} bytes");
    assert_eq!(server.get("/hello.txt").text(), "hello");
}

#[test]
fn targets_that_are_made_up_cost_no_memory() {
    const BATCH: usize = 50;
    let _alone = exclusive();
    let tree = small_site();
    let server = server(&tree, |_| ());
    let mut client = server.connect();
    let mut number = 0;
    let mut ask = |batches: usize| {
        for _ in 0..batches {
            let mut requests = String::new();
            for _ in 0..BATCH / 2 {
                number += 1;
                // Names nobody has, and a file under ever new queries.
                for target in [format!("/made/up/{number}"), format!("/hello.txt?{number}")] {
                    requests += &format!("GET {target} HTTP/1.1\r\nHost: h{number}\r\n\r\n");
                }
            }
            client.send(requests);
            for index in 0..BATCH {
                let expected = if index % 2 == 0 { 404 } else { 200 };
                assert_eq!(client.receive().status, expected);
            }
        }
    };
    ask(40);
    let before = server.process().resident().expect("resident set");
    ask(400);
    let grown = server.process().resident().expect("resident set").saturating_sub(before);
    figure!("{grown} bytes of the server's memory for 20000 made-up targets");
    assert!(grown < 2 << 20, "{grown} bytes");
}

#[test]
fn one_busy_pipeline_does_not_starve_the_others() {
    let tree = small_site();
    let server = server(&tree, |_| ());
    let mut busy = server.connect();
    let mut reader = 0;
    let requests = "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n".repeat(64);
    let end = Instant::now() + Duration::from_secs(1);
    let mut worst = Duration::ZERO;
    while Instant::now() < end {
        busy.send(&requests);
        let start = Instant::now();
        assert_eq!(server.get("/hello.txt").status, 200);
        worst = worst.max(start.elapsed());
        for _ in 0..64 {
            assert_eq!(busy.receive().text(), "hello");
            reader += 1;
        }
    }
    figure!("worst answer {worst:?} beside {reader} pipelined requests in a second");
    assert!(worst < Duration::from_millis(500), "{worst:?}");
}

#[test]
fn nonsense_from_many_threads_never_ends_the_server() {
    let tree = small_site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.head_time(Duration::from_millis(200)).body_time(Duration::from_millis(200));
        });
    });
    let seed = Random::seed_or(1);
    figure!("seed {seed}");
    thread::scope(|scope| {
        for number in 0..4 {
            let server = &server;
            scope.spawn(move || talk_nonsense(server, Random::seeded(seed + number)));
        }
    });
    assert_eq!(server.get("/hello.txt").text(), "hello");
}

/// For a second: random bytes, and requests with random damage.
fn talk_nonsense(server: &Server, mut random: Random) {
    let end = Instant::now() + Duration::from_secs(1);
    while Instant::now() < end {
        let mut client = server.connect();
        client.set_patience(Duration::from_millis(20)).expect("time-out");
        for _ in 0..1 + random.below(4) {
            let bytes = match random.below(3) {
                0 => {
                    let size = random.below(5000);
                    random.bytes(size)
                }
                _ => damaged(&mut random),
            };
            if client.try_send(bytes).is_err() {
                break;
            }
        }
        match client.try_receive(Asked::Body) {
            // Whatever it answers must be HTTP.
            Err(ReceiveError::Malformed(why)) if !why.is_empty() => {
                panic!("{why}");
            }
            _ if random.one_in(2) => drop(client.abort()),
            _ => {}
        }
    }
}

/// A good request with a few bytes changed, dropped or doubled.
fn damaged(random: &mut Random) -> Vec<u8> {
    let good: &[&str] = &[
        "GET /hello.txt HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1,2-3\r\nAccept-Encoding: gzip\r\n\r\n",
        "POST /hello.txt HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "GET /%2e%2e/..//%68?x HTTP/1.0\r\nConnection: keep-alive\r\nIf-None-Match: \"a\", W/\"b\"\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\n\r\nabcde",
    ];
    let mut bytes = random.pick(good).as_bytes().to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes[at] = random.number() as u8,
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, random.number() as u8),
            _ => bytes.insert(at, *random.pick(b"\r\n :;,\0/%")),
        }
    }
    bytes
}
