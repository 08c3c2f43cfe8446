//! The router at work: each request finds its request set, before and after a reload.

use std::fs;
use std::io::Write as _;
use std::net::{IpAddr, TcpStream};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Endpoint, Response, Server, Tree, eventually};
use afpa_tests::proxy::{Raw, read_head, server_row};
use rustix::process::Signal;

/// A server that answers with its name and the head of the request.
fn echo(name: &'static str, delay: Duration) -> Raw {
    Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            std::thread::sleep(delay);
            let content = format!("{name} {head}");
            let length = content.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{content}");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

const AT_ONCE: Duration = Duration::ZERO;

fn ask(client: &mut Client, method: &str, host: &str, target: &str, lines: &str) -> Response {
    client.exchange(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"))
}

/// The first line that a server saw, and its name.
fn seen(response: &Response) -> &str {
    assert_eq!(response.status, 200, "{response:?}");
    response.text().lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1")
}

#[test]
fn each_request_finds_its_request_set() {
    let (app, other) = (echo("app", AT_ONCE), echo("other", AT_ONCE));
    let (tree, two) = (Tree::new(), Tree::new());
    tree.file("index.html", "own index");
    tree.file("a.html", "own a");
    tree.file("beta/a.html", "old a");
    two.file("a.gif", "gif of two");
    two.file("dir/default.htm", "default of two");
    let config = |listen: &Endpoint| {
        let (app, other, root, two) =
            (app.to(), other.to(), tree.path().display(), two.path().display());
        format!(
            r#"
[[server_group]]
name = "app"
servers = ["{app}"]

[[site]]
listen = ["{listen}"]
hosts = ["a.test"]
root = "{root}"
to = "app"
cached = ["html"]

[[site.path]]
prefix = "/two/"
root = "{two}"
index = ["default.htm"]

[[site.path.content]]
extensions = ["gif", "none"]

[[site.path.content]]
extensions = ["others"]
to = "app"
rewrite = "/shop/"

[[site.path]]
prefix = "/flat/"
recursion = false
to = "{other}"

[[site.path]]
prefix = "/beta/"
if_cookies = {{ beta = "y*" }}
to = "{other}"

[[site.path]]
prefix = "/old/"
redirect = "https://{{host}}/new/{{rest}}{{query}}"
redirect_status = "301"

[[site.path]]
prefix = "/robots.txt"
exact = true
status = 200
body = "nobody"

[[site]]
listen = ["{listen}"]
hosts = ["*.b.test"]

[[site.path]]
prefix = "/only/"
to = "{other}"
"#
        )
    };
    let server = Server::start("/", |launch| {
        launch.written(config);
    });
    let mut client = server.connect();
    for _ in 0..2 {
        let mut get = |host: &str, target: &str| ask(&mut client, "GET", host, target, "");
        assert_eq!(get("a.test", "/a.html").text(), "own a");
        assert_eq!(get("A.TEST:80", "/x/../a.html").text(), "own a");
        assert_eq!(get("a.test", "/two/a.gif").text(), "gif of two");
        assert_eq!(get("a.test", "/two/dir/").text(), "default of two");
        let slash = get("a.test", "/two/dir?x");
        assert_eq!((slash.status, slash.field("location")), (301, Some("/two/dir/?x")));
        assert_eq!(get("a.test", "/missing.html").status, 404);
        assert_eq!(seen(&get("a.test", "/")), "app GET /");
        assert_eq!(seen(&get("a.test", "/x%20y?q=%41")), "app GET /x%20y?q=%41");
        assert_eq!(seen(&get("a.test", "/two/./b.asp?c")), "app GET /shop/b.asp?c");
        assert_eq!(seen(&get("a.test", "/flat/x")), "other GET /flat/x");
        assert_eq!(seen(&get("a.test", "/flat/x/y")), "app GET /flat/x/y");
        let moved = get("a.test", "/old/a%20b?c");
        assert_eq!(moved.status, 301);
        assert_eq!(moved.field("location"), Some("https://a.test/new/a%20b?c"));
        let fixed = get("a.test", "/robots.txt");
        assert_eq!((fixed.status, fixed.text()), (200, "nobody"));
        assert_eq!(seen(&get("a.test", "/robots.txt.x")), "app GET /robots.txt.x");
        assert_eq!(seen(&get("x.y.b.test", "/only/")), "other GET /only/");
        assert_eq!(get("x.b.test", "/").status, 404);
        assert_eq!(get("b.test", "/only/").status, 421);
        // A condition on a cookie is evaluated anew for every request.
        assert_eq!(get("a.test", "/beta/a.html").text(), "old a");
        let chosen = ask(&mut client, "GET", "a.test", "/beta/a.html", "Cookie: a=b; beta=yes\r\n");
        assert_eq!(seen(&chosen), "other GET /beta/a.html");
        let head = ask(&mut client, "HEAD", "a.test", "/robots.txt", "");
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(head.field("content-length"), Some("6"));
        let posted = ask(&mut client, "POST", "a.test", "/a.html", "Content-Length: 0\r\n");
        assert_eq!(posted.status, 405, "{posted:?}");
    }
}

/// One site with a cached page and a slow server, or another meaning of the same URLs.
fn meaning(listen: &Endpoint, root: &str, to: &str, distributed: bool) -> String {
    let cached = if distributed { "css" } else { "html" };
    format!(
        "[[site]]\nlisten = [\"{listen}\"]\nroot = \"{root}\"\nto = \"{to}\"\ncached = [\"{cached}\"]\n"
    )
}

#[test]
fn a_reload_changes_what_urls_mean_and_requests_in_flight_end_as_they_began() {
    let slow = echo("slow", Duration::from_millis(700));
    let (quick, tree) = (echo("quick", AT_ONCE), Tree::new());
    tree.file("a.html", "file");
    let root = tree.path().display().to_string();
    let server = Server::start("/", |launch| {
        launch.written(|listen| meaning(listen, &root, &slow.to(), false));
    });
    let mut client = server.connect();
    assert_eq!(client.get("/a.html").text(), "file");
    let mut waiting = server.connect();
    waiting.send("GET /wait HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the server has it", || slow.connections() > 0);

    let good = meaning(server.endpoint(), &root, &quick.to(), true);
    fs::write(server.configuration(), good).expect("written");
    server.signal(Signal::HUP);
    eventually("the page is distributed", || client.get("/a.html").text() != "file");
    assert_eq!(seen(&client.get("/a.html")), "quick GET /a.html");
    assert_eq!(seen(&waiting.receive()), "slow GET /wait");
    assert_eq!(seen(&waiting.get("/wait")), "quick GET /wait");

    let bad = meaning(server.endpoint(), &root, "nobody", false);
    fs::write(server.configuration(), bad).expect("written");
    server.signal(Signal::HUP);
    eventually("it says so", || server.log().contains("there is no server group \"nobody\""));
    assert_eq!(seen(&client.get("/a.html")), "quick GET /a.html");
}

#[test]
fn servers_that_stay_keep_their_health_over_a_reload() {
    let (good, gone) = (echo("good", AT_ONCE), free_address().to_string());
    let config = |listen: &Endpoint, more: &str| {
        format!(
            "[[server_group]]\nname = \"app\"\nservers = [\"{gone}\", \"{}\"]\n\
             [[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\n{more}",
            good.to()
        )
    };
    let server = Server::start("/", |launch| {
        launch.written(|listen| config(listen, ""));
    });
    let mut client = server.connect();
    for _ in 0..4 {
        assert_eq!(seen(&client.get("/")), "good GET /");
    }
    assert_eq!(server_row(&server, &gone)["state"], "refused");
    let more = "[[site.path]]\nprefix = \"/new/\"\nstatus = 204\n";
    fs::write(server.configuration(), config(server.endpoint(), more)).expect("written");
    server.signal(Signal::HUP);
    eventually("the new path is there", || client.get("/new/").status == 204);
    let row = server_row(&server, &gone);
    assert_eq!((&row["state"], &row["downs"]), (&"refused".into(), &1.into()), "{row}");
}

#[test]
fn a_router_in_front_names_the_client_by_the_proxy_protocol() {
    let app = echo("app", AT_ONCE);
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            // The test connects from 127.0.0.1, and from 127.0.0.9 as somebody else.
            format!(
                "[[site]]\nlisten = [\"{listen}\"]\nto = \"{}\"\nproxy_from = [\"127.0.0.1\"]\n",
                app.to()
            )
        });
    });
    // Only from the router itself the header is believed, and there it must be.
    let Endpoint::Tcp(address) = *server.endpoint() else { panic!("TCP") };
    let connect = |from: &str| {
        let from: IpAddr = from.parse().expect("an address");
        Client::connect_from(from, address).expect("connect")
    };
    let request = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    let mut router = connect("127.0.0.1");
    let told = router.exchange(format!("PROXY TCP4 1.2.3.4 9.9.9.9 5 80\r\n{request}"));
    assert!(told.text().contains("X-Forwarded-For: 1.2.3.4\r\n"), "{told:?}");
    let again = router.exchange(request);
    assert!(again.text().contains("X-Forwarded-For: 1.2.3.4\r\n"), "{again:?}");

    let mut header =
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x05\x06\x07\x08\x09\x09\x09\x09\0\x05\0\x50".to_vec();
    header.extend_from_slice(request.as_bytes());
    let told = connect("127.0.0.1").exchange(header);
    assert!(told.text().contains("X-Forwarded-For: 5.6.7.8\r\n"), "{told:?}");

    let mut silent = connect("127.0.0.1");
    silent.send(request);
    silent.assert_closed();
    let mut stranger = connect("127.0.0.9");
    let told = stranger.exchange(request);
    assert!(told.text().contains("X-Forwarded-For: 127.0.0.9\r\n"), "{told:?}");
    let refused =
        connect("127.0.0.9").exchange(format!("PROXY TCP4 1.2.3.4 9.9.9.9 5 80\r\n{request}"));
    assert_eq!(refused.status, 400);
}

fn run(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).stdin(Stdio::null()).output().expect("run the program")
}

#[test]
fn check_and_route_explain_a_configuration() {
    let tree = Tree::new();
    let root = tree.path().display().to_string();
    let listen = Endpoint::Tcp(free_address());
    let file = tree.outside("afpa.toml", meaning(&listen, &root, "127.0.0.1:3000", false));
    let file = file.to_str().expect("a name");
    let check = run(&["check", file]);
    let text = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(check.status.success(), "{check:?}");
    assert!(text.contains(&format!("cached from {root}")), "{text}");
    assert!(text.contains("distributed to 127.0.0.1:3000"), "{text}");

    let route = run(&["route", "/a/b.html", "--config", file]);
    let text = String::from_utf8_lossy(&route.stdout).into_owned();
    assert!(
        route.status.success() && text.contains(&format!("file         {root}/a/b.html")),
        "{text}"
    );
    let route = run(&["route", "/a/b.php?x", "--config", file, "--method", "POST"]);
    let text = String::from_utf8_lossy(&route.stdout).into_owned();
    assert!(text.contains("behaviour    distributed to 127.0.0.1:3000"), "{text}");

    fs::write(file, "[[site]]\nto = \"app\"\n").expect("written");
    let check = run(&["check", file]);
    let text = String::from_utf8_lossy(&check.stderr).into_owned();
    assert_eq!(check.status.code(), Some(1));
    assert!(text.contains("afpa.toml:2:6: error: there is no server group \"app\""), "{text}");
}

#[test]
fn one_command_accelerates_a_server() {
    let (app, tree) = (echo("app", AT_ONCE), Tree::new());
    tree.file("a.css", "css");
    let listen = free_address();
    let control = tree.at("../control.sock");
    let mut child = Command::new(program())
        .args(["proxy", "--fast-path", "off", "--to", &app.to(), "--listen", &listen.to_string()])
        .arg("--root")
        .arg(tree.path())
        .arg("--control")
        .arg(&control)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("run the program");
    eventually("it listens", || Client::connect(&Endpoint::Tcp(listen)).is_ok());
    let mut client = Client::connect(&Endpoint::Tcp(listen)).expect("connect");
    let (css, page) = (client.get("/a.css"), client.get("/page"));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert_eq!(css.text(), "css");
    assert_eq!(seen(&page), "app GET /page");
}

#[test]
fn a_dot_at_the_end_of_a_host_means_nothing_but_to_servers() {
    let (app, other) = (echo("app", AT_ONCE), echo("other", AT_ONCE));
    let kept = Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let host = head.lines().find(|line| line.starts_with("Host: ")).unwrap_or_default();
            let length = host.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {length}\r\n\r\n{host}"
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    let server = Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "[[site]]\nlisten = [\"{listen}\"]\nhosts = [\"a.test\", \"*.b.test\"]\nto = \"{}\"\n\
                 [[site.path]]\nprefix = \"/old\"\nredirect = \"https://{{host}}/new\"\n\
                 [[site.path]]\nprefix = \"/kept\"\nto = \"{}\"\n\
                 [[site]]\nlisten = [\"{listen}\"]\nto = \"{}\"\n",
                app.to(),
                kept.to(),
                other.to()
            )
        });
    });
    let mut client = server.connect();
    for (host, name) in [
        ("a.test", "app"),
        ("A.test.", "app"),
        ("a.test.:8080", "app"),
        ("x.b.test.", "app"),
        ("a.test..", "other"),
        ("c.test.", "other"),
    ] {
        let answer = ask(&mut client, "GET", host, "/", "");
        assert_eq!(seen(&answer), format!("{name} GET /"), "{host}");
        let sent = format!("Host: {}\r\n", host.to_ascii_lowercase());
        assert!(answer.text().contains(&sent), "{host}: {}", answer.text());
    }
    let answer = ask(&mut client, "GET", "a.test.", "/old", "");
    assert_eq!(answer.field("location"), Some("https://a.test/new"));
    // The servers see two names, so what is kept for one is not for the other; a purge is for both.
    for _ in 0..2 {
        for host in ["a.test", "a.test.", "a.test.:80"] {
            let answer = ask(&mut client, "GET", host, "/kept", "");
            assert_eq!(answer.text(), format!("Host: {host}"));
        }
    }
    let output = server.command(&["purge", "--host", "a.test", "/kept"]);
    assert!(output.status.success(), "{output:?}");
    let stats = server.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("statistics");
    assert_eq!(stats["shared_cache"]["objects"], 0, "{}", stats["shared_cache"]);
}
