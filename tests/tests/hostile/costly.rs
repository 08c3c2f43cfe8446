//! Unfinished requests and unread responses cost little memory.

use std::{
    thread,
    time::{Duration, Instant},
};

use afpa_testkit::{
    Client, Server, Tree, eventually, eventually_within, exclusive::exclusive, figure,
    limits::raise_open_files, skip, tree::patterned,
};

use crate::{server, small_site};

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
        // Each connection has been used once: the buffers of its request must have been given back.
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
