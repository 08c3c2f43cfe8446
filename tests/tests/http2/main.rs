//! HTTP/2 without TLS, as clients see it: ordinary ones, slow ones, and those that mean harm.

mod clients;
mod ends;
mod floods;
mod flow;
mod proxy;
mod requests;
mod ring;
mod tunnels;

use afpa_testkit::settings::Settings;
use afpa_testkit::{Server, Tree, tree::patterned};

const LARGE: usize = 3_000_000;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("index.html", "index");
    tree.file("hello.txt", "hello");
    tree.file("empty.txt", "");
    tree.file("medium.bin", patterned(100_000));
    tree.file("large.bin", patterned(LARGE));
    tree
}

/// A server with one worker, so that all clients meet in it.
fn server_with(tree: &Tree, change: impl FnOnce(&mut Settings)) -> Server {
    Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").set(|settings| {
            settings.set("http2.cleartext", true);
            change(settings);
        });
    })
}

fn server(tree: &Tree) -> Server {
    server_with(tree, |_| ())
}
