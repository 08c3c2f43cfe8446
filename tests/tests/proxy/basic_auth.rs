//! Names and passwords that a site, or a part of it, demands.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::{Command, Output};

use afpa_testkit::server::program;
use afpa_testkit::{Server, Tree, eventually};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};
use afpa_tests::tls::{Authority, Plan, TlsServer};
use rustix::process::Signal;

/// A server that tells its target, the credentials that it got, and the content, and lets its answers be kept.
fn app() -> Raw {
    Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            if head.contains("100-continue") {
                let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
            }
            let Some(content) = read_content(&mut stream, &head) else { return };
            let target = head.split(' ').nth(1).unwrap_or("");
            let said = head.lines().find_map(|line| line.strip_prefix("Authorization: "));
            let text = format!("app {target} {} {content}", said.unwrap_or("none"));
            let answer = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=600\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

/// The password of each is "secret", but that of `wide`, which is "grün £".
const USERS: &str = "# the staff\n\
    ann:$2y$04$ju80xTrGo5BxZGepAFSUpucw0EQ0mNUntJKogzQTwr4hCAEN5G9vm\n\
    bob:$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0\n\
    wide:$apr1$PuzxtjIb$F4IrPIR1Y9J3RXIAvrcGX/\n\
    old:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n\
    five:$5$abcdefgh$gruCpC7VkOTspMQTTSAR8mtlO9Upms.fwqE5y16JVM.\n\
    argon:$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4\n";

const ANN: &str = "YW5uOnNlY3JldA==";
const WRONG: &str = "YW5uOndyb25n";
/// Nobody has this name: eve:secret.
const UNKNOWN: &str = "ZXZlOnNlY3JldA==";
/// boss:secret, of another file.
const BOSS: &str = "Ym9zczpzZWNyZXQ=";

fn tree() -> Tree {
    let tree = Tree::new();
    for name in ["a.txt", "private/a.txt", "private/a.css", "private/open/a.txt"] {
        tree.file(name, name);
    }
    tree.file("secret/index.html", "secret");
    tree.file("users", USERS);
    tree.file("bosses", "boss:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    tree.file("401.html", "own 401");
    tree
}

fn settings(app: &Raw, tree: &Tree) -> String {
    let (to, files) = (app.to(), tree.path().display());
    let auth = format!("basic_auth = \"{files}/users\"\n");
    format!(
        "listing = true\n[[site.path]]\nprefix = \"/private/\"\n{auth}basic_auth_realm = 'the \"staff\" \\'\n\
         [[site.path.content]]\nextensions = [\"css\"]\nbasic_auth = \"{files}/bosses\"\n\
         [[site.path]]\nprefix = \"/private/open/\"\nbasic_auth = \"none\"\n\
         [[site.path]]\nprefix = \"/secret/index.html\"\nexact = true\n{auth}\
         [[site.path]]\nprefix = \"/app/\"\nto = \"{to}\"\n{auth}\
         [[site.path]]\nprefix = \"/back/\"\nfallback = \"{to}\"\n{auth}\
         [[site.path]]\nprefix = \"/old/\"\nredirect = \"/a.txt\"\n{auth}\
         [[site.path]]\nprefix = \"/fixed/\"\nstatus = 200\nbody = \"fixed\"\n{auth}\
         [[site.path]]\nprefix = \"/nowhere/\"\nallow = [\"192.0.2.0/24\"]\n{auth}\
         [[site.path]]\nprefix = \"/cors/\"\nstatus = 200\n{auth}\
         [site.path.cors]\norigins = [\"https://a.test\"]\ncredentials = true\n\
         [[site.path.errors]]\nstatus = [401]\nfile = \"{files}/401.html\"\n"
    )
}

/// Target, credentials, status.
const CASES: &[(&str, &str, u16)] = &[
    ("/a.txt", "", 200),
    ("/private/a.txt", "", 401),
    ("/private/a.txt", WRONG, 401),
    ("/private/a.txt", UNKNOWN, 401),
    ("/private/a.txt", BOSS, 401),
    ("/private/a.txt", "%", 401),
    ("/private/a.txt", ANN, 200),
    // bob, and then wide, old, five and argon.
    ("/private/a.txt", "Ym9iOnNlY3JldA==", 200),
    ("/private/a.txt", "d2lkZTpncsO8biDCow==", 200),
    // The same in Latin-1.
    ("/private/a.txt", "d2lkZTpncvxuIKM=", 401),
    ("/private/a.txt", "b2xkOnNlY3JldA==", 200),
    ("/private/a.txt", "Zml2ZTpzZWNyZXQ=", 200),
    ("/private/a.txt", "YXJnb246cGFzc3dvcmQ=", 200),
    ("/private/none", "", 401),
    ("/private/none", ANN, 404),
    ("/private/", "", 401),
    ("/private/", ANN, 200),
    ("/private/a.css", ANN, 401),
    ("/private/a.css", BOSS, 200),
    ("/private/open/a.txt", "", 200),
    ("/private/open/a.txt", WRONG, 200),
    // Other spellings of the path.
    ("/%70rivate/a.txt", "", 401),
    ("//private//a.txt", "", 401),
    ("/x/../private/a.txt", "", 401),
    ("/private/open/../a.txt", "", 401),
    // The index file has a path of its own.
    ("/secret/index.html", "", 401),
    ("/secret/", "", 401),
    ("/secret/", ANN, 200),
    ("/app/kept", ANN, 200),
    ("/app/kept", "", 401),
    ("/app/kept", WRONG, 401),
    ("/back/kept", ANN, 200),
    ("/back/kept", "", 401),
    ("/old/", ANN, 308),
    ("/old/", "", 401),
    ("/fixed/", ANN, 200),
    ("/fixed/", "", 401),
    // An address that may not is not asked for a password.
    ("/nowhere/", ANN, 403),
    ("/nowhere/", "", 403),
];

fn serve(tree: &Tree, settings: &str) -> Server {
    let root = tree.path().display();
    Server::start("/", |launch| {
        let log = launch.home().join("access.log").display().to_string();
        launch.written(|listen| {
            format!(
                "http2.cleartext = true\n[log]\naccess = \"{log}\"\n[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\n{settings}\n"
            )
        });
    })
}

fn field(credentials: &str) -> String {
    match credentials {
        "" => String::new(),
        some => format!("Authorization: Basic {some}\r\n"),
    }
}

#[test]
fn passwords_decide_in_each_place() {
    let (app, tree) = (app(), tree());
    let server = serve(&tree, &settings(&app, &tree));
    let (mut client, mut http2) = (server.connect(), H2Client::connect(&server));
    // The second time, files are in memory, answers of the server are kept, and right passwords are known.
    for _ in 0..2 {
        for (target, credentials, status) in CASES {
            let value = format!("Basic {credentials}");
            let mut fields = h2::request("GET", target);
            if !credentials.is_empty() {
                fields.push(("authorization", &value));
            }
            let stream = http2.request(&fields, b"");
            assert_eq!(http2.response(stream).status, *status, "{target} {credentials}");
            let answer = client.get_with(target, &field(credentials));
            assert_eq!(answer.status, *status, "{target} {credentials}");
            let challenge = answer.field("WWW-Authenticate");
            assert_eq!(challenge.is_some(), *status == 401, "{target}");
            if target.ends_with("/private/none") && *status == 401 {
                let wanted = r#"Basic realm="the \"staff\" \\", charset="UTF-8""#;
                assert_eq!(challenge, Some(wanted));
            }
            assert_eq!(client.head_with(target, &field(credentials)).status, *status, "{target}");
            let range = format!("{}Range: bytes=0-1\r\n", field(credentials));
            let part = client.get_with(target, &range).status;
            assert_eq!(part == 401, *status == 401, "{target} {credentials}: {part}");
        }
    }
    // Every method, a change of protocol, and two values of which nobody can say which one counts.
    let twice = format!("{}{}", field(ANN), field(WRONG));
    for (method, lines) in [
        ("POST", "Content-Length: 0\r\n"),
        ("OPTIONS", ""),
        ("PURGE", ""),
        ("GET", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
        ("GET", &twice),
        ("GET", "Authorization: Bearer YW5uOnNlY3JldA==\r\n"),
    ] {
        for target in ["/app/kept", "/back/kept", "/private/a.txt"] {
            let head = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
            assert_eq!(client.exchange(head).status, 401, "{method} {target} {lines}");
        }
    }
    // The server gets the credentials, as with nginx.
    let answer = client.get_with("/app/own", &field(ANN));
    let text = answer.text();
    assert_eq!(text, format!("app /app/own Basic {ANN} "));
    eventually("the log has the names of those who were let in", || {
        let log = fs::read_to_string(server.home().join("access.log")).unwrap_or_default();
        let of = |target: &str, status: u16| {
            let part = format!("\"GET {target} HTTP/1.1\" {status} ");
            log.lines().filter(|line| line.contains(&part)).map(str::to_owned).collect::<Vec<_>>()
        };
        let named = of("/app/own", 200);
        let unnamed = of("/app/kept", 401);
        named.iter().any(|line| line.starts_with("127.0.0.1 - ann ["))
            && !unnamed.is_empty()
            && unnamed.iter().all(|line| line.starts_with("127.0.0.1 - - ["))
    });
}

#[test]
fn equal_credentials_are_checked_once_however_many_ask() {
    let (app, tree) = (app(), tree());
    let server = serve(&tree, &settings(&app, &tree));
    let request = format!("GET /private/a.txt HTTP/1.1\r\nHost: a\r\n{}\r\n", field(WRONG));
    // More than there are places for checks of one client.
    let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(&request);
    }
    for client in &mut clients {
        assert_eq!(client.receive().status, 401);
    }
}

#[test]
fn content_waits_for_the_check_and_reaches_the_application() {
    let (app, tree) = (app(), tree());
    let server = serve(&tree, &settings(&app, &tree));
    let content = "x".repeat(50_000);
    // Each with a password that nobody has checked before: ann, bob, old.
    for (target, credentials) in
        [("/app/in", ANN), ("/back/in", "Ym9iOnNlY3JldA=="), ("/app/in", "b2xkOnNlY3JldA==")]
    {
        let mut client = server.connect();
        let head = |credentials: &str, more: &str| {
            let (auth, length) = (field(credentials), content.len());
            format!(
                "POST {target} HTTP/1.1\r\nHost: a\r\n{auth}{more}Content-Length: {length}\r\n\r\n"
            )
        };
        // A refused request leaves the connection in step.
        let refused = client.exchange(head(WRONG, "") + &content);
        assert_eq!(refused.status, 401);
        let answer = client.exchange(head(credentials, "") + &content);
        let text = answer.text();
        assert!(text.starts_with("app ") && text.ends_with(&content), "{} bytes", text.len());
    }
    // five, by HTTP/2.
    let mut http2 = H2Client::connect(&server);
    for (credentials, status) in [(UNKNOWN, 401), ("Zml2ZTpzZWNyZXQ=", 200)] {
        let value = format!("Basic {credentials}");
        let mut fields = h2::request("POST", "/app/in");
        let length = content.len().to_string();
        fields.extend([("authorization", &*value), ("content-length", &length)]);
        let stream = http2.request(&fields, content.as_bytes());
        let answer = http2.response(stream);
        assert_eq!(answer.status, status);
        let text = answer.text();
        assert_eq!(text.ends_with(&content), status == 200, "{status}: {:.80}", text);
    }
    // argon waits with the content until it is asked for it.
    let mut client = server.connect();
    client.send(format!(
        "POST /app/in HTTP/1.1\r\nHost: a\r\n{}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        field("YXJnb246cGFzc3dvcmQ=")
    ));
    assert!(client.take(25).starts_with(b"HTTP/1.1 100 Continue\r\n"));
    client.send("hello");
    assert!(client.receive().text().ends_with("hello"));
}

#[test]
fn preflights_need_no_password_and_own_pages_keep_the_challenge() {
    let (app, tree) = (app(), tree());
    let server = serve(&tree, &settings(&app, &tree));
    let mut client = server.connect();
    let asked = "Origin: https://a.test\r\nAccess-Control-Request-Method: PUT\r\n";
    let preflight = client.exchange(format!("OPTIONS /cors/x HTTP/1.1\r\nHost: a\r\n{asked}\r\n"));
    assert_eq!(preflight.status, 204);
    let plain = client.exchange("OPTIONS /cors/x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(plain.status, 401);
    let answer = client.get_with("/cors/x", "Origin: https://a.test\r\n");
    assert_eq!((answer.status, answer.text()), (401, "own 401"));
    assert!(answer.field("WWW-Authenticate").is_some());
    assert_eq!(answer.field("Access-Control-Allow-Origin"), Some("https://a.test"));
}

#[test]
fn passwords_decide_over_tls() {
    let (app, tree, authority) = (app(), tree(), Authority::new());
    let plan = Plan { site: settings(&app, &tree), ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    let way = authority.way(&server);
    let mut client = way.connect();
    for (target, credentials, status) in CASES {
        let answer = client.get_with(target, &field(credentials));
        assert_eq!(answer.status, *status, "{target} {credentials}");
    }
}

fn check(server: &Server, text: &str) -> Output {
    let file = server.home().join("checked.toml");
    fs::write(&file, text).expect("written");
    Command::new(program()).arg("check").arg(file).output().expect("run")
}

#[test]
fn a_changed_file_counts_after_a_reload_and_a_wrong_one_changes_nothing() {
    let (app, tree) = (app(), tree());
    let server = serve(&tree, &settings(&app, &tree));
    let users = tree.path().join("users");
    let status =
        |credentials: &str| server.connect().get_with("/private/a.txt", &field(credentials)).status;
    assert_eq!((status(ANN), status(UNKNOWN)), (200, 401));
    let written = fs::read_to_string(server.configuration()).expect("read");
    for (text, said) in [
        ("ann:secret\n", "plain passwords are not accepted"),
        ("# x\nann:$y$j9T$x$y\n", "users:2: hashes of the kind $y$ are not known"),
        ("ann\n", "users:1: it has no colon"),
    ] {
        fs::write(&users, text).expect("written");
        let output = check(&server, &written);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(said), "{message}");
        assert!(message.contains("checked.toml:") && message.contains("htpasswd -B"), "{message}");
        server.signal(Signal::HUP);
        eventually("the server has read it", || server.log().contains(said));
        assert_eq!(status(ANN), 200);
    }
    let gone = written.replace("/users\"", "/gone\"");
    let message = String::from_utf8_lossy(&check(&server, &gone).stderr).into_owned();
    assert!(
        message.contains("cannot read the users of") && message.contains("htpasswd -cB"),
        "{message}"
    );
    let realm = "[[site]]\nroot = \"/\"\nbasic_auth_realm = \"x\"\n";
    let message = String::from_utf8_lossy(&check(&server, realm).stderr).into_owned();
    assert!(message.contains("checked.toml:3:") && message.contains("no effect"), "{message}");
    fs::write(&users, USERS.replace("ann:", "eve:")).expect("written");
    server.signal(Signal::HUP);
    eventually("the workers know the new file", || (0..20).all(|_| status(ANN) == 401));
    assert_eq!(status(UNKNOWN), 200);
}

#[test]
fn the_page_about_basic_auth_has_a_configuration_that_does_what_it_says() {
    let (app, tree) = (app(), tree());
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/basic-auth.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example");
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            let root = tree.path().display().to_string();
            let site = format!("[[site]]\nlisten = [\"{listen}\"]");
            let example = example.replace("/srv/shop", &root).replace("[[site]]", &site);
            example
                .replace("/etc/afpa/staff.htpasswd", &format!("{root}/users"))
                .replace("127.0.0.1:3000", &app.to())
        });
    });
    let said = |target: &str| {
        let mut command = Command::new(program());
        command.args(["route", target, "--config"]).arg(server.configuration());
        String::from_utf8_lossy(&command.output().expect("run").stdout).into_owned()
    };
    let text = said("/admin/x");
    assert!(text.contains("realm \"staff only\"  (by /admin/ *)"), "{text}");
    assert!(text.contains("kernel       never answers: not everybody"), "{text}");
    let text = said("/admin/health");
    assert!(text.contains("users        nobody is asked for a password"), "{text}");
    let curl = |more: &[&str], target: &str| {
        let mut command = Command::new("curl");
        command.args(["-s", "-o", "-", "-w", " %{http_code}", "--noproxy", "*"]).args(more);
        let output = command.arg(format!("http://{}{target}", server.address())).output();
        output.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for (more, target, end) in [
        (&[][..], "/a.txt", " 200"),
        (&[], "/admin/", " 401"),
        (&["-u", "ann:secret"], "/admin/", " 200"),
        (&["-u", "ann:wrong"], "/admin/", " 401"),
        (&["-u", "wide:grün £", "-d", "content"], "/admin/x", "content 200"),
        (&[], "/admin/health", " 200"),
    ] {
        let Some(said) = curl(more, target) else { return println!("SKIP: no curl") };
        assert!(said.ends_with(end), "{more:?} {target}: {said}");
    }
}
