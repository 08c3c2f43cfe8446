//! Nothing that was started is left when its parent is gone.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;

use super::*;

/// Set for the copy of this program that plays the parent.
const PARENT: &str = "AFPA_LAB_TEST_PARENT";

#[test]
fn a_command_is_told_with_its_core_and_environment() {
    let launch = Launch::new("/bin/server").arg("-c").arg("x y").env("HOME", "/h");
    assert_eq!(launch.line(3), "HOME=/h taskset -c 3 /bin/server -c x y");
}

#[test]
fn a_killed_parent_takes_its_children_along() {
    let folder = tempfile::tempdir().unwrap();
    if std::env::var_os(PARENT).is_some() {
        let running = started(folder.path(), &Launch::new("sleep").arg("60"));
        // The child is tied to this process before it executes `sleep`.
        let name = format!("/proc/{}/comm", running.parts[0].child.id());
        assert!(eventually(|| fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n")));
        println!("\nchild {}", running.parts[0].child.id());
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let name = "servers::running::tests::a_killed_parent_takes_its_children_along";
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(PARENT, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(parent.stdout.take().unwrap()).lines().map_while(Result::ok);
    let child = lines.find_map(|line| line.strip_prefix("child ")?.parse().ok());
    let child: u32 = child.expect("the parent tells its child");
    assert!(is_alive(child));
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(eventually(|| !is_alive(child)));
}

#[test]
fn the_end_is_certain_for_those_who_ignore_it() {
    let folder = tempfile::tempdir().unwrap();
    let stubborn =
        Launch::new("sh").arg("-c").arg("trap '' TERM; echo ready; while :; do sleep 1; done");
    let running = started(folder.path(), &stubborn);
    assert!(eventually(|| running.parts[0].said() == "ready"));
    let id = running.parts[0].child.id();
    running.stop().unwrap();
    assert!(!is_alive(id));
}

#[test]
fn to_end_twice_is_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let mut done = started(folder.path(), &Launch::new("true"));
    done.end().unwrap();
    done.end().unwrap();
}

#[test]
fn this_process_is_of_its_own_family() {
    let folder = tempfile::tempdir().unwrap();
    let running = started(folder.path(), &Launch::new("sleep").arg("60"));
    let own = family(std::process::id());
    assert!(own.contains(&(std::process::id() as i32)));
    assert!(running.processes().iter().all(|child| own.contains(child)), "{own:?}");
}

fn started(folder: &Path, launch: &Launch) -> Running<'static> {
    let setup = ServerSetup {
        namespace: None,
        core: 0,
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        root: folder,
        folder,
        connections: 1,
    };
    let mut running = Running::none();
    running.spawn(&setup, launch.clone()).unwrap();
    running
}

/// Running, and not only waiting for its parent to ask how it ended.
fn is_alive(process: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !condition() && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
    condition()
}
