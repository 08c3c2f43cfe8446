//! Keys that all machines have: a client resumes its session on any of them, and proves its address to all at once.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use afpa_testkit::aloud::say;
use afpa_testkit::server::free_address;
use afpa_testkit::tree::Tree;
use afpa_testkit::{Server, eventually_within};
use afpa_tests::quic::QuicClient;
use afpa_tests::tls::{Authority, Plan, TlsServer};

use crate::bed::{Nats, SOON, look, said};

struct Bed {
    tree: Tree,
    authority: Authority,
    folder: tempfile::TempDir,
}

impl Bed {
    fn new() -> Self {
        let tree = Tree::new();
        tree.file("hello.txt", b"hello");
        Self { tree, authority: Authority::new(), folder: tempfile::tempdir().expect("a folder") }
    }

    /// A file with a secret.
    fn secret(&self, byte: &str) -> PathBuf {
        let path = self.folder.path().join(format!("secret-{byte}"));
        std::fs::write(&path, byte.repeat(64)).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("rights");
        path
    }

    fn machine(&self, name: &str, nats: &Nats, secret: &Path, more: &str) -> TlsServer {
        let (urls, secret) = (nats.urls(), secret.display());
        let state = self.folder.path().join(name);
        let sections = format!(
            "[internals]\nreread = \"100ms\"\n[fleet]\nservers = {urls}\nname = \"{name}\"\n\
             secret = \"{secret}\"\nstate = \"{}\"\n{more}",
            state.display()
        );
        TlsServer::with(&self.authority, self.tree.path(), Plan { sections, ..Plan::default() })
    }

    /// Keeps the session that a machine gives.
    fn begin(&self, machine: &TlsServer, version: &str) -> PathBuf {
        let session = self.folder.path().join(format!("session{version}"));
        let text = self.ask(machine, version, "-sess_out", &session);
        assert!(text.contains("hello") && text.contains("New, "), "{text}");
        session
    }

    /// Whether a machine resumes it. The client is answered in any case.
    fn resumes(&self, machine: &TlsServer, version: &str, session: &Path) -> bool {
        let text = self.ask(machine, version, "-sess_in", session);
        assert!(text.contains("hello"), "{text}");
        text.contains("Reused, ")
    }

    fn ask(&self, machine: &TlsServer, version: &str, what: &str, session: &Path) -> String {
        let session = session.to_str().expect("a path");
        let ask = "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        machine.openssl(&self.authority, &[version, "-ign_eof", what, session], ask)
    }
}

/// Waits until both use the keys of this turn, or of a later one.
#[track_caller]
fn share(machines: [&TlsServer; 2], turn: u64) {
    let turn_of = |machine: &Server| look(machine)["keys"].as_u64().unwrap_or(0);
    eventually_within(SOON, "they share keys", || {
        let [one, other] = machines.map(|machine| turn_of(&machine.server));
        one >= turn && one == other
    });
    // The keys of tickets are taken at the next look.
    std::thread::sleep(Duration::from_millis(500));
}

const VERSIONS: [&str; 2] = ["-tls1_2", "-tls1_3"];

#[test]
fn a_session_is_resumed_on_any_machine_also_when_the_servers_are_gone() {
    let Some(mut nats) = Nats::start(1) else { return };
    let bed = Bed::new();
    let secret = bed.secret("a");
    let a = bed.machine("a", &nats, &secret, "");
    let mut b = bed.machine("b", &nats, &secret, "");
    share([&a, &b], 1);
    for version in VERSIONS {
        let session = bed.begin(&a, version);
        assert!(bed.resumes(&b, version, &session), "{version}");
        let session = bed.begin(&b, version);
        assert!(bed.resumes(&a, version, &session), "{version}");
    }
    let text = said(&a.server, &["fleet"]).1;
    assert!(text.contains("shared keys of turn 1; the next ones come from "), "{text}");

    // Without servers the last keys stay, also in a process that begins then.
    nats.kill(0);
    eventually_within(SOON, "it is gone", || look(&a.server)["connected"] == false);
    b.server.kill_and_restart();
    share([&a, &b], 1);
    for version in VERSIONS {
        let session = bed.begin(&a, version);
        assert!(bed.resumes(&b, version, &session), "{version}");
    }
    // The disk has them sealed.
    let kept = std::fs::read(bed.folder.path().join("b/keys")).expect("kept");
    assert!(!kept.windows(8).any(|part| part == b"previous"));
}

#[test]
fn a_session_is_resumed_across_a_turn_of_the_keys_and_the_next_holder_makes_them() {
    let Some(nats) = Nats::start(1) else { return };
    let bed = Bed::new();
    let (secret, short) = (bed.secret("a"), "[tls]\nticket_lifetime = \"1m\"\n");
    let mut a = bed.machine("a", &nats, &secret, short);
    let turns = |machine: &TlsServer| {
        let look = look(&machine.server);
        let members = look["members"].as_array().cloned().unwrap_or_default();
        members.iter().any(|one| one["name"] == "a" && one["turns_keys"] == true)
    };
    eventually_within(SOON, "a makes keys", || turns(&a));
    let b = bed.machine("b", &nats, &secret, short);
    share([&a, &b], 1);
    let mut sessions = Vec::new();
    eventually_within(2 * SOON, "the keys turn", || {
        let before = VERSIONS.map(|version| (version, bed.begin(&a, version)));
        let is_over = look(&a.server)["keys"].as_u64() >= Some(2);
        if !is_over {
            // Two files, which the next round writes anew.
            sessions = before
                .map(|(version, path)| (version, std::fs::read(path).expect("read")))
                .to_vec();
        }
        is_over
    });
    share([&a, &b], 2);
    for (version, session) in sessions {
        let path = bed.folder.path().join("old");
        std::fs::write(&path, session).expect("written");
        assert!(bed.resumes(&b, version, &path), "{version}");
    }
    // The machine that makes them dies, and the other one goes on.
    a.server.kill();
    eventually_within(2 * SOON, "b makes keys", || look(&b.server)["keys"].as_u64() >= Some(3));
}

#[test]
fn a_machine_with_another_secret_is_told_and_changes_nothing() {
    let Some(nats) = Nats::start(1) else { return };
    let bed = Bed::new();
    let secret = bed.secret("a");
    let a = bed.machine("a", &nats, &secret, "");
    let b = bed.machine("b", &nats, &secret, "");
    share([&a, &b], 1);
    let c = bed.machine("c", &nats, &bed.secret("c"), "");
    eventually_within(SOON, "it is told", || {
        look(&c.server)["key_trouble"].as_str().is_some_and(|why| why.contains("another secret"))
    });
    let session = bed.begin(&a, "-tls1_3");
    assert!(!bed.resumes(&c, "-tls1_3", &session), "its keys are its own");
    assert!(bed.resumes(&b, "-tls1_3", &session));
    assert!(said(&c.server, &["fleet"]).1.contains("no shared keys come: "));
    assert_eq!(c.server.log().matches("no shared keys from the fleet").count(), 1);
}

/// A router in front of two machines that changes its mind: the first one gets what a client sends until it has answered
/// once, and the second one everything after that. Both see the client at one address.
fn router(first: SocketAddr, second: SocketAddr) -> SocketAddr {
    let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("bound"));
    let address = near.local_addr().expect("an address");
    std::thread::spawn(move || {
        near.set_read_timeout(Some(Duration::from_millis(2))).expect("a patience");
        far.set_read_timeout(Some(Duration::from_millis(2))).expect("a patience");
        let (mut bytes, mut client, mut has_answered) = ([0; 65536], None, false);
        let start = std::time::Instant::now();
        while start.elapsed() < SOON {
            if let Ok((count, from)) = near.recv_from(&mut bytes) {
                client = Some(from);
                let machine = if has_answered { second } else { first };
                let _ = far.send_to(&bytes[..count], machine);
            }
            if let Ok((count, from)) = far.recv_from(&mut bytes) {
                let is_late = from == first && has_answered;
                if let Some(client) = client.filter(|_| !is_late) {
                    let _ = near.send_to(&bytes[..count], client);
                }
                has_answered |= from == first;
            }
        }
    });
    address
}

#[test]
fn a_machine_takes_the_token_of_a_retry_that_another_one_has_sent() {
    let Some(nats) = Nats::start(1) else { return };
    let bed = Bed::new();
    let rate = "[police]\nclient_connections_per_second = 1000\nclient_connections_burst = 1000\n";
    let secrets = [bed.secret("a"), bed.secret("c")];
    let a = bed.machine("a", &nats, &secrets[0], rate);
    let ask = |machine: &TlsServer| {
        let mut client = QuicClient::start(&bed.authority, router(a.tls, machine.tls))?;
        Ok::<_, String>(client.get("/hello.txt"))
    };
    let b = bed.machine("b", &nats, &secrets[0], rate);
    let got = match ask(&b) {
        Ok(got) => got,
        Err(why) => return say("SKIP", &why),
    };
    assert_eq!((&got["status"], &got["retries"]), (&200.into(), &1.into()), "{got}");
    // Another secret: the second machine would send a Retry of its own, which clients ignore (RFC 9000 section 17.2.5.2).
    let c = bed.machine("c", &nats, &secrets[1], rate);
    let got = ask(&c).expect("it is built");
    assert_ne!(got["status"], 200, "{got}");
}

/// A question for the address of a name, with a cookie.
fn question(cookie: &[u8]) -> Vec<u8> {
    let head = [0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1];
    let name = b"\x03www\x07example\x03org\x00\x00\x01\x00\x01";
    let length = cookie.len() as u8;
    let option = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, length + 4, 0, 10, 0, length];
    [&head[..], name, &option, cookie].concat()
}

#[test]
fn a_cookie_of_dns_holds_on_any_machine() {
    let Some(nats) = Nats::start(1) else { return };
    let bed = Bed::new();
    let zone = bed.folder.path().join("zone");
    let text = "@ 60 IN SOA ns host 1 60 60 60 60\n@ 60 IN NS ns\nns 60 IN A 192.0.2.1\nwww 60 IN A 192.0.2.2\n";
    std::fs::write(&zone, text).expect("written");
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bed.folder.path(), readable).expect("opened");
    let secret = bed.secret("a");
    let names = [free_address(), free_address(), free_address()];
    let machine = |name: &str, dns: SocketAddr, secret: &Path| {
        let zone = zone.display();
        let more = format!(
            "[dns]\nrate = 1\n[[zone]]\nname = \"example.org\"\nfile = \"{zone}\"\nlisten = [\"{dns}\"]\n"
        );
        bed.machine(name, &nats, secret, &more)
    };
    let (a, b) = (machine("a", names[0], &secret), machine("b", names[1], &secret));
    let _c = machine("c", names[2], &bed.secret("c"));
    share([&a, &b], 1);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.set_read_timeout(Some(Duration::from_millis(500))).expect("a patience");
    let mut room = [0; 512];
    let mut ask = |to: SocketAddr, cookie: &[u8]| {
        socket.send_to(&question(cookie), to).expect("sent");
        let (length, from) = socket.recv_from(&mut room).ok()?;
        // Whole, and not *ask by TCP*.
        (from == to && room[2] & 2 == 0).then(|| room[..length].to_vec())
    };
    let mut made = None;
    eventually_within(SOON, "a makes a cookie", || {
        made = ask(names[0], &[7; 8]);
        made.is_some()
    });
    let made = made.expect("an answer");
    let cookie = &made[made.len() - 24..];
    let [by_b, by_c] =
        [names[1], names[2]].map(|to| (0..20).filter(|_| ask(to, cookie).is_some()).count());
    assert_eq!(by_b, 20, "b knows it");
    assert!(by_c < 20, "another fleet does not");
}
