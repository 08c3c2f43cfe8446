//! Certificates of a fleet, from a real authority: one machine orders, all answer its challenges and have the certificate.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use afpa_testkit::curl::curl;
use afpa_testkit::server::free_address;
use afpa_testkit::{Endpoint, Server, Tree, eventually_within};
use afpa_tests::pebble::{Options, Pebble};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::bed::{Nats, SOON, look};

const DAY: u64 = 24 * 3600;

/// A machine that dies leaves its record for a term; an order that fails is tried again a minute later.
const ORDER: Duration = Duration::from_secs(240);

/// Machines that share certificates, and an authority that looks at one of them for all names.
struct Bed {
    folder: TempDir,
    tree: Tree,
    nats: Nats,
    pebble: Pebble,
    /// Where the authority looks: a port for HTTP, and one for TLS.
    looked_at: [SocketAddr; 2],
}

struct Machine {
    server: Server,
    tls: SocketAddr,
}

impl Bed {
    /// `None` says SKIP.
    fn new() -> Option<Self> {
        Self::with(90 * DAY, 1, None)
    }

    /// With certificates of so many seconds, so many servers of NATS, and a name server for the authority.
    fn with(validity: u64, servers: usize, resolver: Option<SocketAddr>) -> Option<Self> {
        if !Pebble::is_here() {
            return None;
        }
        let nats = Nats::start(servers)?;
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("rights");
        let secret = folder.path().join("secret");
        fs::write(&secret, "s".repeat(64)).expect("written");
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).expect("rights");
        let tree = Tree::new();
        tree.file("index.html", "over TLS");
        let plain = free_address();
        let secure = TcpListener::bind((plain.ip(), 0)).expect("bound");
        let looked_at = [plain, secure.local_addr().expect("an address")];
        drop(secure);
        let looks_at = (looked_at[0], looked_at[1].port());
        let options = Options { looks_at, validity, refused_nonces: 0 };
        let pebble = Pebble::start_with(options, resolver).expect("it is here");
        Some(Self { folder, tree, nats, pebble, looked_at })
    }

    /// A machine with these names. One that `is_looked_at` has the addresses at which the authority looks.
    fn machine(&self, name: &str, domains: &str, more: &str, is_looked_at: bool) -> Machine {
        let mut tls = None;
        let server = Server::start(self.tree.path(), |launch| {
            let home = launch.home().display().to_string();
            // One secret, and each machine has a file of its own that no other user reads.
            let secret = launch.home().join("secret");
            fs::copy(self.folder.path().join("secret"), &secret).expect("copied");
            fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).expect("rights");
            launch.written(|endpoint| {
                let Endpoint::Tcp(own) = endpoint else { panic!("an address") };
                let mut listen = format!("\"{own}\"");
                let secure = if is_looked_at {
                    listen = format!("\"{own}\", \"{}\"", self.looked_at[0]);
                    self.looked_at[1]
                } else {
                    let other = TcpListener::bind((own.ip(), 0)).expect("bound");
                    other.local_addr().expect("an address")
                };
                tls = Some(secure);
                format!(
                    "[internals]\nreread = \"100ms\"\n[timeouts]\nhead = \"60s\"\n\
                     [fleet]\nservers = {}\nname = \"{name}\"\nsecret = \"{}\"\ncertificates = true\nstate = \"{home}/fleet\"\n\
                     [acme]\ndomains = [{domains}]\ndirectory = \"{}\"\ndirectory_ca = \"{}\"\nstate = \"{home}/acme\"\n{more}\n\
                     [[site]]\nlisten = [{listen}]\ntls = [\"{secure}\"]\nroot = \"{}\"\n",
                    self.nats.urls(),
                    secret.display(),
                    self.pebble.directory(),
                    self.pebble.directory_ca().display(),
                    self.tree.path().display(),
                )
            });
        });
        Machine { server, tls: tls.expect("the server was told what to do") }
    }

    /// Asks over TLS, and trusts the authority alone.
    fn is_served(&self, root: &Path, machine: &Machine, host: &str) -> bool {
        let (ip, port) = (machine.tls.ip(), machine.tls.port());
        let resolve = format!("{host}:{port}:{ip}");
        let (root, url) = (root.to_str().expect("a path"), format!("https://{host}:{port}/"));
        let answer = curl(["--cacert", root, "--resolve", &resolve, &url]);
        answer.expect("curl is among the packages").output == b"over TLS"
    }

    /// Waits until each of them serves a name.
    #[track_caller]
    fn all_serve(&self, machines: &[&Machine], host: &str) {
        let root = self.pebble.root();
        for machine in machines {
            let what = format!("{host} is served\n{}", machine.server.log());
            eventually_within(ORDER, &what, || self.is_served(&root, machine, host));
        }
    }
}

impl Machine {
    fn file(&self, host: &str) -> PathBuf {
        self.server.home().join(format!("acme/{host}.pem"))
    }

    #[track_caller]
    fn chain(&self, host: &str) -> Vec<u8> {
        fs::read(self.file(host)).expect("a certificate")
    }

    fn has_ordered(&self) -> usize {
        self.server.log().matches("is ordered at").count()
    }
}

#[track_caller]
fn have_the_same(machines: &[&Machine], host: &str) -> Vec<u8> {
    let first = machines[0].chain(host);
    for machine in machines {
        assert!(machine.chain(host) == first, "one certificate, with one key");
    }
    first
}

#[test]
fn one_machine_orders_and_all_serve_the_same_certificate_also_without_servers() {
    let Some(mut bed) = Bed::new() else { return };
    let mut a = bed.machine("a", "\"a.test\", \"b.test\"", "", true);
    let b = bed.machine("b", "\"a.test\", \"b.test\"", "", false);
    let c = bed.machine("c", "\"b.test\", \"a.test\"", "", false);
    for host in ["a.test", "b.test"] {
        bed.all_serve(&[&a, &b, &c], host);
        have_the_same(&[&a, &b, &c], host);
    }
    assert_eq!(bed.pebble.orders(), (2, 2), "one for each name");
    assert_eq!(bed.pebble.accounts(), 1);

    // The servers have no key that anybody can read.
    let stored = std::process::Command::new("grep")
        .args(["-rlaE", "PRIVATE KEY|a\\.test|order"])
        .arg(bed.nats.folder().join("0/jetstream/$G/streams/KV_afpa-certificates/msgs"))
        .output()
        .expect("grep is there");
    assert_eq!(String::from_utf8_lossy(&stored.stdout), "", "{stored:?}");
    assert!(stored.status.code() == Some(1), "the folder was searched: {stored:?}");

    // Without servers each serves on, also one that begins then.
    bed.nats.kill(0);
    eventually_within(SOON, "they are gone", || look(&a.server)["connected"] == false);
    a.server.kill_and_restart();
    bed.all_serve(&[&a, &b, &c], "a.test");
    bed.nats.run(0);
    // A machine that joins later has them without an order.
    let d = bed.machine("d", "\"a.test\", \"b.test\"", "", false);
    bed.all_serve(&[&d, &b], "b.test");
    have_the_same(&[&a, &d], "b.test");
    assert_eq!(bed.pebble.orders(), (2, 2));
}

/// The authority looks at a machine that does not order.
fn is_answered_by_another(more: &str) {
    let Some(bed) = Bed::new() else { return };
    let other = bed.machine("other", "\"b.test\"", more, true);
    bed.all_serve(&[&other], "b.test");
    let orders = bed.machine("orders", "\"a.test\"", more, false);
    bed.all_serve(&[&orders], "a.test");
    assert_eq!((orders.has_ordered(), other.has_ordered()), (1, 1));
    assert_eq!(bed.pebble.orders(), (2, 2));
    assert!(!other.file("a.test").exists(), "it has not asked for it");
}

#[test]
fn a_response_is_given_by_a_machine_that_has_not_ordered() {
    is_answered_by_another("challenge = \"http-01\"");
}

#[test]
fn a_challenge_of_tls_is_answered_by_a_machine_that_has_not_ordered() {
    is_answered_by_another("challenge = \"tls-alpn-01\"");
}

/// The authority asks the name server of a machine that does not order. Wildcards come no other way.
#[test]
fn a_record_of_the_dns_is_in_the_zone_of_a_machine_that_has_not_ordered() {
    let dns = [free_address(), free_address()];
    let Some(bed) = Bed::with(90 * DAY, 1, Some(dns[0])) else { return };
    let zones = |address: SocketAddr| {
        let zone = |name: &str| {
            let file = bed.folder.path().join(name);
            let text = "$TTL 5\n@ SOA ns h 1 1h 15m 4w 5\n@ NS ns\nns A 127.0.0.1\n";
            fs::write(&file, text).expect("written");
            let file = file.display();
            format!("[[zone]]\nname = \"{name}\"\nfile = \"{file}\"\nlisten = [\"{address}\"]\n")
        };
        format!("challenge = \"dns-01\"\n{}{}", zone("a.test"), zone("b.test"))
    };
    let other = bed.machine("other", "\"b.test\"", &zones(dns[0]), false);
    bed.all_serve(&[&other], "b.test");
    let orders = bed.machine("orders", "\"*.a.test\"", &zones(dns[1]), false);
    bed.all_serve(&[&orders], "www.a.test");
    assert_eq!((orders.has_ordered(), other.has_ordered()), (1, 1));
    assert_eq!(bed.pebble.orders(), (2, 2));
}

/// Clients ask for a name at two machines: one orders, and the client of the other one waits for that.
#[test]
fn a_name_on_demand_is_ordered_once() {
    let Some(bed) = Bed::new() else { return };
    let more = "on_demand = [\"*.d.test\"]\n";
    let a = bed.machine("a", "", more, true);
    let b = bed.machine("b", "", more, false);
    bed.all_serve(&[&a], "x.d.test");
    bed.all_serve(&[&b], "x.d.test");
    have_the_same(&[&a, &b], "x.d.test");
    assert_eq!(bed.pebble.orders(), (1, 1));
    let root = bed.pebble.root();
    std::thread::scope(|scope| {
        let asked = [&a, &b].map(|machine| {
            let (bed, root) = (&bed, &root);
            scope.spawn(move || {
                eventually_within(ORDER, "it is served", || {
                    bed.is_served(root, machine, "y.d.test")
                });
            })
        });
        for one in asked {
            one.join().expect("it is served");
        }
    });
    have_the_same(&[&a, &b], "y.d.test");
    assert_eq!(bed.pebble.orders(), (2, 2));
}

/// A machine that orders and a server of NATS are killed: each name gets one certificate, and all machines have it.
#[test]
fn whatever_dies_a_name_has_one_certificate() {
    let Some(mut bed) = Bed::with(90 * DAY, 3, None) else { return };
    let witness = bed.machine("witness", "\"w.test\"", "", true);
    bed.all_serve(&[&witness], "w.test");
    let hosts = ["x1.test", "x2.test", "x3.test", "x4.test"];
    let domains = hosts.map(|host| format!("\"{host}\"")).join(", ");
    let mut machines = ["a", "b", "c"].map(|name| bed.machine(name, &domains, "", false));
    let mut dies = 0;
    eventually_within(ORDER, "one of them orders", || {
        dies = machines.iter().position(|machine| machine.has_ordered() > 0).unwrap_or(3);
        dies < 3
    });
    machines[dies].server.kill();
    bed.nats.kill(0);
    let living: Vec<_> = (0..3).filter(|number| *number != dies).collect();
    let two: Vec<_> = living.iter().map(|number| &machines[*number]).collect();
    for host in hosts {
        bed.all_serve(&two, host);
    }
    bed.nats.run(0);
    machines[dies].server.kill_and_restart();
    let all: Vec<_> = machines.iter().collect();
    for host in hosts {
        bed.all_serve(&all, host);
        have_the_same(&all, host);
    }
    let (placed, issued) = bed.pebble.orders();
    assert_eq!(issued, 1 + hosts.len(), "{placed} were placed");
    assert!(placed <= issued + 1, "{placed}");
    assert_eq!(bed.pebble.accounts(), 1);
}

/// Kill -9 in the middle of an order, at several moments of it. The next machine goes on, with the same order.
#[test]
fn an_order_outlives_its_machine() {
    let Some(bed) = Bed::new() else { return };
    let witness = bed.machine("witness", "\"w.test\"", "", true);
    bed.all_serve(&[&witness], "w.test");
    let mut dead = 0;
    for (number, delay) in [0, 30, 100, 250].into_iter().enumerate() {
        let host = format!("x{number}.test");
        let domains = format!("\"{host}\"");
        let before = bed.pebble.orders();
        let mut first = bed.machine(&format!("first{number}"), &domains, "", false);
        eventually_within(ORDER, "it orders", || first.has_ordered() == 1);
        std::thread::sleep(Duration::from_millis(delay));
        let was_done = first.server.log().contains("there is a new certificate");
        first.server.kill();
        let second = bed.machine(&format!("second{number}"), &domains, "", false);
        bed.all_serve(&[&second], &host);
        let (placed, issued) = bed.pebble.orders();
        assert_eq!(issued - before.1, 1, "one certificate\n{}", second.server.log());
        let log = second.server.log();
        eprintln!(
            "killed {delay} ms after its begin: {} placed, done before: {was_done}, goes on: {}",
            placed - before.0,
            log.contains("the order of a certificate")
        );
        dead += usize::from(!was_done);
        first.server.kill_and_restart();
        bed.all_serve(&[&first], &host);
        have_the_same(&[&first, &second], &host);
        assert_eq!(bed.pebble.orders().1 - before.1, 1);
    }
    assert!(dead > 0, "none was killed in the middle");
}

/// Certificates that are due as soon as half their life is over.
#[test]
fn a_renewal_is_one_order_for_all_and_a_machine_alone_is_not_forgotten() {
    // A minute: due after half of it.
    let Some(mut bed) = Bed::with(60, 1, None) else { return };
    let a = bed.machine("a", "\"a.test\"", "", true);
    let b = bed.machine("b", "\"a.test\"", "", false);
    bed.all_serve(&[&a, &b], "a.test");
    let first = have_the_same(&[&a, &b], "a.test");
    eventually_within(ORDER, "it is renewed", || {
        a.chain("a.test") != first && a.chain("a.test") == b.chain("a.test")
    });
    assert_eq!(bed.pebble.orders(), (2, 2), "one for each");

    // Cut off, a machine renews nothing, and says why.
    bed.nats.kill(0);
    eventually_within(ORDER, "it waits", || {
        let stats = a.server.command(&["stats", "--json"]);
        String::from_utf8_lossy(&stats.stdout).contains("it waits for the fleet")
    });
    let (placed, _) = bed.pebble.orders();
    assert!(placed <= 3, "{placed}");
    bed.nats.run(0);
    let before = a.chain("a.test");
    eventually_within(ORDER, "it is renewed again", || {
        a.chain("a.test") != before && a.chain("a.test") == b.chain("a.test")
    });
}

#[test]
fn a_certificate_of_before_the_fleet_is_given_to_the_others() {
    let Some(bed) = Bed::new() else { return };
    let mut a = bed.machine("a", "\"a.test\"", "", true);
    let fleet = fs::read_to_string(a.server.configuration()).expect("read");
    bed.all_serve(&[&a], "a.test");
    // The servers lose their bucket, as when there was no fleet before.
    a.server.kill();
    bed.nats.request("a:b", "$JS.API.STREAM.DELETE.KV_afpa-certificates", "");
    assert!(fleet.contains("certificates = true"));
    a.server.kill_and_restart();
    let has_record = |machine: &Machine| look(&machine.server)["certificates"] == 1;
    eventually_within(SOON, "it is offered", || has_record(&a));
    let b = bed.machine("b", "\"a.test\"", "", false);
    bed.all_serve(&[&b], "a.test");
    have_the_same(&[&a, &b], "a.test");
    assert_eq!(bed.pebble.orders(), (1, 1));
    // A signal in the middle of nothing changes nothing.
    b.server.signal(Signal::HUP);
    bed.all_serve(&[&a, &b], "a.test");
}
