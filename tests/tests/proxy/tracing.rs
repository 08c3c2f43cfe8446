//! Ids and traces of requests: at servers, in answers and in the access log, each with its own request.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Response, Server, Tree, eventually};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{PhpFpm, Raw, read_content, read_head};
use serde_json::Value;

/// A server whose answers have the head that it was asked with as their content, and an id of its own. It keeps the
/// heads. `/kept/` may be kept, `/vary/` depends on the id, `/traced/` on the trace, and the answer for `/held` waits for the test.
struct App {
    raw: Raw,
    heads: Arc<Mutex<Vec<String>>>,
    go: mpsc::Sender<()>,
}

impl App {
    fn start() -> Self {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (go, wait) = mpsc::channel::<()>();
        let (seen, wait) = (Arc::clone(&heads), Mutex::new(wait));
        let raw = Raw::start(move |mut stream: TcpStream| {
            while let Some(head) = read_head(&mut stream) {
                if read_content(&mut stream, &head).is_none() {
                    return;
                }
                seen.lock().expect("no panic").push(head.clone());
                let target = head.split(' ').nth(1).unwrap_or("");
                let lines = match target.split('/').nth(1) {
                    Some("kept") => "Cache-Control: max-age=600\r\n",
                    Some("traced") => "Cache-Control: max-age=600\r\nVary: Traceparent\r\n",
                    Some("vary") => "Cache-Control: max-age=600\r\nVary: X-Request-Id\r\n",
                    _ => "",
                };
                if target == "/kept/held" {
                    let _ = wait.lock().expect("no panic").recv_timeout(Duration::from_secs(20));
                }
                let status = if target == "/missing" { 404 } else { 200 };
                let text = if head.starts_with("HEAD") { "" } else { &head };
                let answer = format!(
                    "HTTP/1.1 {status} Said\r\nX-Request-Id: servers-own\r\n{lines}Content-Length: {}\r\n\r\n{text}",
                    head.len()
                );
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
        Self { raw, heads, go }
    }

    fn asked(&self) -> usize {
        self.heads.lock().expect("no panic").len()
    }
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("index.html", "<p>home");
    tree.file("a.css", "css and more");
    tree.file("who.php", "<?php echo $_SERVER['HTTP_X_REQUEST_ID'] ?? 'none';");
    tree.file("trace.php", "<?php echo $_SERVER['HTTP_TRACEPARENT'] ?? 'none';");
    tree
}

fn serve(tree: &Tree, settings: &str) -> Server {
    let root = tree.path().display();
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\n\
                 forwarded_from = [\"127.0.0.9\"]\n{settings}\n"
            )
        });
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
    })
}

/// One request by HTTP/1.1, and the same by HTTP/2.
fn both(
    (http1, http2): (&mut Client, &mut H2Client),
    method: &str,
    target: &str,
    lines: &[(&str, &str)],
) -> [Response; 2] {
    let text: String = lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let by_1 = http1.exchange(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{text}\r\n"));
    let mut fields = h2::request(method, target);
    fields.extend_from_slice(lines);
    let stream = http2.request(&fields, b"");
    [by_1, http2.response(stream)]
}

/// The values of a field in a head.
fn told<'h>(head: &'h str, name: &str) -> Vec<&'h str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

fn is_new(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The lines of the access log, when there are so many.
fn logged(server: &Server, count: usize) -> Vec<Value> {
    let path = server.home().join("access.log");
    let read = || fs::read_to_string(&path).unwrap_or_default();
    eventually("the log is written", || read().lines().count() >= count);
    read().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn every_answer_has_one_id_of_its_own_and_the_log_and_servers_have_the_same() {
    let (app, tree) = (App::start(), tree());
    let (to, dead) = (app.raw.to(), free_address());
    let server = serve(
        &tree,
        &format!(
            "fallback = \"{to}\"\nrequest_id = \"on\"\n\
             [[site.path]]\nprefix = \"/moved/\"\nredirect = \"/\"\n\
             [[site.path]]\nprefix = \"/fixed/\"\nstatus = 418\nbody = \"tea\"\n\
             [[site.path]]\nprefix = \"/none/\"\nfallback = 404\n\
             [[site.path]]\nprefix = \"/kept/\"\nto = \"{to}\"\ncache = \"auto\"\n\
             [[site.path]]\nprefix = \"/vary/\"\nto = \"{to}\"\ncache = \"auto\"\n\
             [[site.path]]\nprefix = \"/dead/\"\nto = \"{dead}\"\n"
        ),
    );
    let (mut http1, mut http2) = (server.connect(), H2Client::connect(&server));
    let etag = server.get("/a.css").field("etag").expect("an ETag").to_owned();
    let mut ids = BTreeSet::new();
    // The second time, files and answers are kept, and names known as absent.
    for round in 0..3 {
        for (method, target, lines, status) in [
            ("GET", "/a.css", &[][..], 200),
            ("HEAD", "/a.css", &[], 200),
            ("GET", "/a.css", &[("if-none-match", &*etag)], 304),
            ("GET", "/a.css", &[("range", "bytes=0-2")], 206),
            ("GET", "/a.css", &[("range", "bytes=99-")], 416),
            ("GET", "/moved/x", &[], 308),
            ("GET", "/fixed/x", &[], 418),
            ("GET", "/none/x", &[], 404),
            ("GET", "/app", &[], 200),
            ("HEAD", "/app", &[], 200),
            ("GET", "/missing", &[], 404),
            ("GET", "/app", &[("x-request-id", "stranger"), ("x_request_id", "other")], 200),
            ("GET", "/kept/a", &[("x-request-id", "stranger")], 200),
            ("GET", "/kept/a", &[("range", "bytes=0-2")], 206),
            ("GET", "/vary/a", &[("x-request-id", "stranger")], 200),
            ("GET", "/dead/x", &[], 502),
        ] {
            for by in both((&mut http1, &mut http2), method, target, lines) {
                let what = format!("{round} {method} {target} {lines:?}: {by:?}");
                // After some failures there is no server to ask.
                assert!(by.status == status || (status, by.status) == (502, 503), "{what}");
                let own: Vec<&str> = by.values("x-request-id").collect();
                assert!(matches!(own[..], [id] if is_new(id)), "{what}");
                assert!(ids.insert(own[0].to_owned()), "{what}");
                let is_fresh = target == "/app" || target == "/vary/a";
                if is_fresh && method == "GET" {
                    assert_eq!(told(by.text(), "x-request-id"), own, "{what}");
                    assert!(told(by.text(), "x_request_id").is_empty(), "{what}");
                }
            }
        }
    }
    let of = |target: &str| {
        let heads = app.heads.lock().expect("no panic");
        heads.iter().filter(|head| head.split(' ').nth(1) == Some(target)).count()
    };
    assert_eq!(of("/kept/a"), 2, "one for each host is kept, although each of its uses has an id");
    assert_eq!(of("/vary/a"), 6, "an answer that depends on the id is for nobody else");
    let lines = logged(&server, ids.len() + 1);
    let in_log: BTreeSet<String> =
        lines.iter().map(|line| line["request_id"].as_str().unwrap_or_default().into()).collect();
    assert!(ids.is_subset(&in_log), "the log has each of them");
    assert_eq!(server.connect().exchange("GET / HTTP/1.1\r\n\r\n").status, 400, "no site, no id");
}

#[test]
fn followers_of_one_fetch_have_ids_of_their_own() {
    let (app, tree) = (App::start(), tree());
    let to = app.raw.to();
    let server =
        serve(&tree, &format!("to = \"{to}\"\nrequest_id = \"on\"\n[site.cache]\nwait = \"20s\""));
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("GET /kept/held HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    let in_flight = || {
        let output = server.command(&["stats", "--json"]);
        let stats: Value = serde_json::from_slice(&output.stdout).expect("statistics");
        stats["sites"][0]["in_flight"].as_u64() == Some(3)
    };
    eventually("all wait for one answer", || app.asked() == 1 && in_flight());
    app.go.send(()).expect("it waits");
    let answers: Vec<Response> = clients.iter_mut().map(Client::receive).collect();
    let ids: BTreeSet<&str> = answers.iter().flat_map(|by| by.values("x-request-id")).collect();
    assert_eq!((ids.len(), app.asked()), (3, 1), "{answers:?}");
    // The server was asked in the name of one of them.
    assert!(ids.contains(told(answers[0].text(), "x-request-id")[0]), "{answers:?}");
}

#[test]
fn only_a_router_that_the_site_believes_chooses_an_id() {
    let (app, tree) = (App::start(), tree());
    let settings = "request_id = \"servers\"\nrequest_id_field = \"X-Id\"\n\
                    [[site.path]]\nprefix = \"/loud/\"\nrequest_id = \"on\"\n\
                    [[site.path]]\nprefix = \"/off/\"\nrequest_id = \"off\"\n";
    let server = serve(&tree, &format!("fallback = \"{}\"\n{settings}", app.raw.to()));
    let from = |address: &str| {
        let address: IpAddr = address.parse().expect("an address");
        Client::connect_from(address, server.address()).expect("connected")
    };
    let (mut router, mut stranger) = (from("127.0.0.9"), from("127.0.0.1"));
    let id = "018f3a5e-7d5c-7a3b-9c1d-2e4f6a8b0c1d";
    let line = format!("X-Id: {id}\r\n");
    let answer = router.get_with("/loud/a", &line);
    assert_eq!((answer.field("x-id"), &told(answer.text(), "x-id")[..]), (Some(id), &[id][..]));
    let answer = router.get_with("/quiet", &line);
    assert_eq!((answer.field("x-id"), &told(answer.text(), "x-id")[..]), (None, &[id][..]));
    assert!(is_new(told(stranger.get_with("/quiet", &line).text(), "x-id")[0]));
    for bad in ["X-Id: a b\r\n".to_owned(), format!("X-Id: {}\r\n", "a".repeat(65)), line.repeat(2)]
    {
        let answer = router.get_with("/loud/a", &bad);
        let ids = told(answer.text(), "x-id");
        assert!(ids.len() == 1 && is_new(ids[0]), "{bad}: {answer:?}");
        assert_eq!(answer.field("x-id"), Some(ids[0]));
    }
    let answer = stranger.get_with("/off/a", "X-Id: mine\r\n");
    assert_eq!((told(answer.text(), "x-id"), answer.field("x-id")), (vec!["mine"], None));
    let lines = logged(&server, 7);
    assert_eq!(lines.iter().filter(|line| line["request_id"] == id).count(), 2, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line["request_id"].is_null()).count(), 1, "{lines:?}");
}

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const STEP: &str = "00f067aa0ba902b7";

/// The trace, the step and the flags of the only `traceparent` of a head.
#[track_caller]
fn trace_of(head: &str) -> [String; 3] {
    let lines = told(head, "traceparent");
    let parts: Vec<&str> = lines.first().expect("a trace").split('-').collect();
    let [version, trace, step, flags] = parts[..] else { panic!("{lines:?}") };
    assert_eq!((lines.len(), version, trace.len(), step.len()), (1, "00", 32, 16), "{lines:?}");
    [trace, step, flags].map(str::to_owned)
}

#[test]
fn a_trace_goes_on_in_a_step_of_its_own_or_begins() {
    let (app, tree) = (App::start(), tree());
    let to = app.raw.to();
    let server = serve(
        &tree,
        &format!(
            "to = \"{to}\"\ntraceparent = \"on\"\ntrace_share = 0\n\
             [[site.path]]\nprefix = \"/trusted/\"\nto = \"{to}\"\ntraceparent = \"trusted\"\n\
             [[site.path]]\nprefix = \"/off/\"\nto = \"{to}\"\ntraceparent = \"off\"\n"
        ),
    );
    let given = format!("00-{TRACE}-{STEP}-01");
    let lines = [("traceparent", &*given), ("tracestate", "a=1"), ("tracestate", "b=2")];
    let (mut http1, mut http2) = (server.connect(), H2Client::connect(&server));
    let mut steps = BTreeSet::new();
    for by in both((&mut http1, &mut http2), "GET", "/a", &lines) {
        let [trace, step, flags] = trace_of(by.text());
        assert_eq!((&*trace, &*flags), (TRACE, "01"), "{by:?}");
        assert!(step != STEP && steps.insert(step), "{by:?}");
        assert_eq!(told(by.text(), "tracestate"), ["a=1", "b=2"], "{by:?}");
        assert_eq!(by.field("traceparent"), None, "{by:?}");
    }
    let invalid = given.replace("-01", "-0x");
    let twice = [lines[0], lines[0], lines[1]];
    let (strange, none) = ([("traceparent", &*invalid), ("tracestate", "a=1")], []);
    for (target, lines) in
        [("/a", &strange[..]), ("/a", &twice), ("/a", &none), ("/trusted/", &lines)]
    {
        for by in both((&mut http1, &mut http2), "GET", target, lines) {
            let [trace, _, flags] = trace_of(by.text());
            assert!(trace != TRACE && flags == "00", "{target} {lines:?}: {by:?}");
            assert!(told(by.text(), "tracestate").is_empty(), "{target} {lines:?}: {by:?}");
        }
    }
    let router = Client::connect_from("127.0.0.9".parse().expect("an address"), server.address());
    let line = format!("Traceparent: {given}\r\n");
    let by = router.expect("connected").get_with("/trusted/", &line);
    assert_eq!(trace_of(by.text())[0], TRACE);
    for by in both((&mut http1, &mut http2), "GET", "/off/", &lines) {
        assert_eq!(told(by.text(), "traceparent"), [&*given], "as it came: {by:?}");
    }
    let before = app.asked();
    for _ in 0..2 {
        for target in ["/kept/a", "/traced/a"] {
            assert_eq!(http1.get_with(target, &line).status, 200);
        }
    }
    // The trace is no part of a key, and an answer that depends on it is for nobody else.
    assert_eq!(app.asked(), before + 3);
    let log = logged(&server, 17);
    let of = log.iter().filter(|line| line["trace_id"] == TRACE).count();
    assert_eq!(of, 7, "two, one of the router's, and four of answers that may be kept: {log:?}");
    assert_eq!(log.iter().filter(|line| line["trace_id"].is_null()).count(), 2, "{log:?}");
}

#[test]
fn a_server_that_says_who_may_learns_the_id_and_the_trace_of_the_request_itself() {
    let (app, portal, tree) = (App::start(), App::start(), tree());
    let server = serve(
        &tree,
        &format!(
            "to = \"{}\"\nrequest_id = \"on\"\ntraceparent = \"on\"\nforward_auth = \"{}\"\n\
             forward_auth_path = \"/verify\"\n",
            app.raw.to(),
            portal.raw.to()
        ),
    );
    let given = format!("00-{TRACE}-{STEP}-01");
    let forged =
        [("x-request-id", "stranger"), ("x_request_id", "other"), ("traceparent", &*given)];
    let (mut http1, mut http2) = (server.connect(), H2Client::connect(&server));
    for lines in [&forged[..], &[]] {
        let answers = both((&mut http1, &mut http2), "GET", "/a", lines);
        let questions = std::mem::take(&mut *portal.heads.lock().expect("no panic"));
        assert_eq!(questions.len(), answers.len());
        for (by, question) in answers.iter().zip(&questions) {
            let own: Vec<&str> = by.values("x-request-id").collect();
            assert!(matches!(own[..], [id] if is_new(id)), "{by:?}");
            assert_eq!(told(question, "x-request-id"), own, "{question}");
            assert!(told(question, "x_request_id").is_empty(), "{question}");
            assert_eq!(told(by.text(), "x-request-id"), own, "{by:?}");
            // It is asked in the step of the request itself, and the other server in one below that.
            let (trace, other) = (trace_of(question), trace_of(by.text()));
            assert_eq!([&trace[0], &trace[2]], [&other[0], &other[2]], "{question} {by:?}");
            assert_ne!(trace[1], other[1], "{question} {by:?}");
            assert_eq!(trace[0] == TRACE, !lines.is_empty(), "{question}");
        }
    }
}

#[test]
fn no_id_of_a_server_comes_before_its_answer_or_behind_it() {
    let tree = tree();
    let raw = Raw::start(|mut stream: TcpStream| {
        while read_head(&mut stream).is_some() {
            let answer = "HTTP/1.1 103 Early Hints\r\nX-Request-Id: early\r\nLink: </a.css>\r\n\r\n\
                          HTTP/1.1 200 OK\r\nTrailer: X-Request-Id, X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n\
                          1\r\na\r\n0\r\nX_Request_Id: late\r\nX-Request-Id: late\r\nX-Sum: 1\r\n\r\n";
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    let server = serve(&tree, &format!("to = \"{}\"\nrequest_id = \"on\"\n", raw.to()));
    for lines in ["Connection: close\r\n", "TE: trailers\r\nConnection: TE, close\r\n"] {
        let mut stream = TcpStream::connect(server.address()).expect("connected");
        let request = format!("GET /a HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        assert!(text.contains("103 Early Hints") && text.contains("X-Sum: 1"), "{text}");
        assert!(!text.contains("early") && !text.contains("late"), "{text}");
        assert_eq!(told(&text, "x-request-id").len(), 1, "{text}");
    }
}

#[test]
fn a_script_of_php_learns_the_id() {
    let fpm = match PhpFpm::start(true, 1, "") {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    let server =
        serve(&tree, &format!("php = \"{}\"\nrequest_id = \"on\"\ntraceparent = \"on\"", fpm.to()));
    let lines = [("x-request-id", "stranger"), ("x_request_id", "other")];
    let (mut http1, mut http2) = (server.connect(), H2Client::connect(&server));
    for by in both((&mut http1, &mut http2), "GET", "/who.php", &lines) {
        assert!(is_new(by.text()), "{by:?}");
        assert_eq!(by.field("x-request-id"), Some(by.text()));
    }
    let line = format!("traceparent: 00-{TRACE}-{STEP}-00\r\n");
    let text = http1.get_with("/trace.php", &line).text().to_owned();
    assert!(text.starts_with(&format!("00-{TRACE}-")) && !text.contains(STEP), "{text}");
}

#[test]
fn the_page_about_ids_has_a_configuration_that_does_what_it_says() {
    let app = App::start();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tracing.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    let tree = tree();
    let server = Server::start("/", |launch| {
        let log = launch.home().join("access.log").display().to_string();
        launch.written(|listen| {
            let site = format!("[[site]]\nlisten = [\"{listen}\"]");
            let example =
                example.replace("[[site]]", &site).replace("127.0.0.1:3000", &app.raw.to());
            let example = example.replace("10.0.0.0/8", "127.0.0.1");
            let root = tree.path().display().to_string();
            example.replace("/srv/static", &root).replace("/var/log/afpa/access.log", &log)
        });
    });
    let answer = server.connect().get_with("/app", "X-Request-Id: from-the-router\r\n");
    assert_eq!(answer.field("x-request-id"), Some("from-the-router"));
    assert_eq!(told(answer.text(), "x-request-id"), ["from-the-router"]);
    let [trace, _, flags] = trace_of(answer.text());
    assert_eq!(flags, "01");
    let file = server.get("/static/a.css");
    assert_eq!((file.status, file.field("x-request-id")), (200, None), "{file:?}");
    // Each core writes its lines when it has the time.
    let lines = logged(&server, 2);
    let line = lines.iter().find(|line| line["target"] == "/app").expect("its line");
    assert_eq!(line["request_id"], "from-the-router", "{lines:?}");
    assert_eq!(line["trace_id"], *trace, "{lines:?}");
}

#[test]
fn wrong_settings_of_ids_have_their_lines_and_remedies() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("afpa.toml");
    for (lines, line, said) in [
        ("request_id = \"yes\"", 3, "`off`, `servers` or `on`"),
        ("request_id = \"on\"\nrequest_id_field = \"Set-Cookie\"", 4, "has another meaning"),
        ("request_id = \"on\"\nrequest_id_field = \"X Id\"", 4, "is not a field name"),
        ("traceparent = \"yes\"", 3, "`off`, `trusted` or `on`"),
        ("trace_share = 5", 3, "has no effect without `traceparent`"),
        ("traceparent = \"on\"\ntrace_share = 101", 4, "0 to 100"),
        (
            "traceparent = \"on\"\n[[site.header]]\nrequest_add = { Traceparent = \"1\" }",
            5,
            "writes traceparent, too",
        ),
        ("request_id_field = \"X-Id\"", 3, "has no effect without `request_id`"),
        ("request_id = \"on\"\nheaders = { x-request-id = \"1\" }", 4, "writes X-Request-Id, too"),
        (
            "request_id = \"on\"\n[[site.header]]\nrequest_set = { X-Request-Id = \"1\" }",
            5,
            "writes X-Request-Id, too",
        ),
    ] {
        fs::write(&file, format!("[[site]]\nto = \"127.0.0.1:1\"\n{lines}\n")).expect("written");
        let output = Command::new(program()).arg("check").arg(&file).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        let place = format!("afpa.toml:{line}:");
        assert!(text.contains(&place) && text.contains(said), "{lines}: {text}");
        assert!(!output.status.success(), "{lines}");
    }
}
