//! An application in Node, and a server in Python that says who may.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Endpoint, Running, eventually_within};

/// Says what it was asked, and how often. The query tells it more: `status`, `wait` in milliseconds, `age` of a kept
/// answer in seconds, `lines` of text. A WebSocket gets back all bytes that it sends.
const NODE: &str = r#"
const http = require("http");
const crypto = require("crypto");
let count = 0;
const server = http.createServer((request, response) => {
  let length = 0;
  request.on("data", (piece) => { length += piece.length; });
  request.on("end", () => {
    const asked = new URL(request.url, "http://app").searchParams;
    const fields = { "Content-Type": "text/plain", "X-Powered-By": "Node", Server: "node" };
    if (asked.has("age")) { fields["Cache-Control"] = `max-age=${asked.get("age")}`; }
    const raw = request.rawHeaders;
    let text = `node ${request.method} ${request.url} ${length}\n`;
    for (let at = 0; at < raw.length; at += 2) { text += `${raw[at]}: ${raw[at + 1]}\n`; }
    text += `count: ${++count}\n` + "a line of many\n".repeat(Number(asked.get("lines") ?? 0));
    fields["Content-Length"] = Buffer.byteLength(text);
    const answer = () => response.writeHead(Number(asked.get("status") ?? 200), fields).end(text);
    setTimeout(answer, Number(asked.get("wait") ?? 0));
  });
});
server.on("upgrade", (request, socket) => {
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = crypto.createHash("sha1").update(key).digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
    `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.on("error", () => {});
  socket.pipe(socket);
});
server.keepAliveTimeout = 60000;
server.listen(Number(process.argv[2]), process.argv[3]);
"#;

/// Knows ann by her cookie; sends browsers to its own page.
const PORTAL: &str = r#"
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Portal(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        said = self.headers
        if self.path.startswith("/authelia/"):
            self.say(200, [], "who are you?")
        elif self.path != "/api/authz/forward-auth":
            self.say(500, [], self.path)
        elif "session=ann" in (said["Cookie"] or ""):
            self.say(200, [("Remote-User", "ann"), ("Remote-Groups", "staff"), ("Set-Cookie", "seen=1")], "ok")
        else:
            to = "/authelia/?rd=" + said["X-Original-URL"] + "&rm=" + said["X-Forwarded-Method"]
            self.say(302, [("Location", to)], "")
    def say(self, status, fields, text):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def log_message(self, *args):
        pass

ThreadingHTTPServer((sys.argv[2], int(sys.argv[1])), Portal).serve_forever()
"#;

/// A script that runs until this is dropped.
pub(super) struct App {
    to: String,
    _running: Running,
    _folder: tempfile::TempDir,
}

impl App {
    /// The application in Node.
    ///
    /// # Errors
    /// When it is not installed.
    pub(super) fn node() -> Result<Self, String> {
        Self::start("/usr/bin/node", NODE)
    }

    /// The server in Python.
    ///
    /// # Errors
    /// When it is not installed.
    pub(super) fn portal() -> Result<Self, String> {
        Self::start("/usr/bin/python3", PORTAL)
    }

    fn start(program: &str, script: &str) -> Result<Self, String> {
        if !Path::new(program).exists() {
            return Err(format!("{program} is not installed"));
        }
        let (at, folder) = (free_address(), tempfile::tempdir().expect("a folder"));
        let file = folder.path().join("script.js");
        fs::write(&file, script).expect("written");
        let mut command = Command::new(program);
        command.arg(&file).arg(at.port().to_string()).arg(at.ip().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running::start(&mut command);
        eventually_within(Duration::from_secs(30), "the script listens", || {
            Client::connect(&Endpoint::Tcp(at)).is_ok()
        });
        Ok(Self { to: at.to_string(), _running: running, _folder: folder })
    }

    /// Its address.
    pub(super) fn to(&self) -> &str {
        &self.to
    }
}
