//! Exit statuses, by which scripts and systemd tell why a program ended.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use afpa_testkit::{Tree, limits::is_root, server::free_listener, server::program, skip};

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

/// The service of the packages is never root.
#[test]
fn a_check_as_another_user_fails_where_that_one_may_not_read_a_key() {
    if !is_root() {
        skip!("not root: cannot become somebody else");
    }
    let tree = Tree::new();
    let key = tree.file("key", "0123456789abcdef".repeat(4));
    let may_read = |mode| {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    let text = format!(
        "[http3]\nkey = \"{}\"\n[[site]]\nlisten = [\"127.0.0.1:8080\"]\nroot = \"{}\"\n",
        key.display(),
        tree.path().display()
    );
    let file = tree.file("afpa.toml", text).display().to_string();
    may_read(0o600);
    assert_eq!(status(&["check", "--quiet", &file]), Some(0));
    assert_eq!(status(&["check", "--quiet", "--as", "65534", &file]), Some(1));
    may_read(0o644);
    assert_eq!(status(&["check", "--quiet", "--as", "65534", &file]), Some(0));
}
