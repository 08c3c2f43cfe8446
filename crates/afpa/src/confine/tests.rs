use super::*;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Command;
use std::thread;

/// Runs `work` on a thread of its own, because a thread never gets its rights back.
fn on_its_own<T: Send + 'static>(work: impl FnOnce(Confinement) -> T + Send + 'static) -> T {
    let thread = thread::spawn(|| work(Confinement::begin(Confine::On)));
    thread.join().expect("no assertion failed")
}

/// Whether it is the thread's confinement that refuses this.
fn is_refused<T: std::fmt::Debug>(outcome: std::io::Result<T>) {
    let error = outcome.expect_err("it is refused");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

#[test]
fn a_worker_has_sockets_and_nothing_else() {
    on_its_own(|confinement| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        confinement.confine_worker();
        assert!(TcpStream::connect(address).is_ok(), "it reaches servers");
        assert!(UnixDatagram::unbound().is_ok(), "they may be on unix sockets");
        is_refused(File::open("/etc/passwd"));
        is_refused(fs::write("/tmp/afpa-should-not-be-there", ""));
        is_refused(Command::new("/bin/true").spawn());
        is_refused(thread::Builder::new().spawn(|| ()));
        is_refused(
            rustix::process::test_kill_process(rustix::process::Pid::INIT).map_err(Into::into),
        );
        let limit = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE);
        assert!(limit.is_err(), "what is on no list is refused");
    });
}

#[test]
fn a_helper_reads_below_its_roots_and_nothing_else() {
    on_its_own(|confinement| {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for folder in [&root, &other] {
            fs::write(folder.path().join("file"), "text").unwrap();
        }
        let has_landlock = confinement.0.has_landlock;
        let (mut teller, mut told) = UnixStream::pair().unwrap();
        let directory = File::open(root.path()).unwrap();
        let start = confinement.helpers_below([directory.as_fd()]);
        let pools = afpa_framework::Helpers::start(
            ["test".to_owned()],
            afpa_framework::HelperLimits { threads: 4, places: 4 },
            || start.begin(),
        );
        let helpers = pools.expect("a pool").remove(0);
        let (inside, outside) = (root.path().join("file"), other.path().join("file"));
        let work = move || {
            assert_eq!(fs::read_to_string(&inside).expect("it is below the root"), "text");
            if has_landlock {
                is_refused(fs::read_to_string(&outside));
                is_refused(fs::write(&inside, "other"));
                is_refused(fs::write(inside.with_extension("new"), ""));
            } else {
                println!("SKIP files: this kernel has no Landlock");
            }
            is_refused(fs::remove_file(&inside));
            is_refused(TcpListener::bind("127.0.0.1:0"));
            is_refused(UnixDatagram::unbound());
            // As the handler of a signal does that happens to come here.
            teller.write_all(b"!").expect("told");
            is_refused(Command::new("/bin/true").spawn());
            assert!(thread::spawn(|| ()).join().is_ok(), "it makes further helpers");
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(helpers.run(work)), Ok(()), "an assertion failed, see above");
        told.read_exact(&mut [0]).expect("it was told");
    });
}

#[test]
fn the_process_reaches_into_no_other() {
    on_its_own(|_| {
        assert!(File::open("/etc/passwd").is_ok() && Command::new("/bin/true").status().is_ok());
        let refused = Command::new("unshare").args(["--user", "true"]).output();
        assert!(refused.is_ok_and(|output| !output.status.success()), "nor do its programs");
    });
}

#[test]
fn who_asks_for_no_confinement_gets_none() {
    for wanted in [Confine::Off, Confine::Log] {
        let thread = thread::spawn(move || {
            let confinement = Confinement::begin(wanted);
            confinement.confine_worker();
            assert!(File::open("/etc/passwd").is_ok(), "{wanted:?}");
            confinement.line()
        });
        let line = thread.join().expect("no assertion failed");
        assert_eq!(line.starts_with("no thread"), wanted == Confine::Off, "{line}");
    }
}
