//! Certificates by records that AFPA puts into its own zones (`dns-01`), from a real authority.

use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

use afpa_testkit::curl::curl;
use afpa_testkit::server::free_address;
use afpa_testkit::{Endpoint, Running, Server, Tree, eventually, eventually_within};
use afpa_tests::pebble::{Options, Pebble};

use super::bed::{are_here, readable_folder};
use super::message::{Answer, Question, exchange};

/// An order is several exchanges; when nonces are refused too often, the next one is a minute later.
const ORDER: Duration = Duration::from_secs(150);

/// Each name has its record in another way: `a.test` in its own zone, for a wildcard; `b.test` by an alias to another zone;
/// `c.test` by a zone of its own that it delegates to.
const ZONES: [(&str, &str); 4] = [
    ("a.test", "$TTL 5\n@ SOA ns h 1 1h 15m 4w 5\n@ NS ns\nns A 127.0.0.1\n* A 127.0.0.1\n"),
    (
        "b.test",
        "$TTL 5\n@ SOA ns.a.test. h 1 1h 15m 4w 5\n@ NS ns.a.test.\n_acme-challenge CNAME _acme-challenge.proofs.test.\n",
    ),
    ("proofs.test", "$TTL 5\n@ SOA ns.a.test. h 1 1h 15m 4w 5\n@ NS ns.a.test.\n"),
    (
        "c.test",
        "$TTL 5\n@ SOA ns.a.test. h 1 1h 15m 4w 5\n@ NS ns.a.test.\n_acme-challenge NS ns.a.test.\n",
    ),
];

#[test]
fn wildcards_aliases_and_delegated_names_get_certificates_by_records_in_our_zones() {
    if !Pebble::is_here() || !are_here(&["unbound"]) {
        return;
    }
    let folder = readable_folder();
    let (dns, at, tls) = (free_address(), free_address(), free_address());
    let mut sections = String::new();
    let own =
        ("_acme-challenge.c.test", "$TTL 5\n@ SOA ns.a.test. h 1 1h 15m 4w 5\n@ NS ns.a.test.\n");
    for (name, text) in ZONES.into_iter().chain([own]) {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("written");
        let file = file.display();
        sections.push_str(&format!(
            "[[zone]]\nname = \"{name}\"\nfile = \"{file}\"\nlisten = [\"{dns}\"]\n"
        ));
    }
    let _unbound = resolver(folder.path(), at, dns);
    let options =
        Options { looks_at: (free_address(), 1), validity: 90 * 24 * 3600, refused_nonces: 0 };
    let pebble = Pebble::start_with(options, Some(at)).expect("it is here");
    let tree = Tree::new();
    tree.file("index.html", "over TLS");
    let (root, state) = (tree.path().display().to_string(), folder.path().join("acme"));
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            let Endpoint::Tcp(http) = endpoint else { panic!("an address") };
            format!(
                "[internals]\nreread = \"100ms\"\n[acme]\ndomains = [\"*.a.test\", \"b.test\", \"c.test\"]\n\
                 challenge = \"dns-01\"\ndirectory = \"{}\"\ndirectory_ca = \"{}\"\nstate = \"{}\"\n{sections}\n\
                 [[site]]\nlisten = [\"{http}\"]\ntls = [\"{tls}\"]\nroot = \"{root}\"\n",
                pebble.directory(),
                pebble.directory_ca().display(),
                state.display(),
            )
        });
    });
    let authority = pebble.root();
    for host in ["www.a.test", "b.test", "c.test"] {
        let (port, ip) = (tls.port(), tls.ip());
        eventually_within(ORDER, &format!("{host} has a certificate\n{}", server.log()), || {
            let answer = curl([
                "--cacert",
                authority.to_str().expect("a path"),
                "--resolve",
                &format!("{host}:{port}:{ip}"),
                &format!("https://{host}:{port}/"),
            ]);
            answer.expect("curl is among the packages").output == b"over TLS"
        });
    }
    for name in ["_acme-challenge.a.test", "_acme-challenge.proofs.test", "_acme-challenge.c.test"]
    {
        let text = || Question::new(name, 16).ask(dns).answer;
        eventually("the records are gone", || text().iter().all(|line| !line.contains(" TXT ")));
    }
}

/// A resolver that asks AFPA for all names below `test`.
fn resolver(folder: &std::path::Path, at: SocketAddr, dns: SocketAddr) -> Running {
    let mut text = format!(
        "server:\n interface: {}\n port: {}\n do-daemonize: no\n chroot: \"\"\n username: \"\"\n pidfile: \"\"\n\
         directory: \"{}\"\n do-not-query-localhost: no\n module-config: \"iterator\"\n use-syslog: no\n\
         cache-max-negative-ttl: 0\n cache-max-ttl: 0\n local-zone: \"test.\" nodefault\nremote-control:\n control-enable: no\n",
        at.ip(),
        at.port(),
        folder.display(),
    );
    for (name, _) in ZONES.into_iter().chain([("_acme-challenge.c.test", "")]) {
        text.push_str(&format!(
            "stub-zone:\n name: \"{name}\"\n stub-addr: {}@{}\n",
            dns.ip(),
            dns.port()
        ));
    }
    let file = folder.join("unbound.conf");
    fs::write(&file, text).expect("written");
    let mut command = Command::new("unbound");
    command.arg("-c").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let unbound = Running::start(&mut command);
    let question = Question::new("localhost", 1).bytes();
    eventually("the resolver answers", || {
        exchange(at, &question).map(|bytes| Answer::read(&bytes)).is_some()
    });
    unbound
}
