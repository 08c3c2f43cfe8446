//! Fields of answers of every kind, of requests to servers, and for pages of other origins.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Response, Server, Tree, eventually};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};
use afpa_tests::tls::{Authority, Plan, TlsServer};

/// A server whose answers have the head that it was asked with as their content, and the status that is the last segment
/// of the path.
fn app() -> (Raw, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let raw = Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            if read_content(&mut stream, &head).is_none() {
                return;
            }
            count.fetch_add(1, Ordering::Relaxed);
            let target = head.split(' ').nth(1).unwrap_or("");
            let status = target.rsplit('/').next().and_then(|last| last.parse().ok());
            let status: u16 = status.unwrap_or(200);
            let (length, text) = (head.len(), if head.starts_with("HEAD") { "" } else { &head });
            let answer = format!(
                "HTTP/1.1 {status} Said\r\nServer: app\r\nX-Powered-By: tests\r\nX-Own: app\r\nCache-Control: max-age=600\r\n\
                 Access-Control-Allow-Origin: https://old.test\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{text}"
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    (raw, asked)
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("index.html", "<p>home");
    tree.file("a.css", "css and more");
    tree.file("docs/index.html", "docs");
    tree.file("list/a.txt", "a");
    tree
}

fn serve(tree: &Tree, settings: &str) -> Server {
    let root = tree.path().display();
    let settings = format!("root = \"{root}\"\n{settings}");
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n")
        });
    })
}

/// One answer by HTTP/1.1, and the same by HTTP/2.
struct Both {
    http1: Client,
    http2: H2Client,
}

impl Both {
    fn to(server: &Server) -> Self {
        Self { http1: server.connect(), http2: H2Client::connect(server) }
    }

    fn ask(&mut self, method: &str, target: &str, lines: &[(&str, &str)]) -> [Response; 2] {
        let text: String =
            lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let by_1 =
            self.http1.exchange(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{text}\r\n"));
        let mut fields = h2::request(method, target);
        fields.extend_from_slice(lines);
        let id = self.http2.request(&fields, b"");
        [by_1, self.http2.response(id)]
    }
}

fn values<'r>(answer: &'r Response, name: &'r str) -> Vec<&'r str> {
    answer.values(name).collect()
}

/// On every answer of a site.
const EVERY: &str = r#"
[[site.header]]
set = { X-Own = "afpa" }
add = { Link = "</one>" }
remove = ["Server", "X-Powered-By"]
[[site.header]]
add = { Link = "</two>" }
"#;

/// The servers of two tenants may be one, which tells them apart by a field.
#[test]
fn a_field_that_goes_by_the_path_before_a_rewrite_tells_kept_answers_apart() {
    let ((app, asked), tree) = (app(), tree());
    let settings = format!(
        "[[site.header]]\nprefix = \"/t/a/\"\nrequest_set = {{ X-Tenant = \"a\" }}\n\
         [[site.path]]\nprefix = \"/t/\"\nif_path = ['~^/t/[ab]/(.*)$']\nto = \"{}\"\nrewrite = \"/{{1}}\"\n",
        app.to()
    );
    let server = serve(&tree, &settings);
    let mut client = server.connect();
    for _ in 0..2 {
        for (target, is_of_a) in [("/t/a/x", true), ("/t/b/x", false)] {
            let said = client.get(target);
            assert!(said.text().starts_with("GET /x "), "{target}: {said:?}");
            assert_eq!(said.text().contains("X-Tenant: a"), is_of_a, "{target}: {said:?}");
        }
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "they are kept");
}

/// Input that is no request belongs to the site of its host, or to the one for any host.
#[test]
fn answers_to_what_is_no_request_have_the_fields_of_the_site() {
    let (raw, _) = app();
    let server = serve(
        &tree(),
        &format!(
            "[[site.header]]\nremove = [\"Server\"]\nset = {{ X-Own = \"1\" }}\n\
             [[site.header]]\nstatus = [\"431\"]\nset = {{ X-Long = \"1\" }}\n\
             [[site.path]]\nprefix = \"/app/\"\nto = \"{}\"\n[limits]\nhead = \"4KiB\"\n",
            raw.to()
        ),
    );
    let (long, path) = ("v".repeat(5_000), "a".repeat(2_000));
    let mut both = Both::to(&server);
    for (target, line, status) in [
        ("/a.css", ("expect", "nonsense"), 417),
        ("/a.css", ("x", &*long), 431),
        (&*format!("/{path}"), ("x", "y"), 414),
    ] {
        for by in both.ask("GET", target, &[line]) {
            assert_eq!(by.status, status, "{by:?}");
            assert_eq!((by.field("server"), by.field("x-own")), (None, Some("1")), "{by:?}");
            assert_eq!(by.field("x-long").is_some(), status == 431, "{by:?}");
        }
        both = Both::to(&server);
    }
    let by = server.connect().exchange("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(
        (by.status, by.field("server"), by.field("x-own")),
        (400, None, Some("1")),
        "{by:?}"
    );
}

/// Servers of HTTP/2 in Node read only the first line of these.
#[test]
fn tags_of_several_lines_reach_a_server_in_one() {
    let (raw, _) = app();
    let server = serve(&tree(), &format!("fallback = \"{}\"\n", raw.to()));
    let lines = [
        ("if-match", "\"a\", \"b\""),
        ("if-none-match", "\"c\""),
        ("if-match", "\"d\""),
        ("if-none-match", "W/\"e\""),
    ];
    for by in Both::to(&server).ask("GET", "/app", &lines) {
        let text = by.text().to_ascii_lowercase();
        assert!(text.contains("if-match: \"a\", \"b\", \"d\"\r\n"), "{text}");
        assert!(text.contains("if-none-match: \"c\", w/\"e\"\r\n"), "{text}");
        assert_eq!(
            (text.matches("if-match").count(), text.matches("if-none-match").count()),
            (1, 1)
        );
    }
}

#[test]
fn every_kind_of_answer_has_the_fields() {
    let ((app, _), tree) = (app(), tree());
    let to = app.to();
    let dead = free_address();
    let settings = format!(
        "listing = true\nfallback = \"{to}\"\n{EVERY}
         [[site.path]]\nprefix = \"/list/\"\n
         [[site.path]]\nprefix = \"/moved/\"\nredirect = \"/\"\n
         [[site.path]]\nprefix = \"/fixed/\"\nstatus = 418\nbody = \"tea\"\n
         [[site.path]]\nprefix = \"/none/\"\nfallback = 404\n
         [[site.path]]\nprefix = \"/fresh/\"\nto = \"{to}\"\ncache = \"off\"\n
         [[site.path]]\nprefix = \"/dead/\"\nto = \"{dead}\"\n"
    );
    let server = serve(&tree, &settings);
    let mut both = Both::to(&server);
    let etag = server.get("/a.css").field("etag").expect("an ETag").to_owned();
    let current = [("if-none-match", &*etag)];
    let (one, two, late) =
        ([("range", "bytes=0-2")], [("range", "bytes=0-0,2-2")], [("range", "bytes=99-")]);
    // The second time, files and answers are kept, and names known as absent.
    for round in 0..3 {
        for (method, target, lines, status) in [
            ("GET", "/a.css", &[][..], 200),
            ("HEAD", "/a.css", &[], 200),
            ("GET", "/a.css", &current, 304),
            ("GET", "/a.css", &one, 206),
            ("GET", "/a.css", &two, 206),
            ("GET", "/a.css", &late, 416),
            ("GET", "/a.css", &[("if-match", "\"x\"")], 412),
            ("OPTIONS", "/a.css", &[], 204),
            ("DELETE", "/a.css", &[], 405),
            ("GET", "/docs", &[], 301),
            ("GET", "/list/", &[], 200),
            ("GET", "/moved/x", &[], 308),
            ("GET", "/fixed/x", &[], 418),
            ("GET", "/none/x", &[], 404),
            ("GET", "/fallback/x", &[], 200),
            ("HEAD", "/fallback/x", &[], 200),
            ("GET", "/fallback/404", &[], 404),
            ("GET", "/fresh/x", &[], 200),
            ("GET", "/fresh/503", &[], 503),
            ("GET", "/dead/x", &[], 502),
        ] {
            for by in both.ask(method, target, lines) {
                let what = format!("{round} {method} {target}: {by:?}");
                // After some failures there is no server to ask.
                let is_down = status == 502 && by.status == 503;
                assert!(by.status == status || is_down, "{what}");
                assert_eq!(values(&by, "x-own"), ["afpa"], "{what}");
                assert_eq!(values(&by, "link"), ["</one>", "</two>"], "{what}");
                assert_eq!(values(&by, "server"), [""; 0], "{what}");
                assert_eq!(values(&by, "x-powered-by"), [""; 0], "{what}");
            }
        }
    }
    let kept = server.get("/fallback/x");
    assert!(kept.field("age").is_some() && kept.field("date").is_some(), "{kept:?}");
    // Pipelined answers stay apart.
    let mut client = server.connect();
    client.send("GET /a.css HTTP/1.1\r\nHost: a\r\n\r\nGET /fallback/x HTTP/1.1\r\nHost: a\r\n\r\nGET /none/y HTTP/1.1\r\nHost: a\r\n\r\n");
    for status in [200, 200, 404] {
        let answer = client.receive();
        assert_eq!((answer.status, values(&answer, "link").len()), (status, 2), "{answer:?}");
    }
}

/// RFC 9110 section 15.3.7: Cache-Control, Expires and their like are those of the whole.
#[test]
fn parts_of_a_file_have_the_fields_of_the_whole() {
    let tree = tree();
    let server = serve(
        &tree,
        "headers = { Cache-Control = \"max-age=60\", X-File = \"1\" }\n\
         [[site.filter]]\nprefix = \"/a.css\"\nheaders = { X-Filter = \"1\", X-File = \"2\" }\n\
         [[site.header]]\nstatus = [206]\nset = { X-Filter = \"part\" }\n",
    );
    let mut both = Both::to(&server);
    let etag = server.get("/a.css").field("etag").expect("an ETag").to_owned();
    for (range, filter) in [("", "1"), ("bytes=0-1", "part"), ("bytes=0-0,2-2", "part")] {
        let lines = [("range", range)];
        let lines = if range.is_empty() { &[][..] } else { &lines };
        for by in both.ask("GET", "/a.css", lines) {
            assert_eq!(by.status, if range.is_empty() { 200 } else { 206 }, "{by:?}");
            assert_eq!(values(&by, "cache-control"), ["max-age=60"], "{by:?}");
            assert_eq!(values(&by, "x-file"), ["2"], "{by:?}");
            assert_eq!(values(&by, "x-filter"), [filter], "{by:?}");
            assert_eq!(by.field("etag"), Some(&*etag), "{by:?}");
        }
    }
}

#[test]
fn conditions_levels_and_requests_to_servers() {
    let ((app, _), tree) = (app(), tree());
    let to = app.to();
    let settings = format!(
        r#"
fallback = "/index.html"
[[site.header]]
prefix = "/docs/"
set = {{ X-Docs = "yes" }}
[[site.header]]
status = [404, "5xx"]
set = {{ Cache-Control = "no-store" }}
[[site.header]]
types = ["text/html"]
set = {{ Content-Security-Policy = "default-src 'self'" }}
[[site.header]]
prefix = "/index.html"
set = {{ X-Page = "yes" }}
[[site.header]]
set = {{ X-Level = "site" }}
request_set = {{ X-Tenant = "site" }}
[[site.path]]
prefix = "/api/"
to = "{to}"
[[site.path.header]]
set = {{ X-Level = "path" }}
request_set = {{ X-Tenant = "path" }}
request_add = {{ X-More = "2" }}
request_remove = ["Cookie", "x-secret"]
[[site.path.content]]
extensions = ["php"]
to = "{to}"
[[site.path.content.header]]
set = {{ X-Level = "group" }}
[[site.path]]
prefix = "/plain/"
fallback = 404
"#
    );
    let server = serve(&tree, &settings);
    let mut both = Both::to(&server);
    let csp = Some("default-src 'self'");
    for _ in 0..3 {
        for (target, status, docs, cache, policy, page, level) in [
            ("/", 200, None, None, csp, None, "site"),
            ("/docs/", 200, Some("yes"), None, csp, None, "site"),
            ("/a.css", 200, None, None, None, None, "site"),
            ("/index.html", 200, None, None, csp, Some("yes"), "site"),
            ("/users/42", 200, None, None, csp, Some("yes"), "site"),
            ("/plain/x", 404, None, Some("no-store"), csp, None, "site"),
            ("/api/x", 200, None, Some("max-age=600"), None, None, "path"),
            ("/api/404", 404, None, Some("no-store"), None, None, "path"),
            ("/api/503", 503, None, Some("no-store"), None, None, "path"),
            ("/api/x.php", 200, None, Some("max-age=600"), None, None, "group"),
        ] {
            for by in both.ask("GET", target, &[]) {
                let what = format!("{target}: {by:?}");
                assert_eq!(by.status, status, "{what}");
                assert_eq!(by.field("x-docs"), docs, "{what}");
                assert_eq!(by.field("cache-control"), cache, "{what}");
                assert_eq!(by.field("content-security-policy"), policy, "{what}");
                assert_eq!(by.field("x-page"), page, "{what}");
                assert_eq!(values(&by, "x-level"), [level], "{what}");
            }
        }
    }
    let mut part = server.connect();
    let part = part.get_with("/users/42", "Range: bytes=3-\r\n");
    assert_eq!((part.status, part.field("x-page")), (206, Some("yes")), "{part:?}");
    let lines = [
        ("x-tenant", "forged"),
        ("x-more", "1"),
        ("cookie", "a=b"),
        ("x-secret", "s"),
        ("accept", "b"),
    ];
    for by in both.ask("GET", "/api/asked", &lines) {
        let text = by.text().to_ascii_lowercase();
        let of = |name: &str| {
            text.lines()
                .filter(|line| line.starts_with(name))
                .map(str::trim_end)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("x-tenant:"), ["x-tenant: path"], "{text}");
        assert_eq!(of("x-more:"), ["x-more: 1", "x-more: 2"], "{text}");
        assert_eq!(
            (of("cookie:").len(), of("x-secret:").len(), of("host:").len()),
            (0, 0, 1),
            "{text}"
        );
        assert_eq!(of("accept:"), ["accept: b"], "{text}");
    }
}

#[test]
fn pages_of_listed_origins_may_read_answers() {
    let ((app, asked), tree) = (app(), tree());
    let settings = format!(
        r#"
[site.cors]
origins = ["https://app.test", "https://*.apps.test"]
credentials = true
expose = ["X-Own"]
[[site.path]]
prefix = "/api/"
to = "{to}"
[[site.path]]
prefix = "/public/"
to = "{to}"
[site.path.cors]
origins = ["*"]
methods = ["GET"]
headers = ["X-A", "X-B"]
max_age = "1m"
"#,
        to = app.to()
    );
    let server = serve(&tree, &settings);
    let mut both = Both::to(&server);
    let allowed = "access-control-allow-origin";
    for _ in 0..3 {
        for target in ["/a.css", "/api/x", "/none", "/api/404"] {
            for origin in ["https://app.test", "https://a.apps.test"] {
                for by in both.ask("GET", target, &[("origin", origin)]) {
                    assert_eq!(values(&by, allowed), [origin], "{target}: {by:?}");
                    assert_eq!(
                        by.field("access-control-allow-credentials"),
                        Some("true"),
                        "{by:?}"
                    );
                    assert_eq!(values(&by, "access-control-expose-headers"), ["X-Own"], "{by:?}");
                    assert!(by.lists("vary", "origin"), "{by:?}");
                }
            }
            for lines in [&[("origin", "https://evil.test")][..], &[("origin", "null")], &[]] {
                for by in both.ask("GET", target, lines) {
                    assert_eq!(by.field(allowed), None, "{target}: {by:?}");
                    assert_eq!(by.field("access-control-allow-credentials"), None, "{by:?}");
                    assert!(by.lists("vary", "origin"), "{by:?}");
                }
            }
        }
        for by in both.ask("GET", "/public/x", &[("origin", "https://evil.test")]) {
            assert_eq!(values(&by, allowed), ["*"], "{by:?}");
            assert!(!by.lists("vary", "origin"), "{by:?}");
        }
    }
    let before = asked.load(Ordering::Relaxed);
    let method = ("access-control-request-method", "PUT");
    let headers = ("access-control-request-headers", "x-a, content-type");
    for target in ["/a.css", "/api/x", "/public/x"] {
        for by in both.ask("OPTIONS", target, &[("origin", "https://app.test"), method, headers]) {
            let is_public = target == "/public/x";
            let (origin, methods, names, age) = match is_public {
                true => ("*", "GET", "X-A, X-B", "60"),
                false => (
                    "https://app.test",
                    "GET, HEAD, POST, PUT, PATCH, DELETE",
                    "x-a, content-type",
                    "3600",
                ),
            };
            assert_eq!((by.status, by.body.len()), (204, 0), "{target}: {by:?}");
            assert_eq!(values(&by, allowed), [origin], "{by:?}");
            assert_eq!(by.field("access-control-allow-methods"), Some(methods), "{by:?}");
            assert_eq!(by.field("access-control-allow-headers"), Some(names), "{by:?}");
            assert_eq!(by.field("access-control-max-age"), Some(age), "{by:?}");
            assert_eq!(by.lists("vary", "origin"), !is_public, "{by:?}");
        }
    }
    for by in both.ask("OPTIONS", "/api/x", &[("origin", "https://evil.test"), method]) {
        assert_eq!((by.status, by.field(allowed)), (204, None), "{by:?}");
        assert_eq!(by.field("access-control-allow-methods"), None, "{by:?}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), before, "no server is asked");
    // OPTIONS that is no preflight is the server's.
    for by in both.ask("OPTIONS", "/api/x", &[("origin", "https://app.test")]) {
        assert_eq!((by.status, values(&by, allowed)), (200, vec!["https://app.test"]), "{by:?}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), before + 2);
}

#[test]
fn a_reload_changes_the_fields_of_kept_answers_at_once() {
    let ((app, asked), tree) = (app(), tree());
    let rule = |value: &str| {
        format!("to = \"{}\"\n[[site.header]]\nset = {{ X-Own = \"{value}\" }}", app.to())
    };
    let server = serve(&tree, &rule("first"));
    let mut client = server.connect();
    eventually("the answer is kept", || {
        let before = asked.load(Ordering::Relaxed);
        assert_eq!(client.get("/kept").field("x-own"), Some("first"));
        asked.load(Ordering::Relaxed) == before
    });
    let before = asked.load(Ordering::Relaxed);
    let file = server.configuration();
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace("\"first\"", "\"second\"")).expect("written");
    server.signal(rustix::process::Signal::HUP);
    eventually("the fields are new", || client.get("/kept").field("x-own") == Some("second"));
    assert_eq!(server.get("/a.css").field("x-own"), Some("second"));
    assert_eq!(asked.load(Ordering::Relaxed), before, "the kept answer is used");
}

#[test]
fn fields_are_the_same_over_tls() {
    let ((app, _), tree, authority) = (app(), tree(), Authority::new());
    let site = format!(
        "hsts = \"max-age=60\"\n{EVERY}\n[site.cors]\norigins = [\"https://app.test\"]\n[[site.path]]\nprefix = \"/api/\"\nto = \"{}\"",
        app.to()
    );
    let server = TlsServer::with(&authority, tree.path(), Plan { site, ..Plan::default() });
    let way = authority.way(&server);
    let mut client = way.connect();
    for _ in 0..3 {
        for target in ["/a.css", "/api/x", "/none"] {
            let answer = client.get_with(target, "Origin: https://app.test\r\n");
            assert_eq!(values(&answer, "x-own"), ["afpa"], "{answer:?}");
            assert_eq!(values(&answer, "strict-transport-security"), ["max-age=60"], "{answer:?}");
            assert_eq!(answer.field("access-control-allow-origin"), Some("https://app.test"));
            assert_eq!(answer.field("server"), None, "{answer:?}");
        }
    }
}

#[test]
fn the_page_about_fields_has_a_configuration_that_does_what_it_says() {
    let ((app, _), tree) = (app(), tree());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/headers.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let root = tree.path().display().to_string();
            let site = format!("[[site]]\nlisten = [\"{listen}\"]\n");
            let example = example.replace("/srv/shop", &root).replace("[[site]]\n", &site);
            example.replace("127.0.0.1:3000", &app.to())
        });
    });
    let mut client = server.connect();
    for target in ["/", "/none", "/api/x"] {
        let answer = client.get(target);
        assert_eq!(answer.field("x-content-type-options"), Some("nosniff"), "{answer:?}");
        assert_eq!(
            (answer.field("server"), answer.field("x-powered-by")),
            (None, None),
            "{answer:?}"
        );
    }
    assert_eq!(client.get("/none").field("cache-control"), Some("no-store"));
    let answer = client.get_with("/api/x", "Origin: https://a.example.net\r\n");
    assert_eq!(answer.field("access-control-allow-origin"), Some("https://a.example.net"));
    assert!(answer.text().contains("X-Tenant: shop\r\n"), "{answer:?}");
    let file = server.configuration();
    let said = |target: &str| {
        let mut command = Command::new(program());
        let output = command.args(["route", target, "--config"]).arg(&file).output().expect("run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (file, api) = (said("/a.css"), said("/api/x"));
    assert!(
        file.contains("fields       answer: remove Server, remove X-Powered-By, set "),
        "{file}"
    );
    assert!(file.contains("set Cache-Control: no-store  (if 404 5xx)"), "{file}");
    assert!(api.contains("request: set X-Tenant: shop\n"), "{api}");
    assert!(api.contains("cors         https://app.example.org, https://*.example.net"), "{api}");
    assert!(api.contains("kernel       never answers: fields"), "{api}");
}

#[test]
fn servers_get_the_address_of_the_client_in_the_field_that_they_read() {
    let (app, _) = app();
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "http2.cleartext = true\n[[server_group]]\nname = \"app\"\nservers = [\"{}\"]\n\
                 [server_group.request]\nclient_address = \"X-Real-IP\"\n\
                 [[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\nforwarded_from = [\"127.0.0.0/8\"]\n",
                app.to()
            )
        });
    });
    let mut both = Both::to(&server);
    let cases = [
        ("/a/200", &[("x-real-ip", "192.0.2.66"), ("x_real_ip", "192.0.2.67")][..], "127.0.0.1"),
        ("/b/200", &[("x-forwarded-for", "192.0.2.66, 192.0.2.7")], "192.0.2.7"),
    ];
    for (target, lines, address) in cases {
        for response in both.ask("GET", target, lines) {
            let head = response.text().to_ascii_lowercase();
            let own = head.lines().filter(|line| line.replace('_', "-").starts_with("x-real-ip"));
            let expected = format!("x-real-ip: {address}");
            assert_eq!(own.collect::<Vec<_>>(), [expected.as_str()], "{target}: {head}");
        }
    }
}
