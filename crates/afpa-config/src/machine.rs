//! The machine for which a configuration is resolved.

use std::fs;
use std::path::Path;

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

/// The least that our control group, and those above it, may use.
fn control_group_memory() -> Option<usize> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    least_limit(&groups, Path::new("/sys/fs/cgroup"))
}

/// Of version 2, whose group is limited by `memory.max` and slowed down beyond `memory.high`, or of the memory controller of
/// version 1. A container may see its own group alone, as the top one.
fn least_limit(groups: &str, top: &Path) -> Option<usize> {
    const OLD: &[&str] = &["memory.limit_in_bytes"];
    const NEW: &[&str] = &["memory.max", "memory.high"];
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next().unwrap_or(""), parts.next().unwrap_or("/"));
        let (tops, names) = match controllers {
            "" => (vec![top.to_owned(), top.join("unified")], NEW),
            some if some.split(',').any(|one| one == "memory") => (vec![top.join("memory")], OLD),
            _ => (Vec::new(), NEW),
        };
        tops.into_iter().filter_map(move |top| least_of(&top, group, names))
    });
    limits.min()
}

/// The least number in a file of these names, from the group's folder up to the top.
fn least_of(top: &Path, group: &str, names: &[&str]) -> Option<usize> {
    let folder = top.join(group.trim_start_matches('/'));
    let inside = folder.ancestors().take_while(|folder| folder.starts_with(top));
    let limits = inside.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    limits.filter_map(|file| read_number(&file)).min()
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

    #[test]
    fn the_least_limit_of_the_groups_above_counts() {
        let top = tempfile::tempdir().expect("a folder");
        let put = |file: &str, text: &str| {
            let file = top.path().join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
            fs::write(file, text).expect("a file");
        };
        let least = |groups: &str| least_limit(groups, top.path());
        assert_eq!(least("0::/a/b\n4:memory:/a/b\n"), None, "there are no groups at all");
        // Version 2: the group, one above it, and one beside it.
        put("a/b/memory.max", "max\n");
        assert_eq!(least("0::/a/b\n"), None);
        put("a/memory.max", "536870912\n");
        put("c/memory.max", "4096\n");
        assert_eq!(least("0::/a/b\n"), Some(512 << 20));
        assert_eq!(least("0::/\n"), None);
        put("a/b/memory.high", "268435456\n");
        assert_eq!(least("0::/a/b\n"), Some(256 << 20), "beyond it, the kernel takes memory away");
        // In a container, the path is that of the host, and the group is the top one.
        put("memory.max", "134217728\n");
        assert_eq!(least("0::/docker/1234\n"), Some(128 << 20));
        // Version 1, where other controllers have groups of their own, and no limit is a large number.
        let groups = "9:name=systemd:/x\n7:cpu,memory:/one/two\n0::/\n";
        fs::remove_file(top.path().join("memory.max")).expect("removed");
        put("memory/one/two/memory.limit_in_bytes", "9223372036854771712\n");
        put("memory/one/memory.limit_in_bytes", "67108864\n");
        assert_eq!(least(groups), Some(64 << 20));
        // Both at once: version 2 lies beside the controllers of version 1.
        put("unified/u/memory.max", "1048576\n");
        assert_eq!(least("7:memory:/one/two\n0::/u\n"), Some(1 << 20));
    }
}
