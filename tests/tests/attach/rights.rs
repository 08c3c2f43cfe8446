//! The rights of `afpa attach` while it runs, and the limits for other users of the machine.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use afpa_testkit::proc::Process;
use afpa_testkit::{Running, eventually, skip};
use afpa_tests::attach::{Attached, Lab};
use afpa_tests::bpf_home;

const STRANGER: &str = "12345";

/// Whether the next request comes from the kernel.
#[track_caller]
fn is_answered(lab: &Lab, attached: &Attached) -> bool {
    let before = attached.answered();
    let response =
        lab.connect().exchange("GET /small.html HTTP/1.1\r\nHost: 10.77.0.1:8080\r\n\r\n");
    assert_eq!(response.status, 200);
    attached.answered() > before
}

#[test]
fn rights_are_given_up_and_files_are_followed_all_the_same() {
    let lab = lab!();
    lab.file("small.html", "small");
    let attached = lab.attach(&[]);
    let process = Process(attached.id());
    assert!(process.users().expect("users").iter().all(|user| *user != 0));
    assert!(process.groups().expect("groups").iter().all(|group| *group != 0));
    assert_eq!(process.capabilities().expect("capabilities"), 0);
    assert_eq!(process.rights_left(true).expect("threads"), [""; 0], "by thread");
    assert!(is_answered(&lab, &attached));
    lab.file("late.html", "late");
    eventually("a new file is pinned", || attached.pinned() == 2);
    drop(attached);
    let (_, said) = lab.detach(&["--wait", "10"]);
    assert!(!lab.has_programs(), "{said}");
}

/// As a service manager starts it that gives an ordinary user capabilities.
#[test]
fn rights_that_an_ordinary_user_began_with_are_given_up() {
    let lab = lab!();
    lab.file("small.html", "small");
    let run = lab.folder.path().join("run");
    fs::create_dir_all(&run).expect("a folder");
    chown(&run, Some(65534), Some(65534)).expect("given away");
    let afpa = lab.afpa();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let given = "+sys_admin,+net_admin,+bpf,+perfmon,+setpcap,+setuid,+setgid";
    command.args(["--inh-caps", given, "--ambient-caps", given]).arg(afpa.get_program());
    command.args(afpa.get_args()).env("RUNTIME_DIRECTORY", &run);
    command.args(["attach", "--listen", &Lab::address().to_string(), "--root"]).arg(lab.path(""));
    let log = fs::File::create(lab.folder.path().join("attach.log")).expect("a log");
    command.stdout(log.try_clone().expect("a log")).stderr(log);
    let mut running = Running::start(&mut command);
    let threads = format!("/proc/{}/task", running.id());
    let is_filler = |thread: fs::DirEntry| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim() == "filler")
    };
    eventually("it runs", || {
        assert!(running.is_alive(), "{}", lab.log());
        fs::read_dir(&threads).expect("threads").flatten().any(is_filler)
    });
    assert_eq!(Process(running.id()).rights_left(true).expect("threads"), [""; 0], "by thread");
}

#[test]
fn a_root_that_its_user_may_not_read_is_explained() {
    let lab = lab!();
    lab.file("small.html", "small");
    // nginx has it open already, and is not asked.
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o700)).expect("mode");
    let said = lab.attach_in_vain("10.77.0.1:8080");
    assert!(said.contains("may not be read") && said.contains("--user"), "{said}");
    assert!(!lab.has_programs());
    let attached = lab.attach(&["--user", "root"]);
    assert!(attached.statistics().is_some());
}

#[test]
fn the_control_socket_lies_where_nobody_else_can_write() {
    let lab = lab!();
    lab.file("small.html", "small");
    let attached = lab.attach(&[]);
    let socket = attached.socket().expect("a socket");
    let folder = socket.parent().expect("a folder");
    let base = folder.parent().expect("a folder");
    let of = |path: &Path| {
        let found = fs::symlink_metadata(path).expect("there");
        (found.uid(), found.mode() & 0o777)
    };
    assert_eq!(of(base), (0, 0o755), "root's own sockets lie here");
    assert_eq!(of(folder).1, 0o755);
    assert_ne!(of(folder).0, 0, "the process can remove its socket");
    assert_eq!(of(&socket), (0, 0o600), "whoever connects may end it");
    let mut ask = Command::new("setpriv");
    ask.args(["--reuid", STRANGER, "--regid", STRANGER, "--clear-groups"]);
    ask.arg(afpa_testkit::server::program()).args(["stats", "--control"]).arg(&socket);
    let asked = ask.output().expect("setpriv runs");
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(!asked.status.success() && said.contains("ask as the user that runs it"), "{said}");
    assert!(is_answered(&lab, &attached));
}

#[test]
fn a_pin_folder_that_somebody_else_made_is_not_used() {
    let lab = lab!();
    if let Err(error) = bpf_home::make_home_for_root_alone() {
        skip!("no BPF file system: {error}");
    }
    lab.file("small.html", "small");
    fs::create_dir(lab.kept()).expect("a folder");
    chown(lab.kept(), Some(12345), Some(12345)).expect("given away");
    let attached = lab.attach(&[]);
    let log = lab.log();
    assert!(log.contains("was made by somebody else (user 12345)"), "{log}");
    assert!(is_answered(&lab, &attached), "it does without");
    assert_eq!(fs::read_dir(lab.kept()).expect("listed").count(), 0);
    assert_eq!(fs::metadata(lab.kept()).expect("there").uid(), 12345);
    fs::remove_dir(lab.kept()).expect("removed");
}

/// Where links may be followed by everybody, and in folders that everybody may write to.
#[test]
fn detach_deletes_nothing_through_a_link() {
    let lab = lab!();
    if let Err(error) = bpf_home::make_home_for_root_alone() {
        skip!("no BPF file system: {error}");
    }
    let precious = lab.folder.path().join("precious");
    fs::create_dir(&precious).expect("a folder");
    fs::write(precious.join("file"), "").expect("written");
    // Names of today, and those that had the address.
    let name = lab.kept().file_name().expect("a name").to_string_lossy().into_owned();
    let old = lab.kept().with_file_name(name.replace("-8080", "-10_77_0_1:8080"));
    symlink(&precious, lab.kept()).expect("a link");
    symlink(&precious, &old).expect("a link");
    let (done, said) = lab.detach(&["--wait", "0", "--force"]);
    assert!(precious.join("file").exists(), "{said}");
    assert!(!done && said.contains("nothing is attached"), "{said}");
    fs::remove_file(lab.kept()).expect("removed");
    fs::remove_file(old).expect("removed");
}
