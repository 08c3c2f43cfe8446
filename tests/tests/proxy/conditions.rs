//! Conditions of content groups and hosts: the client, the method, the path, the query, regular expressions.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Output};

use afpa_testkit::server::program;
use afpa_testkit::{Client, Server, Tree};
use afpa_tests::h2::H2Client;
use afpa_tests::proxy::{Raw, read_content, read_head};
use afpa_tests::tls::{Authority, Plan, TlsServer};

/// A server that says its name, and lets its answers be kept.
fn named(name: &'static str) -> Raw {
    Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let Some(_) = read_content(&mut stream, &head) else { return };
            let length = name.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {length}\r\n\r\n{name}"
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// A site with one group for each kind of condition. The tests' client is a trusted router, which names the client.
fn settings(app: &Raw, other: &Raw) -> String {
    let (app, other) = (app.to(), other.to());
    let group = |conditions: &str, body: &str| {
        format!("[[site.path.content]]\n{conditions}\nstatus = 200\nbody = \"{body}\"\n")
    };
    let groups = [
        group(
            "if_clients = [\"10.0.0.0/8\", \"2001:db8::/32\"]\nif_query = { near = \"\" }",
            "near",
        ),
        group("if_methods = [\"DELETE\"]\nif_path = [\"/a*\"]", "deleted"),
        group("if_path = ['~^/u/\\d+$', \"*.csv\"]", "number"),
        group("if_path = ['~*/CAFE\\.txt$']", "café"),
        group("if_query = { id = '~^\\d+$', \"a b\" = \"*\" }", "asked"),
        group(
            "if_headers = { X-Version = '~^[23]\\.' }\nif_cookies = { lang = \"~^(de|fr)$\" }",
            "field",
        ),
    ];
    format!(
        "forwarded_from = [\"127.0.0.1\"]\nto = \"{app}\"\n\
         [[site.path]]\nprefix = \"/only/\"\nif_query = {{ q = \"1\" }}\nto = \"{other}\"\n\
         [[site.path]]\nprefix = \"/w/\"\n{}",
        groups.concat().replace("/a*", "/w/a*").replace("^/u/", "^/w/u/")
    )
}

/// Method, target, lines of fields, content.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const CASES: &[Case] = &[
    ("GET", "/w/x?near", &[("x-forwarded-for", "10.1.2.3")], "near"),
    ("GET", "/w/x?a=b&near=", &[("x-forwarded-for", "::ffff:10.1.2.3")], "near"),
    ("GET", "/w/x?near", &[("x-forwarded-for", "2001:db8:1::1")], "near"),
    ("GET", "/w/x?near", &[("x-forwarded-for", "11.1.2.3")], "app"),
    ("GET", "/w/x?near", &[], "app"),
    ("GET", "/w/x?near=1", &[("x-forwarded-for", "10.1.2.3")], "app"),
    ("DELETE", "/w/ab", &[], "deleted"),
    ("GET", "/w/ab", &[], "app"),
    ("DELETE", "/w/b", &[], "app"),
    ("GET", "/w/u/42", &[], "number"),
    ("POST", "/w/u/42?x", &[], "number"),
    ("GET", "/w/u/%34%32", &[], "number"),
    ("GET", "/w//u/./42", &[], "number"),
    ("GET", "/w/u/42/", &[], "app"),
    ("GET", "/w/u/4%0a", &[], ""),
    ("GET", "/w/u/x42", &[], "app"),
    ("GET", "/w/a.csv", &[], "number"),
    ("GET", "/w/cafe.TXT", &[], "café"),
    ("GET", "/w/x?id=7&a+b", &[], "asked"),
    ("GET", "/w/x?%69d=%37&a%20b=c", &[], "asked"),
    ("GET", "/w/x?id=x&id=7&a%20b", &[], "asked"),
    ("GET", "/w/x?id=7", &[], "app"),
    ("GET", "/w/x?id=7x&a+b", &[], "app"),
    ("GET", "/w/x?ID=7&a+b", &[], "app"),
    ("GET", "/w/x", &[("x-version", "2.1"), ("cookie", "a=b; lang=fr")], "field"),
    ("GET", "/w/x", &[("x-version", "12.1"), ("cookie", "lang=fr")], "app"),
    ("GET", "/w/x", &[("x-version", "2.1"), ("cookie", "lang=frx")], "app"),
    ("GET", "/only/x?q=1", &[], "other"),
    ("GET", "/only/x?q=2", &[], "app"),
    ("GET", "/only/x", &[], "app"),
];

fn ask(client: &mut Client, case: &Case) {
    let (method, target, fields, content) = case;
    let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let answer = client.exchange(format!(
        "{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n{lines}\r\n"
    ));
    match *content {
        "" => assert_eq!(answer.status, 400, "{case:?}"),
        content => assert_eq!(answer.text(), content, "{case:?}"),
    }
}

#[test]
fn each_condition_decides_in_each_protocol() {
    let (app, other, authority) = (named("app"), named("other"), Authority::new());
    let settings = settings(&app, &other);
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n")
        });
    });
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    let plan = Plan { site: settings, ..Plan::default() };
    let tree = Tree::new();
    let secured = TlsServer::with(&authority, tree.path(), plan);
    let way = authority.way(&secured);
    let mut over_tls = way.connect();
    // The second time, the answers of servers are kept.
    for _ in 0..2 {
        for case in CASES {
            ask(&mut client, case);
            if !case.3.is_empty() {
                let fields = [&afpa_tests::h2::request(case.0, case.1)[..], case.2].concat();
                let stream = http2.request(&fields, b"");
                assert_eq!(http2.response(stream).text(), case.3, "{case:?}");
            }
        }
    }
    CASES.iter().filter(|case| !case.3.is_empty()).for_each(|case| ask(&mut over_tls, case));
}

fn route(server: &Server, arguments: &[&str]) -> String {
    let mut command = Command::new(program());
    command.arg("route").args(arguments).arg("--config").arg(server.configuration());
    String::from_utf8_lossy(&command.output().expect("run").stdout).into_owned()
}

#[test]
fn the_page_about_conditions_has_a_configuration_that_does_what_it_says() {
    let servers = ["app", "report", "debug"].map(named);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conditions.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let mut example = example.expect("an example").to_owned();
    for (port, server) in (3000..).zip(&servers) {
        example = example.replace(&format!("127.0.0.1:{port}"), &server.to());
    }
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let site =
                format!("[[site]]\nlisten = [\"{listen}\"]\nforwarded_from = [\"127.0.0.1\"]");
            example.replace("[[site]]", &site)
        });
    });
    let mut client = server.connect();
    for (host, target, from, content) in [
        ("shop.example", "/report/7?year=2026", "192.0.2.1", "report"),
        ("WWW2.shop.example:80", "/a.csv?year=2026", "192.0.2.1", "report"),
        ("shop.example", "/report/7?year=1999", "192.0.2.1", "app"),
        ("shop.example", "/report/x?year=2026", "192.0.2.1", "app"),
        ("shop.example", "/?debug", "10.1.2.3", "debug"),
        ("shop.example", "/?debug", "192.0.2.1", "app"),
        ("www.shop.example", "/", "192.0.2.1", ""),
        ("www1xshop.example", "/", "192.0.2.1", ""),
    ] {
        let answer = client.exchange(format!(
            "GET {target} HTTP/1.1\r\nHost: {host}\r\nX-Forwarded-For: {from}\r\n\r\n"
        ));
        match content {
            "" => assert_eq!(answer.status, 421, "{host} {target}"),
            content => assert_eq!(answer.text(), content, "{host} {target} {from}"),
        }
    }
    let text = route(&server, &["http://shop.example/report/7?year=1999", "--client", "10.1.2.3"]);
    assert!(text.contains("*: parameter year is not as it wants it"), "{text}");
    assert!(text.contains("*: parameter debug is not as it wants it"), "{text}");
    let row = "kernel       never answers: the method, the form of the path, parameter year, the client, \
               parameter debug may decide\n";
    assert!(text.contains(row), "{text}");
    let text = route(&server, &["http://shop.example/?debug"]);
    assert!(text.contains("wants another path") && text.contains("wants another client"), "{text}");
}

fn check(text: &str) -> String {
    let tree = Tree::new();
    let file = tree.outside("afpa.toml", text);
    let Output { stderr, status, .. } =
        Command::new(program()).arg("check").arg(&file).output().expect("afpa");
    assert!(!status.success(), "{text}");
    String::from_utf8_lossy(&stderr).into_owned()
}

#[test]
fn a_wrong_pattern_has_its_place_and_a_remedy() {
    let path =
        "[[site]]\nlisten = [\"127.0.0.1:1\"]\n[[site.path]]\nprefix = \"/\"\nstatus = 200\n";
    for (line, place, cause, remedy) in [
        ("if_path = [\"/a\", '~(b']", "6:18", "no regular expression: unclosed group", "syntax"),
        (
            "if_path = ['~((a{1,200}){1,200}){9}']",
            "6:12",
            "takes more than 262144 bytes",
            "repeat less",
        ),
        ("if_path = ['^/a']", "6:12", "paths begin with a slash", "\"~^/a\""),
        ("if_query = { a = '~[' }", "6:18", "no regular expression", "syntax"),
        ("if_query = { \"a=b\" = \"c\" }", "6:22", "not the name of a parameter", "apart"),
        ("if_headers = { A = '~*?' }", "6:20", "no regular expression", "syntax"),
        ("if_methods = [\"GTE\"]", "6:15", "there is no method \"GTE\"", "did you mean \"GET\"?"),
        ("if_clients = [\"10.0.0.1/8\"]", "6:15", "has bits", "write 10.0.0.0/8"),
    ] {
        let message = check(&format!("{path}{line}\n"));
        for part in [&format!("afpa.toml:{place}: error"), cause, remedy] {
            assert!(message.contains(part), "{line}: {part}: {message}");
        }
    }
    let message = check("[[site]]\nroot = \"/\"\nhosts = ['~(']\n");
    assert!(message.contains("afpa.toml:3:10: error: `hosts`"), "{message}");
}
