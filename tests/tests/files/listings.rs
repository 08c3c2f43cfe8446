//! Listings of directories, and the log's messages about files that are not served.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use afpa_testkit::{Server, Tree, eventually, skip};

use crate::serve;

fn listed(tree: &Tree) -> Server {
    Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("site.listing", true);
        });
    })
}

/// The targets of a listing's links, but for that to the folder above.
fn links(page: &str) -> Vec<String> {
    let links = page.split("<a href=\"./").skip(1).filter_map(|rest| rest.split('"').next());
    links.map(|link| link.replace("&#39;", "'").replace("&amp;", "&")).collect()
}

#[test]
fn every_link_of_a_listing_gets_its_file() {
    let tree = Tree::new();
    let mut names: Vec<Vec<u8>> =
        (1..=255).filter(|byte| *byte != b'/').map(|byte| vec![b'x', byte, b'y']).collect();
    names.extend([
        vec![0xff; 255],
        b"javascript:x".to_vec(),
        b"%41".to_vec(),
        b" ".to_vec(),
        b"..x".to_vec(),
        b"?a=b#c".to_vec(),
    ]);
    for name in &names {
        fs::write(tree.path().join(OsStr::from_bytes(name)), name).expect("a file");
    }
    symlink("xay", tree.at("link")).expect("a link");
    symlink("nowhere", tree.at("dangling")).expect("a link");
    symlink("/etc/passwd", tree.at("outside")).expect("a link");
    let server = listed(&tree);
    let mut client = server.connect();
    let page = client.get("/");
    assert_eq!(page.status, 200);
    let mut got: Vec<Vec<u8>> = Vec::new();
    for link in links(page.text()) {
        let response = client.get(&format!("/{link}"));
        assert_eq!(response.status, 200, "{link}");
        got.push(response.body);
    }
    let has_control = |name: &&Vec<u8>| name.iter().any(u8::is_ascii_control);
    let mut wanted: Vec<Vec<u8>> =
        names.iter().filter(|name| !has_control(name) && name[0] != b'.').cloned().collect();
    wanted.push(b"xay".to_vec());
    got.sort();
    wanted.sort();
    assert_eq!(got.len(), wanted.len());
    assert!(got == wanted, "each has its own content");
}

#[test]
fn a_folder_with_more_names_than_a_page_shows_says_so() {
    let tree = Tree::new();
    for number in 0..10_003 {
        tree.file(format!("f{number:05}"), "");
    }
    let page = listed(&tree).get("/");
    assert_eq!(page.status, 200);
    assert_eq!(links(page.text()).len(), 10_000);
    assert!(page.text().contains("f09999") && !page.text().contains("f10000"));
    assert!(page.text().contains("3 more names are not shown"));
}

#[test]
fn the_log_says_why_what_is_there_is_not_served() {
    let tree = Tree::new();
    tree.file("folder/a.txt", "a");
    symlink("/etc/passwd", tree.at("outside")).expect("a link");
    let server = serve(&tree);
    for (target, reason) in [
        ("/folder/", "the directory has no index file"),
        ("/outside", "a link leads outside of the document root"),
    ] {
        for _ in 0..50 {
            assert_eq!(server.get(target).status, 403);
        }
        eventually(reason, || server.log().contains(reason));
        let said = server.log().matches(reason).count();
        assert!(said < 25, "said {said} times");
    }
    assert_eq!(server.get("/none").status, 404);
    assert!(!server.log().contains("/none"));
}

#[test]
fn the_log_names_a_file_that_may_not_be_read() {
    let tree = Tree::new();
    tree.file("secret.txt", "secret");
    fs::set_permissions(tree.at("secret.txt"), fs::Permissions::from_mode(0o000)).expect("a mode");
    if fs::read(tree.at("secret.txt")).is_ok() && !rustix::process::geteuid().is_root() {
        skip!("modes mean nothing to this user");
    }
    fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let server = Server::start(tree.path(), |launch| {
        if rustix::process::geteuid().is_root() {
            launch.set(|settings| {
                settings.set("user", "\"nobody\"");
            });
        }
    });
    assert_eq!(server.get("/secret.txt").status, 403);
    eventually("the reason", || {
        let log = server.log();
        log.contains("/secret.txt") && log.contains("permission denied")
    });
}
