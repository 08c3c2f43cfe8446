//! The status page, in a browser.

use std::{path::Path, process::Command};

use afpa_testkit::{Client, Endpoint, Server, Tree, skip};

const BROWSER: &str = "/usr/bin/chromium";

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
    let page = Client::connect(&server.admin()).expect("connect").get("/status");
    assert_eq!(page.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.field("X-Content-Type-Options"), Some("nosniff"));
    if !Path::new(BROWSER).exists() {
        skip!("no {BROWSER}");
    }
    let Endpoint::Tcp(address) = server.admin() else { panic!("metrics are served by TCP") };
    let shown = shown(&format!("http://{address}/status"));
    let has = |text: &str| assert!(shown.contains(text), "{text}: {shown}");
    has(&format!("process {}, up ", server.pid()));
    has("<span class=\"quiet\">7 since the start</span>");
    has("<h2 class=\"\">Sites</h2>");
    has("<h2 class=\"\">Workers</h2>");
    assert_eq!(shown.matches("<polygon").count(), 4, "kernel, memory, files, servers: {shown}");
}

/// The page as it stands after some seconds of the browser's own clock, which waits for answers.
fn shown(url: &str) -> String {
    let home = tempfile::Builder::new().prefix("afpa-browser").tempdir().expect("a folder");
    let output = Command::new("timeout")
        .args(["--kill-after=5", "60", BROWSER, "--headless", "--no-sandbox", "--disable-gpu"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
        .args(["--disable-component-update", "--disable-dev-shm-usage", "--no-proxy-server"])
        .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
        .args(["--virtual-time-budget=7000", "--dump-dom", url])
        .env("HOME", home.path())
        .output()
        .expect("the browser starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
