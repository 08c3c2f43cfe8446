//! `client_share`: what one client can hold of what servers have for all (docs/rules/clients.md).

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use afpa_h2::frame::setting;
use afpa_testkit::{Client, Server};
use afpa_tests::h2::{H2Client, request};
use afpa_tests::proxy::{Raw, read_head};

const STREAMS: usize = 128;

/// A server whose answers are long, and not kept.
fn long() -> Raw {
    Raw::start(|mut stream| {
        while read_head(&mut stream).is_some() {
            let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 1000000\r\n\r\n";
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
    for (above, site) in
        [("[police]\nallow = [\"127.0.0.0/8\"]\n", ""), ("", "forwarded_from = [\"127.0.0.0/8\"]\n")]
    {
        let server = proxy(&to, above, "", site);
        let (mut client, ids) = stingy(&server, 300, 64);
        client.until("all are answered", |client| {
            ids.iter().all(|id| client.so_far(*id).body.len() == 300)
        });
    }
}
