//! Metrics, health, statistics, purge, and the check of configurations.

use std::{
    collections::HashMap,
    fs,
    process::{Command, Output, Stdio},
    thread,
};

use afpa_testkit::{Asked, Client, Endpoint, Server, Tree, eventually, server::program};
use serde_json::Value;

fn site() -> (Tree, Server) {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    let server = Server::start(tree.path(), |launch| {
        launch.admin();
    });
    (tree, server)
}

/// The samples of a Prometheus text (exposition format 0.0.4 or OpenMetrics 1.0), by name and
/// labels. Panics at the first line that is neither a comment nor a sample.
fn samples(text: &str) -> HashMap<String, f64> {
    let mut samples = HashMap::new();
    let mut typed = Vec::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            if let Some(kind) = comment.strip_prefix("TYPE ") {
                let name = kind.split(' ').next().expect("a name").to_owned();
                assert!(!typed.contains(&name), "{name} is typed twice");
                typed.push(name);
            }
            continue;
        }
        let (key, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        let name = key.split('{').next().expect("a name");
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        assert!(name.chars().all(is_name), "{line:?}");
        assert!(typed.iter().any(|known| name.starts_with(known.as_str())), "untyped: {line:?}");
        let value = value.parse().unwrap_or_else(|_| panic!("no number: {line:?}"));
        assert!(samples.insert(key.to_owned(), value).is_none(), "twice: {line:?}");
    }
    samples
}

/// Adds up the samples whose name and labels contain all of `parts`.
fn total(samples: &HashMap<String, f64>, parts: &[&str]) -> f64 {
    let matching = samples.iter().filter(|(key, _)| parts.iter().all(|part| key.contains(part)));
    matching.map(|(_, value)| value).sum()
}

fn metrics(server: &Server) -> HashMap<String, f64> {
    let response = Client::connect(&server.admin()).expect("connect").get("/metrics");
    assert_eq!(response.status, 200, "{response:?}");
    samples(response.text())
}

#[test]
fn metrics_count_what_was_sent() {
    let (_tree, server) = site();
    let before = metrics(&server);
    let mut client = server.connect();
    for _ in 0..40 {
        client.get("/hello.txt");
    }
    for _ in 0..7 {
        client.get("/none");
    }
    let after = metrics(&server);
    let grown = |parts: &[&str]| total(&after, parts) - total(&before, parts);
    assert_eq!(grown(&["afpa_http_responses_total", "\"200\""]), 40.0, "{after:#?}");
    assert_eq!(grown(&["afpa_http_responses_total", "\"404\""]), 7.0, "{after:#?}");
    let bytes = grown(&["afpa_http_content_bytes_total"]);
    assert!(bytes >= 40.0 * 5.0, "{bytes} bytes of content");
    assert!(grown(&["afpa_connections_accepted_total"]) >= 1.0, "{after:#?}");
    assert!(grown(&["afpa_cache_hits_total"]) >= 39.0, "{after:#?}");
}

#[test]
fn many_misses_on_one_file_load_it_once() {
    let (tree, server) = site();
    let text = "a text that takes a while to compress\n".repeat(20_000);
    tree.dir("new");
    for round in 0..3 {
        // Moved in whole, so that no load begins before the first request but that of the push.
        let ready = tree.outside("ready.txt", &text);
        fs::rename(ready, tree.at(format!("new/{round}.txt"))).expect("move in");
        let before = metrics(&server);
        thread::scope(|scope| {
            for _ in 0..30 {
                scope.spawn(|| {
                    let response = server.get(&format!("/new/{round}.txt"));
                    assert!(response.text() == text);
                });
            }
        });
        let after = metrics(&server);
        let loads = total(&after, &["afpa_cache_loads"]) - total(&before, &["afpa_cache_loads"]);
        // The watch may speak of the move while the first load runs: then there is a second.
        assert!(loads <= 3.0, "{loads} loads of one file for 30 requests");
    }
}

#[test]
fn health_says_that_all_is_well() {
    let (_tree, server) = site();
    for endpoint in [server.admin(), server.control()] {
        let response = Client::connect(&endpoint).expect("connect").get("/health");
        assert_eq!(response.status, 200, "{response:?}");
    }
}

/// Anybody may reach the metrics; the operator needs the control socket then most of all.
#[test]
fn half_requests_to_the_metrics_take_no_place_from_the_operator_or_from_others_for_long() {
    let (_tree, server) = site();
    let half = || {
        let mut client = Client::connect(&server.admin()).expect("connect");
        let _refused = client.try_send("GET /");
        client
    };
    let mut held: Vec<Client> = (0..100).map(|_| half()).collect();
    for order in [&["deny", "add", "198.51.100.7"][..], &["purge", "/hello.txt"], &["stats"]] {
        succeeded(&server.command(order));
    }
    // Another client has a place at the metrics meanwhile.
    let Endpoint::Tcp(metrics) = server.admin() else { panic!("metrics are served by TCP") };
    let other = "127.0.0.99".parse().expect("an address");
    let response = Client::connect_from(other, metrics).expect("connect").get("/health");
    assert_eq!(response.status, 200, "{response:?}");
    // And the places come back, though nobody gives one up.
    eventually("a place is free again", || {
        Client::connect(&server.admin()).is_ok_and(|mut client| {
            client.try_send("GET /health HTTP/1.1\r\nHost: h\r\n\r\n").is_ok()
                && client.try_receive(Asked::Body).is_ok_and(|response| response.status == 200)
        })
    });
    held.clear();
}

#[test]
fn the_admin_endpoint_serves_no_files_and_the_site_no_metrics() {
    let (_tree, server) = site();
    let mut admin = Client::connect(&server.admin()).expect("connect");
    assert_eq!(admin.get("/hello.txt").status, 404);
    for target in ["/metrics", "/health", "/stats", "/purge?path=/hello.txt"] {
        assert_eq!(server.get(target).status, 404, "{target}");
    }
    // Requests that change something are for the control socket, whose file has an owner.
    let mut admin = Client::connect(&server.admin()).expect("connect");
    let purge = "POST /purge?path=/hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n";
    let status = admin.exchange(purge).status;
    assert!(matches!(status, 403..=405), "{status}");
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {errors}", output.status);
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Every number in a JSON document, by its path.
fn numbers(value: &Value, path: &str, into: &mut HashMap<String, f64>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| numbers(value, &format!("{path}.{name}"), into));
        }
        Value::Array(items) => items.iter().for_each(|item| numbers(item, path, into)),
        Value::Number(number) => {
            *into.entry(path.to_owned()).or_default() += number.as_f64().unwrap_or(0.0);
        }
        _ => {}
    }
}

#[test]
fn statistics_are_told_to_programs_and_to_people() {
    let (_tree, server) = site();
    let read = || {
        let text = succeeded(&server.command(&["stats", "--json"]));
        let mut found = HashMap::new();
        numbers(&serde_json::from_str(&text).expect("JSON"), "", &mut found);
        found
    };
    let before = read();
    let mut client = server.connect();
    for _ in 0..25 {
        client.get("/hello.txt");
    }
    let after = read();
    let grown = |path: &String| after[path] - before.get(path).copied().unwrap_or(0.0);
    let counted = after.keys().filter(|path| grown(path) == 25.0).count();
    assert!(counted >= 1, "something counts requests: {before:#?} {after:#?}");
    let hits = after.keys().filter(|path| path.contains("hit")).map(grown).fold(0.0, f64::max);
    assert!(hits >= 24.0, "{hits} hits: {after:#?}");
    let people = succeeded(&server.command(&["stats"]));
    assert_eq!(people.lines().count(), 11, "ten lines, and how to see the rest: {people}");
    for row in ["requests", "kernel", "memory", "files", "servers", "errors", "cache", "limited"] {
        assert!(people.contains(&format!("\n  {row}  ")), "{row}: {people}");
    }
    let all = succeeded(&server.command(&["stats", "--all"]));
    assert!(all.contains("\nCache\n") && all.lines().count() > 50, "{all}");
}

#[test]
fn top_draws_as_many_screens_as_it_is_told_to() {
    let (_tree, server) = site();
    server.get("/hello.txt");
    let text = succeeded(&server.command(&["top", "--screens", "2", "--every", "0.1"]));
    assert_eq!(text.matches("\nWorkers\n").count(), 2, "{text}");
    assert!(text.contains("memory, in user mode") && text.contains("\nSites\n"), "{text}");
    assert!(!text.contains('\u{1b}'), "no orders for a terminal where there is none: {text}");
    succeeded(&server.command(&["top", "-n", "1", "--every", "100ms"]));
    for wrong in ["0", "99ms", "61m", "1h", "s", "nan"] {
        let refused = server.command(&["top", "--every", wrong]);
        assert!(String::from_utf8_lossy(&refused.stderr).contains("seconds from 0.1"), "{wrong}");
    }
}

#[test]
fn purge_drops_an_object_and_the_next_request_reads_it_again() {
    let (tree, server) = site();
    assert_eq!(server.get("/hello.txt").text(), "hello");
    succeeded(&server.command(&["purge", "/hello.txt"]));
    tree.file("hello.txt", "other");
    succeeded(&server.command(&["purge", &format!("{}/hello.txt", server.url())]));
    assert_eq!(server.get("/hello.txt").text(), "other");
    // There is nothing to drop: it says so, and does no harm.
    server.command(&["purge", "/none"]);
    assert_eq!(server.get("/hello.txt").text(), "other");
}

#[test]
fn who_asks_nobody_gets_an_explanation() {
    let (_tree, mut server) = site();
    server.kill();
    let output = server.command(&["stats"]);
    assert!(!output.status.success());
    assert!(!output.stderr.is_empty(), "it says why");
}

fn check(text: &str) -> (bool, String) {
    let tree = Tree::new();
    tree.dir("site");
    let file = tree.at("afpa.toml");
    let root = tree.at("site");
    fs::write(&file, text.replace("ROOT", &root.display().to_string())).expect("write");
    let output = Command::new(program())
        .arg("check")
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .expect("run the program");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_server_that_is_not_there_is_told_by_a_probe_and_at_the_start() {
    let free = afpa_testkit::server::free_address();
    let there = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let there = there.local_addr().expect("address");
    let tree = Tree::new();
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "[[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\n\
                 [[server_group]]\nname = \"app\"\nservers = [\"{there}\", \"{free}\"]\n"
            )
        });
    });
    let told = server.summary("servers");
    assert!(told.starts_with(&format!("{free} is not there yet")), "{told}");
    let probe = |text: String| {
        let file = tree.at("afpa.toml");
        fs::write(&file, text).expect("write");
        let mut check = Command::new(program());
        check.args(["check", "--probe"]).arg(&file).stdin(Stdio::null());
        let output = check.output().expect("run the program");
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(said).expect("text"))
    };
    let text = fs::read_to_string(server.configuration()).expect("the configuration");
    let (status, said) = probe(text.clone());
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(&format!("server {there} of app: takes connections\n")), "{said}");
    assert!(said.contains(&format!("server {free} of app: nobody listens on {free}")), "{said}");
    assert!(said.contains("afpa: 1 of 2 servers take no connections"), "{said}");
    let (status, said) = probe(text.replace(&format!(", \"{free}\""), ""));
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn check_accepts_what_is_good() {
    let (good, said) =
        check("workers = 2\n[[site]]\nroot = \"ROOT\"\nlisten = [\"127.0.0.1:0\"]\n");
    assert!(good, "{said}");
    assert!(said.contains("workers"), "it tells what the file comes to: {said}");
}

#[test]
fn check_names_file_line_and_cause_of_what_is_wrong() {
    for (text, line, cause) in [
        ("workers = 2\nwokers = 3\n[[site]]\nroot = \"ROOT\"\n", 2, "wokers"),
        ("workers = \"many\"\n[[site]]\nroot = \"ROOT\"\n", 1, "workers"),
        ("[[site]]\nroot = \"ROOT\"\nlisten = [\"nowhere\"]\n", 3, "nowhere"),
        ("[[site]]\nroot = \"ROOT/missing\"\n", 2, "missing"),
        ("[timeouts]\nhead = \"5 parsecs\"\n[[site]]\nroot = \"ROOT\"\n", 2, "parsecs"),
        ("[[site]\n", 1, ""),
    ] {
        let (good, said) = check(text);
        assert!(!good, "{text}: {said}");
        assert!(said.contains(&format!("afpa.toml:{line}")), "{text}: {said}");
        assert!(said.starts_with("afpa: "), "{text}: {said}");
        assert!(said.contains(cause), "{text}: {said}");
    }
}
