//! One fast path a port and network namespace, however its addresses are spelled.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use afpa_netlab::Bed;
use afpa_testkit::{Client, Endpoint, Running, eventually, eventually_within, skip};
use afpa_tests::attach::{Kind, Lab, PORT};
use afpa_tests::bridge;

use crate::body;

const ALL_V4: &str = "0.0.0.0:8080";
const ALL_V6: &str = "[::]:8080";

fn programs(lab: &Lab) -> u32 {
    let count = || {
        let index = nix::net::if_::if_nametoindex(Bed::DEVICE).expect("an interface");
        afpa_bpf::Interfaces::programs_on(index).expect("asked")
    };
    lab.bed().server().run(count).expect("the server's side")
}

#[test]
fn a_second_one_is_refused_and_told_whose_the_port_is() {
    let lab = lab!();
    lab.file("small.html", "small");
    let attached = lab.attach_at(ALL_V4, &[]);
    for spelling in [ALL_V4, ALL_V6, "10.77.0.1:8080", "127.0.0.1:8080"] {
        let said = lab.attach_in_vain(spelling);
        let whose = format!("port 8080 has a fast path already, of process {} (", attached.id());
        assert!(said.contains(&whose), "{spelling}: {said}");
        assert!(said.contains("attach --listen 0.0.0.0:8080"), "{spelling}: {said}");
        assert!(said.contains("afpa detach --port 8080"), "{spelling}: {said}");
    }
    assert_eq!(programs(&lab), 2);
    assert_eq!(body(&mut lab.connect(), "/small.html"), b"small");
    let (done, said) = lab.detach(&["--port", "8080"]);
    assert!(done && said == "detached\n", "{said}");
    // The command that the message names does end the attachment.
    let again = lab.attach_at(ALL_V6, &[]);
    assert!(again.statistics().is_some());
}

/// As the two `listen` lines of nginx.
#[test]
fn both_families_are_one_attachment() {
    let both = |_: &std::path::Path| format!("listen [::]:{PORT};");
    let lab = match Lab::configured(Kind::Nginx, both, |_| String::new()) {
        Ok(lab) => lab,
        Err(reason) => skip!("{reason}"),
    };
    lab.file("small.html", "small");
    let attached = lab.attach_at(ALL_V4, &["--listen", ALL_V6]);
    for address in [IpAddr::V4(Bed::SERVER_V4), IpAddr::V6(Bed::SERVER_V6)] {
        let endpoint = Endpoint::Tcp(SocketAddr::new(address, PORT));
        let client = lab.bed().client().run(move || Client::connect(&endpoint));
        let mut client = client.expect("the namespace").expect("connected");
        let before = attached.answered();
        assert_eq!(body(&mut client, "/small.html"), b"small");
        assert_eq!(attached.answered(), before + 1, "{address}: {:?}", attached.statistics());
    }
    assert_eq!(programs(&lab), 2);
    let said = lab.attach_in_vain_with(ALL_V4, &["--listen", "[::]:8081"]);
    assert!(said.contains("have different ports"), "{said}");
}

/// The middle of a file stood where a status line belongs, when two fast paths translated one connection.
#[test]
fn what_a_killed_one_left_is_found_however_it_was_spelled() {
    let lab = lab!();
    lab.file("small.html", "small");
    lab.file("large.txt", vec![b'l'; 100_000]);
    let attached = lab.attach_at("10.77.0.1:8080", &[]);
    let mut client = lab.connect();
    let before = attached.answered();
    assert_eq!(body(&mut client, "/small.html"), b"small");
    assert_eq!(attached.answered(), before + 1, "the connection has an offset");
    attached.kill();
    let second = lab.attach_at(ALL_V6, &["--listen", ALL_V4]);
    assert_eq!(programs(&lab), 2, "taken over, not added to");
    for _ in 0..3 {
        assert_eq!(body(&mut client, "/large.txt"), vec![b'l'; 100_000]);
        assert_eq!(body(&mut client, "/small.html"), b"small");
    }
    let mut fresh = lab.connect();
    let before = second.answered();
    assert_eq!(body(&mut fresh, "/small.html"), b"small");
    assert_eq!(second.answered(), before + 1);
    assert_eq!(body(&mut fresh, "/large.txt"), vec![b'l'; 100_000]);
}

/// The one that loses ends, and leaves nothing behind.
#[test]
fn of_two_that_start_at_once_one_stays() {
    let lab = lab!();
    lab.file("small.html", "small");
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("log");
    for _ in 0..3 {
        let file = fs::File::create(&log).expect("a log");
        let start = |listen: &str| {
            let mut command = lab.afpa();
            command.args(["attach", "--listen", listen, "--root"]).arg(lab.path(""));
            command.stdout(Stdio::null()).stderr(file.try_clone().expect("a log"));
            Running::start(&mut command)
        };
        let mut both = [start(ALL_V4), start(ALL_V6)];
        eventually("one of them ends", || both.iter_mut().any(|one| !one.is_alive()));
        let mut left = |why: &str| {
            let alive = both.iter_mut().find_map(|one| one.is_alive().then(|| one.id()));
            let log = || fs::read_to_string(&log).unwrap_or_default();
            alive.unwrap_or_else(|| panic!("both have ended, {why}: {}", log())).to_string()
        };
        // Each look starts a program, which takes a second where others are busy.
        eventually_within(Duration::from_secs(180), "the other one answers", || {
            let told = lab.run_afpa(&["stats", "--pid", &left("and one should answer")]).0;
            told && body(&mut lab.connect(), "/small.html") == b"small"
        });
        assert_eq!(both.iter_mut().filter_map(|one| one.is_alive().then_some(())).count(), 1);
        eventually("its programs are there", || programs(&lab) == 2);
        let (done, said) = lab.detach(&["--wait", "10"]);
        assert!(done, "{said}");
        assert_eq!(programs(&lab), 0);
    }
}

/// A bridge is gone, but the links that a killed attachment kept for it are not.
#[test]
fn what_no_interface_has_any_more_is_removed() {
    let lab = lab!();
    lab.file("small.html", "small");
    let attached = lab.attach(&["--host", "10.77.0.1"]);
    bridge::make(lab.bed().server(), lab.bed().client());
    eventually("programs are on the bridge", || bridge::programs(lab.bed().server()).0 == 2);
    attached.kill();
    bridge::remove(lab.bed().server());
    if !lab.kept().exists() {
        skip!("no BPF file system");
    }
    let (done, said) = lab.detach(&["--wait", "10"]);
    assert!(done && said.contains("killed"), "{said}");
    assert!(!lab.kept().exists() && programs(&lab) == 0);
}
