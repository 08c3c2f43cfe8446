//! A file if there is one, else something else: another file, a server, a status.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Response, Running, Server, Tree, eventually};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};
use afpa_tests::tls::{Authority, Plan, TlsServer};

/// A server that says what it was asked, with the length of the content, and counts the requests.
struct App {
    raw: Raw,
    asked: Arc<AtomicUsize>,
}

impl App {
    fn start() -> Self {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let raw = Raw::start(move |mut stream: TcpStream| {
            while let Some(head) = read_head(&mut stream) {
                let Some(content) = read_content(&mut stream, &head) else { return };
                count.fetch_add(1, Ordering::Relaxed);
                let mut words = head.split(' ');
                let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
                let text = format!("app {method} {target} {}", content.len());
                let length = text.len();
                let text = if method == "HEAD" { String::new() } else { text };
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {length}\r\n\r\n{text}"
                );
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
        Self { raw, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// A tree with files of every kind that matters here.
fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("index.html", "<p>home");
    tree.file("a.css", "css");
    tree.file("images/a.png", "png");
    tree.file("docs/index.html", "docs");
    tree.file(".env", "secret");
    tree.file("denied.txt", "denied");
    tree.set_mode("denied.txt", 0o000);
    tree.outside("elsewhere", "outside");
    tree.link("out.txt", "../elsewhere");
    tree
}

/// A server with this tree, and `settings` of its site; without the shared cache of answers unless they say so.
fn serve(tree: &Tree, settings: &str) -> Server {
    let root = tree.path().display();
    let settings = format!("root = \"{root}\"\n{settings}");
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n")
        });
    })
}

fn ask(client: &mut Client, method: &str, target: &str, lines: &str, content: &str) -> Response {
    client.exchange(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n{content}"))
}

/// Method, target, content; status and content of the answer. Each is asked twice: the second time the core knows the
/// name as absent.
type Case = (&'static str, &'static str, usize, u16, &'static str);

/// With a server as the fallback.
const BY_SERVER: &[Case] = &[
    ("GET", "/a.css", 0, 200, "css"),
    ("GET", "/%61.css", 0, 200, "css"),
    ("GET", "/", 0, 200, "<p>home"),
    ("GET", "/docs/", 0, 200, "docs"),
    ("GET", "/users/42", 0, 200, "app GET /users/42 0"),
    ("GET", "/users/42/", 0, 200, "app GET /users/42/ 0"),
    ("GET", "/socket.io/x.js?a=b&c=%20", 0, 200, "app GET /socket.io/x.js?a=b&c=%20 0"),
    ("GET", "/a%20b/%C3%A9;c%3Bd", 0, 200, "app GET /a%20b/%C3%A9;c%3Bd 0"),
    // ENOTDIR and ENAMETOOLONG are "not there" ...
    ("GET", "/a.css/x", 0, 200, "app GET /a.css/x 0"),
    ("GET", "/a.css/", 0, 200, "app GET /a.css/ 0"),
    // ... and so is a directory that has no answer of its own.
    ("GET", "/images", 0, 200, "app GET /images 0"),
    ("GET", "/images/", 0, 200, "app GET /images/ 0"),
    ("GET", "/.env", 0, 200, "app GET /.env 0"),
    ("POST", "/users/42", 3, 200, "app POST /users/42 3"),
    ("POST", "/images/", 100_000, 200, "app POST /images/ 100000"),
    // More than AFPA throws away for a request that no server gets.
    ("PUT", "/large", 3_000_000, 200, "app PUT /large 3000000"),
    ("DELETE", "/users/42", 0, 200, "app DELETE /users/42 0"),
    ("OPTIONS", "/users/42", 0, 200, "app OPTIONS /users/42 0"),
    ("PROPFIND", "/users/42", 0, 200, "app PROPFIND /users/42 0"),
    // On what is there, these methods get what they get without a fallback.
    ("POST", "/a.css", 3, 405, ""),
    // The window of a connection of HTTP/2 has room again after each.
    ("POST", "/a.css", 40_000, 405, ""),
    ("POST", "/users/43", 40_000, 200, "app POST /users/43 40000"),
    ("POST", "/docs", 3, 405, ""),
    ("OPTIONS", "/a.css", 0, 204, ""),
    ("PROPFIND", "/a.css", 0, 501, ""),
    // A file that is there and refused is not absent.
    ("GET", "/out.txt", 0, 403, ""),
    // No file has a slash in its name.
    ("GET", "/%2F", 0, 200, "app GET /%2F 0"),
    ("GET", "/@scope%2fname", 0, 200, "app GET /@scope%2Fname 0"),
    ("GET", "/images%2Fa.png", 0, 200, "app GET /images%2Fa.png 0"),
    ("GET", "/docs%2F", 0, 200, "app GET /docs%2F 0"),
    ("GET", "/images/..%2Fa.css", 0, 400, ""),
    ("GET", "/%00", 0, 400, ""),
];

/// The first window of a stream of HTTP/2.
const WINDOW: usize = 65_535;

#[test]
fn a_server_is_asked_for_what_is_no_file() {
    let (app, tree) = (App::start(), tree());
    let server = serve(&tree, &format!("fallback = \"{}\"\ncache.mode = \"off\"", app.raw.to()));
    for _ in 0..2 {
        let (mut http1, mut http2) = (server.connect(), H2Client::connect(&server));
        http2.open_wide();
        for (method, target, length, status, text) in BY_SERVER {
            let content = "x".repeat(*length);
            let lines =
                if *length > 0 { format!("Content-Length: {length}\r\n") } else { String::new() };
            let by_1 = ask(&mut http1, method, target, &lines, &content);
            // The client of HTTP/2 heeds no window.
            let by_2 = (*length < WINDOW).then(|| {
                let mut fields = h2::request(method, target);
                let length = length.to_string();
                if length != "0" {
                    fields.push(("content-length", &length));
                }
                let id = http2.request(&fields, content.as_bytes());
                http2.response(id)
            });
            for by in [Some(by_1), by_2].into_iter().flatten() {
                assert_eq!(by.status, *status, "{method} {target}: {by:?}");
                assert!(by.text().starts_with(text), "{method} {target}: {by:?}");
                let allow = (*status == 405).then_some("GET, HEAD, OPTIONS");
                assert!(allow.is_none() || by.field("allow") == allow, "{by:?}");
            }
        }
        let chunked = "Transfer-Encoding: chunked\r\n";
        let chunks = ask(&mut http1, "POST", "/chunks", chunked, "3\r\nabc\r\n0\r\n\r\n");
        assert!(chunks.text().starts_with("app POST /chunks "), "{chunks:?}");
        let redirect = http1.get("/docs?a");
        assert_eq!((redirect.status, redirect.field("location")), (301, Some("/docs/?a")));
        let head = ask(&mut http1, "HEAD", "/users/42", "", "");
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.field("content-length"), Some("20"));
        let long = format!("/{}", "n".repeat(300));
        assert_eq!(http1.get(&long).text(), format!("app GET {long} 0"));
        if !rustix::process::geteuid().is_root() {
            assert_eq!(http1.get("/denied.txt").status, 403);
        }
        // Pipelined requests keep their order, whoever answers them.
        http1.send("GET /p1 HTTP/1.1\r\nHost: a\r\n\r\nGET /a.css HTTP/1.1\r\nHost: a\r\n\r\nPOST /p2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab");
        let texts = [(); 3].map(|()| http1.receive().text().to_owned());
        assert_eq!(texts, ["app GET /p1 0", "css", "app POST /p2 2"]);
    }
}

#[test]
fn content_beyond_the_limit_is_refused_where_there_is_a_file() {
    let (app, tree) = (App::start(), tree());
    let server = serve(&tree, &format!("fallback = \"{}\"", app.raw.to()));
    let mut client = server.connect();
    client.send("PUT /a.css HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
    assert_eq!(client.receive().status, 413);
    assert_eq!(app.asked(), 0);
    assert_eq!(server.get("/a.css").text(), "css");
}

#[test]
fn a_file_that_comes_or_goes_decides_at_once() {
    let (app, tree) = (App::start(), tree());
    let settings = format!(
        "fallback = \"{}\"\n[[site.path]]\nprefix = \"/spa/\"\nfallback = \"/index.html\"",
        app.raw.to()
    );
    let server = serve(&tree, &settings);
    tree.dir("spa");
    let mut client = server.connect();
    for (target, without) in [("/new.css", "app GET /new.css 0"), ("/spa/new.css", "<p>home")] {
        for round in 0..3 {
            let before = client.get(target);
            assert_eq!(before.text(), without, "{target}");
            assert_eq!(client.get(target).text(), without, "{target}: known as absent");
            let content = format!("file {round}");
            tree.file(&target[1..], &content);
            eventually("the file is served", || client.get(target).text() == content);
            // A validator of the fallback says nothing about the file.
            let etag = before.field("etag").unwrap_or("\"none\"");
            let lines = format!("If-None-Match: {etag}\r\n");
            assert_eq!(client.get_with(target, &lines).text(), content);
            tree.remove(&target[1..]);
            eventually("the fallback answers", || client.get(target).text() == without);
        }
    }
}

#[test]
fn a_single_page_application_has_one_page_for_all_paths() {
    let (tree, root) = (tree(), Tree::new());
    root.file("start.html", "start");
    let settings = format!(
        "fallback = \"/index.html\"\n\
         [[site.path]]\nprefix = \"/gone/\"\nfallback = 410\n\
         [[site.path]]\nprefix = \"/own/\"\nroot = \"{0}\"\n\
         [[site.path]]\nprefix = \"/app/\"\nroot = \"{0}\"\nfallback = 404\n\
         [[site.path.content]]\nextensions = [\"none\"]\nfallback = \"/start.html\"\n\
         [[site.path.content]]\nextensions = [\"others\"]\n",
        root.path().display()
    );
    tree.file("index.html.gz", "gzip");
    let server = serve(&tree, &settings);
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    let page = client.get("/");
    for _ in 0..2 {
        for (target, status, text) in [
            ("/users/42", 200, "<p>home"),
            ("/users/42/", 200, "<p>home"),
            ("/images", 200, "<p>home"),
            ("/images/", 200, "<p>home"),
            ("/images/a.png", 200, "png"),
            ("/a.css/x", 200, "<p>home"),
            ("/.env", 404, ""),
            ("/x/.hidden/y", 404, ""),
            ("/out.txt", 403, ""),
            ("/gone/x", 410, ""),
            ("/own/x", 404, ""),
            ("/app/some/where", 200, "start"),
            ("/app/some.js", 404, ""),
        ] {
            for by in [client.get(target), http2.get(target)] {
                assert_eq!(by.status, status, "{target}: {by:?}");
                assert!(by.text().starts_with(text), "{target}: {by:?}");
            }
        }
        // A status is for every method; the content of the request is read.
        for (method, length, status) in [
            ("POST", 3, 410),
            ("PUT", 40_000, 410),
            ("DELETE", 0, 410),
            ("PROPFIND", 0, 410),
            ("OPTIONS", 0, 204),
        ] {
            let content = "x".repeat(length);
            let head =
                format!("{method} /gone/x HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n");
            let answer = client.exchange(format!("{head}\r\n{content}"));
            assert_eq!(answer.status, status, "{method}: {answer:?}");
        }
        let mut large = server.connect();
        large.send(b"POST /gone/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
        let answer = large.receive();
        assert!(answer.status == 413 && answer.says_close(), "{answer:?}");
        let users = client.get("/users/42");
        for name in ["etag", "last-modified", "content-type", "vary"] {
            assert_eq!(users.field(name), page.field(name), "{name}");
        }
        let etag = format!("If-None-Match: {}\r\n", users.field("etag").expect("an ETag"));
        assert_eq!(client.get_with("/users/43", &etag).status, 304);
        let part = client.get_with("/users/44", "Range: bytes=3-\r\n");
        assert_eq!((part.status, part.text()), (206, "home"));
        let coded = client.get_with("/users/45", "Accept-Encoding: gzip\r\n");
        assert_eq!((coded.field("content-encoding"), coded.text()), (Some("gzip"), "gzip"));
        let head = client.head_with("/users/46", "");
        assert_eq!((head.status, head.field("content-length")), (200, Some("7")));
        let posted = ask(&mut client, "POST", "/users/47", "Content-Length: 1\r\n", "x");
        assert_eq!((posted.status, posted.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
    }
    let first = page.field("etag").map(str::to_owned);
    tree.replace("index.html", "<p>another");
    tree.remove("index.html.gz");
    eventually("the page changes for all paths", || client.get("/users/42").text() == "<p>another");
    assert_ne!(client.get("/users/42").field("etag").map(str::to_owned), first);
    tree.remove("index.html");
    eventually("there is no page", || client.get("/users/42").status == 404);
}

#[test]
fn answers_of_a_fallback_are_kept_until_there_is_a_file() {
    let (app, tree) = (App::start(), tree());
    let server = serve(&tree, &format!("fallback = \"{}\"", app.raw.to()));
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    assert_eq!(client.get("/kept").text(), "app GET /kept 0");
    eventually("the answer is kept", || {
        let before = app.asked();
        let texts = [client.get("/kept"), http2.get("/kept")].map(|by| by.text().to_owned());
        assert_eq!(texts, ["app GET /kept 0", "app GET /kept 0"]);
        app.asked() == before
    });
    tree.file("kept", "file");
    eventually("the file is served", || client.get("/kept").text() == "file");
    tree.remove("kept");
    eventually("the fallback answers", || client.get("/kept").text() == "app GET /kept 0");
    // An unsafe method drops it.
    let posted = client.exchange("POST /kept HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(posted.text(), "app POST /kept 0");
    let before = app.asked();
    assert_eq!(client.get("/kept").text(), "app GET /kept 0");
    assert_eq!(app.asked(), before + 1);
}

#[test]
fn a_fallback_is_the_same_over_tls() {
    let (app, tree, authority) = (App::start(), tree(), Authority::new());
    let site = format!("fallback = \"{}\"", app.raw.to());
    let server = TlsServer::with(&authority, tree.path(), Plan { site, ..Plan::default() });
    let way = authority.way(&server);
    let mut client = way.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/a.css").text(), "css");
        assert_eq!(client.get("/users/42").text(), "app GET /users/42 0");
        let posted = ask(&mut client, "POST", "/users/42", "Content-Length: 3\r\n", "abc");
        assert_eq!(posted.text(), "app POST /users/42 3");
    }
}

/// `afpa`, listening there.
fn run(arguments: &[&str], tree: &Tree) -> (Running, Client) {
    let listen = free_address();
    let mut command = Command::new(program());
    command.args(arguments).args(["--fast-path", "off", "--listen", &listen.to_string()]);
    command.arg("--control").arg(tree.at("../control.sock"));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let child = Running::start(&mut command);
    eventually("it listens", || Client::connect(&Endpoint::Tcp(listen)).is_ok());
    (child, Client::connect(&Endpoint::Tcp(listen)).expect("connected"))
}

#[test]
fn the_command_line_has_fallbacks() {
    let app = App::start();
    let to = app.raw.to();
    for (command, to, cases) in [
        (
            "proxy",
            &["--to", &to][..],
            [("/socket.io/x.js", "app GET /socket.io/x.js 0"), ("/a.css", "css")],
        ),
        (
            "proxy",
            &["--to", &to, "--fallback", "404"][..],
            [("/x.js", ""), ("/page", "app GET /page 0")],
        ),
        (
            "serve",
            &["--fallback", "/index.html"][..],
            [("/users/42", "<p>home"), ("/a.css", "css")],
        ),
        (
            "serve",
            &["--fallback", &to][..],
            [("/users/42", "app GET /users/42 0"), ("/a.css", "css")],
        ),
    ] {
        let tree = tree();
        let root = tree.path().display().to_string();
        let root = if command == "proxy" { vec!["--root", &root] } else { vec![&*root] };
        let (_child, mut client) = run(&[&[command][..], &root[..], to].concat(), &tree);
        for (target, text) in cases {
            let answer = client.get(target);
            assert_eq!(answer.status, if text.is_empty() { 404 } else { 200 }, "{answer:?}");
            assert!(answer.text().starts_with(text), "{command} {to:?}: {answer:?}");
        }
    }
}

#[test]
fn route_says_what_decides() {
    let (app, tree) = (App::start(), tree());
    let settings = format!("fallback = \"{}\"", app.raw.to());
    let server = serve(&tree, &settings);
    let file = server.configuration();
    let said = |target: &str| {
        let mut command = Command::new(program());
        let output = command.args(["route", target, "--config"]).arg(&file).output().expect("run");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let (there, absent) = (said("/a.css"), said("/users/42"));
    let to = app.raw.to();
    assert!(
        there.contains(&format!("fallback     distributed to {to}  (when the file")),
        "{there}"
    );
    assert!(there.contains("kernel       may answer with the file"), "{there}");
    assert!(absent.contains(&format!("fallback     distributed to {to}  (now:")), "{absent}");
    assert!(absent.contains("kernel       never answers"), "{absent}");
}
