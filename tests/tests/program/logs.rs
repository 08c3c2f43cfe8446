//! The access log: its two formats field by field, opening it anew, and clients that cannot harm it.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use afpa_h2::frame::{flag, kind, put};
use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Server, Tree, eventually, skip, tree::patterned};
use afpa_tests::h2::{H2Client, block, request};
use afpa_tests::proxy::{Raw, configuration};
use rustix::process::Signal;
use serde_json::Value;

const LARGE: usize = 20_000_000;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree.file("large.bin", patterned(LARGE));
    tree
}

/// The lines of an access log that has at least `count` of them.
fn log_lines(path: &Path, count: usize) -> Vec<String> {
    let read = || fs::read_to_string(path).unwrap_or_default();
    eventually("the log is written", || read().lines().count() >= count);
    let text = read();
    assert!(text.ends_with('\n'), "whole lines only: {text:?}");
    text.lines().map(str::to_owned).collect()
}

fn with_access_log(tree: &Tree, format: &str) -> Server {
    Server::start(tree.path(), |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg(format);
    })
}

fn with_http2_and_log(tree: &Tree) -> Server {
    Server::start(tree.path(), |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
        launch.set(|settings| {
            settings.set("http2.cleartext", "true");
        });
    })
}

#[test]
fn usr1_opens_the_access_log_anew() {
    let tree = site();
    let server = with_access_log(&tree, "combined");
    let (log, moved) = (server.home().join("access.log"), server.home().join("access.log.1"));
    server.get("/hello.txt?before");
    log_lines(&log, 1);
    fs::rename(&log, &moved).expect("rename");
    server.get("/hello.txt?still");
    log_lines(&moved, 2);
    server.signal(Signal::USR1);
    eventually("the log is opened anew", || log.exists());
    server.get("/hello.txt?after");
    let lines = log_lines(&log, 1);
    assert!(lines[0].contains("/hello.txt?after"), "{lines:?}");
    assert_eq!(log_lines(&moved, 2).len(), 2, "the old one stays as it is");
}

#[test]
fn the_client_is_whom_a_router_names_that_the_site_believes() {
    let tree = site();
    let server = Server::start("/", |launch| {
        launch.written(|listen: &Endpoint| {
            let root = tree.path();
            format!(
                "[[site]]\nlisten = [\"{listen}\"]\nroot = {root:?}\n\
                 forwarded_from = [\"127.0.0.1\"]\n"
            )
        });
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
    });
    let forwarded = "X-Forwarded-For: 6.6.6.6, 192.0.2.9\r\n";
    for from in ["127.0.0.1", "127.0.0.9"] {
        let mut client = Client::connect_from(from.parse().expect("an address"), server.address())
            .expect("connected");
        for target in ["/hello.txt", "/hello.txt", "/none"] {
            client.get_with(target, forwarded);
        }
    }
    let lines = log_lines(&server.home().join("access.log"), 6);
    for client in ["192.0.2.9", "127.0.0.9"] {
        let client = format!("\"client\":\"{client}\"");
        assert_eq!(lines.iter().filter(|line| line.contains(&client)).count(), 3, "{lines:?}");
    }
    assert!(lines.iter().any(|line| line.contains("\"hit\"")), "{lines:?}");
}

#[test]
fn a_distributed_request_names_its_server_and_the_times() {
    let delay = Duration::from_millis(20);
    let app = Raw::answering("HTTP/1.1 203 -\r\nContent-Length: 2\r\n\r\nok", delay);
    let gone = free_address().to_string();
    let server = Server::start("/", |launch| {
        launch.written(|listen| configuration(listen, &[gone, app.to()], ""));
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
    });
    assert_eq!(server.get("/a?b").status, 203);
    let lines = log_lines(&server.home().join("access.log"), 1);
    let line: Value = serde_json::from_str(&lines[0]).expect("JSON");
    let told = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
    assert_eq!((told("source"), told("server")), ("remote".into(), app.to()), "{line}");
    assert_eq!(
        (told("target"), &line["status"], &line["body_bytes"]),
        ("/a?b".into(), &203.into(), &2.into())
    );
    assert_eq!(line["attempts"], 2, "the first refused: {line}");
    let us = |key: &str| line[key].as_u64().expect("a time");
    assert!(us("first_byte_us") >= 20_000 && us("duration_us") >= us("first_byte_us"), "{line}");
}

/// Requests whose fields the log tests know.
fn make_log(server: &Server) {
    let mut client = server.connect();
    let fields = "Referer: http://from.example/\r\nUser-Agent: agent \"quoted\" \\ back\r\n";
    client.get_with("/hello.txt?a=b", fields);
    client.get("/none");
    client.head_with("/hello.txt", "");
    client.exchange("POST /hello.txt HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
    client.get_with("/hello.txt", "Range: bytes=0-1\r\n");
    client.exchange("GET /large.bin HTTP/1.0\r\nHost: h\r\n\r\n");
}

/// Method, target, version, status and body length of [`make_log`].
const LOGGED: [(&str, &str, &str, u64, Option<u64>); 6] = [
    ("GET", "/hello.txt?a=b", "HTTP/1.1", 200, Some(5)),
    ("GET", "/none", "HTTP/1.1", 404, None),
    ("HEAD", "/hello.txt", "HTTP/1.1", 200, Some(0)),
    ("POST", "/hello.txt", "HTTP/1.1", 405, None),
    ("GET", "/hello.txt", "HTTP/1.1", 206, Some(2)),
    ("GET", "/large.bin", "HTTP/1.0", 200, Some(LARGE as u64)),
];

#[test]
fn the_combined_log_has_its_fields_in_their_places() {
    let tree = site();
    let server = with_access_log(&tree, "combined");
    make_log(&server);
    let lines = log_lines(&server.home().join("access.log"), LOGGED.len());
    assert_eq!(lines.len(), LOGGED.len(), "{lines:#?}");
    for (line, (method, target, version, status, length)) in lines.iter().zip(LOGGED) {
        let rest = line.strip_prefix("127.0.0.1 - - [").unwrap_or_else(|| panic!("{line}"));
        let (time, rest) = rest.split_once("] ").expect("a time");
        assert_eq!(time.len(), "21/Nov/2026:01:52:57 +0000".len(), "{line}");
        assert!(time.ends_with("+0000") && time.matches(':').count() == 3, "{line}");
        let request = format!("\"{method} {target} {version}\" {status} ");
        let rest = rest.strip_prefix(request.as_str()).unwrap_or_else(|| panic!("{line}"));
        let (sent, rest) = rest.split_once(' ').expect("a length");
        let sent: u64 = if sent == "-" { 0 } else { sent.parse().expect("a number") };
        assert!(length.is_none_or(|length| length == sent), "{line}");
        match target.contains('?') {
            true => {
                assert!(rest.starts_with("\"http://from.example/\" \"agent "), "{line}");
                // A quote of the client's must not end the field.
                assert!(!rest.contains("agent \"quoted\""), "{line}");
            }
            false => assert_eq!(rest, "\"-\" \"-\"", "{line}"),
        }
    }
}

#[test]
fn the_json_log_has_one_object_a_line() {
    let tree = site();
    let server = with_access_log(&tree, "json");
    make_log(&server);
    let lines = log_lines(&server.home().join("access.log"), LOGGED.len());
    assert_eq!(lines.len(), LOGGED.len(), "{lines:#?}");
    for (line, (method, target, version, status, length)) in lines.iter().zip(LOGGED) {
        let entry: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| entry[name].as_str().unwrap_or_else(|| panic!("{name} in {line}"));
        assert_eq!(text("client"), "127.0.0.1", "{line}");
        assert_eq!((text("method"), text("target"), text("version")), (method, target, version));
        assert_eq!(entry["status"].as_u64(), Some(status), "{line}");
        let sent = entry["body_bytes"].as_u64().unwrap_or_else(|| panic!("{line}"));
        assert!(length.is_none_or(|length| length == sent), "{line}");
        assert!(entry["duration_us"].is_u64() && !text("source").is_empty(), "{line}");
        assert!(text("time").len() >= "2026-11-21T01:52:57Z".len(), "{line}");
        let (referer, agent) = match target.contains('?') {
            true => ("http://from.example/", "agent \"quoted\" \\ back"),
            false => ("", ""),
        };
        assert_eq!((text("referer"), text("user_agent")), (referer, agent), "{line}");
    }
}

#[test]
fn the_log_tells_how_long_a_load_took() {
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
        launch.set(|settings| {
            settings.set("coherency.push", false);
        });
    });
    let text = "so many words, and more of them\n".repeat(1_500);
    let book = fs::File::create(tree.file("book.txt", &text)).expect("a file");
    let write = &|| book.write_all_at(text.as_bytes(), 0).expect("written");
    write();
    let waited = thread::scope(|scope| {
        let (writes, is_written) = mpsc::channel();
        // A small file is pinned, but not before a writer has ended its changes.
        scope.spawn(move || {
            for _ in 0..100 {
                write();
                let _ = writes.send(());
                thread::sleep(Duration::from_millis(2));
            }
        });
        is_written.recv().expect("it is being written");
        let start = Instant::now();
        assert_eq!(server.get("/book.txt").status, 200);
        start.elapsed().as_micros() as u64
    });
    let lines = log_lines(&server.home().join("access.log"), 1);
    let entry: serde_json::Value = serde_json::from_str(&lines[0]).expect("JSON");
    let told = entry["duration_us"].as_u64().expect("a duration");
    let likely = waited / 10..=waited;
    assert!(likely.contains(&told), "{told} us told of {waited} us waited: {}", lines[0]);
}

#[test]
fn no_client_can_write_a_line_of_its_own_into_the_log() {
    let tree = site();
    for format in ["combined", "json"] {
        let server = with_access_log(&tree, format);
        let mut client = server.connect();
        client.get("/%0a127.0.0.1%20-%20-%20forged");
        server.connect().get_with("/hello.txt", "User-Agent: \u{9b}31m \u{2028} ü\r\n");
        server.connect().get_with("/hello.txt", "Referer: a\tb\r\n");
        let mut raw = server.connect();
        raw.send(b"GET /hello.txt HTTP/1.1\r\nHost: h\r\nUser-Agent: \xff\xfe\"\\\r\n\r\n");
        raw.receive();
        let lines = log_lines(&server.home().join("access.log"), 4);
        assert_eq!(lines.len(), 4, "{lines:#?}");
        for line in lines {
            assert!(!line.chars().any(char::is_control), "{line:?}");
            if format == "json" {
                serde_json::from_str::<serde_json::Value>(&line).expect("JSON");
            }
        }
    }
}

#[test]
fn the_page_about_the_log_has_a_configuration_that_does_what_it_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/access-log.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    let app = Raw::answering("HTTP/1.1 200 -\r\nContent-Length: 2\r\n\r\nok", Duration::ZERO);
    for format in ["logfmt", "json"] {
        let server = Server::start("/", |launch| {
            let log = launch.home().join("access.log").display().to_string();
            launch.written(|listen: &Endpoint| {
                let site = format!("[[site]]\nlisten = [\"{listen}\"]");
                let example =
                    example.replace("[[site]]", &site).replace("127.0.0.1:3000", &app.to());
                let example = example.replace("\"logfmt\" ", &format!("\"{format}\" "));
                example.replace("/var/log/afpa/access.log", &log)
            });
        });
        let tenant = "X-Tenant: one status=500\r\nX-Tenant: two\r\n";
        server.connect().get_with("/a?status=404%20client=none", tenant);
        log_lines(&server.home().join("access.log"), 1);
        // The target of a request may have quotes.
        server.connect().get_with("/\"x", "User-Agent: x\"\r\n");
        let lines = log_lines(&server.home().join("access.log"), 2);
        assert_eq!(lines.len(), 2, "{lines:?}");
        if format == "json" {
            let line: Value = serde_json::from_str(&lines[0]).expect("JSON");
            assert_eq!((&line["status"], &line["client"]), (&200.into(), &"127.0.0.1".into()));
            assert_eq!(line.as_object().map(serde_json::Map::len), Some(9), "{line}");
            assert_eq!(line["header:x-tenant"], "one status=500", "{line}");
            assert_eq!(line["request_id"].as_str().map(str::len), Some(32), "{line}");
            continue;
        }
        let tenant = " header:x-tenant=\"one status=500\"";
        assert!(
            lines[0].ends_with(tenant) && lines[1].ends_with(" header:x-tenant=-"),
            "{lines:?}"
        );
        let names = |line: &str| -> Vec<String> {
            let line = line.replace(tenant, " header:x-tenant=-");
            let pairs = line.split(' ').map(|pair| pair.split('=').next().unwrap_or_default());
            pairs.map(str::to_owned).collect()
        };
        let wanted = [
            "time",
            "client",
            "method",
            "target",
            "status",
            "duration_us",
            "server",
            "request_id",
            "header:x-tenant",
        ];
        assert!(lines.iter().all(|line| names(line) == wanted), "{lines:?}");
        assert!(
            lines[0].contains(" target=\"/a?status=404%20client=none\" status=200 "),
            "{lines:?}"
        );
    }
}

/// Files of one segment and of several, and answers of a server, by both versions of HTTP.
#[test]
fn fields_that_the_operator_names_are_in_every_line_and_secrets_in_no_other() {
    let tree = Tree::new();
    tree.file("small.txt", "small");
    tree.file("large.txt", "large".repeat(100_000));
    let app = Raw::answering("HTTP/1.1 200 -\r\nContent-Length: 2\r\n\r\nok", Duration::ZERO);
    let (root, to) = (tree.path().display().to_string(), app.to());
    let server = Server::start("/", |launch| {
        let log = launch.home().join("access.log").display().to_string();
        launch.written(|listen: &Endpoint| {
            format!(
                "[log]\naccess = \"{log}\"\naccess_format = \"json\"\n\
                 access_fields = [\"target\", \"header:Cookie\", \"header:x-long\"]\n\
                 [[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\nfallback = \"{to}\"\n"
            )
        });
    });
    let long = "v".repeat(5000);
    let lines =
        format!("Cookie: session=\"1\"\r\nAuthorization: Bearer hidden\r\nX-Long: {long}\r\n");
    let mut client = server.connect();
    for target in ["/small.txt", "/small.txt", "/large.txt", "/app"] {
        assert_eq!(client.get_with(target, &lines).status, 200);
    }
    assert_eq!(client.get("/small.txt").status, 200);
    let logged = log_lines(&server.home().join("access.log"), 5);
    assert!(!logged.concat().contains("hidden"), "{logged:?}");
    for (line, has_some) in logged.iter().zip([true, true, true, true, false]) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["header:cookie"] == "session=\"1\"", has_some, "{line}");
        let kept = line["header:x-long"].as_str().map(str::len);
        assert_eq!(kept, has_some.then_some(1024), "{line}");
    }
}

#[test]
fn a_wrong_field_of_the_log_has_its_line_and_the_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("afpa.toml");
    for (lines, said) in [
        ("access_format = \"json\"\naccess_fields = [\"stauts\"]", "did you mean \"status\"?"),
        ("access_format = \"json\"\naccess_fields = [\"Cookie: session\"]", "`user_agent`"),
        ("access_format = \"json\"\naccess_fields = [\"host\", \"host\"]", "has host twice"),
        ("access_format = \"json\"\naccess_fields = [\"header:a b\"]", "does not name a field"),
        ("access_format = \"json\"\naccess_fields = [\"header:Host\"]", "write \"host\""),
        (
            "access_format = \"json\"\naccess_fields = [\"header:x-a\", \"header:X-A\"]",
            "has header:x-a twice",
        ),
        ("access_format = \"combined\"\naccess_fields = [\"host\"]", "always the same"),
    ] {
        let text = format!("[log]\n{lines}\n[[site]]\nroot = \"/srv\"\n");
        fs::write(&file, text).expect("written");
        let mut command = Command::new(program());
        let output = command.arg("check").arg(&file).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("afpa.toml:3:") && text.contains(said), "{lines}: {text}");
        assert!(!output.status.success(), "{lines}");
    }
}

/// The request line was read, so the line of the log names it: the search for the client's fault begins there.
#[test]
fn a_request_that_is_refused_is_named_as_far_as_it_was_read() {
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
        launch.set(|settings| {
            settings.head_time(Duration::from_millis(300)).set("limits.body", "\"1KiB\"");
        });
    });
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(20_000));
    let cases: [(&str, u16, &str, &str); 7] = [
        ("GET /bad HTTP/1.1\r\nHost: h\r\nbad line\r\n\r\n", 400, "GET", "/bad"),
        ("GET /two HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", 400, "GET", "/two"),
        ("GET /none HTTP/1.1\r\n\r\n", 400, "GET", "/none"),
        ("PUT /big HTTP/1.1\r\nHost: h\r\nContent-Length: 9999\r\n\r\n", 413, "PUT", "/big"),
        (&long, 414, "GET", "/xxx"),
        ("GET /slow HTTP/1.1\r\nHost: h\r\n", 408, "GET", "/slow"),
        ("nonsense\r\n\r\n", 400, "-", "-"),
    ];
    for (number, (request, status, method, target)) in cases.into_iter().enumerate() {
        let mut client = server.connect();
        client.send(request);
        assert_eq!(client.receive().status, status, "{request:.40}");
        let lines = log_lines(&server.home().join("access.log"), number + 1);
        let line: Value = serde_json::from_str(&lines[number]).expect("JSON");
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(line["method"], method, "{line}");
        let named = line["target"].as_str().expect("a target");
        assert!(named.starts_with(target), "{line}");
        assert_eq!(line["host"] == "h", request.contains("Host: h"), "{line}");
    }
}

/// Its stream is reset, so the client has no status.
#[test]
fn a_malformed_request_of_http_2_is_named() {
    let tree = site();
    let server = with_http2_and_log(&tree);
    let mut client = H2Client::connect(&server);
    for (path, field) in [
        ("/upper", ("Bad", "x")),
        ("/te", ("transfer-encoding", "chunked")),
        ("/two", ("host", "i")),
    ] {
        let mut fields = request("GET", path);
        fields.push(field);
        let id = client.request(&fields, b"");
        assert_eq!(client.whole(id).reset, Some(1), "{path}: PROTOCOL_ERROR");
    }
    let id = client.request(&request("GET", "/hello.txt"), b"");
    assert_eq!(client.response(id).status, 200);
    let lines = log_lines(&server.home().join("access.log"), 4);
    for (line, path) in lines.iter().zip(["/upper", "/te", "/two"]) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((&line["status"], &line["method"]), (&400.into(), &"GET".into()), "{line}");
        assert_eq!(
            (&line["target"], &line["version"]),
            (&path.into(), &"HTTP/2.0".into()),
            "{line}"
        );
    }
}

/// All connections of a core read with the same head: nothing is left in it for the next one.
#[test]
fn malformed_requests_before_a_fault_of_their_connection_are_named_for_it() {
    let tree = site();
    let server = with_http2_and_log(&tree);
    let mut client = H2Client::connect(&server);
    let mut bytes = Vec::new();
    for (id, path) in [(1, "/one"), (3, "/two")] {
        let mut fields = request("GET", path);
        fields.push(("Bad", "x"));
        put(&mut bytes, kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, &block(&fields));
    }
    put(&mut bytes, kind::DATA, 0, 0, b"");
    client.send(&bytes);
    assert_eq!(client.end().map(|(_, code)| code), Some(1), "PROTOCOL_ERROR");
    let log = server.home().join("access.log");
    let named = |count| {
        let lines = log_lines(&log, count).into_iter();
        let lines = lines.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
        let named = lines.map(|line| line["target"].as_str().expect("a target").to_owned());
        named.collect::<Vec<String>>()
    };
    assert_eq!(named(2), ["/one", "/two"], "before anybody else has come");
    assert_eq!(H2Client::connect(&server).get("/hello.txt").status, 200);
    assert_eq!(named(3), ["/one", "/two", "/hello.txt"]);
}

#[test]
fn check_warns_of_a_folder_in_which_the_log_cannot_be_opened_anew() {
    if !afpa_testkit::limits::is_root() {
        skip!("not root: there is no other user");
    }
    let tree = Tree::new();
    tree.file("logs/other", "");
    let log = tree.at("logs/access.log").display().to_string();
    let root = tree.path().display().to_string();
    let said = |user: &str| {
        let text = format!("{user}[log]\naccess = \"{log}\"\n[[site]]\nroot = \"{root}\"\n");
        let file = tree.outside("afpa.toml", text);
        let output = Command::new(program()).arg("check").arg(file).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let warning = ":3:10: warning: nobody cannot write to ";
    let other = "user = \"nobody\"\n";
    assert!(said(other).contains(warning), "{}", said(other));
    assert!(!said("user = \"root\"\n").contains("cannot write to"));
    // A file that is made for the user will do, and so will a folder.
    tree.file("logs/access.log", "");
    tree.set_mode("logs/access.log", 0o666);
    assert!(!said(other).contains("cannot write to"));
    tree.remove("logs/access.log");
    tree.set_mode("logs", 0o777);
    assert!(!said(other).contains("cannot write to"));
    // Nobody reaches a folder within a closed one.
    tree.set_mode("", 0o700);
    assert!(said(other).contains(warning), "{}", said(other));
}

#[test]
fn a_start_names_the_user_who_cannot_open_the_log() {
    if !afpa_testkit::limits::is_root() {
        skip!("not root: there is no other user");
    }
    let tree = Tree::new();
    tree.file("logs/other", "");
    let (root, logs) = (tree.path().display(), tree.at("logs"));
    let text = format!(
        "user = \"nobody\"\n[log]\naccess = \"{}/access.log\"\n[[site]]\nlisten = [\"{}\"]\nroot = \"{root}\"\n",
        logs.display(),
        free_address()
    );
    let file = tree.outside("afpa.toml", text);
    let arguments = ["serve", "--fast-path", "off", "--config"];
    let output = Command::new(program()).args(arguments).arg(file).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    let remedy =
        format!("AFPA becomes nobody, who opens it (install -d -o nobody {})", logs.display());
    assert!(said.contains(&remedy), "{said}");
}
