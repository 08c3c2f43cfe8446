//! A thread that somebody has taken over: a debugger has it make system calls in the name of the server, and the kernel
//! judges them as it would judge an intruder's.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use afpa_testkit::proc::Process;
use afpa_testkit::server::free_address;
use afpa_testkit::{Server, Tree, eventually, limits::is_root, skip};
use nix::sys::{
    ptrace,
    signal::{Signal, kill},
    wait::{WaitPidFlag, WaitStatus, waitpid},
};
use nix::unistd::Pid;

use crate::small_site;

const EPERM: i64 = -1;
const EACCES: i64 = -13;
/// The instruction (x86-64), as the lower half of a word.
const SYSCALL: i64 = 0x050f;

/// Numbers of system calls (x86-64).
mod call {
    pub(super) const READ: u64 = 0;
    pub(super) const CLOSE: u64 = 3;
    pub(super) const SOCKET: u64 = 41;
    pub(super) const CONNECT: u64 = 42;
    pub(super) const SENDTO: u64 = 44;
    pub(super) const CLONE: u64 = 56;
    pub(super) const EXECVE: u64 = 59;
    pub(super) const KILL: u64 = 62;
    pub(super) const PTRACE: u64 = 101;
    pub(super) const SETUID: u64 = 105;
    pub(super) const OPENAT: u64 = 257;
    pub(super) const PROCESS_VM_READV: u64 = 310;
    pub(super) const BPF: u64 = 321;
    pub(super) const EXECVEAT: u64 = 322;
    pub(super) const IO_URING_SETUP: u64 = 425;
    pub(super) const IO_URING_REGISTER: u64 = 427;
    pub(super) const OPENAT2: u64 = 437;
}

/// A thread in somebody else's hands. It waits for something in the kernel when it is taken.
struct TakenOver {
    process: Pid,
    thread: Pid,
    place: u64,
}

impl TakenOver {
    /// The first thread of that name as soon as it waits in the kernel, if the system lets us.
    fn thread_of(server: &Server, name: &str) -> Option<Self> {
        let (process, mut threads) = (server.pid().cast_signed(), threads(server));
        let thread = threads.find(|(_, found)| found == name).expect("there is such a thread").0;
        let (process, thread) = (Pid::from_raw(process), Pid::from_raw(thread));
        let mut taken = None;
        eventually("it waits in the kernel", || {
            taken = Self::take(process, thread);
            taken.as_ref().is_none_or(Self::is_behind_system_call)
        });
        taken
    }

    fn take(process: Pid, thread: Pid) -> Option<Self> {
        if let Err(why) = ptrace::seize(thread, ptrace::Options::empty()) {
            println!("SKIP: this system allows no debugger: {why}");
            return None;
        }
        let mut taken = Self { process, thread, place: 0 };
        ptrace::interrupt(thread).expect("stopped");
        taken.wait();
        taken.place = ptrace::getregs(thread).expect("registers").rsp - 16 * 1024;
        Some(taken)
    }

    /// Waits until it stands still. A thread that runs a program has another number from then on, and is not found.
    fn wait(&self) {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
        let stands = || waitpid(self.thread, Some(flags)).expect("the thread is there");
        eventually("the thread stands still", || stands() != WaitStatus::StillAlive);
    }

    fn is_behind_system_call(&self) -> bool {
        let place = ptrace::getregs(self.thread).expect("registers").rip - 2;
        ptrace::read(self.thread, place as *mut _).expect("read") & 0xffff == SYSCALL
    }

    /// Has it make a system call.
    fn call(&self, number: u64, arguments: &[u64]) -> i64 {
        let saved = ptrace::getregs(self.thread).expect("registers");
        let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
        let mut made = saved;
        // It stands behind the instruction that led it into the kernel.
        made.rip -= 2;
        assert!(self.is_behind_system_call());
        (made.rax, made.orig_rax) = (number, u64::MAX);
        (made.rdi, made.rsi, made.rdx) = (argument(0), argument(1), argument(2));
        (made.r10, made.r8, made.r9) = (argument(3), argument(4), argument(5));
        ptrace::setregs(self.thread, made).expect("set");
        ptrace::step(self.thread, None).expect("gone on");
        self.wait();
        let outcome = ptrace::getregs(self.thread).expect("registers").rax.cast_signed();
        ptrace::setregs(self.thread, saved).expect("as it was");
        outcome
    }

    /// Puts bytes into its memory, and says where.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.place;
        for (index, word) in bytes.chunks(8).enumerate() {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            let to = (at + 8 * index as u64) as *mut _;
            ptrace::write(self.thread, to, i64::from_ne_bytes(whole)).expect("written");
        }
        self.place += (bytes.len() as u64 + 15) / 8 * 8;
        at
    }

    fn put_path(&mut self, path: &Path) -> u64 {
        self.put(&[path.as_os_str().as_bytes(), &[0]].concat())
    }

    fn open(&mut self, path: &str, flags: u64) -> i64 {
        let path = self.put_path(Path::new(path));
        let how = self.put(&[flags.to_ne_bytes(), [0; 8], [0; 8]].concat());
        self.call(call::OPENAT2, &[AT_FDCWD, path, how, 24])
    }

    /// Tries the system calls that are forbidden to threads that serve.
    fn cannot_leave(&mut self) {
        let shell = self.put_path(Path::new("/bin/sh"));
        assert_eq!(self.call(call::EXECVE, &[shell, 0, 0]), EPERM);
        assert_eq!(self.call(call::EXECVEAT, &[AT_FDCWD, shell, 0, 0, 0]), EPERM);
        const FORK: u64 = 17; // SIGCHLD, and no flag of a thread
        assert_eq!(self.call(call::CLONE, &[FORK]), EPERM);
        let room = self.put(&[0; 128]);
        for command in [0, 5, 18] {
            assert_eq!(self.call(call::BPF, &[command, room, 128]), EPERM, "command {command}");
        }
        assert_eq!(self.call(call::IO_URING_SETUP, &[8, room]), EPERM);
        assert_eq!(self.call(call::IO_URING_REGISTER, &[0, 0, 0, 0]), EPERM);
        let tests = u64::from(std::process::id());
        assert_eq!(self.call(call::KILL, &[tests, 0]), EPERM);
        assert_eq!(self.call(call::PTRACE, &[16, tests]), EPERM);
        assert_eq!(self.call(call::PROCESS_VM_READV, &[tests, room, 1, room, 1]), EPERM);
        assert_eq!(self.call(call::SETUID, &[0]), EPERM);
    }
}

impl Drop for TakenOver {
    fn drop(&mut self) {
        // A process that cannot be let go would never end by itself.
        if ptrace::detach(self.thread, None).is_err() {
            let _ = kill(self.process, Signal::SIGKILL);
        }
    }
}

const AT_FDCWD: u64 = (-100_i64).cast_unsigned();
const READ_ONLY: u64 = 0;
const WRITE_AND_CREATE: u64 = 0o101;

fn threads(server: &Server) -> impl Iterator<Item = (i32, String)> {
    let folder = format!("/proc/{}/task", server.pid());
    fs::read_dir(folder).expect("its threads").flatten().filter_map(|thread| {
        let name = fs::read_to_string(thread.path().join("comm")).ok()?;
        Some((thread.file_name().to_str()?.parse().ok()?, name.trim().to_owned()))
    })
}

fn serving(tree: &Tree) -> Server {
    let server = Server::start(tree.path(), |launch| {
        launch.arg("--workers").arg("1").arg("--io").arg("readiness");
    });
    server.settle();
    server
}

fn skips() -> bool {
    if !cfg!(target_arch = "x86_64") || !is_root() {
        println!("SKIP: a debugger of somebody else's process needs root, and this test x86-64");
    }
    !cfg!(target_arch = "x86_64") || !is_root()
}

fn has_landlock(server: &Server) -> bool {
    server.summary("confined").contains("Landlock") && !server.log().contains("no Landlock")
}

#[test]
fn a_worker_that_is_taken_over_cannot_open_run_load_or_reach_the_control_socket() {
    if skips() {
        return;
    }
    let tree = small_site();
    let server = serving(&tree);
    assert_eq!(server.get("/hello.txt").text(), "hello");
    // The worker, and the one of the administration, which has the same name.
    let Some(mut worker) = TakenOver::thread_of(&server, "afpa-0") else { return };
    worker.cannot_leave();
    for path in ["/etc/passwd", "/proc/self/mem", tree.at("hello.txt").to_str().expect("UTF-8")] {
        let refused = worker.open(path, READ_ONLY);
        assert!([EPERM, EACCES].contains(&refused), "{path}: {refused}");
        let path = worker.put_path(Path::new(path));
        assert_eq!(worker.call(call::OPENAT, &[AT_FDCWD, path, READ_ONLY]), EPERM);
    }
    // It may have sockets of this kind, because servers may be behind such.
    let control = server.home().join("control.sock");
    let mut address = vec![1, 0];
    address.extend_from_slice(control.as_os_str().as_bytes());
    address.push(0);
    let (length, address) = (address.len() as u64, worker.put(&address));
    let socket = worker.call(call::SOCKET, &[1, 1, 0]);
    assert!(socket >= 0, "{socket}");
    let socket = socket.cast_unsigned();
    if worker.call(call::CONNECT, &[socket, address, length]) == 0 {
        let request = b"POST /purge?path=/hello.txt HTTP/1.1\r\nHost: h\r\n\r\n";
        let at = worker.put(request);
        const NO_SIGNAL: u64 = 0x4000;
        worker.call(call::SENDTO, &[socket, at, request.len() as u64, NO_SIGNAL]);
        let room = worker.put(&[0; 64]);
        let answered = worker.call(call::READ, &[socket, room, 64]);
        assert!(answered <= 0, "{answered} bytes of an answer");
    }
    worker.call(call::CLOSE, &[socket]);
    drop(worker);
    assert_eq!(server.get("/hello.txt").text(), "hello", "it goes on");
}

#[test]
fn a_helper_that_is_taken_over_reads_below_the_roots_and_nothing_else() {
    if skips() {
        return;
    }
    let tree = small_site();
    let server = serving(&tree);
    let Some(mut helper) = TakenOver::thread_of(&server, "afpa-help-0") else { return };
    helper.cannot_leave();
    assert_eq!(helper.call(call::SOCKET, &[1, 1, 0]), EPERM);
    assert_eq!(helper.call(call::SOCKET, &[2, 1, 0]), EPERM);
    let own = tree.at("hello.txt");
    let own = own.to_str().expect("UTF-8");
    let opened = helper.open(own, READ_ONLY);
    assert!(opened >= 0, "{opened}");
    helper.call(call::CLOSE, &[opened.cast_unsigned()]);
    if !has_landlock(&server) {
        skip!("files: this kernel has no Landlock");
    }
    assert_eq!(helper.open("/etc/passwd", READ_ONLY), EACCES);
    assert_eq!(helper.open(own, WRITE_AND_CREATE), EACCES);
    drop(helper);
    assert_eq!(server.get("/hello.txt").text(), "hello", "it goes on");
}

#[test]
fn no_thread_can_ever_get_a_capability_and_those_that_serve_are_filtered() {
    let tree = small_site();
    tree.file("users", "ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n");
    tree.file("zone", "$TTL 60\n@ SOA a b 1 1 1 1 1\n@ NS ns.example.net.\n");
    let (root, dns) = (tree.path().display(), free_address());
    let server = Server::start(tree.path(), |launch| {
        launch.written(|endpoint| {
            format!(
                "workers = 1\n[engine]\nio = \"readiness\"\n[tracing]\notlp = \"http://127.0.0.1:9\"\n\
                 [dns]\ndnstap = \"{root}/nobody.sock\"\n\
                 [[zone]]\nname = \"example.org\"\nfile = \"{root}/zone\"\nlisten = [\"{dns}\"]\n\
                 [[site]]\nlisten = [\"{endpoint}\"]\nroot = \"{root}\"\n\
                 [[site.path]]\nprefix = \"/private/\"\nbasic_auth = \"{root}/users\"\n"
            )
        });
    });
    server.settle();
    assert_eq!(server.get("/hello.txt").text(), "hello");
    for needed in ["afpa-password", "afpa-dnstap", "afpa-otlp", "afpa-zones"] {
        assert!(threads(&server).any(|(_, name)| name == needed), "{needed}");
    }
    let left = Process(server.pid()).rights_left(is_root()).expect("threads");
    assert_eq!(left, [""; 0], "by thread");
    for (thread, name) in threads(&server) {
        let status = fs::read_to_string(format!("/proc/{}/task/{thread}/status", server.pid()));
        let Ok(status) = status else { continue };
        let is =
            |line: &str| status.lines().any(|found| found.split_whitespace().eq(line.split(' ')));
        let serves = name.starts_with("afpa-help-") || name == "afpa-0" || name == "afpa-password";
        assert!(!serves || !is("Seccomp_filters: 1"), "{name}: {status}");
    }
}

/// A thread can only get narrower, so the helpers of the configuration before could not read these.
#[test]
fn roots_that_a_reload_adds_are_served_as_if_they_had_been_there() {
    let (first, second) = (small_site(), Tree::new());
    second.file("hello.txt", "another");
    second.file("long.bin", vec![7; 300_000]);
    second.file("folder/index.html", "index");
    let site = |endpoint: &str, root: &Tree, prefix: &str| {
        let (own, added) = (first.path().display(), root.path().display());
        let path = match prefix {
            "" => String::new(),
            prefix => format!("[[site.path]]\nprefix = \"{prefix}\"\nroot = \"{added}\"\n"),
        };
        format!("workers = 2\n[[site]]\nlisten = [\"{endpoint}\"]\nroot = \"{own}\"\n{path}")
    };
    let server = Server::start(first.path(), |launch| {
        launch.written(|endpoint| site(&endpoint.to_string(), &first, ""));
    });
    assert_eq!(server.get("/hello.txt").text(), "hello");
    assert_eq!(server.get("/added/hello.txt").status, 404);
    let text = site(&server.endpoint().to_string(), &second, "/added/");
    fs::write(server.configuration(), text).expect("written");
    server.signal(rustix::process::Signal::HUP);
    eventually("the root is served", || server.get("/added/hello.txt").status == 200);
    for _ in 0..20 {
        assert_eq!(server.get("/added/hello.txt").text(), "another");
        assert_eq!(server.get("/hello.txt").text(), "hello");
        assert_eq!(server.get("/added/long.bin").body, vec![7; 300_000]);
        assert_eq!(server.get("/added/folder/").text(), "index");
        assert_eq!(server.get("/added/none.txt").status, 404);
    }
}
