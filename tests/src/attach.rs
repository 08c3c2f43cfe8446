//! A server that knows nothing of us in a namespace of its own, a client in another, and
//! `afpa attach` beside the server.

use std::fs;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use afpa_netlab::{Bed, BedOptions};
use afpa_testkit::{
    Client, Endpoint, Running, eventually, eventually_within, nginx, server::program,
};
use serde_json::Value;

use crate::bpf_fs;

/// The port of the server under test, in a namespace of the test's own.
pub const PORT: u16 = 8080;

/// A server that can be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Debian's nginx.
    Nginx,
    /// Debian's Apache, told not to defer accepting.
    Apache,
    /// Debian's Apache as it comes: it has no socket before the first request is there.
    DeferringApache,
}

/// The bed, the server, its folder.
pub struct Lab {
    // Before the bed, which would otherwise have to kill it.
    _server: Running,
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
        if let Some(reason) = afpa_netlab::missing_privilege() {
            return Err(reason);
        }
        let binary = kind.program().ok_or_else(|| format!("{kind:?} is not installed"))?;
        // Without one, attachments are not outlived by their connections, and tests of that say so.
        if let Err(reason) = bpf_fs::private() {
            afpa_testkit::aloud::say("SKIP", &format!("no BPF file system of our own: {reason}"));
        }
        let bed = Bed::create(&BedOptions::default()).expect("a bed");
        let folder = tempfile::Builder::new().prefix("afpa-attach").tempdir().expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).expect("readable for the server's user");
        fs::create_dir_all(folder.path().join("www")).expect("a folder");
        let configuration = folder.path().join("server.conf");
        fs::write(&configuration, kind.configuration(folder.path())).expect("written");
        let mut command = bed.server().command(binary);
        command.args(kind.arguments(&configuration)).stdout(Stdio::null()).stderr(Stdio::null());
        let lab = Self { folder, kind, _server: Running::start(&mut command), bed };
        eventually("the server answers", || lab.try_connect().is_ok());
        Ok(lab)
    }

    /// The two sides.
    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Writes a file of the server, in place, and makes it an hour old: what Apache says of files that
    /// were just written is provisional.
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

    /// `afpa attach`, with everything asked for and pinned that will be.
    pub fn attach(&self, extra: &[&str]) -> Attached {
        self.attach_at(&Self::address().to_string(), extra)
    }

    /// The same, to the server on this address.
    pub fn attach_at(&self, listen: &str, extra: &[&str]) -> Attached {
        let run = self.folder.path().join("run");
        fs::create_dir_all(&run).expect("a folder");
        let mut command = self.afpa();
        command.args(["attach", "--listen", listen, "--root"]).arg(self.path("")).args(extra);
        let log = fs::File::create(self.folder.path().join("attach.log")).expect("a log");
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        let process = Running::start(&mut command);
        let socket = run.join(format!("{}{listen}.sock", self.prefix()));
        let attached = Attached { process, socket };
        attached.settle();
        attached
    }

    /// `afpa detach`: whether it succeeded, and what it said.
    pub fn detach(&self, extra: &[&str]) -> (bool, String) {
        let output = self.afpa().arg("detach").args(extra).output().expect("run");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// `afpa attach` where it is bound to fail: what it says.
    pub fn attach_in_vain(&self, listen: &str) -> String {
        let mut command = self.afpa();
        command.args(["attach", "--listen", listen, "--root"]).arg(self.path(""));
        let output = command.output().expect("run");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// What `afpa attach` said.
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
        let address = Self::address().to_string().replace('.', "_");
        Path::new("/sys/fs/bpf/afpa").join(format!("{}{address}", self.prefix()))
    }

    /// How the names of all that belongs to the server's namespace begin.
    fn prefix(&self) -> String {
        use std::os::unix::fs::MetadataExt;
        let namespace = Path::new("/run/netns").join(self.bed.server().name());
        format!("attach-{}-", fs::metadata(namespace).expect("a namespace").ino())
    }

    /// The program, in the server's namespace. `ip netns exec` would hide /sys/fs/bpf.
    fn afpa(&self) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.bed.server().name()))
            .arg(program())
            .env("RUNTIME_DIRECTORY", self.folder.path().join("run"));
        command
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Whatever state a failing test left: nothing stays in the BPF file system.
        if self.kept().exists() {
            let _cleaned = self.detach(&["--wait", "0", "--force"]);
        }
    }
}

/// A running `afpa attach`.
pub struct Attached {
    process: Running,
    socket: PathBuf,
}

impl Attached {
    /// Waits until nothing is being asked for.
    #[track_caller]
    pub fn settle(&self) {
        // Loading the programs takes a second of a core, and tests run side by side.
        eventually_within(Duration::from_secs(30), "everything was asked for", || {
            self.statistics().is_some_and(|statistics| statistics["busy"] == false)
        });
    }

    /// What its socket tells; None: nobody listens.
    pub fn statistics(&self) -> Option<Value> {
        let mut stream = UnixStream::connect(&self.socket).ok()?;
        std::io::Write::write_all(&mut stream, b"GET /stats HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
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

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Nginx, Self::Apache];

    fn program(self) -> Option<PathBuf> {
        let path = match self {
            Self::Nginx => nginx::PROGRAM,
            Self::Apache | Self::DeferringApache => "/usr/sbin/apache2",
        };
        Some(PathBuf::from(path)).filter(|path| path.exists())
    }

    fn arguments(self, configuration: &Path) -> Vec<String> {
        let file = configuration.display().to_string();
        match self {
            Self::Nginx => vec!["-c".into(), file],
            Self::Apache | Self::DeferringApache => {
                vec!["-D".into(), "FOREGROUND".into(), "-f".into(), file]
            }
        }
    }

    /// Apache defers the acceptance of connections until their first request is there, which the kernel then
    /// cannot answer; so it is told not to, where tests count answers.
    ///
    /// Folders `cookie`, `nostore`, `private`, `vary` and `short` get fields that say what they are
    /// called; whatever the server can do about codings is on.
    fn configuration(self, folder: &Path) -> String {
        let at = folder.display();
        match self {
            Self::Nginx => nginx::configuration(
                folder,
                "worker_processes 1; events { worker_connections 1024; }",
                "access_log off; keepalive_requests 1000000;
                 types { text/html html; text/css css; text/plain txt; image/svg+xml svg; }",
                &format!(
                    "listen 0.0.0.0:{PORT}; index index.html; gzip_static on; gzip_vary on;
                     location /cookie/ {{ add_header Set-Cookie a=b; }}
                     location /nostore/ {{ add_header Cache-Control no-store; }}
                     location /private/ {{ add_header Cache-Control private; }}
                     location /vary/ {{ add_header Vary Cookie; }}
                     location /short/ {{ add_header Cache-Control max-age=1; access_log {at}/access.log; }}
                     location /logged/ {{ access_log {at}/access.log; }}
                     location /dynamic/ {{ gzip on; gzip_min_length 1; gzip_static off; }}
                     location /secret/ {{ return 401; }}"
                ),
            ),
            Self::Apache | Self::DeferringApache => {
                let modules = "/usr/lib/apache2/modules";
                let names = [
                    ("mpm_event", "mpm_event"),
                    ("authz_core", "authz_core"),
                    ("dir", "dir"),
                    ("mime", "mime"),
                    ("headers", "headers"),
                    ("deflate", "deflate"),
                    ("filter", "filter"),
                ];
                let load: String = names
                    .iter()
                    .map(|(name, file)| {
                        format!("LoadModule {name}_module {modules}/mod_{file}.so\n")
                    })
                    .collect();
                let field = |name: &str, field: &str| {
                    format!("<Location /{name}/>\nHeader append {field}\n</Location>\n")
                };
                let fields = [
                    field("cookie", "Set-Cookie a=b"),
                    field("nostore", "Cache-Control no-store"),
                    field("private", "Cache-Control private"),
                    field("vary", "Vary Cookie"),
                    field("short", "Cache-Control max-age=1"),
                ]
                .concat();
                let accept = match self {
                    Self::Apache => "AcceptFilter http none\n",
                    _ => "",
                };
                format!(
                    "ServerRoot {at}\nServerName server\n{accept}Listen 0.0.0.0:{PORT}\nPidFile {at}/server.pid\n\
                     ErrorLog {at}/error.log\n{load}TypesConfig /dev/null\nAddType text/html .html\nAddType text/css .css\nAddType text/plain .txt\n\
                     DefaultRuntimeDir {at}\nMaxKeepAliveRequests 0\n\
                     DocumentRoot {at}/www\nDirectoryIndex index.html\n\
                     <Directory {at}/www>\nRequire all granted\nAllowOverride All\n</Directory>\n\
                     <Location /secret/>\nRequire all denied\n</Location>\n\
                     <Location /dynamic/>\nSetOutputFilter DEFLATE\n</Location>\n{fields}"
                )
            }
        }
    }
}
