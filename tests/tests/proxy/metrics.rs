//! The counters of sites and request sets: metrics and statistics, before and after a reload.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;

use afpa_testkit::{Client, Endpoint, Server, Tree, eventually};
use afpa_tests::proxy::{Raw, read_head};
use rustix::process::Signal;
use serde_json::Value;

/// A server that answers with the status that ends the path.
fn backend() -> Raw {
    Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let path = head.split(' ').nth(1).unwrap_or_default();
            let status = path.rsplit('/').next().unwrap_or_default();
            let answer = format!("HTTP/1.1 {status} As You Like\r\nContent-Length: 0\r\n\r\n");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// Two sites: one with a root and a server, one that lets in nothing after the first request.
fn configuration(listen: &Endpoint, root: &str, to: &str, more: &str) -> String {
    format!(
        r#"
workers = 2

[[site]]
listen = ["{listen}"]
hosts = ["a.test"]
root = "{root}"
to = "{to}"
cached = ["html"]
{more}

[[site]]
listen = ["{listen}"]
hosts = ["b.test"]
to = "{to}"

[site.limits]
requests_per_second = 1
burst = 1
"#
    )
}

fn metrics(server: &Server) -> String {
    let response = Client::connect(&server.admin()).expect("connect").get("/metrics");
    assert_eq!(response.status, 200, "{response:?}");
    response.text().to_owned()
}

fn rows(server: &Server, table: &str) -> Vec<Value> {
    let output = server.command(&["stats", "--json"]);
    let stats: Value = serde_json::from_slice(&output.stdout).expect("statistics");
    stats[table].as_array().expect("a table").clone()
}

#[track_caller]
fn assert_lines(server: &Server, lines: &[&str]) {
    let text = metrics(server);
    for line in lines {
        assert!(text.lines().any(|found| found == *line), "no {line} in\n{text}");
    }
}

/// Asks on a connection of its own, so that both workers get some.
fn ask(server: &Server, host: &str, target: &str, status: u16) {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert_eq!(server.connect().exchange(request).status, status, "{host} {target}");
}

#[test]
fn requests_count_for_their_site_and_request_set() {
    let (app, tree) = (backend(), Tree::new());
    tree.file("a.html", "a file");
    let root = tree.path().display().to_string();
    let server = Server::start("/", |launch| {
        launch.written(|listen| configuration(listen, &root, &app.to(), "")).admin();
    });
    for _ in 0..10 {
        ask(&server, "a.test", "/a.html", 200);
        ask(&server, "a.test", "/201", 201);
    }
    ask(&server, "a.test", "/missing.html", 404);
    ask(&server, "a.test", "/503", 503);
    ask(&server, "nobody.test", "/", 421);
    ask(&server, "b.test", "/200", 200);
    ask(&server, "b.test", "/200", 503);
    // A distributed request is counted when its client has the answer already.
    eventually("all are counted", || {
        let sites = rows(&server, "sites");
        let requests: Vec<_> = sites.iter().map(|row| row["requests"].as_u64()).collect();
        requests == [Some(22), Some(2)] && sites.iter().all(|row| row["in_flight"] == 0)
    });
    let cached = "site=\"a.test\",request_set=\"a.test / html\"";
    let others = "site=\"a.test\",request_set=\"a.test / *\"";
    let sets = rows(&server, "request_sets");
    let named: Vec<_> = sets.iter().map(|row| row["request_set"].clone()).collect();
    assert_eq!(named, ["a.test / html", "a.test / *", "b.test / *"], "{sets:?}");
    assert_lines(
        &server,
        &[
            "afpa_site_requests_total{site=\"a.test\"} 22",
            "afpa_site_responses_total{site=\"a.test\",class=\"2xx\"} 20",
            "afpa_site_responses_total{site=\"a.test\",class=\"4xx\"} 1",
            "afpa_site_responses_total{site=\"a.test\",class=\"5xx\"} 1",
            "afpa_site_in_flight{site=\"a.test\"} 0",
            "afpa_site_duration_seconds_count{site=\"a.test\"} 11",
            "afpa_site_requests_total{site=\"b.test\"} 2",
            "afpa_site_refused_total{site=\"b.test\",limit=\"site_rate\"} 1",
            "afpa_site_refused_total{site=\"a.test\",limit=\"site_rate\"} 0",
            &format!("afpa_request_set_requests_total{{{cached}}} 11"),
            &format!("afpa_request_set_responses_total{{{cached},class=\"4xx\"}} 1"),
            &format!("afpa_request_set_requests_total{{{others}}} 11"),
            &format!("afpa_request_set_duration_seconds_count{{{others}}} 11"),
        ],
    );
    let sites = rows(&server, "sites");
    assert_eq!((&sites[1]["site"], &sites[1]["refused"]), (&"b.test".into(), &1.into()));
    assert!(sites[0]["duration_99_us"].as_u64() > Some(0), "{sites:?}");
    let table = String::from_utf8(server.command(&["stats", "--all"]).stdout).expect("text");
    assert!(table.contains("\nRequest sets\n"), "{table}");
}

#[test]
fn counts_stay_over_a_reload_and_requests_in_flight_are_seen() {
    let (app, tree) = (backend(), Tree::new());
    tree.file("a.html", "a file");
    let root = tree.path().display().to_string();
    // It accepts, and says nothing for as long as its client waits.
    let silent = Raw::start(|mut stream: TcpStream| while read_head(&mut stream).is_some() {});
    let more = format!("[[site.path]]\nprefix = \"/slow/\"\nto = \"{}\"\n", silent.to());
    let server = Server::start("/", |launch| {
        launch.written(|listen| configuration(listen, &root, &app.to(), &more)).admin();
    });
    ask(&server, "a.test", "/a.html", 200);
    let mut waiting = server.connect();
    waiting.send("GET /slow/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let slow = "site=\"a.test\",request_set=\"a.test /slow/ *\"";
    let in_flight = format!("afpa_request_set_in_flight{{{slow}}} 1\n");
    eventually("it is in flight", || metrics(&server).contains(&in_flight));

    let new = "[[site.path]]\nprefix = \"/new/\"\nstatus = 204\n";
    let others = (1..1000).map(|other| new.replace("new", &format!("other/{other}")));
    let new = [new.to_owned()].into_iter().chain(others).collect::<String>();
    let new = configuration(server.endpoint(), &root, &app.to(), &new);
    fs::write(server.configuration(), new).expect("written");
    server.signal(Signal::HUP);
    let asks = "GET /new/ HTTP/1.1\r\nHost: a.test\r\n\r\n";
    eventually("both workers have the new path", || {
        let new = (0..10).all(|_| server.connect().exchange(asks).status == 204);
        new && !metrics(&server).contains(&in_flight)
    });
    let in_site = "afpa_site_in_flight{site=\"a.test\"} 1";
    assert_lines(&server, &[in_site]);
    waiting.abort().expect("reset");
    eventually("it has ended", || !metrics(&server).contains(in_site));
    let sites = rows(&server, "sites");
    let requests = sites[0]["requests"].as_u64().expect("a count");
    assert!(requests > 10, "{sites:?}");
    let sets = rows(&server, "request_sets");
    assert_eq!(sets.len(), 1, "only the first 1000 are counted for themselves: {sets:?}");
}
