//! `afpa serve` with certificates that come by themselves.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_testkit::aloud::say;
use afpa_testkit::curl::{Answer, curl};
use afpa_testkit::server::program;
use afpa_testkit::{Endpoint, Running, Server, Tree, eventually, eventually_within};
use afpa_tests::pebble::{Options, Pebble};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const DAY: u64 = 24 * 3600;
/// An order is several exchanges; when nonces are refused too often, the next one is a minute later.
const ORDER: Duration = Duration::from_secs(150);

/// A server, an authority that finds it under every name, and a folder for certificates.
struct Bed {
    folder: TempDir,
    tree: Tree,
    tls: SocketAddr,
    pebble: Pebble,
    server: Server,
}

impl Bed {
    /// `None` says SKIP.
    fn new(more: &str) -> Option<Self> {
        if !Pebble::is_here() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("rights");
        let tree = Tree::new();
        tree.file("index.html", "over TLS");
        let mut begun = None;
        let server = Server::start(tree.path(), |launch| {
            launch.written(|endpoint| {
                let Endpoint::Tcp(plain) = endpoint else { panic!("an address") };
                let other = TcpListener::bind((plain.ip(), 0)).expect("bound");
                let tls = other.local_addr().expect("an address");
                let looks_at = (*plain, tls.port());
                let options = Options { looks_at, validity: 90 * DAY, refused_nonces: 5 };
                let pebble = Pebble::start(options).expect("it is here");
                let at = [*plain, tls];
                let text = configuration((folder.path(), tree.path()), at, &pebble, "a.test", more);
                begun = Some((tls, pebble));
                text
            });
        });
        let (tls, pebble) = begun.expect("the server was told what to do");
        Some(Self { folder, tree, tls, pebble, server })
    }

    /// The same for other names, separated by `", "`.
    fn configuration(&self, domains: &str) -> String {
        let at = [self.server.address(), self.tls];
        configuration((self.folder.path(), self.tree.path()), at, &self.pebble, domains, "")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("acme")
    }

    /// Asks over TLS, and trusts the authority alone.
    fn ask(&self, root: &Path, host: &str) -> Answer {
        let (ip, port) = (self.tls.ip(), self.tls.port());
        curl([
            "--cacert",
            root.to_str().expect("a path"),
            "--resolve",
            &format!("{host}:{port}:{ip}"),
            &format!("https://{host}:{port}/"),
        ])
        .expect("curl is among the packages")
    }

    fn is_served(&self, host: &str) {
        let root = self.pebble.root();
        eventually_within(ORDER, &format!("{host} has a certificate"), || {
            self.ask(&root, host).output == b"over TLS"
        });
    }
}

fn configuration(
    (folder, root): (&Path, &Path),
    [plain, tls]: [SocketAddr; 2],
    pebble: &Pebble,
    domains: &str,
    more: &str,
) -> String {
    format!(
        "[internals]\nreread = \"100ms\"\n[timeouts]\nhead = \"60s\"\n\
         [acme]\ndomains = [\"{domains}\"]\nemail = \"admin@a.test\"\ndirectory = \"{}\"\n\
         directory_ca = \"{}\"\nstate = \"{}\"\n{more}\n\
         [[site]]\nlisten = [\"{plain}\"]\ntls = [\"{tls}\"]\nhttps_only = true\nroot = \"{}\"\n",
        pebble.directory(),
        pebble.directory_ca().display(),
        folder.join("acme").display(),
        root.display(),
    )
}

#[test]
fn a_site_gets_its_certificate_over_port_80_which_redirects() {
    let Some(mut bed) = Bed::new("") else { return };
    let redirect = bed.server.get("/");
    assert_eq!(redirect.status, 308, "{redirect:?}");
    bed.is_served("a.test");
    let root = bed.pebble.root();
    let other = bed.ask(&root, "b.test");
    assert_eq!(other.exit, 60, "it is not for b.test: {}", other.errors);

    let stats = bed.server.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("JSON");
    let row = &stats["certificates"][0];
    assert_eq!(
        (row["name"].as_str(), row["failures"].as_u64()),
        (Some("a.test"), Some(0)),
        "{row}"
    );
    let days = row["expires_in_seconds"].as_u64().map(|seconds| seconds / DAY);
    assert_eq!(days, Some(89), "{row}");

    let found = fs::metadata(bed.state()).expect("the folder");
    assert_eq!(found.mode() & 0o777, 0o700);
    let file = bed.state().join("a.test.pem");
    assert_eq!(fs::metadata(&file).expect("a certificate").mode() & 0o777, 0o600);
    let process = fs::metadata(format!("/proc/{}", bed.server.pid())).expect("a process");
    assert_eq!(found.uid(), process.uid(), "it belongs to the user that serves");

    // The next start has it at once, and needs no authority.
    bed.pebble.end();
    bed.server.kill_and_restart();
    let answer = bed.ask(&root, "a.test");
    assert_eq!(answer.output, b"over TLS", "{}", answer.errors);
}

/// The first client waits in its handshake.
#[test]
fn a_name_gets_its_certificate_when_a_client_asks_for_it() {
    let Some(mut bed) = Bed::new("on_demand = [\"*.b.test\"]\non_demand_limit = 3") else { return };
    bed.is_served("a.test");
    let root = bed.pebble.root();
    // An order may fail when several good nonces are refused; not each time.
    let names = ["x.b.test", "y.b.test", "z.b.test"];
    let at_once = names.map(|name| bed.ask(&root, name).output == b"over TLS");
    assert!(at_once.contains(&true), "nobody has waited for it");
    for name in names {
        bed.is_served(name);
    }
    let full = bed.ask(&root, "w.b.test");
    assert_eq!(full.exit, 60, "there are three already: {}", full.errors);
    let other = bed.ask(&root, "x.y.b.test");
    assert_eq!(other.exit, 60, "it is not on the list: {}", other.errors);
    let stats = bed.server.command(&["stats", "--json"]);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("JSON");
    assert_eq!(stats["certificates"].as_array().map(Vec::len), Some(4), "{stats}");

    // They outlive the process and the authority.
    bed.pebble.end();
    bed.server.kill_and_restart();
    assert_eq!(bed.ask(&root, "y.b.test").output, b"over TLS");
    // The list is shorter after a reload.
    fs::write(bed.server.configuration(), bed.configuration("a.test")).expect("written");
    bed.server.signal(Signal::HUP);
    eventually("it is not on the list any more", || bed.ask(&root, "y.b.test").exit == 60);
    assert_eq!(bed.ask(&root, "a.test").output, b"over TLS");
}

#[test]
fn a_site_gets_its_certificate_over_port_443_alone() {
    let Some(bed) = Bed::new("challenge = \"tls-alpn-01\"") else { return };
    bed.is_served("a.test");
}

#[test]
fn a_reload_orders_for_another_name_and_keeps_serving() {
    let Some(bed) = Bed::new("") else { return };
    bed.is_served("a.test");
    fs::write(bed.server.configuration(), bed.configuration("a.test\", \"b.test"))
        .expect("written");
    bed.server.signal(Signal::HUP);
    bed.is_served("b.test");
    bed.is_served("a.test");
}

/// The look-up of the authority's name waits for a name server that says nothing. TERM does not wait for it.
#[test]
fn a_silent_name_server_does_not_keep_the_end() {
    if !rustix::process::geteuid().is_root() {
        return say("SKIP", "not root");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("rights");
    let at = folder.path().display();
    let tree = Tree::new();
    let root = tree.path().display();
    let (tls, plain) = ("127.0.0.1:8443", "127.0.0.1:8080");
    let configuration = format!(
        "[control]\npath = \"{at}/control.sock\"\n[fast_path]\nmode = \"off\"\n\
         [acme]\ndomains = [\"a.test\"]\ndirectory = \"https://authority.test/\"\nstate = \"{at}/acme\"\n\
         [[site]]\nlisten = [\"{plain}\"]\ntls = [\"{tls}\"]\nroot = \"{root}\"\n"
    );
    let silent = format!(
        "import socket, time\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.bind((\"127.0.0.9\", 53))\n\
         open(\"{at}/bound\", \"w\")\ns.recv(512)\nopen(\"{at}/asked\", \"w\")\ntime.sleep(60)\n"
    );
    let script = format!(
        "ip link set lo up\nmount --bind {at}/resolv.conf /etc/resolv.conf\n\
         setpriv --pdeathsig KILL python3 {at}/silent.py &\n\
         until [ -e {at}/bound ]; do sleep 0.01; done\n\
         exec {} serve --config {at}/afpa.toml\n",
        program().display()
    );
    for (name, content) in [
        ("afpa.toml", &*configuration),
        ("resolv.conf", "nameserver 127.0.0.9\noptions timeout:30 attempts:1\n"),
        ("silent.py", &silent),
        ("script", &script),
    ] {
        fs::write(folder.path().join(name), content).expect("written");
    }
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-eu"]).arg(folder.path().join("script"));
    let mut server = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    eventually("the name is looked up", || {
        assert!(server.is_alive(), "it ended before");
        folder.path().join("asked").exists()
    });
    let id = Pid::from_raw(server.id().cast_signed()).expect("an id");
    kill_process(id, Signal::TERM).expect("it runs");
    eventually_within(Duration::from_secs(10), "it has ended", || !server.is_alive());
}
