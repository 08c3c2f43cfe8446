//! The next process starts before the one before it has ended: each has its own files and addresses.

use std::time::Duration;

use afpa_testkit::{Client, Server, Tree, eventually, tree::patterned};
use rustix::process::Signal;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree.file("large.bin", patterned(20_000_000));
    tree
}

#[test]
fn a_restart_that_overlaps_leaves_the_new_process_its_control_socket_and_its_metrics() {
    let tree = site();
    let run = Tree::new();
    let mut old = Server::start(tree.path(), |launch| {
        launch.control_at(run.at("control.sock")).admin();
    });
    let mut download = Client::connect_narrow(old.address(), 4096).expect("connect");
    download.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut first = [0; 1000];
    download.read_raw(&mut first).expect("the first bytes");

    old.signal(Signal::QUIT);
    let metrics = old.admin().to_string();
    eventually("the addresses are free", || Client::connect(&old.admin()).is_err());
    eventually("the control socket is free", || Client::connect(&old.control()).is_err());
    let new = Server::start(tree.path(), |launch| {
        launch.control_at(run.at("control.sock")).arg("--admin").arg(&metrics);
    });
    assert!(old.is_running(), "the download is not over");
    download.read_to_close().expect("the rest of the download");
    assert!(old.wait(Duration::from_secs(30)).expect("the old one ends").success());

    let output = new.command(&["stats", "--json"]);
    assert!(output.status.success(), "{output:?}");
    let stats: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(stats["pid"], new.pid());
    assert_eq!(Client::connect(&old.admin()).expect("connect").get("/health").status, 200);
}

/// Somebody made room for the new one by hand.
#[test]
fn a_unix_socket_that_is_no_longer_its_own_is_not_removed() {
    let tree = site();
    let run = Tree::new();
    let control = run.at("control.sock");
    let mut old = Server::start(tree.path(), |launch| {
        launch.control_at(&control);
    });
    std::fs::remove_file(&control).expect("removed");
    let new = Server::start(tree.path(), |launch| {
        launch.control_at(&control);
    });
    old.signal(Signal::TERM);
    assert!(old.wait(Duration::from_secs(30)).expect("it ends").success());
    let output = new.command(&["stats", "--json"]);
    assert!(output.status.success(), "{output:?}");
}
