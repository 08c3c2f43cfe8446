//! `afpa serve` as a process of one test.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::atomic::{AtomicU8, AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{
    client::{Client, Endpoint},
    proc::Process,
    settings::Settings,
    tree::writable_by_all,
};

/// What a server is started with. Unless told otherwise it listens on one free port of a loopback
/// address that no other test uses, and on a control socket.
#[derive(Debug)]
pub struct Launch {
    arguments: Vec<OsString>,
    endpoints: Vec<Endpoint>,
    admin: Option<SocketAddr>,
    limits: Vec<(char, u64)>,
    environment: Vec<(OsString, OsString)>,
    settings: Settings,
    home: PathBuf,
    address: Ipv4Addr,
    namespace: Option<String>,
    fast_path: &'static str,
    written: Option<String>,
}

impl Launch {
    /// One more argument for `afpa serve`.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Changes settings of the configuration file.
    pub fn set(&mut self, change: impl FnOnce(&mut Settings)) -> &mut Self {
        change(&mut self.settings);
        self
    }

    /// Listens on another endpoint as well.
    pub fn listen(&mut self, endpoint: Endpoint) -> &mut Self {
        self.endpoints.push(endpoint);
        self
    }

    /// Listens on a unix socket as well, and gives its endpoint.
    pub fn listen_unix(&mut self) -> Endpoint {
        let endpoint = Endpoint::Unix(self.home.join("http.sock"));
        self.listen(endpoint.clone());
        endpoint
    }

    /// Listens on `[::1]` as well, and gives its endpoint.
    ///
    /// # Panics
    /// When there is no such address: ask [`crate::client::has_ipv6_loopback`] before.
    pub fn listen_ipv6(&mut self) -> Endpoint {
        let endpoint = Endpoint::Tcp(free_port(IpAddr::V6(Ipv6Addr::LOCALHOST)));
        self.listen(endpoint.clone());
        endpoint
    }

    /// Runs in the network namespace that `ip netns` knows by this name, and listens on `endpoint` of
    /// it instead. Whoever waits for the server must be able to reach it.
    pub fn inside(&mut self, namespace: &str, endpoint: Endpoint) -> &mut Self {
        self.namespace = Some(namespace.to_owned());
        self.endpoints = vec![endpoint];
        self
    }

    /// Whether the kernel answers, `off` unless told: the machine's own `lo` is not for tests.
    pub fn fast_path(&mut self, mode: &'static str) -> &mut Self {
        self.fast_path = mode;
        self
    }

    /// A whole configuration file, made from the address that the server is to listen on, instead
    /// of a document root and settings.
    pub fn written(&mut self, configuration: impl FnOnce(&Endpoint) -> String) -> &mut Self {
        self.written = Some(configuration(&self.endpoints[0]));
        self
    }

    /// Serves metrics and health over TCP.
    pub fn admin(&mut self) -> &mut Self {
        self.admin = Some(free_port(IpAddr::V4(self.address)));
        self
    }

    /// A resource limit, by the letter of the shell's `ulimit`.
    pub fn limit(&mut self, letter: char, value: u64) -> &mut Self {
        self.limits.push((letter, value));
        self
    }

    /// An environment variable.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// The folder for sockets, logs and the configuration; everybody may write there.
    pub fn home(&self) -> &Path {
        &self.home
    }
}

/// A running server, ended when dropped: TERM, and KILL when that is not enough.
///
/// Dropping panics when the server had crashed or panicked, so that every test shows that too.
#[derive(Debug)]
pub struct Server {
    child: Child,
    ended: Option<ExitStatus>,
    killed: bool,
    launch: Launch,
    root: PathBuf,
    _home: TempDir,
}

impl Server {
    /// Serves `root` and waits until connections are taken, by the site and by its administration.
    ///
    /// # Panics
    /// When the program is missing, ends, or takes no connection within ten seconds; its log is
    /// shown.
    #[track_caller]
    pub fn start(root: impl AsRef<Path>, configure: impl FnOnce(&mut Launch)) -> Self {
        let mut server = Self::launch(root.as_ref(), configure);
        server.wait_until_ready();
        server
    }

    /// Serves `root` without waiting, for tests of a start that fails.
    ///
    /// # Panics
    /// When the program is missing.
    #[track_caller]
    pub fn launch(root: &Path, configure: impl FnOnce(&mut Launch)) -> Self {
        let folder = tempfile::Builder::new().prefix("afpa-run-").tempdir().expect("run folder");
        writable_by_all(folder.path());
        let address = own_loopback_address();
        let mut launch = Launch {
            arguments: Vec::new(),
            endpoints: vec![Endpoint::Tcp(free_port(IpAddr::V4(address)))],
            admin: None,
            limits: Vec::new(),
            environment: Vec::new(),
            settings: Settings::default(),
            home: folder.path().to_owned(),
            address,
            namespace: None,
            fast_path: "off",
            written: None,
        };
        configure(&mut launch);
        let child = spawn(root, &launch);
        let root = root.to_owned();
        Self { child, ended: None, killed: false, launch, root, _home: folder }
    }

    /// Ends the process without mercy (KILL) and starts it again, same arguments and ports.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.child = spawn(&self.root, &self.launch);
        self.ended = None;
        self.killed = false;
        self.wait_until_ready();
    }

    /// Its first endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.launch.endpoints[0]
    }

    /// Its first TCP address.
    ///
    /// # Panics
    /// When it has none.
    pub fn address(&self) -> SocketAddr {
        let tcp = self.launch.endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Tcp(address) => Some(*address),
            Endpoint::Unix(_) => None,
        });
        tcp.expect("a TCP endpoint")
    }

    /// "http://address:port" of its first TCP address, for other clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The admin endpoint, when [`Launch::admin`] asked for one.
    ///
    /// # Panics
    /// When it did not.
    pub fn admin(&self) -> Endpoint {
        Endpoint::Tcp(self.launch.admin.expect("an admin endpoint was asked for"))
    }

    /// The control socket.
    pub fn control(&self) -> Endpoint {
        Endpoint::Unix(control_path(&self.launch))
    }

    /// The folder for its sockets, logs and configuration.
    pub fn home(&self) -> &Path {
        &self.launch.home
    }

    /// Where its configuration lies, when settings were changed.
    pub fn configuration(&self) -> PathBuf {
        configuration_path(&self.launch)
    }

    /// A new connection to its first endpoint.
    ///
    /// # Panics
    /// When it takes none; the server's log is shown.
    #[track_caller]
    pub fn connect(&self) -> Client {
        let endpoint = self.endpoint();
        Client::connect(endpoint)
            .unwrap_or_else(|error| panic!("connect {endpoint}: {error}\n{}", self.log()))
    }

    /// GET of `target` on a connection of its own.
    ///
    /// # Panics
    /// When no response comes.
    #[track_caller]
    pub fn get(&self, target: &str) -> crate::Response {
        self.connect().get(target)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its process as `/proc` shows it.
    pub fn process(&self) -> Process {
        Process(self.pid())
    }

    /// All it has written to standard output and error so far.
    pub fn log(&self) -> String {
        let log = fs::read(log_path(&self.launch)).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) {
        assert!(self.ended.is_none(), "the server has ended");
        let pid = Pid::from_raw(self.pid().cast_signed()).expect("a process id");
        kill_process(pid, signal).expect("kill");
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("wait");
        }
        self.ended.is_none()
    }

    /// Waits for it to end by itself, and gives its status; `None` when it does not within `bound`.
    pub fn wait(&mut self, bound: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while self.is_running() && start.elapsed() < bound {
            std::thread::sleep(Duration::from_millis(4));
        }
        self.ended
    }

    /// Ends it without mercy.
    pub fn kill(&mut self) {
        self.killed = true;
        if self.is_running() {
            self.child.kill().expect("kill");
            self.ended = Some(self.child.wait().expect("wait"));
        }
    }

    /// Runs another command of the program, such as `stats`, against this server's control socket.
    ///
    /// # Panics
    /// When the program is missing.
    pub fn command(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.args(arguments).arg("--control").arg(control_path(&self.launch));
        command.stdin(Stdio::null()).output().expect("run the program")
    }

    #[track_caller]
    fn wait_until_ready(&mut self) {
        let start = Instant::now();
        let admin = self.launch.admin.map(Endpoint::Tcp);
        let own = admin.into_iter().chain([self.control()]);
        for endpoint in self.launch.endpoints.clone().into_iter().chain(own) {
            while Client::connect(&endpoint).is_err() {
                if !self.is_running() {
                    panic!("the server ended: {:?}\n{}", self.ended, self.log());
                }
                assert!(start.elapsed() < READY, "{endpoint} not open\n{}", self.log());
                std::thread::sleep(Duration::from_millis(3));
            }
        }
    }

    /// TERM, then KILL; whether TERM was enough.
    fn stop(&mut self) -> bool {
        if self.is_running() {
            self.signal(Signal::TERM);
        }
        let ended = self.wait(STOP).is_some();
        if !ended {
            self.kill();
        }
        ended
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let crashed =
            !self.is_running() && !self.killed && !self.ended.is_some_and(|s| s.success());
        let stopped = self.stop();
        let log = self.log();
        if std::thread::panicking() {
            eprintln!("--- log of the server ---\n{}", tail(&log));
            return;
        }
        assert!(!crashed, "the server ended by itself: {:?}\n{}", self.ended, tail(&log));
        assert!(!log.contains("panicked at"), "the server panicked\n{}", tail(&log));
        assert!(stopped, "TERM did not end the server within {STOP:?}\n{}", tail(&log));
    }
}

/// The program under test: `$AFPA_BIN`, else `afpa` of the target folder this test was built in.
///
/// # Panics
/// When there is none, saying how to build it.
pub fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("AFPA_BIN") {
        return path.into();
    }
    // target/<profile>/deps/<test>-<hash>
    let test = std::env::current_exe().expect("path of the running test");
    let program = test.ancestors().nth(2).expect("the profile's folder").join("afpa");
    assert!(
        program.is_file(),
        "{} is not there: build it with `cargo build -p afpa` in the tests' profile, or name \
         another in AFPA_BIN",
        program.display()
    );
    program
}

/// How long a server may take to open its listeners.
const READY: Duration = Duration::from_secs(30);

/// How long a server may take to end after TERM.
const STOP: Duration = Duration::from_secs(5);

fn spawn(root: &Path, launch: &Launch) -> Child {
    let log = File::options().create(true).append(true).open(log_path(launch)).expect("log file");
    let mut command = match (&launch.namespace, launch.limits.as_slice()) {
        (None, []) => Command::new(program()),
        (None, limits) => limited(limits),
        (Some(namespace), _) => within(namespace),
    };
    command.arg("serve").arg("--fast-path").arg(launch.fast_path);
    if launch.written.is_none() {
        command.arg(root);
        for endpoint in &launch.endpoints {
            command.arg("--listen").arg(endpoint.to_string());
        }
    }
    command.arg("--control").arg(control_path(launch));
    if let Some(address) = launch.admin {
        command.arg("--admin").arg(address.to_string());
    }
    let written = launch.written.clone();
    let settings = (!launch.settings.is_empty()).then(|| launch.settings.text());
    if let Some(text) = written.or(settings) {
        fs::write(configuration_path(launch), text).expect("configuration");
        command.arg("--config").arg(configuration_path(launch));
    }
    command.args(&launch.arguments).envs(launch.environment.iter().map(|(k, v)| (k, v)));
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("log file")).stderr(log);
    command.spawn().unwrap_or_else(|error| panic!("run {}: {error}", program().display()))
}

/// A shell that sets limits and becomes the program, so that the process id stays.
fn limited(limits: &[(char, u64)]) -> Command {
    let set = limits.iter().map(|(letter, value)| format!("ulimit -{letter} {value} && "));
    let mut command = Command::new("bash");
    command.arg("-c").arg(set.collect::<String>() + "exec \"$0\" \"$@\"").arg(program());
    command
}

/// Becomes the program too. `ip netns exec` would hide /sys/fs/bpf.
fn within(namespace: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg(program());
    command
}

fn log_path(launch: &Launch) -> PathBuf {
    launch.home.join("server.log")
}

fn control_path(launch: &Launch) -> PathBuf {
    launch.home.join("control.sock")
}

fn configuration_path(launch: &Launch) -> PathBuf {
    launch.home.join("afpa.toml")
}

/// A loopback address for one server: the kernel gives clients 127.0.0.1 as theirs, and no two
/// servers share an address, so that no port is taken between finding it free and using it.
fn own_loopback_address() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high.max(1), low, NEXT.fetch_add(1, Ordering::Relaxed).clamp(1, 254))
}

/// An address that nothing else listens on: for servers that tests start themselves.
pub fn free_address() -> SocketAddr {
    free_port(IpAddr::V4(own_loopback_address()))
}

/// A port that is free, and stays so until a child process has it: below those that the system gives to whoever
/// asks for any.
fn free_port(address: IpAddr) -> SocketAddr {
    const PORTS: std::ops::Range<u32> = 10_000..32_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    let free = PORTS.clone().find_map(|_| {
        let place = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + place % (PORTS.end - PORTS.start);
        TcpListener::bind((address, port as u16)).and_then(|listener| listener.local_addr()).ok()
    });
    free.unwrap_or_else(|| panic!("no free port of {address}"))
}

fn tail(log: &str) -> &str {
    const SHOWN: usize = 6000;
    let mut from = log.len().saturating_sub(SHOWN);
    while !log.is_char_boundary(from) {
        from += 1;
    }
    &log[from..]
}
