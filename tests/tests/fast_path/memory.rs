//! The memory of a server that may have little.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use afpa_testkit::{Tree, eventually, held::MIB, skip};

use crate::lab::{Lab, answers};

fn small_site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

/// A control group with a limit, of either version; removed in the end.
struct Group {
    folder: PathBuf,
    /// Kills for want of memory, as the kernel counts them.
    kills: &'static str,
}

impl Group {
    fn new(limit: u64) -> Result<Self, String> {
        let name = format!("afpa-test-{}", std::process::id());
        let old = PathBuf::from("/sys/fs/cgroup/memory");
        let (folder, file, kills) = match old.exists() {
            true => (old.join(name), "memory.limit_in_bytes", "memory.oom_control"),
            false => (PathBuf::from("/sys/fs/cgroup").join(name), "memory.max", "memory.events"),
        };
        fs::create_dir(&folder).map_err(|error| format!("no control group: {error}"))?;
        let group = Self { folder, kills };
        let set = fs::write(group.folder.join(file), limit.to_string());
        set.map(|()| group).map_err(|error| format!("no memory controller: {error}"))
    }

    fn kills(&self) -> Option<u64> {
        let text = fs::read_to_string(self.folder.join(self.kills)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The cache takes its share of what the group may use, and all of it stays in memory.
#[test]
fn a_group_with_half_a_gigabyte_serves_from_the_kernel() {
    const FILES: usize = 100;
    let Some(lab) = Lab::new() else { return };
    let group = match Group::new(512 * MIB) {
        Ok(group) => group,
        Err(why) => skip!("{why}"),
    };
    let tree = small_site();
    for number in 0..FILES {
        tree.file(format!("{number}.txt"), "x".repeat(100 * number));
    }
    // The program joins the group before it is the program.
    let own = Tree::new();
    let script = format!(
        "#!/bin/sh\necho $$ > {}/cgroup.procs && exec {} \"$@\"\n",
        group.folder.display(),
        afpa_testkit::server::program().display()
    );
    own.file("within", script);
    let within = own.at("within");
    fs::set_permissions(&within, fs::Permissions::from_mode(0o755)).expect("a program");
    {
        let server = lab.server(&tree, |launch| {
            launch.program(within);
        });
        let limit = server.summary("cache");
        assert!(limit.contains("128.0 MiB"), "{limit}");
        let mut client = server.connect();
        let mut all = || {
            for number in 1..FILES {
                let target = format!("/{number}.txt");
                assert_eq!(client.get(&target).body.len(), 100 * number);
            }
            answers(&server)
        };
        let first = all();
        eventually("the kernel has all of them", || {
            let before = answers(&server);
            all() - before == FILES as u64 - 1
        });
        assert!(first < FILES as u64, "they came from user mode before");
        assert_eq!(group.kills(), Some(0));
    }
}
