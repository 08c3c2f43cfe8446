//! Spans of requests: at a collector of OpenTelemetry, and at collectors that are slow, away or out of order.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use afpa_testkit::server::free_address;
use afpa_testkit::{Server, Tree, eventually, skip};
use afpa_tests::collector::{Collector, attribute};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};
use rustix::process::Signal;
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const STEP: &str = "00f067aa0ba902b7";

fn serve(tree: &Tree, collector: &str, settings: &str) -> Server {
    let root = tree.path().display();
    Server::start("/", |launch| {
        launch.admin().written(|listen| {
            format!(
                "workers = 1\nhttp2.cleartext = true\n[tracing]\notlp = \"{collector}\"\n\
                 service = \"shop\"\nheaders = {{ Authorization = \"Bearer x\" }}\n\
                 [[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\n{settings}\n"
            )
        });
    })
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("a.css", "css and more");
    tree
}

/// A server whose answers have the trace that it was asked with as their content. `/broken` gets 503.
fn app() -> Raw {
    Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            if read_content(&mut stream, &head).is_none() {
                return;
            }
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            let mut traces = lines.filter(|(name, _)| name.eq_ignore_ascii_case("traceparent"));
            let trace = traces.next().map_or("none", |(_, value)| value);
            let status = if head.starts_with("GET /broken") { 503 } else { 200 };
            let length = trace.len();
            let answer =
                format!("HTTP/1.1 {status} Said\r\nContent-Length: {length}\r\n\r\n{trace}");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// The step that a server was asked with.
fn step(content: &str) -> &str {
    content.split('-').nth(2).unwrap_or_default()
}

/// A number in `afpa stats --json`.
fn counted(server: &Server, name: &str) -> u64 {
    let output = server.command(&["stats", "--json"]);
    let stats: Value = serde_json::from_slice(&output.stdout).expect("statistics");
    stats["spans"][name].as_u64().expect("a count")
}

#[test]
fn a_collector_of_opentelemetry_gets_spans_of_the_request_and_of_the_exchange() {
    let collector = match Collector::start() {
        Ok(collector) => collector,
        Err(why) => skip!("{why}"),
    };
    let (tree, app, portal) = (tree(), app(), app());
    let server = serve(
        &tree,
        collector.url(),
        &format!(
            "fallback = \"{app}\"\ntraceparent = \"on\"\ntrace_share = 0\n\
             [[site.path]]\nprefix = \"/guarded/\"\nto = \"{app}\"\nforward_auth = \"{portal}\"\n\
             forward_auth_path = \"/verify\"\n\
             [[site.path]]\nprefix = \"/kept/\"\nto = \"{app}\"\n\
             [[site.path]]\nprefix = \"/quiet/\"\nto = \"{app}\"\ntraceparent = \"off\"\n\
             [[site.path]]\nprefix = \"/dead/\"\nto = \"{}\"\n",
            free_address(),
            app = app.to(),
            portal = portal.to(),
        ),
    );
    let line = format!("User-Agent: tester\r\ntraceparent: 00-{TRACE}-{STEP}-01\r\n");
    let mut client = server.connect();
    let file = client.get_with("/a.css?token=secret", &line);
    assert_eq!(file.status, 200);
    let by_server = client.get_with("/app?q=secret", &line);
    let told = step(by_server.text()).to_owned();
    assert_eq!(client.get_with("/broken", &line).status, 503);
    assert_eq!(client.get_with("/dead/x", &line).status, 502);
    let guarded = step(client.get_with("/guarded/x", &line).text()).to_owned();
    // These have no span: the trace is new and not recorded, or there is none.
    assert_eq!(client.get("/app").status, 200);
    assert_eq!(client.get_with("/quiet/x", &line).status, 200);
    let mut fields = h2::request("GET", "/two");
    let given = format!("00-{TRACE}-{STEP}-01");
    fields.push(("traceparent", &given));
    let mut http2 = H2Client::connect(&server);
    let stream = http2.request(&fields, b"");
    assert_eq!(http2.response(stream).status, 200);

    // Six requests, and five exchanges.
    eventually("the collector has the spans", || collector.spans().len() >= 11);
    eventually("they are counted", || counted(&server, "exported") == 11);
    let spans = collector.spans();
    assert_eq!(spans.len(), 11, "{spans:?}");
    assert!(spans.iter().all(|span| span["traceId"] == TRACE), "{spans:?}");
    assert!(!format!("{spans:?}").contains("secret"));
    for resource in collector.resources() {
        assert_eq!(attribute(&resource["resource"], "service.name"), "shop");
    }
    let of = |path: &str| {
        let own = spans.iter().filter(|span| attribute(span, "url.path") == path);
        let [own] = own.collect::<Vec<_>>()[..] else { panic!("{path}: {spans:?}") };
        let below = spans.iter().filter(|span| span["parentSpanId"] == own["spanId"]);
        (own, below.collect::<Vec<_>>())
    };
    let (own, below) = of("/a.css");
    assert!(below.is_empty() && own["parentSpanId"] == STEP && own["kind"] == 2, "{own}");
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.scheme", "http"),
        ("server.address", &*server.address().ip().to_string()),
        ("http.response.status_code", "200"),
        ("network.protocol.version", "1.1"),
        ("client.address", "127.0.0.1"),
        ("user_agent.original", "tester"),
        ("error.type", ""),
    ] {
        assert!(key == "server.address" || attribute(own, key) == value, "{key}: {own}");
    }
    let (own, below) = of("/app");
    let [exchange] = below[..] else { panic!("{spans:?}") };
    // The server was asked in the step that is the span of the exchange, so that its own spans are below it.
    assert_eq!((exchange["spanId"].as_str(), exchange["kind"].as_u64()), (Some(&*told), Some(3)));
    assert_eq!(attribute(exchange, "http.response.status_code"), "200");
    assert!(app.to().ends_with(&attribute(exchange, "server.port")), "{exchange}");
    let nanos = |span: &Value, key: &str| span[key].as_str().and_then(|text| text.parse().ok());
    let time = |span, key| -> u64 { nanos(span, key).expect("a time") };
    assert!(time(own, "startTimeUnixNano") <= time(exchange, "startTimeUnixNano"), "{spans:?}");
    assert!(time(exchange, "endTimeUnixNano") <= time(own, "endTimeUnixNano"), "{spans:?}");
    let (own, below) = of("/broken");
    assert_eq!((attribute(own, "error.type"), &own["status"]["code"]), ("503".into(), &2.into()));
    assert_eq!(attribute(below[0], "error.type"), "503");
    let (own, below) = of("/dead/x");
    assert_eq!(attribute(own, "http.route"), "/dead/*");
    assert_eq!(own["name"], "GET /dead/*");
    // No other server is left to be asked.
    assert_eq!(attribute(below[0], "error.type"), "no-server");
    let (_, below) = of("/guarded/x");
    assert_eq!(below[0]["spanId"].as_str(), Some(&*guarded));
    let (own, _) = of("/two");
    assert_eq!(attribute(own, "network.protocol.version"), "2");
    assert_eq!(counted(&server, "dropped"), 0);
}

/// A collector that answers each request as `answers` says, and counts them.
fn strange(answers: impl Fn(usize) -> String + Send + Sync + 'static) -> (Raw, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let raw = Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
            let lower = head.to_ascii_lowercase();
            assert!(lower.contains("content-type: application/x-protobuf\r\n"), "{head}");
            assert!(head.contains("Bearer x\r\n"), "{head}");
            if read_content(&mut stream, &head).is_none() {
                return;
            }
            let answer = answers(count.fetch_add(1, Ordering::Relaxed));
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    (raw, asked)
}

fn url(raw: &Raw) -> String {
    format!("http://{}", raw.to())
}

#[test]
fn a_batch_is_sent_again_where_the_protocol_says_so_and_no_more_often() {
    let (tree, busy) = (tree(), "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n");
    let good = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (raw, asked) = strange(move |number| if number < 2 { busy } else { good }.to_owned());
    let server = serve(&tree, &url(&raw), "traceparent = \"on\"");
    assert_eq!(server.get("/a.css").status, 200);
    eventually("the third time it is taken", || counted(&server, "exported") == 1);
    assert_eq!((asked.load(Ordering::Relaxed), counted(&server, "dropped")), (3, 0));

    let refused = "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n";
    let (raw, asked) = strange(move |_| refused.to_owned());
    let server = serve(&tree, &url(&raw), "traceparent = \"on\"");
    assert_eq!(server.get("/a.css").status, 200);
    eventually("it is lost", || counted(&server, "dropped") == 1);
    assert_eq!((asked.load(Ordering::Relaxed), counted(&server, "exported")), (1, 0));
    assert!(server.log().contains("are URL and fields of [tracing] right?"), "{}", server.log());

    // Two of three spans are not wanted: ExportTracePartialSuccess with rejected_spans = 2.
    let partial = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x0a\x02\x08\x02";
    let (raw, _) = strange(move |_| partial.to_owned());
    let server = serve(&tree, &url(&raw), "traceparent = \"on\"");
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/a.css").status, 200);
    }
    eventually("two are lost", || counted(&server, "dropped") == 2);
    assert_eq!(counted(&server, "exported"), 1);
}

#[test]
fn a_collector_that_is_away_costs_spans_and_no_request_waits() {
    let tree = tree();
    let server = serve(&tree, &format!("http://{}", free_address()), "traceparent = \"on\"");
    let mut client = server.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/a.css").status, 200);
    }
    eventually("they are lost after five attempts", || counted(&server, "dropped") == 20);
    assert!(server.log().contains("cannot be reached"), "{}", server.log());
    assert_eq!(client.get("/a.css").status, 200);
    let page = String::from_utf8(server.command(&["stats"]).stdout).expect("text");
    assert!(page.contains("spans were lost"), "{page}");
}

#[test]
fn a_collector_that_says_nothing_costs_no_memory_and_no_end() {
    let tree = tree();
    let silent = Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            if read_content(&mut stream, &head).is_none() {
                return;
            }
        }
    });
    let mut server = serve(&tree, &url(&silent), "traceparent = \"on\"");
    let mut client = server.connect();
    let before = server.held();
    let many = "GET /a.css HTTP/1.1\r\nHost: a\r\n\r\n".repeat(50);
    let mut requests = 0;
    while counted(&server, "dropped") == 0 {
        client.send(&many);
        for _ in 0..50 {
            assert_eq!(client.receive().status, 200);
        }
        requests += 50;
        assert!(requests < 100_000, "the queue has no bound");
    }
    let grown = server.held().since(before);
    assert!(grown.memory < 8 << 20, "{grown:?}");
    let begun = Instant::now();
    server.signal(Signal::TERM);
    assert!(server.wait(Duration::from_secs(30)).is_some(), "it ends after {:?}", begun.elapsed());
}

#[test]
fn the_last_spans_are_sent_at_the_end() {
    let tree = tree();
    let good = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for signal in [Signal::TERM, Signal::QUIT] {
        let (raw, asked) = strange(move |_| good.to_owned());
        let mut server = serve(&tree, &url(&raw), "traceparent = \"on\"");
        assert_eq!(server.get("/a.css").status, 200);
        server.signal(signal);
        assert!(server.wait(Duration::from_secs(30)).is_some(), "{}", server.log());
        assert_eq!(asked.load(Ordering::Relaxed), 1, "{}", server.log());
    }
}

#[test]
fn a_reload_changes_the_collector_and_loses_nothing() {
    let tree = tree();
    let seen = Arc::new(Mutex::new([0, 0]));
    let of = |which: usize| {
        let seen = Arc::clone(&seen);
        strange(move |_| {
            seen.lock().expect("no panic")[which] += 1;
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()
        })
    };
    let ((first, _), (second, _)) = (of(0), of(1));
    let server = serve(&tree, &url(&first), "traceparent = \"on\"");
    let mut client = server.connect();
    assert_eq!(client.get("/a.css").status, 200);
    let file = server.configuration();
    let text = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, text.replace(&url(&first), &url(&second))).expect("written");
    server.signal(Signal::HUP);
    eventually("the first has its span", || seen.lock().expect("no panic")[0] == 1);
    let is_there = AtomicBool::new(false);
    eventually("the second has one", || {
        if !is_there.load(Ordering::Relaxed) && server.log().contains("reloaded") {
            assert_eq!(client.get("/a.css").status, 200);
            is_there.store(true, Ordering::Relaxed);
        }
        seen.lock().expect("no panic")[1] >= 1
    });
    eventually("both are counted", || counted(&server, "exported") == 2);
}

#[test]
fn the_page_about_spans_has_a_configuration_that_does_what_it_says() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/spans.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let (raw, asked) = strange(|_| "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
    let app = app();
    let server = Server::start("/", |launch| {
        let secret = launch.home().join("secret");
        std::fs::write(&secret, "x").expect("written");
        launch.written(|listen| {
            let site = format!("[[site]]\nlisten = [\"{listen}\"]");
            let example = example.expect("an example").replace("[[site]]", &site);
            let example = example.replace("127.0.0.1:3000", &app.to());
            let example = example.replace("http://127.0.0.1:4318", &url(&raw));
            example.replace("/run/secrets/otlp", &secret.display().to_string())
        });
    });
    let line = format!("traceparent: 00-{TRACE}-{STEP}-01\r\n");
    assert_eq!(server.connect().get_with("/a", &line).status, 200);
    eventually("both spans are there", || counted(&server, "exported") == 2);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn wrong_settings_of_spans_have_their_lines_and_remedies() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("afpa.toml");
    for (lines, line, said, is_refused) in [
        ("otlp = \"127.0.0.1:4318\"", 4, "write scheme, host and port", true),
        ("otlp = \"http://a:4318/v1/traces\"", 4, "leave /v1/traces out", true),
        ("service = \"shop\"", 4, "`service` has no effect without `otlp`", true),
        ("headers = { A = \"1\" }", 4, "`headers` has no effect without `otlp`", true),
        ("otlp = \"http://a:4318\"\nheaders = { \"A B\" = \"1\" }", 5, "not a field name", true),
        ("otlp = \"http://a:4318\"", 4, "no site has `traceparent`", false),
    ] {
        let text = format!("[[site]]\nto = \"127.0.0.1:1\"\n[tracing]\n{lines}\n");
        std::fs::write(&file, text).expect("written");
        let program = afpa_testkit::server::program();
        let output = std::process::Command::new(program).arg("check").arg(&file).output();
        let output = output.expect("it runs");
        let text = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        let place = format!("afpa.toml:{line}:");
        assert!(text.contains(&place) && text.contains(said), "{lines}: {text}");
        assert_eq!(!output.status.success(), is_refused, "{lines}");
    }
}
