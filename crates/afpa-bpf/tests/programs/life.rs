//! Shared connections when the process that answers ends, and when another one starts.

use crate::support;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::{LISTENER, PORT, SERVER_V4, SITE, Sample, World, index, inside};
use afpa_bpf::{FastPath, FoundFastPath, Interfaces, PinDir, Settings};
use afpa_netlab::Bed;
use afpa_testkit::{bpf_fs, eventually};

/// A folder on a BPF file system of ours, removed with its pins.
pub(super) struct Pins(PathBuf);

impl Pins {
    /// Before the [`World`]: its namespaces are mounts as well.
    pub(super) fn new() -> Option<Self> {
        if let Err(reason) = bpf_fs::private() {
            println!("SKIP: no BPF file system of our own: {reason}");
            return None;
        }
        let folder = PathBuf::from(format!("/sys/fs/bpf/afpa-test-{}", std::process::id()));
        match std::fs::create_dir(&folder) {
            Ok(()) => Some(Self(folder)),
            Err(error) => {
                println!("SKIP: no BPF file system at /sys/fs/bpf: {error}");
                None
            }
        }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings { keep_in: Some(self.0.clone()), ..Settings::default() }
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        PinDir::forget(&self.0).expect("removed");
    }
}

#[test]
fn connections_with_an_offset_outlive_the_process_and_are_taken_over() {
    outlive(|settings| settings);
}

/// As on kernels without tcx: the filters stay, and the next process puts its programs into them.
#[test]
fn connections_with_an_offset_outlive_the_process_and_its_filters_are_taken_over() {
    outlive(|settings| Settings { without_tcx: true, ..settings });
}

fn outlive(adapt: impl Fn(Settings) -> Settings) {
    let Some(pins) = Pins::new() else { return };
    let Some(mut world) = World::new() else { return };
    world.file("user.html", b"from nginx");
    world.nginx("");
    world.await_server();
    let sample = Sample::new(b"from the kernel");
    let ready = world.folder.path().join("ready");
    let mut victim = std::process::Command::new("nsenter") // `ip netns exec` would hide /sys/fs/bpf
        .arg(format!("--net=/run/netns/{}", world.server().name()))
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "life::victim", "--ignored", "--nocapture"])
        .env("AFPA_TEST_PINS", &pins.0)
        .env("AFPA_TEST_READY", &ready)
        .env("AFPA_TEST_WITHOUT_TCX", adapt(Settings::default()).without_tcx.to_string())
        .spawn()
        .expect("started");
    while !ready.exists() {
        assert!(victim.try_wait().expect("asked").is_none(), "the victim did not live");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut client = world.connect(SERVER_V4);
    assert!(client.get("/kernel.html").is_from_kernel());
    assert_eq!(client.get("/user.html").body, b"from nginx");

    victim.kill().expect("killed"); // SIGKILL: it says nothing, its heartbeat is fresh
    victim.wait().expect("gone");
    // The kernel empties `alive` when it comes to it. nginx has no such file.
    eventually("nobody answers", || client.get("/kernel.html").status == 404);
    assert_eq!(client.get("/user.html").body, b"from nginx", "but the connection is whole");
    assert!(!world.connect(SERVER_V4).get("/kernel.html").is_from_kernel());

    let Some(second) = world.fast_path(adapt(pins.settings())) else {
        panic!("it could be loaded before")
    };
    sample.pin(&second, "/kernel.html");
    eventually("the next process answers", || {
        second.clock.beat();
        world.connect(SERVER_V4).get("/kernel.html").is_from_kernel()
    });
    // Requests went up unseen in between, so user mode keeps the old connection; it is translated on.
    assert_eq!(client.get("/kernel.html").status, 404);
    assert_eq!(client.get("/user.html").body, b"from nginx");
    client.assert_quiet();
    let interface = inside(world.server(), || index(Bed::DEVICE));
    let programs =
        || inside(world.server(), || Interfaces::programs_on(index(Bed::DEVICE))).expect("asked");
    assert_eq!(programs(), 2, "taken over, not added to");
    assert!(inside(world.server(), || second.interfaces.detach(interface)));
    assert_eq!(programs(), 0);
}

/// A process that answers until it is killed; started by the test above, in the server's namespace.
#[test]
#[ignore = "a part of another test"]
fn victim() {
    let Some(pins) = std::env::var_os("AFPA_TEST_PINS") else { return };
    let ready = std::env::var_os("AFPA_TEST_READY").expect("set together");
    let without_tcx = std::env::var("AFPA_TEST_WITHOUT_TCX").is_ok_and(|set| set == "true");
    // An empty path: nothing is kept.
    let keep_in = Some(PathBuf::from(pins)).filter(|pins| !pins.as_os_str().is_empty());
    let settings = Settings { keep_in, without_tcx, ..Settings::default() };
    let fast_path = FastPath::load(settings).expect("loaded");
    fast_path.interfaces.attach(index(Bed::DEVICE)).expect("tcx");
    let any = SocketAddr::new("::".parse().expect("an address"), PORT);
    fast_path.listeners.listen(any, LISTENER, SITE).expect("listening");
    support::serve_server(&fast_path);
    Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
    fast_path.clock.beat();
    std::fs::write(ready, "").expect("written");
    for _ in 0..100 {
        fast_path.clock.beat();
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn without_pins_the_end_detaches_everything() {
    end_without_pins(Settings::default());
}

/// As on kernels without tcx.
#[test]
fn without_pins_the_end_removes_the_filters() {
    end_without_pins(Settings { without_tcx: true, ..Settings::default() });
}

/// A filter outlives its process. The next process recognises it by its program.
#[test]
fn filters_of_a_killed_process_are_removed_by_the_next() {
    let Some(mut world) = World::new() else { return };
    world.file("user.html", b"from nginx");
    world.nginx("");
    world.await_server();
    let ready = world.folder.path().join("ready");
    let mut victim = std::process::Command::new("nsenter")
        .arg(format!("--net=/run/netns/{}", world.server().name()))
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "life::victim", "--ignored", "--nocapture"])
        .env("AFPA_TEST_PINS", "")
        .env("AFPA_TEST_READY", &ready)
        .env("AFPA_TEST_WITHOUT_TCX", "true")
        .spawn()
        .expect("started");
    while !ready.exists() {
        let ended = victim.try_wait().expect("asked");
        if ended.is_some() {
            return println!("SKIP: the programs cannot be had");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let programs =
        || inside(world.server(), || Interfaces::programs_on(index(Bed::DEVICE))).expect("asked");
    assert_eq!(programs(), 2);
    assert!(world.connect(SERVER_V4).get("/kernel.html").is_from_kernel());
    let settings = || Settings { without_tcx: true, ..Settings::default() };
    let second = world.fast_path(settings()).expect("it could be loaded before");
    assert_eq!(programs(), 4, "those of a process that lives are left alone");
    inside(world.server(), move || drop(second));
    assert_eq!(programs(), 2);

    victim.kill().expect("killed");
    victim.wait().expect("gone");
    // The kernel empties `alive` when it comes to it.
    let asked = || world.connect(SERVER_V4).get("/kernel.html").status;
    eventually("nobody answers", || asked() == 404);
    assert_eq!(programs(), 2, "nobody has removed them");
    let third = world.fast_path(settings()).expect("it could be loaded before");
    assert_eq!(programs(), 2, "its own");
    inside(world.server(), move || drop(third));
    assert_eq!(programs(), 0);
}

#[test]
fn a_fast_path_is_found_paused_and_removed_by_others() {
    is_found(Settings::default());
}

/// As on kernels without tcx.
#[test]
fn a_fast_path_of_filters_is_found_paused_and_removed_by_others() {
    is_found(Settings { without_tcx: true, ..Settings::default() });
}

fn is_found(settings: Settings) {
    let Some((world, fast_path)) = World::with_one_pinned(settings) else { return };
    let from_kernel = || {
        fast_path.clock.beat();
        world.connect(SERVER_V4).get("/kernel.html").is_from_kernel()
    };
    assert!(from_kernel());
    let mut all = inside(world.server(), FoundFastPath::all).expect("looked");
    let found = all.pop().expect("one");
    assert!(all.is_empty() && found.is_alive());
    assert_eq!(found.ports(), Some(vec![PORT]));
    assert_eq!(found.interfaces().collect::<Vec<_>>(), [Bed::DEVICE]);
    assert!(found.set_paused(true) && !from_kernel());
    assert!(found.set_paused(false) && from_kernel());
    inside(world.server(), || found.remove()).expect("removed");
    let programs = inside(world.server(), || Interfaces::programs_on(index(Bed::DEVICE)));
    assert_eq!(programs.expect("asked"), 0);
}

fn end_without_pins(settings: Settings) {
    let Some(mut world) = World::new() else { return };
    world.file("user.html", b"from nginx");
    world.nginx("");
    world.await_server();
    let Some(fast_path) = world.fast_path(settings) else { return };
    Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
    assert!(world.connect(SERVER_V4).get("/kernel.html").is_from_kernel());
    let programs =
        || inside(world.server(), || Interfaces::programs_on(index(Bed::DEVICE))).expect("asked");
    assert_eq!(programs(), 2);
    inside(world.server(), move || drop(fast_path));
    eventually("nothing is on the interface", || programs() == 0); // a link takes a moment
    let mut client = world.connect(SERVER_V4);
    assert_eq!(client.get("/kernel.html").status, 404);
    assert_eq!(client.get("/user.html").body, b"from nginx");
}

/// On `lo`, which is both ends at once, and where packets keep their route and their partial sums.
#[test]
fn loopback() {
    let Some(mut world) = World::new() else { return };
    world.file("user.html", b"from nginx");
    world.nginx("");
    world.await_server();
    let fast_path = inside(world.server(), || FastPath::load(Settings::default()));
    let fast_path = match fast_path {
        Ok(fast_path) => fast_path,
        Err(error) if error.reason.contains("verifier") => panic!("{error}"),
        Err(error) => return println!("SKIP: {error}"),
    };
    Sample::new([b'k'; 1000]).pin(&fast_path, "/kernel.html");
    inside(world.server(), || {
        fast_path.interfaces.attach(index("lo")).expect("tcx");
        fast_path
            .listeners
            .listen(SocketAddr::new("::".parse().expect("an address"), PORT), LISTENER, SITE)
            .expect("listening");
        support::serve_server(&fast_path);
        fast_path.clock.beat();
        for address in ["127.0.0.1", "::1", "10.77.0.1"] {
            let address = SocketAddr::new(address.parse().expect("an address"), PORT);
            let mut client = support::connect(address);
            for _ in 0..5 {
                assert!(client.get("/kernel.html").is_from_kernel(), "{address}");
                assert_eq!(client.get("/user.html").body, b"from nginx");
            }
            client.assert_quiet();
        }
        std::thread::sleep(Duration::from_millis(10));
    });
}

/// A server that sends head and body apart, and closes idle connections by itself.
#[test]
fn python_server() {
    let Some(mut world) = World::new() else { return };
    world.file("user.html", b"from python");
    let folder = world.folder.path().join("www").display().to_string();
    let everywhere = ["--bind", "::", "8080"];
    let server = ["-m", "http.server", "--protocol", "HTTP/1.1", "-d", &folder];
    world.spawn("python3", &[&server[..], &everywhere].concat());
    world.await_server();
    let Some(fast_path) = world.fast_path(Settings::default()) else { return };
    Sample::new(b"from the kernel").pin(&fast_path, "/kernel.html");
    let mut client = world.connect(SERVER_V4);
    for _ in 0..5 {
        fast_path.clock.beat();
        assert!(client.get("/kernel.html").is_from_kernel());
        assert_eq!(client.get("/user.html").body, b"from python");
        assert_eq!(client.get("/user.html").body, b"from python");
    }
}
