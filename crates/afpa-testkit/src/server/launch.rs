//! The arguments, limits and settings with which a server is started.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::{
    address::{free_port, own_loopback_address},
    program,
};
use crate::{client::Endpoint, settings::Settings};

/// The environment variable that names the strategy of all servers: `readiness` or `completion`.
const IO: &str = "AFPA_TEST_IO";

/// The way in which a server is started. By default it listens on one free port of a loopback
/// address that no other test uses, and on a control socket.
#[derive(Debug)]
pub struct Launch {
    arguments: Vec<OsString>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) admin: Option<SocketAddr>,
    limits: Vec<(char, u64)>,
    io_uring: bool,
    traced: bool,
    environment: Vec<(OsString, OsString)>,
    settings: Settings,
    pub(super) home: PathBuf,
    address: Ipv4Addr,
    namespace: Option<String>,
    fast_path: &'static str,
    written: Option<String>,
    output: Option<OwnedFd>,
    error: Option<OwnedFd>,
    control: Option<PathBuf>,
    program: Option<PathBuf>,
}

impl Launch {
    pub(super) fn new(home: &Path) -> Self {
        let address = own_loopback_address();
        Self {
            arguments: Vec::new(),
            endpoints: vec![Endpoint::Tcp(free_port(IpAddr::V4(address)))],
            admin: None,
            limits: Vec::new(),
            io_uring: true,
            traced: false,
            environment: Vec::new(),
            settings: Settings::default(),
            home: home.to_owned(),
            address,
            namespace: None,
            fast_path: "off",
            written: None,
            output: None,
            error: None,
            control: None,
            program: None,
        }
    }

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

    /// Listens on this endpoint in place of one of the test's own, because the configuration names it.
    pub fn endpoint(&mut self, endpoint: Endpoint) -> &mut Self {
        self.endpoints = vec![endpoint];
        self
    }

    /// Runs in the network namespace that `ip netns` knows by this name, and listens on `endpoint` of
    /// it instead. The test that waits for the server must be able to reach it.
    pub fn inside(&mut self, namespace: &str, endpoint: Endpoint) -> &mut Self {
        self.namespace = Some(namespace.to_owned());
        self.endpoints = vec![endpoint];
        self
    }

    /// Whether the kernel answers; by default `off`: the machine's own `lo` is not for tests. Empty: as the configuration says.
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

    /// The system forbids io_uring, as many a container does.
    pub fn without_io_uring(&mut self) -> &mut Self {
        self.io_uring = false;
        self
    }

    /// strace notes its system calls, beginning with the first: [`Server::kill_for_calls`](super::Server::kill_for_calls) has them.
    pub fn traced(&mut self) -> &mut Self {
        self.traced = true;
        self
    }

    /// An environment variable.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Standard output goes there, and not to the log.
    pub fn standard_output(&mut self, to: impl Into<OwnedFd>) -> &mut Self {
        self.output = Some(to.into());
        self
    }

    /// Standard error goes there, and not to the log.
    pub fn standard_error(&mut self, to: impl Into<OwnedFd>) -> &mut Self {
        self.error = Some(to.into());
        self
    }

    /// The path of the control socket, in place of one in the home.
    pub fn control_at(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.control = Some(path.into());
        self
    }

    /// Another program than the one under test: a copy of it.
    pub fn program(&mut self, path: impl Into<PathBuf>) -> &mut Self {
        self.program = Some(path.into());
        self
    }

    /// The folder for sockets, logs and the configuration; everybody may write there.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Starts the program with it.
    pub(super) fn spawn(&self, root: &Path) -> Child {
        let log = File::options().create(true).append(true).open(self.log()).expect("log file");
        let mut command = match (&self.namespace, self.limits.as_slice()) {
            (None, []) if !self.io_uring => forbidding_io_uring(),
            (None, []) if self.traced => traced(&self.calls()),
            (None, []) => Command::new(self.program.clone().unwrap_or_else(program)),
            (None, limits) => limited(limits),
            (Some(namespace), _) => within(namespace, self.program.clone().unwrap_or_else(program)),
        };
        command.arg("serve");
        if !self.fast_path.is_empty() {
            command.arg("--fast-path").arg(self.fast_path);
        }
        if self.written.is_none() {
            command.arg(root);
            for endpoint in &self.endpoints {
                command.arg("--listen").arg(endpoint.to_string());
            }
        }
        command.arg("--control").arg(self.control());
        if let Some(address) = self.admin {
            command.arg("--admin").arg(address.to_string());
        }
        let written = self.written.clone();
        let settings = (!self.settings.is_empty()).then(|| self.settings.text());
        if let Some(text) = written.or(settings) {
            fs::write(self.configuration(), text).expect("configuration");
            command.arg("--config").arg(self.configuration());
        }
        if let Some(io) = std::env::var_os(IO).filter(|_| !self.waits_as_told()) {
            command.arg("--io").arg(io);
        }
        command.args(&self.arguments).envs(self.environment.iter().map(|(k, v)| (k, v)));
        let stream = |told: &Option<OwnedFd>| {
            let to = told.as_ref().map(|to| to.try_clone().expect("a descriptor"));
            Stdio::from(to.unwrap_or_else(|| log.try_clone().expect("log file").into()))
        };
        command.stdin(Stdio::null()).stdout(stream(&self.output)).stderr(stream(&self.error));
        command.spawn().unwrap_or_else(|error| panic!("run {}: {error}", program().display()))
    }

    /// Whether the test itself says how connections are waited for.
    fn waits_as_told(&self) -> bool {
        self.arguments.iter().any(|argument| argument == "--io")
            || self.settings.text().contains("engine.io")
            || self.written.as_deref().is_some_and(|text| text.contains("engine.io"))
    }

    pub(super) fn log(&self) -> PathBuf {
        self.home.join("server.log")
    }

    pub(super) fn calls(&self) -> PathBuf {
        self.home.join("calls")
    }

    pub(super) fn control(&self) -> PathBuf {
        self.control.clone().unwrap_or_else(|| self.home.join("control.sock"))
    }

    pub(super) fn configuration(&self) -> PathBuf {
        self.home.join("afpa.toml")
    }
}

/// A shell that sets limits and becomes the program, so that the process id stays.
fn limited(limits: &[(char, u64)]) -> Command {
    let set = limits.iter().map(|(letter, value)| format!("ulimit -{letter} {value} && "));
    let mut command = Command::new("bash");
    command.arg("-c").arg(set.collect::<String>() + "exec \"$0\" \"$@\"").arg(program());
    command
}

/// Becomes the program; strace is another process.
fn traced(to: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-o"]).arg(to).arg(program());
    command
}

/// Has the system refuse `io_uring_setup`, and becomes the program: a filter of four instructions (`seccomp(2)`).
fn forbidding_io_uring() -> Command {
    const SCRIPT: &str = "\
import ctypes, os, struct, sys
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
IO_URING_SETUP, REFUSE, ALLOW = 425, 0x50001, 0x7fff0000
program = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, IO_URING_SETUP), (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in program))
filter = ctypes.create_string_buffer(struct.pack('HP', len(program), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(SECCOMP, FILTER, filter):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execv(sys.argv[1], sys.argv[1:])
";
    let mut command = Command::new("python3");
    command.arg("-c").arg(SCRIPT).arg(program());
    command
}

/// Becomes the program too. `ip netns exec` would hide /sys/fs/bpf.
fn within(namespace: &str, program: PathBuf) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{namespace}")).arg(program);
    command
}
