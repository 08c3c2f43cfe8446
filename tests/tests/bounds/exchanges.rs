//! The memory that an exchange with a server can hold while one side sends and the other does not read.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use afpa_testkit::{
    Client, Endpoint, Server, Tree,
    exclusive::exclusive,
    held::{Growth, MIB},
};

const CONNECTIONS: usize = 100;

/// Both directions of an exchange, the head, and the bytes that have arrived behind it.
const EACH: u64 = 192 * 1024;

/// A server that does this with each connection, and keeps it open for as long as the other side does.
fn server_that(serve: impl Fn(&mut TcpStream) + Copy + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || serve(&mut stream));
        }
    });
    address
}

fn in_front_of(server: SocketAddr) -> Server {
    let server = Server::start("/var/empty-is-not-served", |launch| {
        launch.written(|endpoint| {
            format!(
                "workers = 1\n[timeouts]\nwrite = \"10m\"\nbody = \"10m\"\n\
                 [[server_group]]\nname = \"it\"\nservers = [\"{server}\"]\n\
                 [server_group.timeouts]\nfirst_byte = \"10m\"\nidle = \"10m\"\n\
                 [[site]]\nlisten = [\"{endpoint}\"]\nto = \"it\"\n"
            )
        });
    });
    server.settle();
    server
}

fn fill(server: &Server, what: &str, mut begin: impl FnMut(&mut Client)) {
    let before = server.held();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut client = Client::connect_narrow(server.address(), 4096).expect("connected");
        client.set_patience(Duration::from_millis(100)).expect("set");
        begin(&mut client);
        clients.push(client);
    }
    let bound = Growth {
        memory: CONNECTIONS as u64 * EACH + 4 * MIB,
        descriptors: 2 * CONNECTIONS + 16,
        threads: 4,
    };
    server.held().since(before).is_at_most(what, bound);
}

/// Sends until nobody takes any more.
fn pour(client: &mut Client, bytes: &[u8]) {
    for _ in 0..64 {
        if client.try_send(bytes).is_err() {
            return;
        }
    }
}

#[test]
fn content_that_the_server_does_not_read_stays_with_the_client() {
    let _alone = exclusive();
    // It reads the beginning of the head, and nothing more.
    let origin = server_that(|stream| {
        let _ = stream.read(&mut [0; 16]);
        thread::sleep(Duration::from_secs(120));
    });
    let server = in_front_of(origin);
    fill(&server, "content that nobody reads", |client| {
        client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
        pour(client, &[b'x'; 256 * 1024]);
    });
}

#[test]
fn requests_behind_one_that_waits_stay_with_the_client() {
    let _alone = exclusive();
    let origin = server_that(|stream| {
        let _ = stream.read(&mut [0; 16]);
        thread::sleep(Duration::from_secs(120));
    });
    let server = in_front_of(origin);
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "x".repeat(4000));
    fill(&server, "requests behind one that waits", |client| {
        pour(client, request.repeat(64).as_bytes());
    });
}

#[test]
fn a_response_that_the_client_does_not_read_stays_with_the_server() {
    let _alone = exclusive();
    let origin = server_that(|stream| {
        let _ = stream.read(&mut [0; 16]);
        let head =
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1000000000\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(&[b'x'; 64 * 1024]).is_ok() {}
    });
    let server = in_front_of(origin);
    fill(&server, "responses that nobody reads", |client| {
        client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut first = [0; 12];
        client.set_patience(Duration::from_secs(20)).expect("set");
        assert!(client.read_raw(&mut first).expect("an answer") > 0);
    });
}

/// The room of a core for content that is gathered before PHP is asked, in `afpa-proxy/src/pool/content.rs`.
const GATHERED: u64 = 64 * MIB;

/// Clients that each send this much, without an end.
const WITHOUT_END: usize = 120;
const PART: usize = 900 * 1024;

#[test]
fn content_that_is_gathered_for_php_is_bounded_by_one_sum() {
    let _alone = exclusive();
    // No process of PHP is asked before the content has come.
    let tree = Tree::new();
    tree.file("index.php", "");
    let root = tree.path().display();
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            format!(
                "workers = 1\n[timeouts]\nbody = \"10m\"\n\
                 [[site]]\nlisten = [\"{endpoint}\"]\nroot = \"{root}\"\n\
                 php = \"127.0.0.1:1\"\nfallback = \"/index.php\"\n"
            )
        });
    });
    server.settle();
    let before = server.held();
    let mut clients: Vec<_> = (0..WITHOUT_END).map(|_| without_end(server.endpoint())).collect();
    let refused = clients.iter_mut().filter_map(refusal).inspect(|status| assert_eq!(*status, 503));
    let refused = refused.count();
    assert!((WITHOUT_END / 4..WITHOUT_END).contains(&refused), "{refused} were refused");
    let bound = Growth {
        memory: GATHERED + WITHOUT_END as u64 * 64 * 1024 + 4 * MIB,
        descriptors: WITHOUT_END + 16,
        threads: 4,
    };
    server.held().since(before).is_at_most("content that is gathered", bound);
    // The clients that go make room.
    clients.clear();
    let begun = Instant::now();
    while refusal(&mut without_end(server.endpoint())).is_some() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the room is never free again");
    }
}

/// A client that has sent some content in chunks, if the server let it.
fn without_end(server: &Endpoint) -> Client {
    let mut client = Client::connect(server).expect("connected");
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = [b"1000\r\n", &[b'x'; 4096][..], b"\r\n"].concat();
    for _ in 0..PART / 4096 {
        if client.try_send(&chunk).is_err() {
            break;
        }
    }
    client
}

/// The status of an answer that has come already.
fn refusal(client: &mut Client) -> Option<u16> {
    client.set_patience(Duration::from_millis(50)).expect("set");
    let mut head = [0; 12];
    let n = client.read_raw(&mut head).ok().filter(|&n| n == head.len())?;
    std::str::from_utf8(&head[..n]).ok()?.get(9..12)?.parse().ok()
}
