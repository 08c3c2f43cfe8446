//! The generator of HTTP/3 against every server that this machine has for it: right answers pass, wrong ones do
//! not, and all answers are counted. Nothing is demanded of a length of time.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use afpa_generator::{
    Body, ClientSetup, Generator, Http2, Http3, Load, Measured, Object, Workload,
};
use afpa_lab::servers::http3::{Certificate, SECURE, Secure};
use afpa_lab::servers::{Programs, Running, Server, ServerSetup};
use afpa_netlab::{Bed, BedOptions, missing_privilege};

const PORT: u16 = 8443;
/// Longer than any turn takes.
const LONG: Duration = Duration::from_secs(30);

/// A bed, a document root, and the certificate of all servers.
struct Lab {
    bed: Bed,
    root: PathBuf,
    folder: tempfile::TempDir,
    certificate: Arc<Certificate>,
}

impl Lab {
    /// `None`, with the reason printed, where there can be none.
    fn new() -> Option<Self> {
        if let Some(reason) = missing_privilege() {
            eprintln!("SKIP: {reason}");
            return None;
        }
        // HAProxy wants one for each connection that it may have.
        afpa_netlab::use_all_open_files().expect("a limit");
        let folder = tempfile::Builder::new().prefix("afpa-lab-http3").tempdir().expect("made");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("opened");
        let root = folder.path().join("www");
        for workload in [small(), large()] {
            workload.make_files(&root).expect("files");
        }
        let bed = Bed::create(&BedOptions::default()).expect("a bed");
        let certificate = Arc::new(Certificate::make("lab.example").expect("a certificate"));
        Some(Self { bed, root, folder, certificate })
    }

    /// `None`, with the reason printed, if it is not here.
    fn start(&self, name: &str) -> Option<Running<'_>> {
        let lab = PathBuf::from(env!("CARGO_BIN_EXE_afpa-lab"));
        let beside = lab.with_file_name("afpa");
        let afpa = std::env::var_os("AFPA_BIN").map_or(beside, PathBuf::from);
        let server = Secure::named(name, &Programs { afpa, lab }, &self.certificate);
        let server = server.expect("a server");
        if let Some(lacks) = server.lacks() {
            eprintln!("SKIP {name}: {lacks}");
            return None;
        }
        // Servers are started one after the other, so one folder is enough for all.
        let started = server.start(&ServerSetup {
            namespace: Some(self.bed.server()),
            core: 0,
            address: (Bed::SERVER_V4, PORT).into(),
            root: &self.root,
            folder: self.folder.path(),
            connections: 64,
        });
        Some(started.unwrap_or_else(|error| panic!("{name}: {error:#}")))
    }

    fn http3(&self, streams: u32) -> Http3 {
        Http3 {
            certificate: self.certificate.der.clone(),
            name: self.certificate.name.clone(),
            streams,
            post_quantum: false,
        }
    }

    /// Runs at the client's end.
    fn asks<T: Send>(&self, work: impl FnOnce(&ClientSetup) -> T + Send) -> T {
        let to = (Bed::SERVER_V4, PORT).into();
        let client = ClientSetup {
            to,
            interface: Bed::DEVICE.into(),
            first_source: Bed::client_address(to.ip(), 0),
            sources: 1,
            core: 0,
            answers_at_once: false,
            ages: false,
        };
        self.bed.client().run(|| work(&client)).expect("a thread")
    }

    fn loaded(&self, generator: &dyn Generator, workload: &Workload, load: &Load) -> Measured {
        let mut samples = 0;
        let measured = self.asks(|client| {
            generator.run(client, workload, load, &mut || samples += 1).expect("a measurement")
        });
        assert_eq!(samples, 2);
        assert_eq!(measured.errors, 0, "{measured:?}");
        assert!(measured.requests > 0, "{measured:?}");
        measured
    }
}

fn small() -> Workload {
    Workload::given(vec![(1, Object::new("/small.html", 512))])
}

fn large() -> Workload {
    Workload::given(vec![(1, Object::new("/large.html", 1 << 20))])
}

fn load(connections: u32, persistent: bool) -> Load {
    Load {
        connections,
        warm_up: Duration::from_millis(50),
        duration: Duration::from_millis(400),
        persistent,
        rate: None,
    }
}

#[test]
fn every_server_of_http_3_gives_right_answers() {
    let Some(lab) = Lab::new() else { return };
    for name in SECURE {
        let Some(running) = lab.start(name) else { continue };
        println!("{name}");
        let kept = lab.loaded(&lab.http3(8), &small(), &load(4, true));
        assert_eq!(kept.body_bytes, 512 * kept.requests);
        assert_eq!(kept.connections_opened, 0, "{kept:?}");
        let fresh = lab.loaded(&lab.http3(1), &small(), &load(4, false));
        assert!(fresh.connections_opened.abs_diff(fresh.requests) <= 4, "{fresh:?}");
        if name != "haproxy" {
            let long = lab.loaded(&lab.http3(2), &large(), &load(2, true));
            assert_eq!(long.body_bytes, long.requests << 20);
        }
        let (mut samples, held) = (0, (20, Duration::from_millis(50), LONG));
        lab.asks(|client| lab.http3(1).hold(client, &small(), held, &mut || samples += 1))
            .unwrap_or_else(|error| panic!("{name}: {error:#}"));
        assert_eq!(samples, 2);
        let by_http2 = Http2 { streams: 8 };
        match by_http2.lacks() {
            Some(lacks) => eprintln!("SKIP: {lacks}"),
            None => {
                let measured = lab.loaded(&by_http2, &small(), &load(4, true));
                assert_eq!(measured.body_bytes, 512 * measured.requests);
            }
        }
        running.stop().unwrap_or_else(|error| panic!("{name}: {error:#}"));
    }
}

#[test]
fn a_handshake_by_mlkem_is_one() {
    let Some(lab) = Lab::new() else { return };
    for name in ["afpa", "nginx"] {
        let Some(running) = lab.start(name) else { continue };
        let generator = Http3 { post_quantum: true, ..lab.http3(1) };
        lab.loaded(&generator, &small(), &load(4, false));
        running.stop().unwrap_or_else(|error| panic!("{name}: {error:#}"));
    }
}

#[test]
fn wrong_answers_and_wrong_servers_are_told() {
    let Some(lab) = Lab::new() else { return };
    let Some(running) = lab.start("afpa") else { return };
    let wrong = |generator: &Http3, path: &str, body: Body| {
        let workload = Workload::given(vec![(1, Object { path: path.into(), body })]);
        let error = lab.asks(|client| generator.check(client, &workload)).unwrap_err();
        format!("{error:#}")
    };
    let right = lab.http3(1);
    let body = |length| Body::of("/small.html", length);
    for (path, body, word) in [
        ("/small.html", Body::of("/other.html", 512), "wrong content"),
        ("/small.html", body(513), "Content-Length"),
        ("/none.html", body(512), "status 404"),
    ] {
        let error = wrong(&right, path, body);
        assert!(error.contains(word), "{error}, and not {word}");
    }
    let other = Certificate::make("lab.example").expect("another certificate");
    let error = wrong(&Http3 { certificate: other.der, ..right }, "/small.html", body(512));
    assert!(error.contains("lost"), "{error}");
    running.stop().expect("it lived");
}
