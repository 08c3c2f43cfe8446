//! Clients that mean harm: slow ones, many, large, and nonsense. Their cost is bounded, and other
//! clients are served meanwhile.

mod costly;
mod greedy;
mod nonsense;
mod slow;
mod taken_over;

use afpa_testkit::{Server, Tree};

fn small_site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

/// A server with one worker, so that all clients meet in it.
fn server(tree: &Tree, change: impl FnOnce(&mut afpa_testkit::settings::Settings)) -> Server {
    Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").set(change);
    })
}
