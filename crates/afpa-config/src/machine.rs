//! The machine for which a configuration is resolved.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

/// The machine, as far as defaults and warnings depend on it.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Bytes of memory this process may use: of the machine, or of its control group if less.
    pub memory: usize,
    /// Cores this process may run on.
    pub cores: usize,
    /// Lowest port that needs no privilege.
    pub unprivileged_ports: u16,
    /// Whether this process may bind the ports below.
    pub binds_any_port: bool,
    /// Directories one user may watch (fs.inotify.max_user_watches).
    pub watches: usize,
    /// Descriptors this process may ever have.
    pub descriptors: usize,
}

impl Machine {
    /// Asks the system. A limit that cannot be read is assumed not to matter.
    pub fn probe() -> Self {
        let ports = read_number(Path::new("/proc/sys/net/ipv4/ip_unprivileged_port_start"));
        let watches = read_number(Path::new("/proc/sys/fs/inotify/max_user_watches"));
        Machine {
            memory: memory(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            unprivileged_ports: ports.and_then(|port| port.try_into().ok()).unwrap_or(1024),
            binds_any_port: has(CapabilitySet::NET_BIND_SERVICE),
            watches: watches.unwrap_or(usize::MAX),
            descriptors: descriptors(),
        }
    }
}

fn memory() -> usize {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = total.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    let total = kilobytes.map_or(usize::MAX, |kilobytes| kilobytes.saturating_mul(1024));
    control_group_memory().map_or(total, |limit| limit.min(total))
}

/// The smallest `memory.max` of our control group (version 2) and those above it.
fn control_group_memory() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let top = PathBuf::from("/sys/fs/cgroup");
    let folder = top.join(group);
    let inside = folder.ancestors().take_while(|folder| folder.starts_with(&top));
    inside.filter_map(|folder| read_number(&folder.join("memory.max"))).min()
}

fn has(capability: CapabilitySet) -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(capability))
}

/// The hard limit of this process, or the system's limit if the process may exceed its own.
fn descriptors() -> usize {
    if has(CapabilitySet::SYS_RESOURCE) {
        return read_number(Path::new("/proc/sys/fs/nr_open")).unwrap_or(usize::MAX);
    }
    let limit = getrlimit(Resource::Nofile);
    limit.maximum.and_then(|maximum| maximum.try_into().ok()).unwrap_or(usize::MAX)
}

fn read_number(path: &Path) -> Option<usize> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_memory_and_cores() {
        let machine = Machine::probe();
        assert!(machine.memory > 1 << 20, "{machine:?}");
        assert!(machine.memory < 1 << 50, "{machine:?}");
        assert!(machine.cores >= 1 && machine.descriptors >= 16, "{machine:?}");
    }
}
