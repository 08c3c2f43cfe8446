//! `%2F` in a path: one letter to the router, and an escape to servers.

use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;

use afpa_testkit::Server;
use afpa_testkit::server::{free_address, program};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};

/// A server that says which target it was asked for. To a question of `forward_auth` it answers with the URL in a field, and
/// it says this field of a request, too.
fn app() -> Raw {
    Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let Some(_) = read_content(&mut stream, &head) else { return };
            let target = head.split(' ').nth(1).unwrap_or("");
            let field = |wanted: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                let line = lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
                line.map_or(String::new(), |(_, value)| value.to_owned())
            };
            let (url, seen) = (field("x-forwarded-uri"), field("seen"));
            let text = format!("{target} {seen}");
            let (text, length) = (text.trim_end(), text.trim_end().len());
            let answer =
                format!("HTTP/1.1 200 OK\r\nSeen: {url}\r\nContent-Length: {length}\r\n\r\n{text}");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn settings(to: &str) -> String {
    format!(
        "to = \"{to}\"\n\
         [[site.path]]\nprefix = \"/cut/\"\nto = \"{to}\"\nrewrite = \"/\"\n\
         [[site.path]]\nprefix = \"/put/\"\nto = \"{to}\"\nrewrite = \"/in ner/\"\n\
         [[site.path]]\nprefix = \"/one/\"\nif_path = ['~^/one/[^/]+$', '~^/one/a.b/c$']\nto = \"{to}\"\nrewrite = \"/fits{{path}}\"\n\
         [[site.path]]\nprefix = \"/flat/\"\nrecursion = false\nto = \"{to}\"\nrewrite = \"/flatter/\"\n\
         [[site.path]]\nprefix = \"/shut/\"\nstatus = 404\n\
         [[site.path]]\nprefix = \"/asks/\"\nto = \"{to}\"\nforward_auth = \"{to}\"\nforward_auth_path = \"/ask\"\nforward_auth_copy = [\"Seen\"]\n"
    )
}

/// A target, and the status and the target for the server, or nothing.
const CASES: &[(&str, u16, &str)] = &[
    ("/api/v4/projects/group%2Fproject", 200, "/api/v4/projects/group%2Fproject"),
    ("/@scope%2fname", 200, "/@scope%2Fname"),
    ("/a%252Fb", 200, "/a%252Fb"),
    ("/a%252fb%2f%2F", 200, "/a%252fb%2F%2F"),
    ("/%2F?a%2fb", 200, "/%2F?a%2fb"),
    ("/a/%2F/../b", 200, "/a/b"),
    ("/cut/a%2fb/c", 200, "/a%2Fb/c"),
    ("/cut%2Fa", 200, "/cut%2Fa"),
    ("/put/a%2fb%20;%3B", 200, "/in%20ner/a%2Fb%20;%3B"),
    ("/one/a%2Fb", 200, "/fits/one/a%2Fb"),
    ("/one/a%2Fb/c", 200, "/fits/one/a%2Fb/c"),
    ("/one/a/b", 200, "/one/a/b"),
    ("/flat/a%2Fb", 200, "/flatter/a%2Fb"),
    ("/shut/a", 404, ""),
    ("/shut%2Fa", 404, ""),
    ("/%2Fshut%2F%2Fa", 404, ""),
    ("/asks/a%2fb", 200, "/asks/a%2Fb /asks/a%2Fb"),
    ("/cut/..%2Fb", 400, ""),
    ("/cut/a%2F%2e%2E/b", 400, ""),
    ("/a/.%2F", 400, ""),
    ("/a%2F%00", 400, ""),
];

#[test]
fn an_escaped_slash_reaches_servers_as_it_came() {
    let app = app();
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let settings = settings(&app.to());
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n")
        });
    });
    let (mut http1, mut http2) = (server.connect(), H2Client::connect(&server));
    for (target, status, seen) in CASES {
        let by_1 = http1.get(target);
        let stream = http2.request(&h2::request("GET", target), b"");
        let by_2 = http2.response(stream);
        for by in [by_1, by_2] {
            assert_eq!(by.status, *status, "{target}: {by:?}");
            assert!(*status != 200 || by.text() == *seen, "{target}: {by:?}");
        }
    }
}

#[test]
fn a_route_is_told_without_a_byte_that_nobody_can_read() {
    let tree = afpa_testkit::Tree::new();
    let address = free_address();
    let text = format!("[[site]]\nlisten = [\"{address}\"]\n{}", settings("127.0.0.1:9"));
    tree.file("afpa.toml", text);
    for (url, rows) in [
        ("/cut/a%2fb.x%2Fy", &["path         /cut/a%2Fb.x%2Fy", "asks for     /a%2Fb.x%2Fy"][..]),
        ("/shut%2Fa", &["request set", "/shut/", "404"]),
    ] {
        let file = tree.path().join("afpa.toml");
        let output = Command::new(program())
            .args(["route", &format!("http://{address}{url}"), "--config"])
            .arg(file)
            .output()
            .expect("afpa route");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.contains('\0'), "{text}");
        for row in rows {
            assert!(text.contains(row), "{row}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
