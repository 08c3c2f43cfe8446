//! Ends of all kinds, and the next processes after them.

use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use afpa_testkit::{Asked, Client, ReceiveError, Tree, eventually};
use afpa_tests::{bpf_home, bridge};
use rustix::process::Signal;

use crate::lab::{Lab, answers, is_from_kernel, stats, warm};

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

#[test]
fn nothing_is_left_after_term_and_quit() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let mut server = lab.server(&tree, |_| ());
        warm(&server, "/hello.txt");
        let mut client = server.connect();
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
        assert_eq!(lab.attached(), 4, "two programs on two interfaces");
        server.signal(signal);
        let status = server.wait(Duration::from_secs(20)).expect("it ends");
        assert!(status.success(), "{signal:?}: {status:?}\n{}", server.log());
        client.assert_closed();
        assert_eq!(lab.attached(), 0, "after {signal:?}");
        assert!(!server.log().contains("cannot be removed"), "{}", server.log());
    }
}

/// A process that stays root leaves AFPA's home in the BPF file system behind. The next process gives up its
/// rights, and has to remove its folder from that home.
#[test]
fn a_home_that_root_made_for_itself_is_opened_to_everybody() {
    let Some(lab) = Lab::new() else { return };
    if let Err(error) = bpf_home::make_home_for_root_alone() {
        afpa_testkit::skip!("no BPF file system: {error}");
    }
    let tree = site();
    let mut server = lab.server(&tree, |_| ());
    let home = std::fs::metadata(afpa_bpf::HOME).expect("it stays");
    assert_eq!(home.permissions().mode() & 0o7777, 0o1777);
    let left = || std::fs::read_dir(afpa_bpf::HOME).expect("listed").count();
    assert_eq!(left(), 1, "what connections need is kept");
    assert!(server.process().users().expect("users").iter().all(|user| *user != 0));
    server.signal(Signal::TERM);
    assert!(server.wait(Duration::from_secs(20)).expect("it ends").success());
    assert!(!server.log().contains("cannot be removed"), "{}", server.log());
    assert_eq!(left(), 0);
}

#[test]
fn quit_answers_in_user_mode_and_closes() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let mut server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let mut client = server.connect();
    assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
    // Half a request is in: it gets its answer, and then the connection ends.
    let received = || stats(&server)["connections"]["received_bytes"].as_u64().expect("a count");
    let before = received();
    client.send("GET /hello.txt HTTP/1.1\r\n");
    eventually("the half is with user mode", || received() > before);
    server.signal(Signal::QUIT);
    eventually("new connections are refused", || Client::connect(server.endpoint()).is_err());
    client.send("Host: h\r\n\r\n");
    assert_eq!(client.receive().text(), "hello");
    client.assert_closed();
    assert!(server.wait(Duration::from_secs(20)).expect("it ends").success());
}

#[test]
fn after_a_kill_no_wrong_byte_arrives_and_the_next_one_takes_over() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let mut server = lab.server(&tree, |_| ());
    for _ in 0..3 {
        warm(&server, "/hello.txt");
        let mut clients: Vec<Client> = (0..8).map(|_| server.connect()).collect();
        for client in &mut clients {
            assert!(is_from_kernel(&server, client, "/hello.txt"));
        }
        server.kill();
        for client in &mut clients {
            // The kernel ends connections of a process that is gone; an answer that comes before that is right.
            let sent = client.try_send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n").is_ok();
            match client.try_receive(Asked::Body) {
                Ok(response) => assert!(sent && response.text() == "hello", "{response:?}"),
                Err(ReceiveError::Closed) => {}
                Err(ReceiveError::Io(error)) => {
                    assert!(!error.kind().to_string().contains("time"), "{error}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(Client::connect(server.endpoint()).is_err(), "nobody listens any more");
        server.kill_and_restart();
        tree.replace("hello.txt", "hello");
        assert_eq!(server.get("/hello.txt").text(), "hello");
        assert_eq!(lab.attached(), 4, "taken over, not added to");
    }
    warm(&server, "/hello.txt");
}

/// Clients that ask all the time are refused, reset or misled at no moment, with sockets of the kernel's and without.
#[test]
fn an_upgrade_takes_the_fast_path_along() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    for connections in ["\"kernel\"", "\"everyone\""] {
        let mut server = lab.server(&tree, |launch| {
            launch.set(|settings| {
                settings.set("fast_path.connections", connections);
            });
        });
        warm(&server, "/hello.txt");
        let mut clients: Vec<Client> = (0..4).map(|_| server.connect()).collect();
        let mut idle = server.connect();
        assert_eq!(idle.get("/hello.txt").text(), "hello");
        let endpoint = server.endpoint().clone();
        let connect = || Client::connect(&endpoint).expect("no connection is refused");
        let mut ask = || {
            for client in &mut clients {
                let response = client.get("/hello.txt");
                assert_eq!(response.text(), "hello", "{connections}");
                if response.says_close() {
                    *client = connect();
                }
            }
            assert_eq!(connect().get("/hello.txt").text(), "hello", "{connections}");
        };
        ask();
        let first = u64::from(server.pid());
        server.signal(Signal::USR2);
        eventually("the next process serves", || {
            ask();
            let output = server.command(&["stats", "--json"]);
            let stats = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
            stats.and_then(|stats| stats["pid"].as_u64()).is_some_and(|pid| pid != first)
        });
        let next = stats(&server)["pid"].as_u64().expect("a number");
        let before = answers(&server);
        eventually("the kernel answers for it", || {
            ask();
            answers(&server) > before + 10
        });
        assert!(server.wait(Duration::from_secs(60)).is_some_and(|status| status.success()));
        for _ in 0..20 {
            ask();
        }
        assert_eq!(lab.attached(), 4, "taken over, not added to");
        assert!(!server.log().contains("the upgrade failed"), "{}", server.log());
        let next = rustix::process::Pid::from_raw(next as i32).expect("a process id");
        rustix::process::kill_process(next, Signal::TERM).expect("it is there");
        eventually("nothing is left", || lab.attached() == 0);
    }
}

/// To the workers such a connection looks as if no request had ever come.
#[test]
fn connections_that_only_the_kernel_answers_are_not_idle() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |launch| {
        launch.set(|settings| {
            settings.head_time(Duration::from_secs(1)).idle_time(Duration::from_secs(4));
            settings.set("fast_path.connections", "\"kernel\""); // user mode closes no others
        });
    });
    warm(&server, "/hello.txt");
    let mut client = server.connect();
    let mut silent = server.connect();
    let before = answers(&server);
    for _ in 0..28 {
        assert_eq!(client.get("/hello.txt").text(), "hello");
        thread::sleep(Duration::from_millis(250));
    }
    assert!(answers(&server) >= before + 28, "user mode saw it");
    silent.assert_closed();
    client.assert_closed();
}

/// The time for a head is that for the first one; behind an answer of the kernel it is the time for the next request.
#[test]
fn between_answers_of_the_kernel_a_connection_may_rest_for_the_idle_time() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |launch| {
        launch.set(|settings| {
            settings.head_time(Duration::from_secs(1)).idle_time(Duration::from_secs(60));
            settings.set("fast_path.connections", "\"kernel\""); // user mode closes no others
        });
    });
    warm(&server, "/hello.txt");
    let mut client = server.connect();
    let before = answers(&server);
    for _ in 0..3 {
        assert_eq!(client.get("/hello.txt").text(), "hello");
        thread::sleep(Duration::from_secs(3));
    }
    assert_eq!(client.get("/hello.txt").text(), "hello");
    assert_eq!(answers(&server), before + 4, "user mode saw it");
}

#[test]
fn a_process_that_stands_still_is_not_spoken_for() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let mut client = server.connect();
    assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
    server.signal(Signal::STOP);
    // Two seconds after the second of the last beat began.
    thread::sleep(Duration::from_millis(2100));
    client.set_patience(Duration::from_millis(300)).expect("time-out");
    client.send("GET /hello.txt HTTP/1.1\r\nHost: h\r\n\r\n");
    let silence = client.try_receive(Asked::Body);
    assert!(matches!(silence, Err(ReceiveError::TimedOut(_))), "{silence:?}");
    server.signal(Signal::CONT);
    client.set_patience(Duration::from_secs(10)).expect("time-out");
    assert_eq!(client.receive().text(), "hello", "user mode answers when it goes on");
    warm(&server, "/hello.txt");
}

#[test]
fn rights_are_given_up_and_the_kernel_is_fed_all_the_same() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |launch| {
        launch.set(|settings| {
            settings.set("site.index", "[\"index.html\"]");
        });
    });
    let process = server.process();
    assert!(process.users().expect("users").iter().all(|user| *user != 0));
    assert_eq!(process.capabilities().expect("capabilities"), 0);
    warm(&server, "/hello.txt");
    tree.replace("hello.txt", "changed");
    eventually("the change is seen", || server.get("/hello.txt").text() == "changed");
    warm(&server, "/hello.txt");
    // A reload attaches to the interfaces that the new addresses need, without any right.
    let before = answers(&server);
    server.signal(Signal::HUP);
    eventually("it reloads", || server.log().contains("reloaded"));
    warm(&server, "/hello.txt");
    assert!(answers(&server) > before);
    assert!(!server.log().contains("without the fast path"), "{}", server.log());
}

/// Without a signal, and after the rights were given up. Nothing is put on a port of the bridge: its packets
/// would be translated twice.
#[test]
fn interfaces_that_come_and_go_are_noticed() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let bed = lab.bed();
    let names = || stats(&server)["fast_path"]["interfaces"].clone();
    for _ in 0..2 {
        bridge::make(bed.server(), bed.client());
        eventually("programs are on the bridge", || bridge::programs(bed.server()).0 == 2);
        assert_eq!(bridge::programs(bed.server()), (2, 0));
        eventually("it is named", || names().to_string().contains(bridge::BRIDGE));
        let mut client = bridge::connect(bed.client(), crate::lab::PORT);
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
        assert_eq!(client.get("/missing").status, 404);
        assert!(is_from_kernel(&server, &mut client, "/hello.txt"));
        bridge::remove(bed.server());
        eventually("it is gone", || names() == serde_json::json!(["lo", "eth0"]));
    }
    warm(&server, "/hello.txt");
}

#[test]
fn two_with_one_address_do_not_get_in_each_others_way() {
    let Some(lab) = Lab::new() else { return };
    let tree = site();
    let server = lab.server(&tree, |_| ());
    warm(&server, "/hello.txt");
    let second = lab.server_on(crate::lab::PORT + 1, &tree, |launch| {
        launch.fast_path("on");
    });
    warm(&second, "/hello.txt");
    let mut clients = [server.connect(), second.connect()];
    for _ in 0..10 {
        for (client, server) in clients.iter_mut().zip([&server, &second]) {
            assert!(is_from_kernel(server, client, "/hello.txt"));
            assert_eq!(client.get("/missing").status, 404);
        }
    }
}
