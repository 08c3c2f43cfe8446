//! Ordinary web servers, as they come, each one process that can be killed and frozen.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Endpoint, Running, eventually_within, nginx};
use rustix::process::{Pid, Signal, kill_process};

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Debian's nginx.
    Nginx,
    /// Debian's Apache.
    Apache,
    /// `http.server` of the standard library, with threads.
    Python,
    /// Node's `http`.
    Node,
}

/// A server that answers GET of `/` with its name, and POST of `/echo` with the request's content (Python
/// and Node). Ended when dropped.
#[derive(Debug)]
pub struct Backend {
    child: Running,
    kind: Kind,
    name: &'static str,
    address: SocketAddr,
    folder: tempfile::TempDir,
}

impl Backend {
    /// A server of a kind, running.
    ///
    /// # Errors
    /// When its program is not there: a reason to skip the test.
    pub fn start(kind: Kind, name: &'static str) -> Result<Self, String> {
        let program = kind.program().ok_or_else(|| format!("{kind:?} is not installed"))?;
        let folder = tempfile::Builder::new().prefix("afpa-server").tempdir().expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("readable for the server's user");
        let address = free_address();
        let configuration = folder.path().join("configuration");
        fs::write(&configuration, kind.configuration(folder.path(), address, name))
            .expect("written");
        fs::create_dir_all(folder.path().join("www")).expect("a folder");
        fs::write(folder.path().join("www/index.html"), name).expect("written");
        let child = spawn(kind, &program, &configuration);
        let backend = Self { kind, name, address, folder, child };
        backend.wait();
        Ok(backend)
    }

    /// Its address, as the configuration of a group has it.
    pub fn to(&self) -> String {
        self.address.to_string()
    }

    /// The name that is the content of its answers.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Started again, at the same address.
    pub fn restart(&mut self) {
        let program = self.kind.program().expect("it was there");
        self.child = spawn(self.kind, &program, &self.folder.path().join("configuration"));
        self.wait();
    }

    /// SIGSTOP: it still has its connections, and does nothing.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process id");
        kill_process(pid, signal).expect("kill");
    }

    fn wait(&self) {
        let endpoint = Endpoint::Tcp(self.address);
        eventually_within(Duration::from_secs(20), "the server listens", || {
            Client::connect(&endpoint).is_ok()
        });
    }
}

fn spawn(kind: Kind, program: &Path, configuration: &Path) -> Running {
    let mut command = Command::new(program);
    match kind {
        Kind::Nginx => command.arg("-c").arg(configuration),
        // One process.
        Kind::Apache => command.arg("-X").arg("-f").arg(configuration),
        Kind::Python | Kind::Node => command.arg(configuration),
    };
    let log = configuration.with_file_name("log");
    let log = fs::File::options().create(true).append(true).open(log).expect("a log");
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
    Running::start(&mut command)
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nginx, Self::Apache, Self::Python, Self::Node];

    fn program(self) -> Option<PathBuf> {
        let path = match self {
            Self::Nginx => nginx::PROGRAM,
            Self::Apache => "/usr/sbin/apache2",
            Self::Python => "/usr/bin/python3",
            Self::Node => "/usr/bin/node",
        };
        Some(PathBuf::from(path)).filter(|path| path.exists())
    }

    fn configuration(self, folder: &Path, address: SocketAddr, name: &str) -> String {
        let at = folder.display();
        let (ip, port) = (address.ip(), address.port());
        match self {
            Self::Nginx => nginx::configuration(
                folder,
                "master_process off; events { worker_connections 1024; }",
                "access_log off; keepalive_requests 1000000; default_type text/plain;",
                &format!("listen {address}; location = / {{ return 200 {name}; }}"),
            ),
            Self::Apache => {
                let modules = "/usr/lib/apache2/modules";
                let load: String = ["mpm_event", "authz_core", "dir"]
                    .map(|name| format!("LoadModule {name}_module {modules}/mod_{name}.so\n"))
                    .concat();
                format!(
                    "ServerRoot {at}\nServerName server\nListen {address}\nPidFile {at}/pid\n\
                     ErrorLog {at}/error.log\n{load}DefaultRuntimeDir {at}\nMaxKeepAliveRequests 0\n\
                     DocumentRoot {at}/www\nDirectoryIndex index.html\n\
                     <Directory {at}/www>\nRequire all granted\n</Directory>\n"
                )
            }
            Self::Python => PYTHON
                .replace("ADDRESS", &ip.to_string())
                .replace("PORT", &port.to_string())
                .replace("NAME", name),
            Self::Node => NODE
                .replace("ADDRESS", &ip.to_string())
                .replace("PORT", &port.to_string())
                .replace("NAME", name),
        }
    }
}

const PYTHON: &str = r#"
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, body):
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        self.wfile.write(head + body)

    def do_GET(self):
        self.answer(b"NAME")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *args):
        pass

class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

Server(("ADDRESS", PORT), Handler).serve_forever()
"#;

/// Also: `/events` streams server-sent events, and an upgrade to `websocket` is accepted (RFC 6455,
/// section 4.2.2), after which every byte is sent back; at `/socket` every frame, without its mask.
const NODE: &str = r#"
const http = require("http");
const crypto = require("crypto");

const server = http.createServer((request, response) => {
  if (request.url === "/events") {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    let count = 0;
    const timer = setInterval(() => {
      response.write(`id: ${count}\ndata: event ${count}\n\n`);
      if (++count === 5) { clearInterval(timer); response.end(); }
    }, 100);
    request.on("close", () => clearInterval(timer));
  } else if (request.method === "POST") {
    response.writeHead(200, { "Content-Type": "application/octet-stream" });
    request.pipe(response);
  } else {
    response.end("NAME");
  }
});
server.on("upgrade", (request, socket) => {
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = crypto.createHash("sha1").update(key).digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
    `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  let waiting = Buffer.alloc(0);
  socket.on("data", (bytes) => {
    if (request.url !== "/socket") { socket.write(bytes); return; }
    waiting = Buffer.concat([waiting, bytes]);
    for (let size; (size = frame(waiting)) > 0; waiting = waiting.subarray(size)) {
      socket.write(unmasked(waiting.subarray(0, size)));
    }
  });
  socket.on("end", () => socket.end());
  socket.on("error", () => {});
});
// A frame of a client: two bytes, two more for lengths from 126 to 65535, four of mask, content.
const begin = (bytes) => (bytes[1] & 127) === 126 ? 8 : 6;
const frame = (bytes) => {
  if (bytes.length < 2 || bytes.length < begin(bytes)) { return 0; }
  const size = begin(bytes) + (begin(bytes) === 8 ? bytes.readUInt16BE(2) : bytes[1] & 127);
  return bytes.length < size ? 0 : size;
};
const unmasked = (bytes) => {
  const at = begin(bytes), mask = bytes.subarray(at - 4, at);
  const head = Buffer.from(bytes.subarray(0, at - 4));
  head[1] &= 127;
  return Buffer.concat([head, bytes.subarray(at).map((byte, index) => byte ^ mask[index % 4])]);
};
server.keepAliveTimeout = 60000;
server.listen(PORT, "ADDRESS");
"#;
