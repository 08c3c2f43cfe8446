//! The set-up of every test: a bed, nginx, the fast path and its heartbeat.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path as FilePath;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use afpa_bpf::{Counters, FastPath, Reason, Settings};
use afpa_netlab::inject::{Impairment, Rules};
use afpa_netlab::{Bed, BedOptions, Offloads, Path, Steering, missing_privilege};
use afpa_testkit::tcp::RawClient;
use afpa_testkit::{Client, Running, eventually, nginx};

use super::Sample;
use super::lent::Lent;

/// nginx listens here, on every address of both families.
pub const PORT: u16 = 8080;
/// The site of every request.
pub const SITE: u32 = 7;
const LISTENER: u32 = 1;

/// The parameters of a [`Lab`].
#[derive(Clone)]
pub struct Plan {
    /// The network between the two sides.
    pub path: Path,
    /// Where packets are processed.
    pub steering: Steering,
    /// Of the fast path.
    pub settings: Settings,
    /// Client addresses of each family.
    pub sources: u32,
    /// `key=value`, set in both namespaces before anything connects.
    pub sysctls: Vec<&'static str>,
    /// Parameters of nginx's `listen`.
    pub listen: &'static str,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            path: Path::Direct(Offloads::CARD),
            steering: Steering::Unsteered,
            settings: Settings::default(),
            sources: 1,
            sysctls: Vec::new(),
            listen: "",
        }
    }
}

/// Clients, nginx, and the fast path in front of it.
pub struct Lab {
    // In the order in which they must end.
    pulse: Option<Pulse>,
    // Killing the master would leave its worker; the namespace's end kills that.
    _nginx: Running,
    /// The two namespaces.
    pub bed: Bed,
    folder: tempfile::TempDir,
    plan: Plan,
}

/// Content of `/large.html`: 200,000 bytes that tell where they stand.
pub fn large() -> Vec<u8> {
    (0..25_000).flat_map(|number| format!("{number:07}\n").into_bytes()).collect()
}

/// Say why a test does not run. Returns whether there is a reason.
pub fn skip() -> bool {
    let Some(reason) = missing_privilege() else { return false };
    eprintln!("SKIP: {reason}");
    true
}

impl Lab {
    /// nginx with these files under its root, and the fast path in front of it. None: SKIP was said.
    pub fn new(plan: Plan, files: &[(&str, &[u8])]) -> Option<Self> {
        let mut lab = Self::without_fast_path(plan, files)?;
        lab.start_fast_path().then_some(lab)
    }

    /// nginx with a few pages, one of which is pinned as a [`Sample`] of other content.
    pub fn with_sample(plan: Plan) -> Option<Self> {
        let lab = Self::new(
            plan,
            &[
                ("user.html", b"from nginx"),
                ("kernel.html", b"from nginx, the pinned one"),
                ("large.html", &large()),
                ("ssi/page.html", b"from nginx, in chunks"),
                ("until-close/page.html", b"from nginx, until the end"),
            ],
        )?;
        Sample::new("from the kernel").pin(lab.fast_path(), "/kernel.html");
        Some(lab)
    }

    /// The same, with nginx alone for now.
    pub fn without_fast_path(plan: Plan, files: &[(&str, &[u8])]) -> Option<Self> {
        if skip() {
            return None;
        }
        let options = BedOptions {
            path: plan.path.clone(),
            steering: plan.steering,
            sources: plan.sources,
            ..BedOptions::default()
        };
        let bed = Bed::create(&options).expect("a bed");
        for (side, setting) in [bed.client(), bed.server()]
            .into_iter()
            .flat_map(|side| plan.sysctls.iter().map(move |setting| (side, setting)))
        {
            let done = side.command("sysctl").args(["-qw", setting]).status().expect("sysctl runs");
            assert!(done.success(), "sysctl {setting}");
        }
        if matches!(plan.path, Path::Direct(_)) {
            // Where nothing is lost, nothing needs to be sent again.
            for side in [bed.client(), bed.server()] {
                side.send_again_late().expect("its kernel is told");
            }
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, content) in files {
            write(&folder.path().join("www").join(name), content);
        }
        let nginx = start_nginx(&bed, folder.path(), plan.listen)?;
        Some(Self { pulse: None, _nginx: nginx, bed, folder, plan })
    }

    /// Load, attach, listen, beat. False: SKIP was said.
    pub fn start_fast_path(&mut self) -> bool {
        let started = self.bed.server().run(|| {
            let fast_path = Lent::new(self.plan.settings.clone())?;
            fast_path.socketless.look_at_tcp()?;
            attach(&fast_path, Bed::DEVICE)?;
            let _unguarded = fast_path.interfaces.guard(); // tests of the guard check whether it is there
            Ok::<_, afpa_bpf::Unavailable>(fast_path)
        });
        match started.expect("the server's namespace can be entered") {
            Ok(fast_path) => self.pulse = Some(Pulse::start(fast_path, &self.bed)),
            Err(error) => eprintln!("SKIP: {error}"),
        }
        self.pulse.is_some()
    }

    /// The fast path.
    pub fn fast_path(&self) -> &FastPath {
        &self.pulse.as_ref().expect("the fast path runs").fast_path
    }

    /// Whether packets are stopped that no program translates.
    pub fn is_guarded(&self) -> bool {
        self.fast_path().interfaces.is_guarded()
    }

    /// No more heartbeats until [`Lab::resume`], as when the process hangs.
    pub fn hang(&self) {
        *self.pulse.as_ref().expect("the fast path runs").lock() = true;
        self.fast_path().clock.pause();
    }

    /// Heartbeats again.
    pub fn resume(&self) {
        *self.pulse.as_ref().expect("the fast path runs").lock() = false;
        self.fast_path().clock.beat();
    }

    /// The counters of the fast path.
    pub fn counters(&self) -> Counters {
        self.fast_path().stats.counters().expect("counters")
    }

    /// One of them.
    pub fn count(&self, reason: Reason) -> u64 {
        self.counters()[reason]
    }

    /// Counts that are not zero, a line each.
    pub fn tally(&self) -> String {
        let counters = self.counters();
        let lines = counters.iter().filter(|(_, count)| *count != 0);
        lines.map(|(reason, count)| format!("{count:>9} {}\n", reason.text())).collect()
    }

    /// Wait until a count has reached a value.
    pub fn await_count(&self, reason: Reason, at_least: u64) {
        eventually(&format!("{at_least} x {}", reason.text()), || self.count(reason) >= at_least);
    }

    /// A connection of an ordinary client.
    pub fn connect(&self, server: IpAddr) -> Client {
        self.bed.client().run(|| Client::to(SocketAddr::new(server, PORT))).expect("inside")
    }

    /// A connection over IPv4.
    pub fn client(&self) -> Client {
        self.connect(Bed::SERVER_V4.into())
    }

    /// A hand-made client over IPv4, not connected yet.
    pub fn wire(&self) -> RawClient {
        self.bed.raw_client(SocketAddr::new(Bed::SERVER_V4.into(), PORT)).expect("a raw client")
    }

    /// A hand-made client that is connected.
    pub fn wired(&self) -> RawClient {
        let mut wire = self.wire();
        wire.connect();
        wire
    }

    /// A file of nginx's root.
    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("www").join(name)
    }

    /// Sockets of the server's side that are in this state, as `ss` names them.
    pub fn sockets(&self, state: &str) -> usize {
        let out = self
            .bed
            .server()
            .command("ss")
            .args(["-Htn", "state", state, "sport", "=", &format!(":{PORT}")])
            .output()
            .expect("ss runs");
        String::from_utf8_lossy(&out.stdout).lines().count()
    }

    /// Other rules for the network from now on.
    pub fn impair(&self, to_server: Impairment, to_client: Impairment) {
        let rules = Rules { to_server, to_client, seed: 1 };
        self.bed.injector().expect("an injector").set_rules(&rules);
    }

    /// Kernel, user and kernel again; the connection must be free for the kernel.
    pub fn converse(&self, client: &mut Client) {
        let reply = client.get("/kernel.html");
        let tally = self.tally();
        assert!(reply.is_from_kernel() && reply.body == b"from the kernel", "{reply:?}\n{tally}");
        assert_eq!(client.get("/user.html").body, b"from nginx");
        let reply = client.get("/kernel.html");
        assert!(reply.is_from_kernel() && reply.body == b"from the kernel", "{reply:?}");
    }
}

/// Put the fast path on an interface of this namespace, serve [`PORT`], and beat.
pub fn attach(fast_path: &FastPath, interface: &str) -> Result<(), afpa_bpf::Unavailable> {
    let any_socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let index = rustix::net::netdevice::name_to_index(&any_socket, interface).expect("an index");
    fast_path.interfaces.attach(index)?;
    let any = SocketAddr::new("::".parse().expect("an address"), PORT);
    fast_path.listeners.listen(any, LISTENER, SITE).expect("listening");
    let sockets = fast_path.sockets.serve_server(any).expect("nginx's sockets are marked");
    assert!(!sockets.served.is_empty(), "nothing listens on port {PORT}");
    // That clients pass once a second is not what these tests count.
    fast_path.clients.set_firewall_interval(Duration::from_secs(3600));
    fast_path.clock.beat();
    Ok(())
}

fn write(path: &FilePath, content: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, content).expect("written");
}

/// The process that keeps the fast path answering, and forgets connections that are gone.
struct Pulse {
    fast_path: Lent,
    hung: Arc<RwLock<bool>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    const EVERY: Duration = Duration::from_millis(10);
    /// Once in so many.
    const BEAT: u64 = 10;
    const IDLE: Duration = Duration::from_secs(30);

    fn start(fast_path: Lent, bed: &Bed) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let hung = Arc::new(RwLock::new(false));
        let (ours, asked, hangs) = (Arc::clone(&fast_path), stop.clone(), hung.clone());
        let thread = bed.server().run(|| {
            std::thread::spawn(move || {
                for tick in 0u64.. {
                    if asked.load(Ordering::Relaxed) {
                        break;
                    }
                    let hangs = hangs.read().unwrap_or_else(PoisonError::into_inner);
                    if !*hangs {
                        ours.rtx.service_timers().expect("serviced");
                        if tick.is_multiple_of(Self::BEAT) {
                            ours.clock.beat();
                            ours.sweep(Self::IDLE).expect("swept");
                        }
                    }
                    drop(hangs);
                    std::thread::sleep(Self::EVERY);
                }
            })
        });
        Self { fast_path, hung, stop, thread: Some(thread.expect("inside")) }
    }

    fn lock(&self) -> std::sync::RwLockWriteGuard<'_, bool> {
        self.hung.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the heartbeat failed");
        }
    }
}

/// nginx, answering. None: SKIP was said.
fn start_nginx(bed: &Bed, folder: &FilePath, listen: &str) -> Option<Running> {
    if !FilePath::new(nginx::PROGRAM).exists() {
        eprintln!("SKIP: nginx is not installed");
        return None;
    }
    let mut command = bed.server().command(nginx::PROGRAM);
    command.arg("-p").arg(folder).arg("-c").arg(configure(folder, listen));
    let mut nginx = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let address = SocketAddr::new(Bed::SERVER_V4.into(), PORT);
    eventually("nginx", || {
        let errors = || std::fs::read_to_string(folder.join("error.log")).unwrap_or_default();
        assert!(nginx.is_alive(), "nginx ended: {}", errors());
        bed.server().run(|| TcpStream::connect(address).is_ok()).expect("inside")
    });
    Some(nginx)
}

/// One worker, no log, and patience: requests that the kernel answers are not seen by its timers.
fn configure(folder: &FilePath, listen: &str) -> std::path::PathBuf {
    let main = "user root; worker_processes 1; worker_rlimit_nofile 65536;
        events { worker_connections 16384; }";
    let http = "access_log off; types { text/html html; } client_max_body_size 64m;
        keepalive_requests 100000000; keepalive_timeout 3600s; client_header_timeout 3600s;
        client_body_timeout 3600s; lingering_time 3600s; lingering_timeout 3600s; send_timeout 3600s;";
    let server = format!(
        "listen {PORT} backlog=4096 {listen}; listen [::]:{PORT} backlog=4096 {listen};
         location = /post {{ return 200 \"posted\\n\"; }}
         location /upload/ {{ dav_methods PUT; create_full_put_path on; }}
         location /ssi/ {{ ssi on; ssi_types *; }}
         location /until-close/ {{ ssi on; ssi_types *; chunked_transfer_encoding off; }}
         location = /drop {{ return 444; }}"
    );
    write(&folder.join("www/index.html"), b"index");
    let file = folder.join("nginx.conf");
    std::fs::write(&file, nginx::configuration(folder, main, http, &server)).expect("written");
    file
}
