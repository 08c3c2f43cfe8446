//! The self-check: some of the kernel's answers are compared with user mode's.

use afpa_testkit::{Server, Tree, eventually};
use afpa_tests::slots;

use crate::lab::{Lab, stats, warm};

fn compared(server: &Server, found: &str) -> u64 {
    stats(server)["fast_path"]["self_checks"][found].as_u64().unwrap_or_default()
}

fn server(lab: &Lab, tree: &Tree) -> Server {
    lab.server(tree, |launch| {
        launch.set(|settings| {
            settings.set("internals.self_check", 1);
        });
    })
}

#[test]
fn answers_of_the_kernel_are_those_of_user_mode() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let server = server(&lab, &tree);
    warm(&server, "/hello.txt");
    let mut client = server.connect();
    let requests = [
        "GET /hello.txt HTTP/1.1\r\nHost: test\r\nAccept-Encoding: gzip, br\r\n\r\n",
        "HEAD /hello.txt HTTP/1.1\r\nHost: test\r\n\r\n",
    ];
    eventually("some were compared", || {
        requests.iter().for_each(|request| drop(client.exchange(request)));
        compared(&server, "same") >= 4
    });
    assert_eq!(compared(&server, "different"), 0, "{}", server.log());
    assert_eq!(stats(&server)["fast_path"]["state"], "in use on lo, eth0");
}

/// One bit of an answer changes in the kernel's memory.
#[test]
fn a_wrong_byte_in_the_kernel_ends_its_answers() {
    let Some(lab) = Lab::new() else { return };
    let tree = Tree::new();
    tree.file("hello.txt", "of the self-check, o");
    let server = server(&lab, &tree);
    warm(&server, "/hello.txt");
    slots::spoil(b"of the self-check, o", b"of the self-check, p");
    let mut client = server.connect();
    eventually("the difference is found", || {
        client.get("/hello.txt");
        compared(&server, "different") > 0
    });
    let seen = stats(&server)["fast_path"].clone();
    assert_eq!(
        seen["state"], "not in use: the self-check found a wrong answer (see the log)",
        "{seen}"
    );
    let log = server.log();
    assert!(log.contains("on the kernel sent \"p\", and the server says \"o\""), "{log}");
    assert!(log.contains("--- the server"), "both answers are kept: {log}");
    assert_eq!(client.get("/hello.txt").text(), "of the self-check, o", "user mode answers");
}
