//! Three servers of NATS and three machines of a fleet, each in a network namespace of its own behind a bridge, and each with a
//! small disk of its own. Clients and the application use unix sockets, which no fault of the network reaches.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use afpa_netlab::Namespace;
use afpa_testkit::aloud::say;
use afpa_testkit::{Endpoint, Running, Server, eventually_within};
use afpa_tests::clock::Clock;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::evidence::Story;
use super::ledger::Application;
use crate::bed::SOON;

pub(super) const COUNT: usize = 3;

/// The names of the machines.
const NAMES: [&str; COUNT] = ["a", "b", "c"];

/// Kept answers are validated from this age of the last word on.
pub(super) const STALE_AFTER: u64 = 10;

/// Orders are kept for so long: a machine that was away for longer cannot know them.
const RETENTION: u64 = 15;

/// Where machines ask one another.
const PEERS: u16 = 8471;

/// Of a thousand packets between machines so many are lost.
const LOST: u32 = 20;

/// The clock of each machine is ahead by so many seconds, or behind.
const AHEAD: [i64; COUNT] = [0, 95, -95];

/// Where a server of NATS tells about itself, by HTTP.
pub(super) const MONITOR: u16 = 8222;

/// A network in which each node can be cut off.
pub(super) struct Network {
    hub: Namespace,
    pub(super) nodes: Vec<Namespace>,
}

/// A server of NATS.
pub(super) struct NatsServer {
    pub(super) address: SocketAddr,
    arguments: Vec<String>,
    namespace: String,
    pub(super) log: PathBuf,
    running: Mutex<Option<Running>>,
}

/// A machine. The number of its goings is odd while it is away.
pub(super) struct Machine {
    pub(super) name: &'static str,
    pub(super) server: Mutex<Server>,
    pub(super) site: Endpoint,
    pub(super) control: Endpoint,
    goings: AtomicUsize,
}

/// All of it. The order is that of its end.
pub(super) struct Place {
    pub(super) machines: Vec<Machine>,
    pub(super) servers: Vec<NatsServer>,
    pub(super) story: Story,
    pub(super) network: Network,
    disks: Vec<Disk>,
    _clock: Option<Clock>,
    _folder: TempDir,
}

/// A file system of some megabytes.
struct Disk(PathBuf);

impl Place {
    pub(super) fn new(application: &Application) -> Self {
        let folder = tempfile::Builder::new().prefix("afpa-storm-").tempdir().expect("a folder");
        open_to_all(folder.path());
        let network = Network::new(2 * COUNT);
        let disks: Vec<_> = (0..2 * COUNT)
            .map(|number| {
                let size = if number < COUNT { "96m" } else { "4m" };
                Disk::new(folder.path().join(format!("disk{number}")), size)
            })
            .collect();
        let server = |number| NatsServer::new(number, &network, &disks[number], folder.path());
        let servers: Vec<_> = (0..COUNT).map(server).collect();
        servers.iter().for_each(NatsServer::start);
        servers.iter().for_each(NatsServer::wait);
        let urls = servers.iter().map(|server| format!("\"nats://{}\"", server.address));
        let urls = urls.collect::<Vec<_>>().join(", ");
        let secret = folder.path().join("secret");
        fs::write(&secret, "s3cret".repeat(8)).expect("written");
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o640);
        fs::set_permissions(&secret, closed).expect("closed");
        let clock = Clock::new().inspect_err(|why| say("SKIP", &format!("clocks apart: {why}")));
        let clock = clock.ok();
        let machines = NAMES.into_iter().enumerate().map(|(number, name)| {
            let node = &network.nodes[COUNT + number];
            lose(node);
            let peers = SocketAddr::from((address(COUNT + number), PEERS));
            let state = disks[COUNT + number].0.join("fleet").display().to_string();
            let fleet = format!(
                "[fleet]\nservers = [{urls}]\nname = \"{name}\"\nstate = \"{state}\"\n\
                 secret = \"{}\"\npeers = \"{peers}\"\nconfiguration = true\nrollout_wait = \"1s\"\n\
                 retention = \"{RETENTION}s\"\nstale_after = \"{STALE_AFTER}s\"\n",
                secret.display()
            );
            let clock = clock.as_ref().map(|clock| (clock, AHEAD[number]));
            Machine::start(name, node.name(), (&fleet, &application.to()), clock)
        });
        let machines = machines.collect();
        let story = Story::new();
        Self { machines, servers, story, network, disks, _clock: clock, _folder: folder }
    }

    /// Cuts a server of NATS, or a machine, off from all others, or takes it in again.
    pub(super) fn cut(&self, node: Node, is_cut: bool) {
        let state = if is_cut { "down" } else { "up" };
        let hub = self.network.hub.name();
        ip(&format!("-n {hub} link set port{} {state}", node.number()));
    }

    /// Cuts a server of NATS off from the other two, and not from machines.
    pub(super) fn set_apart(&self, server: usize, is_apart: bool) {
        let verb = if is_apart { "replace" } else { "del" };
        for other in (0..COUNT).filter(|other| *other != server) {
            let (name, to) = (self.network.name(server), address(other));
            ip(&format!("-n {name} route {verb} blackhole {to}/32"));
        }
    }

    /// Fills a disk to its last byte.
    pub(super) fn fill(&self, node: Node) {
        let mut file = File::create(self.disks[node.number()].filler()).expect("a file");
        let zeros = [0; 64 * 1024];
        for size in [zeros.len(), 1024, 1] {
            while file.write_all(&zeros[..size]).is_ok() {}
        }
    }

    pub(super) fn empty(&self, node: Node) {
        fs::remove_file(self.disks[node.number()].filler()).expect("it was filled");
    }
}

/// A node of the network.
#[derive(Clone, Copy)]
pub(super) enum Node {
    Server(usize),
    Machine(usize),
}

impl Node {
    fn number(self) -> usize {
        match self {
            Self::Server(number) => number,
            Self::Machine(number) => COUNT + number,
        }
    }
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Server(number) => write!(f, "server n{number}"),
            Self::Machine(number) => write!(f, "machine {}", NAMES[*number]),
        }
    }
}

impl Network {
    fn new(count: usize) -> Self {
        let hub = Namespace::create("hub").expect("a namespace");
        ip(&format!("-n {} link add bridge0 type bridge", hub.name()));
        ip(&format!("-n {} link set bridge0 up", hub.name()));
        let nodes = (0..count).map(|number| {
            let (node, port) =
                (Namespace::create("node").expect("a namespace"), format!("port{number}"));
            afpa_netlab::connect((&node, "eth0"), (&hub, &port)).expect("joined");
            ip(&format!("-n {} link set {port} master bridge0", hub.name()));
            let own = format!("{}/24", address(number));
            node.interface("eth0").add_addresses([own.as_str()]).expect("an address");
            node
        });
        let nodes = nodes.collect();
        Self { hub, nodes }
    }

    fn name(&self, node: usize) -> &str {
        self.nodes[node].name()
    }
}

/// Loses packets that come from other machines, both questions and answers.
fn lose(node: &Namespace) {
    let rules = format!(
        "table inet lossy {{ chain input {{ type filter hook input priority 0; \
         tcp sport {PEERS} numgen random mod 1000 < {LOST} drop; tcp dport {PEERS} numgen random mod 1000 < {LOST} drop; }}; }}"
    );
    let done = node.command("nft").arg(rules).output();
    if !done.is_ok_and(|output| output.status.success()) {
        say(
            "SKIP",
            "no packets are lost between machines: no nft here, or a kernel without nf_tables",
        );
    }
}

fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 79, 0, node as u8 + 1)
}

impl NatsServer {
    fn new(number: usize, network: &Network, disk: &Disk, folder: &Path) -> Self {
        let (own, log) = (address(number), folder.join(format!("server{number}.log")));
        let routes: Vec<_> =
            (0..COUNT).map(|other| format!("nats://{}:6222", address(other))).collect();
        let arguments = vec![
            format!("--addr={own}"),
            "--port=4222".to_owned(),
            format!("--server_name=n{number}"),
            "--jetstream".to_owned(),
            format!("--store_dir={}", disk.0.display()),
            format!("--cluster=nats://{own}:6222"),
            "--cluster_name=afpa".to_owned(),
            format!("--routes={}", routes.join(",")),
            format!("--http_port={MONITOR}"),
            format!("--log={}", log.display()),
        ];
        let (address, namespace) = (SocketAddr::from((own, 4222)), network.name(number).to_owned());
        Self { address, arguments, namespace, log, running: Mutex::new(None) }
    }

    /// Starts it, again, with what it has stored.
    pub(super) fn start(&self) {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace)).arg("nats-server");
        command.args(&self.arguments).stdout(Stdio::null()).stderr(Stdio::null());
        *self.running.lock().expect("no panic") = Some(Running::start(&mut command));
    }

    fn wait(&self) {
        let probe = format!("exec 3<>/dev/tcp/{}/{}", self.address.ip(), self.address.port());
        let listens = || {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net=/run/netns/{}", self.namespace));
            command.args(["bash", "-c", &probe]).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        eventually_within(SOON, "nats-server listens", listens);
    }

    pub(super) fn kill(&self) {
        if let Some(mut running) = self.running.lock().expect("no panic").take() {
            running.kill();
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let running = self.running.lock().expect("no panic");
        let id = running.as_ref().expect("it runs").id();
        kill_process(Pid::from_raw(id.cast_signed()).expect("a process"), signal)
            .expect("signalled");
    }
}

impl Machine {
    fn start(
        name: &'static str,
        namespace: &str,
        (fleet, to): (&str, &str),
        clock: Option<(&Clock, i64)>,
    ) -> Self {
        let server = Server::start("/", |launch| {
            if let Some((clock, ahead)) = clock {
                clock.set(launch, ahead);
            }
            let site = Endpoint::Unix(launch.home().join("http.sock"));
            launch.inside(namespace, site.clone()).env("SITE", site.to_string());
            launch.written(|listen| {
                format!("{fleet}\n[[site]]\nlisten = [\"{listen}\"]\nto = \"{to}\"\n")
            });
        });
        let (site, control) = (server.endpoint().clone(), server.control());
        Self { name, server: Mutex::new(server), site, control, goings: AtomicUsize::new(0) }
    }

    /// Ends or stops it, or brings it back.
    pub(super) fn change(&self, is_away: bool, change: impl FnOnce(&mut Server)) {
        let mut server = self.server.lock().expect("no panic");
        if is_away {
            self.goings.fetch_add(1, Ordering::SeqCst);
        }
        change(&mut server);
        if !is_away {
            self.goings.fetch_add(1, Ordering::SeqCst);
        }
    }

    pub(super) fn goings(&self) -> usize {
        self.goings.load(Ordering::SeqCst)
    }

    /// Whether it was there all the time since it had so many goings.
    pub(super) fn was_there(&self, goings: usize) -> bool {
        goings.is_multiple_of(2) && self.goings() == goings
    }
}

impl Disk {
    fn new(path: PathBuf, size: &str) -> Self {
        fs::create_dir(&path).expect("a folder");
        let options = format!("size={size},mode=0777");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&path);
        assert!(mount.status().is_ok_and(|status| status.success()), "{mount:?}");
        Self(path)
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

pub(super) fn open_to_all(path: &Path) {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(path, open).expect("opened");
}

fn ip(words: &str) {
    let done = Command::new("ip").args(words.split_whitespace()).output().expect("ip");
    assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
}
