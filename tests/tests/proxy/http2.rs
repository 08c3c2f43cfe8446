//! Unmodified servers that are asked by HTTP/2: clients get the same answers as from these servers by HTTP/1.1.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_testkit::server::free_address;
use afpa_testkit::tree::patterned;
use afpa_testkit::{
    Client, Endpoint, Response, Running, Server, eventually, eventually_within, nginx,
};
use afpa_tests::proxy::{configuration, proxy, server_row};
use afpa_tests::tls::{Authority, Plan, TlsServer};
use rustix::process::Signal;

/// Debian's nginx with one site: by HTTP/1.1, by HTTP/2, and by HTTP/2 over TLS.
struct Nginx {
    _child: Running,
    folder: tempfile::TempDir,
    http1: SocketAddr,
    http2: SocketAddr,
    tls: SocketAddr,
    authority: Authority,
}

impl Nginx {
    /// `None`, with a word about it, where there is none.
    fn start(settings: &str) -> Option<Self> {
        if !std::path::Path::new(nginx::PROGRAM).exists() {
            println!("SKIP: nginx is not installed");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("afpa-server").tempdir().expect("a folder");
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("readable for the server's user");
        let www = folder.path().join("www");
        fs::create_dir_all(www.join("folder")).expect("a folder");
        fs::write(www.join("small.txt"), "small\n".repeat(100)).expect("written");
        fs::write(www.join("empty.txt"), "").expect("written");
        fs::write(www.join("large.bin"), patterned(3_000_000)).expect("written");
        let authority = Authority::new();
        let files = authority.issue("nginx", &["localhost"]);
        let (http1, http2, tls) = (free_address(), free_address(), free_address());
        let (chain, key, at) =
            (files.chain.display(), files.key.display(), folder.path().display());
        let configuration = nginx::configuration(
            folder.path(),
            "master_process off; events { worker_connections 1024; }",
            &format!(
                "log_format protocol '$http_user_agent $request_method $uri $server_protocol';
                 access_log {at}/access.log protocol; gzip on; gzip_min_length 100;
                 gzip_types text/plain; types {{ text/plain txt; }} {settings}"
            ),
            &format!(
                "listen {http1}; listen {http2} http2; listen {tls} ssl http2;
                 ssl_certificate {chain}; ssl_certificate_key {key};
                 location = /moved {{ return 302 /small.txt; }}
                 location = /none {{ return 204; }}
                 location = /cookies {{
                   add_header Set-Cookie a=1; add_header Set-Cookie b=2;
                   return 200 $http_cookie$http_x_test$host;
                 }}
                 location = /form {{ return 200 $content_length; }}"
            ),
        );
        let place = folder.path().join("configuration");
        fs::write(&place, configuration).expect("written");
        let log = fs::File::create(folder.path().join("log")).expect("a log");
        let mut command = Command::new(nginx::PROGRAM);
        command.arg("-c").arg(&place).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = Running::start(&mut command);
        eventually_within(Duration::from_secs(20), "nginx listens", || {
            [http1, tls].iter().all(|place| Client::connect(&Endpoint::Tcp(*place)).is_ok())
        });
        Some(Self { _child: child, folder, http1, http2, tls, authority })
    }

    /// A proxy that asks it by HTTP/1.1, by HTTP/2, and by HTTP/2 over TLS.
    fn proxies(&self, settings: &str) -> [Server; 3] {
        let tls = format!("{}{}", self.over_tls(), settings);
        [
            proxy(&[self.http1.to_string()], settings),
            proxy(&[self.http2.to_string()], &format!("http2 = true\n{settings}")),
            proxy(&[self.tls.to_string()], &tls),
        ]
    }

    fn over_tls(&self) -> String {
        let authority = self.authority.path();
        format!(
            "http2 = true\ntls = true\n[server_group.verify]\nauthorities = \"{}\"\n\
             name = \"localhost\"\n",
            authority.display()
        )
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default()
    }
}

/// The comparable part of a response: without the case of its field names and their order. The date differs, HTTP/2 has
/// no reason phrase, and in Location nginx says by which scheme and port it was reached.
fn said(response: &Response) -> (u16, Vec<(String, String)>, Vec<u8>) {
    let differs = |name: &str| ["date", "location"].iter().any(|no| name.eq_ignore_ascii_case(no));
    let fields = response.fields.iter().filter(|(name, _)| !differs(name));
    let mut fields: Vec<_> =
        fields.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    fields.sort();
    (response.status, fields, response.body.clone())
}

#[test]
fn a_site_is_the_same_by_both_protocols() {
    let Some(nginx) = Nginx::start("") else { return };
    let proxies = nginx.proxies("");
    let mut clients = proxies.each_ref().map(Server::connect);
    for (method, path, lines) in [
        ("GET", "/small.txt", ""),
        ("HEAD", "/small.txt", ""),
        ("GET", "/small.txt", "Accept-Encoding: gzip\r\n"),
        ("HEAD", "/small.txt", "Accept-Encoding: gzip\r\n"),
        ("GET", "/small.txt", "Range: bytes=3-9\r\n"),
        ("GET", "/small.txt", "Range: bytes=0-1,4-5\r\n"),
        ("GET", "/small.txt", "Range: bytes=9999-\r\n"),
        ("GET", "/small.txt", "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT\r\n"),
        ("GET", "/large.bin", ""),
        ("GET", "/empty.txt", ""),
        ("GET", "/missing", ""),
        ("GET", "/folder", ""),
        ("GET", "/moved", ""),
        ("GET", "/none", ""),
        ("GET", "/cookies", "Cookie: c=3; d=4\r\nX-Test: text\r\n"),
        ("OPTIONS", "/small.txt", ""),
        ("POST", "/small.txt", ""),
        ("POST", "/form", "Content-Length: 0\r\n"),
        ("BREW", "/small.txt", ""),
    ] {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: www.example.org\r\n{lines}\r\n");
        let [old, new, secure] = clients.each_mut().map(|client| client.exchange(&request));
        if lines.contains("0-1,") {
            // Its boundary is another one each time.
            assert!([&old, &new, &secure].iter().all(|response| response.status == 206));
            assert_eq!(new.body.len(), old.body.len());
            continue;
        }
        assert_eq!(said(&new), said(&old), "{method} {path} {lines}");
        assert_eq!(said(&secure), said(&old), "{method} {path} {lines} over TLS");
    }
    for (at, place) in [(1, nginx.http2), (2, nginx.tls)] {
        let row = server_row(&proxies[at], &place.to_string());
        assert!(row["http2_streams"].as_u64() >= Some(19), "{row}");
        assert!((1..=8).contains(&row["http2_connections"].as_u64().unwrap_or(0)), "{row}");
    }
    assert_eq!(server_row(&proxies[0], &nginx.http1.to_string())["http2_streams"], 0);
}

#[test]
fn connections_that_end_lose_no_request() {
    // GOAWAY after every ten requests.
    let Some(nginx) = Nginx::start("keepalive_requests 10;") else { return };
    let proxy = proxy(&[nginx.http2.to_string()], "http2 = true\n");
    let mut clients: Vec<_> = (0..8).map(|_| proxy.connect()).collect();
    for _ in 0..30 {
        for client in &mut clients {
            client.send("GET /small.txt HTTP/1.1\r\nHost: h\r\n\r\n");
        }
        for client in &mut clients {
            assert_eq!(client.receive().status, 200);
        }
    }
    let row = || server_row(&proxy, &nginx.http2.to_string());
    eventually("all are counted", || row()["2xx_3xx"] == 240);
    assert_eq!(row()["errors"], 0);
}

#[test]
fn health_checks_go_by_http2() {
    let Some(nginx) = Nginx::start("") else { return };
    let check = "[server_group.check]\npath = \"/small.txt\"\nevery = \"100ms\"\n";
    let cleartext = proxy(&[nginx.http2.to_string()], &format!("http2 = true\n{check}"));
    let over_tls = proxy(&[nginx.tls.to_string()], &format!("{}{check}", nginx.over_tls()));
    let probes =
        || nginx.log().lines().filter(|line| *line == "afpa-probe GET /small.txt HTTP/2.0").count();
    eventually_within(Duration::from_secs(20), "checks are answered", || probes() >= 6);
    for (proxy, place) in [(&cleartext, nginx.http2), (&over_tls, nginx.tls)] {
        assert_eq!(server_row(proxy, &place.to_string())["state"], "up");
    }
    // A server that does not speak it fails them.
    let wrong = proxy(&[nginx.http1.to_string()], &format!("http2 = true\n{check}"));
    eventually_within(Duration::from_secs(20), "it is found out", || {
        server_row(&wrong, &nginx.http1.to_string())["state"] == "check failed"
    });
}

#[test]
fn a_server_may_choose_http11_in_the_handshake() {
    let authority = Authority::new();
    let tree = afpa_testkit::Tree::new();
    tree.file("hello.txt", "hello");
    let plan = Plan { sections: "[http2]\ntls = false\n".to_owned(), ..Plan::default() };
    let server = TlsServer::with(&authority, tree.path(), plan);
    let settings = format!(
        "http2 = true\ntls = true\n[server_group.verify]\nauthorities = \"{}\"\n\
         name = \"localhost\"\n",
        authority.path().display()
    );
    let proxy = proxy(&[server.tls.to_string()], &settings);
    let mut client = proxy.connect();
    for _ in 0..20 {
        assert_eq!(client.get("/hello.txt").text(), "hello");
    }
    let row = || server_row(&proxy, &server.tls.to_string());
    eventually("all are counted", || row()["2xx_3xx"] == 20);
    assert_eq!(row()["http2_streams"], 0);
    let handshakes = server.number("/tls/full") + server.number("/tls/resumed");
    assert!((1..=4).contains(&handshakes), "{handshakes} handshakes for 20 requests");
}

#[test]
fn the_shared_cache_asks_once_by_http2() {
    let Some(nginx) = Nginx::start("expires 1h;") else { return };
    let (place, authority) = (nginx.tls, nginx.authority.path());
    let proxy = Server::start("/", |launch| {
        launch.written(|listen| {
            format!(
                "[shared_cache]\nlimit = \"64MiB\"\n\n[[server_group]]\nname = \"app\"\n\
                 servers = [\"{place}\"]\nhttp2 = true\ntls = true\n[server_group.verify]\n\
                 authorities = \"{}\"\nname = \"localhost\"\n\n\
                 [[site]]\nlisten = [\"{listen}\"]\nto = \"app\"\n\n[site.cache]\n",
                authority.display()
            )
        });
    });
    let mut clients: Vec<_> = (0..20).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\nUser-Agent: test\r\n\r\n");
    }
    for client in &mut clients {
        assert!(client.receive().body == patterned(3_000_000));
    }
    let asked = "test GET /large.bin HTTP/2.0";
    eventually_within(Duration::from_secs(20), "nginx has logged it", || {
        nginx.log().contains(asked)
    });
    assert_eq!(nginx.log().lines().filter(|line| *line == asked).count(), 1);
}

#[test]
fn a_reload_changes_the_protocol() {
    let Some(nginx) = Nginx::start("") else { return };
    let proxy = proxy(&[nginx.tls.to_string()], &nginx.over_tls());
    for (settings, protocol) in [("", "HTTP/2.0"), ("http2 = true\n", "HTTP/1.1"), ("", "HTTP/2.0")]
    {
        // The first is what it began with.
        if protocol == "HTTP/1.1" || nginx.log().contains("HTTP/1.1") {
            let own = nginx.over_tls().replace(settings, "");
            let text = configuration(proxy.endpoint(), &[nginx.tls.to_string()], &own);
            let new = proxy.home().join("new.toml");
            fs::write(&new, text).expect("written");
            fs::rename(new, proxy.configuration()).expect("renamed");
            proxy.signal(Signal::HUP);
        }
        let before = nginx.log().len();
        eventually_within(Duration::from_secs(20), protocol, || {
            assert_eq!(proxy.get("/small.txt").status, 200);
            nginx.log().get(before..).is_some_and(|log| log.contains(protocol))
        });
    }
}

/// Sends back what was sent, with trailers.
const NODE: &str = r#"
const http2 = require("http2");
const server = http2.createServer();
server.on("stream", (stream, headers) => {
  stream.on("error", () => {});
  stream.respond({ ":status": 200, "x-length": headers["content-length"] || "none" },
    { waitForTrailers: true });
  let bytes = 0;
  stream.on("data", (data) => { bytes += data.length; });
  stream.on("wantTrailers", () => { stream.sendTrailers({ "x-bytes": String(bytes) }); });
  stream.pipe(stream);
});
server.listen(PORT, "ADDRESS");
"#;

/// Node with a script, its folder, and its address; `None`, with a word about it, where there is none.
fn node(script: &str) -> Option<(Running, tempfile::TempDir, SocketAddr)> {
    if !std::path::Path::new("/usr/bin/node").exists() {
        println!("SKIP: node is not installed");
        return None;
    }
    let place = free_address();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("server.js");
    let text = script.replace("PORT", &place.port().to_string());
    fs::write(&file, text.replace("ADDRESS", &place.ip().to_string())).expect("written");
    let mut command = Command::new("/usr/bin/node");
    command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let node = Running::start(&mut command);
    eventually_within(Duration::from_secs(20), "node listens", || {
        Client::connect(&Endpoint::Tcp(place)).is_ok()
    });
    Some((node, folder, place))
}

#[test]
fn content_passes_both_ways_with_a_node_of_http2() {
    let Some((_node, _folder, place)) = node(NODE) else { return };
    let proxy = proxy(&[place.to_string()], "http2 = true\n");
    let content = patterned(2_000_000);
    for round in 0..2 {
        // An answer that begins before its request has ended ends the client's connection.
        for mut client in (0..3).map(|_| proxy.connect()) {
            let mut sender = Client::of(client.tcp().try_clone().expect("another"));
            let upload = content.clone();
            let thread = std::thread::spawn(move || {
                let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: TE\r\nTE: trailers\r\n";
                if round == 0 {
                    sender.send(format!("{head}Content-Length: 2000000\r\n\r\n"));
                    return sender.send(&upload);
                }
                sender.send(format!("{head}Transfer-Encoding: chunked\r\n\r\n"));
                for piece in upload.chunks(70_001) {
                    sender.send(
                        [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
                    );
                }
                sender.send("0\r\n\r\n");
            });
            let response = client.receive();
            thread.join().expect("sent");
            assert!(response.body == content, "{} bytes", response.body.len());
            let length = ["2000000", "none"][round];
            assert_eq!(response.field("x-length"), Some(length));
            assert_eq!(response.trailers, [("x-bytes".to_owned(), "2000000".to_owned())]);
        }
    }
}

/// Says lengths of content that does not come, and has a small table of fields, which it makes smaller still.
const BODILESS: &str = r#"
const http2 = require("http2");
const server = http2.createServer({ settings: { headerTableSize: 200 } });
server.on("session", (session) => setTimeout(() => {
  if (!session.destroyed) { session.settings({ headerTableSize: 0 }); }
}, 20));
server.on("stream", (stream, headers) => {
  stream.on("error", () => {});
  const status = headers[":method"] === "HEAD" ? 200 : 304;
  stream.respond({ ":status": status, "content-length": "5", etag: "\"1\"" }, { endStream: true });
});
server.listen(PORT, "ADDRESS");
"#;

#[test]
fn a_server_of_http2_says_lengths_without_content_and_makes_its_table_smaller() {
    let Some((_node, _folder, place)) = node(BODILESS) else { return };
    let proxy = proxy(&[place.to_string()], "http2 = true\n");
    let mut client = proxy.connect();
    let tag = "Host: h\r\nIf-None-Match: \"1\"\r\n";
    for _ in 0..40 {
        let said = client.exchange(format!("GET / HTTP/1.1\r\n{tag}\r\n"));
        assert_eq!((said.status, said.body.len()), (304, 0), "{said:?}");
        let said = client.exchange(format!("HEAD / HTTP/1.1\r\n{tag}\r\n"));
        assert_eq!((said.status, said.field("content-length")), (200, Some("5")), "{said:?}");
    }
    assert_eq!(server_row(&proxy, &place.to_string())["downs"], 0);
}
