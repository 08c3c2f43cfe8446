//! `afpa adapt`: nginx by its configuration, and AFPA by the translation, give the same answers.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Response, Running, Server, Tree, eventually, nginx, skip};

/// A configuration of `crates/afpa-adapt/tests/kinds`, the files that it needs, and paths to ask for.
struct Kind {
    name: &'static str,
    host: &'static str,
    files: &'static [&'static str],
    targets: &'static [&'static str],
    /// Paths of names that begin with a dot: nginx answers 403, AFPA 404, as the notes say.
    hidden: &'static [&'static str],
}

const STATIC: Kind = Kind {
    name: "static",
    host: "static.example",
    files: &[
        "srv/static/index.html",
        "srv/static/a.html",
        "srv/static/new.html",
        "srv/static/x.css",
        "srv/static/sub/index.htm",
        "srv/static/sub/b.txt",
        "srv/static/none/x.txt",
        "srv/static/errors/404.html",
        "srv/static/.htaccess",
        "srv/files/f.zip",
        "srv/files/index.html",
    ],
    targets: &[
        "/",
        "/index.html",
        "/a.html",
        "/new.html",
        "/x.css",
        "/sub/",
        "/sub",
        "/sub/index.htm",
        "/sub/b.txt",
        "/missing",
        "/missing.html",
        "/sub/missing/x",
        "/downloads/f.zip",
        "/downloads/",
        "/downloads/none",
        "/downloads",
        "/old.html",
        "/none/x.txt",
        "/none",
        "//a.html",
        "/./a.html",
        "/%61.html",
        "/sub/../a.html",
        "/downloads/../a.html",
        "/errors/404.html",
    ],
    hidden: &["/.htaccess", "/.ht"],
};

const APPLICATION: Kind = Kind {
    name: "spa",
    host: "app.example",
    files: &[
        "srv/app/dist/index.html",
        "srv/app/dist/robots.txt",
        "srv/app/dist/sub/index.html",
        "srv/app/dist/assets/a.js",
        "srv/app/dist/assets/a.css",
    ],
    targets: &[
        "/",
        "/index.html",
        "/users/42",
        "/users/",
        "/a/b/c",
        "/none.js",
        "/robots.txt",
        "/sub/",
        "/sub",
        "/assets/a.js",
        "/assets/a.css",
        "/assets/none.js",
        "/api/x",
        "/api/",
        "/api/a/b",
        "/api",
        "/apix",
        "/health",
        "/health/x",
        "/healthy",
        "/./api/x",
        "/%61ssets/a.js",
    ],
    hidden: &[],
};

const CAREFUL: Kind = Kind {
    name: "boilerplate",
    host: "careful.example",
    files: &[
        "srv/careful/index.html",
        "srv/careful/404.html",
        "srv/careful/p.html",
        "srv/careful/a.css",
        "srv/careful/b.JS",
        "srv/careful/i.png",
        "srv/careful/i.jpg",
        "srv/careful/f.woff2",
        "srv/careful/d.json",
        "srv/careful/x.bak",
        "srv/careful/e.log",
        "srv/careful/q~",
        "srv/careful/archive/x.css",
        "srv/careful/archive/y.txt",
        "srv/careful/sub/index.html",
        "srv/careful/.well-known/security.txt",
        "srv/careful/.git/config",
    ],
    targets: &[
        "/",
        "/index.html",
        "/p.html",
        "/404.html",
        "/a.css",
        "/A.CSS",
        "/b.JS",
        "/i.png",
        "/i.jpg",
        "/f.woff2",
        "/d.json",
        "/x.bak",
        "/e.log",
        "/q~",
        "/none.log",
        "/archive/x.css",
        "/archive/y.txt",
        "/archive",
        "/sub/",
        "/sub",
        "/none",
        "/none.css",
        "/none/none.png",
        "/.well-known/security.txt",
    ],
    hidden: &["/.git/config"],
};

#[test]
fn nginx_and_the_translation_answer_alike() {
    if !Path::new(nginx::PROGRAM).exists() || !Path::new(TYPES).exists() {
        skip!("nginx is not installed");
    }
    for kind in [STATIC, APPLICATION, CAREFUL] {
        compare(&kind);
    }
}

/// The media types of Debian's nginx.
const TYPES: &str = "/etc/nginx/mime.types";

fn compare(kind: &Kind) {
    let tree = Tree::new();
    for name in kind.files {
        tree.file(name, format!("the file {name}\n"));
    }
    let application = free_address();
    let (peer, _running) = start_nginx(kind, &tree, application);
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            let text = written(kind, tree.path(), &endpoint.to_string(), application);
            translated(&tree, &text)
        });
    });
    for target in kind.targets {
        for target in [(*target).to_owned(), format!("{target}?q=1")] {
            let theirs = Answer::of(kind, &peer, &target);
            let ours = Answer::of(kind, server.endpoint(), &target);
            assert_eq!(ours, theirs, "{} {target}: AFPA's, then nginx's", kind.name);
        }
    }
    for target in kind.hidden {
        let statuses = [&peer, server.endpoint()].map(|at| ask(kind, at, target).status);
        assert_eq!(statuses, [403, 404], "{} {target}", kind.name);
    }
}

/// The configuration with addresses and folders of the test.
fn written(kind: &Kind, folder: &Path, address: &str, application: SocketAddr) -> String {
    let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/afpa-adapt/tests/kinds");
    let text = fs::read_to_string(kinds.join(format!("{}.conf", kind.name))).expect("the kind");
    let left_out =
        ["listen [::]", "access_log /", "error_log ", "user ", "pid ", "worker_processes "];
    let mut lines = String::new();
    for line in text.lines() {
        let bare = line.trim_start();
        if left_out.iter().any(|start| bare.starts_with(start)) {
            continue;
        }
        let line = match bare.strip_prefix("listen 80") {
            Some(rest) => format!("listen {address}{rest}"),
            None if bare.starts_with("include ") => format!("include {TYPES};"),
            None => line.to_owned(),
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    let srv = format!("{}/srv/", folder.display());
    lines.replace("/srv/", &srv).replace("127.0.0.1:3000", &application.to_string())
}

/// The translation, by the program.
fn translated(tree: &Tree, text: &str) -> String {
    let file = tree.outside("adapted.conf", text);
    let done = Command::new(program()).arg("adapt").arg(&file).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code().is_some_and(|code| code < 2), "{said}");
    assert!(said.contains(" directives translated ("), "{said}");
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// nginx with the configuration, and beside it the application that it passes requests on to.
fn start_nginx(kind: &Kind, tree: &Tree, application: SocketAddr) -> (Endpoint, Running) {
    let address = free_address();
    let home = tree.outside("nginx.log", "");
    let at = home.parent().expect("a folder").display();
    let own = format!(
        "http {{ access_log off; client_body_temp_path {at}/t1; proxy_temp_path {at}/t2;
           fastcgi_temp_path {at}/t3; uwsgi_temp_path {at}/t4; scgi_temp_path {at}/t5;
           server {{ listen {application}; default_type text/plain;
             location / {{ return 200 \"$request_method $request_uri $http_host\"; }} }}"
    );
    let text = written(kind, tree.path(), &address.to_string(), application);
    let main =
        format!("daemon off; master_process off; pid {at}/nginx.pid; error_log {at}/nginx.log;\n");
    let file = tree.outside("nginx.conf", main + &text.replacen("http {", &own, 1));
    let mut command = Command::new(nginx::PROGRAM);
    command.arg("-c").arg(&file).stdin(Stdio::null()).stderr(Stdio::null());
    let running = Running::start(&mut command);
    let endpoint = Endpoint::Tcp(address);
    eventually("nginx takes connections", || Client::connect(&endpoint).is_ok());
    (endpoint, running)
}

fn ask(kind: &Kind, at: &Endpoint, target: &str) -> Response {
    let mut client = Client::connect(at).expect("a connection");
    let host = kind.host;
    client.exchange(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

/// All that has to be the same.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    location: Option<String>,
    media_type: Option<String>,
    fields: Vec<(String, String)>,
    content: Vec<u8>,
}

/// The fields that the configurations set.
const FIELDS: &[&str] = &[
    "access-control-allow-origin",
    "cache-control",
    "content-security-policy",
    "referrer-policy",
    "x-content-type-options",
    "x-robots-tag",
];

impl Answer {
    fn of(kind: &Kind, at: &Endpoint, target: &str) -> Self {
        let response = ask(kind, at, target);
        let is_page = response.status == 200;
        let names =
            response.fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        let mut fields: Vec<_> = names.filter(|(name, _)| FIELDS.contains(&&**name)).collect();
        fields.sort();
        Self {
            status: response.status,
            location: response.field("Location").map(path_of),
            // Built-in error pages differ.
            media_type: response.field("Content-Type").filter(|_| is_page).map(essence),
            fields: if response.status < 400 { fields } else { Vec::new() },
            content: if is_page { response.body } else { Vec::new() },
        }
    }
}

/// nginx writes the whole URL where AFPA leaves the host to the client.
fn path_of(location: &str) -> String {
    let rest = location.split_once("://").map(|(_, rest)| rest);
    let path = rest.map(|rest| rest.find('/').map_or("/", |at| &rest[at..]));
    path.unwrap_or(location).to_owned()
}

/// The media type without its parameters; the two names of JavaScript are one (RFC 9239).
fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    essence.replace("application/javascript", "text/javascript")
}
