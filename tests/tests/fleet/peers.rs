//! Machines that ask one another for answers of servers before they ask these.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use afpa_testkit::curl::curl;
use afpa_testkit::random::Random;
use afpa_testkit::server::free_address;
use afpa_testkit::{Client, Endpoint, Launch, Server, eventually_within, skip};
use afpa_tests::clock::Clock;
use rustix::process::Signal;
use serde_json::Value;

use crate::bed::{Nats, SOON, look, said};
use crate::origin::{Asked, Origin, Reply, ok};

mod once;
mod upgrade;

struct Bed {
    nats: Nats,
    folder: tempfile::TempDir,
}

/// A machine, and where others ask it.
struct Machine {
    server: Server,
    peers: SocketAddr,
}

impl Bed {
    /// `None` says SKIP.
    fn new() -> Option<Self> {
        Some(Self { nats: Nats::start(1)?, folder: tempfile::tempdir().expect("a folder") })
    }

    fn secret(&self, byte: &str) -> PathBuf {
        let path = self.folder.path().join(format!("secret-{byte}"));
        std::fs::write(&path, byte.repeat(64)).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("rights");
        path
    }

    /// `site`: further lines of the site.
    fn machine(&self, name: &str, origin: &Origin, site: &str) -> Machine {
        self.machine_with(name, origin, site, "s")
    }

    fn machine_with(&self, name: &str, origin: &Origin, site: &str, secret: &str) -> Machine {
        let peers = free_address();
        self.machine_of(name, origin, (&format!("peers = \"{peers}\"\n"), site), secret, peers)
    }

    /// `more`: further lines of the fleet and other sections.
    fn machine_of(
        &self,
        name: &str,
        origin: &Origin,
        (more, site): (&str, &str),
        secret: &str,
        peers: SocketAddr,
    ) -> Machine {
        self.launch(name, origin, (more, site), secret, (peers, &|_| {}))
    }

    fn launch(
        &self,
        name: &str,
        origin: &Origin,
        (more, site): (&str, &str),
        secret: &str,
        (peers, change): (SocketAddr, &dyn Fn(&mut Launch)),
    ) -> Machine {
        let (urls, to, secret) = (self.nats.urls(), origin.to(), self.secret(secret));
        let server = Server::start("/", |launch| {
            change(launch);
            let home = launch.home().display().to_string();
            launch.written(|listen| {
                format!(
                    "http2.cleartext = true\n[fleet]\nservers = {urls}\nname = \"{name}\"\nstate = \"{home}/fleet\"\n\
                     secret = \"{}\"\n{more}[[site]]\nlisten = [\"{listen}\"]\nto = \"{to}\"\n{site}",
                    secret.display()
                )
            });
        });
        Machine { server, peers }
    }
}

/// How the questions of a machine, and those of others to it, have ended.
fn counts(machine: &Machine, what: &str) -> u64 {
    look(&machine.server)["peers"][what].as_u64().expect("a count")
}

/// Waits until each of these machines knows all of them.
#[track_caller]
fn gather(machines: &[&Machine]) {
    for machine in machines {
        eventually_within(SOON, "all machines ask one another", || {
            let look = look(&machine.server);
            look["peers"]["machines"] == machines.len() as u64 && follows(&look)
        });
    }
}

/// Whether a machine is as far as the log of orders.
fn follows(look: &Value) -> bool {
    let members = look["members"].as_array().expect("a list");
    members.iter().all(|member| member["purges"]["sequence"] == look["last_purge"])
}

/// A slow server, whose answers may be kept.
fn slow(time: Duration) -> Origin {
    Origin::start(move |asked| {
        thread::sleep(time);
        ok("Cache-Control: max-age=3600\r\n", &format!("{} {}", asked.target, asked.number))
    })
}

#[test]
fn three_machines_ask_the_server_once() {
    let Some(bed) = Bed::new() else { return };
    let origin = slow(Duration::from_millis(200));
    let machines = ["a", "b", "c"].map(|name| bed.machine(name, &origin, ""));
    gather(&machines.each_ref());
    for round in 0..12 {
        let target = format!("/{round}?x=%20y");
        thread::scope(|scope| {
            for machine in &machines {
                for _ in 0..3 {
                    scope.spawn(|| {
                        let answer = machine.server.get(&target);
                        assert_eq!((answer.status, answer.text()), (200, &*format!("{target} 1")));
                        assert!(answer.field("AFPA-Answer").is_none(), "{answer:?}");
                        assert!(answer.field("AFPA-Question").is_none(), "{answer:?}");
                    });
                }
            }
        });
        assert_eq!(origin.count(&target), 1, "{target}");
        let asked = &origin.requests(&target)[0];
        assert!(asked.field("AFPA-Question").is_none());
        // Conditions are met by the machine that has the answer, too.
        for machine in &machines {
            let answer = machine.server.connect().get_with(&target, "If-None-Match: \"x\"\r\n");
            assert_eq!(answer.text(), format!("{target} 1"));
        }
        assert_eq!(origin.count(&target), 1, "{target}");
    }
    let sum = |what| machines.iter().map(|machine| counts(machine, what)).sum::<u64>();
    assert!(sum("answered") >= 12 && sum("answered") == sum("served"), "{}", sum("answered"));
    assert_eq!((sum("refused"), sum("failed"), sum("strange")), (0, 0, 0));
    let (_, text) = said(&machines[0].server, &["fleet"]);
    assert!(text.contains(&format!("b answers the others at {}", machines[1].peers)), "{text}");

    // By HTTP/2 it is the same.
    for (number, machine) in machines.iter().enumerate() {
        let url = format!("{}/h2", machine.server.url().trim_end_matches('/'));
        let asks = ["--http2-prior-knowledge", "-H", "Host: test", url.as_str()];
        let Some(answer) = curl(asks) else { return };
        assert_eq!(String::from_utf8_lossy(&answer.output), "/h2 1", "{number}: {answer:?}");
    }
    assert_eq!(origin.count("/h2"), 1);
}

#[test]
fn validators_and_answers_that_are_for_one_client_pass() {
    let Some(bed) = Bed::new() else { return };
    let origin = Origin::start(|asked: &Asked| match asked.target.as_str() {
        "/private" => ok("Cache-Control: private\r\n", &asked.field("Cookie").unwrap_or_default()),
        "/missing" => {
            Reply::Bytes(crate::origin::message(404, "Cache-Control: max-age=60\r\n", "no"))
        }
        "/vary" => ok(
            "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n",
            &asked.field("Accept-Language").unwrap_or_default(),
        ),
        _ => ok("Cache-Control: max-age=3600\r\nETag: \"v\"\r\n", &asked.number.to_string()),
    });
    let changed = "[[site.header]]\nset = { X-Own = \"one\" }\n[site.cache]\nstatus_field = true\n";
    let machines = ["a", "b"].map(|name| bed.machine(name, &origin, changed));
    gather(&machines.each_ref());
    let ask = |number: usize, target: &str, lines: &str| {
        machines[number].server.connect().get_with(target, lines)
    };
    for target in ["/1", "/2", "/3", "/4", "/5", "/6"] {
        let (one, other) = (ask(0, target, ""), ask(1, target, ""));
        assert_eq!((one.text(), other.text()), ("1", "1"));
        for answer in [&one, &other] {
            let own = answer.fields.iter().filter(|(name, _)| name == "X-Own").count();
            assert_eq!(own, 1, "changes are made once: {answer:?}");
            assert!(answer.field("Cache-Status").is_some(), "{answer:?}");
        }
        for number in 0..2 {
            assert_eq!(ask(number, target, "If-None-Match: \"v\"\r\n").status, 304);
        }
        assert_eq!(origin.count(target), 1, "{target}");
    }
    for cookie in ["x=1", "x=2", "x=3"] {
        for number in 0..2 {
            let answer = ask(number, "/private", &format!("Cookie: {cookie}\r\n"));
            assert_eq!(answer.text(), cookie);
        }
    }
    for language in ["de", "fr"] {
        for number in [0, 1, 0, 1] {
            let answer = ask(number, "/vary", &format!("Accept-Language: {language}\r\n"));
            assert_eq!(answer.text(), language);
        }
    }
    assert_eq!(origin.count("/vary"), 2);
    for number in [0, 1, 0, 1] {
        assert_eq!(ask(number, "/missing", "").status, 404);
    }
    assert_eq!(origin.count("/missing"), 1);
    // A method that is not safe makes the answer invalid everywhere.
    let post = "POST /1 HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n";
    for number in [0, 1] {
        let before = origin.count("/1");
        assert_eq!(machines[number].server.connect().exchange(post).status, 200);
        let own: usize = ask(number, "/1", "").text().parse().expect("a number");
        assert!(own > before, "{own}, {before}");
        eventually_within(SOON, "the other machine has dropped it", || {
            let other: usize = ask(1 - number, "/1", "").text().parse().expect("a number");
            other > before
        });
    }
}

#[test]
fn a_machine_with_other_rules_and_one_with_another_secret_answer_nothing() {
    let Some(bed) = Bed::new() else { return };
    let origin = slow(Duration::ZERO);
    let a = bed.machine("a", &origin, "");
    let b = bed.machine("b", &origin, "[site.cache]\ngrace = \"7s\"\n");
    gather(&[&a, &b]);
    let begun = Instant::now();
    for target in 0..40 {
        for machine in [&a, &b] {
            assert_eq!(machine.server.get(&format!("/{target}")).status, 200);
        }
        assert_eq!(origin.count(&format!("/{target}")), 2);
    }
    assert!(counts(&a, "refused") > 0 && counts(&b, "turned_away") == counts(&a, "refused"));
    // A machine that refuses is not asked for each answer, and the log says so.
    let pauses = begun.elapsed().as_secs() / 10;
    for (machine, other) in [(&a, "b"), (&b, "a")] {
        let refused = counts(machine, "refused");
        assert!((3..=3 + pauses).contains(&refused), "{refused} of some 20, {pauses}");
        let said = format!("{other} has other rules for a site");
        assert_eq!(machine.server.log().matches(&said).count(), 1, "{}", machine.server.log());
    }
    assert_eq!(counts(&a, "answered") + counts(&b, "answered"), 0);

    let c = bed.machine_with("c", &origin, "", "x");
    eventually_within(SOON, "c is a member", || {
        look(&a.server)["members"].as_array().is_some_and(|members| members.len() == 3)
    });
    thread::sleep(Duration::from_secs(2));
    assert_eq!((counts(&a, "machines"), counts(&c, "machines")), (2, 1));
}

#[test]
fn strangers_at_the_port_of_the_peers_get_nothing() {
    let Some(bed) = Bed::new() else { return };
    let origin = slow(Duration::ZERO);
    let machines = ["a", "b"].map(|name| bed.machine(name, &origin, ""));
    gather(&machines.each_ref());
    for machine in &machines {
        assert_eq!(machine.server.get("/kept").text(), "/kept 1");
    }
    let forged = format!("AFPA-Question: {}\r\n", "0".repeat(2 * (74 + 32)));
    for lines in ["", "AFPA-Question: x\r\n", &forged] {
        for method in ["GET", "HEAD", "POST", "PURGE", "OPTIONS"] {
            let mut client = Client::connect(&Endpoint::Tcp(machines[0].peers)).expect("connected");
            let head = format!("{method} /kept HTTP/1.1\r\nHost: test\r\n{lines}\r\n");
            let answer = client.exchange(head);
            // Nothing is read without TLS.
            assert_eq!(answer.status, 400, "{answer:?}");
            assert!(!answer.text().contains("/kept 1"));
        }
    }
    // By TLS one has to have the key.
    let url = format!("https://{}/kept", machines[0].peers);
    for version in ["--tlsv1.2", "--tlsv1.3"] {
        let Some(answer) = curl(["--insecure", version, "--include", url.as_str()]) else { return };
        assert!(answer.exit != 0 && answer.output.is_empty(), "{answer:?}");
    }
    assert_eq!((origin.count("/kept"), counts(&machines[0], "strange")), (1, 0));
}

#[test]
fn machines_whose_clocks_are_apart_ask_one_another() {
    let Some(bed) = Bed::new() else { return };
    let clock = match Clock::new() {
        Ok(clock) => clock,
        Err(why) => skip!("{why}"),
    };
    let origin = slow(Duration::ZERO);
    let machines = [("a", 0), ("b", 100), ("c", -100)].map(|(name, ahead)| {
        let peers = free_address();
        let more = format!("peers = \"{peers}\"\n");
        bed.launch(name, &origin, (&more, ""), "s", (peers, &|launch| clock.set(launch, ahead)))
    });
    gather(&machines.each_ref());
    for target in 0..20 {
        let target = format!("/{target}");
        for machine in &machines {
            assert!(machine.server.get(&target).text().starts_with(&target));
        }
    }
    let sum = |what| machines.iter().map(|machine| counts(machine, what)).sum::<u64>();
    assert!(sum("answered") >= 20, "{}", sum("answered"));
    assert_eq!((sum("refused"), sum("strange")), (0, 0));
    let log = || machines[0].server.log();
    let is_said = |name: &str| log().contains(&format!("the clock of {name} is "));
    eventually_within(SOON, "the log says so", || is_said("b") && is_said("c"));
    assert!(log().contains("s ahead of this") && log().contains("s behind this"), "{}", log());
    assert!(said(&machines[0].server, &["fleet"]).1.contains("\nthe clock of b is "));
}

#[test]
fn a_machine_that_stops_costs_one_time_out_and_is_asked_again_later() {
    let Some(bed) = Bed::new() else { return };
    let origin = slow(Duration::ZERO);
    let machines = ["a", "b"].map(|name| bed.machine(name, &origin, ""));
    gather(&machines.each_ref());
    let mut number = 0;
    let mut round = |count: usize| {
        let mut slow = 0;
        for _ in 0..count {
            number += 1;
            let begun = Instant::now();
            assert_eq!(machines[0].server.get(&format!("/{number}")).status, 200);
            slow += usize::from(begun.elapsed() > Duration::from_millis(1200));
        }
        slow
    };
    round(40);
    let before = counts(&machines[0], "answered");
    assert!(before > 0);
    machines[1].server.signal(Signal::STOP);
    let slow = round(200);
    assert!(slow <= 1, "{slow} of 200 requests waited for a machine that has stopped");
    let failed = counts(&machines[0], "failed");
    assert!((1..=3).contains(&failed), "{failed}");
    machines[1].server.signal(Signal::CONT);
    eventually_within(SOON, "it is asked again", || {
        round(5);
        counts(&machines[0], "answered") > before
    });
}

#[test]
fn a_machine_that_dies_harms_no_request() {
    let Some(bed) = Bed::new() else { return };
    let origin = slow(Duration::ZERO);
    let mut machines = ["a", "b", "c"].map(|name| bed.machine(name, &origin, ""));
    gather(&machines.each_ref());
    machines[1].server.kill();
    for target in 0..100 {
        let target = format!("/{target}");
        for number in [0, 2] {
            let answer = machines[number].server.get(&target);
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
    eventually_within(SOON, "it is not asked any more", || counts(&machines[0], "machines") == 2);
    machines[1].server.kill_and_restart();
    gather(&machines.each_ref());
}

/// The versions of some URLs: those of the server, and those that no answer may be older than.
struct Versions {
    now: Vec<AtomicUsize>,
    /// Of all machines.
    known: Vec<AtomicUsize>,
    /// Of each machine, by its own orders.
    own: [Vec<AtomicUsize>; 3],
}

const URLS: usize = 12;

#[test]
fn no_answer_is_older_than_a_purge_that_was_acknowledged_or_done_there() {
    let Some(bed) = Bed::new() else { return };
    let zeros = || (0..URLS).map(|_| AtomicUsize::new(0)).collect::<Vec<_>>();
    let versions =
        Arc::new(Versions { now: zeros(), known: zeros(), own: std::array::from_fn(|_| zeros()) });
    let of_server = Arc::clone(&versions);
    let origin = Origin::start(move |asked: &Asked| {
        let url: usize = asked.target[1..].parse().expect("a number");
        let version = of_server.now[url].load(Ordering::SeqCst);
        // An answer that is old when it comes.
        thread::sleep(Duration::from_millis(asked.number as u64 % 7));
        ok("Cache-Control: max-age=3600\r\n", &version.to_string())
    });
    let open = "[site.cache]\npurge_from = [\"127.0.0.0/8\"]\n";
    let machines = ["a", "b", "c"].map(|name| bed.machine(name, &origin, open));
    gather(&machines.each_ref());
    let (ends, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let seed = Random::seed_or(7);
    thread::scope(|scope| {
        for reader in 0..6_u64 {
            let (versions, machines, ends, asked) = (&versions, &machines, &ends, &asked);
            scope.spawn(move || {
                let mut random = Random::new(seed ^ reader << 32);
                let mut clients = machines.each_ref().map(|machine| machine.server.connect());
                while !ends.load(Ordering::SeqCst) {
                    let (number, url) = (random.below(3), random.below(URLS));
                    let known = versions.known[url].load(Ordering::SeqCst);
                    let own = versions.own[number][url].load(Ordering::SeqCst);
                    let answer = clients[number].get(&format!("/{url}"));
                    let version: usize = answer.text().parse().expect("a version");
                    assert!(
                        version >= known.max(own),
                        "/{url} of machine {number} is {version}, after {known} and {own}"
                    );
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let ended = thread::Builder::new();
        let purger = ended.spawn_scoped(scope, || {
            let mut random = Random::new(seed);
            for _ in 0..150 {
                let (number, url) = (random.below(3), random.below(URLS));
                let version = versions.now[url].fetch_add(1, Ordering::SeqCst) + 1;
                let (server, target) = (&machines[number].server, format!("/{url}"));
                match random.below(4) {
                    0 => {
                        let head = format!("PURGE {target} HTTP/1.1\r\nHost: test\r\n\r\n");
                        assert_eq!(server.connect().exchange(head).status, 200);
                    }
                    1 => {
                        let head = format!(
                            "POST {target} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"
                        );
                        assert_eq!(server.connect().exchange(head).status, 200);
                    }
                    2 => {
                        let (is_well, text) = said(server, &["purge", &target]);
                        assert!(is_well, "{text}");
                    }
                    _ => {
                        let order = ["purge", "--fleet", "--wait", "60", &target];
                        let (is_well, text) = said(server, &order);
                        assert!(is_well, "{text}");
                        versions.known[url].fetch_max(version, Ordering::SeqCst);
                    }
                }
                versions.own[number][url].fetch_max(version, Ordering::SeqCst);
            }
        });
        let done = purger.expect("a thread").join();
        ends.store(true, Ordering::SeqCst);
        done.expect("no panic");
    });
    let answered: u64 = machines.iter().map(|machine| counts(machine, "answered")).sum();
    let refused: u64 = machines.iter().map(|machine| counts(machine, "refused")).sum();
    let asked = asked.load(Ordering::SeqCst);
    println!("{asked} requests, {answered} answered by another machine, {refused} refused");
    assert!(asked > 2000 && answered > 20, "{asked}, {answered}");
}

/// Bytes of an answer, and how many different ones there are: as many as three memories hold.
const ANSWER: usize = 8 << 10;
const ANSWERS: usize = 2600;

/// The part of the content that the memories of three machines give to clients who ask for all URLs alike, in percent.
fn hit_bytes(bed: &Bed, names: [&str; 3], asks: bool) -> usize {
    let content = "x".repeat(ANSWER);
    let sent = Arc::new(AtomicUsize::new(0));
    let by_server = Arc::clone(&sent);
    let origin = Origin::start(move |_: &Asked| {
        by_server.fetch_add(1, Ordering::SeqCst);
        ok("Cache-Control: max-age=3600\r\n", &content)
    });
    let machines = names.map(|name| {
        let peers = free_address();
        let line = if asks { format!("peers = \"{peers}\"\n") } else { String::new() };
        let more = format!("{line}[shared_cache]\nlimit = \"8MiB\"\n");
        bed.machine_of(name, &origin, (&more, ""), "s", peers)
    });
    if asks {
        gather(&machines.each_ref());
    }
    let ask = |each: usize| {
        sent.store(0, Ordering::SeqCst);
        thread::scope(|scope| {
            for reader in 0..4_u64 {
                let machines = &machines;
                scope.spawn(move || {
                    let mut random = Random::new(reader + each as u64);
                    let mut clients = machines.each_ref().map(|machine| machine.server.connect());
                    for _ in 0..each {
                        let target = format!("/{}", random.below(ANSWERS));
                        let answer = clients[random.below(3)].get(&target);
                        assert_eq!((answer.status, answer.body.len()), (200, ANSWER));
                    }
                });
            }
        });
        100 - 100 * sent.load(Ordering::SeqCst) / (4 * each)
    };
    ask(2600);
    ask(2000)
}

#[test]
fn three_machines_that_ask_one_another_have_the_memory_of_three() {
    let Some(bed) = Bed::new() else { return };
    let alone = hit_bytes(&bed, ["x", "y", "z"], false);
    let together = hit_bytes(&bed, ["a", "b", "c"], true);
    println!("hit bytes: {alone} % alone, {together} % together");
    assert!(4 * together > 9 * alone, "{together} % of the content, and {alone} % alone");
}
