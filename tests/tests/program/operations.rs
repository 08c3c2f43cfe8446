//! The operations on the control socket: `afpa call`, its list, and media types that change without a reload.

use afpa_testkit::{Client, Server, Tree, eventually};
use rustix::process::Signal;

/// Whether it succeeds, and its output or the errors.
fn call(server: &Server, arguments: &[&str]) -> (bool, String) {
    let output = server.command(&[&["call"], arguments].concat());
    let succeeded = output.status.success();
    let text = if succeeded { output.stdout } else { output.stderr };
    (succeeded, String::from_utf8(text).expect("UTF-8"))
}

#[track_caller]
fn called(server: &Server, arguments: &[&str]) -> String {
    let (succeeded, text) = call(server, arguments);
    assert!(succeeded, "{arguments:?}: {text}");
    text
}

#[track_caller]
fn refused(server: &Server, arguments: &[&str], why: &str) {
    let (succeeded, text) = call(server, arguments);
    assert!(!succeeded && text.contains(why), "{arguments:?}: {text}");
}

#[test]
fn operations_are_listed_and_called_by_their_names() {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), |launch| {
        launch.admin();
    });
    let list = called(&server, &[]);
    for name in
        ["health", "metrics", "stats", "status", "deny", "purge", "top", "types", "drain", "ready"]
    {
        assert!(list.contains(&format!(" /{name}")), "{name} of {list}");
    }
    // All that only tell something can be asked as they are.
    let looks = list.lines().filter_map(|line| line.strip_prefix("GET  /"));
    let looks: Vec<&str> = looks.map(|line| line.split([' ', ':']).next().unwrap()).collect();
    for name in &looks {
        called(&server, &[name]);
    }
    assert_eq!(called(&server, &["health"]), "ok\n");
    let health = server.command(&["health"]);
    assert!(health.status.success() && health.stdout == b"ok\n", "{health:?}");
    assert_eq!(server.get("/hello.txt").status, 200);
    let purged = called(&server, &["purge", "path=/hello.txt"]);
    assert_eq!(purged, "/hello.txt was dropped from the cache\n");
    called(&server, &["deny/add", "prefix=198.51.100.0/24"]);
    assert!(called(&server, &["deny"]).contains("198.51.100.0/24"));
    refused(&server, &["purge"], "path=");
    refused(&server, &["deny/add", "prefix=x"], "x");
    refused(&server, &["drain", "server=nobody:1"], "nobody:1");
    refused(&server, &["purge", "path"], "NAME=VALUE");
    refused(&server, &["polish"], "no operation polish; it has: health, metrics, stats, status,");
    // Everybody who reaches the metrics learns of four, and the message for others names them, too.
    let ask = |target: &str| Client::connect(&server.admin()).expect("connect").get(target);
    let public = ask("/");
    let lines: Vec<_> = public.text().lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(lines, ["GET  /health", "GET  /metrics", "GET  /stats", "GET  /status"]);
    let unknown = ask("/top");
    assert_eq!(unknown.status, 404);
    assert_eq!(
        unknown.text(),
        "there is no such operation; there are: health, metrics, stats, status\n"
    );
    let post = "POST /stats HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
    let posted = Client::connect(&server.control()).expect("connect").exchange(post);
    assert_eq!(posted.status, 405);
}

#[test]
fn media_types_change_without_a_reload_also_of_answers_that_are_kept() {
    let tree = Tree::new();
    for name in ["a.md", "b.md", "index.md", "c.txt"] {
        tree.file(name, name);
    }
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("site.index", "[\"index.md\"]");
            settings.set("site.types", "{ md = \"text/x-configured\" }");
        });
    });
    let mut client = server.connect();
    let mut is = |target: &str, kind: &str| {
        let response = client.get(target);
        assert_eq!(response.field("Content-Type"), Some(kind), "{target}");
    };
    let mut all_are = |kind: &str| {
        // Twice: the second answer is a kept one.
        for target in ["/a.md", "/b.md", "/", "/a.md", "/"] {
            is(target, kind);
        }
        is("/c.txt", "text/plain; charset=utf-8");
    };
    all_are("text/x-configured");
    assert_eq!(called(&server, &["types"]), "md text/x-configured\n");
    assert_eq!(called(&server, &["types", "extension=TXT"]), "txt text/plain; charset=utf-8\n");
    called(&server, &["types/set", "extension=.MD", "type=text/x-set; charset=utf-8"]);
    all_are("text/x-set; charset=utf-8");
    assert_eq!(called(&server, &["types", "host=h"]), "md text/x-set; charset=utf-8\n");
    called(&server, &["types/remove", "extension=md"]);
    all_are("text/markdown; charset=utf-8");
    assert_eq!(called(&server, &["types"]), "\n");
    refused(&server, &["types/remove", "extension=md"], "md has the built-in type");
    for wrong in ["type=text", "type=", "type=text/a\r\nX: y", "type=text/*"] {
        refused(&server, &["types/set", "extension=md", wrong], "is no media type");
    }
    for wrong in ["extension=", "extension=tar.gz", "extension=a/b"] {
        refused(&server, &["types/set", wrong, "type=text/html"], "is no extension");
    }
    all_are("text/markdown; charset=utf-8");
    server.signal(Signal::HUP);
    eventually("the configuration's types are back", || {
        server.get("/a.md").field("Content-Type") == Some("text/x-configured")
    });
}
