//! `client_share`, and the least rate of a client: the part of a server's resources that one client can hold (docs/rules/clients.md).

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use afpa_h2::frame::{kind, setting};
use afpa_testkit::held::{Growth, MIB};
use afpa_testkit::{Client, Server, Tree, eventually, eventually_within};
use afpa_tests::h2::{H2Client, request};
use afpa_tests::proxy::{Raw, answer, read_content, read_head};

const STREAMS: usize = 128;

/// A server whose answers are long, and not kept.
fn long() -> Raw {
    Raw::start(|mut stream| {
        while read_head(&mut stream).is_some() {
            let head =
                "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1000000\r\n\r\n";
            let content = [b'x'; 1_000_000];
            if stream.write_all(head.as_bytes()).is_err() || stream.write_all(&content).is_err() {
                return;
            }
        }
    })
}

fn proxy(to: &str, above: &str, group: &str, site: &str) -> Server {
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "workers = 1\n[http2]\ncleartext = true\n{above}\n[[server_group]]\nname = \"app\"\n\
                 servers = [{to}]\n{group}\n[[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\n{site}\n"
            )
        });
    })
}

/// A client that opens many streams with such windows, and opens none of them further.
fn stingy(server: &Server, window: u32, streams: usize) -> (H2Client, Vec<u32>) {
    let settings = [(setting::INITIAL_WINDOW_SIZE, window)];
    let mut client = H2Client::connect_with(server.address(), &settings);
    client.opens_windows = false;
    let ids = (0..streams).map(|at| client.request(&request("GET", &format!("/{at}")), b""));
    let ids = ids.collect();
    (client, ids)
}

fn in_flight(server: &Server) -> u64 {
    let output = server.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("statistics");
    stats["servers"][0]["in_flight"].as_u64().expect("a count")
}

#[test]
fn a_stream_whose_window_is_closed_holds_little() {
    let origin = long();
    let server = proxy(&format!("\"{}\"", origin.to()), "", "", "");
    assert_eq!(server.get("/").body.len(), 1_000_000);
    server.settle();
    for window in [0, 300, 60_000] {
        let before = server.held();
        let (mut client, ids) = stingy(&server, window, STREAMS);
        if window > 0 {
            let all = (window as usize * STREAMS).min(65_535);
            client.until("what the windows allow", |client| {
                ids.iter().map(|id| client.so_far(*id).body.len()).sum::<usize>() >= all
            });
        }
        eventually("all are asked for", || in_flight(&server) == STREAMS as u64);
        client.ping();
        // For each stream: its share of kept content, the bytes read behind it, the request, and the tasks. For all
        // streams together: the content that they may keep.
        let memory = STREAMS as u64 * 24 * 1024 + 2 * MIB;
        let bound = Growth { memory, descriptors: STREAMS + 8, threads: 2 };
        server.held().since(before).is_at_most(&format!("windows of {window}"), bound);
        drop(client);
        eventually("they are let go", || in_flight(&server) == 0);
    }
}

/// Pages of a file are held once, those of a server for each response, as far as there is room for them.
#[test]
fn error_pages_that_nobody_reads_are_bounded() {
    let page = Raw::start(|mut stream| {
        let page = "s".repeat(60_000);
        while read_head(&mut stream).is_some() && answer(&mut stream, 200, &page) {}
    });
    let tree = Tree::new();
    tree.file("page", "p".repeat(64_000));
    let (root, to) = (tree.path().display(), page.to());
    let server = Server::start(tree.path(), |launch| {
        launch.written(|listen| {
            format!(
                "workers = 1\n[http2]\ncleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n\
                 root = \"{root}\"\n[[site.errors]]\nfile = \"{root}/page\"\n\
                 [[site.path]]\nprefix = \"/served/\"\n\
                 [[site.path.errors]]\nto = \"{to}\"\npath = \"/\"\n"
            )
        });
    });
    let lengths = || ["/0", "/served/0"].map(|target| server.get(target).body.len());
    assert_eq!(lengths(), [64_000, 60_000]);
    server.settle();
    for (prefix, clients, all) in [("/", 2, 0), ("/served/", 12, 64 * MIB)] {
        let before = server.held();
        let clients: Vec<_> = (0..clients).map(|_| answered(&server, prefix)).collect();
        let each = STREAMS as u64 * 24 * 1024 + 2 * MIB;
        let memory = all + clients.len() as u64 * each;
        // Connections to the server of the pages are kept, and helpers look for the files.
        let bound = Growth { memory, descriptors: 16 + STREAMS + clients.len(), threads: 16 };
        server.held().since(before).is_at_most(&format!("error pages at {prefix}"), bound);
        let length = server.get(&format!("{prefix}x")).body.len();
        assert!(if all > 0 { length < 1000 } else { length == 64_000 }, "{length}");
    }
    eventually("there is room again", || lengths() == [64_000, 60_000]);
}

/// A client that has got all heads, and takes no content.
fn answered(server: &Server, prefix: &str) -> H2Client {
    let mut client = H2Client::connect_with(server.address(), &[(setting::INITIAL_WINDOW_SIZE, 0)]);
    client.opens_windows = false;
    let target = |at| format!("{prefix}{at}");
    let ids: Vec<_> =
        (0..STREAMS).map(|at| client.request(&request("GET", &target(at)), b"")).collect();
    client.until("all are answered", |client| {
        ids.iter().all(|id| !client.so_far(*id).fields.is_empty())
    });
    client
}

#[test]
fn one_client_leaves_room_at_a_server_and_in_its_queue() {
    let origin = long();
    let to = format!("{{ to = \"{}\", max_connections = 64 }}", origin.to());
    let server = proxy(&to, "", "[server_group.queue]\nlength = 8\ntimeout = \"60s\"\n", "");
    let (mut client, ids) = stingy(&server, 300, STREAMS);
    client.until("the last ones are refused", |client| {
        ids.iter().filter(|id| !client.so_far(**id).fields.is_empty()).count() == STREAMS - 6
    });
    let status = |status: &str| {
        let is = |id: &&u32| client.so_far(**id).fields.first().is_some_and(|(_, is)| is == status);
        ids.iter().filter(is).count()
    };
    assert_eq!((status("200"), status("429")), (48, STREAMS - 48 - 6), "and 6 wait");
    for last in 2..6 {
        let other = IpAddr::V4(Ipv4Addr::new(127, 0, 9, last));
        let mut other = Client::connect_from(other, server.address()).expect("connected");
        assert_eq!(other.get("/other").body.len(), 1_000_000, "client {last}");
    }
}

#[test]
fn a_router_in_front_is_no_client() {
    let origin = long();
    let to = format!("{{ to = \"{}\", max_connections = 64 }}", origin.to());
    for (above, site) in [
        ("[police]\nallow = [\"127.0.0.0/8\"]\n", ""),
        ("", "forwarded_from = [\"127.0.0.0/8\"]\n"),
    ] {
        let server = proxy(&to, above, "", site);
        let (mut client, ids) = stingy(&server, 300, 64);
        client.until("all are answered", |client| {
            ids.iter().all(|id| client.so_far(*id).body.len() == 300)
        });
    }
}

#[test]
fn windows_that_hardly_open_hold_nothing_for_long() {
    let origin = long();
    let above = "[internals]\nleast_rate = \"10KiB\"\n[timeouts]\nwrite = \"1s\"\n";
    let server = proxy(&format!("\"{}\"", origin.to()), above, "", "");
    let (mut client, ids) = stingy(&server, 300, 2);
    // Each byte used to give a stream the whole time-out anew.
    let mut windows = 0;
    eventually_within(Duration::from_secs(60), "the streams are reset", || {
        for id in &ids {
            client.frame(kind::WINDOW_UPDATE, 0, *id, &10_u32.to_be_bytes());
        }
        windows += 1;
        client.ping();
        // A flood of these frames would end the connection, and the bytes come often enough as it is.
        std::thread::sleep(Duration::from_millis(50));
        ids.iter().all(|id| client.so_far(*id).reset == Some(8))
    });
    assert!(windows > 1, "it was not silent");
    eventually("the server is told", || in_flight(&server) == 0);
}

#[test]
fn an_upload_that_hardly_comes_holds_nothing_for_long() {
    let origin = Raw::start(|mut stream| {
        while let Some(head) = read_head(&mut stream) {
            if read_content(&mut stream, &head).is_none() || !answer(&mut stream, 200, "ok") {
                return;
            }
        }
    });
    let above = "[internals]\nleast_rate = \"10KiB\"\n[timeouts]\nbody = \"1s\"\n";
    let server = proxy(&format!("\"{}\"", origin.to()), above, "", "");
    let mut client = server.connect();
    let mut sender = client.tcp().try_clone().expect("another");
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n");
    let sending = std::thread::spawn(move || {
        // Each byte used to give the client the whole time-out anew.
        let sent = (0..100_000).take_while(|_| {
            std::thread::sleep(Duration::from_millis(20));
            sender.write_all(b"x").is_ok()
        });
        sent.count()
    });
    assert_eq!(client.receive().status, 408);
    drop(client);
    let sent = sending.join().expect("no panic");
    assert!((2..100_000).contains(&sent), "{sent} bytes");
    eventually("the server is told", || in_flight(&server) == 0);
}
