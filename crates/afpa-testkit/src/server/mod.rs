//! `afpa serve` as a process of one test.

mod address;
mod launch;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{
    client::{Client, Endpoint},
    proc::Process,
    strace::Counts,
    tree::writable_by_all,
    until::eventually,
};

pub use self::{
    address::{free_address, free_listener},
    launch::Launch,
};

/// How long a server may take to open its listeners.
const READY: Duration = Duration::from_secs(30);

/// How long a server may take to end after TERM. On an idle machine it is ready within two seconds and a half, in which the
/// kernel ends its answers; QUIT would wait longer than this for connections.
const STOP: Duration = Duration::from_secs(20);

/// A running server, ended when dropped: TERM, and KILL when that is not enough.
///
/// Dropping panics when the server had crashed or panicked, so that every test shows that too.
#[derive(Debug)]
pub struct Server {
    child: Child,
    ended: Option<ExitStatus>,
    killed: bool,
    launch: Launch,
    root: PathBuf,
    _home: TempDir,
}

impl Server {
    /// Serves `root` and waits until connections are taken, by the site and by its administration.
    ///
    /// # Panics
    /// When the program is missing, ends, or takes no connection within ten seconds; its log is
    /// shown.
    #[track_caller]
    pub fn start(root: impl AsRef<Path>, configure: impl FnOnce(&mut Launch)) -> Self {
        let mut server = Self::launch(root.as_ref(), configure);
        server.wait_until_ready();
        server
    }

    /// Serves `root` without waiting, for tests of a start that fails.
    ///
    /// # Panics
    /// When the program is missing.
    #[track_caller]
    pub fn launch(root: &Path, configure: impl FnOnce(&mut Launch)) -> Self {
        let folder = tempfile::Builder::new().prefix("afpa-run-").tempdir().expect("run folder");
        writable_by_all(folder.path());
        let mut launch = Launch::new(folder.path());
        configure(&mut launch);
        let child = launch.spawn(root);
        let root = root.to_owned();
        Self { child, ended: None, killed: false, launch, root, _home: folder }
    }

    /// Ends the process without mercy (KILL) and starts it again, same arguments and ports.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.child = self.launch.spawn(&self.root);
        self.ended = None;
        self.killed = false;
        self.wait_until_ready();
    }

    /// Has this signal end it, does something, and starts it again, same arguments and ports.
    ///
    /// # Panics
    /// When it does not end, and as [`Server::start`].
    pub fn end_and_restart(&mut self, signal: Signal, meanwhile: impl FnOnce()) {
        self.signal(signal);
        let ended = self.wait(crate::until::with_patience(READY));
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}\n{}", self.log());
        meanwhile();
        self.child = self.launch.spawn(&self.root);
        self.ended = None;
        self.wait_until_ready();
    }

    /// Its first endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.launch.endpoints[0]
    }

    /// Its first TCP address.
    ///
    /// # Panics
    /// When it has none.
    pub fn address(&self) -> SocketAddr {
        let tcp = self.launch.endpoints.iter().find_map(|endpoint| match endpoint {
            Endpoint::Tcp(address) => Some(*address),
            Endpoint::Unix(_) => None,
        });
        tcp.expect("a TCP endpoint")
    }

    /// "http://address:port" of its first TCP address, for other clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The admin endpoint, when [`Launch::admin`] asked for one.
    ///
    /// # Panics
    /// When it did not.
    pub fn admin(&self) -> Endpoint {
        Endpoint::Tcp(self.launch.admin.expect("an admin endpoint was asked for"))
    }

    /// The control socket.
    pub fn control(&self) -> Endpoint {
        Endpoint::Unix(self.launch.control())
    }

    /// The folder for its sockets, logs and configuration.
    pub fn home(&self) -> &Path {
        &self.launch.home
    }

    /// Where its configuration lies, when settings were changed.
    pub fn configuration(&self) -> PathBuf {
        self.launch.configuration()
    }

    /// A new connection to its first endpoint.
    ///
    /// # Panics
    /// When it takes none; the server's log is shown.
    #[track_caller]
    pub fn connect(&self) -> Client {
        let endpoint = self.endpoint();
        Client::connect(endpoint)
            .unwrap_or_else(|error| panic!("connect {endpoint}: {error}\n{}", self.log()))
    }

    /// GET of `target` on a connection of its own.
    ///
    /// # Panics
    /// When no response comes.
    #[track_caller]
    pub fn get(&self, target: &str) -> crate::Response {
        self.connect().get(target)
    }

    /// Waits until all of its threads work, for tests that count what it holds or calls: on a busy machine, a thread
    /// may begin after the first answers, and open what it needs then.
    ///
    /// # Panics
    /// When they do not begin, or its administration does not answer.
    #[track_caller]
    pub fn settle(&self) {
        let begun = || self.process().have_threads_begun().is_ok_and(|begun| begun);
        eventually("its threads have begun", begun);
        let mut admin = Client::connect(&self.control()).expect("its control socket");
        assert_eq!(admin.get("/health").status, 200);
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its process as `/proc` shows it.
    pub fn process(&self) -> Process {
        Process(self.pid())
    }

    /// All it has written to standard output and error so far.
    pub fn log(&self) -> String {
        let log = fs::read(self.launch.log()).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// The entry of `name` in the summary of its start, as soon as it is printed.
    ///
    /// # Panics
    /// When there is no such line.
    #[track_caller]
    pub fn summary(&self, name: &str) -> String {
        let find = || {
            let log = self.log();
            let mut rows = log.lines().filter_map(|line| line.strip_prefix("  "));
            rows.find_map(|row| row.strip_prefix(name)).map(|fact| fact.trim().to_owned())
        };
        eventually(&format!("the summary names {name}"), || find().is_some());
        find().expect("it was there")
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// When the process is gone.
    pub fn signal(&self, signal: Signal) {
        assert!(self.ended.is_none(), "the server has ended");
        let pid = Pid::from_raw(self.pid().cast_signed()).expect("a process id");
        kill_process(pid, signal).expect("kill");
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("wait");
        }
        self.ended.is_none()
    }

    /// Waits for it to end by itself, and gives its status; `None` when it does not within `bound`.
    pub fn wait(&mut self, bound: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while self.is_running() && start.elapsed() < bound {
            std::thread::sleep(Duration::from_millis(4));
        }
        self.ended
    }

    /// Ends it without mercy.
    pub fn kill(&mut self) {
        self.killed = true;
        if self.is_running() {
            self.child.kill().expect("kill");
            self.ended = Some(self.child.wait().expect("wait"));
        }
    }

    /// Ends it without mercy. Its system calls since the start, if it was launched to be [traced](Launch::traced).
    ///
    /// # Panics
    /// When strace does not end.
    pub fn kill_for_calls(&mut self) -> Counts {
        self.kill();
        let own = |line: &str| line.starts_with(&self.pid().to_string()) && line.contains("+++");
        let log = || fs::read_to_string(self.launch.calls()).unwrap_or_default();
        eventually("strace notes the end", || log().lines().any(own));
        Counts::of(&log())
    }

    /// Runs another command of the program, such as `stats`, against this server's control socket.
    ///
    /// # Panics
    /// When the program is missing.
    pub fn command(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.args(arguments).arg("--control").arg(self.launch.control());
        command.stdin(Stdio::null()).output().expect("run the program")
    }

    #[track_caller]
    fn wait_until_ready(&mut self) {
        let start = Instant::now();
        let admin = self.launch.admin.map(Endpoint::Tcp);
        let own = admin.into_iter().chain([self.control()]);
        // The endpoints come last. A process that another thread was just starting may still have held the listener by
        // which one of their ports was found free, and a client of that one has not seen the server.
        for endpoint in own.chain(self.launch.endpoints.clone()) {
            while Client::connect(&endpoint).is_err() {
                if !self.is_running() {
                    panic!("the server ended: {:?}\n{}", self.ended, self.log());
                }
                assert!(
                    start.elapsed() < crate::until::with_patience(READY),
                    "{endpoint} not open\n{}",
                    self.log()
                );
                std::thread::sleep(Duration::from_millis(3));
            }
        }
    }

    /// TERM, then KILL. Where its threads were, if TERM was not enough.
    fn stop(&mut self) -> Option<String> {
        if self.is_running() {
            self.signal(Signal::TERM);
        }
        if self.wait(crate::until::with_patience(STOP)).is_some() {
            return None;
        }
        let threads = Process(self.pid()).waiting_in();
        self.kill();
        Some(threads)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let crashed =
            !self.is_running() && !self.killed && !self.ended.is_some_and(|s| s.success());
        let hanging = self.stop();
        let log = self.log();
        if std::thread::panicking() {
            eprintln!("--- log of the server ---\n{}", tail(&log));
            return;
        }
        assert!(!crashed, "the server ended by itself: {:?}\n{}", self.ended, tail(&log));
        assert!(!log.contains("panicked at"), "the server panicked\n{}", tail(&log));
        if let Some(threads) = hanging {
            panic!("TERM did not end the server within {STOP:?}\n{threads}{}", tail(&log));
        }
    }
}

/// The program under test: `$AFPA_BIN`, else `afpa` of the target folder this test was built in.
///
/// # Panics
/// When there is none, saying how to build it.
pub fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("AFPA_BIN") {
        return path.into();
    }
    // target/<profile>/deps/<test>-<hash>
    let test = std::env::current_exe().expect("path of the running test");
    let program = test.ancestors().nth(2).expect("the profile's folder").join("afpa");
    assert!(
        program.is_file(),
        "{} is not there: build it with `cargo build -p afpa` in the tests' profile, or name \
         another in AFPA_BIN",
        program.display()
    );
    program
}

fn tail(log: &str) -> &str {
    const SHOWN: usize = 6000;
    let mut from = log.len().saturating_sub(SHOWN);
    while !log.is_char_boundary(from) {
        from += 1;
    }
    &log[from..]
}
