//! A browser opens a page by HTTP/3.

use std::time::Duration;

use afpa_testkit::{Tree, eventually_within, skip};
use afpa_tests::browser::{self, Browser};
use afpa_tests::tls::{Authority, Plan, TlsServer};
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::PublicKeyData as _;

const PAGE: &str = r#"<!doctype html>
<title>page</title>
<script>
"use strict";
const parts = Array.from({ length: 30 }, (_, at) => fetch(`/part${at}.bin`).then((part) => part.arrayBuffer()));
Promise.all(parts).then((all) => {
  const length = all.reduce((sum, part) => sum + part.byteLength, 0);
  const protocols = performance.getEntries().map((entry) => entry.nextHopProtocol).filter(Boolean);
  fetch(`/report?${length}-${[...new Set(protocols)].join("-")}`);
});
</script>
"#;

#[test]
fn chromium_opens_a_page() {
    let (tree, authority) = (Tree::new(), Authority::new());
    tree.file("index.html", PAGE);
    for part in 0..30 {
        tree.file(format!("part{part}.bin"), afpa_testkit::tree::patterned(10_000));
    }
    let sections = "[http3]\nenabled = true\n[log]\naccess = \"-\"\n".to_owned();
    let server = TlsServer::with(&authority, tree.path(), Plan { sections, ..Plan::default() });
    // A browser takes no authority of a user's own for QUIC; it knows this key.
    let pem = std::fs::read_to_string(authority.folder().join("localhost.key")).expect("a key");
    let key = rcgen::KeyPair::from_pem(&pem).expect("a key").subject_public_key_info();
    let known = STANDARD.encode(digest(&SHA256, &key));
    let home = browser::home();
    let place = format!("localhost:{}", server.tls.port());
    let arguments = browser::chromium(
        home.path(),
        &[
            &format!("--ignore-certificate-errors-spki-list={known}"),
            &format!("--origin-to-force-quic-on={place}"),
            &format!("--host-resolver-rules=MAP localhost {}", server.tls.ip()),
            &format!("https://{place}/"),
        ],
    );
    let arguments: Vec<String> =
        arguments.into_iter().filter(|argument| argument != "--disable-quic").collect();
    let Ok(browser) = Browser::start("chromium", home, &arguments) else { skip!("no chromium") };
    eventually_within(Duration::from_secs(60), "the page reports", || {
        server.server.log().contains("/report?")
    });
    drop(browser);
    let log = server.server.log();
    let line = log.lines().find(|line| line.contains("/report?")).expect("it is there");
    assert!(line.contains("/report?300000-h3 HTTP/3.0"), "{line}");
}
