//! Browsers without a window and without a user. Each has a home of its own, and ends with the test.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::proxy::{Raw, answer, read_head};

/// Arguments for Chromium in every test: no window, and no activity of its own accord.
pub const CHROMIUM: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];

/// Milliseconds of a browser's own clock, which waits for answers, until a page is printed.
const BUDGET: u32 = 7000;

/// A browser that goes on. Ended with all its processes when dropped.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    _home: TempDir,
}

impl Browser {
    /// Chromium at a URL.
    ///
    /// # Errors
    /// When it is not installed: a reason to skip the test.
    pub fn chromium(url: &str) -> Result<Self, String> {
        let home = home();
        let arguments = chromium(home.path(), &[url]);
        Self::start("chromium", home, &arguments)
    }

    /// A browser with these arguments, whose home may have been prepared.
    ///
    /// # Errors
    /// When it is not installed: a reason to skip the test.
    ///
    /// # Panics
    /// When it does not start for another reason.
    pub fn start(program: &str, home: TempDir, arguments: &[String]) -> Result<Self, String> {
        let mut command = Command::new(program);
        command.args(arguments).env("HOME", home.path()).env_remove("DISPLAY").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => Ok(Self { child, _home: home }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(not_there(program)),
            Err(error) => panic!("{program}: {error}"),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.child.id().cast_signed()).expect("a process id");
        let _gone = kill_process_group(group, Signal::KILL);
        let _status = self.child.wait();
    }
}

/// A home for one browser.
///
/// # Panics
/// When the folder cannot be made.
pub fn home() -> TempDir {
    tempfile::Builder::new().prefix("afpa-browser").tempdir().expect("a folder")
}

/// The arguments of Chromium with a profile in this home, and with more of them.
pub fn chromium(home: &Path, more: &[&str]) -> Vec<String> {
    let profile = format!("--user-data-dir={}", home.join("profile").display());
    let all = [&CHROMIUM[..], &[&*profile], more].concat();
    all.into_iter().map(str::to_owned).collect()
}

/// A page as Chromium understands it some seconds of its own clock after it was loaded, by a visitor that was never there.
///
/// # Errors
/// When it is not installed: a reason to skip the test.
///
/// # Panics
/// When it fails, or does not end within two minutes.
pub fn shown(url: &str) -> Result<String, String> {
    let home = home();
    let budget = format!("--virtual-time-budget={BUDGET}");
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120", "chromium"]).env("HOME", home.path());
    command.args(chromium(home.path(), &[&budget, "--dump-dom", url])).stdin(Stdio::null());
    let output = command.output().expect("timeout of coreutils");
    // As the shell says it.
    const ABSENT: i32 = 127;
    if output.status.code() == Some(ABSENT) {
        return Err(not_there("chromium"));
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "chromium: {}: {errors}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A server to which pages report: it hands on the targets of its requests.
pub fn recorder() -> (Raw, Receiver<String>) {
    let (told, reports) = channel();
    let server = Raw::start(move |mut stream: TcpStream| {
        while let Some(head) = read_head(&mut stream) {
            let target = head.split(' ').nth(1).unwrap_or_default();
            let _ended = told.send(target.to_owned());
            answer(&mut stream, 200, "");
        }
    });
    (server, reports)
}

fn not_there(program: &str) -> String {
    format!("{program} is not installed")
}
