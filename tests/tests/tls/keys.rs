//! Keys that root alone may read, after AFPA has become another user.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use afpa_testkit::eventually;
use afpa_tests::tls::{Authority, Plan, TlsServer};
use rustix::process::{Signal, geteuid};

use crate::site;

const DAC_READ_SEARCH: u64 = 1 << 2;

struct Bed {
    server: TlsServer,
    authority: Authority,
    _tree: afpa_testkit::tree::Tree,
}

impl Bed {
    /// A server whose certificates lie as certbot keeps them; `None` without root.
    fn new() -> Option<Self> {
        if !geteuid().is_root() {
            println!("SKIP: not started as root");
            return None;
        }
        let (tree, authority) = (site(), Authority::new());
        let sections = "[internals]\nreread = \"100ms\"\n".to_owned();
        let server = TlsServer::with(&authority, tree.path(), Plan { sections, ..Plan::default() });
        let bed = Self { server, authority, _tree: tree };
        bed.let_folder_have(0o700);
        Some(bed)
    }

    fn let_folder_have(&self, mode: u32) {
        let mode = fs::Permissions::from_mode(mode);
        fs::set_permissions(self.authority.folder(), mode).expect("rights");
    }

    /// The certificate that a client gets.
    fn certificate(&self) -> String {
        let said = self.server.openssl(&self.authority, &["-showcerts"], "");
        said.split("-----BEGIN CERTIFICATE-----").nth(1).map(str::to_owned).unwrap_or_default()
    }

    fn renew(&self) {
        self.authority.issue("localhost", &["localhost"]);
    }

    /// The folder in `/proc` of the process that reads keys.
    fn reader(&self) -> Option<PathBuf> {
        let parent = format!("PPid:\t{}\n", self.server.server.pid());
        let of_parent = |folder: &PathBuf| {
            let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
            let command = fs::read(folder.join("cmdline")).unwrap_or_default();
            status.contains(&parent) && command.starts_with(b"afpa-read-keys\0")
        };
        let all = fs::read_dir("/proc").expect("processes");
        all.flatten().map(|entry| entry.path()).find(of_parent)
    }
}

#[test]
fn keys_that_root_alone_may_read_are_taken_when_they_change() {
    let Some(bed) = Bed::new() else { return };
    let first = bed.certificate();
    bed.renew();
    eventually("the new one is in use", || bed.certificate() != first);
    let second = bed.certificate();
    bed.renew();
    bed.server.server.signal(Signal::HUP);
    eventually("a reload takes one, too", || bed.server.server.log().contains("reloaded"));
    eventually("the third is in use", || bed.certificate() != second);
    let log = bed.server.server.log();
    assert!(!log.contains("this user may not read it"), "it is checked by who can read it: {log}");
}

#[test]
fn what_others_could_replace_is_not_read_for_them() {
    let Some(bed) = Bed::new() else { return };
    let first = bed.certificate();
    bed.let_folder_have(0o722);
    bed.renew();
    let says_so = || bed.server.server.log().contains("others than root can change");
    eventually("the log says what is wrong", says_so);
    assert_eq!(bed.certificate(), first, "the running certificate stays");
    bed.let_folder_have(0o700);
    eventually("it is taken once that is mended", || bed.certificate() != first);
}

#[test]
fn the_process_that_reads_can_do_nothing_else_and_ends_with_afpa() {
    let Some(bed) = Bed::new() else { return };
    let first = bed.certificate();
    let reader = bed.reader().expect("a process that reads keys");
    let status = || fs::read_to_string(reader.join("status")).expect("its status");
    eventually("it has given its rights up", || status().contains("\nNoNewPrivs:\t1"));
    let status = status();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().split_whitespace().next().unwrap_or_default().to_owned()
    };
    assert_ne!(field("Uid:"), "0", "{status}");
    assert_eq!(field("NoNewPrivs:"), "1", "{status}");
    for set in ["CapEff:", "CapPrm:"] {
        assert_eq!(u64::from_str_radix(&field(set), 16), Ok(DAC_READ_SEARCH), "{status}");
    }
    // Without it what runs stays, and the log says so once.
    let number = reader.file_name().and_then(|name| name.to_str()?.parse().ok());
    let process = rustix::process::Pid::from_raw(number.expect("a number")).expect("a process");
    rustix::process::kill_process(process, Signal::KILL).expect("killed");
    let says_so = || bed.server.server.log().contains("the process that reads keys");
    eventually("the log says that it has ended", says_so);
    bed.renew();
    assert_eq!(bed.certificate(), first);
    let Bed { mut server, .. } = bed;
    server.server.signal(Signal::TERM);
    let status = server.server.wait(Duration::from_secs(10)).expect("it ends");
    assert!(status.success(), "{status}");

    let Some(bed) = Bed::new() else { return };
    let reader = bed.reader().expect("a process that reads keys");
    drop(bed);
    eventually("it ends with afpa", || !reader.exists());
}
