//! Pages of the operator's own for errors, and the forms of the built-in ones.

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

/// A server that answers `/say/NUMBER` with that status, `/page...` with a page, and other paths with what is no page. Its
/// answers may be kept. Also the heads of requests that it got for pages, and how often it was asked for something else.
struct App {
    raw: Raw,
    asked: Arc<AtomicUsize>,
}

fn app() -> App {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let raw = Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            if read_content(&mut stream, &head).is_none() {
                return;
            }
            let target = head.split(' ').nth(1).unwrap_or("").to_owned();
            let bodiless = head.starts_with("HEAD");
            let answer = match &target {
                target if target.starts_with("/page") => {
                    let page = format!("page of\n{head}");
                    let length = page.len();
                    format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/x-page\r\nETag: \"p\"\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\r\n{page}"
                    )
                }
                target if target.contains("/say/") => {
                    count.fetch_add(1, Ordering::Relaxed);
                    let status = target.rsplit('/').next().unwrap_or("");
                    let text = if bodiless { "" } else { "from the app" };
                    format!(
                        "HTTP/1.1 {status} Said\r\nCache-Control: max-age=60\r\nRetry-After: 7\r\nWWW-Authenticate: Basic realm=\"a\"\r\n\
                        Set-Cookie: a=b\r\nX-App: yes\r\nContent-Length: 12\r\n\r\n{text}"
                    )
                }
                target if target.starts_with("/coded") => {
                    "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc"
                        .to_owned()
                }
                target if target.starts_with("/moved") => {
                    "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned()
                }
                target if target.starts_with("/long") => {
                    let text = "x".repeat((1 << 20) + 1);
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
                }
                _ => {
                    let _ =
                        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
                    return;
                }
            };
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    App { raw, asked }
}

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("a.css", "css and more");
    tree.file("empty/x", "");
    tree.file("errors/404.html", "own 404");
    tree.file("errors/4xx.txt", "own 4xx");
    tree.file("errors/502.html", "own 502");
    tree
}

fn serve(tree: &Tree, settings: &str) -> Server {
    let root = tree.path().display();
    let settings = settings.replace("ERRORS", &tree.path().join("errors").display().to_string());
    let settings = format!("root = \"{root}\"\n{settings}");
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "http2.cleartext = true\n[internals]\nreread = \"50ms\"\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n"
            )
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

#[test]
fn http2_gets_the_page_of_a_server_where_a_file_was_looked_for_first() {
    let (app, tree) = (app(), tree());
    let page = format!("[[site.errors]]\nto = \"{}\"\npath = \"/page\"\n", app.raw.to());
    let server = serve(&tree, &page);
    let mut http2 = H2Client::connect(&server);
    for target in ["/absent", "/absent", "/a.css/absent", "/empty/absent"] {
        let id = http2.request(&h2::request("GET", target), b"");
        let answer = http2.response(id);
        assert_eq!(answer.status, 404, "{target}");
        assert!(answer.text().starts_with("page of"), "{target}: {}", answer.text());
    }
}

#[test]
fn each_error_has_the_page_of_its_status_and_place() {
    let (app, tree, dead) = (app(), tree(), free_address());
    let to = app.raw.to();
    let settings = format!(
        r#"
[[site.header]]
set = {{ X-Own = "afpa" }}
[[site.errors]]
status = ["4xx"]
file = "ERRORS/4xx.txt"
[[site.errors]]
status = [404, "5xx"]
file = "ERRORS/{{status}}.html"
[[site.errors]]
status = [403]
file = "ERRORS/404.html"
answer = 404
[[site.path]]
prefix = "/dead/"
to = "{dead}"
[[site.path]]
prefix = "/asks/"
[[site.path.errors]]
to = "{to}"
path = "/page?code={{status}}"
[[site.path]]
prefix = "/mild/"
to = "{dead}"
[[site.path.errors]]
to = "{to}"
path = "/page"
answer = 200
[[site.path]]
prefix = "/gone/"
status = 410
[[site.path]]
prefix = "/tea/"
status = 418
body = "tea"
[[site.path]]
prefix = "/plain/"
[[site.path.errors]]
status = [404]
[[site.path]]
prefix = "/limited/"
to = "{to}"
"#
    );
    let server = serve(&tree, &settings);
    let mut both = Both::to(&server);
    let asks = "page of\nGET /page?code=";
    for round in 0..3 {
        for (method, target, lines, status, field, content) in [
            ("GET", "/none", &[][..], 404, ("content-type", "text/html"), "own 404"),
            ("HEAD", "/none", &[], 404, ("content-length", "7"), ""),
            ("GET", "/none", &[("accept", "application/json")], 404, ("x-own", "afpa"), "own 404"),
            ("GET", "/empty/", &[], 404, ("content-length", "7"), "own 404"),
            ("DELETE", "/a.css", &[], 405, ("allow", "GET"), "own 4xx"),
            (
                "GET",
                "/a.css",
                &[("range", "bytes=99-")],
                416,
                ("content-range", "bytes */12"),
                "own 4xx",
            ),
            (
                "GET",
                "/a.css",
                &[("if-match", "\"x\"")],
                412,
                ("content-type", "text/plain"),
                "own 4xx",
            ),
            ("GET", "/dead/x", &[], 502, ("cache-control", "no-store"), "own 502"),
            ("GET", "/gone/x", &[], 410, ("x-own", "afpa"), "own 4xx"),
            ("GET", "/tea/x", &[], 418, ("x-own", "afpa"), "tea"),
            ("GET", "/asks/x", &[("x-mine", "1")], 404, ("content-type", "text/x-page"), asks),
            ("HEAD", "/asks/x", &[], 404, ("x-own", "afpa"), ""),
            ("PUT", "/asks/x", &[], 405, ("allow", "GET"), asks),
            ("GET", "/mild/x", &[], 200, ("content-type", "text/x-page"), "page of\nGET /page "),
            ("GET", "/mild/y", &[], 200, ("cache-control", "no-store"), "page of\nGET /page "),
            ("GET", "/plain/x", &[], 404, ("vary", "Accept"), "<!DOCTYPE html>"),
            ("GET", "/a.css", &[], 200, ("x-own", "afpa"), "css and more"),
        ] {
            for by in both.ask(method, target, lines) {
                let what = format!("{round} {method} {target}: {by:?}");
                // After some failures there is no server to ask, and no page for that.
                if status == 502 && by.status == 503 {
                    continue;
                }
                assert_eq!(by.status, status, "{what}");
                assert!(by.field(field.0).is_some_and(|value| value.contains(field.1)), "{what}");
                assert!(by.text().starts_with(content), "{what}");
                assert_eq!(by.field("etag").filter(|_| status > 400), None, "{what}");
            }
        }
    }
    let answer = server
        .connect()
        .get_with("/asks/x", "X-Mine: 1\r\nRange: bytes=0-1\r\nAccept-Encoding: br\r\n");
    let text = answer.text().to_ascii_lowercase();
    assert!(text.contains("x-mine: 1\r\n") && !text.contains("range:"), "{answer:?}");
    assert!(!text.contains("accept-encoding:") && text.contains("code=404 http"), "{answer:?}");
    // Content that was not read is skipped behind the page of a server, and pipelined answers stay apart.
    let mut client = server.connect();
    client.send("POST /asks/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /asks/y HTTP/1.1\r\nHost: a\r\n\r\nGET /a.css HTTP/1.1\r\nHost: a\r\n\r\n");
    let statuses = [405, 404, 200].map(|_| client.receive().status);
    assert_eq!(statuses, [405, 404, 200]);
}

#[test]
fn errors_of_servers_are_replaced_where_that_is_switched_on() {
    let (app, tree) = (app(), tree());
    let to = app.raw.to();
    let settings = format!(
        r#"
[site.cache]
mode = "auto"
[[site.path]]
prefix = "/say/"
to = "{to}"
[[site.path.errors]]
status = [404, 401]
file = "ERRORS/404.html"
intercept = true
[[site.path.errors]]
status = ["5xx"]
to = "{to}"
path = "/page/{{status}}"
intercept = true
[[site.path.errors]]
status = [500]
file = "ERRORS/502.html"
[[site.path]]
prefix = "/say/fresh/"
to = "{to}"
cache = "off"
[[site.path.errors]]
status = ["4xx", "5xx"]
intercept = true
[[site.path]]
prefix = "/say/some/"
to = "{to}"
[[site.path.errors]]
status = ["4xx", "5xx"]
file = "ERRORS/{{status}}.html"
intercept = true
[[site.path]]
prefix = "/say/as-it-is/"
to = "{to}"
"#
    );
    let server = serve(&tree, &settings);
    let mut both = Both::to(&server);
    for round in 0..3 {
        for (method, target, status, begin) in [
            ("GET", "/say/404", 404, "own 404"),
            ("HEAD", "/say/404", 404, ""),
            ("POST", "/say/404", 404, "own 404"),
            ("GET", "/say/401", 401, "own 404"),
            ("GET", "/say/503", 503, "page of\nGET /page/503 "),
            ("GET", "/say/500", 500, "from the app"),
            ("GET", "/say/403", 403, "from the app"),
            ("GET", "/say/fresh/404", 404, "<!DOCTYPE html>"),
            ("GET", "/say/some/404", 404, "own 404"),
            ("GET", "/say/some/403", 403, "from the app"),
            ("GET", "/say/some/503", 503, "from the app"),
            ("GET", "/say/as-it-is/404", 404, "from the app"),
            ("GET", "/say/200", 200, "from the app"),
        ] {
            for by in both.ask(method, target, &[]) {
                let what = format!("{round} {method} {target}: {by:?}");
                assert_eq!(by.status, status, "{what}");
                assert!(by.text().starts_with(begin), "{what}");
                assert_eq!(by.field("retry-after"), Some("7"), "{what}");
                assert_eq!(by.field("www-authenticate"), Some("Basic realm=\"a\""), "{what}");
                assert_eq!(by.field("set-cookie"), Some("a=b"), "{what}");
                let is_own = begin != "from the app";
                assert_eq!(by.field("x-app").is_some(), !is_own, "{what}");
            }
        }
    }
    // A replaced answer is not kept, another one may be.
    let asked = |target: &str| {
        let before = app.asked.load(Ordering::Relaxed);
        (0..3).for_each(|_| drop(server.get(target)));
        app.asked.load(Ordering::Relaxed) - before
    };
    assert_eq!(asked("/say/404"), 3);
}

#[test]
fn a_page_that_cannot_be_had_is_the_built_in_one_and_nothing_goes_round() {
    let (app, tree, dead) = (app(), tree(), free_address());
    let to = app.raw.to();
    let mut settings = String::new();
    let kinds = ["short", "coded", "moved", "long", "say/500", "say/404"];
    for kind in kinds {
        settings += &format!(
            "[[site.path]]\nprefix = \"/{kind}/\"\n[[site.path.errors]]\nto = \"{to}\"\npath = \"/{kind}\"\n"
        );
    }
    settings += &format!(
        "[[site.path]]\nprefix = \"/dead/\"\nto = \"{dead}\"\n[[site.path.errors]]\nto = \"{dead}\"\n\
         [[site.path]]\nprefix = \"/own/\"\n[[site.path.errors]]\nto = \"LISTEN\"\npath = \"/own/none\"\n"
    );
    let root = tree.path().display().to_string();
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let settings = settings.replace("LISTEN", &listen.to_string());
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\n{settings}")
        });
    });
    let mut both = Both::to(&server);
    for kind in kinds.iter().chain(&["own", "dead"]) {
        for by in both.ask("GET", &format!("/{kind}/x"), &[("accept", "application/json")]) {
            let is_down = *kind == "dead" && matches!(by.status, 502 | 503);
            assert!(by.status == 404 || is_down, "{kind}: {by:?}");
            assert_eq!(
                by.field("content-type"),
                Some("application/problem+json"),
                "{kind}: {by:?}"
            );
            let problem: serde_json::Value = serde_json::from_str(by.text()).expect("JSON");
            assert_eq!(problem["status"], by.status, "{kind}: {by:?}");
        }
    }
}

#[test]
fn built_in_errors_have_the_form_that_the_client_asks_for() {
    let tree = tree();
    let server = serve(&tree, "");
    let mut both = Both::to(&server);
    for (accept, kind, begin) in [
        ("*/*", "text/html; charset=utf-8", "<!DOCTYPE html>"),
        ("application/json", "application/problem+json", "{\"type\":\"about:blank\","),
        ("application/problem+json", "application/problem+json", "{\"type\":\"about:blank\","),
        ("text/plain", "text/plain; charset=utf-8", "404 Not Found\n"),
    ] {
        for (method, target, status) in
            [("GET", "/none", 404), ("HEAD", "/none", 404), ("PUT", "/a.css", 405)]
        {
            for by in both.ask(method, target, &[("accept", accept)]) {
                assert_eq!(by.status, status, "{by:?}");
                assert_eq!(by.field("content-type"), Some(kind), "{by:?}");
                assert_eq!(by.field("vary"), Some("Accept"), "{by:?}");
                let begin = begin.replace(
                    "404 Not Found",
                    if status == 404 { "404 Not Found" } else { "405 Method Not Allowed" },
                );
                let length = by.field("content-length").map(str::to_owned);
                match method {
                    "HEAD" => assert!(by.text().is_empty() && length.is_some(), "{by:?}"),
                    _ => {
                        assert!(by.text().starts_with(&begin), "{by:?}");
                        assert_eq!(length, Some(by.text().len().to_string()), "{by:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_built_in_page_in_the_place_of_another_error_tells_nothing_of_that() {
    let tree = tree();
    let dead = free_address();
    let settings = format!(
        "[[site.errors]]\nstatus = [403]\nanswer = 404\n\
         [[site.errors]]\nstatus = [405]\nto = \"{dead}\"\nanswer = 404\n\
         [[site.errors]]\nstatus = [410]\nanswer = 200\n\
         [[site.path]]\nprefix = \"/shut/\"\ndeny = [\"0.0.0.0/0\"]\n\
         [[site.path]]\nprefix = \"/gone/\"\nstatus = 410\n"
    );
    let server = serve(&tree, &settings);
    let mut both = Both::to(&server);
    for accept in ["text/html", "application/json", "text/plain"] {
        let accept = [("accept", accept)];
        let [none, _] = both.ask("GET", "/none", &accept);
        for (method, target) in [("GET", "/shut/x"), ("PUT", "/a.css")] {
            for by in both.ask(method, target, &accept) {
                assert_eq!((by.status, by.text()), (404, none.text()), "{target}: {by:?}");
            }
        }
        for by in both.ask("GET", "/gone/", &accept) {
            assert!(by.status == 200 && by.text().contains("410"), "{by:?}");
        }
    }
}

#[test]
fn error_pages_are_the_same_over_tls() {
    let (app, tree, authority) = (app(), tree(), Authority::new());
    let file = tree.path().join("errors/404.html").display().to_string();
    let site = format!(
        "hsts = \"max-age=60\"\n[[site.errors]]\nstatus = [404]\nfile = \"{file}\"\n\
         [[site.path]]\nprefix = \"/asks/\"\n[[site.path.errors]]\nto = \"{}\"\npath = \"/page\"\n",
        app.raw.to()
    );
    let server = TlsServer::with(&authority, tree.path(), Plan { site, ..Plan::default() });
    let way = authority.way(&server);
    let mut client = way.connect();
    for (target, begin) in [("/none", "own 404"), ("/asks/x", "page of\nGET /page ")] {
        let answer = client.get(target);
        assert_eq!(answer.status, 404, "{answer:?}");
        assert_eq!(answer.field("strict-transport-security"), Some("max-age=60"), "{answer:?}");
        assert!(answer.text().starts_with(begin), "{answer:?}");
    }
}

#[test]
fn the_page_about_errors_has_a_configuration_that_does_what_it_says() {
    let (app, errors, tree) = (app(), app(), tree());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/errors.md");
    let page = fs::read_to_string(page).expect("the page");
    assert!(page.lines().count() <= 30, "it is one page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    let folder = tree.path().join("errors").display().to_string();
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let root = tree.path().display().to_string();
            let site =
                format!("[internals]\nreread = \"50ms\"\n[[site]]\nlisten = [\"{listen}\"]\n");
            let example = example.replace("/srv/shop", &root).replace("[[site]]\n", &site);
            let example = example.replace("\"errors/", &format!("\"{folder}/"));
            let example = example.replace("\"/errors?", "\"/page?");
            example
                .replace("127.0.0.1:3000", &app.raw.to())
                .replace("127.0.0.1:3001", &errors.raw.to())
        });
    });
    let mut client = server.connect();
    let mut said = |target: &str| {
        let answer = client.get(target);
        (answer.status, answer.text().lines().take(2).collect::<Vec<_>>().join("|"))
    };
    assert_eq!(said("/none"), (404, "own 404".to_owned()));
    assert_eq!(said("/empty/"), (404, "own 404".to_owned()));
    let (status, text) = said("/api/say/404");
    assert!(status == 404 && text.starts_with("page of|GET /page?code=404 "), "{text}");
    let (status, text) = said("/api/say/502");
    assert!(status == 502 && text.starts_with("from the app"), "{text}");
    let file = server.configuration();
    let route = |target: &str| {
        let mut command = Command::new(program());
        let output = command.args(["route", target, "--config"]).arg(&file).output().expect("run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (site, api) = (route("/a.css"), route("/api/x"));
    assert!(site.contains(&format!("errors       404: {folder}/{{status}}.html\n")), "{site}");
    assert!(site.contains(&format!("403: {folder}/404.html, as 404\n")), "{site}");
    assert!(
        api.contains(", asked for /page?code={status}, also for servers' own errors\n"),
        "{api}"
    );

    // A changed file is read again, and one that is gone stays as it was.
    tree.file("errors/404.html", "new 404");
    eventually("the new page", || client.get("/none").text() == "new 404");
    fs::remove_file(tree.path().join("errors/404.html")).expect("remove");
    eventually("the message", || server.log().contains("an error page cannot be read again"));
    assert_eq!(client.get("/none").text(), "new 404");
    // A reload finds that it is missing: the running configuration stays.
    server.signal(rustix::process::Signal::HUP);
    eventually("the reload", || server.log().contains("the reload failed"));
    let log = server.log();
    assert!(log.contains("cannot read the error page") && log.contains("create the file"), "{log}");
    assert_eq!(client.get("/none").text(), "new 404");
}
