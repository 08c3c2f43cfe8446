//! Started by root where there is no user database, as in a small container image.

use std::process::{Command, Stdio};

use afpa_testkit::{
    Client, Endpoint, Tree, eventually, limits::is_root, proc::Process, server::free_address,
    server::program, skip,
};
use rustix::process::{Pid, Signal, kill_process};

/// The program with an empty `/etc`, in a mount namespace of its own.
fn without_etc(arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--", "bash", "-c"]);
    command.arg("mount -t tmpfs tmpfs /etc || exit 99; exec \"$0\" \"$@\"").arg(program());
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

#[test]
fn without_a_user_database_a_number_is_enough_and_the_error_says_so() {
    if !is_root() {
        skip!("not root: there are no rights to drop");
    }
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let run = Tree::new();
    let address = free_address();
    let (root, listen) = (tree.path().display().to_string(), address.to_string());
    let control = run.at("control.sock").display().to_string();
    let serve = ["serve", &root, "--listen", &listen, "--control", &control, "--fast-path", "off"];
    let output = without_etc(&serve).output().expect("unshare");
    if matches!(output.status.code(), Some(99))
        || output.status.code() == Some(1) && output.stderr.starts_with(b"unshare")
    {
        skip!("no mount namespace can be made");
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("there is no /etc/passwd") && said.contains("--user 65534"), "{said}");
    let output = without_etc(&[&serve[..], &["--user", "www-data"]].concat()).output();
    let said = String::from_utf8(output.expect("unshare").stderr).expect("text");
    assert!(said.contains("no /etc/passwd") && said.contains("as a number"), "{said}");

    let mut child =
        without_etc(&[&serve[..], &["--user", "65534"]].concat()).spawn().expect("unshare");
    let connect = || Client::connect(&Endpoint::Tcp(address));
    eventually("it answers", || connect().is_ok());
    assert_eq!(connect().expect("connected").get("/hello.txt").text(), "hello");
    let users = Process(child.id()).users().expect("users");
    assert_eq!(users, [65534; 4]);
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process");
    kill_process(pid, Signal::TERM).expect("kill");
    assert!(child.wait().expect("wait").success());
}
