//! Exit statuses, by which scripts and systemd tell why a program ended.

use std::process::Command;

use afpa_testkit::{Tree, server::free_listener, server::program};

fn status(arguments: &[&str]) -> Option<i32> {
    Command::new(program()).args(arguments).output().expect("run the program").status.code()
}

/// The unit has systemd start it again for other reasons, which may pass.
#[test]
fn a_wrong_configuration_has_a_status_of_its_own() {
    let tree = Tree::new();
    let file = tree.file("wrong.toml", "nonsense\n").display().to_string();
    assert_eq!(status(&["serve", "--config", &file]), Some(78));
    assert_eq!(status(&["serve", "--config", "/none"]), Some(78));
    assert_eq!(status(&["check", &file]), Some(1));
    assert_eq!(status(&["serve", "--no-such-option"]), Some(2));

    let other = free_listener();
    let address = other.local_addr().expect("an address").to_string();
    let root = tree.path().display().to_string();
    let serve = ["serve", &root, "--listen", &address, "--fast-path", "off"];
    assert_eq!(status(&serve), Some(1), "another server has the port");
}
