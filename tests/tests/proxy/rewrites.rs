//! Rewrites, and redirects with the groups of expressions.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use afpa_testkit::server::program;
use afpa_testkit::{Server, Tree};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};

/// A server that says what it was asked for, and lets its answers be kept. It counts requests.
fn app() -> (Raw, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let app = Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let Some(content) = read_content(&mut stream, &head) else { return };
            counter.fetch_add(1, Ordering::Relaxed);
            let target = head.split(' ').nth(1).unwrap_or("");
            let text = format!("{target} {}", content.len());
            let length = text.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {length}\r\n\r\n{text}"
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    (app, asked)
}

fn tree() -> Tree {
    let tree = Tree::new();
    for name in ["user.html", "a.txt", "private/a.txt", "folder/index.html", "spa/there.txt"] {
        tree.file(name, name);
    }
    tree.file("users.txt", "a:{SHA}6dcfXufJLW3J6S/9rRe4vUlBj5g=\n");
    tree
}

/// Prefix and settings of paths.
const PATHS: &[(&str, &str)] = &[
    ("/api/", "to = \"APP\""),
    ("/u/", "if_path = ['~^/u/(?<id>\\d+)$']\nrewrite = \"/user.html?id={id}\""),
    ("/v/", "if_path = ['~^/v/(\\d)/(.*?)(x?)$']\nto = \"APP\"\nrewrite = \"/at/{1}/{2}?x={3}\""),
    ("/w/", "if_path = ['~^/w(/.*)$']\nto = \"APP\"\nrewrite = \"/at{1}\""),
    ("/esc/", "to = \"APP\"\nrewrite = \"/a%20b%2F;/\""),
    ("/keep/", "rewrite = \"/api/{rest}\""),
    ("/drop/", "rewrite = \"/api/{rest}?\""),
    ("/more/", "rewrite = \"/api/{rest}?a=1{query}\""),
    ("/raw/", "if_path = ['~^/raw/(.*)$']\nrewrite = \"/api/?v={1}&p={path}\""),
    ("/q", "exact = true\nif_query = { p = '~(?s)^(?<p>.*)$' }\nrewrite = \"/api/{p}\""),
    (
        "/d",
        "exact = true\nif_query = { p = '~(?s)^(?<p>.*)$' }\nto = \"APP\"\nrewrite = \"/at/{p}/x?\"",
    ),
    ("/one", "exact = true\nrewrite = \"/two\""),
    ("/two", "exact = true\nrewrite = \"/a.txt\""),
    ("/loop/", "if_path = [\"/loop/*\"]\nrewrite = \"/loop/{rest}\""),
    ("/dots", "if_path = ['~^/dots(.*)$']\nrewrite = \"/api/{1}\""),
    ("/fb/", "rewrite = \"/spa/{rest}\""),
    ("/spa/", "fallback = \"APP\""),
    ("/dir", "exact = true\nrewrite = \"/folder\""),
    ("/fixed", "exact = true\nstatus = 200\nbody = \"fixed\""),
    ("/to-fixed", "exact = true\nrewrite = \"/fixed\""),
    ("/to-moved", "exact = true\nrewrite = \"/r/b\""),
    ("/r/", "if_path = ['~^/r(/.*?)(x?)$']\nredirect = \"/{1}\""),
    ("/s/", "if_path = ['~^/s/(.*)$']\nredirect = \"/s?q={1}&r=1{query}#{1}\""),
    ("/n", "exact = true\nif_query = { to = '~(?s)^(?<to>.*)$' }\nredirect = \"/{to}\""),
    ("/o/", "if_path = ['~^/o/(?:(a)|b)(?<end>.*)$']\nredirect = \"https://b.example/{1}{end}\""),
];

fn settings(app: &Raw, tree: &Tree) -> String {
    let paths = PATHS.iter().map(|(prefix, lines)| {
        format!("[[site.path]]\nprefix = \"{prefix}\"\n{}\n", lines.replace("APP", &app.to()))
    });
    let root = tree.path().display();
    format!("root = \"{root}\"\nforwarded_from = [\"127.0.0.1\"]\n{}", paths.collect::<String>())
}

fn serve(settings: &str) -> Server {
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n")
        });
    })
}

/// Method, target, status, content or Location.
const CASES: &[(&str, &str, u16, &str)] = &[
    ("GET", "/u/42", 200, "user.html"),
    ("GET", "/u/42?x", 200, "user.html"),
    ("GET", "/u/x", 404, ""),
    ("POST", "/u/42", 405, ""),
    ("GET", "/v/1/a%20b%3Bc;d?zz=1", 200, "/at/1/a%20b%3Bc;d?x= 0"),
    ("GET", "/v/1/ax", 200, "/at/1/a?x=x 0"),
    ("POST", "/v/1/ax", 200, "/at/1/a?x=x 3"),
    ("GET", "/w/a%2cb?c=d&%65", 200, "/at/a%2Cb?c=d&%65 0"),
    ("GET", "/esc/a%2cb/%C3%BC?c=d", 200, "/a%20b%2F;/a%2Cb/%C3%BC?c=d 0"),
    ("GET", "/keep/a%2cb?c=d", 200, "/api/a%2Cb?c=d 0"),
    ("GET", "/keep/a", 200, "/api/a 0"),
    ("GET", "/keep/a%2fb%252f", 200, "/api/a%2Fb%252f 0"),
    ("GET", "/w/a%2f%2Fb", 200, "/at/a%2F%2Fb 0"),
    ("GET", "/raw/a%2fb", 200, "/api/?v=a%2Fb&p=/raw/a%2Fb 0"),
    ("POST", "/keep/a", 200, "/api/a 3"),
    ("GET", "/drop/a?c", 200, "/api/a 0"),
    ("GET", "/more/a?b=2", 200, "/api/a?a=1&b=2 0"),
    ("GET", "/more/a", 200, "/api/a?a=1 0"),
    (
        "GET",
        "/raw/a&b=c+d;%3f/%c3%a9%23?x",
        200,
        "/api/?v=a%26b%3Dc%2Bd%3B%3F/%C3%A9%23&p=/raw/a%26b%3Dc%2Bd%3B%3F/%C3%A9%23 0",
    ),
    ("GET", "/q?p=a+b%26c%3f", 200, "/api/a%20b%26c%3F?p=a+b%26c%3f 0"),
    ("GET", "/q?p=x%2fy", 200, "/api/x%2Fy?p=x%2fy 0"),
    ("GET", "/q?p=..", 400, ""),
    ("GET", "/q?p=%0d%0aA:b", 400, ""),
    ("GET", "/q?p=%00", 400, ""),
    ("GET", "/d?p=a", 200, "/at/a/x 0"),
    ("GET", "/d?p=..", 400, ""),
    ("GET", "/d?p=.", 400, ""),
    ("GET", "/d?p=a%2fb", 200, "/at/a%2Fb/x 0"),
    ("GET", "/d?p=..%2f..", 400, ""),
    ("GET", "/d?p=%0a", 400, ""),
    ("GET", "/d?p=", 200, "/at/x 0"),
    ("GET", "/one", 200, "a.txt"),
    ("GET", "/loop/a", 500, ""),
    ("GET", "/dots../x", 400, ""),
    ("GET", "/dots..", 400, ""),
    ("GET", "/dots/x", 200, "/api/x 0"),
    ("GET", "/fb/x?y", 200, "/spa/x?y 0"),
    ("POST", "/fb/x", 200, "/spa/x 3"),
    ("GET", "/fb/there.txt", 200, "spa/there.txt"),
    ("GET", "/dir?x", 301, "/folder/?x"),
    ("GET", "/dir/", 404, ""),
    ("GET", "/to-fixed", 200, "fixed"),
    ("GET", "/to-moved", 308, "/b"),
    ("GET", "/r/evil.example/", 308, "/evil.example/"),
    ("GET", "/r/%5Cevil.example", 308, "/%5Cevil.example"),
    ("GET", "/r//evil.example", 308, "/evil.example"),
    ("GET", "/r/https:/evil.example", 308, "/https:/evil.example"),
    ("GET", "/r/%0d%0aSet-Cookie:a", 400, ""),
    ("GET", "/s/a&b%20%25%3f/e?z=1", 308, "/s?q=a%26b%20%25%3F/e&r=1&z=1#a%26b%20%25%3F/e"),
    ("GET", "/s/a%2fb/c", 308, "/s?q=a%2Fb/c&r=1#a%2Fb/c"),
    ("GET", "/r/a%2fb", 308, "/a%2Fb"),
    ("GET", "/r/%2fevil.example", 308, "/%2Fevil.example"),
    ("GET", "/s/%c3%a9", 308, "/s?q=%C3%A9&r=1#%C3%A9"),
    ("GET", "/n?to=%2f%2fevil.example", 308, "/%2F%2Fevil.example"),
    ("GET", "/n?to=%5cevil.example", 308, "/%5Cevil.example"),
    ("GET", "/n?to=a%0d%0aA:b", 308, "/a%0D%0AA%3Ab"),
    ("GET", "/n?to=https:%2f%2fevil.example", 308, "/https%3A%2F%2Fevil.example"),
    ("GET", "/n?other&to=%E4", 308, "/%E4"),
    ("GET", "/n", 404, ""),
    ("GET", "/o/a/1", 308, "https://b.example/a/1"),
    ("GET", "/o/b%2e%3b", 308, "https://b.example/.%3B"),
];

#[test]
fn a_request_is_answered_as_its_new_target_in_each_protocol() {
    let ((app, asked), tree) = (app(), tree());
    let server = serve(&settings(&app, &tree));
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    // The second time, files are in memory and the answers of the server are kept.
    for _ in 0..2 {
        for (method, target, status, text) in CASES {
            let content = if *method == "POST" { "abc" } else { "" };
            let length = content.len().to_string();
            let http1 = client.exchange(format!(
                "{method} {target} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{content}"
            ));
            let mut fields = h2::request(method, target);
            fields.push(("content-length", &length));
            let stream = http2.request(&fields, content.as_bytes());
            for answer in [http1, http2.response(stream)] {
                assert_eq!(answer.status, *status, "{method} {target}: {answer:?}");
                match status {
                    200 => assert_eq!(answer.text(), *text, "{method} {target}"),
                    301 | 308 => assert_eq!(answer.field("location"), Some(*text), "{target}"),
                    _ => {}
                }
            }
        }
    }
    // Behind one another, as a client may send them.
    let all = ["/u/1", "/keep/b", "/one", "/v/1/b"]
        .map(|target| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
    client.send(all.concat());
    for text in ["user.html", "/api/b 0", "a.txt", "/at/1/b?x= 0"] {
        assert_eq!(client.receive().text(), text);
    }
    // The server cannot tell the two URLs apart, so they have one answer.
    let before = asked.load(Ordering::Relaxed);
    for target in ["/keep/shared?a", "/api/shared?a", "/keep/shared?a"] {
        assert_eq!(client.get(target).text(), "/api/shared?a 0");
    }
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
}

#[test]
fn a_path_that_is_rewritten_has_its_guard_and_so_has_the_new_one() {
    let ((app, _), tree) = (app(), tree());
    let near = "allow = [\"10.0.0.0/8\"]";
    let users = format!("basic_auth = \"{}\"", tree.path().join("users.txt").display());
    let path =
        |prefix: &str, lines: &str| format!("[[site.path]]\nprefix = \"{prefix}\"\n{lines}\n");
    let paths = [
        path("/door/", "rewrite = \"/private/{rest}\""),
        path("/private/", near),
        path("/shut/", &format!("if_path = [\"*\"]\nrewrite = \"/a.txt\"\n{near}")),
        path(
            "/qq",
            "exact = true\nif_query = { p = '~(?s)^(?<p>.*)$' }\nrewrite = \"/open/{p}/a.txt\"",
        ),
        path("/key/", "rewrite = \"/locked/{rest}\""),
        path("/locked/", &format!("to = \"{}\"\n{users}", app.to())),
        path("/own/", &format!("if_path = [\"*\"]\nrewrite = \"/a.txt\"\n{users}")),
        path("/both/", &format!("rewrite = \"/locked/{{rest}}\"\n{users}")),
    ];
    let server = serve(&(settings(&app, &tree) + &paths.concat()));
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    let (right, wrong) = ("Basic YTpi", "Basic YTpj");
    for _ in 0..2 {
        for (target, from, status) in [
            ("/door/a.txt", "10.1.2.3", 200),
            ("/door/a.txt", "192.0.2.1", 403),
            ("/door/none", "192.0.2.1", 403),
            ("/shut/x", "10.1.2.3", 200),
            ("/shut/x", "192.0.2.1", 403),
            ("/%73hut//x", "192.0.2.1", 403),
            ("/qq?p=..%2fprivate", "192.0.2.1", 400),
            ("/qq?p=..", "192.0.2.1", 400),
            ("/a.txt", "192.0.2.1", 200),
        ] {
            let field = format!("X-Forwarded-For: {from}\r\n");
            assert_eq!(client.get_with(target, &field).status, status, "{target} {from}");
            let fields = [&h2::request("GET", target)[..], &[("x-forwarded-for", from)]].concat();
            let stream = http2.request(&fields, b"");
            assert_eq!(http2.response(stream).status, status, "{target} {from}");
        }
        for target in ["/key/x", "/own/x", "/both/x"] {
            assert_eq!(client.get(target).status, 401, "{target}");
            for (credentials, status) in [(right, 200), (wrong, 401), (right, 200)] {
                let field = format!("Authorization: {credentials}\r\n");
                assert_eq!(client.get_with(target, &field).status, status, "{target}");
                let fields =
                    [&h2::request("GET", target)[..], &[("authorization", credentials)]].concat();
                let stream = http2.request(&fields, b"");
                assert_eq!(http2.response(stream).status, status, "{target}");
            }
        }
    }
}

fn route(server: &Server, arguments: &[&str]) -> String {
    let mut command = Command::new(program());
    command.arg("route").args(arguments).arg("--config").arg(server.configuration());
    String::from_utf8_lossy(&command.output().expect("run").stdout).into_owned()
}

#[test]
fn the_page_about_rewrites_has_a_configuration_that_does_what_it_says() {
    let ((app, _), tree) = (app(), tree());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rewrites.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example").replace("127.0.0.1:3000", &app.to());
    let example = example.replace("/srv/www", &tree.path().display().to_string());
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let loops =
                "[[site.path]]\nprefix = \"/loop/\"\nif_path = [\"*\"]\nrewrite = \"{path}\"\n";
            example.replace("[[site]]", &format!("[[site]]\nlisten = [\"{listen}\"]")) + loops
        });
    });
    let mut client = server.connect();
    assert_eq!(client.get("/u/42").text(), "user.html");
    assert_eq!(client.get("/img/42/a%20b").text(), "/resize?w=42&name=a%20b 0");
    assert_eq!(client.get("/img/x/a").status, 404);
    let moved = client.get("/blog/7/a?x=1");
    assert_eq!(
        (moved.status, moved.field("location")),
        (301, Some("https://blog.example/7-a?x=1"))
    );
    let text = route(&server, &["/u/42"]);
    let rows = "behaviour    routed again as /user.html?id={id}, if the path is \"~^/u/(?<id>\\d+)$\"\n\
                rewritten to /user.html?id=42\n\
                kernel       never answers: another target decides\n\
                path         /user.html\n";
    assert!(text.contains(rows) && text.contains("/user.html\n"), "{text}");
    let text = route(&server, &["/img/42/a%20b?x"]);
    assert!(text.contains("asks for     /resize?w=42&name=a%20b\n"), "{text}");
    let text = route(&server, &["/loop/a"]);
    assert!(text.contains("answer       500: it is rewritten again and again\n"), "{text}");
    assert_eq!(client.get("/loop/a").status, 500);
    assert!(server.log().contains("a request is rewritten again and again"), "{}", server.log());
}

fn check(text: &str) -> (bool, String) {
    let tree = Tree::new();
    let file = tree.outside("afpa.toml", text);
    let Output { stderr, stdout, status, .. } =
        Command::new(program()).arg("check").arg(&file).output().expect("afpa");
    let said = [stdout, stderr].concat();
    (status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_text_that_cannot_be_used_has_its_place_and_a_remedy() {
    let site =
        "[[site]]\nlisten = [\"127.0.0.1:1\"]\nroot = \"/\"\n[[site.path]]\nprefix = \"/p/\"\n";
    for (lines, cause) in [
        ("if_path = ['~^/(a)$']\nredirect = \"/{2}\"", "`redirect` has {2}, which is no group"),
        ("if_path = ['~^/(a)$', \"/b*\"]\nredirect = \"/{1}\"", "{1}, which is no group of each"),
        ("redirect = \"/{1}\"", "{1}, which is no group"),
        ("if_path = ['~^/(?<a>.)|b$', '~c']\nrewrite = \"/{a}\"", "{a}, which is no group of each"),
        ("if_path = ['~^/(a)$']\nredirect = \"/{0}\"", "{0}, which stands for nothing"),
        ("if_path = ['~^/(a)$']\nredirect = \"/{b}\"", "{b}, which stands for nothing"),
        ("rewrite = \"/{host}/{rest}\"", "`rewrite` has {host}, which stands for nothing"),
        ("if_path = ['~^/(?<path>a)$']\nrewrite = \"/x{path}\"", "a group has this name too"),
        ("if_path = ['~^/(a)$']\nredirect = \"https://{1}.example/\"", "behind the name of a host"),
        ("if_path = ['~^/(a)$']\nredirect = \"https://a.example{1}\"", "behind the name of a host"),
        ("if_path = ['~^/(a)$']\nredirect = \"https:///{1}\"", "behind the name of a host"),
        ("redirect = \"https://{path}\"", "behind the name of a host"),
        ("redirect = \"/\\\\{rest}\"", "behind the name of a host"),
        ("if_query = { a = '~^(?<a>.*)$' }\nredirect = \"//{a}/\"", "behind the name of a host"),
        ("rewrite = \"new/{rest}\"", "does not begin with a slash"),
        ("rewrite = \"new\"", "does not begin with a slash"),
        ("rewrite = \"/a/../{rest}\"", "`rewrite` gives no target"),
        ("rewrite = \"/a/%2e%2E/{rest}\"", "`rewrite` gives no target"),
        ("rewrite = \"/a/..%2f{rest}\"", "`rewrite` gives no target"),
        ("rewrite = \"/100%/{rest}\"", "`rewrite` gives no target"),
        ("rewrite = \"/a#{rest}\"", "`rewrite` gives no target"),
        ("rewrite = \"/a b/{rest}\"", "escape spaces"),
        ("rewrite = \"/p/{rest}\"", "`rewrite` leads back to itself"),
        ("rewrite = \"/p/x\"", "`rewrite` leads back to itself"),
        ("root = \"/tmp\"\nrewrite = \"/x\"", "`root` and `rewrite` are two things to do"),
        ("redirect = \"/y\"\nrewrite = \"/x\"", "`redirect` and `rewrite` are two things to do"),
        ("if_path = ['~(']\nrewrite = \"/{1}\"", "no regular expression"),
    ] {
        let (good, message) = check(&format!("{site}{lines}\n"));
        assert!(!good && message.contains(cause), "{lines}: {message}");
        assert!(message.contains("afpa.toml:"), "{lines}: {message}");
    }
    let (good, message) = check(&format!("{site}rewrite = \"/new/\"\n"));
    let warning = "6:11: warning: every path below \"/p/\" becomes \"/new/\"";
    assert!(good && message.contains(warning), "{message}");
    let two = "rewrite = \"/b/{rest}\"\n[[site.path]]\nprefix = \"/b/\"\nrewrite = \"/p/{rest}\"\n";
    let (good, message) = check(&format!("{site}{two}"));
    assert!(!good && message.contains("leads back"), "{message}");
    for good in [
        "if_path = ['~^/p/[^.]*$']\nrewrite = \"{path}.html\"",
        "rewrite = \"/a%20b/{rest}\"",
        "rewrite = \"/x\"",
    ] {
        let (is_good, message) = check(&format!("{site}{good}\n"));
        assert!(is_good, "{good}: {message}");
    }
}
