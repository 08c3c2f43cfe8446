//! The clients that may use a site, and parts of it.

use std::io::Write as _;
use std::net::TcpStream;

use afpa_testkit::server::free_address;
use afpa_testkit::{Server, Tree};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};
use afpa_tests::tls::{Authority, Plan, TlsServer};

/// A server that says which target it was asked for, and lets it be kept.
fn app() -> Raw {
    Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let Some(_) = read_content(&mut stream, &head) else { return };
            let target = head.split(' ').nth(1).unwrap_or("");
            let length = "app ".len() + target.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {length}\r\n\r\napp {target}"
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn tree() -> Tree {
    let tree = Tree::new();
    for name in ["index.html", "a.txt", "private/a.txt", "private/a.css", "private/open/a.txt"] {
        tree.file(name, name);
    }
    tree.file("secret/index.html", "secret");
    tree.file("secret/index.html.gz", "coded");
    tree
}

/// A site whose parts are for some clients. The tests' client is a trusted router, which names the client.
fn settings(app: &Raw) -> String {
    let to = app.to();
    format!(
        "forwarded_from = [\"127.0.0.1\"]\ndeny = [\"192.0.2.0/24\", \"2001:db8::/32\"]\nlisting = true\n\
         [[site.path]]\nprefix = \"/private/\"\nallow = [\"10.0.0.0/8\"]\n\
         [[site.path.content]]\nextensions = [\"css\"]\nallow = [\"10.1.0.0/16\"]\ndeny = [\"10.1.1.0/24\"]\n\
         [[site.path]]\nprefix = \"/private/open/\"\nallow = [\"0.0.0.0/0\", \"::/0\"]\n\
         [[site.path]]\nprefix = \"/secret/index.html\"\nexact = true\nallow = [\"10.0.0.0/8\"]\n\
         [[site.path]]\nprefix = \"/app/\"\nto = \"{to}\"\nallow = [\"10.0.0.0/8\"]\n\
         [[site.path]]\nprefix = \"/open/\"\nto = \"{to}\"\n\
         [[site.path]]\nprefix = \"/open/inner/\"\nallow = [\"10.0.0.0/8\"]\n\
         [[site.path]]\nprefix = \"/open/shut/\"\nstatus = 403\n\
         [[site.path]]\nprefix = \"/back/\"\nfallback = \"{to}\"\nallow = [\"10.0.0.0/8\"]\n\
         [[site.path]]\nprefix = \"/old/\"\nredirect = \"/a.txt\"\nallow = [\"10.0.0.0/8\"]\n\
         [[site.path]]\nprefix = \"/fixed/\"\nstatus = 200\nbody = \"fixed\"\nallow = [\"10.0.0.0/8\"]\n"
    )
}

/// Target, client, status.
const CASES: &[(&str, &str, u16)] = &[
    ("/a.txt", "198.51.100.1", 200),
    ("/a.txt", "192.0.2.7", 403),
    ("/a.txt", "2001:db8::1", 403),
    ("/a.txt", "::ffff:192.0.2.7", 403),
    ("/none", "192.0.2.7", 403),
    ("/none", "198.51.100.1", 404),
    ("/private/a.txt", "10.2.3.4", 200),
    // The lists of a path replace those of the site.
    ("/private/open/a.txt", "192.0.2.7", 200),
    ("/private/a.txt", "198.51.100.1", 403),
    ("/private/none", "198.51.100.1", 403),
    ("/private/a.css", "10.2.3.4", 403),
    ("/private/a.css", "10.1.3.4", 200),
    ("/private/a.css", "10.1.1.4", 403),
    ("/private/", "198.51.100.1", 403),
    ("/private/", "10.2.3.4", 200),
    // Other spellings of the path.
    ("/%70rivate/a.txt", "198.51.100.1", 403),
    ("//private//a.txt", "198.51.100.1", 403),
    ("/x/../private/a.txt", "198.51.100.1", 403),
    ("/private/open/../a.txt", "198.51.100.1", 403),
    ("/./private/./a.txt?x=/private/open/", "198.51.100.1", 403),
    // The index file has a path of its own.
    ("/secret/index.html", "198.51.100.1", 403),
    ("/secret/", "198.51.100.1", 403),
    ("/secret/", "10.2.3.4", 200),
    // A stored coding is another spelling of its file, and a servlet container drops parameters.
    ("/secret/index.html.gz", "198.51.100.1", 403),
    ("/secret/index.html.gz", "10.2.3.4", 200),
    ("/app;a/kept", "198.51.100.1", 403),
    ("/app;a/kept", "10.2.3.4", 404),
    ("/x/..;b=c/app/kept", "198.51.100.1", 403),
    ("/x/%2e%2e%3b/app/kept", "198.51.100.1", 403),
    ("/open;a/kept", "198.51.100.1", 404),
    // A server may take an escaped slash for a separator.
    ("/app%2Fkept", "198.51.100.1", 403),
    ("/app%2fkept", "10.2.3.4", 404),
    ("/open/a%2Fb", "198.51.100.1", 200),
    ("/open/inner%2Fx", "198.51.100.1", 403),
    ("/open/inner%2Fx", "10.2.3.4", 200),
    ("/open/inner;a%2Fb/x", "198.51.100.1", 403),
    ("/open/a;b%2Fc/%2Finner", "198.51.100.1", 200),
    ("/open/%2F%2finner%2Fx", "198.51.100.1", 403),
    ("/%2Fopen/inner%2Fx", "198.51.100.1", 403),
    ("/open/inner%252Fx", "198.51.100.1", 200),
    ("/open%2Finner%2Fx", "198.51.100.1", 403),
    ("/open/x/..;/inner%2Fx", "198.51.100.1", 403),
    ("/open/a/..%2Finner/x", "10.2.3.4", 400),
    ("/open/..%2Fapp/kept", "10.2.3.4", 400),
    ("/open/%2e%2E%2fapp/kept", "198.51.100.1", 400),
    ("/open/..;a%2Fapp%2Fkept", "10.2.3.4", 400),
    ("/open/a%2F..", "10.2.3.4", 400),
    ("/..%2f..%2fapp", "10.2.3.4", 400),
    ("/open/shut/x", "10.2.3.4", 403),
    ("/open/shut%2Fx", "10.2.3.4", 403),
    ("/app/kept", "10.2.3.4", 200),
    ("/app/kept", "198.51.100.1", 403),
    ("/back/kept", "10.2.3.4", 200),
    ("/back/kept", "198.51.100.1", 403),
    ("/old/", "10.2.3.4", 308),
    ("/old/", "198.51.100.1", 403),
    ("/fixed/", "10.2.3.4", 200),
    ("/fixed/", "198.51.100.1", 403),
];

fn serve(tree: &Tree, settings: &str) -> Server {
    let root = tree.path().display();
    let settings = format!("root = \"{root}\"\n{settings}");
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n")
        });
    })
}

#[test]
fn addresses_decide_in_each_place() {
    let (app, tree) = (app(), tree());
    let server = serve(&tree, &settings(&app));
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    // The second time, files are in memory and the answers of the server are kept.
    for _ in 0..2 {
        for (target, from, status) in CASES {
            let field = format!("X-Forwarded-For: {from}\r\n");
            assert_eq!(client.get_with(target, &field).status, *status, "{target} {from}");
            assert_eq!(client.head_with(target, &field).status, *status, "{target} {from}");
            let range = format!("{field}Range: bytes=0-1\r\n");
            let part = client.get_with(target, &range).status;
            assert_eq!(part == 403, *status == 403, "{target} {from}: {part}");
            let fields = [&h2::request("GET", target)[..], &[("x-forwarded-for", *from)]].concat();
            let stream = http2.request(&fields, b"");
            assert_eq!(http2.response(stream).status, *status, "{target} {from}");
        }
    }
    // Every method, and a change of protocol.
    for (method, lines) in [
        ("POST", "Content-Length: 0\r\n"),
        ("OPTIONS", ""),
        ("PURGE", ""),
        ("GET", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
    ] {
        for target in ["/app/kept", "/back/kept", "/private/a.txt"] {
            let answer = client.exchange(format!(
                "{method} {target} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 198.51.100.1\r\n{lines}\r\n"
            ));
            assert_eq!(answer.status, 403, "{method} {target}");
        }
    }
    // Without a router in front, the client is the one that connects.
    assert_eq!(client.get("/private/a.txt").status, 403);
}

#[test]
fn a_script_has_its_guard_whatever_stands_behind_its_name() {
    let (tree, dead) = (Tree::new(), free_address());
    for name in ["open.php", "exact.php", "flat/x.php", "group/x.php"] {
        tree.file(name, "<?php");
    }
    let settings = format!(
        "php = \"{dead}\"\n\
         [[site.path]]\nprefix = \"/exact.php\"\nexact = true\nallow = [\"10.0.0.0/8\"]\n\
         [[site.path]]\nprefix = \"/flat/\"\nrecursion = false\nallow = [\"10.0.0.0/8\"]\n\
         [[site.path]]\nprefix = \"/group/\"\n\
         [[site.path.content]]\nextensions = [\"php\"]\nallow = [\"10.0.0.0/8\"]\n"
    );
    let server = serve(&tree, &settings);
    let mut client = server.connect();
    // The second time, the scripts are known.
    for _ in 0..2 {
        assert_eq!(client.get("/open.php/x").status, 502, "nothing runs it here");
        for target in ["/exact.php", "/flat/x.php", "/group/x.php"] {
            for behind in ["", "/", "/x", "/x.css", "/x.php/y"] {
                let target = format!("{target}{behind}");
                assert_eq!(client.get(&target).status, 403, "{target}");
            }
        }
    }
}

#[test]
fn addresses_decide_over_tls() {
    let (app, tree, authority) = (app(), tree(), Authority::new());
    let plan = Plan { site: settings(&app), ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    let way = authority.way(&server);
    let mut client = way.connect();
    for (target, from, status) in CASES {
        let field = format!("X-Forwarded-For: {from}\r\n");
        assert_eq!(client.get_with(target, &field).status, *status, "{target} {from}");
    }
}
