//! Several sites: each host is answered with its own files, in the kernel where that is certain.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use afpa_testkit::{Client, Endpoint, Response, Server, Tree, eventually};
use afpa_tests::proxy::{answer, read_head};
use rustix::process::Signal;
use serde_json::Value;

use crate::lab::{FIREWALL_INTERVAL, Lab, PORT, SELF_CHECK, answers, stats};

/// The same path everywhere.
const PATH: &str = "/same.txt";

/// A root whose files say where they lie.
fn root(name: &str) -> Tree {
    let tree = Tree::new();
    tree.file("same.txt", name);
    tree
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 77, 0, 1], port))
}

/// A `[[site]]` on a port, with these hosts, and `more` settings.
fn site(port: u16, hosts: &[&str], more: &str) -> String {
    let hosts = if hosts.is_empty() { String::new() } else { format!("hosts = {hosts:?}\n") };
    format!("[[site]]\nlisten = [\"{}\"]\n{hosts}{more}\n", at(port))
}

fn cached(port: u16, hosts: &[&str], root: &Tree) -> String {
    site(port, hosts, &format!("root = {:?}", root.path()))
}

/// A server on the server's side that answers with its name. It runs for as long as the test program, since it could be
/// ended only from the server's side.
fn application(lab: &Lab, name: &'static str) -> String {
    lab.on_the_server(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let to = listener.local_addr().expect("an address").to_string();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    while read_head(&mut stream).is_some() && answer(&mut stream, 200, name) {}
                });
            }
        });
        to
    })
}

/// The same, whose answers may be kept for long.
fn keepable(lab: &Lab, name: &'static str) -> String {
    lab.on_the_server(|| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let to = listener.local_addr().expect("an address").to_string();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {}\r\n\r\n{name}",
                    name.len()
                );
                thread::spawn(move || {
                    while read_head(&mut stream).is_some()
                        && stream.write_all(answer.as_bytes()).is_ok()
                    {}
                });
            }
        });
        to
    })
}

/// A whole file with these sites.
fn whole(sites: &str) -> String {
    format!(
        "internals.firewall_interval = {FIREWALL_INTERVAL}\n\
         internals.self_check = {SELF_CHECK}\n{sites}"
    )
}

fn start(
    lab: &Lab,
    tree: &Tree,
    text: &str,
    configure: impl FnOnce(&mut afpa_testkit::Launch),
) -> Server {
    lab.server(tree, |launch| {
        launch.written(|_| whole(text));
        configure(launch);
    })
}

fn request(host: &str, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

fn ask(port: u16, host: &str, target: &str) -> Response {
    let mut client = Client::connect(&Endpoint::Tcp(at(port))).expect("connected");
    client.exchange(request(host, target))
}

/// Asks until the kernel answers, and sees what it says.
#[track_caller]
fn from_kernel(server: &Server, port: u16, host: &str, target: &str) -> String {
    let mut text = String::new();
    eventually(&format!("the kernel answers {host} {target}"), || {
        let before = answers(server);
        text = ask(port, host, target).text().to_owned();
        answers(server) > before
    });
    text
}

/// Asks some times, and sees that the kernel never answers.
#[track_caller]
fn from_user_mode(server: &Server, port: u16, host: &str, target: &str) -> (u16, String) {
    let before = answers(server);
    let all: Vec<Response> = (0..4).map(|_| ask(port, host, target)).collect();
    assert_eq!(answers(server), before, "{host} {target}");
    (all[3].status, all[3].text().to_owned())
}

/// The row of a site in the statistics.
fn row(server: &Server, name: &str) -> Value {
    let stats = stats(server);
    let rows = stats["sites"].as_array().expect("a table");
    rows.iter().find(|row| row["site"] == name).unwrap_or_else(|| panic!("{rows:?}")).clone()
}

#[test]
fn each_host_is_answered_with_its_own_files() {
    let Some(lab) = Lab::new() else { return };
    let [one, two, below, star, other, any] =
        ["one", "two", "below", "star", "other", "any"].map(root);
    let below = format!(
        "root = {:?}\n[[site.path]]\nprefix = \"/below/\"\nroot = {:?}\n\
         [[site.path]]\nprefix = \"/beta/\"\nif_cookies = {{ beta = \"*\" }}\nroot = {:?}\n\
         [[site.path]]\nprefix = \"/asked/\"\nif_query = {{ q = \"*\" }}\nroot = {:?}\n\
         [[site.path]]\nprefix = \"/formed/\"\nif_path = [\"~/x$\"]\nroot = {:?}\n\
         [[site.path]]\nprefix = \"/moved/\"\nrewrite = \"/below/{{rest}}\"\n\
         [[site.path]]\nprefix = \"/near/\"\nif_clients = [\"192.0.2.0/24\"]\nroot = {:?}",
        two.path(),
        below.path(),
        below.path(),
        below.path(),
        below.path(),
        below.path()
    );
    let text = [
        cached(PORT, &["one.test", "www.one.test"], &one),
        site(PORT, &["two.test"], &below),
        site(PORT, &["app.test"], &to_uncached(application(&lab, "application"))),
        cached(PORT, &["*.star.test"], &star),
        cached(PORT + 1, &["one.test"], &other),
        cached(PORT + 1, &[], &any),
    ];
    for name in ["beta", "asked", "formed", "near", "moved"] {
        two.file(format!("{name}/same.txt"), format!("not {name}"));
    }
    let log_file = |server: &Server| server.home().join("access.log");
    let server = start(&lab, &one, &text.concat(), |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
    });
    for (port, host, target, content) in [
        (PORT, "one.test", PATH, "one"),
        (PORT, "WWW.One.test:8080", PATH, "one"),
        (PORT, "two.test", PATH, "two"),
        (PORT, "two.test", "/below/same.txt", "below"),
        (PORT + 1, "one.test", PATH, "other"),
        // A port that nobody listens on does not make it another host.
        (PORT + 1, "One.test:99", PATH, "other"),
        (PORT + 1, "two.test", PATH, "any"),
        (PORT + 1, "10.77.0.1:8081", PATH, "any"),
    ] {
        assert_eq!(from_kernel(&server, port, host, target), content, "{port} {host} {target}");
    }
    for (port, host, target, expected) in [
        (PORT, "app.test", PATH, (200, "application")),
        (PORT, "x.star.test", PATH, (200, "star")),
        (PORT, "two.test", "/beta/same.txt", (200, "not beta")),
        (PORT, "two.test", "/asked/same.txt", (200, "not asked")),
        (PORT, "two.test", "/asked/same.txt?q", (200, "below")),
        (PORT, "two.test", "/formed/same.txt", (200, "not formed")),
        (PORT, "two.test", "/near/same.txt", (200, "not near")),
        (PORT, "two.test", "/moved/same.txt", (200, "below")),
        (PORT, "one.test:99", PATH, (200, "one")),
    ] {
        let (status, text) = from_user_mode(&server, port, host, target);
        assert_eq!((status, text.as_str()), expected, "{host} {target}");
    }
    for host in ["unknown.test", "star.test", "one.test..", "10.77.0.1"] {
        assert_eq!(from_user_mode(&server, PORT, host, PATH).0, 421, "{host}");
    }
    // One connection for answers of the kernel and of user mode.
    let mut client = server.connect();
    for _ in 0..5 {
        for (host, content) in [
            ("one.test", "one"),
            ("two.test", "two"),
            ("app.test", "application"),
            ("a.star.test", "star"),
        ] {
            assert_eq!(client.exchange(request(host, PATH)).text(), content);
        }
    }
    what_is_counted(&server);
    let kernel = answers(&server);
    let lines = || {
        let text = fs::read_to_string(log_file(&server)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["source"] == "kernel").collect::<Vec<_>>()
    };
    eventually("every answer is logged", || lines().len() as u64 == kernel);
    let hosts = ["one.test", "WWW.One.test:8080", "two.test", "One.test:99", "10.77.0.1:8081"];
    for host in hosts {
        assert!(lines().iter().any(|line| line["host"] == host), "{host}: {:?}", lines());
    }
    // The same block on another address takes the place of the first; on a busy machine that may be before
    // the line is made.
    let forgotten = lines().iter().filter(|line| line["host"] == "").count();
    assert!(forgotten * 4 < lines().len(), "{:?}", lines());
}

#[test]
fn the_kernel_answers_with_files_and_never_for_a_fallback() {
    let Some(lab) = Lab::new() else { return };
    let tree = root("file");
    let settings = format!(
        "root = {:?}\nfallback = {:?}\ncache = {{ mode = \"auto\", in_kernel = true }}\n\
         [[site.path]]\nprefix = \"/page/\"\nfallback = \"{PATH}\"",
        tree.path(),
        keepable(&lab, "application")
    );
    let server = start(&lab, &tree, &site(PORT, &["a.test"], &settings), |_| {});
    assert_eq!(from_kernel(&server, PORT, "a.test", PATH), "file");
    tree.dir("page");
    for (target, without) in [("/new.txt", "application"), ("/page/new.txt", "file")] {
        for content in ["first", "second"] {
            let (status, text) = from_user_mode(&server, PORT, "a.test", target);
            assert_eq!((status, text.as_str()), (200, without), "{target}");
            tree.file(&target[1..], content);
            eventually("the file is served", || ask(PORT, "a.test", target).text() == content);
            assert_eq!(from_kernel(&server, PORT, "a.test", target), content);
            tree.remove(&target[1..]);
            eventually("the fallback answers", || ask(PORT, "a.test", target).text() == without);
        }
    }
}

#[test]
fn the_kernel_gives_the_fields_of_files_and_none_that_depend_on_the_request() {
    let Some(lab) = Lab::new() else { return };
    let [tree, open] = ["file", "open"].map(root);
    let settings = format!(
        "root = {:?}\n[[site.header]]\nset = {{ X-Own = \"afpa\" }}\nremove = [\"Server\"]\n\
         [[site.header]]\nprefix = \"{PATH}\"\nset = {{ X-Page = \"yes\" }}\n\
         [site.cors]\norigins = [\"*\"]\n\
         [[site.path]]\nprefix = \"/api/\"\nto = {:?}\ncache = \"auto\"",
        tree.path(),
        keepable(&lab, "application")
    );
    let by_origin =
        format!("root = {:?}\n[site.cors]\norigins = [\"https://a.test\"]", open.path());
    let to = keepable(&lab, "marked");
    let marked = |mode: &str| {
        format!(
            "root = {:?}\nrequest_id = \"{mode}\"\n\
             [[site.path]]\nprefix = \"/api/\"\nto = {:?}\ncache = \"auto\"",
            tree.path(),
            to
        )
    };
    let text = [
        site(PORT, &["a.test"], &settings),
        site(PORT, &["b.test"], &by_origin),
        site(PORT, &["c.test"], &marked("on")),
        site(PORT, &["d.test"], &marked("servers")),
    ];
    let server = start(&lab, &tree, &text.concat(), |_| {});
    let by_user_mode = ask(PORT, "a.test", PATH);
    assert_eq!(from_kernel(&server, PORT, "a.test", PATH), "file");
    let heads = || {
        let before = answers(&server);
        let answer = ask(PORT, "a.test", PATH);
        (answers(&server) > before).then_some(answer)
    };
    let mut by_kernel = None;
    eventually("the kernel answers", || {
        by_kernel = heads();
        by_kernel.is_some()
    });
    let by_kernel = by_kernel.expect("an answer");
    for name in ["x-own", "x-page", "server", "access-control-allow-origin", "etag", "vary"] {
        assert_eq!(by_kernel.field(name), by_user_mode.field(name), "{name}");
    }
    assert_eq!((by_kernel.field("x-own"), by_kernel.field("server")), (Some("afpa"), None));
    assert_eq!(by_kernel.field("x-page"), Some("yes"));
    assert_eq!(by_kernel.field("access-control-allow-origin"), Some("*"));
    assert_eq!(from_user_mode(&server, PORT, "b.test", PATH), (200, "open".to_owned()));
    assert_eq!(from_user_mode(&server, PORT, "a.test", "/api/x").1, "application");
    // Each answer of the one has an id of its own; servers alone learn those of the other.
    assert_eq!(from_user_mode(&server, PORT, "c.test", PATH), (200, "file".to_owned()));
    assert_eq!(from_user_mode(&server, PORT, "c.test", "/api/x").1, "marked");
    assert_eq!(from_kernel(&server, PORT, "d.test", PATH), "file");
    assert_eq!(from_kernel(&server, PORT, "d.test", "/api/x"), "marked");
}

#[test]
fn the_log_names_the_client_of_a_router_that_the_site_believes() {
    let Some(lab) = Lab::new() else { return };
    let [one, two] = ["one", "two"].map(root);
    let believing = format!("root = {:?}\nforwarded_from = [\"10.77.64.0/24\"]", one.path());
    let text = [site(PORT, &["one.test"], &believing), cached(PORT, &["two.test"], &two)].concat();
    let server = start(&lab, &one, &text, |launch| {
        let log = launch.home().join("access.log");
        launch.arg("--access-log").arg(log).arg("--log-format").arg("json");
    });
    let mut router = server.connect();
    for host in ["one.test", "two.test"] {
        from_kernel(&server, PORT, host, PATH);
        let before = answers(&server);
        let request =
            request(host, PATH).replace("\r\n\r\n", "\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n");
        eventually("the kernel answers", || {
            router.exchange(&request);
            answers(&server) > before
        });
    }
    let clients = |host: &str, client: &str| {
        let text = fs::read_to_string(server.home().join("access.log")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let kernels = |line: &Value| line["source"] == "kernel" && line["host"] == host;
        lines.filter(kernels).any(|line| line["client"] == client)
    };
    eventually("it is logged", || clients("one.test", "192.0.2.9"));
    eventually("it is logged, too", || clients("two.test", "10.77.64.1"));
    assert!(!clients("two.test", "192.0.2.9"), "nobody said that the router may be believed there");
}

fn what_is_counted(server: &Server) {
    for (name, state, answered) in [
        ("one.test", "yes", true),
        ("two.test", "yes", true),
        ("app.test", "no: nothing of it is cached", false),
        ("*.star.test", "no: its hosts are patterns", false),
        ("one.test #2", "yes", true),
        ("10.77.0.1:8081", "yes", true),
    ] {
        let row = row(server, name);
        assert_eq!(row["kernel"], state, "{row}");
        let from_kernel = row["from_kernel"].as_u64().expect("a count");
        assert_eq!(from_kernel > 0, answered, "{row}");
        assert!(row["requests"].as_u64().expect("a count") > from_kernel, "{row}");
    }
    let stats = stats(server);
    let all = stats["sites"].as_array().expect("a table").iter();
    let sum: u64 = all.map(|row| row["from_kernel"].as_u64().expect("a count")).sum();
    assert_eq!(sum, stats["fast_path"]["answers"].as_u64().expect("a count"));
    let metrics = Client::connect(&server.control()).expect("control").get("/metrics");
    let metrics = metrics.text();
    let own = row(server, "one.test")["from_kernel"].clone();
    let line =
        format!("afpa_site_kernel_responses_total{{site=\"one.test\",class=\"2xx\"}} {own}\n");
    assert!(metrics.contains(&line), "{line}{metrics}");
    let table = server.command(&["stats", "--all"]);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains("no: its hosts are patterns"), "{table}");
}

/// A site whose answers are not kept: the kernel has nothing to answer for it.
fn to_uncached(application: impl std::fmt::Display) -> String {
    format!("to = \"{application}\"\ncache = {{ mode = \"off\" }}")
}

/// Writes a configuration, has it read, and waits until that is done.
fn reload(server: &Server, text: &str) {
    let before = server.log().matches("reloaded").count();
    let new = server.home().join("new.toml");
    fs::write(&new, whole(text)).expect("written");
    fs::rename(new, server.configuration()).expect("renamed");
    server.signal(Signal::HUP);
    eventually("it is read", || server.log().matches("reloaded").count() > before);
}

/// Waits until the workers have a configuration, each at its own moment.
#[track_caller]
fn everybody_says(host: &str, status: u16, content: &str) {
    eventually(&format!("{host} is {content}"), || {
        (0..20).all(|_| {
            let answer = ask(PORT, host, PATH);
            answer.status == status && (status != 200 || answer.text() == content)
        })
    });
}

/// Asks until `stop` is set, and sends each change to `changes`; every answer is one of these contents.
fn watch(host: &str, stop: &AtomicBool, contents: &[&str], changes: &Sender<String>) {
    let mut client = Client::connect(&Endpoint::Tcp(at(PORT))).expect("connected");
    let mut seen = String::new();
    while !stop.load(Ordering::Relaxed) {
        let answer = client.exchange(request(host, PATH));
        let text = answer.text();
        assert!(answer.status == 200 && contents.contains(&text), "{host}: {answer:?}");
        if seen != text {
            text.clone_into(&mut seen);
            // Behind the last change the receiver is gone.
            let _ = changes.send(seen.clone());
        }
    }
}

/// Waits until a client that watches has seen this content.
#[track_caller]
fn has_seen(changes: &Receiver<String>, content: &str) {
    let next = || changes.recv_timeout(Duration::from_secs(20)).expect("a change is seen");
    while next() != content {}
}

#[test]
fn reloads_change_sites_under_load() {
    let Some(lab) = Lab::new() else { return };
    let [one, two, three] = ["one", "two", "three"].map(root);
    let pair =
        |a: &Tree, b: &Tree| [cached(PORT, &["a.test"], a), cached(PORT, &["b.test"], b)].concat();
    let server = start(&lab, &one, &pair(&one, &two), |_| ());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        let watchers = ["a.test", "b.test"].map(|host| {
            let (change, changes) = mpsc::channel();
            scope.spawn(move || watch(host, stop, &["one", "two"], &change));
            changes
        });
        has_seen(&watchers[0], "one");
        has_seen(&watchers[1], "two");
        for round in 0..4 {
            let (a, b) = if round % 2 == 0 { ("one", "two") } else { ("two", "one") };
            assert_eq!(from_kernel(&server, PORT, "a.test", PATH), a);
            assert_eq!(from_kernel(&server, PORT, "b.test", PATH), b);
            let (first, second) = if round % 2 == 0 { (&two, &one) } else { (&one, &two) };
            reload(&server, &pair(first, second));
            everybody_says("a.test", 200, b);
            everybody_says("b.test", 200, a);
            has_seen(&watchers[0], b);
            has_seen(&watchers[1], a);
            // From now on the old content would be stale, from the kernel as from user mode.
            for _ in 0..50 {
                assert_eq!(ask(PORT, "a.test", PATH).text(), b);
                assert_eq!(ask(PORT, "b.test", PATH).text(), a);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let counted = row(&server, "a.test")["from_kernel"].as_u64().expect("a count");
    assert!(counted > 0);
    // One site goes, one is distributed, one comes, and one takes all others.
    let text = [
        cached(PORT, &["a.test"], &three),
        site(PORT, &["b.test"], &to_uncached(application(&lab, "application"))),
        cached(PORT, &["c.test"], &two),
        cached(PORT, &[], &one),
    ];
    reload(&server, &text.concat());
    everybody_says("b.test", 200, "application");
    for (host, content) in [("a.test", "three"), ("c.test", "two"), ("d.test", "one")] {
        assert_eq!(from_kernel(&server, PORT, host, PATH), content);
    }
    assert_eq!(from_user_mode(&server, PORT, "b.test", PATH), (200, "application".to_owned()));
    assert_eq!(from_user_mode(&server, PORT, "b.test:99", PATH), (200, "application".to_owned()));
    assert!(row(&server, "a.test")["from_kernel"].as_u64().expect("a count") > counted);
    // A site with a wildcard host comes: hosts that have no name of their own are user mode's.
    reload(&server, &[text.concat(), cached(PORT, &["*.d.test"], &three)].concat());
    everybody_says("x.d.test", 200, "three");
    assert_eq!(from_user_mode(&server, PORT, "x.d.test", PATH).1, "three");
    assert_eq!(from_user_mode(&server, PORT, "d.test", PATH).1, "one");
    assert_eq!(from_kernel(&server, PORT, "a.test", PATH), "three");
    // And everything but one goes.
    reload(&server, &cached(PORT, &["c.test"], &two));
    everybody_says("a.test", 421, "");
    assert_eq!(from_user_mode(&server, PORT, "a.test", PATH).0, 421);
    assert_eq!(from_kernel(&server, PORT, "c.test", PATH), "two");
}

#[test]
fn the_first_site_for_the_kernel_needs_a_restart_and_that_is_said() {
    let Some(lab) = Lab::new() else { return };
    let one = root("one");
    let to = to_uncached(application(&lab, "application"));
    let text = site(PORT, &["a.test"], &to);
    let server = lab.server_on(PORT, &one, |launch| {
        launch.fast_path("auto").written(|_| text);
    });
    let state = || stats(&server)["fast_path"]["state"].as_str().unwrap_or_default().to_owned();
    assert!(state().contains("nothing of it is cached"), "{}", state());
    reload(&server, &cached(PORT, &["a.test"], &one));
    everybody_says("a.test", 200, "one");
    assert!(state().ends_with("came with a reload (restart)"), "{}", state());
    assert!(server.log().contains("came with a reload (restart)"), "{}", server.log());
}

#[test]
fn a_purge_may_name_a_host() {
    let Some(lab) = Lab::new() else { return };
    let [one, two] = ["one", "two"].map(root);
    let text = [cached(PORT, &["a.test"], &one), cached(PORT, &["b.test"], &two)].concat();
    let server = start(&lab, &one, &text, |_| ());
    for host in ["a.test", "b.test"] {
        from_kernel(&server, PORT, host, PATH);
    }
    let purge = |words: &[&str]| {
        let output = server.command(&[&["purge"], words].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let objects = || stats(&server)["fast_path"]["objects"].as_u64().expect("a count");
    assert_eq!(objects(), 2);
    assert_eq!(purge(&["--host", "A.test", PATH]), "/same.txt was dropped from the cache\n");
    assert_eq!(objects(), 1);
    assert_eq!(from_kernel(&server, PORT, "b.test", PATH), "two");
    assert_eq!(purge(&["--host", "a.test", PATH]), "/same.txt was not in the cache\n");
    assert_eq!(purge(&["--host", "c.test", PATH]), "no site has the host c.test\n");
    let url = format!("http://b.test:8080{PATH}");
    assert_eq!(purge(&[&url]), "/same.txt was dropped from the cache\n");
    assert_eq!(objects(), 0);
    assert_eq!(from_kernel(&server, PORT, "a.test", PATH), "one");
}

#[test]
fn a_part_that_not_everybody_may_use_is_never_the_kernels() {
    let Some(lab) = Lab::new() else { return };
    let one = root("one");
    one.file("index.html", "index");
    one.file("open.txt", "open");
    one.file("asked.txt", "asked");
    let kept = site(PORT, &["app.test"], &format!("to = \"{}\"", keepable(&lab, "kept")));
    let open = [cached(PORT, &["one.test"], &one), kept.clone()].concat();
    let server = start(&lab, &one, &open, |_| ());
    for (host, target, content) in [
        ("one.test", PATH, "one"),
        ("one.test", "/", "index"),
        ("one.test", "/asked.txt", "asked"),
        ("app.test", "/kept", "kept"),
    ] {
        assert_eq!(from_kernel(&server, PORT, host, target), content);
    }
    one.file("users.txt", "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    let nobody = "allow = [\"192.0.2.0/24\"]\n";
    let path = |prefix: &str| format!("[[site.path]]\nprefix = \"{prefix}\"\n{nobody}");
    let guarded = [
        cached(PORT, &["one.test"], &one),
        path("/same"),
        path("/index.html"),
        format!(
            "[[site.path]]\nprefix = \"/asked.txt\"\nforward_auth = \"{}\"\nforward_auth_path = \"/\"\n",
            keepable(&lab, "yes")
        ),
        kept,
        format!("basic_auth = \"{}\"\n", one.path().join("users.txt").display()),
    ];
    reload(&server, &guarded.concat());
    for (host, target, status) in
        [("one.test", PATH, 403), ("one.test", "/", 403), ("app.test", "/kept", 401)]
    {
        eventually("the workers know it", || {
            (0..20).all(|_| ask(PORT, host, target).status == status)
        });
        for _ in 0..5 {
            assert_eq!(from_user_mode(&server, PORT, host, target).0, status);
        }
    }
    for _ in 0..5 {
        let asked = from_user_mode(&server, PORT, "one.test", "/asked.txt");
        assert_eq!((asked.0, &*asked.1), (200, "asked"));
    }
    assert_eq!(from_kernel(&server, PORT, "one.test", "/open.txt"), "open");
    reload(&server, &open);
    assert_eq!(from_kernel(&server, PORT, "one.test", PATH), "one");
}

/// The kernel counts no request by its place, so it answers none where there is a rate, whoever asked there before.
#[test]
fn places_with_a_rate_are_left_to_user_mode() {
    let Some(lab) = Lab::new() else { return };
    let one = root("one");
    one.file("free.txt", "free");
    one.file("counted/a.txt", "counted");
    let kept = site(PORT, &["app.test"], &format!("to = \"{}\"", keepable(&lab, "kept")));
    let open = [cached(PORT, &["one.test"], &one), kept.clone()].concat();
    let server = start(&lab, &one, &open, |_| ());
    for (host, target, content) in [
        ("one.test", "/free.txt", "free"),
        ("one.test", "/counted/a.txt", "counted"),
        ("app.test", "/kept", "kept"),
    ] {
        assert_eq!(from_kernel(&server, PORT, host, target), content);
    }
    let counted = [
        cached(PORT, &["one.test"], &one),
        "[[site.path]]\nprefix = \"/counted/\"\nclient_rate = \"1000/h\"\n".to_owned(),
        format!("root = \"{}\"\n", one.path().join("counted").display()),
        kept,
        "rate = \"1000/h\"\n".to_owned(),
    ];
    reload(&server, &counted.concat());
    for (host, target, content) in
        [("one.test", "/counted/a.txt", "counted"), ("app.test", "/kept", "kept")]
    {
        for _ in 0..10 {
            let asked = from_user_mode(&server, PORT, host, target);
            assert_eq!((asked.0, &*asked.1), (200, content));
        }
    }
    assert_eq!(from_kernel(&server, PORT, "one.test", "/free.txt"), "free");
}

/// The kernel must not take a name with the root's dot for one that no site has.
#[test]
fn a_dot_at_the_end_of_a_name_means_nothing() {
    let Some(lab) = Lab::new() else { return };
    let (one, any) = (root("one"), root("any"));
    let to = keepable(&lab, "kept");
    let sites = [
        cached(PORT, &["one.test"], &one),
        cached(PORT, &[], &any),
        site(PORT, &["app.test"], &format!("to = \"{to}\"")),
    ];
    let server = start(&lab, &one, &sites.concat(), |_| ());
    assert_eq!(from_kernel(&server, PORT, "one.test", PATH), "one");
    assert_eq!(from_kernel(&server, PORT, "other.test", PATH), "any");
    assert_eq!(from_kernel(&server, PORT, "app.test", "/kept"), "kept");
    for _ in 0..10 {
        for (host, content) in
            [("one.test.", "one"), ("ONE.test.:80", "one"), ("one.test..", "any")]
        {
            assert_eq!(ask(PORT, host, PATH).text(), content, "{host}");
        }
    }
    let asked = from_user_mode(&server, PORT, "one.test.", PATH);
    assert_eq!((asked.0, &*asked.1), (200, "one"));
}
