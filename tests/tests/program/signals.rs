//! Stopping, draining, reloading; starts that fail; the user of the process.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use afpa_testkit::server::free_address;
use afpa_testkit::{
    Asked, Client, Endpoint, Server, Tree, eventually, limits::is_root, skip, tree::patterned,
};
use afpa_tests::proxy::Raw;
use rustix::process::Signal;

const LARGE: usize = 20_000_000;

fn site() -> Tree {
    let tree = Tree::new();
    tree.file("index.html", "index");
    tree.file("other.html", "other");
    tree.file("hello.txt", "hello");
    tree.file("large.bin", patterned(LARGE));
    tree
}

/// A download of which only the first bytes have been read.
fn slow_download(server: &Server) -> (Client, Vec<u8>) {
    let mut client = Client::connect_narrow(server.address(), 4096).expect("connect");
    client.send("GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n");
    let mut first = vec![0; 10_000];
    let count = client.read_raw(&mut first).expect("the first bytes");
    first.truncate(count);
    (client, first)
}

fn refuses_connections(server: &Server) -> bool {
    Client::connect(server.endpoint()).is_err()
}

#[test]
fn quit_lets_downloads_end_and_takes_no_new_connection() {
    let tree = site();
    let mut server = Server::start(tree.path(), |_| ());
    let mut idle = server.connect();
    idle.assert_open("/hello.txt");
    let (mut download, mut got) = slow_download(&server);
    server.signal(Signal::QUIT);
    eventually("new connections are refused", || refuses_connections(&server));
    idle.assert_closed();
    assert!(server.is_running(), "the download is not over");
    got.extend(download.read_to_close().expect("the rest of the download"));
    assert!(got.ends_with(&patterned(LARGE)), "the download is whole");
    let status = server.wait(Duration::from_secs(5)).expect("it ends");
    assert!(status.success(), "{status:?}");
}

#[test]
fn quit_tells_a_kept_alive_client_that_this_was_the_last_response() {
    let tree = site();
    let mut server = Server::start(tree.path(), |_| ());
    let (mut download, _) = slow_download(&server);
    let mut busy = server.connect();
    // Half a request is in when the signal comes: it gets its answer.
    busy.send("GET /hello.txt HTTP/1.1\r\n");
    thread::sleep(Duration::from_millis(50));
    server.signal(Signal::QUIT);
    eventually("new connections are refused", || refuses_connections(&server));
    busy.send("Host: h\r\n\r\n");
    let response = busy.receive();
    assert_eq!(response.text(), "hello");
    assert!(response.says_close(), "{response:?}");
    busy.assert_closed();
    download.read_to_close().expect("the rest of the download");
    assert!(server.wait(Duration::from_secs(5)).expect("it ends").success());
}

#[test]
fn quit_does_not_wait_for_ever() {
    let tree = site();
    let mut server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("timeouts.shutdown", "\"500ms\"").set("timeouts.write", "\"60s\"");
        });
    });
    let (_stalled, _) = slow_download(&server);
    let start = Instant::now();
    server.signal(Signal::QUIT);
    assert!(server.wait(Duration::from_secs(5)).is_some(), "it ends all the same");
    assert!(start.elapsed() >= Duration::from_millis(300), "it waited a little");
}

#[test]
fn term_and_int_stop_at_once() {
    let tree = site();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(tree.path(), |_| ());
        let (mut download, _) = slow_download(&server);
        let mut idle = server.connect();
        idle.assert_open("/hello.txt");
        server.signal(signal);
        // QUIT would wait for the download, half a minute.
        let status = server.wait(Duration::from_secs(20)).expect("it ends");
        assert!(status.success(), "{signal:?}: {status:?}, signal {:?}", status.signal());
        let rest = download.read_to_close().expect("closed");
        assert!(rest.len() < LARGE);
        idle.assert_closed();
        assert!(!Path::new(&server.home().join("control.sock")).exists(), "it cleans up");
    }
}

#[test]
fn hup_takes_a_changed_configuration_and_keeps_the_connections() {
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("site.index", "[\"index.html\"]");
        });
    });
    let mut kept = server.connect();
    assert_eq!(kept.get("/").text(), "index");
    let text = fs::read_to_string(server.configuration()).expect("the configuration");
    fs::write(server.configuration(), text.replace("index.html", "other.html")).expect("write");
    assert_eq!(kept.get("/").text(), "index", "nothing changes before the signal");
    server.signal(Signal::HUP);
    eventually("the new index is served", || server.get("/").text() == "other");
    assert_eq!(kept.get("/").text(), "other", "on an old connection too");
    kept.assert_open("/hello.txt");
}

#[test]
fn hup_ends_the_connections_of_an_address_that_is_given_up() {
    let tree = site();
    let app = Raw::named("app");
    let second = free_address();
    // With one worker they learn it all at once.
    let text = |listen: &[String]| {
        let (root, to) = (tree.path(), app.to());
        format!("workers = 1\n[[site]]\nlisten = {listen:?}\nroot = {root:?}\nto = {to:?}\n")
    };
    let server = Server::start("/", |launch| {
        launch.written(|listen| text(&[listen.to_string(), second.to_string()]));
    });
    let connect = || Client::connect(&Endpoint::Tcp(second));
    eventually("the second address is open", || connect().is_ok());
    let connect = || connect().expect("connected");
    let (mut idle, mut new, mut kept) = (connect(), connect(), server.connect());
    assert_eq!(idle.get("/hello.txt").status, 200);
    assert_eq!(kept.get("/hello.txt").status, 200);
    fs::write(server.configuration(), text(&[server.endpoint().to_string()])).expect("write");
    server.signal(Signal::HUP);
    idle.assert_closed();
    // A connection without a request so far may send one; its answer is 421, as the site is no longer there.
    let last = new.get("/hello.txt");
    assert!(last.status == 421 && last.says_close(), "{last:?}");
    new.assert_closed();
    kept.assert_open("/hello.txt");
    assert_eq!(kept.get("/").text(), "app");
}

#[test]
fn hup_with_a_broken_configuration_changes_nothing_and_says_where() {
    let tree = site();
    let mut server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("site.index", "[\"index.html\"]");
        });
    });
    assert_eq!(server.get("/").text(), "index");
    let good = fs::read_to_string(server.configuration()).expect("the configuration");
    let broken_lines = ["no_such_setting = 1", "index = 7", "index = [", "= ="];
    for (round, line) in broken_lines.into_iter().enumerate() {
        let text = good.replace("index.html", "other.html") + line + "\n";
        let number = text.lines().count();
        fs::write(server.configuration(), text).expect("write");
        server.signal(Signal::HUP);
        eventually("the error is told with file and line", || {
            server.log().matches(&format!("afpa.toml:{number}")).count() > round
        });
        assert!(server.is_running());
        assert_eq!(server.get("/").text(), "index", "the old configuration holds");
    }
    fs::write(server.configuration(), good.replace("index.html", "other.html")).expect("write");
    server.signal(Signal::HUP);
    eventually("a mended one is taken", || server.get("/").text() == "other");
}

#[test]
fn signals_are_heard_from_the_first_response_on() {
    let tree = site();
    for signal in [Signal::HUP, Signal::USR1, Signal::QUIT].repeat(6) {
        // Nothing is waited for but this response.
        let mut server = Server::launch(tree.path(), |_| ());
        eventually("it answers", || !refuses_connections(&server));
        assert_eq!(server.get("/hello.txt").status, 200);
        server.signal(signal);
        if signal == Signal::QUIT {
            let status = server.wait(Duration::from_secs(5)).expect("it ends");
            assert!(status.success(), "QUIT: {status:?}");
        } else {
            thread::sleep(Duration::from_millis(20));
            assert!(server.is_running(), "{signal:?} ended it");
        }
    }
}

#[test]
fn hup_applies_limits_and_times_to_those_who_come_after() {
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.idle_time(Duration::from_secs(60)).head_time(Duration::from_secs(60));
        });
    });
    assert_eq!(server.get("/hello.txt").status, 200);
    let text = fs::read_to_string(server.configuration()).expect("the configuration");
    fs::write(server.configuration(), text.replace("60000ms", "300ms")).expect("write");
    server.signal(Signal::HUP);
    eventually("an idle connection is closed soon", || {
        let mut client = server.connect();
        client.assert_open("/hello.txt");
        client.set_patience(Duration::from_secs(2)).expect("time-out");
        client.read_to_close().is_ok()
    });
}

#[test]
fn reloading_under_load_loses_no_response_and_leaks_nothing() {
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("site.index", "[\"index.html\"]");
        });
    });
    let good = fs::read_to_string(server.configuration()).expect("the configuration");
    let reload = |index: &str| {
        fs::write(server.configuration(), good.replace("index.html", index)).expect("write");
        server.signal(Signal::HUP);
        let body = index.split('.').next().expect("a name");
        eventually("the change is taken", || server.get("/").text() == body);
    };
    reload("other.html");
    reload("index.html");
    server.settle();
    let process = server.process();
    let held =
        || (process.descriptors().expect("descriptors"), process.threads().expect("threads"));
    let before = held();
    let (stop, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut client = server.connect();
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(client.get("/hello.txt").text(), "hello");
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
        eventually("they are served", || answered.load(Ordering::Relaxed) > 0);
        for round in 0..20 {
            reload(if round % 2 == 0 { "other.html" } else { "index.html" });
        }
        eventually("many are served", || answered.load(Ordering::Relaxed) > 100);
        stop.store(true, Ordering::Relaxed);
        reader.join().expect("every request was answered");
    });
    // Helper threads come and go; twenty reloads must not show.
    eventually("what the old configurations held is let go", || {
        let now = held();
        now.0 <= before.0 + 8 && now.1 <= before.1 + 12
    });
}

/// Names of the threads that are in the end of an inotify instance just now.
fn ending_a_watch(server: &Server) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{}/task", server.pid())).expect("threads");
    let inside = threads.flatten().filter_map(|thread| {
        let stack = fs::read_to_string(thread.path().join("stack")).ok()?;
        let name = || fs::read_to_string(thread.path().join("comm")).ok();
        stack.contains("inotify_release").then(name)?.map(|name| name.trim().to_owned())
    });
    inside.collect()
}

/// The kernel takes its time for the end of one, on a busy machine seconds, in which a worker would answer nobody and
/// no signal be heard.
#[test]
fn a_reload_ends_no_inotify_instance() {
    if !is_root() {
        skip!("not root: what threads wait for in the kernel cannot be seen");
    }
    let tree = site();
    let server = Server::start(tree.path(), |launch| {
        launch.set(|settings| {
            settings.set("site.index", "[\"index.html\"]");
        });
    });
    let stop = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut seen = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                seen.extend(ending_a_watch(&server));
            }
            seen
        });
        for round in 1..=30 {
            server.signal(Signal::HUP);
            eventually("it is taken", || server.log().matches("reloaded").count() >= round);
            assert_eq!(server.get("/hello.txt").text(), "hello");
        }
        thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        watcher.join().expect("the watcher")
    });
    assert!(seen.is_empty(), "{seen:?}");
}

#[test]
fn started_by_root_it_serves_as_somebody_without_rights() {
    if !is_root() {
        skip!("not root: there are no rights to drop");
    }
    let tree = site();
    let server = Server::start(tree.path(), |_| ());
    assert_eq!(server.get("/hello.txt").text(), "hello");
    let process = server.process();
    let users = process.users().expect("users");
    assert!(users.len() == 4 && users.iter().all(|user| *user != 0), "{users:?}");
    assert!(!process.groups().expect("groups").contains(&0), "root's groups are left too");
    assert_eq!(process.capabilities().expect("capabilities"), 0);
    // Every thread, not only the first.
    for thread in fs::read_dir(format!("/proc/{}/task", server.pid())).expect("threads") {
        let status = fs::read_to_string(thread.expect("thread").path().join("status"));
        let status = status.unwrap_or_default();
        assert!(!status.contains("Uid:\t0\t"), "{status}");
    }
}

#[test]
fn a_start_that_cannot_succeed_fails_with_the_reason() {
    let tree = site();
    let mut server = Server::launch(&tree.at("no/such/folder"), |_| ());
    let status = server.wait(Duration::from_secs(30)).expect("it ends");
    assert!(!status.success());
    assert!(server.log().contains("no/such/folder"), "{}", server.log());
    server.kill();

    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let address = taken.local_addr().expect("address");
    let mut server = Server::launch(tree.path(), |launch| {
        launch.listen(Endpoint::Tcp(address));
    });
    let status = server.wait(Duration::from_secs(30)).expect("it ends");
    assert!(!status.success());
    assert!(server.log().contains(&address.to_string()), "{}", server.log());
    // The message names the process that holds the address, and the remedy.
    let holder = format!("process {} (", std::process::id());
    assert!(server.log().contains(&holder), "{}", server.log());
    assert!(server.log().contains("end it, or listen elsewhere"), "{}", server.log());
    server.kill();
}

#[test]
fn half_a_request_does_not_hold_up_a_stop() {
    let tree = site();
    let mut server = Server::start(tree.path(), |_| ());
    let mut client = server.connect();
    client.send("GET /hello.txt HT");
    client.set_patience(Duration::from_millis(50)).expect("time-out");
    assert!(client.try_receive(Asked::Body).is_err());
    server.signal(Signal::TERM);
    assert!(server.wait(Duration::from_secs(3)).expect("it ends").success());
}
