//! HTTP/3 as clients see it: the http3 client of quic-go, a browser, a network that loses datagrams, and clients that mean
//! harm.

mod browsers;
mod content;
mod early;
mod ends;
mod floods;
mod handshakes;
mod judges;
mod networks;
mod passing;
mod paths;
mod proxy;
mod steering;

use afpa_testkit::{Launch, Tree, tree::patterned};
use afpa_tests::quic::QuicClient;
use afpa_tests::tls::{Authority, Plan, TlsServer};

const LARGE: usize = 3_000_000;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("index.html", "index");
    tree.file("hello.txt", "hello");
    tree.file("empty.txt", "");
    tree.file("page.html", "<p>a page that becomes shorter</p>\n".repeat(200));
    tree.file("large.bin", patterned(LARGE));
    tree
}

/// A server with HTTP/3, and a client; `None`: the client cannot be built here.
fn both(
    authority: &Authority,
    tree: &Tree,
    sections: &str,
    site: &str,
    launch: impl FnOnce(&mut Launch) + 'static,
) -> Option<(TlsServer, QuicClient)> {
    let plan = Plan {
        sections: format!("[http3]\nenabled = true\n{sections}"),
        site: site.to_owned(),
        launch: Box::new(launch),
    };
    let server = TlsServer::with(authority, tree.path(), plan);
    match QuicClient::start(authority, server.tls) {
        Ok(client) => Some((server, client)),
        Err(why) => {
            eprintln!("SKIP: {why}");
            None
        }
    }
}
