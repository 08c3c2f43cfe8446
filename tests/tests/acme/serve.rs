//! `afpa serve` with certificates that come by themselves.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use afpa_testkit::curl::{Answer, curl};
use afpa_testkit::{Endpoint, Server, Tree, eventually_within};
use afpa_tests::pebble::{Options, Pebble};
use rustix::process::Signal;
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

    /// Asks over TLS, as somebody who trusts the authority alone.
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
        "[tls]\nreread = \"100ms\"\n\
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
