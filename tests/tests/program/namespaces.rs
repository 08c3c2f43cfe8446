//! Commands without `--control` and `--pid` mean the process of their own network namespace.

use std::process::{Command, Output, Stdio};

use afpa_testkit::{Server, Tree, limits::is_root, server::program, skip};

/// Gives an order to "the only one that runs", from another network namespace or from this one.
fn order(runtime: &Tree, elsewhere: bool, arguments: &[&str]) -> Output {
    let mut command = match elsewhere {
        true => {
            let mut command = Command::new("unshare");
            command.args(["--net", "--"]).arg(program());
            command
        }
        false => Command::new(program()),
    };
    command.args(arguments).env("RUNTIME_DIRECTORY", runtime.path());
    command.stdin(Stdio::null()).output().expect("run the program")
}

#[test]
fn an_order_goes_to_no_process_of_another_network_namespace_that_was_not_named() {
    if !is_root() {
        skip!("not root: no network namespace can be made");
    }
    let (tree, runtime) = (Tree::new(), Tree::new());
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), |launch| {
        launch.control_at(runtime.at("1.sock"));
    });
    let others = order(&runtime, true, &["deny", "list"]);
    let said = String::from_utf8_lossy(&others.stderr).into_owned();
    if said.contains("unshare") {
        skip!("no network namespace can be made: {said}");
    }
    let pid = server.pid().to_string();
    for arguments in [&["deny", "add", "198.51.100.7"][..], &["purge", "/hello.txt"], &["stats"]] {
        let output = order(&runtime, true, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}: {output:?}");
        assert!(said.contains("in this network namespace"), "{said}");
        assert!(said.contains(&format!("--pid {pid}  ")), "{said}");
    }
    let output = server.command(&["deny", "list"]);
    assert!(!String::from_utf8_lossy(&output.stdout).contains("198.51.100.7"), "{output:?}");
    // Named, it is meant.
    let output = order(&runtime, true, &["stats", "--json", "--pid", &pid]);
    assert!(output.status.success(), "{output:?}");
}
