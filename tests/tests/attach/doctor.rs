//! `afpa doctor`, and messages of a start and of a running attachment about the same findings.

use afpa_testkit::{eventually, skip};
use afpa_tests::attach::Lab;
use serde_json::Value;

fn ip(lab: &Lab, words: &str) -> bool {
    let mut command = lab.bed().server().command("ip");
    command.args(words.split_whitespace()).status().expect("ip runs").success()
}

/// Whether it says that there can be a fast path, and its findings as `level subject: finding`.
fn doctor(lab: &Lab, arguments: &[&str]) -> (bool, Vec<String>) {
    let (good, said) = lab.run_afpa(&[&["doctor", "--json"], arguments].concat());
    let document: Value =
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let findings = document["findings"].as_array().expect("a list").iter().map(|finding| {
        let word = |name: &str| finding[name].as_str().expect("a text").to_owned();
        format!("{} {}: {} ({})", word("level"), word("subject"), word("finding"), word("remedy"))
    });
    (good, findings.collect())
}

#[track_caller]
fn has(findings: &[String], beginning: &str) {
    assert!(findings.iter().any(|one| one.starts_with(beginning)), "{beginning}: {findings:#?}");
}

#[test]
fn it_tells_what_is_in_use_and_what_is_not_there() {
    let lab = lab!();
    lab.file("small.html", "small");
    let (good, findings) = doctor(&lab, &["--listen", "10.77.0.1:8080"]);
    assert!(good, "{findings:#?}");
    has(&findings, "bypassed firewall: ");
    let (good, findings) = doctor(&lab, &["--listen", "10.77.0.1:8081"]);
    assert!(!good);
    has(&findings, "refused 10.77.0.1:8081: no server listens there");
    let attached = lab.attach(&[]);
    let (good, findings) = doctor(&lab, &[]);
    assert!(good, "{findings:#?}");
    let whose = format!("for process {} (", attached.id());
    let used =
        findings.iter().find(|one| one.starts_with("in use port 8080: answered by the kernel"));
    assert!(used.is_some_and(|used| used.contains(&whose)), "{findings:#?}");
    let (_, text) = lab.run_afpa(&["doctor"]);
    assert!(text.contains("\n  in use    port 8080: "), "{text}");
    attached.kill();
    eventually("the kernel has noticed", || {
        let (_, findings) = doctor(&lab, &["--listen", "10.77.0.1:8080"]);
        findings
            .iter()
            .any(|one| one.starts_with("limited port 8080: a process that has ended left"))
            || !lab.kept().exists()
    });
}

#[test]
fn other_rights_and_other_servers_are_named() {
    let lab = lab!();
    let mut poor = std::process::Command::new("nsenter");
    poor.arg(format!("--net=/run/netns/{}", lab.bed().server().name()));
    poor.args(["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"]);
    poor.arg(afpa_testkit::server::program()).args(["doctor", "--listen", "10.77.0.1:8080"]);
    let output = poor.output().expect("setpriv runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("this process lacks CAP_BPF, CAP_NET_ADMIN, CAP_PERFMON"), "{said}");
    let listener = || std::net::TcpListener::bind("10.77.0.1:9090").expect("bound");
    let first = lab.bed().server().run(listener).expect("the server's side");
    let (_, findings) = doctor(&lab, &["--listen", "10.77.0.1:9090"]);
    assert!(findings.iter().all(|one| !one.contains("several servers")), "{findings:#?}");
    drop(first);
}

/// The kernel notifies the running attachment of a new device, and the attachment reports it.
#[test]
fn a_host_that_changes_is_looked_at_again() {
    let lab = lab!();
    lab.file("small.html", "small");
    let attached = lab.attach(&[]);
    assert!(!lab.log().contains("vpn0"), "{}", lab.log());
    let add = |name: &str| {
        ip(&lab, &format!("tuntap add dev {name} mode tun"))
            && ip(&lab, &format!("link set {name} up"))
    };
    if !add("vpn0") {
        skip!("the kernel has no tun devices");
    }
    // Requests that come in by it are answered, so only a route by it is worth a word.
    let (good, findings) = doctor(&lab, &[]);
    assert!(good, "{findings:#?}");
    has(&findings, "in use vpn0: tun without Ethernet headers: requests over TCP");
    assert!(ip(&lab, "route add 198.51.100.0/24 dev vpn0"));
    eventually("the attachment says so", || lab.log().contains("! vpn0: tun without Ethernet"));
    let (_, findings) = doctor(&lab, &[]);
    has(&findings, "limited vpn0: tun without Ethernet headers");
    assert!(add("vpn1") && ip(&lab, "route add 203.0.113.0/24 dev vpn1"));
    eventually("it says that of another one", || {
        lab.log().contains("! vpn1: tun without Ethernet")
    });
    assert_eq!(lab.log().matches("! vpn0: tun without").count(), 1, "{}", lab.log());
    // The end of the route is the end of the finding.
    assert!(ip(&lab, "route del 198.51.100.0/24 dev vpn0"));
    eventually("it has read the routes again", || {
        let (_, findings) = doctor(&lab, &[]);
        findings.iter().any(|one| one.starts_with("in use vpn0: tun without"))
    });
    drop(attached);
}

/// `afpa doctor` reports that every client is admitted, for as long as that is so; `afpa attach` logs at its start why it
/// cannot admit them.
#[test]
fn everyone_who_is_admitted_is_bypassed() {
    let lab = lab!();
    if let Some(why) = afpa_bpf::Socketless::refusal() {
        skip!("{why}");
    }
    lab.file("small.html", "small");
    let everyone = ["--connections", "everyone"];
    let attached = lab.attach(&everyone);
    eventually("it says that no gateway is sure", || {
        lab.log()
            .contains("--connections: clients have to be known all the same: no gateway is sure")
    });
    assert!(ip(&lab, "route add 198.51.100.0/24 via 10.77.64.1"));
    eventually("it has read the routes again", || {
        let (_, findings) = doctor(&lab, &[]);
        findings.iter().any(|one| one.starts_with("bypassed port 8080: everyone is admitted"))
    });
    drop(attached);
    let attached = lab.attach(&["--connections", "flood"]);
    let (_, findings) = doctor(&lab, &[]);
    let says = |begin: &str| findings.iter().any(|one| one.starts_with(begin));
    assert!(says("bypassed port 8080: in a flood SYNs are answered"), "{findings:?}");
    assert!(!says("bypassed port 8080: everyone"), "{findings:?}");
    drop(attached);
    let address = Lab::address().to_string();
    let said = lab.attach_in_vain_with(&address, &["--connections", "nobody"]);
    assert!(said.contains("write kernel, known, flood or everyone"), "{said}");
}
