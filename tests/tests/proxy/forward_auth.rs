//! Servers that say whether requests may be answered.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Running, Server, Tree, eventually, eventually_within};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head, switched};

/// A server that writes down what it is asked.
struct Asked {
    raw: Raw,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Asked {
    /// `answer`: from the head and the content of a request; `None`: the connection ends.
    fn start(answer: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static) -> Self {
        let heads = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heads);
        let raw = Raw::start(move |mut stream: TcpStream| {
            while let Some(head) = read_head(&mut stream) {
                all.lock().expect("whole").push(head.clone());
                if head.contains("100-continue") {
                    let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
                let Some(content) = read_content(&mut stream, &head) else { return };
                let Some(answer) = answer(&head, &content) else { return };
                let is_last =
                    answer.starts_with("HTTP/1.1 101") || answer.contains("Connection: close");
                if stream.write_all(answer.as_bytes()).is_err() || is_last {
                    return;
                }
            }
        });
        Self { raw, heads }
    }

    fn to(&self) -> String {
        self.raw.to()
    }

    /// The heads of the requests since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.heads.lock().expect("whole"))
    }
}

fn answered(status: u16, lines: &str, content: &str) -> Option<String> {
    Some(format!(
        "HTTP/1.1 {status} -\r\n{lines}Content-Length: {}\r\n\r\n{content}",
        content.len()
    ))
}

/// The value of a field in a head; `-`: it has none.
fn field<'h>(head: &'h str, name: &str) -> &'h str {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .into_iter()
        .find(|(own, _)| own.eq_ignore_ascii_case(name))
        .map_or("-", |(_, value)| value)
}

/// An application that says what it got, and lets its answers be kept.
fn app() -> Asked {
    Asked::start(|head, content| {
        if field(head, "Upgrade") == "websocket" {
            return Some(switched(head) + &format!("user {}", field(head, "Remote-User")));
        }
        let target = head.split(' ').nth(1).unwrap_or("");
        let status = if target.starts_with("/app/fails") { 500 } else { 200 };
        let user = field(head, "Remote-User");
        let text = format!("app {target} {user} {} {content}", field(head, "Remote-Groups"));
        answered(status, "Cache-Control: public, max-age=600\r\n", &text)
    })
}

/// A server that knows ann by her cookie, and lets a nameless client in.
fn portal() -> Asked {
    Asked::start(|head, _| match field(head, "Cookie") {
        "session=ann" => {
            answered(200, "Remote-User: ann\r\nRemote-Groups: staff\r\nRemote-Secret: x\r\n", "ok")
        }
        "session=nameless" => {
            answered(204, "", "").map(|text| text.replace("Content-Length: 0\r\n", ""))
        }
        "session=fresh" => answered(202, "set-cookie: a=1\r\nSet-Cookie: b=2; Secure\r\n", "ok"),
        _ => answered(401, "WWW-Authenticate: Bearer\r\n", "who are you?"),
    })
}

/// The same in a real server: ann has a cookie, browsers are sent to a page, and others get 401.
const PYTHON: &str = r#"
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Portal(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        said = self.headers
        if said["X-Forwarded-Uri"].startswith("/app/no"):
            self.say(403, [], "no")
        elif "session=ann" in (said["Cookie"] or ""):
            self.say(200, [("Remote-User", "ann"), ("Remote-Groups", "staff")], "ok")
        elif "text/html" in (said["Accept"] or ""):
            to = "https://login.test/?rd=" + said["X-Original-URL"]
            self.say(302, [("Location", to), ("Set-Cookie", "rd=1"), ("Set-Cookie", "x=2")], "")
        else:
            self.say(401, [("WWW-Authenticate", 'Basic realm="portal"')], "who are you?")
    def say(self, status, fields, text):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *args):
        pass

ThreadingHTTPServer((sys.argv[2], int(sys.argv[1])), Portal).serve_forever()
"#;

const NODE: &str = r#"
require("http").createServer((asked, answer) => {
  const said = asked.headers;
  if (said["x-forwarded-uri"].startsWith("/app/no")) {
    answer.writeHead(403).end("no");
  } else if ((said.cookie || "").includes("session=ann")) {
    answer.writeHead(200, { "Remote-User": "ann", "Remote-Groups": "staff" }).end("ok");
  } else if ((said.accept || "").includes("text/html")) {
    const to = "https://login.test/?rd=" + said["x-original-url"];
    answer.writeHead(302, { Location: to, "Set-Cookie": ["rd=1", "x=2"] }).end();
  } else {
    answer.writeHead(401, { "WWW-Authenticate": 'Basic realm="portal"' }).end("who are you?");
  }
}).listen(Number(process.argv[2]), process.argv[3]);
"#;

struct Real {
    _child: Running,
    _folder: tempfile::TempDir,
    to: String,
}

impl Real {
    fn start(program: &str, script: &str) -> Option<Self> {
        if !Path::new(program).exists() {
            println!("SKIP: {program} is not installed");
            return None;
        }
        let (place, folder) = (free_address(), tempfile::tempdir().expect("a folder"));
        let file = folder.path().join("portal");
        fs::write(&file, script).expect("written");
        let mut command = Command::new(program);
        command.arg(&file).arg(place.port().to_string()).arg(place.ip().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = Running::start(&mut command);
        eventually_within(Duration::from_secs(20), "the portal listens", || {
            Client::connect(&Endpoint::Tcp(place)).is_ok()
        });
        Some(Self { _child: child, _folder: folder, to: place.to_string() })
    }
}

fn tree() -> Tree {
    let tree = Tree::new();
    for name in ["a.txt", "private/a.txt", "private/a.css", "private/open/a.txt"] {
        tree.file(name, name);
    }
    tree.file("secret/index.html", "secret");
    tree.file("users", "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    tree
}

fn serve(tree: &Tree, settings: &str) -> Server {
    serve_on(tree, settings, "")
}

/// `top`: settings of the whole program.
fn serve_on(tree: &Tree, settings: &str, top: &str) -> Server {
    let root = tree.path().display();
    Server::start("/", |launch| {
        let log = launch.home().join("access.log").display().to_string();
        launch.written(|listen| {
            let settings = settings.replace("OWN", &listen.to_string());
            format!(
                "{top}http2.cleartext = true\n[log]\naccess = \"{log}\"\n[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\n{settings}\n"
            )
        });
    })
}

fn auth(to: &str) -> String {
    format!(
        "forward_auth = \"{to}\"\nforward_auth_path = \"/verify?as=afpa\"\n\
         forward_auth_copy = [\"Remote-User\", \"Remote-Groups\"]\n"
    )
}

fn settings(portal: &str, app: &Asked, tree: &Tree) -> String {
    let (auth, app, files) = (auth(portal), app.to(), tree.path().display());
    format!(
        "listing = true\n[[site.header]]\nset = {{ X-Own = \"afpa\" }}\n\
         [[site.path]]\nprefix = \"/private/\"\n{auth}\
         [[site.path.content]]\nextensions = [\"css\"]\nforward_auth = \"none\"\n\
         [[site.path]]\nprefix = \"/private/open/\"\nforward_auth = \"none\"\n\
         [[site.path]]\nprefix = \"/secret/index.html\"\nexact = true\n{auth}\
         [[site.path]]\nprefix = \"/app/\"\nto = \"{app}\"\n{auth}\
         [[site.path]]\nprefix = \"/public/\"\nto = \"{app}\"\n\
         [[site.path]]\nprefix = \"/back/\"\nfallback = \"{app}\"\n{auth}\
         [[site.path]]\nprefix = \"/old/\"\nredirect = \"/a.txt\"\n{auth}\
         [[site.path]]\nprefix = \"/fixed/\"\nstatus = 200\nbody = \"fixed\"\n{auth}\
         [[site.path]]\nprefix = \"/nowhere/\"\nallow = [\"192.0.2.0/24\"]\n{auth}\
         [[site.path]]\nprefix = \"/both/\"\nstatus = 200\nbasic_auth = \"{files}/users\"\n{auth}\
         [[site.path]]\nprefix = \"/cors/\"\nstatus = 200\n{auth}\
         [site.path.cors]\norigins = [\"https://a.test\"]\n"
    )
}

/// Target, whether with ann's cookie, status.
const CASES: &[(&str, bool, u16)] = &[
    ("/a.txt", false, 200),
    ("/private/a.txt", false, 401),
    ("/private/a.txt", true, 200),
    ("/private/none", false, 401),
    ("/private/none", true, 404),
    ("/private/", false, 401),
    ("/private/", true, 200),
    ("/private/a.css", false, 200),
    ("/private/open/a.txt", false, 200),
    ("/private/open/../a.txt", false, 401),
    ("/%70rivate//a.txt", false, 401),
    ("/secret/", false, 401),
    ("/secret/", true, 200),
    ("/app/x", false, 401),
    ("/app/x", true, 200),
    ("/app/no", true, 403),
    ("/back/x", false, 401),
    ("/back/x", true, 200),
    ("/old/", false, 401),
    ("/old/", true, 308),
    ("/fixed/", false, 401),
    ("/fixed/", true, 200),
    // An address that may not is asked about nowhere.
    ("/nowhere/", true, 403),
    ("/cors/", false, 401),
];

#[test]
fn a_server_decides_in_each_place() {
    let (app, tree) = (app(), tree());
    for (program, script) in [("/usr/bin/python3", PYTHON), ("/usr/bin/node", NODE)] {
        let Some(portal) = Real::start(program, script) else { continue };
        let server = serve(&tree, &settings(&portal.to, &app, &tree));
        let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
        for _ in 0..2 {
            for (target, is_ann, status) in CASES {
                let line = if *is_ann { "Cookie: session=ann\r\n" } else { "" };
                let mut fields = h2::request("GET", target);
                if *is_ann {
                    fields.push(("cookie", "session=ann"));
                }
                let id = http2.request(&fields, b"");
                let by_2 = http2.response(id);
                let by_1 = client.get_with(target, line);
                for answer in [&by_1, &by_2] {
                    assert_eq!(answer.status, *status, "{program} {target} {is_ann}");
                    assert_eq!(answer.field("X-Own"), Some("afpa"), "{target}");
                    if *status == 401 {
                        assert_eq!(answer.text(), "who are you?", "{target}");
                        let challenge = answer.field("WWW-Authenticate");
                        assert_eq!(challenge, Some("Basic realm=\"portal\""));
                    }
                }
                assert_eq!(client.head_with(target, line).status, *status, "HEAD {target}");
                fields[0].1 = "HEAD";
                let id = http2.request(&fields, b"");
                let head = http2.response(id);
                assert_eq!((head.status, head.body.len()), (*status, 0), "HEAD {target}");
            }
        }
        // A browser is sent to the page for it, with all that the server says.
        let answer = client.get_with("/app/x?y=z", "Accept: text/html\r\n");
        assert_eq!(answer.status, 302);
        let location = "https://login.test/?rd=http://test/app/x?y=z";
        assert_eq!(answer.field("Location"), Some(location));
        let cookies = answer.fields.iter().filter(|(name, _)| name == "Set-Cookie").count();
        assert_eq!(cookies, 2);
        // Every method, and a change of protocol.
        for (method, lines) in [
            ("POST", "Content-Length: 0\r\n"),
            ("OPTIONS", ""),
            ("PURGE", ""),
            ("GET", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
            ("GET", "If-None-Match: *\r\nRange: bytes=0-1\r\n"),
        ] {
            for target in ["/app/x", "/back/x", "/private/a.txt"] {
                let head = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
                assert_eq!(client.exchange(head).status, 401, "{method} {target} {lines}");
            }
        }
        // Both have to agree, the password first. A preflight asks nobody.
        let password = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
        let both = format!("{password}Cookie: session=ann\r\n");
        let realm = |lines: &str| {
            let answer = server.connect().get_with("/both/", lines);
            (answer.status, answer.field("WWW-Authenticate").unwrap_or("-").contains("restricted"))
        };
        assert_eq!(realm("Cookie: session=ann\r\n"), (401, true));
        assert_eq!((realm(password), realm(&both)), ((401, false), (200, false)));
        let asks = "Origin: https://a.test\r\nAccess-Control-Request-Method: PUT\r\n";
        let preflight = format!("OPTIONS /cors/ HTTP/1.1\r\nHost: a\r\n{asks}\r\n");
        assert_eq!(client.exchange(preflight).status, 204);
        eventually("the log has the name that the server gave", || {
            let log = fs::read_to_string(server.home().join("access.log")).unwrap_or_default();
            let of = |part: &str| log.lines().filter(|line| line.contains(part)).count();
            of("127.0.0.1 - ann [") > 0 && of("\"GET /app/x HTTP/1.1\" 401 ") > 0
        });
    }
}

#[test]
fn the_question_describes_the_request_and_brings_none_of_its_content() {
    let (app, tree, portal) = (app(), tree(), portal());
    let server = serve(&tree, &settings(&portal.to(), &app, &tree));
    let mut client = server.connect();
    let lines = "Cookie: session=ann\r\nAuthorization: Bearer t\r\nUser-Agent: u\r\nAccept: a/b\r\n\
        Content-Type: text/plain\r\nContent-Length: 5\r\nRange: bytes=0-1\r\nIf-Match: \"x\"\r\n\
        Connection: X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nX-Forwarded-Uri: /forged\r\n\
        X-Original-URL: http://forged/\r\nX-Original-URI: /forged\r\nX_Original_URI: /forged\r\nX_Forwarded_Uri: /forged\r\nX-Forwarded-Proto: https\r\n\
        X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Host: forged\r\nX-Forwarded-Method: HEAD\r\n\
        X-Original-Method: HEAD\r\nRemote-User: forged\r\nremote_groups: forged\r\n";
    let target = "/app/./b/..//%7ex?q=/../%20&r";
    let answer =
        client.exchange(format!("PUT {target} HTTP/1.1\r\nHost: A.test:8\r\n{lines}\r\nhello"));
    let as_servers_get_it = "/app/~x?q=/../%20&r";
    assert_eq!(answer.text(), format!("app {as_servers_get_it} ann staff hello"));
    let heads = portal.take();
    let [head] = &heads[..] else { panic!("{heads:?}") };
    assert!(head.starts_with("GET /verify?as=afpa HTTP/1.1\r\n"), "{head}");
    let url = format!("http://a.test:8{as_servers_get_it}");
    for (name, value) in [
        ("Host", "a.test:8"),
        ("Cookie", "session=ann"),
        ("Authorization", "Bearer t"),
        ("User-Agent", "u"),
        ("Accept", "a/b"),
        ("X-Forwarded-Method", "PUT"),
        ("X-Forwarded-Proto", "http"),
        ("X-Forwarded-Host", "a.test:8"),
        ("X-Forwarded-Uri", as_servers_get_it),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Original-URL", &url),
        ("X-Original-Method", "PUT"),
        ("X-Original-URI", as_servers_get_it),
        ("Content-Type", "-"),
        ("Content-Length", "-"),
        ("Range", "-"),
        ("If-Match", "-"),
        ("X-Hop", "-"),
        ("TE", "-"),
    ] {
        assert_eq!(field(head, name), value, "{name}\n{head}");
    }
    assert!(!head.contains("forged") && !head.contains("HEAD"), "{head}");
    // A router in front that is trusted names client, scheme and host.
    let trusted =
        format!("forwarded_from = [\"127.0.0.0/8\"]\n{}", settings(&portal.to(), &app, &tree));
    let server = serve(&tree, &trusted);
    let lines = "Cookie: session=ann\r\nX-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: https\r\n\
        X-Forwarded-Host: public.test\r\nX-Original-URL: https://other/\r\n";
    assert_eq!(server.connect().get_with("/app/x", lines).status, 200);
    let head = portal.take().concat();
    for (name, value) in [
        ("X-Forwarded-For", "192.0.2.9, 127.0.0.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "public.test"),
        ("X-Original-URL", "https://public.test/app/x"),
    ] {
        assert_eq!(field(&head, name), value, "{head}");
    }
}

#[test]
fn no_client_speaks_in_the_place_of_the_server() {
    let (app, tree, portal) = (app(), tree(), portal());
    let (to, copied) = (app.to(), settings(&portal.to(), &app, &tree));
    let page = format!("[[site.errors]]\nstatus = [404]\nto = \"{to}\"\npath = \"/page\"\n");
    let server =
        serve(&tree, &copied.replacen("[[site.path]]", &format!("{page}[[site.path]]"), 1));
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    let forged = "Remote-User: root\r\nREMOTE_USER: root\r\nRemote_User: root\r\nRemote.User: root\r\n\
        Remote-Groups: root\r\nremote_groups: root\r\n";
    for (target, cookie, user) in [
        ("/app/x", "session=ann", "ann staff"),
        ("/app/x", "session=nameless", "- -"),
        ("/back/x", "session=ann", "ann staff"),
        ("/back/x", "session=nameless", "- -"),
        ("/private/none", "session=ann", "ann staff"),
        ("/private/none", "session=nameless", "- -"),
        // Where nobody is asked, the application believes these fields all the same.
        ("/public/x", "session=ann", "- -"),
        ("/none", "session=ann", "- -"),
    ] {
        let mut fields = h2::request("GET", target);
        fields.extend([("cookie", cookie), ("remote-user", "root"), ("remote_groups", "root")]);
        let id = http2.request(&fields, b"");
        let text = http2.response(id).text().to_owned();
        assert!(text.ends_with(&format!(" {user} ")), "{target} {cookie}: {text}");
        let answer = client.get_with(target, &format!("Cookie: {cookie}\r\n{forged}"));
        let text = answer.text();
        assert!(text.ends_with(&format!(" {user} ")), "{target} {cookie}: {text}");
    }
    let trailer = "POST /app/x HTTP/1.1\r\nHost: a\r\nCookie: session=nameless\r\n\
        Transfer-Encoding: chunked\r\nTrailer: Remote-User\r\n\r\n0\r\nRemote-User: root\r\n\r\n";
    assert_eq!(client.exchange(trailer).status, 200);
    let heads = app.take().concat();
    assert!(!heads.contains("root") && !heads.contains("Remote-Secret"), "{heads}");
}

/// The server of an error page believes Authorization if applications do: it has it from the server that consents.
#[test]
fn pages_of_errors_get_credentials_of_the_server_that_has_consented_or_none() {
    let (tree, dead) = (tree(), free_address());
    let pages = Asked::start(|_, _| answered(200, "", "page"));
    let portal = Asked::start(|head, _| match field(head, "Cookie") {
        "session=ann" => answered(200, "Authorization: Bearer ann\r\n", ""),
        _ => answered(204, "", ""),
    });
    let (to, portal_to) = (pages.to(), portal.to());
    let path = |prefix: &str, to: &str| {
        format!(
            "[[site.path]]\nprefix = \"/{prefix}/\"\nforward_auth = \"{to}\"\nforward_auth_path = \"/\"\n\
             forward_auth_copy = [\"Authorization\"]\n"
        )
    };
    let settings = format!(
        "[[site.errors]]\nstatus = [404, 502]\nto = \"{to}\"\npath = \"/page\"\n{}{}",
        path("asked", &portal_to),
        path("dead", &dead.to_string())
    );
    let server = serve(&tree, &settings);
    for (target, cookie, got) in [
        ("/asked/none", "session=ann", "Bearer ann"),
        ("/asked/none", "session=other", "-"),
        // Nobody has consented, or was asked.
        ("/dead/none", "session=ann", "-"),
        ("/none", "session=ann", "-"),
    ] {
        let lines = format!("Cookie: {cookie}\r\nAuthorization: Bearer root\r\n");
        let answer = server.connect().get_with(target, &lines);
        assert_eq!(answer.text(), "page", "{target}");
        let head = pages.take().concat();
        assert_eq!(field(&head, "Authorization"), got, "{target} {cookie}: {head}");
        assert_eq!(field(&head, "Cookie"), cookie, "it is not copied");
    }
}

#[test]
fn a_path_that_is_routed_again_is_asked_about_too_and_has_one_place_among_the_requests() {
    let (app, tree) = (app(), tree());
    let portal = Asked::start(|head, _| {
        let uri = field(head, "X-Forwarded-Uri");
        let lines = format!("Remote-User: {uri}\r\nSet-Cookie: seen={uri}\r\n");
        if uri.starts_with("/app/no") { answered(403, "", "no") } else { answered(200, &lines, "") }
    });
    let server = serve(
        &tree,
        &format!(
            "{}[[site.path]]\nprefix = \"/go/\"\nrewrite = \"/app/{{rest}}\"\n\
             [[site.path]]\nprefix = \"/app/\"\nto = \"{}\"\n[site.limits]\nin_flight = 1\n",
            auth(&portal.to()),
            app.to()
        ),
    );
    let mut client = server.connect();
    for _ in 0..2 {
        for (target, status, asked) in [
            ("/app/x", 200, &["/app/x"][..]),
            ("/app/no", 403, &["/app/no"]),
            ("/go/x", 200, &["/go/x", "/app/x"]),
            ("/go/no", 403, &["/go/no", "/app/no"]),
        ] {
            let answer = client.get(target);
            assert_eq!(answer.status, status, "{target}: {answer:?}");
            let heads = portal.take();
            let uris: Vec<&str> = heads.iter().map(|head| field(head, "X-Forwarded-Uri")).collect();
            assert_eq!(uris, asked, "{target}");
            if status == 200 {
                assert_eq!(answer.text(), "app /app/x /app/x - ", "the last path decides");
                let seen = asked.iter().rev().map(|uri| format!("seen={uri}"));
                let cookies: Vec<&str> = answer.values("set-cookie").collect();
                assert_eq!(cookies, seen.collect::<Vec<_>>(), "{target}");
            }
        }
    }
    // The answer to the last one is complete, and no core keeps its place.
    assert_eq!(client.get("/a.txt").status, 200);
    for _ in 0..8 {
        assert_eq!(server.connect().get("/a.txt").status, 200);
    }
}

#[test]
fn a_server_that_does_not_decide_lets_nothing_through() {
    let (app, tree, dead) = (app(), tree(), free_address());
    let portal = Asked::start(|head, _| match field(head, "Cookie") {
        "gone" => None,
        "nonsense" => Some("let them in\r\n\r\n".to_owned()),
        "cut" => {
            Some("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nok".to_owned())
        }
        "switch" => {
            Some("HTTP/1.1 101 -\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".to_owned())
        }
        "code" => Some("HTTP/1.1 999 -\r\nContent-Length: 0\r\n\r\n".to_owned()),
        "hints" => Some(
            "HTTP/1.1 103 -\r\nLink: </x>\r\n\r\nHTTP/1.1 403 -\r\nContent-Length: 2\r\n\r\nno"
                .to_owned(),
        ),
        "long" => answered(200, "", &"x".repeat(100_000)),
        "chunks" => Some(
            "HTTP/1.1 403 -\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n".to_owned(),
        ),
        "error" => answered(500, "", "broken"),
        _ => answered(200, "", ""),
    });
    let hanging = Raw::start(|mut stream| while read_head(&mut stream).is_some() {});
    let path = |prefix: &str, to: &str| {
        format!(
            "[[site.path]]\nprefix = \"/{prefix}/\"\nroot = \"{}/private/\"\n{}",
            tree.path().display(),
            auth(to)
        )
    };
    // One that asks itself never gets an answer.
    let settings = [
        path("ok", &portal.to()),
        path("dead", &dead.to_string()),
        path("hangs", "hangs"),
        path("own", "OWN"),
        "[[site.path]]\nprefix = \"/verify\"\nstatus = 200\nforward_auth = \"OWN\"\nforward_auth_path = \"/verify\"\n".to_owned(),
        format!(
            "[[server_group]]\nname = \"hangs\"\nservers = [\"{}\"]\ntimeouts.first_byte = \"100ms\"\n",
            hanging.to()
        ),
    ]
    .concat();
    let server = serve(&tree, &settings);
    let mut http2 = H2Client::connect(&server);
    for (target, cookie, status, text) in [
        ("/ok/a.txt", "good", 200, "private/a.txt"),
        ("/ok/a.txt", "long", 200, "private/a.txt"),
        ("/ok/a.txt", "gone", 502, ""),
        ("/ok/a.txt", "nonsense", 502, ""),
        ("/ok/a.txt", "cut", 502, ""),
        ("/ok/a.txt", "switch", 502, ""),
        ("/ok/a.txt", "code", 502, ""),
        ("/ok/a.txt", "hints", 403, "no"),
        ("/ok/a.txt", "chunks", 403, "no"),
        ("/ok/a.txt", "error", 500, "broken"),
        ("/ok/a.txt", "good", 200, "private/a.txt"),
        ("/dead/a.txt", "good", 502, ""),
        ("/hangs/a.txt", "good", 504, ""),
        ("/own/a.txt", "good", 502, ""),
    ] {
        let mut fields = h2::request("GET", target);
        fields.push(("cookie", cookie));
        let id = http2.request(&fields, b"");
        let by_2 = http2.response(id);
        let by_1 = server.connect().get_with(target, &format!("Cookie: {cookie}\r\n"));
        for answer in [by_1, by_2] {
            assert_eq!(answer.status, status, "{target} {cookie}: {}", answer.text());
            assert!(status >= 500 || answer.text() == text, "{target} {cookie}: {}", answer.text());
            assert!(status == 200 || !answer.text().contains("a.txt"), "{target} {cookie}");
        }
    }
    assert!(app.take().is_empty());
}

#[test]
fn content_waits_for_the_consent() {
    let (app, tree, portal) = (app(), tree(), portal());
    let server = serve(&tree, &settings(&portal.to(), &app, &tree));
    let content = "x".repeat(50_000);
    for target in ["/app/in", "/back/in"] {
        let mut client = server.connect();
        let head = |cookie: &str, more: &str| {
            let length = content.len();
            format!(
                "POST {target} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n{more}Content-Length: {length}\r\n\r\n"
            )
        };
        // A refused request leaves the connection in step.
        assert_eq!(client.exchange(head("session=eve", "") + &content).status, 401);
        let answer = client.exchange(head("session=ann", "") + &content);
        let text = answer.text();
        assert!(text.starts_with("app ") && text.ends_with(&content), "{} bytes", text.len());
        // Nobody is asked for the content of a request that is refused.
        let mut client = server.connect();
        client.send(head("session=eve", "Expect: 100-continue\r\n"));
        let refused = client.receive();
        assert_eq!((refused.status, refused.field("Connection")), (401, Some("close")));
        let mut client = server.connect();
        client.send(head("session=ann", "Expect: 100-continue\r\n"));
        assert!(client.take(25).starts_with(b"HTTP/1.1 100 Continue\r\n"));
        client.send(&content);
        assert!(client.receive().text().ends_with(&content));
    }
    let mut http2 = H2Client::connect(&server);
    let length = content.len().to_string();
    for (cookie, status) in [("session=eve", 401), ("session=ann", 200), ("session=eve", 401)] {
        let mut fields = h2::request("POST", "/app/in");
        fields.extend([("cookie", cookie), ("content-length", &length)]);
        let id = http2.request(&fields, content.as_bytes());
        let answer = http2.response(id);
        assert_eq!(answer.status, status);
        assert_eq!(answer.text().ends_with(&content), status == 200, "{cookie}");
    }
    // More than is thrown away: the connection ends.
    let mut client = server.connect();
    client.send(format!(
        "POST /app/in HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n{content}"
    ));
    let refused = client.receive();
    assert_eq!((refused.status, refused.field("Connection")), (401, Some("close")));
    let uploads = app.take().iter().filter(|head| field(head, "Cookie") != "session=ann").count();
    assert_eq!(uploads, 0);
}

#[test]
fn every_answer_is_asked_about_and_personal_ones_are_never_kept() {
    let (app, tree, portal) = (app(), tree(), portal());
    let to = portal.to();
    let plain = format!("forward_auth = \"{to}\"\nforward_auth_path = \"/verify\"\n");
    let settings = format!(
        "[[site.path]]\nprefix = \"/app/\"\nto = \"{0}\"\ncache = \"auto\"\n{1}\
         [[site.path]]\nprefix = \"/all/\"\nto = \"{0}\"\ncache = \"auto\"\n{plain}\
         [[site.path]]\nprefix = \"/files/\"\nroot = \"{2}/private/\"\n{plain}",
        app.to(),
        auth(&to),
        tree.path().display(),
    );
    let server = serve(&tree, &settings);
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    let ann = "Cookie: session=ann\r\n";
    for target in ["/app/x", "/all/x", "/files/a.txt"] {
        for _ in 0..3 {
            assert_eq!(client.get_with(target, ann).status, 200, "{target}");
        }
        assert_eq!(client.get_with(target, "").status, 401, "{target}");
        assert_eq!(portal.take().len(), 4, "{target}");
        let asked = match target {
            "/app/x" => 3,
            "/all/x" => 1,
            _ => 0,
        };
        assert_eq!(app.take().len(), asked, "{target}");
    }
    // Its cookies reach the client, whatever answers, and no other client.
    for target in ["/app/x", "/all/x", "/files/a.txt", "/files/none"] {
        let mut fields = h2::request("GET", target);
        fields.push(("cookie", "session=fresh"));
        let id = http2.request(&fields, b"");
        let by_2 = http2.response(id);
        let by_1 = client.get_with(target, "Cookie: session=fresh\r\n");
        for answer in [by_1, by_2] {
            let is_one = |name: &str| name.eq_ignore_ascii_case("set-cookie");
            let cookies = answer.fields.iter().filter(|(name, _)| is_one(name));
            let cookies: Vec<_> = cookies.map(|(_, value)| &**value).collect();
            assert_eq!(cookies, ["a=1", "b=2; Secure"], "{target}");
        }
        assert_eq!(client.get_with(target, ann).field("Set-Cookie"), None, "{target}");
    }
}

#[test]
fn a_question_counts_once_and_no_longer_than_its_request() {
    let (app, tree, portal) = (app(), tree(), portal());
    let (auth, to) = (auth(&portal.to()), app.to());
    let plain = format!("forward_auth = \"{}\"\nforward_auth_path = \"/\"\n", portal.to());
    let settings = format!(
        "[site.limits]\nclient_in_flight = 1\n[[site.path]]\nprefix = \"/private/\"\n{auth}\
         [[site.path]]\nprefix = \"/nice/\"\nrewrite = \"/app/{{rest}}\"\n{auth}\
         [[site.path]]\nprefix = \"/named/\"\nrewrite = \"/plain/{{rest}}\"\n{auth}\
         [[site.path]]\nprefix = \"/free/\"\nrewrite = \"/app/{{rest}}\"\n\
         [[site.path]]\nprefix = \"/app/\"\nto = \"{to}\"\n{auth}\
         [[site.path]]\nprefix = \"/plain/\"\nto = \"{to}\"\n{plain}"
    );
    let server = serve_on(&tree, &settings, "workers = 4\n");
    // Connections are spread over the workers, and one that has answered may get no further request for long.
    for _ in 0..24 {
        let answer = server.connect().get_with("/private/a.txt", "Cookie: session=ann\r\n");
        assert_eq!((answer.status, answer.text()), (200, "private/a.txt"));
    }
    // Nor twice, if it has another path afterwards. The consent to the first one still counts.
    let mut client = server.connect();
    for (target, text) in [
        ("/app/x", "app /app/x ann staff "),
        ("/nice/x", "app /app/x ann staff "),
        ("/free/x", "app /app/x ann staff "),
        ("/named/x", "app /plain/x ann staff "),
    ] {
        let answer = client.get_with(target, "Cookie: session=ann\r\n");
        assert_eq!((answer.status, answer.text()), (200, text), "{target}");
    }
}

#[test]
fn a_change_with_consent_ends_the_life_of_what_others_get() {
    let (app, tree, portal) = (app(), tree(), portal());
    let place = format!("to = \"{}\"\ncache = \"auto\"\n", app.to());
    let settings = format!(
        "[[site.path]]\nprefix = \"/wiki/\"\n{place}\
         [[site.path.content]]\nif_methods = [\"POST\"]\n{place}{}",
        auth(&portal.to())
    );
    let server = serve(&tree, &settings);
    let mut client = server.connect();
    for asked in [1, 0] {
        assert_eq!(client.get("/wiki/x").status, 200);
        assert_eq!(app.take().len(), asked);
    }
    let post =
        "POST /wiki/x HTTP/1.1\r\nHost: test\r\nCookie: session=ann\r\nContent-Length: 2\r\n\r\nhi";
    for _ in 0..2 {
        assert_eq!(client.exchange(post).text(), "app /wiki/x ann staff hi");
        assert_eq!(client.get("/wiki/x").text(), "app /wiki/x - - ");
        assert_eq!(client.get("/wiki/x").text(), "app /wiki/x - - ");
        assert_eq!(app.take().len(), 2);
    }
}

#[test]
fn a_server_is_asked_about_each_path_that_a_request_gets() {
    let (app, tree) = (app(), tree());
    let portal = Asked::start(|head, _| match field(head, "X-Forwarded-Uri") {
        "/app/no" => answered(403, "", "no"),
        _ => answered(200, "", ""),
    });
    let (auth, to) = (auth(&portal.to()), app.to());
    let settings = format!(
        "[[site.path]]\nprefix = \"/nice/\"\nrewrite = \"/app/{{rest}}\"\n{auth}\
         [[site.path]]\nprefix = \"/app/\"\nto = \"{to}\"\n{auth}"
    );
    let server = serve(&tree, &settings);
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    for (target, status) in
        [("/nice/x", 200), ("/app/no", 403), ("/nice/no", 403), ("/nice/%6eo", 403)]
    {
        assert_eq!(client.get(target).status, status, "{target}");
        let id = http2.request(&h2::request("GET", target), b"");
        assert_eq!(http2.response(id).status, status, "{target}");
    }
    let asked = portal.take();
    let uris: Vec<_> = asked.iter().map(|head| field(head, "X-Forwarded-Uri")).take(2).collect();
    assert_eq!(uris, ["/nice/x", "/app/x"]);
    assert_eq!(app.take().len(), 2);
}

#[test]
fn a_websocket_opens_behind_it() {
    let (app, tree, portal) = (app(), tree(), portal());
    let server = serve(&tree, &settings(&portal.to(), &app, &tree));
    let ask = |cookie: &str| {
        let mut client = server.connect();
        client.send(format!(
            "GET /app/chat HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\nConnection: upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ));
        client
    };
    assert_eq!(ask("session=eve").receive().status, 401);
    let said = String::from_utf8(ask("session=ann").take_all()).expect("text");
    assert!(said.starts_with("HTTP/1.1 101 ") && said.ends_with("user ann"), "{said}");
    let asked = portal.take();
    assert!(asked.iter().all(|head| field(head, "Upgrade") == "-"), "{asked:?}");
}

/// A 101 is an answer as others are: cookies of the server that has consented, of the group and changed fields are on it.
#[test]
fn a_websocket_has_the_cookies_and_the_fields_of_other_answers() {
    let (app, tree, portal) = (app(), tree(), portal());
    let server = serve(
        &tree,
        &format!(
            "to = \"{}\"\naffinity = \"cookie\"\nrequest_id = \"on\"\n{}\n[[site.header]]\n\
             set = {{ X-A = \"1\" }}\n[[site.header]]\n\
             status = [200]\nset = {{ X-B = \"1\" }}\n",
            app.to(),
            auth(&portal.to())
        ),
    );
    let mut client = server.connect();
    client.send(
        "GET /app/chat HTTP/1.1\r\nHost: a\r\nCookie: session=fresh\r\nConnection: upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    let said = String::from_utf8(client.take_all()).expect("text");
    let (head, behind) = said.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 101 "), "{said}");
    assert!(behind.starts_with("user "), "{said}");
    let lines: Vec<String> = head.lines().map(str::to_ascii_lowercase).collect();
    let has = |begin: &str| lines.iter().filter(|line| line.starts_with(begin)).count();
    assert_eq!(has("set-cookie: a=1"), 1, "{said}");
    assert_eq!(has("set-cookie: b=2; secure"), 1, "{said}");
    assert_eq!(has("set-cookie: afpa="), 1, "{said}");
    assert_eq!((has("x-a: 1"), has("x-b:"), has("x-request-id: ")), (1, 0, 1), "{said}");
    assert_eq!((has("connection: upgrade"), has("upgrade: websocket")), (1, 1), "{said}");
    assert_eq!(has("sec-websocket-accept: "), 1, "{said}");
}

/// A WebSocket by HTTP/2 (RFC 8441). The question is a GET all the same.
#[test]
fn an_extended_connect_opens_behind_it() {
    let (app, tree, portal) = (app(), tree(), portal());
    let server = serve(&tree, &settings(&portal.to(), &app, &tree));
    let mut client = H2Client::connect(&server);
    let mut open = |cookie: &str| {
        let fields = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "http"),
            (":path", "/app/chat"),
            (":authority", "a"),
            ("sec-websocket-version", "13"),
            ("cookie", cookie),
        ];
        let id = client.open(&fields, false);
        client.until("an answer", |client| {
            let whole = client.so_far(id);
            whole.ended || !whole.body.is_empty()
        });
        let whole = client.so_far(id);
        (whole.fields[0].1.clone(), String::from_utf8(whole.body).expect("text"))
    };
    let (status, _) = open("session=eve");
    assert_eq!(status, "401");
    assert!(app.take().is_empty(), "nobody else is asked");
    let (status, said) = open("session=ann");
    assert_eq!((&*status, &*said), ("200", "user ann"));
    let (status, _) = open("session=eve");
    assert_eq!(status, "401", "the next stream is asked about, too");
    let asked = portal.take();
    assert_eq!(asked.len(), 3, "{asked:?}");
    for head in &asked {
        assert!(head.starts_with("GET /verify?as=afpa HTTP/1.1\r\n"), "{head}");
        assert_eq!((field(head, "Upgrade"), field(head, "X-Forwarded-Uri")), ("-", "/app/chat"));
    }
}

#[test]
fn the_page_about_forward_auth_has_a_configuration_that_does_what_it_says() {
    let (app, tree, portal) = (app(), tree(), portal());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/forward-auth.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let root = tree.path().display().to_string();
            let site = format!("[[site]]\nlisten = [\"{listen}\"]");
            let example = example.replace("/srv/shop", &root).replace("[[site]]", &site);
            example.replace("127.0.0.1:9091", &portal.to()).replace("127.0.0.1:3000", &app.to())
        });
    });
    let said = |target: &str| {
        let mut command = Command::new(program());
        command.args(["route", target, "--config"]).arg(server.configuration());
        String::from_utf8_lossy(&command.output().expect("run").stdout).into_owned()
    };
    let text = said("/x");
    let to = portal.to();
    assert!(text.contains(&format!("consent      {to} is asked for /api/authz/")), "{text}");
    assert!(text.contains("kernel       never answers: not everybody"), "{text}");
    let text = said("/authelia/");
    assert!(text.contains("consent      no server is asked"), "{text}");
    let mut client = server.connect();
    assert_eq!(client.get("/x").status, 401);
    let answer = client.get_with("/x", "Cookie: session=ann\r\n");
    assert_eq!((answer.status, answer.text()), (200, "app /x ann staff "));
    assert_eq!(portal.take().len(), 2);
    // The portal itself can be reached by those who are not known yet.
    assert_eq!(client.get("/authelia/").status, 401);
    assert!(portal.take().concat().starts_with("GET /authelia/ HTTP/1.1\r\n"));
}
