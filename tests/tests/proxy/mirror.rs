//! Requests that a second server gets as well.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use afpa_testkit::server::{free_address, program};
use afpa_testkit::{Client, Server, Tree, eventually, eventually_within};
use afpa_tests::h2::{self, H2Client};
use afpa_tests::proxy::{Raw, read_content, read_head};
use serde_json::Value;

/// A server that writes down heads and contents.
struct Noting {
    raw: Raw,
    seen: Arc<Mutex<Vec<(String, String)>>>,
}

impl Noting {
    fn start(name: &'static str) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&seen);
        let raw = Raw::start(move |mut stream: TcpStream| {
            while let Some(head) = read_head(&mut stream) {
                if head.contains("100-continue") {
                    let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
                let Some(content) = read_content(&mut stream, &head) else { return };
                let is_head = head.starts_with("HEAD ");
                // An answer with a cookie is not kept.
                let kept = match head.contains("/kept") {
                    true => "Cache-Control: max-age=600".to_owned(),
                    false => format!("Set-Cookie: from={name}"),
                };
                all.lock().expect("whole").push((head, content));
                let length = name.len();
                let body = if is_head { "" } else { name };
                let answer =
                    format!("HTTP/1.1 200 OK\r\n{kept}\r\nContent-Length: {length}\r\n\r\n{body}");
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
        });
        Self { raw, seen }
    }

    fn to(&self) -> String {
        self.raw.to()
    }

    fn count(&self) -> usize {
        self.seen.lock().expect("whole").len()
    }

    /// The next request.
    fn next(&self) -> (String, String) {
        eventually("a request", || self.count() > 0);
        self.seen.lock().expect("whole").remove(0)
    }
}

fn serve(settings: &str) -> Server {
    Server::start("/", |launch| {
        launch.written(|listen| {
            let settings = settings.replace("OWN", &listen.to_string());
            format!("http2.cleartext = true\n[[site]]\nlisten = [\"{listen}\"]\n{settings}\n")
        });
    })
}

fn mirrors(server: &Server) -> Value {
    let output = server.command(&["stats", "--json"]);
    let stats: Value = serde_json::from_slice(&output.stdout).expect("statistics");
    stats["mirror"].clone()
}

fn ended(server: &Server) -> u64 {
    let counts = mirrors(server);
    counts["answered"].as_u64().expect("a count") + counts["failed"].as_u64().expect("a count")
}

fn field<'h>(head: &'h str, name: &str) -> &'h str {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let mut own = lines.filter(|(own, _)| own.eq_ignore_ascii_case(name));
    own.next().map_or("-", |(_, value)| value)
}

#[test]
fn a_mirror_gets_method_target_fields_and_content() {
    let (app, copy, tree) = (Noting::start("app"), Noting::start("copy"), Tree::new());
    tree.file("a.txt", "file");
    let (to, mirror, root) = (app.to(), copy.to(), tree.path().display());
    let server = serve(&format!(
        "root = \"{root}\"\nto = \"{to}\"\ncached = [\"txt\"]\nfallback = \"{to}\"\nmirror = \"{mirror}\"\n\
         [[site.header]]\nrequest_set = {{ X-Set = \"1\" }}\n\
         [[site.path]]\nprefix = \"/none/\"\nto = \"{to}\"\nmirror = \"none\"\n\
         [[site.path.content]]\nextensions = [\"php\"]\nto = \"{to}\"\nmirror = \"{mirror}\"\n\
         [[site.path]]\nprefix = \"/new/\"\nto = \"{to}\"\nrewrite = \"/old/\"\n"
    ));
    let ask = |head: &str, content: &str| {
        let response = server.connect().exchange(format!("{head}\r\n\r\n{content}"));
        assert_eq!((response.status, response.field("set-cookie")), (200, Some("from=app")));
        response
    };
    let long = "x".repeat(300_000);
    for (head, content, line, wanted) in [
        (
            "GET /a?b=c HTTP/1.1\r\nHost: a\r\nX-Mirror: 7\r\nx_mirror: 1\r\nX-Own: 1",
            "",
            "GET /a?b=c",
            "",
        ),
        ("HEAD /a HTTP/1.1\r\nHost: a", "", "HEAD /a", ""),
        ("DELETE /a HTTP/1.1\r\nHost: a", "", "DELETE /a", ""),
        ("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5", "hello", "POST /a", "hello"),
        (
            "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked",
            "3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n",
            "PUT /a",
            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        ),
        ("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 300000", &long, "POST /a", &long),
        ("GET /no/such.txt HTTP/1.1\r\nHost: a", "", "GET /no/such.txt", ""),
        ("GET /none/a.php HTTP/1.1\r\nHost: a", "", "GET /none/a.php", ""),
        ("GET /new/a HTTP/1.1\r\nHost: a", "", "GET /old/a", ""),
    ] {
        if head.starts_with("HEAD") {
            assert_eq!(server.connect().head_with("/a", "").status, 200);
        } else {
            assert_eq!(ask(head, content).body, b"app", "{head}");
        }
        let ((head, got), (at_app, _)) = (copy.next(), app.next());
        assert!(head.starts_with(&format!("{line} HTTP/1.1\r\n")), "{head}");
        assert!(got == wanted, "{line}: {} bytes", got.len());
        assert_eq!((field(&head, "X-Mirror"), field(&head, "X-Set")), ("1", "1"), "{head}");
        assert!(!at_app.to_ascii_lowercase().contains("mirror"), "no client says it: {at_app}");
        for name in ["Host", "X-Own", "X-Forwarded-For", "Content-Length", "Transfer-Encoding"] {
            assert_eq!(field(&head, name), field(&at_app, name), "{name}: {head}");
        }
    }
    let mut http2 = H2Client::connect(&server);
    let stream = http2.request(&h2::request("POST", "/h2"), b"over a stream");
    assert_eq!(http2.response(stream).status, 200);
    let (head, content) = copy.next();
    assert!(head.starts_with("POST /h2 ") && content.contains("over a stream"), "{head}{content}");
    // Files, and places that say so, have none.
    assert_eq!(server.get("/a.txt").body, b"file");
    assert_eq!(ask("GET /none/a HTTP/1.1\r\nHost: a\r\nX-Mirror: 1", "").body, b"app");
    let (at_app, _) = app.seen.lock().expect("whole").pop().expect("a request");
    assert!(at_app.starts_with("GET /none/a ") && !at_app.contains("Mirror"), "{at_app}");
    eventually("all have ended", || ended(&server) == 10);
    assert_eq!((copy.count(), mirrors(&server)["answered"].as_u64()), (0, Some(10)));
    assert_eq!(mirrors(&server)["held_bytes"], 0);
}

#[test]
fn kept_answers_are_not_mirrored() {
    let (app, copy) = (Noting::start("app"), Noting::start("copy"));
    let server = serve(&format!("to = \"{}\"\nmirror = \"{}\"", app.to(), copy.to()));
    for _ in 0..5 {
        assert_eq!(server.get("/kept").body, b"app");
    }
    eventually("the first has ended", || ended(&server) == 1);
    assert_eq!((app.count(), copy.count()), (1, 1));
}

#[test]
fn a_share_of_the_requests_is_mirrored() {
    let (app, copy) = (Noting::start("app"), Noting::start("copy"));
    let (to, mirror) = (app.to(), copy.to());
    let server = serve(&format!("to = \"{to}\"\nmirror = \"{mirror}\"\nmirror_share = 20"));
    let mut client = server.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/a").status, 200);
    }
    eventually("four have ended", || ended(&server) == 4);
    assert_eq!((app.count(), copy.count()), (20, 4));
}

#[test]
fn a_mirror_that_fails_or_hangs_changes_nothing() {
    let app = Noting::start("app");
    let to = app.to();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let silent = Raw::start(move |mut stream: TcpStream| {
        while read_head(&mut stream).is_some() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let broken = Raw::start(|mut stream: TcpStream| {
        let _ = read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    });
    let (silent_to, broken_to, nobody) = (silent.to(), broken.to(), free_address());
    let server = serve(&format!(
        "to = \"{to}\"\n\
         [[site.path]]\nprefix = \"/silent/\"\nto = \"{to}\"\nmirror = \"{silent_to}\"\n\
         [[site.path]]\nprefix = \"/broken/\"\nto = \"{to}\"\nmirror = \"{broken_to}\"\n\
         [[site.path]]\nprefix = \"/nobody/\"\nto = \"{to}\"\nmirror = \"{nobody}\"\n"
    ));
    for target in ["/broken/a", "/nobody/a", "/nobody/b"] {
        assert_eq!(server.get(target).body, b"app", "{target}");
        let post = format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        assert_eq!(server.connect().exchange(post).body, b"app", "{target}");
    }
    eventually("they have failed", || mirrors(&server)["failed"] == 6);
    // As many as one client may have wait for the silent server; the next ones are dropped, and their client is answered.
    let (mut client, begun) = (server.connect(), Instant::now());
    for _ in 0..150 {
        assert_eq!(client.get("/silent/a").body, b"app");
    }
    // Another one has half of the rest.
    let mut other =
        Client::connect_from([127, 0, 0, 2].into(), server.address()).expect("connected");
    for _ in 0..86 {
        assert_eq!(other.get("/silent/a").body, b"app");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "nobody waits");
    let counts = mirrors(&server);
    assert_eq!((&counts["in_flight"], &counts["drops"]["busy"]), (&192.into(), &44.into()));
    assert!(counts["held_bytes"].as_u64().expect("a count") > 192 * 100, "{counts}");
    eventually_within(Duration::from_secs(20), "it was asked", || asked.load(Ordering::SeqCst) > 0);
    let digest = String::from_utf8(server.command(&["stats"]).stdout).expect("text");
    assert!(digest.contains("44 requests were not mirrored"), "{digest}");
    // When the server goes, their places are free.
    drop(silent);
    eventually_within(Duration::from_secs(70), "they have failed", || {
        mirrors(&server)["in_flight"] == 0
    });
    assert_eq!(mirrors(&server)["held_bytes"], 0);
}

#[test]
fn content_that_is_too_long_or_not_whole_is_not_mirrored() {
    let copy = Noting::start("copy");
    // A server that answers before it has the content.
    let app = Raw::start(|mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let early = head.contains("/early");
            if !early && read_content(&mut stream, &head).is_none() {
                return;
            }
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\napp";
            if stream.write_all(answer.as_bytes()).is_err() || early {
                return;
            }
        }
    });
    let server = serve(&format!("to = \"{}\"\nmirror = \"{}\"", app.to(), copy.to()));
    let most = 1 << 20;
    let head =
        |length: usize| format!("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    let content = "x".repeat(most);
    assert_eq!(server.connect().exchange(format!("{}{content}", head(most))).body, b"app");
    assert_eq!(copy.next().1.len(), most);
    assert_eq!(server.connect().exchange(format!("{}{content}y", head(most + 1))).body, b"app");
    let chunked = format!(
        "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{most:x}\r\n{content}\r\n0\r\n\r\n"
    );
    assert_eq!(server.connect().exchange(chunked).body, b"app");
    eventually("both were dropped", || mirrors(&server)["drops"]["content"] == 2);
    let early = "POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf";
    assert_eq!(server.connect().exchange(early).body, b"app");
    eventually("it was dropped", || mirrors(&server)["drops"]["incomplete"] == 1);
    eventually("nothing is held", || mirrors(&server)["held_bytes"] == 0);
    assert_eq!(copy.count(), 0);
}

#[test]
fn a_mirror_that_leads_back_ends() {
    let app = Noting::start("app");
    let server = serve(&format!("to = \"{}\"\nmirror = \"OWN\"", app.to()));
    assert_eq!(server.get("/a").body, b"app");
    eventually("all have ended", || ended(&server) > 0 && mirrors(&server)["in_flight"] == 0);
    let count = app.count();
    assert!(count > 1 && count < 20, "{count}");
}

#[test]
fn a_route_names_its_mirror_and_nonsense_has_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("afpa.toml");
    let told = |settings: &str, command: &[&str]| {
        fs::write(&file, format!("[[site]]\n{settings}\n")).expect("written");
        let output = Command::new(program()).args(command).arg(&file).output().expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    let to = "to = \"127.0.0.1:1\"\n";
    for (settings, command, wanted) in [
        (
            format!("{to}mirror = \"127.0.0.1:2\"\nmirror_share = 5"),
            &["route", "/a", "--config"][..],
            "mirror       127.0.0.1:2 gets 5% of what servers are asked\n",
        ),
        (
            format!("{to}mirror = \"127.0.0.1:2\""),
            &["route", "/a", "--config"],
            "mirror       127.0.0.1:2 gets what servers are asked\n",
        ),
        (format!("{to}mirror = \"copies\""), &["check"], "afpa.toml:3:"),
        (format!("{to}mirror_share = 5"), &["check"], "has no effect without `mirror`"),
        (format!("{to}mirror_share = 0"), &["check"], "afpa.toml:3:"),
        (
            "root = \"/\"\nmirror = \"127.0.0.1:2\"".to_owned(),
            &["check"],
            "`mirror` has no effect: no server is asked here",
        ),
    ] {
        let text = told(&settings, command);
        assert!(text.contains(wanted), "{settings}: {text}");
    }
}

#[test]
fn the_page_about_mirrors_has_a_configuration_that_does_what_it_says() {
    let (app, copy) = (Noting::start("app"), Noting::start("copy"));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/mirroring.md");
    let page = fs::read_to_string(page).expect("the page");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let example = example.expect("an example").replace("127.0.0.1:3000", &app.to());
    let example = example.replace("127.0.0.1:3001", &copy.to());
    let server = Server::start("/", |launch| {
        launch.admin().written(|listen| {
            example.replacen("[[site]]", &format!("[[site]]\nlisten = [\"{listen}\"]"), 1)
        });
    });
    let mut client = server.connect();
    for _ in 0..10 {
        assert_eq!(client.get("/a").status, 200);
        assert_eq!(client.get("/payments/a").status, 200);
    }
    let metrics = || {
        let response = Client::connect(&server.admin()).expect("connect").get("/metrics");
        String::from_utf8(response.body).expect("text")
    };
    eventually("one was mirrored", || {
        metrics().contains("afpa_mirrors_total{end=\"answered\"} 1\n")
    });
    assert!(metrics().contains("afpa_mirrors_dropped_total{reason=\"busy\"} 0\n"));
    assert_eq!((app.count(), copy.count()), (20, 1));
}
