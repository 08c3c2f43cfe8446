//! Methods, targets, statuses, and whether the connection goes on after each.

mod bodies;
mod connections;
mod methods;
mod pipelines;
mod refusals;
mod turns;

use afpa_testkit::{Client, Response, Server, Tree};

/// A root with one of everything, and a server for it.
fn site() -> (Tree, Server) {
    let tree = Tree::new();
    tree.file("index.html", "<h1>home</h1>");
    tree.file("hello.txt", "hello");
    tree.file("empty.bin", "");
    tree.file("deep/er/index.html", "deeper");
    tree.file("bare/file.txt", "no index beside me");
    tree.file("with space.txt", "space");
    tree.file(".hidden", "secret");
    tree.file(".git/config", "secret");
    let server = Server::start(tree.path(), |_| ());
    (tree, server)
}

/// The connection does what the response said of it.
#[track_caller]
fn connection_keeps_its_word(client: &mut Client, response: &Response) {
    if response.says_close() {
        client.assert_closed();
    } else {
        client.assert_open("/hello.txt");
    }
}

/// Asserts an error response: status, a small HTML page of known length, and a connection that
/// does what it says.
#[track_caller]
fn refused(server: &Server, request: &str, status: u16) -> Response {
    let mut client = server.connect();
    let response = client.exchange(request);
    assert_eq!(response.status, status, "{request:.200?}: {response:?}");
    if !request.starts_with("HEAD") {
        assert!(response.text().contains(&status.to_string()), "{response:?}");
        assert!(response.body.len() < 4096, "a small page");
        let media_type = response.field("content-type").unwrap_or_default();
        assert!(media_type.starts_with("text/html"), "{response:?}");
    }
    connection_keeps_its_word(&mut client, &response);
    response
}

/// As [`refused`], and the connection must close: the server cannot know where the next request
/// begins.
#[track_caller]
fn refused_for_good(server: &Server, request: &str, status: u16) {
    let response = refused(server, request, status);
    assert!(response.says_close(), "{request:.200?}: {response:?}");
}
