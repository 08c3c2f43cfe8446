//! The guard: packets of connections with a sequence offset that would leave or arrive where no program translates them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use libbpf_rs::libbpf_sys::{BPF_CGROUP_INET_EGRESS, BPF_CGROUP_INET_INGRESS};

use crate::net::attach::Interfaces;
use crate::net::links;
use crate::unavailable::Unavailable;

/// The hooks, in the order of [`Interfaces`]'s guards, and how their links are called where they are kept.
const HOOKS: [(u32, &str); 2] =
    [(BPF_CGROUP_INET_EGRESS, "guard-egress"), (BPF_CGROUP_INET_INGRESS, "guard-ingress")];

impl Interfaces {
    /// Stops packets that no program translates, from now on: a route may change to a device without programs, or to
    /// one that wraps packets, while connections have sequence offsets. The guard is at the root of the control
    /// groups, and looks at no packet of other ports or network namespaces than ours. To be called when the
    /// interfaces have their programs.
    pub fn guard(&self) -> Result<(), Unavailable> {
        let group = root_of_control_groups().map_err(|error| Unavailable {
            reason: format!("no control groups of version 2: {error}"),
            remedy: "mount -t cgroup2 none /sys/fs/cgroup",
        })?;
        let mut guarding = self.guarding.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        guarding.clear();
        for (program, (hook, name)) in self.guards.iter().zip(HOOKS) {
            let link = self.guard_link(program, &group, hook, name);
            guarding.push(link.map_err(|error| Unavailable {
                reason: format!("the guard cannot be attached: {error}"),
                remedy: "CAP_BPF and CAP_NET_ADMIN are needed, or root",
            })?);
        }
        Ok(())
    }

    /// Whether [`guard`](Self::guard) has succeeded.
    pub fn is_guarded(&self) -> bool {
        let guarding = self.guarding.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        guarding.len() == HOOKS.len()
    }

    /// The link of an earlier process, with our program in it, or a new one.
    fn guard_link(
        &self,
        program: &OwnedFd,
        group: &OwnedFd,
        hook: u32,
        name: &str,
    ) -> io::Result<OwnedFd> {
        let kept = self.keep_in.as_ref().map(|folder| folder.join(name));
        if let Some(link) =
            kept.as_deref().and_then(|path| links::take_over_group(path, program).ok())
        {
            return Ok(link);
        }
        let link = links::create_group_link(program, group, hook)?;
        if let Some(path) = kept {
            let _stale = std::fs::remove_file(&path);
            links::pin(&link, &path)?;
        }
        Ok(link)
    }
}

fn root_of_control_groups() -> io::Result<OwnedFd> {
    let mut mounts = String::new();
    File::open("/proc/self/mounts")?.read_to_string(&mut mounts)?;
    let root = root_in(&mounts).ok_or_else(|| io::Error::other("none is mounted"))?;
    Ok(File::open(root)?.into())
}

/// Where the first file system of that kind is mounted.
fn root_in(mounts: &str) -> Option<PathBuf> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut roots = fields.filter(|fields| fields.get(2) == Some(&"cgroup2"));
    roots.find_map(|fields| fields.get(1).map(|path| Path::new(path).to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_wherever_it_is_mounted() {
        let hybrid = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(root_in(hybrid), Some("/sys/fs/cgroup/unified".into()));
        let unified = "none /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(root_in(unified), Some("/sys/fs/cgroup".into()));
        assert_eq!(root_in("proc /proc proc rw 0 0\n"), None);
    }
}
