//! No client gets more than a share: of the connections, of the worker's time.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

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
        // The refusal comes at once, or as soon as the client asks.
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
    let requests = "GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n".repeat(64);
    let served = AtomicBool::new(false);
    // The pipeline goes on until the other client has its answers, or until it has starved for long enough.
    const OTHERS: usize = 50;
    const LONG_ENOUGH: usize = OTHERS * 64;
    let pipelines = thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let mut busy = server.connect();
            (0..LONG_ENOUGH)
                .take_while(|_| {
                    busy.send(&requests);
                    (0..64).for_each(|_| assert_eq!(busy.receive().text(), "hello"));
                    !served.load(Ordering::Relaxed)
                })
                .count()
        });
        (0..OTHERS).for_each(|_| assert_eq!(server.get("/hello.txt").status, 200));
        served.store(true, Ordering::Relaxed);
        busy.join().expect("the busy client")
    });
    figure!("{pipelines} pipelines of 64 were answered beside {OTHERS} single requests");
    assert!(pipelines < LONG_ENOUGH, "the others were answered when the pipeline had ended");
}
