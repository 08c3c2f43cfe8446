//! The findings that follow from the facts. No I/O.

use std::collections::BTreeSet;

use crate::conn::socketless::refusal_of;

use super::{Device, Facts, FastPathFacts, Finding, Level};

/// Everything to know of a host, the gravest first.
pub fn findings(facts: &Facts) -> Vec<Finding> {
    let mut all = Vec::new();
    kernel(facts, &mut all);
    ports(facts, &mut all);
    let carriers: Vec<&Device> = facts.devices.iter().filter(|one| carries(one, facts)).collect();
    if carriers.is_empty() && !facts.addresses.is_empty() {
        let text = "no interface that is up carries the addresses";
        add(&mut all, Level::Refused, "interfaces", text, "bring one up");
    }
    for device in facts.devices.iter().filter(|device| device.up && !device.loopback) {
        if is_abroad(facts) {
            left_out(device, facts, &mut all);
        }
    }
    for device in carriers {
        on_carrier(device, facts, &mut all);
    }
    programs(facts, &mut all);
    surroundings(facts, &mut all);
    sockets(facts, &mut all);
    if !all.iter().any(|finding| finding.level == Level::Refused) {
        let text = "what the kernel answers passes no netfilter rule, no counter and no DSCP mark; each client \
                    address passes them once a second";
        add(&mut all, Level::Bypassed, "firewall", text, "");
    }
    all.sort_by_key(|finding| finding.level);
    all
}

fn add(
    all: &mut Vec<Finding>,
    level: Level,
    subject: impl Into<String>,
    text: impl Into<String>,
    remedy: impl Into<String>,
) {
    let (subject, text, remedy) = (subject.into(), text.into(), remedy.into());
    all.push(Finding { level, subject, text, remedy });
}

fn kernel(facts: &Facts, all: &mut Vec<Finding>) {
    for refusal in facts.kernel.refusals() {
        add(all, Level::Refused, "kernel", refusal.reason, refusal.remedy);
    }
    if !facts.lacking.is_empty() {
        let text = format!("this process lacks {}", facts.lacking.join(", "));
        add(all, Level::Refused, "kernel", text, "start it as root, or give it these");
    }
}

/// Where connections cannot begin without a socket, all of them have one: that is no limit of the fast path.
fn sockets(facts: &Facts, all: &mut Vec<Finding>) {
    let refusal = refusal_of(&facts.kernel).or_else(|| facts.tcp?.refusal());
    if let Some(why) = refusal.filter(|_| facts.kernel.refusals().is_empty()) {
        let text = format!("every connection has a socket of the kernel's: {}", why.reason);
        return add(all, Level::InUse, "connections", text, why.remedy);
    }
    if facts.tracks {
        let strict = if facts.tracks_strictly { ", strictly" } else { "" };
        let text = format!(
            "this host tracks connections{strict}: those that it tracks have a socket from the beginning"
        );
        add(all, Level::InUse, "connections", text, "`notrack` for the served port, both ways");
    }
}

fn ports(facts: &Facts, all: &mut Vec<Finding>) {
    for found in facts.fast_paths.iter().flatten() {
        fast_path(found, all);
    }
    let Some(listening) = &facts.listening else { return };
    for address in &facts.addresses {
        let there = |ip: std::net::IpAddr| ip == address.ip() || ip.is_unspecified();
        let mut sockets = listening.iter().filter(|socket| socket.address.port() == address.port());
        if !sockets.any(|socket| address.ip().is_unspecified() || there(socket.address.ip())) {
            let remedy = "start the server, or name the address that it listens on";
            add(all, Level::Refused, address.to_string(), "no server listens there", remedy);
        }
    }
    let ports: BTreeSet<u16> = facts.addresses.iter().map(|address| address.port()).collect();
    for port in ports {
        let sockets = listening.iter().filter(|socket| socket.address.port() == port);
        let servers: BTreeSet<String> = sockets
            .filter_map(|socket| socket.server.as_ref())
            .map(|server| server.to_string())
            .collect();
        if servers.len() > 1 {
            let servers = servers.into_iter().collect::<Vec<_>>().join(" and ");
            let text = format!("several servers listen: {servers}");
            add(all, Level::Limited, format!("port {port}"), text, "give each a port of its own");
        }
    }
}

fn fast_path(found: &FastPathFacts, all: &mut Vec<Finding>) {
    let interfaces = found.interfaces.join(", ");
    let Some(ports) = &found.ports else {
        let text = format!("a fast path of another version of AFPA is on {interfaces}");
        return add(all, Level::Limited, "ports", text, "end it with the program that started it");
    };
    let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let subject = format!("port {ports}");
    let whose = match &found.process {
        Some(process) => process.to_string(),
        None => "a process that cannot be seen from here".to_owned(),
    };
    match (found.alive, found.paused) {
        (false, _) => {
            let text = format!("a process that has ended left a fast path on {interfaces}");
            add(all, Level::Limited, subject, text, "`afpa detach` removes it");
        }
        (true, true) => {
            let text = format!("the fast path of {whose} is paused");
            add(all, Level::Limited, subject, text, "`afpa resume`");
        }
        (true, false) => {
            if found.admits_everyone {
                let text = "everyone is admitted: connections begin, and are answered, without a question to the \
                            firewall, cgroup programs or routing rules of this host";
                add(
                    all,
                    Level::Bypassed,
                    subject.clone(),
                    text,
                    "`connections = \"known\"` asks them",
                );
            }
            if found.answers_floods {
                let text = "in a flood SYNs are answered before the firewall of this host has seen them; it is asked before \
                            any request of theirs is";
                let remedy = "`connections = \"known\"` leaves them to it";
                add(all, Level::Bypassed, subject.clone(), text, remedy);
            }
            let text = format!("answered by the kernel on {interfaces}, for {whose}");
            add(all, Level::InUse, subject.clone(), text, "");
            if found.keeps_answers {
                let text = "answers of applications are kept for as long as they allow it, or until an unsafe request \
                            for them comes in here; what changes them in another way is noticed later";
                add(all, Level::InUse, subject, text, "`afpa purge URL` drops them at once");
            }
        }
    }
}

fn is_abroad(facts: &Facts) -> bool {
    facts.addresses.iter().any(|address| !address.ip().is_loopback())
}

/// Whether the programs would be put on it.
fn carries(device: &Device, facts: &Facts) -> bool {
    device.up
        && (device.ethernet || device.bare)
        && device.master == 0
        && (device.loopback || is_abroad(facts))
        && !facts.addresses.is_empty()
}

/// Why nothing is answered on a device.
fn left_out(device: &Device, facts: &Facts, all: &mut Vec<Finding>) {
    let routed = match facts.routes.iter().any(|(index, _)| *index == device.index) {
        true => "; routes leave by it, and connections by these are served without the fast path",
        false => "",
    };
    let name = &*device.name;
    let kind = if device.kind.is_empty() { "a device" } else { &device.kind };
    if device.bare && device.master == 0 {
        let text = format!(
            "{kind} without Ethernet headers: requests over TCP that come in by it are answered where responses leave \
             by an Ethernet interface{routed}"
        );
        let level = if routed.is_empty() { Level::InUse } else { Level::Limited };
        add(all, level, name, text, "direct return: no route leaves by it");
    } else if !device.ethernet {
        let text = format!("{kind} without Ethernet headers{routed}");
        add(all, Level::Limited, name, text, "serve by an Ethernet interface");
    } else if let Some(master) = facts.devices.iter().find(|other| other.index == device.master) {
        let text = match &*master.kind {
            "bridge" | "bond" | "team" => {
                return; // its packets come by the master, where they are answered
            }
            kind => format!("a port of {} ({kind}){routed}", master.name),
        };
        add(all, Level::Limited, name, text, "take it out of that, or serve without the fast path");
    }
}

fn on_carrier(device: &Device, facts: &Facts, all: &mut Vec<Finding>) {
    let name = &*device.name;
    if facts.routes.iter().any(|(index, encapsulates)| *index == device.index && *encapsulates) {
        let text = "a route by it encapsulates packets: connections by it are served without the fast path";
        add(all, Level::Limited, name, text, "serve these clients by another route");
    }
    let seen_before = device.loopback || device.kind == "bridge" && facts.filters_bridges;
    if facts.tracks && seen_before {
        let text = "connection tracking sees requests here before the programs do: what it tracks is served without the \
                    fast path";
        add(all, Level::Limited, name, text, "`notrack` for the served port");
    }
}

fn programs(facts: &Facts, all: &mut Vec<Finding>) {
    let ours = facts.fast_paths.iter().flatten().flat_map(|found| &found.interfaces);
    let ours: BTreeSet<&String> = ours.collect();
    for other in facts.others.iter().filter(|other| other.first && ours.contains(&other.interface))
    {
        let hook = if other.ingress { "arrives" } else { "leaves" };
        let text = format!("the program {} comes before ours, for what {hook}", other.name);
        let remedy = "put it behind, or end it: what it decides, our programs do not see";
        add(all, Level::Limited, &*other.interface, text, remedy);
    }
}

fn surroundings(facts: &Facts, all: &mut Vec<Finding>) {
    if let Some(policies) = facts.policies.filter(|policies| *policies > 0) {
        let text = format!(
            "{policies} policies: connections that they cover are served without the fast path"
        );
        add(
            all,
            Level::Limited,
            "IPsec",
            text,
            "none is needed; an xfrm interface keeps them apart",
        );
    }
    if !facts.bpf_fs {
        let text = "connections on which the kernel has answered break when AFPA is killed";
        add(all, Level::Limited, "no BPF file system", text, "mount -t bpf bpf /sys/fs/bpf");
    }
    if !facts.cgroup2 {
        let text = "a way out that appears in mid-connection is not watched";
        add(all, Level::Limited, "no cgroup2", text, "mount -t cgroup2 none /sys/fs/cgroup");
    }
    const ENOUGH: u64 = 64 << 20;
    if let Some(limit) = facts.memlock.filter(|limit| *limit < ENOUGH && facts.listening.is_none())
    {
        let text =
            format!("this process may lock {limit} bytes: what it caches may be swapped out");
        add(all, Level::Limited, "memory", text, "LimitMEMLOCK=infinity, or ulimit -l unlimited");
    }
}
