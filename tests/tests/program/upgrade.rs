//! USR2: another program takes the place of the running one without a refused connection.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use afpa_testkit::response::Asked;
use afpa_testkit::server::program;
use afpa_testkit::{Client, Server, Tree, eventually, tree::patterned};
use afpa_tests::h2::{H2Client, request};
use afpa_tests::tls::{Authority, Plan, TlsServer, Way};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree.file("medium.bin", patterned(100_000));
    tree.file("large.bin", patterned(20_000_000));
    tree
}

/// A process that an upgrade has started. It is ended when this is dropped.
pub(super) struct Next {
    pid: Pid,
}

impl Next {
    /// Upgrades the process that serves, and waits until the next one takes orders in its place.
    pub(super) fn of(server: &Server, before: Option<&Next>) -> Self {
        let old =
            before.map_or(server.pid(), |before| before.pid.as_raw_nonzero().get().cast_unsigned());
        signal(old, Signal::USR2);
        let mut pid = old;
        eventually("the next process takes orders", || {
            let output = server.command(&["stats", "--json"]);
            let stats = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
            pid = stats.and_then(|stats| stats["pid"].as_u64()).map_or(old, |pid| pid as u32);
            pid != old
        });
        eventually("the process before has ended", || is_gone(old));
        let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
        Self { pid }
    }
}

impl Drop for Next {
    fn drop(&mut self) {
        // Another one may have taken its place.
        let _ = kill_process(self.pid, Signal::TERM);
        let pid = self.pid.as_raw_nonzero().get().cast_unsigned();
        let start = std::time::Instant::now();
        while !is_gone(pid) && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    kill_process(pid, signal).expect("it is there");
}

/// Whether it has ended; nobody may have waited for it yet.
fn is_gone(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    matches!(state, None | Some('Z'))
}

/// A client that asks until the first says stop, and counts its responses by the second.
type Asks<'a> = dyn Fn(&AtomicBool, &AtomicUsize) + Sync + 'a;

/// Clients that ask until told to stop, and count their responses. Each panics at the first that is not as it should be.
fn load<R>(clients: &[&Asks<'_>], during: impl FnOnce(&dyn Fn()) -> R) -> R {
    let stop = AtomicBool::new(false);
    let counts: Vec<AtomicUsize> = clients.iter().map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for (client, count) in clients.iter().zip(&counts) {
            let stop = &stop;
            scope.spawn(move || client(stop, count));
        }
        // Each of them has had some more responses.
        let go_on = || {
            let before: Vec<usize> = counts.iter().map(|c| c.load(Ordering::Relaxed)).collect();
            eventually("all clients go on", || {
                let mut pairs = counts.iter().zip(&before);
                pairs.all(|(count, before)| count.load(Ordering::Relaxed) >= before + 5)
            });
        };
        go_on();
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| during(&go_on)));
        stop.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Connections that stay as long as the server lets them.
fn kept(connect: impl Fn() -> Client, stop: &AtomicBool, count: &AtomicUsize) {
    let mut client = connect();
    while !stop.load(Ordering::Relaxed) {
        let response = client.get("/medium.bin");
        assert!(response.status == 200 && response.body == patterned(100_000));
        count.fetch_add(1, Ordering::Relaxed);
        if response.says_close() {
            client = connect();
        }
    }
}

/// A connection for each request.
fn single(connect: impl Fn() -> Client, stop: &AtomicBool, count: &AtomicUsize) {
    while !stop.load(Ordering::Relaxed) {
        let response = connect().get_with("/hello.txt", "Connection: close\r\n");
        assert_eq!((response.status, response.text()), (200, "hello"));
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn by_h2(way: &Way, stop: &AtomicBool, count: &AtomicUsize) {
    let connect = || H2Client::connect_with(way.address(), &[]);
    let mut client = connect();
    while !stop.load(Ordering::Relaxed) {
        let id = client.request(&request("GET", "/medium.bin"), b"");
        let response = client.response(id);
        assert!(response.status == 200 && response.body == patterned(100_000));
        count.fetch_add(1, Ordering::Relaxed);
        if client.goaway.is_some() {
            client = connect();
        }
    }
}

#[test]
fn upgrades_under_load_refuse_reset_and_spoil_nothing() {
    let (tree, authority) = (site(), Authority::new());
    let plan = Plan {
        sections: "workers = 2\n".to_owned(),
        launch: Box::new(|launch| {
            launch.admin();
        }),
        ..Plan::default()
    };
    let tls = TlsServer::with(&authority, tree.path(), plan);
    let server = &tls.server;
    let (plain, h2) = (authority.way(&tls), Way::by_h2(&authority, &tls));
    let clients: [&Asks<'_>; 6] = [
        &|stop, count| kept(|| server.connect(), stop, count),
        &|stop, count| kept(|| server.connect(), stop, count),
        &|stop, count| single(|| server.connect(), stop, count),
        &|stop, count| single(|| server.connect(), stop, count),
        &|stop, count| single(|| plain.connect(), stop, count),
        &|stop, count| by_h2(&h2, stop, count),
    ];
    let mut slow = Client::connect_narrow(server.address(), 4096).expect("connect");
    slow.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n");
    let rest = std::thread::spawn(move || slow.try_receive(Asked::Body).expect("all of it").body);
    let session = authority.folder().join("session");
    let session = session.to_str().expect("a path");
    let ask = "GET /hello.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let said = tls.openssl(&authority, &["-ign_eof", "-sess_out", session], ask);
    assert!(said.contains("hello"), "{said}");
    let next = load(&clients, |go_on| {
        let first = Next::of(server, None);
        go_on();
        let second = Next::of(server, Some(&first));
        go_on();
        second
    });
    assert!(rest.join().expect("no panic") == patterned(20_000_000), "a response goes on");
    assert_eq!(Client::connect(&server.admin()).expect("connect").get("/health").status, 200);
    let said = tls.openssl(&authority, &["-ign_eof", "-sess_in", session], ask);
    assert!(said.contains("hello"), "a session of the process before fails nothing: {said}");
    // A reload is obeyed by the process that serves.
    kill_process(next.pid, Signal::HUP).expect("it is there");
    eventually("it reloads", || server.log().contains("reloaded"));
    assert!(!server.log().contains("the upgrade failed"), "{}", server.log());
}

/// Puts another program in the place of the one that runs.
fn replace(place: &Path, content: &[u8]) {
    let beside = place.with_extension("new");
    fs::write(&beside, content).expect("written");
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).expect("a program");
    fs::rename(&beside, place).expect("replaced");
}

/// Several versions lie side by side, and a link is turned to the new one; then the file that it leads to is replaced.
#[test]
fn a_link_that_was_turned_leads_to_the_next_program() {
    let (tree, home) = (site(), Tree::new());
    let whole = fs::read(program()).expect("the program");
    ["one", "two", "three"].iter().for_each(|name| replace(&home.at(name), &whole));
    let turn = |to: &str| {
        let beside = home.at("link.new");
        std::os::unix::fs::symlink(to, &beside).expect("a link");
        fs::rename(&beside, home.at("link")).expect("turned");
    };
    turn("one");
    let mut server = Server::start(tree.path(), |launch| {
        launch.program(home.at("link"));
    });
    let runs = |next: &Next| {
        let number = next.pid.as_raw_nonzero();
        fs::read_link(format!("/proc/{number}/exe")).expect("its program")
    };
    let settled = |name: &str| home.at(name).canonicalize().expect("a path");
    turn("two");
    let second = Next::of(&server, None);
    assert!(server.wait(PATIENCE).is_some_and(|status| status.success()));
    assert_eq!(runs(&second), settled("two"));
    replace(&home.at("two"), &whole);
    let third = Next::of(&server, Some(&second));
    assert_eq!(runs(&third), settled("two"));
    turn("three");
    let fourth = Next::of(&server, Some(&third));
    assert_eq!(runs(&fourth), settled("three"));
    assert_eq!(server.get("/hello.txt").text(), "hello");
}

#[test]
fn an_upgrade_that_fails_changes_nothing_and_the_log_says_why() {
    let (tree, home) = (site(), Tree::new());
    let (place, unix) = (home.at("afpa"), home.at("socket"));
    let whole = fs::read(program()).expect("the program");
    replace(&place, &whole);
    let root = tree.path().display();
    let mut server = Server::start(tree.path(), |launch| {
        launch.program(&place).written(|endpoint| {
            let unix = unix.display();
            format!("[[site]]\nlisten = [\"{endpoint}\", \"unix:{unix}\"]\nroot = \"{root}\"\n")
        });
    });
    let right = fs::read_to_string(server.configuration()).expect("its configuration");
    let configuration = server.configuration();
    let mut kept = server.connect();
    let mut fails = |server: &Server, why: &str| {
        assert_eq!(kept.get("/hello.txt").text(), "hello");
        let said =
            |log: &str| log.lines().any(|l| l.contains("the upgrade failed") && l.contains(why));
        eventually(why, || said(&server.log()));
        assert_eq!(kept.get("/hello.txt").text(), "hello", "the connection is kept");
        assert_eq!(server.get("/hello.txt").text(), "hello");
    };

    // The next process has the sockets when it fails, and leaves their files alone.
    let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = taken.local_addr().expect("its address");
    let more = format!("[[site]]\nlisten = [\"{address}\"]\nhosts = [\"b\"]\nroot = \"{root}\"\n");
    fs::write(&configuration, format!("{right}{more}")).expect("written");
    server.signal(Signal::USR2);
    fails(&server, "exit status: 1");
    UnixStream::connect(&unix).expect("the socket is there still");

    fs::write(&configuration, right.replace("listen", "lisen")).expect("written");
    server.signal(Signal::USR2);
    eventually("the cause is told", || server.log().contains("unknown setting `lisen`"));
    let failures = || server.log().matches("the upgrade failed").count();
    eventually("it fails as well", || failures() == 2);
    fs::write(&configuration, &right).expect("written");

    replace(&place, b"no program");
    server.signal(Signal::USR2);
    fails(&server, "cannot start");

    let number = home.at("number");
    let silent = format!(
        "#!/bin/sh\necho $$ > {0}.new\nmv {0}.new {0}\nexec sleep 1000\n",
        number.display()
    );
    replace(&place, silent.as_bytes());
    server.signal(Signal::USR2);
    let hangs = || fs::read_to_string(&number).ok()?.trim().parse::<u32>().ok();
    eventually("it hangs", || hangs().is_some());
    server.signal(Signal::USR2);
    eventually("one at a time", || server.log().contains("in progress already"));
    signal(hangs().expect("its number"), Signal::KILL);
    fails(&server, "signal: 9");

    replace(&place, &whole);
    let next = Next::of(&server, None);
    assert!(server.wait(PATIENCE).is_some_and(|status| status.success()));
    assert_eq!(server.get("/hello.txt").text(), "hello");

    // TERM ends both, the one that serves and the one that has begun.
    fs::remove_file(&number).expect("removed");
    replace(&place, silent.as_bytes());
    kill_process(next.pid, Signal::USR2).expect("it is there");
    eventually("it hangs", || hangs().is_some());
    kill_process(next.pid, Signal::TERM).expect("it is there");
    let silent = hangs().expect("its number");
    eventually("both have ended", || is_gone(silent));
    assert!(Client::connect(server.endpoint()).is_err() || test_kill_process(next.pid).is_ok());
}
