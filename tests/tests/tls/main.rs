//! HTTP over TLS: clients of several makers, handshakes that go wrong, certificates that change.

mod browsers;
mod certificates;
mod clients;
mod content;
mod demands;
mod early_data;
mod handshakes;
mod keys;
mod servers;
mod sites;
mod tap;

use afpa_testkit::{Tree, tree::patterned};

/// A root with something of each length.
fn site() -> Tree {
    let tree = Tree::new();
    tree.file("index.html", "index");
    tree.file("hello.txt", "hello");
    tree.file("medium.bin", patterned(200_000));
    tree.file("large.bin", patterned(10_000_000));
    tree
}
