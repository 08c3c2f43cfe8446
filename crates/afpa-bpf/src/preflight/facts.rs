//! Asks the kernel for the facts. A fact that cannot be had is left out.

use std::fs;
use std::net::SocketAddr;

use rustix::fs::statfs;
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use super::{Facts, FastPathFacts, listeners, routes, xfrm};
use crate::conn::socketless::TcpSettings;
use crate::found::{FoundFastPath, OnHooks};
use crate::kernel::Kernel;
use crate::net::devices::devices;
use crate::pin_home::HOME;

/// Capabilities that loading takes.
const NEEDED: [(CapabilitySet, &str); 3] = [
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    (CapabilitySet::PERFMON, "CAP_PERFMON"),
];

const BPF_FS: u64 = 0xcafe_4a11;
const CGROUP2: u64 = 0x6367_7270;

/// Of the calling thread's network namespace.
const BRIDGE_FILTERS: [&str; 2] = [
    "/proc/sys/net/bridge/bridge-nf-call-iptables",
    "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
];
const TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_count";
const LOOSE: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_loose";

/// 0: there is no such file.
fn number_in(path: &str) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

impl Facts {
    /// Looks at this host, in the calling thread's network namespace, with the addresses in mind where a fast path
    /// is wanted. `serves`: AFPA itself will listen there.
    pub fn gather(addresses: &[SocketAddr], serves: bool) -> Self {
        let hooks = OnHooks::look().ok();
        let has = capabilities(None).map(|sets| sets.effective).unwrap_or(CapabilitySet::empty());
        // CAP_SYS_ADMIN stands for the two that were split off from it.
        let all = has.contains(CapabilitySet::SYS_ADMIN);
        let lacks =
            |one: CapabilitySet| !(has.contains(one) || all && one != CapabilitySet::NET_ADMIN);
        let lacking = NEEDED.into_iter().filter(|(one, _)| lacks(*one)).map(|(_, name)| name);
        let mut ports: Vec<u16> = addresses.iter().map(SocketAddr::port).collect();
        ports.sort_unstable();
        ports.dedup();
        let (fast_paths, others) = match hooks {
            Some(hooks) => (Some(hooks.fast_paths.iter().map(describe).collect()), hooks.others),
            None => (None, Vec::new()),
        };
        Self {
            kernel: Kernel::this(),
            tcp: Some(TcpSettings::of_this_namespace()),
            lacking: lacking.collect(),
            memlock: getrlimit(Resource::Memlock).current,
            // A service may see our folder alone.
            bpf_fs: is_of("/sys/fs/bpf", BPF_FS) || is_of(HOME, BPF_FS),
            cgroup2: is_of("/sys/fs/cgroup", CGROUP2) || is_of("/sys/fs/cgroup/unified", CGROUP2),
            policies: xfrm::policies().ok(),
            filters_bridges: BRIDGE_FILTERS.iter().any(|path| number_in(path) > 0),
            tracks: number_in(TRACKED) > 0,
            tracks_strictly: fs::read_to_string(LOOSE).is_ok_and(|text| text.trim() == "0"),
            devices: devices().unwrap_or_default(),
            routes: routes::devices().unwrap_or_default(),
            addresses: addresses.to_vec(),
            listening: (!serves).then(|| listeners::on(&ports)),
            fast_paths,
            others,
        }
    }
}

impl Facts {
    /// Looks again. Facts that this process can no longer read, because it has given up its rights, stay as they were.
    pub fn again(&self) -> Self {
        let mut now = Self::gather(&self.addresses, self.listening.is_none());
        now.lacking.clone_from(&self.lacking);
        now.memlock = self.memlock;
        now.policies = now.policies.or(self.policies);
        now.listening.clone_from(&self.listening);
        if now.fast_paths.is_none() {
            now.fast_paths.clone_from(&self.fast_paths);
            now.others.clone_from(&self.others);
        }
        now
    }
}

fn describe(found: &FoundFastPath) -> FastPathFacts {
    FastPathFacts {
        ports: found.ports(),
        interfaces: found.interfaces().map(str::to_owned).collect(),
        alive: found.is_alive(),
        process: found.process(),
        paused: found.is_paused().unwrap_or(false),
        admits_everyone: found.admits_everyone().unwrap_or(false),
        answers_floods: found.answers_floods().unwrap_or(false),
        keeps_answers: found.keeps_answers().unwrap_or(false),
    }
}

fn is_of(path: &str, kind: u64) -> bool {
    fs::metadata(path).is_ok() && statfs(path).is_ok_and(|found| found.f_type as u64 == kind)
}
