//! A name server that knows nothing of us in a namespace of its own, a client in another, and `afpa attach --dns` beside the
//! server. Queries of every kind.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use afpa_netlab::{Bed, BedOptions};
use afpa_testkit::{Running, eventually, eventually_within, server::program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A name server that can be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameServer {
    /// NSD.
    Nsd,
    /// NSD with cookies of the secret [`COOKIE_SECRET`].
    NsdWithCookies,
    /// Knot DNS.
    Knot,
    /// Knot DNS, which takes UPDATE of everybody.
    KnotWithUpdates,
    /// BIND.
    Bind,
    /// PowerDNS with its backend for zone files.
    PowerDns,
}

impl NameServer {
    /// NSD; and those that `AFPA_DNS_SERVERS` names, by the names of their programs.
    pub fn chosen() -> Vec<Self> {
        let named = std::env::var("AFPA_DNS_SERVERS").unwrap_or_else(|_| "nsd".into());
        let all = [Self::Nsd, Self::Knot, Self::Bind, Self::PowerDns];
        all.into_iter().filter(|one| named.split(',').any(|name| name == one.name())).collect()
    }

    /// All that are installed here.
    pub fn installed() -> Vec<Self> {
        let all = [Self::Nsd, Self::Knot, Self::Bind, Self::PowerDns];
        all.into_iter().filter(|one| one.program().is_some()).collect()
    }

    /// The name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nsd | Self::NsdWithCookies => "nsd",
            Self::Knot | Self::KnotWithUpdates => "knotd",
            Self::Bind => "named",
            Self::PowerDns => "pdns_server",
        }
    }

    fn program(self) -> Option<PathBuf> {
        Some(Path::new("/usr/sbin").join(self.name())).filter(|path| path.exists())
    }

    /// Writes its configuration with these zones, each in a file of its name, and returns its arguments.
    fn configure(self, folder: &Path, zones: &[&str]) -> Vec<String> {
        let at = folder.display();
        let (v4, v6) = (Bed::SERVER_V4, Bed::SERVER_V6);
        let each = |zone: &dyn Fn(&str) -> String| -> String {
            zones.iter().map(|name| zone(name)).collect()
        };
        let file = folder.join("server.conf");
        let text = match self {
            Self::Nsd | Self::NsdWithCookies => format!(
                "server:\n server-count: 2\n ip-address: {v4}\n ip-address: {v6}\n username: \"\"\n zonesdir: \"{at}\"\n\
                 database: \"\"\n pidfile: \"{at}/server.pid\"\n xfrdfile: \"{at}/xfrd\"\n zonelistfile: \"{at}/zonelist\"\n\
                 logfile: \"{at}/server.log\"\n rrl-ratelimit: 0\n{}remote-control:\n control-enable: no\n{}",
                match self {
                    Self::NsdWithCookies => {
                        format!(
                            " answer-cookie: yes\n cookie-secret: {COOKIE_SECRET}\n cookie-secret-file: \"{at}/none\"\n"
                        )
                    }
                    _ => String::new(),
                },
                each(&|name| format!("zone:\n name: {name}\n zonefile: {name}\n")),
            ),
            Self::Knot | Self::KnotWithUpdates => format!(
                "server:\n    rundir: {at}\n    pidfile: {at}/server.pid\n    listen: [{v4}@53, {v6}@53]\n    udp-workers: 1\n\
                 \x20   tcp-workers: 1\n    background-workers: 1\ndatabase:\n    storage: {at}/db\n{}template:\n  - id: default\n\
                 \x20   storage: {at}\n    zonefile-sync: -1\n    zonefile-load: whole\n{}zone:\n{}",
                if self == Self::Knot { "" } else { "acl:\n  - id: all\n    action: update\n" },
                if self == Self::Knot { "" } else { "    acl: all\n" },
                each(&|name| format!("  - domain: {name}\n    file: {name}\n")),
            ),
            Self::Bind => format!(
                "options {{ directory \"{at}\"; listen-on {{ {v4}; }}; listen-on-v6 {{ {v6}; }}; recursion no; pid-file none; session-keyfile none;\n\
                 dnssec-validation no; check-names primary ignore; rrset-order {{ order none; }}; }};\ncontrols {{ }};\n{}",
                each(&|name| format!(
                    "zone \"{name}\" {{ type primary; file \"{name}\"; notify no; }};\n"
                )),
            ),
            Self::PowerDns => {
                let zones: String = each(&|name| {
                    format!("zone \"{name}\" {{ type master; file \"{at}/{name}\"; }};\n")
                });
                fs::write(folder.join("zones.conf"), zones).expect("written");
                let text = format!(
                    "launch=bind\nbind-config={at}/zones.conf\nlocal-address={v4},{v6}\nsocket-dir={at}\ndaemon=no\nguardian=no\n\
                     receiver-threads=1\ndistributor-threads=1\nsecurity-poll-suffix=\n"
                );
                fs::write(folder.join("pdns.conf"), &text).expect("written");
                text
            }
        };
        fs::write(&file, text).expect("written");
        let file = file.display().to_string();
        match self {
            Self::Nsd | Self::NsdWithCookies => vec!["-d".into(), "-c".into(), file],
            Self::Knot | Self::KnotWithUpdates => vec!["-c".into(), file],
            Self::Bind => vec!["-f".into(), "-c".into(), file],
            Self::PowerDns => vec![format!("--config-dir={at}")],
        }
    }
}

/// The bed, the server, its folder.
pub struct DnsLab {
    // Before the bed, which would otherwise have to kill it.
    server: Running,
    folder: tempfile::TempDir,
    bed: Bed,
    kind: NameServer,
}

impl DnsLab {
    /// A server with this zone `example.test`, running. An error is a reason to skip the test.
    ///
    /// # Errors
    /// When privileges or the server's program are missing.
    pub fn new(kind: NameServer, zone: &str) -> Result<Self, String> {
        Self::with(kind, zone, &BedOptions::default())
    }

    /// The same in another bed.
    ///
    /// # Errors
    /// As [`DnsLab::new`].
    pub fn with(kind: NameServer, zone: &str, options: &BedOptions) -> Result<Self, String> {
        Self::with_others(kind, zone, &[], options)
    }

    /// The same with other zones, by their names without a dot at the end.
    ///
    /// # Errors
    /// As [`DnsLab::new`].
    pub fn with_others(
        kind: NameServer,
        zone: &str,
        others: &[(&str, &str)],
        options: &BedOptions,
    ) -> Result<Self, String> {
        if let Some(reason) = afpa_netlab::missing_privilege() {
            return Err(reason);
        }
        let program = kind.program().ok_or_else(|| format!("{} is not installed", kind.name()))?;
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("run")).expect("a folder");
        fs::create_dir(folder.path().join("db")).expect("a folder");
        let zones: Vec<_> =
            [("example.test", zone)].into_iter().chain(others.iter().copied()).collect();
        for (name, text) in &zones {
            fs::write(folder.path().join(name), text).expect("written");
        }
        let names: Vec<&str> = zones.iter().map(|(name, _)| *name).collect();
        let bed = Bed::create(options).map_err(|error| error.to_string())?;
        let mut command = bed.server().command(program);
        command.args(kind.configure(folder.path(), &names));
        let server = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let lab = Self { server, folder, bed, kind };
        let mut client = lab.past_us(false);
        eventually("the server answers", || {
            client.ask(&Query::new("example.test", SOA).bytes()).is_some_and(|answer| answer[7] > 0)
        });
        Ok(lab)
    }

    /// The two sides.
    pub fn bed(&self) -> &Bed {
        &self.bed
    }

    /// Runs something in the server's namespace.
    pub fn on_server<T: Send>(&self, run: impl FnOnce() -> T + Send) -> T {
        self.bed.server().run(run).expect("the namespace")
    }

    /// Replaces the zone, and tells the server.
    pub fn change_zone(&self, zone: &str) {
        let (new, path) = (self.folder.path().join("new"), self.folder.path().join("example.test"));
        fs::write(&new, zone).expect("written");
        fs::rename(new, path).expect("renamed");
        self.signal(Signal::HUP);
    }

    /// Sends a signal to all processes of the server.
    pub fn signal(&self, signal: Signal) {
        let all = self.bed.server().processes().expect("a list");
        for id in all.into_iter().filter(|id| {
            let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            name.starts_with(self.kind.name())
        }) {
            let _gone = Pid::from_raw(id).map(|id| kill_process(id, signal));
        }
    }

    /// Ends the server.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.server.kill();
    }

    /// A client by an ordinary port: of IPv6, or of IPv4.
    pub fn client(&self, v6: bool) -> DnsClient {
        self.socket(v6, 0)
    }

    /// A client that the programs pass by, so that the server itself answers.
    pub fn past_us(&self, v6: bool) -> DnsClient {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Below 1024, however many there are: those before have gone with their beds.
        self.socket(v6, 700 + NEXT.fetch_add(1, Ordering::Relaxed) % 300)
    }

    /// A client at an address of the client's namespace.
    pub fn client_at(&self, from: Ipv4Addr) -> DnsClient {
        self.socket_of(Bed::SERVER_V4.into(), from.into(), 0)
    }

    /// Sends a query to the server's IPv4 address as `client` does, with a checksum that is wrong.
    pub fn send_damaged(&self, client: &DnsClient, query: &[u8]) {
        let SocketAddr::V4(from) = client.socket.local_addr().expect("bound") else {
            panic!("a client of IPv4")
        };
        let length = u16::try_from(8 + query.len()).expect("short");
        let mut packet = vec![0x45, 0];
        packet.extend((20 + length).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
        packet.extend(from.ip().octets());
        packet.extend(Bed::SERVER_V4.octets());
        packet.extend(from.port().to_be_bytes());
        packet.extend(53u16.to_be_bytes());
        packet.extend(length.to_be_bytes());
        packet.extend([0xde, 0xad]);
        packet.extend(query);
        let sent = self.bed.client().run(move || {
            let raw = socket2::Protocol::from(255);
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::RAW, Some(raw))?;
            socket.send_to(&packet, &SocketAddr::new(Bed::SERVER_V4.into(), 0).into())
        });
        sent.expect("the namespace").expect("sent");
    }

    /// A client of a resolver within the client's namespace.
    pub fn client_of(&self, resolver: SocketAddr) -> DnsClient {
        let socket = self.bed.client().run(move || {
            let socket = UdpSocket::bind((resolver.ip(), 0)).expect("a socket");
            socket.connect(resolver).expect("connected");
            socket.set_read_timeout(Some(Duration::from_secs(2))).expect("set");
            socket
        });
        DnsClient { socket: socket.expect("the namespace") }
    }

    /// Its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Takes its zones from the server, which refuses questions for them from now on. Knot alone reads its configuration again.
    pub fn take_zones(&self) {
        self.kind.configure(self.folder.path(), &[]);
        self.signal(Signal::HUP);
    }

    fn socket(&self, v6: bool, port: u16) -> DnsClient {
        let to: IpAddr = if v6 { Bed::SERVER_V6.into() } else { Bed::SERVER_V4.into() };
        self.socket_of(to, Bed::client_address(to, 0), port)
    }

    fn socket_of(&self, to: IpAddr, from: IpAddr, port: u16) -> DnsClient {
        let socket = self.bed.client().run(move || {
            let socket = UdpSocket::bind((from, port)).expect("a socket");
            socket.connect((to, 53)).expect("connected");
            socket.set_read_timeout(Some(Duration::from_secs(2))).expect("set");
            socket
        });
        DnsClient { socket: socket.expect("the namespace") }
    }

    /// `afpa attach --dns` on both of the server's addresses.
    pub fn attach(&self, extra: &[&str]) -> DnsAttached {
        let run = self.folder.path().join("run");
        let log = self.folder.path().join("attach.log");
        let listen = [
            SocketAddr::new(Bed::SERVER_V4.into(), 53).to_string(),
            SocketAddr::new(Bed::SERVER_V6.into(), 53).to_string(),
        ];
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{}", self.bed.server().name()))
            .arg(program())
            .env("RUNTIME_DIRECTORY", &run)
            .args(["attach", "--dns", "--listen", &listen[0], "--listen", &listen[1]])
            .args(["--ask-rate", "20000", "--settle", "1"])
            .args(extra);
        let output = fs::File::create(&log).expect("a log");
        command.stdout(output.try_clone().expect("a log")).stderr(output);
        let mut attached = DnsAttached { process: Running::start(&mut command), run };
        eventually_within(Duration::from_secs(60), "it listens on its socket", || {
            let text = || fs::read_to_string(&log).unwrap_or_default();
            assert!(attached.process.is_alive(), "it has ended: {}", text());
            attached.call("GET /stats").is_some()
        });
        attached
    }
}

/// A running `afpa attach --dns`.
pub struct DnsAttached {
    process: Running,
    run: PathBuf,
}

impl DnsAttached {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The answer of its control socket.
    pub fn call(&self, line: &str) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()?).ok()?;
        write!(stream, "{line} HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text.split_once("\r\n\r\n")?.1.to_owned())
    }

    /// Its statistics.
    pub fn statistics(&self) -> Value {
        let text = self.call("GET /stats").expect("it answers");
        serde_json::from_str(&text).expect("JSON")
    }

    /// Its control socket.
    pub fn socket(&self) -> Option<PathBuf> {
        let folders = fs::read_dir(&self.run).ok()?.flatten().map(|entry| entry.path());
        let folders = folders.chain([self.run.clone()]).filter_map(|at| fs::read_dir(at).ok());
        let mut paths = folders.flatten().flatten().map(|entry| entry.path());
        paths.find(|path| path.extension().is_some_and(|name| name == "sock"))
    }

    /// How many questions the kernel has answered.
    pub fn answered(&self) -> u64 {
        self.statistics()["answered"].as_u64().expect("a number")
    }

    /// How many questions are pinned.
    pub fn pinned(&self) -> u64 {
        self.statistics()["pinned"]["questions"].as_u64().expect("a number")
    }

    /// Waits until nothing is to be asked for.
    #[track_caller]
    pub fn settle(&self) {
        let looks = |statistics: &Value| statistics["looks_for_questions"].as_u64();
        let before = looks(&self.statistics()).expect("a number");
        eventually_within(Duration::from_secs(120), "everything was asked for", || {
            let statistics = self.statistics();
            // One look may have begun before.
            looks(&statistics) >= Some(before + 2) && statistics["busy"] == false
        });
    }
}

/// A socket to the server.
pub struct DnsClient {
    socket: UdpSocket,
}

impl DnsClient {
    /// The answer with the query's id; None: there was none within two seconds.
    pub fn ask(&mut self, query: &[u8]) -> Option<Vec<u8>> {
        self.socket.send(query).ok()?;
        let mut buffer = [0; 4096];
        loop {
            let length = self.socket.recv(&mut buffer).ok()?;
            if buffer.get(..2) == query.get(..2) {
                return Some(buffer[..length].to_vec());
            }
        }
    }

    /// Sends a query, and waits for nothing.
    pub fn send(&self, query: &[u8]) {
        let _lost = self.socket.send(query);
    }

    /// The next answer, to whatever was sent; None: there was none in time.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(buffer[..length].to_vec())
    }

    /// How long to wait for an answer.
    pub fn set_patience(&mut self, patience: Duration) {
        self.socket.set_read_timeout(Some(patience)).expect("set");
    }
}

/// Readers of dnstap: `fstrm_capture` writes a file, and `dnstap-read` shows it.
pub struct TapReader {
    capture: Running,
    folder: tempfile::TempDir,
}

impl TapReader {
    /// Listens on a socket. An error is a reason to skip the test.
    ///
    /// # Errors
    /// When one of the programs is missing.
    pub fn start() -> Result<Self, String> {
        for name in ["fstrm_capture", "dnstap-read"] {
            if !Path::new("/usr/bin").join(name).exists() {
                return Err(format!("{name} is not installed"));
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(folder.path(), open).expect("rights");
        let mut command = Command::new("fstrm_capture");
        command.args(["-t", "protobuf:dnstap.Dnstap", "-u"]).arg(folder.path().join("socket"));
        command.arg("-w").arg(folder.path().join("samples"));
        let capture = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        eventually("the reader listens", || folder.path().join("socket").exists());
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        fs::set_permissions(folder.path().join("socket"), open).expect("rights");
        Ok(Self { capture, folder })
    }

    /// Its socket.
    pub fn socket(&self) -> String {
        self.folder.path().join("socket").display().to_string()
    }

    /// Ends it, and returns a line for each sample.
    pub fn lines(self) -> Vec<String> {
        let Self { capture, folder } = self;
        let _gone = Pid::from_raw(capture.id() as i32).map(|id| kill_process(id, Signal::TERM));
        capture.wait();
        let output = Command::new("dnstap-read").arg(folder.path().join("samples")).output();
        let text = String::from_utf8_lossy(&output.expect("dnstap-read").stdout).into_owned();
        text.lines().map(str::to_owned).collect()
    }
}

/// The length of a test that could go on for ever: `AFPA_DNS_SOAK` in seconds, else the usual one.
pub fn soak_length(usual: u64) -> Duration {
    let seconds = std::env::var("AFPA_DNS_SOAK").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(usual))
}

/// The secret of a server with cookies.
pub const COOKIE_SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
/// The type of addresses.
pub const A: u16 = 1;
/// The type of the record with a zone's serial.
pub const SOA: u16 = 6;

/// A query, written out here so that tests do not believe the code that they test.
#[derive(Clone, Debug)]
pub struct Query {
    /// Its id.
    pub id: u16,
    /// The bits of its header.
    pub flags: u16,
    /// QDCOUNT.
    pub questions: u16,
    /// The name in wire form.
    pub name: Vec<u8>,
    /// Its type and class.
    pub kind: u16,
    /// 1 is IN.
    pub class: u16,
    /// The buffer, if there is EDNS.
    pub edns: Option<u16>,
    /// Extended code, version, flags.
    pub extended: [u8; 4],
    /// Options of EDNS.
    pub options: Vec<u8>,
    /// Bytes behind the end.
    pub behind: Vec<u8>,
}

impl Query {
    /// A plain one.
    pub fn new(name: &str, kind: u16) -> Self {
        let mut wire = Vec::new();
        for label in name.split('.').filter(|label| !label.is_empty()) {
            wire.push(label.len() as u8);
            wire.extend(label.bytes());
        }
        wire.push(0);
        Self {
            id: 0x2b1d,
            flags: 0,
            questions: 1,
            name: wire,
            kind,
            class: 1,
            edns: None,
            extended: [0; 4],
            options: Vec::new(),
            behind: Vec::new(),
        }
    }

    /// On the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let counts = [self.questions, 0, 0, u16::from(self.edns.is_some())];
        for word in [self.id, self.flags].into_iter().chain(counts) {
            bytes.extend(word.to_be_bytes());
        }
        for _ in 0..self.questions {
            bytes.extend(&self.name);
            bytes.extend(self.kind.to_be_bytes());
            bytes.extend(self.class.to_be_bytes());
        }
        if let Some(buffer) = self.edns {
            bytes.extend([0, 0, 41]);
            bytes.extend(buffer.to_be_bytes());
            bytes.extend(self.extended);
            bytes.extend((self.options.len() as u16).to_be_bytes());
            bytes.extend(&self.options);
        }
        bytes.extend(&self.behind);
        bytes
    }
}

/// An option of EDNS.
pub fn option(code: u16, content: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes(), &(content.len() as u16).to_be_bytes(), content].concat()
}

/// A query that is not plain, so that servers differ in what they say to it.
#[derive(Clone, Debug)]
pub struct Odd {
    /// Why.
    pub what: &'static str,
    /// On the wire.
    pub query: Vec<u8>,
    /// The code that AFPA's own server answers with; None: nothing.
    pub rcode: Option<&'static str>,
}

impl Odd {
    /// All of them, made of a plain query without EDNS whose answer is there.
    pub fn all(plain: &Query) -> Vec<Self> {
        let edns = Query { edns: Some(1232), ..plain.clone() };
        let with = |change: &dyn Fn(&mut Query)| {
            let mut query = edns.clone();
            change(&mut query);
            query.bytes()
        };
        let bare = |change: &dyn Fn(&mut Query)| {
            let mut query = plain.clone();
            change(&mut query);
            query.bytes()
        };
        let options = |content: Vec<u8>| with(&|query| query.options = content.clone());
        let flags = |flags| bare(&|query| query.flags = flags);
        let kind = |kind| bare(&|query| query.kind = kind);
        let class = |class| bare(&|query| query.class = class);
        let name = |name: &[u8]| bare(&|query| query.name = name.to_vec());
        let counted = |at: usize, count: u8| {
            let mut bytes = edns.bytes();
            bytes[at] = count;
            bytes
        };
        let mut two_opt = counted(11, 2);
        two_opt.extend_from_within(two_opt.len() - 11..);
        let mut named_opt = edns.bytes();
        let root = named_opt.len() - 11;
        named_opt.splice(root..=root, [1, b'a', 0]);
        let mut in_answer = counted(11, 0);
        in_answer[7] = 1;
        let cut = |by: usize| {
            let mut bytes = plain.bytes();
            bytes.truncate(bytes.len() - by);
            bytes
        };
        let mut short_option = options(option(3, b"1234"));
        short_option.truncate(short_option.len() - 2);
        let mut too_long_option = options(option(3, b"1234"));
        let at = too_long_option.len() - 5;
        too_long_option[at] = 9;
        let mut signed = counted(11, 2);
        signed.extend(
            b"\x01k\0\0\xfa\0\xff\0\0\0\0\0\x3d\x0bhmac-sha256\0\0\0\x65\0\0\0\x01\x2c\0\x20",
        );
        signed.extend([7; 32]);
        signed.extend([0; 6]);
        let label = |length: u8| [&[length], &*vec![b'a'; length.into()]].concat();
        let long = [label(63), label(63), label(63), label(63), vec![0]].concat();
        let table = [
            ("buffer of 100", with(&|query| query.edns = Some(100)), Some("NOERROR")),
            ("cookie of a server", options(option(10, &[7; 24])), Some("NOERROR")),
            (
                "two options",
                options([option(10, b"12345678"), option(3, b"")].concat()),
                Some("NOERROR"),
            ),
            ("short cookie", options(option(10, b"12345")), Some("FORMERR")),
            ("long cookie", options(option(10, &[7; 41])), Some("FORMERR")),
            ("NSID", options(option(3, b"")), Some("NOERROR")),
            ("client subnet", options(option(8, b"\0\x01\x18\0\xc0\0\x02")), Some("NOERROR")),
            ("padding", options(option(12, &[0; 40])), Some("NOERROR")),
            ("keepalive", options(option(11, b"")), Some("NOERROR")),
            ("an option that nobody knows", options(option(65_001, b"x")), Some("NOERROR")),
            ("an option that is cut off", short_option, Some("FORMERR")),
            ("an option that is longer than the record", too_long_option, Some("FORMERR")),
            ("EDNS version 1", with(&|query| query.extended[1] = 1), Some("BADVERS")),
            ("EDNS flag", with(&|query| query.extended[2] = 0x40), Some("NOERROR")),
            ("an extended code", with(&|query| query.extended[0] = 1), Some("NOERROR")),
            ("two OPT records", two_opt, Some("FORMERR")),
            ("an OPT record with a name", named_opt, Some("FORMERR")),
            ("an OPT record as an answer", in_answer, Some("FORMERR")),
            ("no question", bare(&|query| query.questions = 0), Some("FORMERR")),
            ("two questions", bare(&|query| query.questions = 2), Some("FORMERR")),
            ("a question that is not there", plain.bytes()[..12].to_vec(), Some("FORMERR")),
            ("inverse query", flags(0x0800), Some("NOTIMP")),
            ("status", flags(0x1000), Some("NOTIMP")),
            ("NOTIFY", flags(0x2400), Some("NOTIMP")),
            ("UPDATE", flags(0x2800), Some("NOTIMP")),
            ("opcode 15", flags(0x7800), Some("NOTIMP")),
            ("class CH", class(3), Some("REFUSED")),
            ("class NONE", class(254), Some("REFUSED")),
            ("class 0", class(0), Some("REFUSED")),
            ("class ANY", class(255), Some("NOERROR")),
            ("AXFR", kind(252), Some("NOTIMP")),
            ("IXFR", kind(251), Some("NOERROR")),
            ("ANY", kind(255), Some("NOERROR")),
            ("MAILB", kind(253), Some("NOTIMP")),
            ("TKEY", kind(249), Some("NOTIMP")),
            ("type OPT", kind(41), Some("FORMERR")),
            ("type 0", kind(0), Some("FORMERR")),
            ("Z", flags(0x40), Some("NOERROR")),
            ("TC", flags(0x200), Some("NOERROR")),
            ("AA", flags(0x400), Some("NOERROR")),
            ("QR", flags(0x8000), None),
            ("RA", flags(0x80), Some("NOERROR")),
            ("an rcode", flags(5), Some("NOERROR")),
            ("a byte behind", bare(&|query| query.behind = vec![0]), Some("FORMERR")),
            ("11 bytes behind", bare(&|query| query.behind = vec![0; 11]), Some("FORMERR")),
            ("cut off", cut(1), Some("FORMERR")),
            ("cut off in the name", cut(7), Some("FORMERR")),
            ("compressed", name(b"\xc0\x0c"), Some("FORMERR")),
            (
                "label of 64 bytes",
                name(&[b"\x40".as_slice(), &[b'a'; 64], b"\0"].concat()),
                Some("FORMERR"),
            ),
            ("name of 257 bytes", name(&long), Some("FORMERR")),
            (
                "no end",
                name(&[&plain.name[..plain.name.len() - 1], &[5]].concat()),
                Some("FORMERR"),
            ),
            ("half a header", plain.bytes()[..7].to_vec(), None),
            ("a signature with another key", signed, Some("NOTAUTH")),
        ];
        table.into_iter().map(|(what, query, rcode)| Self { what, query, rcode }).collect()
    }
}
