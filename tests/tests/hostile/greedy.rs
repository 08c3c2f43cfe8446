//! Nobody gets more than a share: of the connections, of the worker's time.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use afpa_testkit::{Client, eventually, figure};

use crate::{server, small_site};

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
