//! Many sites: their cost, reloads, and limits that are too low for them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use afpa_testkit::held::MIB;
use afpa_testkit::{Client, Endpoint, Server, Tree, eventually, skip};
use rustix::process::Signal;

/// A folder for each number, with an `index.html` that names it.
fn folders(numbers: usize) -> Tree {
    let tree = Tree::new();
    for number in 0..numbers {
        tree.file(format!("s{number}/index.html"), format!("site {number}"));
    }
    tree
}

/// A site for each number, with the folder that `folder` has for it.
fn configuration(
    listen: &Endpoint,
    root: &Path,
    numbers: std::ops::Range<usize>,
    folder: impl Fn(usize) -> usize,
) -> String {
    let Endpoint::Tcp(address) = listen else { panic!("TCP") };
    let mut text = "workers = 1\n".to_owned();
    for number in numbers {
        let root = root.join(format!("s{}", folder(number)));
        let _ = write!(
            text,
            "[[site]]\nlisten = [\"{address}\"]\nhosts = [\"h{number}.example\", \"www.h{number}.example\"]\nroot = \"{}\"\n",
            root.display()
        );
    }
    text
}

fn serve(tree: &Tree, numbers: usize, folder: impl Fn(usize) -> usize) -> Server {
    Server::start(tree.path(), |launch| {
        launch.written(|listen| configuration(listen, tree.path(), 0..numbers, folder));
    })
}

fn get(client: &mut Client, number: usize) -> String {
    let host = format!("www.h{number}.example");
    client.exchange(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).text().to_owned()
}

/// Threads, inotify instances, and descriptors of anything but document roots.
fn held(server: &Server) -> (usize, usize, usize) {
    let process = server.process();
    let links = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("descriptors");
    let links = links.flatten().filter_map(|link| fs::read_link(link.path()).ok());
    let shown: Vec<String> = links.map(|link| link.display().to_string()).collect();
    let instances = shown.iter().filter(|link| link.contains("inotify")).count();
    let others = shown.iter().filter(|link| !Path::new(link).is_dir()).count();
    (process.threads().expect("threads"), instances, others)
}

fn roots(server: &Server) -> usize {
    let links = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("descriptors");
    links
        .flatten()
        .filter_map(|link| fs::read_link(link.path()).ok())
        .filter(|at| at.is_dir())
        .count()
}

fn reload(server: &Server, times: usize) {
    server.signal(Signal::HUP);
    eventually("it is taken", || server.log().matches("reloaded").count() >= times);
}

const MANY: usize = 2000;

#[test]
fn a_site_takes_no_thread_no_instance_and_its_root_one_descriptor() {
    let tree = folders(MANY);
    let few = serve(&tree, 10, |number| number);
    let many = serve(&tree, MANY, |number| number);
    let shared = serve(&tree, MANY, |_| 0);
    for server in [&few, &many, &shared] {
        server.settle();
        eventually("the roots are watched", || server.log().contains("document roots are watched"));
    }
    let [few, many, shared] = [few, many, shared].map(|server| {
        let mut client = server.connect();
        for number in [0, 9] {
            assert!(get(&mut client, number).starts_with("site "));
        }
        (held(&server), roots(&server), server)
    });
    assert_eq!(few.0.1, 1);
    for (held, _, _) in [&many, &shared] {
        assert!(held.0 <= few.0.0 + 2, "threads: {held:?} and {:?}", few.0);
        assert_eq!(held.1, 1, "inotify instances");
        assert!(held.2 <= few.0.2 + 8, "descriptors: {held:?} and {:?}", few.0);
    }
    assert!((MANY..MANY + 8).contains(&many.1), "{}", many.1);
    assert!(shared.1 < 8, "{}", shared.1);
}

#[test]
fn memory_is_that_of_the_sites_and_not_of_what_the_cache_may_hold() {
    let tree = folders(MANY);
    let serve = |numbers| {
        let server = Server::start(tree.path(), |launch| {
            launch.written(|listen| {
                let sites = configuration(listen, tree.path(), 0..numbers, |number| number);
                // Address space, of which nothing is used.
                let limits =
                    "[cache]\npinned_limit = \"64GiB\"\n[shared_cache]\nlimit = \"64GiB\"\n";
                sites.replacen("[[site]]", &format!("{limits}[[site]]"), 1)
            });
        });
        server.settle();
        eventually("the roots are watched", || server.log().contains("watched"));
        server
    };
    let (few, many) = (serve(1).held(), serve(MANY).held());
    assert!(few.memory < 64 * MIB, "of one site: {few:?}");
    // Twice what it takes of nginx.
    let a_site = many.memory.saturating_sub(few.memory) / MANY as u64;
    assert!(a_site < 28 << 10, "bytes a site: {a_site}");
}

#[test]
fn a_reload_of_many_sites_loses_neither_a_watch_nor_a_request() {
    let tree = folders(MANY);
    let server = serve(&tree, MANY - 100, |number| number);
    let mut client = server.connect();
    let looked = [0, 1, 700, MANY - 101];
    for number in looked {
        assert_eq!(get(&mut client, number), format!("site {number}"));
    }
    let before = (held(&server), roots(&server));
    for round in 1..=2 {
        // Other sites go, and others come; these stay.
        let range = if round == 1 { 0..MANY } else { 0..MANY - 100 };
        let Endpoint::Tcp(_) = server.endpoint() else { panic!("TCP") };
        let text = configuration(server.endpoint(), tree.path(), range, |number| number);
        fs::write(server.configuration(), text).expect("write");
        server.signal(Signal::HUP);
        let mut version = 0;
        while server.log().matches("reloaded").count() < round {
            version += 1;
            let content = format!("round {round} version {version}");
            tree.file("s700/index.html", &content);
            eventually("a change during the reload is seen", || get(&mut client, 700) == content);
        }
        for number in looked {
            let content = format!("after {round}, {number}");
            tree.file(format!("s{number}/index.html"), &content);
            eventually("a change after the reload is seen", || get(&mut client, number) == content);
        }
        assert!(!server.log().contains("not watched"), "{}", server.log());
    }
    eventually("what is gone is let go", || {
        let now = (held(&server), roots(&server));
        now.0.0 <= before.0.0 + 4 && now.0.1 == 1 && now.1 <= before.1 + 8
    });
}

#[test]
fn a_reload_says_what_is_not_watched() {
    let tree = folders(1);
    let server = Server::start(tree.path(), |launch| {
        launch.written(|listen| configuration(listen, tree.path(), 0..1, |number| number));
    });
    let mut client = server.connect();
    assert_eq!(get(&mut client, 0), "site 0");
    assert!(!server.log().contains("not every directory is watched"), "{}", server.log());
    let more = configuration(server.endpoint(), Path::new("/proc"), 1..2, |_| 0);
    let more = more.replace("workers = 1\n", "").replace("/proc/s0", "/proc/self");
    let text = fs::read_to_string(server.configuration()).expect("the configuration") + &more;
    fs::write(server.configuration(), text).expect("write");
    reload(&server, 1);
    eventually("the log says so", || {
        server.log().contains("not every directory is watched")
            && server.log().contains("on a pseudo file system")
    });
}

#[test]
fn too_few_descriptors_are_said_in_one_line_with_the_remedy() {
    let tree = folders(300);
    let mut server = Server::launch(tree.path(), |launch| {
        launch.limit('n', 200);
        launch.written(|listen| configuration(listen, tree.path(), 0..300, |number| number));
    });
    // A server whose user may exceed the hard limit does so, and serves.
    let serves = || Client::connect(server.endpoint()).is_ok();
    let says = || server.log().contains("cannot open the document root");
    eventually("it serves, or says why not", || serves() || says());
    if !says() {
        skip!("this user may exceed the limit of descriptors");
    }
    assert!(!server.wait(Duration::from_secs(20)).expect("it ends").success());
    server.kill(); // its end was expected
    let log = server.log();
    assert!(log.contains("300 document roots take a descriptor each"), "{log}");
    assert!(log.contains("LimitNOFILE="), "{log}");
}
