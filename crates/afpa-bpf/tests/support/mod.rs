//! Two network namespaces joined by a veth pair, an ordinary server in one, clients in the other.
//!
//! Everything made here is removed when the [`World`] is dropped. The machine's own interfaces are
//! never touched.
#![allow(dead_code, unreachable_pub)] // each test file uses its part

pub mod client;
pub mod frame;
pub mod lab;
pub mod raw;
pub mod relay;

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use afpa_bpf::{Coding, FastPath, Reason, Response, Settings, Variant};

pub const SERVER_V4: &str = "10.99.0.1";
pub const SERVER_V6: &str = "fd99::1";
pub const PORT: u16 = 8080;
pub const SITE: u32 = 7;
pub const LISTENER: u32 = 1;

pub fn counted(fast_path: &FastPath, reason: Reason) -> u64 {
    fast_path.counters().expect("counters")[reason]
}

#[track_caller]
pub fn kernel_answers(fast_path: &FastPath, client: &mut raw::RawClient) {
    fast_path.beat();
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(reply.is_from_kernel() && reply.text().ends_with("from the kernel"), "{reply:?}");
}

/// The server answers the FIN of a client whose numbers have an offset by its own; then the socket is gone,
/// and so is the flow, the only one.
#[track_caller]
pub fn closes_cleanly(world: &World, fast_path: &FastPath, mut client: raw::RawClient) {
    use raw::{ACK, FIN, Segment};
    client.send(&Segment { flags: FIN | ACK, ..client.next() });
    client.seq = client.seq.wrapping_add(1);
    let answers = client.collect(Duration::from_millis(150));
    let fin = answers.iter().find(|s| s.flags & FIN != 0).expect("the server closes, too");
    assert_eq!((fin.seq, fin.ack), (client.ack, client.seq), "{answers:?}");
    client.ack = client.ack.wrapping_add(1);
    client.send(&client.next());
    std::thread::sleep(Duration::from_millis(1100));
    let swept = inside(&world.server, || fast_path.sweep(Duration::from_secs(60))).expect("swept");
    assert_eq!((swept.flows, swept.translated, swept.removed), (1, 1, 1));
}

/// Two namespaces; `server` and `client` are their names.
pub struct World {
    pub server: String,
    pub client: String,
    pub folder: tempfile::TempDir,
    children: Vec<Child>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl World {
    /// None, said aloud, where namespaces or the fast path cannot be had.
    pub fn new() -> Option<Self> {
        let id = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let world = Self {
            server: format!("afpa-s{id}"),
            client: format!("afpa-c{id}"),
            folder: tempfile::tempdir().expect("a temporary folder"),
            children: Vec::new(),
        };
        if !run("ip", &["netns", "add", &world.server])
            || !run("ip", &["netns", "add", &world.client])
        {
            println!("SKIP: network namespaces cannot be made here");
            return None;
        }
        let (s, c) = (world.server.as_str(), world.client.as_str());
        must(
            "ip",
            &[
                "link", "add", "afpa0", "netns", s, "type", "veth", "peer", "name", "afpa0",
                "netns", c,
            ],
        );
        for (ns, last) in [(s, 1), (c, 2)] {
            must("ip", &["-n", ns, "addr", "add", &format!("10.99.0.{last}/24"), "dev", "afpa0"]);
            must(
                "ip",
                &["-n", ns, "addr", "add", &format!("fd99::{last}/64"), "dev", "afpa0", "nodad"],
            );
            must("ip", &["-n", ns, "link", "set", "lo", "up"]);
            must("ip", &["-n", ns, "link", "set", "afpa0", "up"]);
        }
        Some(world)
    }

    /// A command inside the server's namespace, ended with the world.
    pub fn spawn(&mut self, program: &str, arguments: &[&str]) {
        let child = Command::new("ip")
            .args(["netns", "exec", &self.server, program])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        self.children.push(child);
    }

    /// nginx serving `folder/www`, on every address: one process, so that its end leaves no worker.
    pub fn nginx(&mut self, extra: &str) {
        let folder = self.folder.path().to_path_buf();
        std::fs::create_dir_all(folder.join("www")).expect("a folder");
        must("chmod", &["-R", "a+rX", &folder.display().to_string()]);
        let configuration = format!(
            "daemon off; master_process off; pid {0}/nginx.pid; error_log {0}/error.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; keepalive_requests 1000000; sendfile on; types {{ text/html html; }}\n\
             client_body_temp_path {0}; proxy_temp_path {0}; fastcgi_temp_path {0}; uwsgi_temp_path {0}; scgi_temp_path {0};\n\
             server {{ listen 8080; listen [::]:8080; root {0}/www; {extra} }} }}\n",
            folder.display()
        );
        std::fs::write(folder.join("nginx.conf"), configuration).expect("written");
        self.spawn("nginx", &["-c", &folder.join("nginx.conf").display().to_string()]);
    }

    pub fn file(&self, name: &str, content: &[u8]) {
        let www = self.folder.path().join("www");
        std::fs::create_dir_all(&www).expect("a folder");
        std::fs::write(www.join(name), content).expect("written");
    }

    /// nginx with a few files, and the fast path before it, which gives another content for one of them: so that
    /// who answered is seen. None: SKIP was said.
    pub fn with_one_pinned(settings: Settings) -> Option<(Self, FastPath)> {
        let mut world = Self::new()?;
        world.file("user.html", b"from nginx");
        world.file("kernel.html", b"the pinned one, from nginx");
        world.file("large.bin", &vec![b'z'; 3_000_000]);
        world.nginx("");
        world.await_server();
        let fast_path = world.fast_path(settings)?;
        Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
        Some((world, fast_path))
    }

    /// The fast path on the server's veth, listening, with a first heartbeat. None: SKIP was said.
    pub fn fast_path(&self, settings: Settings) -> Option<FastPath> {
        inside(&self.server, || {
            let fast_path = match FastPath::load(settings) {
                Ok(fast_path) => fast_path,
                Err(error) if error.reason.contains("verifier") => panic!("{error}"),
                Err(error) => {
                    println!("SKIP: {error}");
                    return None;
                }
            };
            fast_path.attach(index("afpa0")).expect("tcx");
            fast_path
                .listen(SocketAddr::new("::".parse().unwrap(), PORT), LISTENER, SITE)
                .expect("listening");
            fast_path.beat();
            Some(fast_path)
        })
    }

    /// Wait until the server accepts connections.
    pub fn await_server(&self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while inside(&self.client, || std::net::TcpStream::connect((SERVER_V4, PORT)).is_err()) {
            assert!(Instant::now() < deadline, "server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn connect(&self, address: &str) -> client::Client {
        let address: IpAddr = address.parse().expect("an address");
        inside(&self.client, || client::Client::connect(SocketAddr::new(address, PORT)))
    }

    /// A hand-made TCP client at an address of its own.
    pub fn raw(&self) -> raw::RawClient {
        let mac = |ns: &str| {
            let out =
                Command::new("ip").args(["-n", ns, "-o", "link", "show", "dev", "afpa0"]).output();
            let text = String::from_utf8_lossy(&out.expect("ip runs").stdout).into_owned();
            let after = text.split("link/ether ").nth(1);
            after.and_then(|rest| rest.split(' ').next()).expect("a MAC").to_owned()
        };
        let (server, client) = (mac(&self.server), mac(&self.client));
        run(
            "ip",
            &[
                "-n",
                &self.server,
                "neigh",
                "replace",
                raw::ADDRESS,
                "lladdr",
                &client,
                "dev",
                "afpa0",
            ],
        );
        inside(&self.client, || raw::RawClient::open(&server, &client))
    }

    /// The same, its handshake done.
    pub fn connected(&self) -> raw::RawClient {
        let mut client = self.raw();
        client.connect();
        client
    }

    /// Put a lossy wire between the two: the veth pair is cut in a third namespace.
    pub fn lossy(&self, percent: u64, seed: u64) -> (Middle, relay::Relay) {
        let middle = Middle(format!("{}-m", self.server));
        must("ip", &["netns", "add", &middle.0]);
        for (ns, last, end) in [(&self.server, 1, "left"), (&self.client, 2, "right")] {
            run("ip", &["-n", ns, "link", "del", "afpa0"]); // its peer goes with it
            must(
                "ip",
                &[
                    "link", "add", "afpa0", "netns", ns, "type", "veth", "peer", "name", end,
                    "netns", &middle.0,
                ],
            );
            must("ip", &["-n", ns, "addr", "add", &format!("10.99.0.{last}/24"), "dev", "afpa0"]);
            must(
                "ip",
                &["-n", ns, "addr", "add", &format!("fd99::{last}/64"), "dev", "afpa0", "nodad"],
            );
            must("ip", &["-n", ns, "link", "set", "afpa0", "up"]);
            must("ip", &["-n", &middle.0, "link", "set", end, "up"]);
        }
        // What crosses a packet socket must be whole segments with whole checksums.
        for feature in ["tx", "tso", "gso", "gro"] {
            self.ethtool(feature, "off");
        }
        let ends = inside(&middle.0, || {
            (relay::packet_socket("left", 1), relay::packet_socket("right", 1))
        });
        let relay = relay::Relay::start(ends.0, ends.1, percent, seed);
        (middle, relay)
    }

    pub fn ethtool(&self, feature: &str, value: &str) {
        for ns in [&self.server, &self.client] {
            must("ip", &["netns", "exec", ns, "ethtool", "-K", "afpa0", feature, value]);
        }
    }

    pub fn sysctl(&self, setting: &str) {
        for ns in [&self.server, &self.client] {
            must("ip", &["netns", "exec", ns, "sysctl", "-qw", setting]);
        }
    }
}

/// Run `test` in a namespace with a fast path that listens, and is attached to nothing.
pub fn without_traffic(test: impl FnOnce(&FastPath) + Send) {
    let Some(world) = World::new() else { return };
    inside(&world.server, || {
        let fast_path = match FastPath::load(Settings::default()) {
            Ok(fast_path) => fast_path,
            Err(error) if error.reason.contains("verifier") => panic!("{error}"),
            Err(error) => return println!("SKIP: {error}"),
        };
        let any = SocketAddr::new("::".parse().expect("an address"), PORT);
        fast_path.listen(any, LISTENER, SITE).expect("listening");
        fast_path.beat();
        test(&fast_path);
    });
}

/// Namespace of the lossy wire.
pub struct Middle(String);

impl Drop for Middle {
    fn drop(&mut self) {
        run("ip", &["netns", "del", &self.0]);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _gone = child.kill();
            let _status = child.wait();
        }
        run("ip", &["netns", "del", &self.server]);
        run("ip", &["netns", "del", &self.client]);
    }
}

/// Run `f` on a thread that lives in the namespace.
pub fn inside<T: Send>(namespace: &str, f: impl FnOnce() -> T + Send) -> T {
    let path = Path::new("/run/netns").join(namespace);
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            let file = std::fs::File::open(path).expect("the namespace exists");
            rustix::thread::move_into_link_name_space(
                file.as_fd(),
                Some(rustix::thread::LinkNameSpaceType::Network),
            )
            .expect("the namespace can be entered");
            f()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Index of an interface in the current namespace.
pub fn index(name: &str) -> u32 {
    let out =
        Command::new("ip").args(["-o", "link", "show", "dev", name]).output().expect("ip runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.split(':')
        .next()
        .and_then(|number| number.trim().parse().ok())
        .expect("an interface index")
}

pub fn run(program: &str, arguments: &[&str]) -> bool {
    let status =
        Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn must(program: &str, arguments: &[&str]) {
    assert!(run(program, arguments), "{program} {arguments:?}");
}

/// A pinned object for tests: marked, so that its answers are told from the server's.
pub struct Sample {
    pub head: String,
    pub not_modified: String,
    pub body: Vec<u8>,
}

pub const ETAG: &str = "\"afpa-1\"";
pub const LAST_MODIFIED: &[u8; 29] = b"Sun, 06 Nov 1994 08:49:37 GMT";
const DATE_OFFSET: usize = 23;

impl Sample {
    pub fn new(body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\nDate: {0}\r\nServer: afpa-kernel\r\nContent-Length: {1}\r\nETag: {ETAG}\r\nLast-Modified: {2}\r\n\r\n",
            "x".repeat(29),
            body.len(),
            String::from_utf8_lossy(LAST_MODIFIED)
        );
        let not_modified = format!(
            "HTTP/1.1 304 Not Modified\r\nDate: {}\r\nServer: afpa-kernel\r\nETag: {ETAG}\r\n\r\n",
            "x".repeat(29)
        );
        Self { head, not_modified, body: body.to_vec() }
    }

    pub fn pin(&self, fast_path: &FastPath, path: &str) {
        self.pin_on(fast_path, SITE, path);
    }

    pub fn pin_on(&self, fast_path: &FastPath, site: u32, path: &str) {
        let variant = Variant {
            coding: Coding::Identity,
            etag: ETAG.as_bytes(),
            last_modified: Some(LAST_MODIFIED),
            whole: Some(Response {
                head: self.head.as_bytes(),
                date_offset: DATE_OFFSET,
                body: &self.body,
            }),
            not_modified: Some(Response {
                head: self.not_modified.as_bytes(),
                date_offset: DATE_OFFSET + 10,
                body: &[],
            }),
        };
        fast_path.pin(site, path.as_bytes(), &[variant]).expect("pinned");
    }
}

/// Kernel-wide timing of programs, for as long as the descriptor lives.
pub fn enable_statistics() -> std::os::fd::OwnedFd {
    use std::os::fd::FromRawFd;
    // JUSTIFICATION: libbpf-rs does not wrap it.
    // SAFETY: plain system call wrapper; a result that is not negative is a fresh descriptor.
    unsafe {
        let fd = libbpf_rs::libbpf_sys::bpf_enable_stats(libbpf_rs::libbpf_sys::BPF_STATS_RUN_TIME);
        assert!(fd >= 0, "statistics can be enabled");
        std::os::fd::OwnedFd::from_raw_fd(fd)
    }
}
