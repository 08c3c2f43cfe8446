//! The status page, in a browser.

use afpa_testkit::{Client, Endpoint, Server, Tree, skip};
use afpa_tests::browser::shown;

#[test]
fn a_browser_shows_the_numbers_of_the_process() {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), |launch| {
        launch.admin();
    });
    for _ in 0..7 {
        assert_eq!(server.connect().get("/hello.txt").status, 200);
    }
    let ask = |host: &str| {
        let mut client = Client::connect(&server.admin()).expect("connect");
        client.exchange(format!("GET /status HTTP/1.1\r\nHost: {host}\r\n\r\n"))
    };
    let stranger = ask("rebound.example:9090");
    assert_eq!(stranger.status, 421, "a page of a stranger cannot read it");
    assert!(stranger.text().contains("by its address"), "{stranger:?}");
    let page = ask("localhost:9090");
    assert_eq!(page.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.field("X-Content-Type-Options"), Some("nosniff"));
    let Endpoint::Tcp(address) = server.admin() else { panic!("metrics are served by TCP") };
    let shown = match shown(&format!("http://{address}/status")) {
        Ok(shown) => shown,
        Err(why) => skip!("{why}"),
    };
    let has = |text: &str| assert!(shown.contains(text), "{text}: {shown}");
    has(&format!("process {}, up ", server.pid()));
    has("<span class=\"quiet\">7 since the start</span>");
    has("<h2 class=\"\">Sites</h2>");
    has("<h2 class=\"\">Workers</h2>");
    assert_eq!(shown.matches("<polygon").count(), 4, "kernel, memory, files, servers: {shown}");
}
