//! Hints for the cache, and the policy that AFPA chooses, as a user sees them.

use std::fs;

use afpa_testkit::{Server, Tree, eventually};
use rustix::process::Signal;
use serde_json::Value;

/// A configuration with `more` behind the site's own settings.
fn configuration(server: &str, tree: &Tree, more: &str) -> String {
    let root = tree.path().display();
    format!(
        "[cache]\npolicy = \"auto\"\n[[site]]\nlisten = [\"{server}\"]\nroot = \"{root}\"\n{more}"
    )
}

fn cache(server: &Server) -> Value {
    let output = server.command(&["stats", "--json"]);
    let stats: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    stats["cache"].clone()
}

#[test]
fn what_is_never_kept_is_read_for_each_request_until_a_reload_says_otherwise() {
    let tree = Tree::new();
    tree.file("download.iso", "an image of a disc");
    tree.file("page.html", "a page");
    let never = "[[site.hint]]\nextensions = [\"iso\"]\nkeep = \"never\"\n";
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| configuration(&endpoint.to_string(), &tree, never));
    });
    for _ in 0..5 {
        assert_eq!(server.get("/download.iso").text(), "an image of a disc");
        assert_eq!(server.get("/page.html").text(), "a page");
    }
    let part = server.connect().exchange(
        "GET /download.iso HTTP/1.1\r\nHost: h\r\nRange: bytes=3-7\r\nAccept-Encoding: gzip\r\n\r\n",
    );
    assert_eq!((part.status, part.text()), (206, "image"));
    assert_eq!(cache(&server)["unkept"], 6);
    assert_eq!(cache(&server)["objects"], 1, "the page");

    let text = configuration(&server.endpoint().to_string(), &tree, "");
    fs::write(server.configuration(), text).expect("written");
    server.signal(Signal::HUP);
    eventually("the file is kept", || {
        server.get("/download.iso");
        let cache = cache(&server);
        cache["unkept"] == 0 && cache["objects"] != 0
    });
}

#[test]
fn an_object_with_an_age_is_made_anew() {
    let tree = Tree::new();
    tree.file("page.html", "a page");
    let aging = "[[site.hint]]\nexpiry = \"1s\"\n";
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| configuration(&endpoint.to_string(), &tree, aging));
    });
    eventually("the object reaches its age", || {
        assert_eq!(server.get("/page.html").text(), "a page");
        cache(&server)["expiries"].as_u64() >= Some(2)
    });
}

#[test]
fn people_are_told_which_policy_is_in_use_and_why() {
    let tree = Tree::new();
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| configuration(&endpoint.to_string(), &tree, ""));
    });
    let output = server.command(&["stats", "--all"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let row = text.lines().find(|line| line.contains("pinned") && line.contains("s3-fifo"));
    assert!(row.is_some_and(|row| row.contains("too few requests to judge")), "{text}");
    assert_eq!(cache(&server)["policy_changes"], 0);
}
