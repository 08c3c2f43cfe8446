//! The memory of an idle server with its fast path, and of one that may have little.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use afpa_testkit::{Server, Tree, eventually, figure, held::MIB, skip};
use serde_json::Value;

use crate::lab::{Lab, answers, is_from_kernel, warm};

/// All objects of this kind, as `bpftool` lists them.
fn listed(kind: &str) -> Option<Vec<Value>> {
    let output = Command::new("bpftool").args(["-j", kind, "show"]).output().ok()?;
    serde_json::from_slice::<Value>(&output.stdout).ok()?.as_array().cloned()
}

/// Bytes of the maps, and of the programs, that a process has in the kernel. The process has no descriptor of some maps, so they
/// are found by its programs.
fn in_the_kernel(server: &Server) -> Option<(u64, u64)> {
    let (programs, maps) = (listed("prog")?, listed("map")?);
    let folder = fs::read_dir(format!("/proc/{}/fdinfo", server.pid())).ok()?;
    let texts = folder.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
    let ids = texts.filter_map(|text| {
        text.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse::<u64>().ok())
    });
    let ids: BTreeSet<u64> = ids.collect();
    let of = |value: &Value, name: &str| value[name].as_u64().unwrap_or(0);
    let programs: Vec<&Value> =
        programs.iter().filter(|one| ids.contains(&of(one, "id"))).collect();
    let used = programs.iter().filter_map(|program| program["map_ids"].as_array()).flatten();
    let used: BTreeSet<u64> = used.filter_map(Value::as_u64).collect();
    let maps = maps.iter().filter(|map| used.contains(&of(map, "id")));
    let maps = maps.map(|map| of(map, "bytes_memlock")).sum();
    Some((maps, programs.iter().map(|program| of(program, "bytes_memlock")).sum()))
}

/// Since Linux 6.4.
fn counts_what_is_held() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(4))
}

fn small_site() -> Tree {
    let tree = Tree::new();
    tree.file("hello.txt", "hello");
    tree
}

#[test]
fn an_idle_server_holds_little_in_the_kernel_and_grows_with_what_it_serves() {
    const FILES: usize = 400;
    let Some(lab) = Lab::new() else { return };
    if !counts_what_is_held() {
        skip!("this kernel counts what maps may hold, not what they do");
    }
    let tree = small_site();
    let server = lab.server(&tree, |launch| {
        launch.arg("--workers").arg("1");
        launch.set(|settings| {
            settings.set("compression.enabled", false);
        });
    });
    warm(&server, "/hello.txt");
    let Some((maps, programs)) = in_the_kernel(&server) else { skip!("no bpftool") };
    figure!("idle: {} KiB of maps, {} KiB of programs", maps >> 10, programs >> 10);
    assert!(maps > MIB && programs > 0, "they are found");
    // With user mode's part of the fast path: 64 MB at most.
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let bound = 60_000_000 + 500_000 * processors;
    assert!(maps + programs < bound, "{maps} bytes of maps, {programs} of programs");
    for number in 0..FILES {
        tree.file(format!("{number}.txt"), "x".repeat(10_000));
    }
    let mut client = server.connect();
    for number in 0..FILES {
        let target = format!("/{number}.txt");
        assert_eq!(client.get(&target).body.len(), 10_000);
    }
    let grown = || in_the_kernel(&server).expect("bpftool").0.saturating_sub(maps);
    // Three pages each, and twice: one answer keeps the connection, one ends it. Some 370 pages were there before.
    let expected = ((FILES * 2 * 3 - 370) * 5600) as u64;
    eventually("the kernel has them", || grown() > expected * 7 / 8);
    assert!(is_from_kernel(&server, &mut client, "/7.txt"));
    let grown = grown();
    assert!(grown < expected * 3 / 2, "{grown} bytes more");
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
