//! An ordinary server in one network namespace, clients in another, and the fast path in front of the server.
//!
//! Everything made here is removed when the [`World`] is dropped. The machine's own interfaces are
//! never touched.
#![allow(dead_code, unreachable_pub)] // each test file uses its part

pub mod frame;
pub mod lab;
pub mod lent;
pub mod socketless;

use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::time::{Duration, Instant};

use afpa_bpf::{Coding, FastPath, Reason, Response, Settings, Variant};
use afpa_netlab::inject::{Impairment, Rules};
use afpa_netlab::{Bed, BedOptions, Namespace, Path, missing_privilege};
use afpa_testkit::tcp::RawClient;
use afpa_testkit::{Client, Running, eventually, nginx, sample};

pub use lent::Lent;

pub use afpa_testkit::sample::{ETAG, LAST_MODIFIED};

pub const SERVER_V4: &str = "10.77.0.1";
pub const SERVER_V6: &str = "fd77::a4d:1";
pub const PORT: u16 = 8080;
pub const SITE: u32 = 7;
pub const LISTENER: u32 = 1;

pub fn counted(fast_path: &FastPath, reason: Reason) -> u64 {
    fast_path.stats.counters().expect("counters")[reason]
}

#[track_caller]
pub fn kernel_answers(fast_path: &FastPath, client: &mut RawClient) {
    fast_path.clock.beat();
    let reply = client.ask(&client.get("/kernel.html"));
    assert!(reply.is_from_kernel() && reply.text().ends_with("from the kernel"), "{reply:?}");
}

/// The server answers the FIN of a client whose sequence numbers are translated by its own; then the socket is gone,
/// and so is the flow, the only one.
#[track_caller]
pub fn closes_cleanly(world: &World, fast_path: &FastPath, mut client: RawClient) {
    use afpa_testkit::packet::FIN;
    client.finish();
    let fin = client.await_segment("the server's FIN", |segment| segment.flags & FIN != 0);
    assert_eq!((fin.seq, fin.ack), (client.ack, client.seq), "{fin:?}");
    client.ack = client.ack.wrapping_add(1);
    client.acknowledge();
    std::thread::sleep(Duration::from_millis(1100));
    let swept = inside(world.server(), || fast_path.sweep(Duration::from_secs(60))).expect("swept");
    assert_eq!((swept.flows, swept.translated, swept.removed), (1, 1, 1));
}

/// A bed, and the server's processes and files.
pub struct World {
    // Before the bed, which would otherwise have to kill them.
    children: Vec<Running>,
    pub bed: Bed,
    pub folder: tempfile::TempDir,
}

/// In this time the server's TCP sends unacknowledged segments again: if it is quiet for so long, all are acknowledged.
pub const SENT_AGAIN: Duration = Duration::from_millis(2700);

impl World {
    /// None, said aloud, where namespaces or the fast path cannot be had.
    pub fn new() -> Option<Self> {
        let world = Self::with_time_outs_of_tcp()?;
        world.let_the_server_wait();
        Some(world)
    }

    /// [`new`](Self::new), with the server's TCP retransmitting at its own time.
    pub fn with_time_outs_of_tcp() -> Option<Self> {
        Self::over(&BedOptions::default())
    }

    /// A client by hand is a process, which waits for the processor on a busy machine. If it acknowledges late, the server's
    /// TCP sends its last segment once more, and a test would take that for an answer. No packet is lost here, so the
    /// server waits longer, where its kernel has a setting for that.
    fn let_the_server_wait(&self) {
        self.server().send_again_late().expect("its kernel is told");
    }

    /// With a lossy wire between the two: of a hundred packets each way, `percent` are lost, as many repeated, as
    /// many held back for a few milliseconds.
    pub fn lossy(percent: u64, seed: u64) -> Option<Self> {
        let share = percent as f64 / 100.0;
        let impairment = Impairment {
            loss: share,
            duplicate: share,
            reorder: share,
            hold: Duration::from_millis(5),
            ..Impairment::default()
        };
        let path = Path::Through(Box::new(Rules::both(impairment, seed)));
        Self::over(&BedOptions { path, ..BedOptions::default() })
    }

    fn over(options: &BedOptions) -> Option<Self> {
        if let Some(reason) = missing_privilege() {
            println!("SKIP: {reason}");
            return None;
        }
        let bed = Bed::create(options).expect("a bed");
        let folder = tempfile::tempdir().expect("a temporary folder");
        Some(Self { children: Vec::new(), bed, folder })
    }

    /// The server's namespace.
    pub fn server(&self) -> &Namespace {
        self.bed.server()
    }

    /// Time goes by, and timers are serviced.
    pub fn service_timers(&self, fast_path: &FastPath, time: Duration) {
        let deadline = Instant::now() + time;
        let mut least = time.as_millis() / 10; // times, although the processor may be away for most of the time
        while least > 0 || Instant::now() < deadline {
            least = least.saturating_sub(1);
            inside(self.server(), || fast_path.rtx.service_timers()).expect("serviced");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A command inside the server's namespace, ended with the world.
    pub fn spawn(&mut self, program: &str, arguments: &[&str]) {
        let mut command = self.server().command(program);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        self.children.push(Running::start(&mut command));
    }

    /// nginx serving `folder/www`, on every address: one process, so that its end leaves no worker.
    pub fn nginx(&mut self, extra: &str) {
        let folder = self.folder.path().to_path_buf();
        std::fs::create_dir_all(folder.join("www")).expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&folder, open).expect("readable for the server's user");
        let configuration = nginx::configuration(
            &folder,
            "master_process off; events { worker_connections 4096; }",
            "access_log off; keepalive_requests 1000000; types { text/html html; }",
            &format!("listen {PORT}; listen [::]:{PORT}; {extra}"),
        );
        std::fs::write(folder.join("nginx.conf"), configuration).expect("written");
        self.spawn("nginx", &["-c", &folder.join("nginx.conf").display().to_string()]);
    }

    pub fn file(&self, name: &str, content: &[u8]) {
        let www = self.folder.path().join("www");
        std::fs::create_dir_all(&www).expect("a folder");
        std::fs::write(www.join(name), content).expect("written");
    }

    /// nginx with a few files, and the fast path before it, which gives another content for one of them, so that
    /// the test sees which of the two answered. None: the test is skipped, and SKIP was printed.
    pub fn with_one_pinned(settings: Settings) -> Option<(Self, Lent)> {
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
    pub fn fast_path(&self, settings: Settings) -> Option<Lent> {
        inside(self.server(), || {
            let fast_path = match Lent::new(settings) {
                Ok(fast_path) => fast_path,
                Err(error) if error.reason.contains("verifier") => panic!("{error}"),
                Err(error) => {
                    println!("SKIP: {error}");
                    return None;
                }
            };
            fast_path.interfaces.attach(index(Bed::DEVICE)).expect("tcx");
            fast_path
                .listeners
                .listen(SocketAddr::new("::".parse().unwrap(), PORT), LISTENER, SITE)
                .expect("listening");
            serve_server(&fast_path);
            // Tests take longer than a second. That the firewall is asked then is `firewall.rs`'s.
            fast_path.clients.set_firewall_interval(Duration::from_secs(3600));
            fast_path.clock.beat();
            Some(fast_path)
        })
    }

    /// Wait until the server accepts connections.
    pub fn await_server(&self) {
        let server = (SERVER_V4, PORT);
        eventually("the server answers", || {
            inside(self.bed.client(), || std::net::TcpStream::connect(server).is_ok())
        });
    }

    pub fn connect(&self, address: &str) -> Client {
        let address: IpAddr = address.parse().expect("an address");
        inside(self.bed.client(), || connect(SocketAddr::new(address, PORT)))
    }

    /// A client by hand at an address of its own.
    pub fn raw(&self) -> RawClient {
        let server = SocketAddr::new(Bed::SERVER_V4.into(), PORT);
        let mut client = self.bed.raw_client(server).expect("a raw client");
        client.habits.window = 500;
        client
    }

    /// A client by hand, its handshake done.
    pub fn connected(&self) -> RawClient {
        let mut client = self.raw();
        client.connect();
        client
    }

    pub fn ethtool(&self, feature: &str, value: &str) {
        self.on_both_sides("ethtool", &["-K", Bed::DEVICE, feature, value]);
    }

    pub fn sysctl(&self, setting: &str) {
        self.on_both_sides("sysctl", &["-qw", setting]);
    }

    pub fn on_both_sides(&self, program: &str, arguments: &[&str]) {
        for side in [self.bed.server(), self.bed.client()] {
            self.set(side, program, arguments);
        }
    }

    fn set(&self, side: &Namespace, program: &str, arguments: &[&str]) {
        let output = side.command(program).args(arguments).output().expect("started");
        assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    }
}

/// Serves the server that listens on the port in the current namespace.
pub fn serve_server(fast_path: &FastPath) {
    let any = SocketAddr::new("::".parse().expect("an address"), PORT);
    let sockets = fast_path.sockets.serve_server(any).expect("its sockets are marked");
    assert!(!sockets.served.is_empty(), "nothing listens on port {PORT}");
}

/// A connection from the current namespace.
pub fn connect(server: SocketAddr) -> Client {
    let client = Client::to(server);
    // The handshake's last segment is on its way: let the server's side be established.
    std::thread::sleep(Duration::from_millis(5));
    client
}

/// Run `test` in a namespace with a fast path that listens, and is attached to nothing.
pub fn without_traffic(test: impl FnOnce(&FastPath) + Send) {
    let Some(world) = World::new() else { return };
    inside(world.server(), || {
        let fast_path = match Lent::new(Settings::default()) {
            Ok(fast_path) => fast_path,
            Err(error) if error.reason.contains("verifier") => panic!("{error}"),
            Err(error) => return println!("SKIP: {error}"),
        };
        let any = SocketAddr::new("::".parse().expect("an address"), PORT);
        fast_path.listeners.listen(any, LISTENER, SITE).expect("listening");
        fast_path.clock.beat();
        test(&fast_path);
    });
}

/// Run `f` on a thread that lives in the namespace.
pub fn inside<T: Send>(namespace: &Namespace, f: impl FnOnce() -> T + Send) -> T {
    namespace.run(f).expect("the namespace can be entered, and the work done")
}

/// Index of an interface in the current namespace.
pub fn index(name: &str) -> u32 {
    nix::net::if_::if_nametoindex(name).expect("an interface")
}

/// A pinned object for tests: marked, so that its answers can be distinguished from the server's.
pub struct Sample(sample::Sample);

impl Sample {
    pub fn new(body: impl AsRef<[u8]>) -> Self {
        Self(sample::Sample::new(body))
    }

    pub fn body(&self) -> &[u8] {
        &self.0.body
    }

    pub fn pin(&self, fast_path: &FastPath, path: &str) {
        self.pin_on(fast_path, SITE, path);
    }

    pub fn pin_on(&self, fast_path: &FastPath, site: u32, path: &str) {
        let sample::Sample { head, not_modified, body } = &self.0;
        let variant = Variant {
            coding: Coding::Identity,
            closing: false,
            etag: ETAG.as_bytes(),
            last_modified: Some(LAST_MODIFIED),
            freshness: None,
            whole: Some(response(head.as_bytes(), body)),
            not_modified: Some(response(not_modified.as_bytes(), &[])),
        };
        fast_path.objects.pin(site, path.as_bytes(), &[variant]).expect("pinned");
    }

    /// With an answer to requests that ask for the connection's end as well.
    pub fn pin_both(&self, fast_path: &FastPath, path: &str) {
        let sample::Sample { head, not_modified, body } = &self.0;
        let closes = |head: &str| head.replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1);
        let (closing_head, closing_not_modified) = (closes(head), closes(not_modified));
        let variant = |closing, head, not_modified| Variant {
            coding: Coding::Identity,
            closing,
            etag: ETAG.as_bytes(),
            last_modified: Some(LAST_MODIFIED),
            freshness: None,
            whole: Some(response(head, body)),
            not_modified: Some(response(not_modified, &[])),
        };
        let variants = [
            variant(false, head.as_bytes(), not_modified.as_bytes()),
            variant(true, closing_head.as_bytes(), closing_not_modified.as_bytes()),
        ];
        fast_path.objects.pin(SITE, path.as_bytes(), &variants).expect("pinned");
    }
}

fn response<'a>(head: &'a [u8], body: &'a [u8]) -> Response<'a> {
    Response { head, date_offset: sample::date_offset(head), body }
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
