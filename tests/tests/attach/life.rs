//! `afpa attach` while files change, and its end, however it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use afpa_netlab::Bed;
use afpa_testkit::{Client, eventually};
use afpa_tests::attach::{Attached, Kind, Lab, PORT};
use afpa_tests::bridge;

const LARGE: usize = 100_000;

fn get(client: &mut Client, path: &str) -> Vec<u8> {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n"));
    let response = client.receive();
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

/// A client that asks on one connection until the test ends it: for the small file, and now and then for the large
/// one. It fails when an answer is wrong, or its version older than one before.
struct Load {
    end: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Load {
    fn start(lab: &Lab) -> Self {
        let (end, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut client = lab.connect();
        let (ended, count) = (Arc::clone(&end), Arc::clone(&asked));
        let thread = std::thread::spawn(move || {
            let mut last = 0;
            while !ended.load(Ordering::Relaxed) {
                let version = version(&get(&mut client, "/small.html"));
                assert!(version >= last, "version {version} after {last}");
                last = version;
                if count.fetch_add(1, Ordering::Relaxed) % 16 == 0 {
                    assert_eq!(get(&mut client, "/large.txt"), vec![b'l'; LARGE]);
                }
            }
        });
        Self { end, asked, thread }
    }

    /// Waits until so many more requests have been answered.
    #[track_caller]
    fn goes_on(&self, more: u64) {
        let from = self.asked.load(Ordering::Relaxed);
        eventually("requests are answered", || {
            assert!(!self.thread.is_finished(), "the load has failed");
            self.asked.load(Ordering::Relaxed) >= from + more
        });
    }

    fn end(self) {
        self.end.store(true, Ordering::Relaxed);
        self.thread.join().expect("every answer was right");
    }
}

fn content(version: u64) -> String {
    format!("version {version} {}", "x".repeat(version as usize % 50))
}

/// The version that an answer is, whole.
fn version(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).expect("text");
    let number = text.split(' ').nth(1).and_then(|number| number.parse().ok());
    let number = number.unwrap_or_else(|| panic!("{text:?}"));
    assert_eq!(text, content(number));
    number
}

fn prepare(lab: &Lab) {
    lab.file("small.html", content(1));
    lab.file("large.txt", vec![b'l'; LARGE]);
}

/// Attaches, and has two clients ask until some of their answers came from the kernel.
#[track_caller]
fn under_load(lab: &Lab) -> (Attached, [Load; 2]) {
    let attached = lab.attach(&[]);
    let loads = [Load::start(lab), Load::start(lab)];
    loads.iter().for_each(|load| load.goes_on(50));
    assert!(attached.answered() > 0, "{:#?}", attached.statistics());
    (attached, loads)
}

/// The first version is what a request of this connection gets from the kernel.
#[track_caller]
fn answered_in_the_kernel(attached: &Attached, client: &mut Client, path: &str) {
    let before = attached.answered();
    assert_eq!(version(&get(client, path)), 1);
    assert_eq!(attached.answered(), before + 1, "{path} came from the server");
}

#[track_caller]
fn signal(attached: &Attached, signal: rustix::process::Signal) {
    let id = rustix::process::Pid::from_raw(attached.id() as i32).expect("an id");
    rustix::process::kill_process(id, signal).expect("it runs");
}

fn changes_are_never_overtaken(kind: Kind) {
    let lab = lab!(kind);
    prepare(&lab);
    let mut versions: Vec<u64> = (1..8).collect();
    if kind == Kind::Apache {
        // It asks for the length of a file before it opens it, and cuts what has come to its name meanwhile.
        // These are all of one length.
        versions.iter_mut().for_each(|number| *number = 50 + 50 * *number);
    }
    lab.replace("small.html", content(versions[0]));
    let attached = lab.attach(&[]);
    let loads = [Load::start(&lab), Load::start(&lab)];
    for number in versions.into_iter().skip(1) {
        lab.replace("small.html", content(number));
        eventually("the new version is served", || {
            version(&get(&mut lab.connect(), "/small.html")) == number
        });
        let before = attached.answered();
        eventually("the new version comes from the kernel", || {
            assert_eq!(version(&get(&mut lab.connect(), "/small.html")), number);
            attached.answered() > before && attached.pinned() > 0
        });
    }
    loads.into_iter().for_each(Load::end);
}

#[test]
fn nginx_changes_are_never_overtaken() {
    changes_are_never_overtaken(Kind::Nginx);
}

#[test]
fn apache_changes_are_never_overtaken() {
    changes_are_never_overtaken(Kind::Apache);
}

/// Files that come, go, and are rewritten in place; codings beside them; rules of a folder.
#[test]
fn what_comes_and_goes() {
    let lab = lab!(Kind::Nginx);
    prepare(&lab);
    let attached = lab.attach(&[]);
    let mut client = lab.connect();
    let pinned = attached.pinned();
    lab.file("late/new.html", "new");
    eventually("a new file is pinned", || attached.pinned() == pinned + 1);
    assert_eq!(get(&mut client, "/late/new.html"), b"new");
    lab.file("late/new.html", "newer");
    eventually("the rewritten file is served", || get(&mut client, "/late/new.html") == b"newer");
    eventually("and pinned", || attached.pinned() == pinned + 1);
    std::fs::rename(lab.path("late"), lab.path("gone")).expect("renamed");
    eventually("a moved folder is not found", || {
        client.send("GET /late/new.html HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n");
        client.receive().status == 404
    });
    assert_eq!(get(&mut client, "/gone/new.html"), b"newer");
    std::fs::remove_dir_all(lab.path("gone")).expect("removed");
    eventually("nothing of it is pinned", || attached.pinned() == pinned);
}

/// `max-age=1` lets the kernel answer, and has the server asked anew all the time.
#[test]
fn answers_expire_and_come_back() {
    let lab = lab!(Kind::Nginx);
    lab.file("short/page.html", content(1));
    let attached = lab.attach(&[]);
    for _round in 0..2 {
        let asked = lab.asked_for("/short/page.html");
        eventually("the server is asked again", || lab.asked_for("/short/page.html") > asked);
        let before = attached.answered();
        eventually("and the kernel answers", || {
            assert_eq!(version(&get(&mut lab.connect(), "/short/page.html")), 1);
            attached.answered() > before
        });
    }
}

#[test]
fn hangup_asks_for_everything_anew() {
    let lab = lab!(Kind::Nginx);
    lab.file("logged/page.html", content(1));
    let attached = lab.attach(&["--revalidate", "3600"]);
    let asked = lab.asked_for("/logged/page.html");
    assert!(asked > 0);
    assert_eq!(version(&get(&mut lab.connect(), "/logged/page.html")), 1);
    assert_eq!(lab.asked_for("/logged/page.html"), asked, "the server did not see it");
    signal(&attached, rustix::process::Signal::HUP);
    eventually("the server is asked again", || lab.asked_for("/logged/page.html") > asked);
    attached.settle();
    answered_in_the_kernel(&attached, &mut lab.connect(), "/logged/page.html");
}

fn detach_under_load(kind: Kind) {
    let lab = lab!(kind);
    prepare(&lab);
    let (attached, loads) = under_load(&lab);
    std::thread::scope(|scope| {
        let detach = scope.spawn(|| lab.detach(&["--listen", "10.77.0.1:8080", "--wait", "30"]));
        eventually("it ends", || attached.statistics().is_none());
        assert_eq!(version(&get(&mut lab.connect(), "/small.html")), 1, "a new connection");
        loads.iter().for_each(|load| load.goes_on(50));
        loads.into_iter().for_each(Load::end);
        let (done, text) = detach.join().expect("no panic");
        assert!(done && text.contains("detached"), "{text}");
    });
    assert!(attached.wait(), "{}", lab.log());
    assert!(!lab.has_programs());
    assert_eq!(version(&get(&mut lab.connect(), "/small.html")), 1);
}

#[test]
fn nginx_detach_under_load() {
    detach_under_load(Kind::Nginx);
}

#[test]
fn apache_detach_under_load() {
    detach_under_load(Kind::Apache);
}

fn kill_under_load(kind: Kind) {
    let lab = lab!(kind);
    prepare(&lab);
    // Of one length: Apache cuts a version that comes between its look at the length and its opening of the file.
    let [before, after] = [100, 150];
    lab.file("small.html", content(before));
    let (attached, loads) = under_load(&lab);
    attached.kill();
    lab.replace("small.html", content(after));
    // The kernel empties the table that joins the programs in a worker thread, just after the end.
    eventually("the server answers new connections", || {
        version(&get(&mut lab.connect(), "/small.html")) == after
    });
    loads.iter().for_each(|load| load.goes_on(50));
    assert!(lab.has_programs(), "connections are translated on");
    loads.into_iter().for_each(Load::end);
    let (done, text) = lab.detach(&["--wait", "30"]);
    assert!(done && text.contains("killed"), "{text}");
    assert!(!lab.has_programs());
    assert_eq!(version(&get(&mut lab.connect(), "/small.html")), after);
}

#[test]
fn nginx_kill_under_load() {
    kill_under_load(Kind::Nginx);
}

#[test]
fn apache_kill_under_load() {
    kill_under_load(Kind::Apache);
}

#[test]
fn another_attachment_takes_over_what_was_killed() {
    let lab = lab!(Kind::Nginx);
    prepare(&lab);
    let attached = lab.attach(&[]);
    let load = Load::start(&lab);
    load.goes_on(50);
    attached.kill();
    let second = lab.attach(&[]);
    load.goes_on(50);
    answered_in_the_kernel(&second, &mut lab.connect(), "/small.html");
    load.goes_on(50);
    load.end();
}

#[test]
fn the_end_leaves_nothing_behind() {
    let lab = lab!(Kind::Nginx);
    prepare(&lab);
    for end in [rustix::process::Signal::TERM, rustix::process::Signal::QUIT] {
        let attached = lab.attach(&[]);
        let mut client = lab.connect();
        answered_in_the_kernel(&attached, &mut client, "/small.html");
        drop(client);
        eventually("the closed connection is forgotten", || {
            attached.statistics().is_some_and(|statistics| statistics["translated"] == 0)
        });
        signal(&attached, end);
        assert!(attached.wait(), "{}", lab.log());
        assert!(!lab.has_programs(), "{}", lab.log());
    }
    let (done, text) = lab.detach(&[]);
    assert!(!done && text.contains("nothing is attached"), "{text}");
}

#[test]
fn what_cannot_be_attached_to_is_explained() {
    let lab = lab!(Kind::Nginx);
    prepare(&lab);
    let _attached = lab.attach(&[]);
    let twice = lab.attach_in_vain("10.77.0.1:8080");
    assert!(twice.contains("port 8080 has a fast path already, of process"), "{twice}");
    let nobody = lab.attach_in_vain("10.77.0.1:8081");
    assert!(nobody.contains("10.77.0.1:8081: no server listens there"), "{nobody}");
}

#[test]
fn addresses_are_names_as_long_as_they_are_there() {
    let lab = lab!(Kind::Nginx);
    prepare(&lab);
    let attached = lab.attach_at(&format!("0.0.0.0:{PORT}"), &[]);
    let is_name = |host: &str| {
        let before = attached.answered();
        let request = format!("GET /small.html HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(version(&lab.connect().exchange(request).body), 1);
        attached.answered() > before
    };
    let (own, later) = (format!("10.77.0.1:{PORT}"), format!("10.77.0.99:{PORT}"));
    assert!(is_name(&own) && is_name("10.77.0.1") && !is_name(&later));
    let address = |what: &str| {
        let words = ["addr", what, "10.77.0.99/32", "dev", Bed::DEVICE];
        let done = lab.bed().server().command("ip").args(words).status().expect("ip runs");
        assert!(done.success());
    };
    address("add");
    eventually("it is a name, too", || is_name(&later));
    attached.settle();
    assert!(is_name(&own) && is_name(&later) && is_name("10.77.0.99"));
    address("del");
    eventually("it is none any more", || !is_name(&later));
    attached.settle();
    assert!(is_name(&own) && !is_name(&later) && !is_name("10.77.0.99"));
    assert_eq!(lab.log().matches("addresses have changed").count(), 2, "{}", lab.log());
    assert!(lab.detach(&["--wait", "0", "--force"]).0, "nothing is left behind");
}

#[test]
fn a_bridge_that_comes_later_is_answered_on_and_its_port_is_left_alone() {
    let lab = lab!(Kind::Nginx);
    prepare(&lab);
    let attached = lab.attach(&["--host", "10.77.0.1"]);
    bridge::make(lab.bed().server(), lab.bed().client());
    eventually("programs are on the bridge", || bridge::programs(lab.bed().server()).0 == 2);
    assert_eq!(bridge::programs(lab.bed().server()), (2, 0));
    let mut client = bridge::connect(lab.bed().client(), PORT);
    let before = attached.answered();
    assert_eq!(version(&get(&mut client, "/small.html")), 1);
    assert_eq!(get(&mut client, "/large.txt"), vec![b'l'; LARGE]);
    assert_eq!(version(&get(&mut client, "/small.html")), 1);
    assert_eq!(attached.answered(), before + 2, "{:#?}", attached.statistics());
    bridge::remove(lab.bed().server());
    eventually("it is gone", || lab.log().contains("bridge0 is gone"));
}
