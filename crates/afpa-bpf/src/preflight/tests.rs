use std::collections::BTreeMap;

use super::*;
use crate::net::rtnetlink::attribute;
use crate::preflight::findings;

fn device(index: u32, name: &str) -> Device {
    let loopback = name == "lo";
    Device { index, name: name.into(), up: true, loopback, ethernet: true, ..Device::default() }
}

fn process(id: u32, command: &str) -> Process {
    Process { id, command: command.to_owned() }
}

/// A host without anything to find.
fn host() -> Facts {
    let listening = |address: &str| ListeningSocket {
        address: address.parse().unwrap(),
        server: Some(process(7, "nginx")),
    };
    Facts {
        kernel: Kernel { release: "6.18.1-amd64".into(), realtime: false, btf: true },
        bpf_fs: true,
        cgroup2: true,
        policies: Some(0),
        devices: vec![device(1, "lo"), device(2, "eth0")],
        routes: vec![(2, false)],
        addresses: vec!["0.0.0.0:80".parse().unwrap(), "[::]:80".parse().unwrap()],
        listening: Some(vec![listening("0.0.0.0:80"), listening("[::]:80")]),
        fast_paths: Some(Vec::new()),
        ..Facts::default()
    }
}

/// The findings besides those of every host, as `level subject: text`.
fn found(change: impl FnOnce(&mut Facts)) -> Vec<String> {
    let mut facts = host();
    change(&mut facts);
    let all = findings(&facts).into_iter().filter(|finding| finding.subject != "firewall");
    all.map(|finding| format!("{} {finding}", finding.level.word())).collect()
}

#[track_caller]
fn one(change: impl FnOnce(&mut Facts), expected: &str) {
    let all = found(change);
    assert!(all.len() == 1 && all[0].starts_with(expected), "{all:#?} instead of {expected}");
}

#[test]
fn an_ordinary_host_has_no_findings_but_the_firewall() {
    assert_eq!(found(|_| ()), [""; 0]);
    let all = findings(&host());
    assert_eq!((all.len(), all[0].level), (1, Level::Bypassed));
    assert_eq!(found(|facts| facts.listening = None), [""; 0], "AFPA itself will listen");
}

#[test]
fn where_connections_must_have_sockets_it_is_said_and_costs_nothing_else() {
    one(
        |facts| facts.kernel.release = "6.8.0".into(),
        "in use connections: every connection has a socket of the kernel's: TCP of Linux 6.8.0",
    );
    let tcp = TcpSettings {
        timestamps: true,
        sack: true,
        scaling: true,
        cookies: false,
        receive_max: 6 << 20,
    };
    one(|facts| facts.tcp = Some(tcp), "in use connections: every connection has a socket");
    assert_eq!(found(|facts| facts.tcp = Some(TcpSettings { cookies: true, ..tcp })), [""; 0]);
    let tracked = |strictly| {
        let all = found(|facts| (facts.tracks, facts.tracks_strictly) = (true, strictly));
        all.into_iter().filter(|one| one.starts_with("in use connections: this host")).collect()
    };
    let loosely: Vec<String> = tracked(false);
    assert!(loosely.len() == 1 && !loosely[0].contains("strictly"), "{loosely:?}");
    let strictly: Vec<String> = tracked(true);
    assert!(strictly.len() == 1 && strictly[0].contains("strictly"), "{strictly:?}");
}

#[test]
fn what_the_kernel_or_the_process_lacks_refuses() {
    one(|facts| facts.kernel.release = "5.15.0".into(), "refused kernel: Linux 5.15.0 is too old");
    one(|facts| facts.kernel.btf = false, "refused kernel: it does not tell its types");
    one(|facts| facts.kernel.realtime = true, "refused kernel: it preempts softirqs");
    let lacking = "refused kernel: this process lacks CAP_BPF, CAP_PERFMON (";
    one(|facts| facts.lacking = vec!["CAP_BPF", "CAP_PERFMON"], lacking);
    let mut facts = host();
    facts.kernel.btf = false;
    assert!(findings(&facts).iter().all(|finding| finding.level != Level::Bypassed));
}

#[test]
fn surroundings_limit() {
    one(|facts| facts.policies = Some(3), "limited IPsec: 3 policies");
    one(|facts| facts.bpf_fs = false, "limited no BPF file system: ");
    one(|facts| facts.cgroup2 = false, "limited no cgroup2: ");
    assert_eq!(found(|facts| facts.memlock = Some(8 << 20)), [""; 0], "attach locks nothing");
    let serve = |facts: &mut Facts| (facts.memlock, facts.listening) = (Some(8 << 20), None);
    one(serve, "limited memory: this process may lock 8388608 bytes");
    assert_eq!(found(|facts| facts.policies = None), [""; 0]);
}

#[test]
fn listeners_are_looked_for() {
    let gone = |facts: &mut Facts| facts.listening.as_mut().unwrap().truncate(1);
    one(
        |facts| {
            gone(facts);
            facts.addresses = vec!["10.0.0.1:80".parse().unwrap(), "10.0.0.1:81".parse().unwrap()];
        },
        "refused 10.0.0.1:81: no server listens there",
    );
    one(
        |facts| facts.listening.as_mut().unwrap()[1].server = Some(process(8, "haproxy")),
        "limited port 80: several servers listen: process 7 (nginx) and process 8 (haproxy)",
    );
    one(
        |facts| facts.devices.clear(),
        "refused interfaces: no interface that is up carries the addresses",
    );
}

#[test]
fn fast_paths_that_are_there_are_told_of() {
    let there = FastPathFacts {
        ports: Some(vec![80]),
        interfaces: vec!["lo".into(), "eth0".into()],
        alive: true,
        process: Some(process(9, "afpa attach")),
        paused: false,
        admits_everyone: false,
        answers_floods: false,
        keeps_answers: false,
    };
    let with = |change: fn(&mut FastPathFacts)| {
        let mut there = there.clone();
        change(&mut there);
        move |facts: &mut Facts| facts.fast_paths = Some(vec![there])
    };
    let used = "in use port 80: answered by the kernel on lo, eth0, for process 9 (afpa attach)";
    one(with(|_| ()), used);
    let paused =
        "limited port 80: the fast path of process 9 (afpa attach) is paused (`afpa resume`)";
    one(with(|found| found.paused = true), paused);
    let all = found(with(|found| found.admits_everyone = true));
    assert!(all[0].starts_with("bypassed port 80: everyone is admitted"), "{all:?}");
    assert!(all[1].starts_with(used), "{all:?}");
    let all = found(with(|found| found.answers_floods = true));
    assert!(all[0].starts_with("bypassed port 80: in a flood SYNs are answered"), "{all:?}");
    assert!(all[1].starts_with(used), "{all:?}");
    let all = found(with(|found| found.keeps_answers = true));
    assert!(all[0].starts_with(used), "{all:?}");
    assert!(all[1].starts_with("in use port 80: answers of applications are kept"), "{all:?}");
    one(with(|found| found.alive = false), "limited port 80: a process that has ended left");
    one(with(|found| found.ports = None), "limited ports: a fast path of another version");
    let before = |first| OtherProgram {
        interface: "eth0".into(),
        ingress: true,
        first,
        name: "cil_from_netdev".into(),
    };
    let all = found(|facts| {
        with(|_| ())(facts);
        facts.others = vec![before(true), before(false)];
    });
    assert!(
        all[0].starts_with("limited eth0: the program cil_from_netdev comes before ours"),
        "{all:?}"
    );
    assert_eq!(all.len(), 2);
    assert_eq!(found(|facts| facts.others = vec![before(true)]), [""; 0], "ours will be first");
}

#[test]
fn devices_that_are_left_out_say_why() {
    let with = |device: Device| move |facts: &mut Facts| facts.devices.push(device);
    let tunnel = || Device { ethernet: false, kind: "wireguard".into(), ..device(3, "wg0") };
    one(with(tunnel()), "limited wg0: wireguard without Ethernet headers (");
    let routed = |facts: &mut Facts| {
        facts.devices.push(tunnel());
        facts.routes.push((3, false));
    };
    one(routed, "limited wg0: wireguard without Ethernet headers; routes leave by it");
    assert_eq!(found(with(Device { up: false, ..tunnel() })), [""; 0]);
}

/// Such a device is right for what comes in: only where responses leave by it are connections user mode's.
#[test]
fn tunnels_say_what_is_answered() {
    let tunnel =
        || Device { ethernet: false, bare: true, kind: "ipip".into(), ..device(3, "tunl0") };
    let answered =
        "tunl0: ipip without Ethernet headers: requests over TCP that come in by it are answered";
    one(|facts| facts.devices.push(tunnel()), &format!("in use {answered}"));
    let routed = |facts: &mut Facts| {
        facts.devices.push(tunnel());
        facts.routes.push((3, false));
    };
    one(routed, &format!("limited {answered}"));
    assert_eq!(found(|facts| facts.devices.push(Device { up: false, ..tunnel() })), [""; 0]);
}

#[test]
fn devices_in_others_say_why() {
    let port = |kind: &str| {
        let master = Device { kind: kind.into(), ..device(4, "upper") };
        let port = Device { master: 4, ..device(3, "eth1") };
        move |facts: &mut Facts| facts.devices.extend([port, master])
    };
    assert_eq!(found(port("bridge")), [""; 0], "answered on the bridge");
    one(port("vrf"), "limited eth1: a port of upper (vrf)");
    let above = Device { kind: "macvlan".into(), ..device(3, "vrrp0") };
    assert_eq!(found(|facts| facts.devices.push(above)), [""; 0], "answered on both (E1)");
    one(|facts| facts.routes = vec![(2, true)], "limited eth0: a route by it encapsulates");
}

/// A finding names interfaces where connections are tracked before the programs see them: `lo`, and bridges whose
/// frames are filtered.
#[test]
fn tracking_before_the_programs_is_named() {
    let bridge = || Device { kind: "bridge".into(), ..device(3, "br0") };
    let facts = |tracks, filters_bridges| {
        move |facts: &mut Facts| {
            facts.devices.push(bridge());
            (facts.tracks, facts.filters_bridges) = (tracks, filters_bridges);
        }
    };
    let subjects = |change| {
        let before = |finding: &String| finding.contains("connection tracking sees requests here");
        let all: Vec<String> = found(change).into_iter().filter(before).collect();
        all.iter().map(|one| one.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let nothing: Vec<String> = subjects(facts(false, true));
    assert_eq!(nothing, [""; 0]);
    let local: Vec<String> = subjects(facts(true, false));
    assert_eq!(local, ["limited lo"]);
    let both: Vec<String> = subjects(facts(true, true));
    assert_eq!(both, ["limited lo", "limited br0"]);
}

#[test]
fn only_loopback_needs_nothing_of_the_network() {
    let local = |facts: &mut Facts| {
        facts.addresses = vec!["127.0.0.1:80".parse().unwrap()];
        facts.routes = vec![(2, true)];
        facts.devices.push(Device { ethernet: false, ..device(3, "wg0") });
    };
    assert_eq!(found(local), [""; 0]);
}

#[test]
fn only_news_are_told_when_the_host_changes() {
    let mut watch = Watch::begin(&[], true);
    watch.learn(host());
    let mut facts = host();
    facts.routes = vec![(2, true)];
    let subjects =
        |news: Vec<Finding>| news.into_iter().map(|finding| finding.subject).collect::<Vec<_>>();
    assert_eq!(subjects(watch.learn(facts.clone())), ["eth0"]);
    facts.policies = Some(1);
    assert_eq!(subjects(watch.learn(facts.clone())), ["IPsec"]);
    assert_eq!(watch.limits().count(), 2);
    assert!(watch.learn(host()).is_empty(), "what is gone is no news");
    assert_eq!(subjects(watch.learn(facts)).len(), 2, "it is, when it comes back");
}

#[test]
fn routes_are_read() {
    let mut hop = 16u16.to_ne_bytes().to_vec();
    hop.extend([0, 0]);
    hop.extend(5u32.to_ne_bytes());
    hop.extend(attribute(21, &1u32.to_ne_bytes()));
    let mut route = vec![0; 12];
    route[7] = 1;
    route.extend(attribute(4, &3u32.to_ne_bytes()));
    route.extend(attribute(9, &hop));
    let mut devices = BTreeMap::new();
    routes::route(&route, &mut devices);
    assert_eq!(devices.into_iter().collect::<Vec<_>>(), [(3, false), (5, true)]);
    for cut in 0..route.len() {
        let _ = routes::route(&route[..cut], &mut BTreeMap::new());
        let _ = xfrm::read(&route[..cut]);
    }
}

#[test]
fn this_host_can_be_looked_at() {
    let facts = Facts::gather(&["0.0.0.0:80".parse().unwrap()], true);
    assert!(facts.devices.iter().any(|device| device.loopback), "{facts:?}");
    assert!(!facts.kernel.release.is_empty());
    let changes = Changes::listen().unwrap();
    assert!(!changes.any() || !changes.any(), "what was told is not told again");
}
