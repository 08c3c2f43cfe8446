//! How connections are waited for: by readiness or by completion, and changes between the two.

use std::{fs, time::Duration};

use afpa_testkit::{Client, Launch, Server, Tree, eventually, skip, tree::patterned};
use rustix::process::Signal;
use serde_json::Value;

const LARGE: usize = 300_000;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree.file("page.txt", patterned(12_000));
    tree.file("large.bin", patterned(LARGE));
    tree
}

/// A server of one worker; `None` where the system forbids io_uring.
fn completing(tree: &Tree, configure: impl FnOnce(&mut Launch)) -> Option<Server> {
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1");
        configure(launch);
    });
    (!server.summary("waiting").contains("refuses io_uring")).then_some(server)
}

macro_rules! completing {
    ($tree:expr, $configure:expr) => {
        match completing($tree, $configure) {
            Some(server) => server,
            None => skip!("the system refuses io_uring"),
        }
    };
}

fn always(launch: &mut Launch) {
    launch.arg("--io").arg("completion");
}

/// The server's statistics on how it waits.
fn waiting(server: &Server) -> Value {
    let stats = Client::connect(&server.control()).expect("the control socket").get("/stats");
    let stats: Value = serde_json::from_slice(&stats.body).expect("JSON");
    stats["waiting"].clone()
}

fn by_completion(server: &Server) -> u64 {
    waiting(server)["workers"][0]["by_completion"].as_u64().expect("a count")
}

fn left(server: &Server, why: &str) -> u64 {
    waiting(server)["left_ring"][why].as_u64().expect("a count")
}

fn strategy(server: &Server) -> String {
    waiting(server)["workers"][0]["strategy"].as_str().expect("a name").to_owned()
}

fn changes(server: &Server, why: &str) -> u64 {
    waiting(server)["strategy_changes"][why].as_u64().expect("a count")
}

fn is_answered(client: &mut Client) {
    assert_eq!(client.get("/hello.txt").body, b"hello");
}

#[test]
fn where_io_uring_is_forbidden_readiness_does_everything_and_the_start_says_so() {
    let tree = site();
    for io in ["auto", "completion"] {
        let server = Server::start(tree.path(), |launch| {
            launch.arg("--workers").arg("1").arg("--io").arg(io).without_io_uring();
        });
        let said = server.summary("waiting");
        assert!(said.contains("by epoll, because the system refuses io_uring"), "{said}");
        let mut client = server.connect();
        for _ in 0..3 {
            is_answered(&mut client);
        }
        assert_eq!(client.get("/large.bin").body, patterned(LARGE));
        assert_eq!((strategy(&server).as_str(), by_completion(&server)), ("readiness", 0));
    }
}

#[test]
fn readiness_makes_no_ring_and_a_reload_cannot_ask_for_one() {
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("engine.io", "\"readiness\"");
        });
    });
    let rings = || {
        let links = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("its descriptors");
        let links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.filter(|link| link.to_string_lossy().contains("io_uring")).count()
    };
    assert_eq!(rings(), 0);
    reload(&server, "readiness", "completion");
    eventually("it says when", || server.log().contains("[engine] io takes effect at the next"));
    is_answered(&mut server.connect());
    assert_eq!(rings(), 0);
}

/// Changes the setting in the file, and waits until the server has it.
fn reload(server: &Server, from: &str, to: &str) {
    let file = server.configuration();
    let text = fs::read_to_string(&file).expect("the configuration");
    let line = |value: &str| format!("engine.io = \"{value}\"");
    let changed = text.replace(&line(from), &line(to));
    assert_ne!(text, changed);
    fs::write(&file, changed).expect("written");
    let count = || server.log().matches("reloaded").count();
    let before = count();
    server.signal(Signal::HUP);
    eventually("it is reloaded", || count() > before);
}

#[test]
fn a_reload_changes_how_connections_wait_and_drops_none() {
    let tree = site();
    let server = completing!(&tree, |launch: &mut Launch| {
        launch.set(|settings| {
            settings.set("engine.io", "\"completion\"");
        });
    });
    let mut clients: Vec<Client> = (0..10).map(|_| server.connect()).collect();
    let mut all_ask = || {
        for client in &mut clients {
            is_answered(client);
            is_answered(client);
        }
    };
    all_ask();
    eventually("all are in the ring", || by_completion(&server) == 10);
    reload(&server, "completion", "readiness");
    all_ask();
    eventually("all have left it", || by_completion(&server) == 0);
    assert_eq!(left(&server, "strategy"), 10);
    reload(&server, "readiness", "completion");
    all_ask();
    eventually("all are back", || by_completion(&server) == 10);
}

#[test]
fn a_long_answer_ends_completion_for_its_connection_only_and_for_some_time() {
    let tree = site();
    let server = completing!(&tree, always);
    let (mut one, mut other) = (server.connect(), server.connect());
    for client in [&mut one, &mut other] {
        is_answered(client);
        is_answered(client);
    }
    eventually("both are in the ring", || by_completion(&server) == 2);
    assert_eq!(one.get("/large.bin").body, patterned(LARGE));
    assert_eq!((by_completion(&server), left(&server, "long_answer")), (1, 1));
    for _ in 0..3 {
        is_answered(&mut one);
        is_answered(&mut other);
        assert_eq!(one.get("/large.bin").body, patterned(LARGE));
    }
    assert_eq!((by_completion(&server), left(&server, "long_answer")), (1, 1));
    (0..10).for_each(|_| is_answered(&mut one));
    assert_eq!(by_completion(&server), 2, "without long answers it comes back");
    drop((one, other));
    eventually("both are gone", || by_completion(&server) == 0);
}

#[test]
fn a_client_that_reads_slowly_gets_every_byte_in_its_order() {
    const REQUESTS: usize = 2000;
    let tree = site();
    let server = completing!(&tree, always);
    let mut client = Client::connect_narrow(server.address(), 4096).expect("connect");
    is_answered(&mut client);
    is_answered(&mut client);
    let mut writer = Client::of(client.tcp().try_clone().expect("a descriptor"));
    let asking = std::thread::spawn(move || {
        writer.send("GET /page.txt HTTP/1.1\r\nHost: h\r\n\r\n".repeat(REQUESTS));
    });
    // The client does not read, and its responses are longer than may wait in the ring.
    eventually("it has left", || left(&server, "slow_client") + left(&server, "held_back") > 0);
    for _ in 0..REQUESTS {
        assert_eq!(client.receive().body, patterned(12_000));
    }
    asking.join().expect("all was asked for");
    is_answered(&mut client);
}

#[test]
fn a_worker_changes_with_its_load_and_drops_no_connection() {
    let tree = site();
    let server = completing!(&tree, |launch: &mut Launch| {
        launch.arg("--io").arg("auto");
    });
    assert_eq!(strategy(&server), "readiness");
    let mut clients: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    eventually("it takes completion for many requests at a time", || {
        for _ in 0..20 {
            // All of them are there when the server looks.
            server.signal(Signal::STOP);
            for client in &mut clients {
                client.send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
            }
            server.signal(Signal::CONT);
            clients.iter_mut().for_each(|client| assert_eq!(client.receive().body, b"hello"));
        }
        strategy(&server) == "completion"
    });
    assert_eq!(changes(&server, "busy_kept"), 1);
    let all_ask_twice = |clients: &mut [Client]| {
        clients.iter_mut().for_each(is_answered);
        clients.iter_mut().for_each(is_answered);
    };
    all_ask_twice(&mut clients);
    let entered = waiting(&server)["entered_ring"].as_u64().expect("a count");
    assert!(entered >= 40, "{entered}");
    eventually("it takes readiness for one request at a time", || {
        (0..1000).for_each(|_| is_answered(&mut clients[0]));
        strategy(&server) == "readiness"
    });
    assert_eq!(changes(&server, "one_at_a_time"), 1);
    all_ask_twice(&mut clients);
    eventually("all have left the ring", || by_completion(&server) == 0);
    all_ask_twice(&mut clients);
}

#[test]
fn time_outs_hold_for_connections_in_the_ring() {
    let tree = site();
    let server = completing!(&tree, |launch: &mut Launch| {
        always(launch);
        launch.set(|settings| {
            settings.idle_time(Duration::from_millis(700)).head_time(Duration::from_millis(400));
        });
    });
    let (mut idle, mut late) = (server.connect(), server.connect());
    for client in [&mut idle, &mut late] {
        is_answered(client);
        is_answered(client);
    }
    late.send("GET /hello.txt HT");
    assert_eq!(late.receive().status, 408);
    late.assert_closed();
    idle.assert_closed();
    eventually("nothing is left in the ring", || by_completion(&server) == 0);
    assert_eq!(waiting(&server)["entered_ring"], 2);
}

#[test]
fn a_stop_ends_what_waits_in_the_ring() {
    let tree = site();
    for signal in [Signal::TERM, Signal::QUIT] {
        let mut server = completing!(&tree, always);
        let mut clients: Vec<Client> = (0..10).map(|_| server.connect()).collect();
        clients.iter_mut().for_each(is_answered);
        clients.iter_mut().for_each(is_answered);
        assert_eq!(by_completion(&server), 10);
        server.signal(signal);
        clients.iter_mut().for_each(Client::assert_closed);
        let status = server.wait(Duration::from_secs(5)).expect("it ends");
        assert!(status.success(), "{status:?}");
    }
}

/// However a connection ends, it leaves neither a descriptor nor a place in the ring behind.
#[test]
fn many_connections_leave_nothing_behind() {
    let tree = site();
    let server = completing!(&tree, always);
    let descriptors = || server.process().descriptors().expect("its descriptors");
    is_answered(&mut server.connect());
    eventually("it is at rest", || by_completion(&server) == 0);
    server.settle();
    let before = descriptors();
    for round in 0..2000 {
        let mut client = server.connect();
        is_answered(&mut client);
        match round % 4 {
            0 => drop(client),
            1 => client.abort().expect("a reset"),
            2 => {
                is_answered(&mut client);
                client.send("GET /hello.txt HT");
            }
            _ => {
                client.send("GET /page.txt HTTP/1.1\r\nHost: h\r\n\r\n".repeat(20));
            }
        }
    }
    eventually("all are gone", || by_completion(&server) == 0 && descriptors() <= before);
    assert!(waiting(&server)["entered_ring"].as_u64().expect("a count") > 1000);
    assert_eq!(left(&server, "refused"), 0, "no buffer is lost");
}
