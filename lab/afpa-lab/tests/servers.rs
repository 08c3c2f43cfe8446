//! Every server that this machine has, started as the lab starts it, answers every workload's
//! requests with the right status and the right bytes; and nothing is left of it when it is stopped.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use afpa_generator::{Request, Workload, family};
use afpa_lab::servers::{Programs, Running, Server, ServerSetup, all, find};
use afpa_netlab::{Bed, BedOptions, missing_privilege};
use afpa_testkit::{Client, Endpoint};
use rustix::process::{Pid, Signal, kill_process};

/// A bed, a document root with the workloads' files, and folders for the servers.
struct Lab {
    bed: Bed,
    workloads: Vec<Workload>,
    root: PathBuf,
    folder: tempfile::TempDir,
}

const PORT: u16 = 8080;

impl Lab {
    /// `None`, with the reason printed, where there can be none.
    fn new(families: &[&str]) -> Option<Self> {
        if let Some(reason) = missing_privilege() {
            eprintln!("SKIP: {reason}");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("afpa-lab-servers").tempdir().expect("made");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("opened");
        let points = |name: &&str| family(name, &[], true).expect("a workload");
        let workloads: Vec<Workload> = families.iter().flat_map(points).collect();
        let root = folder.path().join("www");
        for workload in &workloads {
            workload.make_files(&root).expect("files");
        }
        let bed = Bed::create(&BedOptions::default()).expect("a bed");
        Some(Self { bed, workloads, root, folder })
    }

    fn address() -> SocketAddr {
        (Bed::SERVER_V4, PORT).into()
    }

    /// Servers are started one after the other, so one folder is enough for all.
    fn try_start(&self, server: &dyn Server) -> anyhow::Result<Running<'_>> {
        server.start(&ServerSetup {
            namespace: Some(self.bed.server()),
            core: 0,
            address: Self::address(),
            root: &self.root,
            folder: self.folder.path(),
            connections: 4,
        })
    }

    fn start(&self, server: &dyn Server) -> Running<'_> {
        self.try_start(server).unwrap_or_else(|error| panic!("{}: {error:#}", server.name()))
    }

    /// Some requests of each workload, on one connection and on one each.
    fn ask(&self, server: &dyn Server) {
        let asked = self.bed.client().run(|| {
            for workload in &self.workloads {
                for persistent in [server.keeps_connections(), false] {
                    ask(server.name(), workload, persistent);
                }
            }
        });
        asked.unwrap_or_else(|error| panic!("{}: {error:#}", server.name()));
    }

    /// Starts, asks, stops, looks whether anything is left.
    fn examine(&self, server: &dyn Server) {
        let running = self.start(server);
        assert!(!running.processes().is_empty(), "{}", server.name());
        assert!(running.command().contains("taskset -c 0 "), "{}", running.command());
        assert!(!server.version().is_empty() && server.version() != "unknown", "{}", server.name());
        if let Some(configuration) = running.configuration() {
            let text = fs::read_to_string(configuration).expect("it was written");
            assert!(text.contains("lab"), "{}", server.name());
        }
        self.ask(server);
        running.stop().unwrap_or_else(|error| panic!("{}: {error:#}", server.name()));
        self.assert_nothing_is_left(server.name());
    }

    fn assert_nothing_is_left(&self, of: &str) {
        let left = self.bed.server().processes().expect("a list");
        assert!(left.is_empty(), "{of} left {left:?}");
    }
}

/// At most so many requests of a workload: the first, the last, and some between.
const SOME: usize = 9;

fn ask(server: &str, workload: &Workload, persistent: bool) {
    let requests = workload.all_requests();
    let step = requests.len().div_ceil(SOME).max(1);
    let mut connection = None;
    for request in requests.iter().step_by(step).chain(requests.last()) {
        let fresh = || Client::connect(&Endpoint::Tcp(Lab::address())).expect("connected");
        let mut client = connection.take().unwrap_or_else(fresh);
        let host = Lab::address().to_string();
        let bytes = request.bytes(&host, persistent);
        if request.status == 304 && persistent {
            // A client that has a copy got it once before, and so did a cache on the way.
            client.exchange(format!("GET {} HTTP/1.1\r\nHost: {host}\r\n\r\n", request.path));
        }
        // A second request: its answer may come from a cache.
        for _ in 0..if persistent { 2 } else { 1 } {
            let response = client.exchange(&bytes);
            check(server, workload, request, response.status, &response.body);
        }
        connection = persistent.then_some(client);
    }
}

fn check(server: &str, workload: &Workload, request: &Request, status: u16, body: &[u8]) {
    let about = format!("{server}, {}: {}", workload.name, request.path);
    assert_eq!(status, request.status, "{about}");
    if let Some(expected) = request.body {
        assert_eq!(body.len() as u64, expected.length(), "{about}");
        assert!(expected.check(0, body), "{about}: other bytes");
    }
}

fn programs() -> Programs {
    let lab = PathBuf::from(env!("CARGO_BIN_EXE_afpa-lab"));
    let beside = lab.with_file_name("afpa");
    let afpa = std::env::var_os("AFPA_BIN").map_or(beside, PathBuf::from);
    Programs { afpa, lab }
}

fn is_here(server: &dyn Server) -> bool {
    let lacks = server.lacks();
    if let Some(lacks) = &lacks {
        eprintln!("SKIP {}: {lacks}", server.name());
    }
    lacks.is_none()
}

#[test]
fn every_server_answers_every_workload_right() {
    let families = ["webstone", "jaws", "specweb96", "proxy", "browser", "conditional", "absent"];
    let Some(lab) = Lab::new(&families) else { return };
    for server in all(&programs()).iter().filter(|server| is_here(server.as_ref())) {
        let begun = std::time::Instant::now();
        lab.examine(server.as_ref());
        eprintln!("{}: {:?}", server.name(), begun.elapsed());
    }
}

#[test]
fn variants_of_an_architecture_answer_like_it() {
    let Some(lab) = Lab::new(&["webstone", "conditional"]) else { return };
    for name in [
        "thread-pool:pool=6:without=cached-headers,lazy-date,gather-write",
        "sped:concurrency=processes:pool=2",
        "amped:pin-threshold=0",
        "io-uring:pin-threshold=0:close",
    ] {
        let server = find(name, &programs()).expect("a variant");
        if is_here(server.as_ref()) {
            lab.examine(server.as_ref());
        }
    }
}

#[test]
fn the_caches_need_no_origin_once_they_are_warm() {
    let Some(lab) = Lab::new(&["webstone", "jaws", "conditional"]) else { return };
    for name in ["haproxy", "varnish", "nginx-cache", "afpa-cache", "afpa-cache-kernel"] {
        let server = find(name, &programs()).expect("a server");
        if !is_here(server.as_ref()) {
            continue;
        }
        let running = lab.start(server.as_ref());
        lab.ask(server.as_ref());
        let origin = running.processes().into_iter().find(|id| is_origin(*id)).expect("an origin");
        let origin = Pid::from_raw(origin).expect("an id");
        kill_process(origin, Signal::KILL).expect("killed");
        lab.ask(server.as_ref());
        let error = running.stop().expect_err("a process ended by itself");
        assert!(error.to_string().contains("ended by itself"), "{error:#}");
    }
}

#[test]
fn the_applications_part_comes_from_the_application_and_files_do_not() {
    let Some(lab) = Lab::new(&["specweb99"]) else { return };
    for name in ["afpa-kernel-front", "afpa-front", "nginx-front"] {
        let server = find(name, &programs()).expect("a server");
        if !is_here(server.as_ref()) {
            continue;
        }
        let running = lab.start(server.as_ref());
        lab.ask(server.as_ref());
        for application in running.processes().into_iter().filter(|id| is_origin(*id)) {
            let application = Pid::from_raw(application).expect("an id");
            kill_process(application, Signal::KILL).expect("killed");
        }
        let mut requests = lab.workloads[0].all_requests().iter();
        let of_application = requests.clone().find(|request| request.path.starts_with("/app/"));
        for (request, status) in [(requests.next(), 200), (of_application, 502)] {
            let request = request.expect("a request");
            let answered = lab.bed.client().run(|| {
                let mut client =
                    Client::connect(&Endpoint::Tcp(Lab::address())).expect("connected");
                client.exchange(request.bytes("lab", true)).status
            });
            assert_eq!(
                answered.expect("in the client's namespace"),
                status,
                "{name}: {}",
                request.path
            );
        }
        running.stop().expect_err("a process ended by itself");
    }
}

fn is_origin(id: i32) -> bool {
    let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&command).contains("--architecture")
}

#[test]
fn a_server_that_cannot_start_says_why_and_leaves_nothing() {
    let Some(lab) = Lab::new(&["proxy"]) else { return };
    let server = find("sped:without=nothing-known", &programs()).expect("a variant");
    let error = lab.try_start(server.as_ref()).expect_err("no such optimisation").to_string();
    assert!(error.contains("ended by itself") && error.contains("nothing-known"), "{error}");
    lab.assert_nothing_is_left("a server that did not start");
}
