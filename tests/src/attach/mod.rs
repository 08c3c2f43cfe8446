//! A server that knows nothing of us in a namespace of its own, a client in another, and
//! `afpa attach` beside the server.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use afpa_netlab::{Bed, BedOptions};
use afpa_testkit::{
    Client, Endpoint, Running, bpf_fs, eventually, eventually_within, server::program,
};
use serde_json::Value;

mod kind;

pub use self::kind::Kind;

/// The port of the server under test, in a namespace of the test's own.
pub const PORT: u16 = 8080;

/// Another address of the server's machine.
pub const SECOND: &str = "10.77.0.2";
const SECOND_PREFIX: &str = "10.77.0.2/16";

/// The bed, the server, its folder.
pub struct Lab {
    // Before the bed, which would otherwise have to kill it.
    server: Mutex<Running>,
    /// The folder that the server serves is `www` in it.
    pub folder: tempfile::TempDir,
    /// Which server.
    pub kind: Kind,
    bed: Bed,
}

impl Lab {
    /// A server of a kind, running. An error is a reason to skip the test.
    ///
    /// # Errors
    /// When privileges or the server's program are missing.
    pub fn new(kind: Kind) -> Result<Self, String> {
        Self::configured(kind, |_| String::new(), |_| String::new())
    }

    /// The same, with more in its configuration: within the server's own part, and beside it. Both get the
    /// lab's folder.
    ///
    /// # Errors
    /// As [`Lab::new`].
    pub fn configured(
        kind: Kind,
        inside: impl Fn(&Path) -> String,
        beside: impl Fn(&Path) -> String,
    ) -> Result<Self, String> {
        if let Some(reason) = afpa_netlab::missing_privilege() {
            return Err(reason);
        }
        kind.program().ok_or_else(|| format!("{kind:?} is not installed"))?;
        // Without one, attachments are not outlived by their connections, and tests of that say so.
        if let Err(reason) = bpf_fs::private() {
            afpa_testkit::aloud::say("SKIP", &format!("no BPF file system of our own: {reason}"));
        }
        let bed = Bed::create(&BedOptions::default()).expect("a bed");
        bed.server().interface(Bed::DEVICE).add_addresses([SECOND_PREFIX]).expect("an address");
        let folder = tempfile::Builder::new().prefix("afpa-attach").tempdir().expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("readable for the server's user");
        fs::create_dir_all(folder.path().join("www")).expect("a folder");
        let at = folder.path();
        let text = kind.configuration(at, &inside(at), &beside(at));
        fs::write(at.join("server.conf"), text).expect("written");
        let server = Mutex::new(start(kind, &bed, at));
        let lab = Self { folder, kind, server, bed };
        eventually("the server answers", || lab.try_connect().is_ok());
        Ok(lab)
    }

    /// The server's processes.
    pub fn server_processes(&self) -> Vec<rustix::process::Pid> {
        let program = self.kind.program().expect("it runs");
        let name = program.file_name().expect("a name").to_string_lossy().into_owned();
        let all = self.bed.server().processes().expect("a list").into_iter();
        let is_server = |id: &i32| {
            let comm = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            comm.trim_end() == name
        };
        all.filter(is_server).filter_map(rustix::process::Pid::from_raw).collect()
    }

    /// Sends a signal to all processes of the server.
    pub fn signal_server(&self, signal: rustix::process::Signal) {
        for id in self.server_processes() {
            let _gone = rustix::process::kill_process(id, signal);
        }
    }

    /// Starts the server again, after it was killed.
    pub fn restart_server(&self) {
        eventually("its processes are gone", || self.server_processes().is_empty());
        // A process that ends gives up its memory, by which it is found, before its sockets.
        eventually("nobody listens", || self.try_connect().is_err());
        let mut server = self.server.lock().expect("no panic");
        server.kill();
        *server = start(self.kind, &self.bed, self.folder.path());
        eventually("the server answers", || self.try_connect().is_ok());
    }

    /// The two sides.
    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Writes a file of the server, in place, and makes it an hour old: for a file that was just
    /// written, Apache's validators are provisional.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, content).expect("written");
        let past = SystemTime::now() - Duration::from_secs(3600);
        let file = fs::File::options().write(true).open(path).expect("there");
        file.set_modified(past).expect("its time is set");
    }

    /// Puts a new version in the place of a file, in one step.
    pub fn replace(&self, path: &str, content: impl AsRef<[u8]>) {
        let (new, path) = (self.path("new.tmp"), self.path(path));
        fs::write(&new, content).expect("written");
        fs::rename(new, path).expect("renamed");
    }

    /// How often nginx was asked for a path below `/short/` or `/logged/`.
    pub fn asked_for(&self, path: &str) -> usize {
        let log = fs::read_to_string(self.folder.path().join("access.log")).unwrap_or_default();
        log.lines().filter(|line| line.contains(&format!("\"GET {path} "))).count()
    }

    /// Where a file of the server is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("www").join(path.trim_start_matches('/'))
    }

    /// The server's address.
    pub fn address() -> SocketAddr {
        SocketAddr::new(Bed::SERVER_V4.into(), PORT)
    }

    /// A connection from the client's namespace.
    pub fn connect(&self) -> Client {
        self.try_connect().expect("connected")
    }

    fn try_connect(&self) -> std::io::Result<Client> {
        let endpoint = Endpoint::Tcp(Self::address());
        self.bed.client().run(move || Client::connect(&endpoint)).expect("the namespace")
    }

    /// A connection to another address of the server's machine.
    pub fn connect_to(&self, address: &str) -> Client {
        let endpoint = Endpoint::Tcp(format!("{address}:{PORT}").parse().expect("an address"));
        let connect = move || Client::connect(&endpoint).expect("connected");
        self.bed.client().run(connect).expect("the namespace")
    }

    /// `afpa attach`, with everything asked for and pinned that will be.
    pub fn attach(&self, extra: &[&str]) -> Attached {
        self.attach_at(&Self::address().to_string(), extra)
    }

    /// The same, to the server on this address.
    pub fn attach_at(&self, listen: &str, extra: &[&str]) -> Attached {
        self.attach_to(listen, &self.path(""), extra)
    }

    /// The same, to a server that serves this folder.
    pub fn attach_to(&self, listen: &str, root: &Path, extra: &[&str]) -> Attached {
        let run = self.folder.path().join("run");
        fs::create_dir_all(&run).expect("a folder");
        let mut command = self.afpa();
        command.args(["attach", "--listen", listen, "--root"]).arg(root);
        if !extra.contains(&"--firewall-interval") {
            // Tests ask slowly: that clients pass once a second is not what they count.
            command.args(["--firewall-interval", "3600000"]);
        }
        if !extra.contains(&"--self-check") {
            // They count requests: one in 4096 answers that is asked again is one more.
            command.args(["--self-check", "0"]);
        }
        command.args(extra);
        let log = fs::File::create(self.folder.path().join("attach.log")).expect("a log");
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        let process = Running::start(&mut command);
        let socket = format!("{}{PORT}.sock", self.prefix());
        let mut attached = Attached { process, socket, run };
        eventually_within(Duration::from_secs(60), "it listens on its socket", || {
            assert!(attached.process.is_alive(), "it has ended: {}", self.log());
            attached.statistics().is_some()
        });
        attached.settle();
        attached
    }

    /// Runs `afpa` in the server's namespace, with its folder of control sockets. Returns whether it succeeded, and
    /// its output.
    pub fn run_afpa(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.afpa().args(arguments).output().expect("run");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Runs `afpa detach`. Returns whether it succeeded, and its output.
    pub fn detach(&self, extra: &[&str]) -> (bool, String) {
        self.run_afpa(&[&["detach"], extra].concat())
    }

    /// Runs `afpa attach` where it must fail. Returns its error messages.
    pub fn attach_in_vain(&self, listen: &str) -> String {
        self.attach_in_vain_with(listen, &[])
    }

    /// The same, with more arguments.
    pub fn attach_in_vain_with(&self, listen: &str, extra: &[&str]) -> String {
        let mut command = self.afpa();
        command.args(["attach", "--listen", listen, "--root"]).arg(self.path("")).args(extra);
        let output = command.output().expect("run");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// The log of `afpa attach`.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("attach.log")).unwrap_or_default()
    }

    /// Whether programs are on the server's interface.
    pub fn has_programs(&self) -> bool {
        let mut command = self.bed.server().command("ip");
        let output = command.args(["-d", "link", "show", Bed::DEVICE]).output().expect("ip runs");
        String::from_utf8_lossy(&output.stdout).contains("tcx") || self.kept().exists()
    }

    /// Where connections are kept that outlive `afpa attach`.
    pub fn kept(&self) -> PathBuf {
        Path::new("/sys/fs/bpf/afpa").join(format!("{}{PORT}", self.prefix()))
    }

    /// How the names of all that belongs to the server's namespace begin.
    fn prefix(&self) -> String {
        use std::os::unix::fs::MetadataExt;
        let namespace = Path::new("/run/netns").join(self.bed.server().name());
        format!("attach-{}-", fs::metadata(namespace).expect("a namespace").ino())
    }

    /// The program in the server's namespace, without the right to make another one.
    pub fn afpa_without_namespaces(&self) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.bed.server().name()))
            .args(["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"])
            .arg(program())
            .env("RUNTIME_DIRECTORY", self.folder.path().join("run"));
        command
    }

    /// The program, in the server's namespace. `ip netns exec` would hide /sys/fs/bpf.
    pub fn afpa(&self) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.bed.server().name()))
            .arg(program())
            .env("RUNTIME_DIRECTORY", self.folder.path().join("run"));
        command
    }
}

/// Starts the server with the configuration in the folder.
fn start(kind: Kind, bed: &Bed, folder: &Path) -> Running {
    let mut command = bed.server().command(kind.program().expect("it is installed"));
    command.args(kind.arguments(&folder.join("server.conf")));
    Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Leave nothing in the BPF file system, also after a test that failed.
        if self.kept().exists() {
            let _cleaned = self.detach(&["--wait", "0", "--force"]);
        }
    }
}

/// A running `afpa attach`.
pub struct Attached {
    process: Running,
    /// The name of its control socket.
    socket: String,
    /// The folder in which it has one of its user's.
    run: PathBuf,
}

impl Attached {
    /// Waits until nothing is being asked for.
    #[track_caller]
    pub fn settle(&self) {
        eventually_within(Duration::from_secs(120), "everything was asked for", || {
            self.has_settled()
        });
    }

    fn has_settled(&self) -> bool {
        self.statistics().is_some_and(|statistics| statistics["busy"] == false)
    }

    /// The statistics from its control socket; None: nobody listens there.
    pub fn statistics(&self) -> Option<Value> {
        let mut stream = UnixStream::connect(self.socket()?).ok()?;
        std::io::Write::write_all(&mut stream, b"GET /stats HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// Its control socket, in the folder of the user that it has become.
    pub fn socket(&self) -> Option<PathBuf> {
        let folders = fs::read_dir(&self.run).ok()?.flatten().map(|entry| entry.path());
        let folders = folders.chain([self.run.clone()]); // of one that stays root
        folders.map(|folder| folder.join(&self.socket)).find(|socket| socket.exists())
    }

    /// Requests that the kernel answered.
    #[track_caller]
    pub fn answered(&self) -> u64 {
        self.statistics().expect("it runs")["answered"].as_u64().expect("a count")
    }

    /// Objects that the kernel answers with.
    #[track_caller]
    pub fn pinned(&self) -> u64 {
        self.statistics().expect("it runs")["pinned"]["objects"].as_u64().expect("a count")
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL, and the end of the process.
    pub fn kill(mut self) {
        self.process.kill();
    }

    /// Waits until it has ended by itself.
    pub fn wait(self) -> bool {
        self.process.wait()
    }
}
