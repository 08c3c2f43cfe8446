//! Connections whose worker waits for completion: how they stay in the ring, and when they leave it.

use afpa_h2::frame::kind;
use afpa_testkit::{Client, Launch, Server, eventually, skip};
use afpa_tests::h2::{H2Client, request};
use afpa_tests::tls::{Authority, Plan, TlsServer, Way};
use serde_json::Value;

use crate::{LARGE, server_with, site};

/// The server's statistics on how it waits.
fn all_waiting(server: &Server) -> Value {
    let stats = Client::connect(&server.control()).expect("the control socket").get("/stats");
    let mut stats: Value = serde_json::from_slice(&stats.body).expect("JSON");
    stats["waiting"].take()
}

/// A count of those.
fn waiting(server: &Server, pointer: &str) -> u64 {
    let waiting = all_waiting(server);
    let count = waiting.pointer(pointer).and_then(Value::as_u64);
    count.unwrap_or_else(|| panic!("{pointer} in {waiting}"))
}

fn in_ring(server: &Server) -> u64 {
    waiting(server, "/workers/0/by_completion")
}

fn left(server: &Server, why: &str) -> u64 {
    waiting(server, &format!("/left_ring/{why}"))
}

/// A server that waits by completion, without TLS.
macro_rules! completing {
    ($tree:expr) => {
        match server_with($tree, |settings| {
            settings.set("engine.io", "\"completion\"");
        }) {
            server if is_refused(&server) => skip!("the system refuses io_uring"),
            server => server,
        }
    };
}

fn is_refused(server: &Server) -> bool {
    server.summary("waiting").contains("refuses io_uring")
}

/// All of them ask at the same time, for several things each: answers and requests cross.
fn all_are_served(clients: &mut [H2Client]) {
    for _ in 0..3 {
        let asked: Vec<[u32; 3]> = clients
            .iter_mut()
            .map(|client| {
                ["/hello.txt", "/none", "/hello.txt"]
                    .map(|target| client.request(&request("GET", target), b""))
            })
            .collect();
        for (client, ids) in clients.iter_mut().zip(asked) {
            assert_eq!(ids.map(|id| client.response(id).status), [200, 404, 200]);
            client.ping();
        }
    }
}

#[test]
fn connections_without_tls_stay_in_the_ring() {
    let tree = site();
    let server = completing!(&tree);
    let mut clients: Vec<H2Client> = (0..20).map(|_| H2Client::connect(&server)).collect();
    all_are_served(&mut clients);
    assert_eq!(in_ring(&server), 20, "{}", all_waiting(&server));
    assert_eq!(waiting(&server, "/entered_ring"), 20, "once each");
    drop(clients);
    eventually("they have ended there", || in_ring(&server) == 0);
}

#[test]
fn connections_of_tls_stay_in_the_ring() {
    let (tree, authority) = (site(), Authority::new());
    let launch = |launch: &mut Launch| {
        launch.arg("--workers").arg("1").arg("--io").arg("completion");
    };
    let plan = Plan { launch: Box::new(launch), ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    if is_refused(&server.server) {
        skip!("the system refuses io_uring");
    }
    let way = Way::by_h2(&authority, &server);
    let connect = |_| H2Client::connect_with(way.address(), &[]);
    let mut clients: Vec<H2Client> = (0..20).map(connect).collect();
    all_are_served(&mut clients);
    assert_eq!(in_ring(&server.server), 20, "{}", all_waiting(&server.server));
    assert_eq!(waiting(&server.server, "/entered_ring"), 20, "once each");
    drop(clients);
    eventually("they have ended there", || in_ring(&server.server) == 0);
}

/// The client reads nothing, and the responses are longer than a socket takes. Their rest is sent by readiness, and in
/// order.
#[test]
fn a_client_that_is_slow_leaves_the_ring_and_loses_nothing() {
    let tree = site();
    let server = completing!(&tree);
    let mut client = H2Client::connect(&server);
    client.open_wide();
    assert_eq!(client.get("/hello.txt").text(), "hello");
    let content = afpa_testkit::tree::patterned(LARGE);
    let asked = [0; 8].map(|_| client.request(&request("GET", "/large.bin"), b""));
    eventually("the client is waited for", || left(&server, "slow_client") == 1);
    // Requests are taken meanwhile.
    let small = client.request(&request("GET", "/hello.txt"), b"");
    for id in asked {
        assert!(client.response(id).body == content, "the bytes of the file");
    }
    assert_eq!(client.response(small).text(), "hello");
    assert_eq!((in_ring(&server), waiting(&server, "/entered_ring")), (0, 1), "it does not return");
}

/// While an answer is handed over, more is asked for, and all of the output that is made meanwhile follows it.
#[test]
fn what_is_made_while_an_answer_is_handed_over_follows_it() {
    const AT_ONCE: usize = 50;
    let tree = site();
    let server = completing!(&tree);
    let mut client = H2Client::connect(&server);
    client.get("/hello.txt");
    for _ in 0..20 {
        let mut ids = Vec::new();
        for at in 0..AT_ONCE {
            let target = if at % 5 == 0 { "/medium.bin" } else { "/hello.txt" };
            ids.push((client.request(&request("GET", target), b""), at % 5 == 0));
            if at % 10 == 0 {
                client.frame(kind::PING, 0, 0, b"are you?");
            }
        }
        for (id, is_long) in ids {
            let length = if is_long { 100_000 } else { 5 };
            assert_eq!(client.response(id).body.len(), length);
        }
    }
    client.ping();
    assert_eq!(client.frames.get(&kind::PING), Some(&(20 * AT_ONCE / 10 + 1)));
}
