//! Tunnels to an unmodified server that speaks nothing but HTTP/2 (RFC 8441). The server echoes the messages of clients
//! of both protocols.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_h2::frame::{flag, kind};
use afpa_testkit::server::free_address;
use afpa_testkit::tree::patterned;
use afpa_testkit::{Client, Endpoint, Running, Server, eventually_within};
use afpa_tests::h2::H2Client;
use afpa_tests::proxy::{proxy, server_row};
use afpa_tests::tls::Authority;

const NODE: &str = "/usr/bin/node";

/// Gives tunnels back what they say, and requests their path; refuses tunnels to `/no`.
const SCRIPT: &str = r#"
const http2 = require("http2"), fs = require("fs");
const settings = { enableConnectProtocol: true };
const [port, address, key, cert] = process.argv.slice(2);
const server = key
  ? http2.createSecureServer({ settings, key: fs.readFileSync(key), cert: fs.readFileSync(cert) })
  : http2.createServer({ settings });
server.on("stream", (stream, headers) => {
  stream.on("error", () => {});
  const path = headers[":path"];
  if (headers[":method"] !== "CONNECT" || path === "/no") {
    stream.respond({ ":status": path === "/no" ? 403 : 200 });
    return stream.end(path);
  }
  const said = [headers[":protocol"], headers[":scheme"], headers[":authority"], path,
    headers["sec-websocket-key"]];
  stream.respond({ ":status": 200, "sec-websocket-protocol": "chat", "x-said": said.filter(Boolean).join(" ") });
  stream.pipe(stream);
});
server.listen(Number(port), address);
"#;

/// Node with that script.
struct Node {
    _child: Running,
    _folder: tempfile::TempDir,
    place: SocketAddr,
}

impl Node {
    fn start(tls: Option<&Authority>) -> Self {
        let (place, folder) = (free_address(), tempfile::tempdir().expect("a folder"));
        let script = folder.path().join("server.js");
        fs::write(&script, SCRIPT).expect("written");
        let mut command = Command::new(NODE);
        command.arg(&script).arg(place.port().to_string()).arg(place.ip().to_string());
        if let Some(authority) = tls {
            let files = authority.issue("node", &["localhost"]);
            command.arg(files.key).arg(files.chain);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = Running::start(&mut command);
        eventually_within(Duration::from_secs(20), "node listens", || {
            Client::connect(&Endpoint::Tcp(place)).is_ok()
        });
        Self { _child: child, _folder: folder, place }
    }

    /// A proxy before it that speaks HTTP/2 with clients, too.
    fn proxy(&self, settings: &str) -> Server {
        let settings = format!("http2 = true\n{settings}\n[http2]\ncleartext = true\n");
        proxy(&[self.place.to_string()], &settings)
    }
}

#[test]
fn tunnels_reach_a_node_of_http2() {
    if !Path::new(NODE).exists() {
        return println!("SKIP: node is not installed");
    }
    let node = Node::start(None);
    let proxy = node.proxy("");
    pass(&proxy, "http");
    let row = server_row(&proxy, &node.place.to_string());
    assert!(row["http2_streams"].as_u64() >= Some(13), "{row}");
    assert_eq!(row["errors"], 0, "{row}");
}

#[test]
fn tunnels_reach_a_node_of_http2_over_tls() {
    if !Path::new(NODE).exists() {
        return println!("SKIP: node is not installed");
    }
    let authority = Authority::new();
    let node = Node::start(Some(&authority));
    let proxy = node.proxy(&format!(
        "tls = true\n[server_group.verify]\nauthorities = \"{}\"\nname = \"localhost\"\n",
        authority.path().display()
    ));
    pass(&proxy, "https");
    let row = server_row(&proxy, &node.place.to_string());
    assert_eq!(row["errors"], 0, "{row}");
}

/// Checks the tunnels that must pass, with and without TLS to the server.
fn pass(proxy: &Server, scheme: &str) {
    let mut others = [proxy.connect(), proxy.connect()];
    let mut new = H2Client::connect(proxy);
    for round in 0..3 {
        by_http11(proxy, &format!("websocket {scheme} www.example.org /chat?{round} "));
        others.iter_mut().for_each(|other| assert_eq!(other.get("/file").text(), "/file"));
        by_http2(&mut new, &format!("websocket {scheme} www.example.org /chat?{round} "));
    }
    let mut client = proxy.connect();
    client.send(handshake("/no"));
    let refused = client.receive();
    assert_eq!((refused.status, refused.text()), (403, "/no"));
    assert_eq!(client.get("/file").text(), "/file", "the client's connection goes on");
}

/// The example of RFC 6455 section 1.3.
fn handshake(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: www.example.org\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
}

/// A client of HTTP/1.1 that says much, and hears it all.
fn by_http11(proxy: &Server, said: &str) {
    let path = said.split(' ').nth(3).unwrap_or_default();
    let mut client = proxy.connect();
    client.send(handshake(path));
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(client.take(1));
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    for line in [
        "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
        "sec-websocket-protocol: chat\r\n",
        format!("x-said: {said}").trim_end(),
    ] {
        assert!(head.contains(line), "{line:?} in {head}");
    }
    let content = patterned(1_000_000);
    let (mut sender, upload) =
        (Client::of(client.tcp().try_clone().expect("another")), content.clone());
    let thread = std::thread::spawn(move || {
        sender.send(&upload);
        sender.finish_sending().expect("half closed");
    });
    assert!(client.take(content.len()) == content);
    thread.join().expect("sent");
    assert_eq!(client.read_to_close().expect("it ends"), b"");
}

/// Two tunnels of a client of HTTP/2, and a request between them.
fn by_http2(client: &mut H2Client, said: &str) {
    let path = said.split(' ').nth(3).unwrap_or_default();
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "www.example.org"),
        ("sec-websocket-version", "13"),
    ];
    let ids = [client.open(&fields, false), client.open(&fields, false)];
    for (at, id) in ids.into_iter().enumerate() {
        client.until("there is a tunnel", |client| !client.so_far(id).fields.is_empty());
        let head = client.so_far(id).fields;
        let has = |name: &str, value: &str| head.iter().any(|(n, v)| n == name && v == value);
        assert!(has(":status", "200") && has("sec-websocket-protocol", "chat"), "{head:?}");
        assert!(has("x-said", said.trim_end()), "{head:?}");
        assert!(head.iter().all(|(name, _)| name != "sec-websocket-accept"), "{head:?}");
        client.frame(kind::DATA, 0, id, format!("tunnel {at}, ").as_bytes());
    }
    assert_eq!(client.get("/file").text(), "/file");
    for (at, id) in ids.into_iter().enumerate() {
        client.frame(kind::DATA, flag::END_STREAM, id, b"end");
        let whole = client.whole(id);
        assert_eq!((whole.reset, whole.body), (None, format!("tunnel {at}, end").into_bytes()));
    }
}
