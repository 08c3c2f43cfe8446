//! PHP by FastCGI, with Debian's PHP-FPM.

use std::fmt::Write as _;
use std::time::Duration;

use afpa_testkit::{Client, Server, Tree, eventually};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{PhpFpm, Raw};
use afpa_tests::tls::{Authority, Plan, TlsServer};

/// A front controller that says how it was called.
const FRONT: &str = "<?php $s = $_SERVER; \
    echo 'front ', $s['REQUEST_METHOD'], ' ', $s['REQUEST_URI'], ' script=', $s['SCRIPT_NAME'], \
    ' info=', $s['PATH_INFO'] ?? '', ' got=', strlen(file_get_contents('php://input'));";

/// Prints all variables, one a line.
const VARIABLES: &str = "<?php header('Content-Type: text/plain'); ksort($_SERVER);\n\
    foreach ($_SERVER as $name => $value) if (is_string($value)) echo \"$name=$value\\n\";";

fn tree() -> Tree {
    let tree = Tree::new();
    tree.file("index.php", FRONT);
    tree.file("env.php", VARIABLES);
    tree.file("a.css", "css");
    tree.file("shop/index.html", "shop");
    tree.file("blog/index.php", "<?php echo 'blog ', $_SERVER['SCRIPT_NAME'];");
    tree.file("blog/index.html", "not this");
    tree.file("dir.php/plain.txt", "plain");
    tree.file("image.jpg", "<?php echo 'hole';");
    tree.file("x.php.gz", "<?php /* secret */");
    tree.file("UP.PHP", "<?php /* secret */");
    tree.file("uploads/evil.php", "<?php echo 'evil';");
    tree.file("uploads/a.txt", "text");
    tree.file(".hidden.php", "<?php echo 'hidden';");
    tree.link("link.txt", "env.php");
    tree.outside("outside.php", "<?php echo 'outside';");
    tree.link("out.php", "../outside.php");
    tree.file("post.php", "<?php echo $_POST['a'] ?? '-', ' ', $_SERVER['CONTENT_LENGTH'], ' ', strlen(file_get_contents('php://input')), ' ', $_FILES['f']['size'] ?? 'none';");
    tree.file("teapot.php", "<?php http_response_code(418); echo 'short';");
    tree.file("none.php", "<?php http_response_code(204);");
    tree.file("to.php", "<?php header('Location: /there?a=b');");
    tree.file(
        "session.php",
        "<?php session_start(); $_SESSION['n'] = ($_SESSION['n'] ?? 0) + 1; echo $_SESSION['n'];",
    );
    tree.file(
        "long.php",
        "<?php for ($i = 0; $i < 300; $i++) echo str_repeat(chr(97 + $i % 26), 10000);",
    );
    tree.file("sized.php", "<?php header('Content-Length: 5'); echo 'sized';");
    tree.file("range.php", "<?php header('Accept-Ranges: bytes'); if (isset($_SERVER['HTTP_RANGE'])) { http_response_code(206); header('Content-Range: bytes 0-1/5'); echo 'si'; }");
    tree.file("early.php", "<?php echo 'early'; fastcgi_finish_request(); touch(__DIR__ . '/done'); file_put_contents(__DIR__ . '/later', 'later');");
    tree.file("message.php", "<?php error_log(\"one\\x1b[31m\\ntwo\"); echo 'said';");
    tree.file("pid.php", "<?php echo getmypid();");
    tree
}

/// A server for this tree, with settings of its site.
fn serve(tree: &Tree, groups: &str, settings: &str) -> Server {
    let root = tree.path().display();
    Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "http2.cleartext = true\n{groups}\n[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\n\
                 forwarded_from = [\"127.0.0.9\"]\n{settings}\n"
            )
        });
    })
}

type Case = (&'static str, &'static str, u16, &'static str);

const CASES: &[Case] = &[
    ("GET", "/", 200, "front GET / script=/index.php info= got=0"),
    ("GET", "/a.css", 200, "css"),
    ("GET", "/shop/", 200, "shop"),
    ("GET", "/blog/", 200, "blog /blog/index.php"),
    (
        "GET",
        "/index.php/a%20b/c?d",
        200,
        "front GET /index.php/a%20b/c?d script=/index.php info=/a b/c got=0",
    ),
    ("GET", "/index.php/", 200, "front GET /index.php/ script=/index.php info=/ got=0"),
    ("GET", "/posts/42?x=%41", 200, "front GET /posts/42?x=%41 script=/index.php info= got=0"),
    ("GET", "/absent.php", 200, "front GET /absent.php script=/index.php info= got=0"),
    ("POST", "/posts/42", 200, "front POST /posts/42 script=/index.php info= got=4"),
    ("PUT", "/index.php", 200, "front PUT /index.php script=/index.php info= got=4"),
    ("PROPFIND", "/dav/x", 200, "front PROPFIND /dav/x script=/index.php info= got=0"),
    ("POST", "/a.css", 405, ""),
    ("GET", "/dir.php/plain.txt", 200, "plain"),
    // No file is run whose name is not that of a script, and no script is sent.
    ("GET", "/image.jpg/x.php", 200, "front GET /image.jpg/x.php script=/index.php info= got=0"),
    ("GET", "/x.php.gz", 403, ""),
    ("GET", "/%78.php.gz", 403, ""),
    ("GET", "/link.txt", 403, ""),
    ("GET", "/out.php", 403, ""),
    ("GET", "/out.php/more", 403, ""),
    ("GET", "/UP.PHP", 403, "Access denied.\n"),
    ("GET", "/uploads/evil.php", 403, ""),
    ("GET", "/uploads/evil.php/x", 403, ""),
    ("GET", "/uploads/a.txt", 200, "text"),
    // The front controller is not run there.
    ("GET", "/uploads/none.jpg", 404, ""),
    ("GET", "/.hidden.php", 404, ""),
    ("GET", "/teapot.php", 418, "short"),
    ("GET", "/none.php", 204, ""),
    ("GET", "/to.php", 302, ""),
    ("GET", "/sized.php", 200, "sized"),
    ("HEAD", "/sized.php", 200, ""),
    ("HEAD", "/long.php", 200, ""),
];

const SITE: &str =
    "fallback = \"/index.php\"\n[[site.path]]\nprefix = \"/uploads/\"\nphp = \"none\"\n";

#[test]
fn scripts_are_run_and_never_sent() {
    for by_unix in [true, false] {
        let fpm = match PhpFpm::start(by_unix, 2, "") {
            Ok(fpm) => fpm,
            Err(why) => return println!("SKIP: {why}"),
        };
        let tree = tree();
        let server = serve(&tree, "", &format!("php = \"{}\"\n{SITE}", fpm.to()));
        // Twice: the second time the core knows the names.
        for _ in 0..2 {
            let (mut http1, mut http2) = (server.connect(), H2Client::connect(&server));
            for (method, target, status, text) in CASES {
                let content = if matches!(*method, "POST" | "PUT") { "a=bc" } else { "" };
                let length = content.len().to_string();
                let lines = format!("Host: a.org\r\nContent-Length: {length}\r\n");
                let request = format!("{method} {target} HTTP/1.1\r\n{lines}\r\n{content}");
                let mut fields = h2::request(method, target);
                fields.push(("content-length", &length));
                let id = http2.request(&fields, content.as_bytes());
                for by in [http1.exchange(request), http2.response(id)] {
                    assert_eq!(by.status, *status, "{method} {target}: {by:?}");
                    assert!(!by.text().contains("<?php"), "{method} {target}: {by:?}");
                    let is_page = *status >= 400 && text.is_empty();
                    assert!(is_page || by.text() == *text, "{method} {target}: {by:?}");
                }
            }
        }
        let range = server.connect().get_with("/UP.PHP", "Range: bytes=0-4\r\n");
        assert_eq!(range.status, 403, "{range:?}");
        assert_eq!(server.get("/to.php").field("location"), Some("/there?a=b"));
        assert_eq!(server.connect().head_with("/sized.php", "").field("content-length"), Some("5"));
        assert_eq!(server.get("/sized.php").field("content-length"), Some("5"));
        assert!(server.get("/a.css").field("etag").is_some(), "a file as ever");
    }
}

#[test]
fn a_script_learns_what_nginx_tells_it_and_nothing_that_a_client_makes_up() {
    let fpm = match PhpFpm::start(true, 2, "") {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    tree.file("users.txt", "a:{SHA}6dcfXufJLW3J6S/9rRe4vUlBj5g=\n");
    let users = tree.path().join("users.txt").display().to_string();
    let consent = "HTTP/1.1 200 OK\r\nRemote-Name: Ann A.\r\nContent-Length: 0\r\n\r\n";
    let portal = Raw::answering(consent, Duration::ZERO);
    let php = format!(
        "php = \"{}\"\nphp_params = {{ APP_ENV = \"test\" }}\nbasic_auth = \"{users}\"\n\
         forward_auth = \"{}\"\nforward_auth_path = \"/verify\"\n\
         forward_auth_copy = [\"Remote-Name\", \"Remote-Mail\"]\n",
        fpm.to(),
        portal.to()
    );
    let server = serve(&tree, "", &php);
    let asked = "GET /env.php/more%20of%2fit?q=%31&b HTTP/1.1\r\nHost: Shop.Example:80\r\nX_Role: admin\r\n\
                 X-Role: user\r\nRemote-Mail: root\r\nRemote_Name: root\r\nProxy: evil\r\nHTTPS: on\r\nScript-Filename: /etc/passwd\r\n\
                 X-Forwarded-Proto: https\r\nX-Forwarded-For: 6.6.6.6\r\nCookie: a=1\r\nCookie: b=2\r\n\
                 Authorization: Basic YTpi\r\nContent_Length: 7\r\nX.Dot: 1\r\n\r\n";
    let mut client = server.connect();
    let own_port = client.tcp().local_addr().expect("an address").port().to_string();
    let said = client.exchange(asked);
    let text = said.text();
    let port = server.address().port().to_string();
    let address = server.address().ip().to_string();
    let root = tree.path().canonicalize().expect("a root");
    let root = root.display();
    for (name, value) in [
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("QUERY_STRING", "q=%31&b"),
        ("REQUEST_URI", "/env.php/more%20of%2fit?q=%31&b"),
        ("SCRIPT_NAME", "/env.php"),
        ("SCRIPT_FILENAME", &format!("{root}/env.php")),
        ("DOCUMENT_ROOT", &root.to_string()),
        ("DOCUMENT_URI", "/env.php/more of/it"),
        ("PATH_INFO", "/more of/it"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_SCHEME", "http"),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("REMOTE_PORT", &own_port),
        ("SERVER_ADDR", &address),
        ("SERVER_PORT", &port),
        ("SERVER_NAME", "shop.example"),
        ("REDIRECT_STATUS", "200"),
        ("HTTP_HOST", "shop.example:80"),
        ("HTTP_COOKIE", "a=1; b=2"),
        ("HTTP_X_ROLE", "user"),
        ("HTTP_HTTPS", "on"),
        ("HTTP_SCRIPT_FILENAME", "/etc/passwd"),
        ("PHP_AUTH_USER", "a"),
        ("REMOTE_USER", "a"),
        ("AUTH_TYPE", "Basic"),
        ("HTTP_REMOTE_NAME", "Ann A."),
        ("APP_ENV", "test"),
    ] {
        assert!(
            text.lines().any(|line| line == format!("{name}={value}")),
            "{name}={value}\n{text}"
        );
    }
    for absent in [
        "HTTP_PROXY=",
        "HTTPS=",
        "HTTP_X_FORWARDED",
        "HTTP_X_DOT",
        "HTTP_CONTENT_LENGTH",
        "HTTP_REMOTE_MAIL",
    ] {
        assert!(!text.lines().any(|line| line.starts_with(absent)), "{absent}\n{text}");
    }
    // A router that is trusted names the client and the scheme.
    let from = "127.0.0.9".parse().expect("an address");
    let mut router = Client::connect_from(from, server.address()).expect("connected");
    let said = router.exchange(
        "GET /env.php HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.1.2.3\r\nX-Forwarded-Proto: https\r\n\
         Authorization: Basic YTpi\r\n\r\n",
    );
    for line in ["REMOTE_ADDR=10.1.2.3", "HTTPS=on", "REQUEST_SCHEME=https"] {
        assert!(said.text().lines().any(|said| said == line), "{line}\n{}", said.text());
    }
    assert!(!said.text().contains("REMOTE_PORT="), "it is not known: {}", said.text());

    let authority = Authority::new();
    let plan = Plan { site: php, ..Plan::default() };
    let secure = TlsServer::with(&authority, tree.path(), plan);
    let (found, text) = secure.curl(&authority, &["-u", "a:b", &secure.url("/env.php")]);
    let text = String::from_utf8_lossy(&text);
    assert!(found && text.lines().any(|line| line == "HTTPS=on"), "{text}");
}

#[test]
fn a_script_behind_a_rewrite_has_the_url_of_the_client() {
    let fpm = match PhpFpm::start(true, 2, "") {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    tree.file(
        "kept.php",
        "<?php header('Cache-Control: max-age=600'); echo $_SERVER['REQUEST_URI'], ' ', $_SERVER['QUERY_STRING'];",
    );
    let settings = format!(
        "php = \"{}\"\n\
         [[site.path]]\nprefix = \"/p/\"\nif_path = ['~^/p/(\\d+)$']\nrewrite = \"/env.php/a%20b?id={{1}}\"\n\
         [[site.path]]\nprefix = \"/k/\"\nrewrite = \"/kept.php\"\n",
        fpm.to()
    );
    let server = serve(&tree, "", &settings);
    let mut client = server.connect();
    let said = client.get("/p/%34%32?x=1");
    for line in [
        "REQUEST_URI=/p/%34%32?x=1",
        "QUERY_STRING=id=42",
        "SCRIPT_NAME=/env.php",
        "PATH_INFO=/a b",
        "DOCUMENT_URI=/env.php/a b",
    ] {
        assert!(said.text().lines().any(|own| own == line), "{line}\n{}", said.text());
    }
    // The script tells the URLs apart, so their kept answers are two.
    for _ in 0..2 {
        for target in ["/k/1", "/k/2", "/kept.php", "/k/1?q", "/k/2?q", "/kept.php?q"] {
            let query = target.split('?').nth(1).unwrap_or_default();
            assert_eq!(client.get(target).text(), format!("{target} {query}"));
        }
    }
}

/// REQUEST_URI is the path as it was sent, and scripts show it: nobody may choose the page that others get for a URL.
#[test]
fn a_script_that_shows_how_its_url_was_spelled_has_an_answer_for_each_spelling() {
    let fpm = match PhpFpm::start(true, 2, "") {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    tree.file(
        "kept.php",
        "<?php header('Cache-Control: max-age=600'); echo $_SERVER['REQUEST_URI'], ' ', hrtime(true);",
    );
    let server = serve(&tree, "", &format!("php = \"{}\"\n", fpm.to()));
    let mut client = server.connect();
    let targets = [
        "//evil.example/../kept.php",
        "/x/../kept.php",
        "/%6bept.php",
        "/./kept.php?q",
        "/kept.php",
        "/kept.php?q",
        "/kept.php/%61",
        "/kept.php/a",
    ];
    let first = targets.map(|target| client.get(target).text().to_owned());
    for (target, text) in targets.iter().zip(&first) {
        assert!(text.starts_with(&format!("{target} ")), "{target}: {text}");
        assert_eq!(client.get(target).text(), text, "it is kept");
    }
}

/// HTTPS and REQUEST_SCHEME say it, also where scripts get no field of routers in front.
#[test]
fn a_script_that_learns_the_scheme_of_a_router_in_front_has_an_answer_for_each() {
    let fpm = match PhpFpm::start(true, 2, "") {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    tree.file(
        "scheme.php",
        "<?php header('Cache-Control: max-age=600'); echo $_SERVER['REQUEST_SCHEME'];",
    );
    let group = format!(
        "[[server_group]]\nname = \"php\"\nservers = [\"{}\"]\n[server_group.request]\nx_forwarded = \"remove\"\n",
        fpm.to()
    );
    let server = serve(&tree, &group, "php = \"php\"\n");
    let from = "127.0.0.9".parse().expect("an address");
    let mut router = Client::connect_from(from, server.address()).expect("connected");
    for _ in 0..2 {
        for scheme in ["https", "http"] {
            let line = format!("X-Forwarded-Proto: {scheme}\r\n");
            assert_eq!(router.get_with("/scheme.php", &line).text(), scheme);
        }
    }
}

#[test]
fn content_of_every_kind_reaches_the_script() {
    let fpm = match PhpFpm::start(
        true,
        2,
        "php_admin_value[post_max_size] = 64M\n\
                                            php_admin_value[upload_max_filesize] = 64M",
    ) {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    let server = serve(&tree, "", &format!("php = \"{}\"\n", fpm.to()));
    let mut client = server.connect();
    let mut post = |lines: &str, content: &str| {
        let head = format!("POST /post.php HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        client.exchange(head + content)
    };
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let said = post(&format!("{form}Content-Length: 4\r\n"), "a=bc");
    assert_eq!(said.text(), "bc 4 4 none", "{said:?}");
    // PHP gets the length of chunks, too.
    let said =
        post(&format!("{form}Transfer-Encoding: chunked\r\n"), "3\r\na=b\r\n1\r\nc\r\n0\r\n\r\n");
    assert_eq!(said.text(), "bc 4 4 none", "{said:?}");
    let large = "x".repeat(5_000_000);
    let said = post(&format!("Content-Type: a/b\r\nContent-Length: {}\r\n", large.len()), &large);
    assert_eq!(said.text(), "- 5000000 5000000 none", "{said:?}");
    let mut parts = String::new();
    let file = "y".repeat(200_000);
    let _ = write!(
        parts,
        "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.bin\"\r\n\r\n{file}\r\n--B--\r\n"
    );
    let lines = format!(
        "Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {}\r\n",
        parts.len()
    );
    assert!(post(&lines, &parts).text().ends_with(" 200000"));
    // More chunks than are gathered: the client has to say the length.
    let mut client = server.connect();
    client.send("POST /post.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("{:x}\r\n{}\r\n", 300_000, "z".repeat(300_000));
    for _ in 0..4 {
        if client.try_send(&chunk).is_err() {
            break;
        }
    }
    assert_eq!(client.receive().status, 411);
    // A client that waits for leave gets it from AFPA.
    for length in [4, 100_000] {
        let mut client = server.connect();
        client.send(format!("POST /post.php HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"));
        assert_eq!(client.take(25), b"HTTP/1.1 100 Continue\r\n\r\n", "{length}");
        client.send("v".repeat(length));
        assert_eq!(client.receive().text(), format!("- {length} {length} none"));
    }
}

#[test]
fn answers_of_every_kind_reach_the_client() {
    let fpm = match PhpFpm::start(true, 2, "") {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    tree.set_mode("", 0o777);
    let server = serve(&tree, "", &format!("php = \"{}\"\n", fpm.to()));
    let mut client = server.connect();
    let long = client.get("/long.php");
    assert_eq!((long.status, long.body.len()), (200, 3_000_000));
    assert!(
        long.body
            .chunks(10_000)
            .zip(0..)
            .all(|(piece, i)| piece.iter().all(|&b| b == 97 + (i % 26) as u8))
    );
    let range = client.get_with("/range.php", "Range: bytes=0-1\r\n");
    assert_eq!((range.status, range.text()), (206, "si"), "the script's own answer");
    let first = client.get("/session.php");
    let cookie =
        first.field("set-cookie").and_then(|set| set.split(';').next()).expect("a session");
    let second = client.get_with("/session.php", &format!("Cookie: {cookie}\r\n"));
    assert_eq!((first.text(), second.text()), ("1", "2"));
    assert_eq!(client.get("/early.php").text(), "early");
    eventually("the script goes on", || tree.at("later").exists());
    assert_eq!(client.get("/message.php").text(), "said");
    eventually("its messages are in the log", || {
        let log = server.log();
        log.contains("one\\u{1b}[31m") && log.contains("two")
    });
    assert_eq!(client.get("/absent.php").status, 404, "nothing is run instead");
    // A script that comes or goes decides at once, also as the index of a directory.
    assert_eq!(client.get("/shop/").text(), "shop");
    tree.file("shop/index.php", "<?php echo 'new';");
    eventually("the script answers", || client.get("/shop/").text() == "new");
    tree.remove("shop/index.php");
    eventually("the page answers", || client.get("/shop/").text() == "shop");
}

/// A core that has found a script does not look for it each time, but learns what becomes of it.
#[test]
fn a_known_script_that_goes_or_becomes_a_link_is_not_run() {
    let fpm = match PhpFpm::start(true, 2, "") {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    tree.file("a/b/x.php", "<?php echo 'first';");
    let server = serve(&tree, "workers = 1", &format!("php = \"{}\"\n", fpm.to()));
    let mut client = server.connect();
    let mut known = |text: &str| {
        eventually(text, || client.get("/a/b/x.php").text() == text);
        (0..20).for_each(|_| assert_eq!(client.get("/a/b/x.php").text(), text));
    };
    known("first");
    tree.remove("a/b/x.php");
    eventually("there is none", || server.get("/a/b/x.php").status == 404);
    tree.file("a/b/x.php", "<?php echo 'again';");
    known("again");
    tree.remove("a/b/x.php");
    tree.link("a/b/x.php", "../../../outside.php");
    eventually("a link that leads outside is refused", || server.get("/a/b/x.php").status == 403);
    tree.remove("a/b/x.php");
    tree.file("a/b/x.php", "<?php echo 'third';");
    known("third");
    // A directory above it is another one.
    std::fs::rename(tree.at("a"), tree.at("away")).expect("renamed");
    tree.link("a", "..");
    eventually("no look leaves the root", || server.get("/a/b/x.php").status == 403);
}

#[test]
fn connections_are_kept_where_the_group_says_so_and_survive_a_reload() {
    let fpm = match PhpFpm::start(true, 4, "pm.max_requests = 10") {
        Ok(fpm) => fpm,
        Err(why) => return println!("SKIP: {why}"),
    };
    let tree = tree();
    let group = format!(
        "[[server_group]]\nname = \"php\"\nservers = [\"{}\"]\n[server_group.connections]\nidle = 2\n\
         [server_group.check]\npath = \"/ping\"\nevery = \"100ms\"\n",
        fpm.to()
    );
    let server = serve(&tree, &group, "php = \"php\"\ncache.mode = \"off\"\n");
    let mut client = server.connect();
    let ids: Vec<String> = (0..40).map(|_| client.get("/pid.php").text().to_owned()).collect();
    assert!(ids.windows(2).filter(|pair| pair[0] == pair[1]).count() >= 20, "kept: {ids:?}");
    assert!(
        ids.iter().all(|id| id.parse::<u32>().is_ok()),
        "whatever a process has to end: {ids:?}"
    );
    fpm.reload();
    for _ in 0..100 {
        let said = client.get("/pid.php");
        assert_eq!(said.status, 200, "{said:?}");
    }
    eventually("there are new processes", || {
        !ids.contains(&client.get("/pid.php").text().to_owned())
    });
    assert_eq!(afpa_tests::proxy::state(&server, "fpm.sock"), "up");
}
