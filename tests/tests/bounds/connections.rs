//! `[limits] connections`: the resources that one connection can hold.

use std::time::Duration;

use afpa_testkit::{
    Client, Server, Tree, eventually,
    exclusive::exclusive,
    held::{Growth, MIB},
    limits::raise_open_files,
    skip,
};

/// Each holds a file that nobody else asks for and that the cache has ejected, beside its socket.
#[test]
fn a_connection_holds_two_descriptors_at_most() {
    const CONNECTIONS: usize = 600;
    /// More than the kernel takes for a client that does not read.
    const LENGTH: u64 = 64 << 20;
    let _alone = exclusive();
    if let Err(why) = raise_open_files(4 * CONNECTIONS as u64) {
        skip!("{why}");
    }
    let tree = Tree::new();
    for number in 0..CONNECTIONS {
        let file = std::fs::File::create(tree.at(format!("{number}.bin"))).expect("created");
        file.set_len(LENGTH).expect("a file of nothing");
    }
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").set(|settings| {
            settings.connections(CONNECTIONS).connections_per_client(CONNECTIONS);
            settings.write_time(Duration::from_secs(600)).set("cache.open_files", 16);
        });
    });
    server.settle();
    let before = server.held();
    let mut readers = Vec::new();
    for number in 0..CONNECTIONS - 8 {
        let mut reader = Client::connect_narrow(server.address(), 4096).expect("connected");
        reader.send(format!("GET /{number}.bin HTTP/1.1\r\nHost: h\r\n\r\n"));
        let mut first = [0; 12];
        assert!(reader.read_raw(&mut first).expect("an answer") > 0);
        assert_eq!(&first, b"HTTP/1.1 200", "connection {number}");
        readers.push(reader);
    }
    let bound = Growth { memory: 64 * MIB, descriptors: 2 * CONNECTIONS + 16 + 16, threads: 16 };
    // Poll: `before` may count descriptors that the process held only for a moment.
    eventually("they hold their files", || {
        server.held().since(before).descriptors >= 2 * (CONNECTIONS - 8) - 8
    });
    let grown = server.held().since(before);
    grown.is_at_most("connections that each hold a file", bound);
    drop(readers);
    eventually("they are let go", || server.held().descriptors < before.descriptors + 64);
    assert_eq!(server.get("/hello.txt").text(), "hello");
}

/// Memory of a peak is given back when its connections are closed.
#[test]
fn memory_of_a_peak_of_connections_comes_back() {
    const CONNECTIONS: usize = 1500;
    const HEAD: usize = 30_000;
    let _alone = exclusive();
    if let Err(why) = raise_open_files(4 * CONNECTIONS as u64) {
        skip!("{why}");
    }
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").set(|settings| {
            settings.connections(2 * CONNECTIONS).connections_per_client(2 * CONNECTIONS);
            settings.set("timeouts.head", "\"10m\"");
        });
    });
    server.settle();
    assert_eq!(server.get("/hello.txt").text(), "hello");
    let before = server.held();
    let half = format!("GET /hello.txt HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(HEAD));
    let mut open: Vec<Client> = (0..CONNECTIONS).map(|_| server.connect()).collect();
    open.iter_mut().for_each(|client| client.send(&half));
    let expected = (CONNECTIONS * HEAD) as u64;
    eventually("the heads have come", || server.held().since(before).memory > expected);
    // One of them stays, and with it the end of what they took.
    let mut last = open.pop().expect("a client");
    drop(open);
    eventually("the memory is given back", || server.held().since(before).memory < 6 * MIB);
    last.send("\r\n\r\n");
    assert_eq!(last.receive().text(), "hello");
}
