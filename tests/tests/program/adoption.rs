//! A configuration means the same, whether a start or a reload has brought it.

use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use afpa_testkit::curl::curl;
use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Endpoint, Response, Server, Tree, eventually, skip};
use afpa_tests::proxy::Raw;
use afpa_tests::tls::{Authority, Files};
use rustix::process::Signal;

const ZONE: &str = "$ORIGIN example.org.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\n";

/// It takes effect at the start alone, so both configurations have it.
const START: &str = "[http3]\nenabled = true\n";

/// Bytes of an answer that is kept: longer than without a setting of its site.
const LONG: usize = 5 << 20;

/// The files and servers that the configurations name.
struct Bed {
    tree: Tree,
    app: Raw,
    files: Files,
    _authority: Authority,
}

impl Bed {
    fn new() -> Self {
        let tree = Tree::new();
        for (name, content) in [
            ("hello.txt", "hello"),
            ("404.html", "not here"),
            ("users", "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"),
            ("zone", ZONE),
        ] {
            tree.file(name, content);
        }
        let content = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {LONG}\r\n\r\n{}",
            "a".repeat(LONG)
        );
        let authority = Authority::new();
        let files = authority.issue("one", &["localhost"]);
        Self { tree, app: Raw::answering(content, Duration::ZERO), files, _authority: authority }
    }

    fn least(&self, at: &Endpoint) -> String {
        let root = self.tree.path();
        format!("[[site]]\nname = \"front\"\nlisten = [\"{at}\"]\nroot = {root:?}\n")
    }

    /// One of each part that a configuration can bring.
    fn everything(&self, at: &Endpoint, places: &Places, log: &Path) -> String {
        let (root, Files { chain, key }) = (self.tree.path(), &self.files);
        let Places { tls, dns } = places;
        let least = self.least(at);
        let (app, users, page) = (self.app.to(), root.join("users"), root.join("404.html"));
        let zone = root.join("zone");
        format!(
            "{START}[log]\naccess = {log:?}\n[police]\ndeny = [\"198.51.100.0/24\"]\n\
             [[zone]]\nname = \"example.org\"\nfile = {zone:?}\nlisten = [\"{dns}\"]\n\
             [[server_group]]\nname = \"app\"\nservers = [{app:?}]\n\
             {least}headers = {{ X-Site = \"front\" }}\n\
             cache = {{ max_object = \"8MiB\" }}\n\
             [[site.errors]]\nstatus = [404]\nfile = {page:?}\n\
             [[site.path]]\nprefix = \"/app/\"\nto = \"app\"\n\
             [[site.path]]\nprefix = \"/old/\"\nredirect = \"https://new.example/\"\n\
             [[site.path]]\nprefix = \"/closed/\"\nallow = [\"192.0.2.1\"]\n\
             [[site.path]]\nprefix = \"/secret/\"\nbasic_auth = {users:?}\n\
             [[site.path]]\nprefix = \"/seldom/\"\nclient_rate = \"1/h\"\n\
             [[site]]\nname = \"safe\"\ntls = [\"{tls}\"]\nroot = {root:?}\n\
             [[certificate]]\nchain = {chain:?}\nkey = {key:?}\n"
        )
    }
}

/// Addresses that only the second configuration has.
struct Places {
    tls: SocketAddr,
    dns: SocketAddr,
}

impl Places {
    fn new() -> Self {
        Self { tls: free_address(), dns: free_address() }
    }
}

/// The view that a client has of each part.
fn seen(server: &Server, Places { tls, dns }: &Places, log: &Path) -> Vec<(&'static str, String)> {
    let answer = |response: &Response| format!("{} {}", response.status, response.text());
    let field = |response: &Response, name: &str| response.field(name).unwrap_or("none").to_owned();
    let get = |target: &str| server.connect().get(target);
    let admin = |target: &str| Client::connect(&server.admin()).expect("connect").get(target);
    let (file, first, kept, seldom) =
        (get("/hello.txt"), get("/app/x"), get("/app/x"), [get("/seldom/"), get("/seldom/")]);
    let called = |name: &str| {
        let output = server.command(&["call", name]).stdout;
        String::from_utf8(output).expect("UTF-8")
    };
    let stats: serde_json::Value = serde_json::from_str(&called("stats")).expect("JSON");
    let names = |list: &str| stats[list].as_array().map_or(0, Vec::len).to_string();
    let page = curl([
        "--insecure".to_owned(),
        "--write-out".to_owned(),
        " %{http_version}".to_owned(),
        format!("https://{tls}/hello.txt"),
    ]);
    let page =
        page.map_or(String::new(), |page| String::from_utf8_lossy(&page.output).into_owned());
    vec![
        ("file", answer(&file)),
        ("fields", field(&file, "X-Site")),
        ("error page", answer(&get("/none"))),
        ("server group", format!("{} {}", first.status, first.text().len())),
        ("kept answer", (kept.field("Age").is_some()).to_string()),
        ("redirect", field(&get("/old/"), "Location")),
        ("access", get("/closed/").status.to_string()),
        ("password", get("/secret/").status.to_string()),
        ("rate", seldom.map(|response| response.status.to_string()).join(" ")),
        ("police", called("deny")),
        ("TLS", page),
        ("HTTP/3", UdpSocket::bind(tls).is_err().to_string()),
        ("DNS", addresses(*dns)),
        ("metrics", admin("/metrics").text().contains("afpa_").to_string()),
        ("status page", called("status").contains("<html").to_string()),
        ("sites", names("sites")),
        ("servers", names("servers")),
        ("access log", fs::metadata(log).is_ok().to_string()),
    ]
}

/// The addresses that a name server has for `ns.example.org`.
fn addresses(server: SocketAddr) -> String {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a time-out");
    let head = [0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let question = [&head[..], b"\x02ns\x07example\x03org\x00\x00\x01\x00\x01"].concat();
    let mut answer = [0; 512];
    let asked = socket.send_to(&question, server).and_then(|_| socket.recv(&mut answer));
    match asked {
        Ok(length) => format!("{:?}", &answer[length.saturating_sub(4)..length]),
        Err(error) => error.to_string(),
    }
}

fn reload(server: &Server, text: &str) {
    let mut file = fs::File::create(server.configuration()).expect("written");
    file.write_all(text.as_bytes()).expect("written");
    let before = server.log().matches("reloaded").count();
    server.signal(Signal::HUP);
    eventually("it is reloaded", || server.log().matches("reloaded").count() > before);
}

#[test]
fn a_reload_brings_all_that_a_start_brings() {
    if curl(["--version"]).is_none() {
        skip!("no curl");
    }
    let bed = Bed::new();
    let places = [Places::new(), Places::new()];
    let launch = |which: usize| {
        let (bed, place) = (&bed, &places[which]);
        Server::start(bed.tree.path(), move |launch| {
            launch.admin();
            let log = launch.home().join("access.log");
            launch.written(|at| match which {
                0 => bed.everything(at, place, &log),
                _ => format!("{START}{}", bed.least(at)),
            });
        })
    };
    let [started, reloaded] = [launch(0), launch(1)];
    let log = |server: &Server| server.home().join("access.log");
    let expected = seen(&started, &places[0], &log(&started));
    for (part, found) in [
        ("file", "200 hello"),
        ("TLS", "hello 2"),
        ("HTTP/3", "true"),
        ("DNS", "[192, 0, 2, 1]"),
        ("kept answer", "true"),
        ("rate", "404 429"),
    ] {
        assert!(expected.contains(&(part, found.to_owned())), "{part}: {expected:?}");
    }
    let text = bed.everything(reloaded.endpoint(), &places[1], &log(&reloaded));
    reload(&reloaded, &text);
    assert_eq!(seen(&reloaded, &places[1], &log(&reloaded)), expected, "a start, then a reload");
    // Nothing is lost when the same configuration comes again; the rate stays used up.
    reload(&started, &bed.everything(started.endpoint(), &places[0], &log(&started)));
    let again = seen(&started, &places[0], &log(&started));
    for (now, before) in again.iter().zip(&expected).filter(|(now, _)| now.0 != "rate") {
        assert_eq!(now, before);
    }
    assert!(again.contains(&("rate", "429 429".to_owned())), "{again:?}");
}
